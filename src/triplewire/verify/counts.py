"""Clauses of one star that join nothing are decided by counting. The others are left to `triplewire.verify.solve`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.clauses import Clauses
from triplewire.clauses.table import ASK
from triplewire.clauses.view import View
from triplewire.encode.batch import Bytes, Ids
from triplewire.kernels.pool import Pool
from triplewire.kernels.trie import star_bits as kernels


@dataclass(frozen=True, slots=True)
class Counted:
    """Matches as columns, and the pairs (publication, clause) that are left."""

    publication: Ids
    subscription: Ids
    truncated: NDArray[np.bool_]
    left_publication: Ids
    left_clause: Ids

    @classmethod
    def by_outcome(cls, publication: Ids, clause: Ids, owner: Ids, outcome: Bytes) -> Counted:
        """Pairs by their outcome: MISS, MATCH, TRUNCATED or LEFT. `owner`: clause -> subscription."""
        pairs = len(clause)
        matched, truncated = np.empty((2, pairs), np.int32), np.empty(pairs, np.bool_)
        left = np.empty((2, pairs), np.int32)
        matches, rest = kernels.write_outcomes(publication, clause, owner, outcome, matched, truncated, left)
        return cls(matched[0, :matches], matched[1, :matches], truncated[:matches], left[0, :rest], left[1, :rest])


class StarCounts:
    """Counts for the clauses of one segment. Any thread may ask."""

    def __init__(self, clauses: Clauses) -> None:
        self._clauses = clauses
        self._marks = _marks(clauses)
        self._scratch: Pool[kernels.Scratch] = Pool()

    def count(self, view: View, publication: Ids, clause: Ids, most: int) -> Counted:
        """Of pairs (publication, clause): those that are matches, with at most `most` bindings or truncated, and those
        that are left. What is in neither is no match."""
        clauses, batch, pairs = self._clauses, view.batch, len(clause)
        if not pairs:
            return Counted(publication, clause, np.zeros(0, np.bool_), publication, clause)
        owner, outcome = clauses.facts.owner, np.empty(pairs, np.uint8)
        with self._scratch.borrowed(kernels.scratch) as work:
            kernels.decide(
                publication, clause, owner, self._marks, clauses.table.columns, clauses.tests.columns, batch.triples,
                view.features.columns, most, work, outcome,
            )  # fmt: skip
        return Counted.by_outcome(publication, clause, owner, outcome)


def _marks(clauses: Clauses) -> Ids:
    """Clause -> what counting it needs to know, in one number: `triplewire.kernels.trie.star_bits` has the bits."""
    table, facts = clauses.table, clauses.facts
    of_subscription = table.selected.astype(np.int32) << kernels.WIDTH
    of_subscription |= np.where(table.flags & ASK != 0, np.int32(kernels.ASKS), np.int32(0))
    of_subscription |= np.where(clauses.has_alternatives, np.int32(0), np.int32(kernels.ALONE))
    marks: Ids = of_subscription[facts.owner]
    marks |= facts.status
    return marks
