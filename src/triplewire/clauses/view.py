"""A batch of publications in the eyes of some clauses: the batch, and which of their tests its terms satisfy."""

from __future__ import annotations

from dataclasses import dataclass

from triplewire.clauses.clauses import Clauses
from triplewire.clauses.features import Features, features
from triplewire.encode.batch import Batch
from triplewire.ir.evaluation.evaluate import World


@dataclass(slots=True)
class View:
    """What selection and verification look at."""

    batch: Batch
    features: Features

    @classmethod
    def of(cls, batch: Batch, clauses: Clauses, world: World) -> View:
        """The batch as these clauses see it."""
        looked_up = clauses.few_terms.look_up(batch, world.taxonomy) if clauses.few_terms is not None else None
        if looked_up is not None:
            return cls(batch, Features(*looked_up))
        return cls(batch, features(batch, clauses.constants, clauses.tests, world))

    def __len__(self) -> int:
        """How many publications there are."""
        return len(self.batch)

    def part(self, batch: Batch, first: int, last: int) -> View:
        """The publications first .. last - 1, which are all of `batch`."""
        return View(batch, self.features.part(first, last))
