"""Clauses of one star that join nothing are decided by counting. The others are left to `triplewire.verify.solve`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.clauses import Clauses
from triplewire.clauses.table import ASK
from triplewire.clauses.view import View
from triplewire.encode.batch import Ids
from triplewire.kernels.pool import Pool
from triplewire.kernels.shared.columns import fixed
from triplewire.kernels.shared.lending import Lent
from triplewire.kernels.shared.outcomes import Verdicts
from triplewire.kernels.trie import star_bits as kernels


@dataclass(slots=True)
class Counted:
    """Matches as columns, and the pairs (publication, clause) that are left."""

    publication: Ids
    subscription: Ids
    truncated: NDArray[np.bool_]
    left_publication: Ids
    left_clause: Ids

    @classmethod
    def of(cls, pairs: int, decide: Callable[[Verdicts], tuple[int, int]]) -> Counted:
        """What a kernel says of so many pairs, given room for it."""
        verdicts = Verdicts(
            np.empty(pairs, np.uint8), np.empty((2, pairs), np.int32), np.empty(pairs, np.bool_),
            np.empty((2, pairs), np.int32),
        )  # fmt: skip
        matches, rest = decide(verdicts)
        _, matched, truncated, left = verdicts
        return cls(matched[0, :matches], matched[1, :matches], truncated[:matches], left[0, :rest], left[1, :rest])


class StarCounts:
    """Counts for the clauses of one segment. Any thread may ask."""

    def __init__(self, clauses: Clauses) -> None:
        self._clauses = clauses
        self._scratch: Pool[Lent] = Pool()

    @cached_property
    def _marks(self) -> Ids:
        """Made when pairs are left for the first time: the join network may decide them all."""
        return _marks(self._clauses)

    def count(self, view: View, publication: Ids, clause: Ids, most: int) -> Counted:
        """Of pairs (publication, clause): those that are matches, with at most `most` bindings or truncated, and those
        that are left. What is in neither is no match."""
        if not len(clause):
            return Counted(publication, clause, np.zeros(0, np.bool_), publication, clause)
        triples, features = view.batch.triples, view.features.columns
        work = self._scratch.take(self._new_scratch)
        counted = Counted.of(
            len(clause),
            lambda verdicts: kernels.decide(publication, clause, work.table, triples, features, most, verdicts),
        )
        self._scratch.give(work)
        return counted

    def _new_scratch(self) -> Lent:
        clauses = self._clauses
        marks = kernels.Marks(*fixed(clauses.facts.owner, self._marks))
        return Lent(kernels.LENT, marks, clauses.table.columns, clauses.tests.columns, kernels.scratch())


def _marks(clauses: Clauses) -> Ids:
    """Clause -> what counting it needs to know, in one number: `triplewire.kernels.trie.star_bits` has the bits."""
    table, facts = clauses.table, clauses.facts
    of_subscription = table.selected.astype(np.int32) << kernels.WIDTH
    of_subscription |= np.where(table.flags & ASK != 0, np.int32(kernels.ASKS), np.int32(0))
    of_subscription |= np.where(clauses.has_alternatives, np.int32(0), np.int32(kernels.ALONE))
    marks: Ids = of_subscription[facts.owner]
    marks |= facts.status
    return marks
