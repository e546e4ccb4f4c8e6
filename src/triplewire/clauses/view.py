"""A batch of publications in the eyes of some clauses: the batch, and which of their tests its terms satisfy."""

from __future__ import annotations

from dataclasses import dataclass

from triplewire.clauses.clauses import Clauses
from triplewire.clauses.features import Features, features
from triplewire.encode.batch import Batch
from triplewire.ir.evaluation.evaluate import World


@dataclass(eq=False, slots=True)
class View:
    """What selection and verification look at. What the terms satisfy is looked up when it is first asked for; an index
    that has found it out by itself may set `known_features`."""

    batch: Batch
    clauses: Clauses
    world: World
    known_features: Features | None = None

    @property
    def features(self) -> Features:
        """Which tests of the clauses the terms satisfy."""
        if self.known_features is None:
            clauses = self.clauses
            columns = clauses.few_terms.look_up(self.batch, self.world)
            if columns is not None:
                self.known_features = Features(*columns)
            else:
                self.known_features = features(self.batch, clauses.constants, clauses.tests, self.world)
        return self.known_features

    def __len__(self) -> int:
        """How many publications there are."""
        return len(self.batch)

    def part(self, batch: Batch, first: int, last: int) -> View:
        """The publications first .. last - 1, which are all of `batch`."""
        return View(batch, self.clauses, self.world, self.features.part(first, last))
