"""A batch of publications in the eyes of some clauses: the batch, and which of their tests its terms satisfy."""

from __future__ import annotations

from triplewire.clauses.clauses import Clauses
from triplewire.clauses.features import Features, features
from triplewire.encode.batch import Batch
from triplewire.ir.evaluation.evaluate import World


class View:
    """What selection and verification look at. What the terms satisfy is looked up when it is first asked for."""

    __slots__ = ("_clauses", "_features", "_world", "batch")

    def __init__(self, batch: Batch, clauses: Clauses, world: World, features: Features | None = None) -> None:
        self.batch, self._clauses, self._world, self._features = batch, clauses, world, features

    @property
    def features(self) -> Features:
        """Which tests of the clauses the terms satisfy."""
        if self._features is None:
            clauses = self._clauses
            columns = clauses.few_terms.look_up(self.batch, self._world)
            if columns is not None:
                self._features = Features(*columns)
            else:
                self._features = features(self.batch, clauses.constants, clauses.tests, self._world)
        return self._features

    def __len__(self) -> int:
        """How many publications there are."""
        return len(self.batch)

    def part(self, batch: Batch, first: int, last: int) -> View:
        """The publications first .. last - 1, which are all of `batch`."""
        return View(batch, self._clauses, self._world, self.features.part(first, last))
