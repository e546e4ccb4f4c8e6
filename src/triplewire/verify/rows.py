"""The bindings of many matches as columns: rows of term ids, put together from the rows of clauses' components.

Made by `triplewire.verify.columnar`. `triplewire.verify.objects` makes `Binding` objects of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.node_tests.columns import ends
from triplewire.encode.batch import Ids, Offsets
from triplewire.ir.evaluation.evaluate import Answer
from triplewire.kernels.joins import unions as kernels
from triplewire.kernels.joins.alike import alike
from triplewire.kernels.shared.outcomes import MATCH, TRUNCATED
from triplewire.verify.solve import Pairs, Solved


@dataclass(frozen=True, slots=True)
class Bindings:
    """The distinct rows of pairs: those of pair i are rows[start[i] :], count[i] of them, each width[i] long. A row
    holds the selected variables in order, as term ids of the batch; -1 is unbound. `more`: there are more of them than
    are kept. Pairs of one `group` >= 0 have the same rows. Pairs in `answers` have their bindings there instead."""

    rows: Ids
    start: Offsets
    count: NDArray[np.int64]
    width: Ids
    more: NDArray[np.bool_]
    group: Ids
    answers: dict[int, Answer]

    def __len__(self) -> int:
        return len(self.start)

    @property
    def cut(self) -> NDArray[np.int64]:
        """The pairs that have more bindings than are here, or may have."""
        cut = self.more.copy()
        for pair, answer in self.answers.items():
            cut[pair] = answer.truncated
        return np.flatnonzero(cut)

    def alike(self, selection: Ids) -> tuple[Ids, Ids]:
        """The pairs by their bindings: of each pair a number, the same for those of one `selection` with the same rows;
        of each number, the first pair that has it."""
        kind = selection.astype(np.int64)
        kind[list(self.answers)] = -1 - np.array(list(self.answers), np.int64)  # unlike any other
        return _numbered(kind, self.group, self.start, self.count * self.width, self.rows)

    def of_groups(self, group: Ids) -> Bindings:
        """Pair i of these has the rows of pair group[i]."""
        start, count, width, more = self.start[group], self.count[group], self.width[group], self.more[group]
        return Bindings(self.rows, start, count, width, more, group, {})

    def replaced(self, own: Mapping[int, Ids]) -> Bindings:
        """The same, where some pairs have as many other rows."""
        if not own:
            return self
        start, group, pairs = self.start.copy(), self.group.copy(), list(own)
        start[pairs], group[pairs] = len(self.rows) + ends(self.count[pairs] * self.width[pairs])[:-1], -1
        rows = np.concatenate((self.rows, *(pair_rows.ravel() for pair_rows in own.values())))
        return replace(self, rows=rows, start=start, group=group)


def distinct(keys: NDArray[np.int64]) -> tuple[Ids, Ids]:
    """Of each key a number, the same for equal ones; of each number, the first that has it."""
    none = np.zeros(len(keys), np.int64)
    return _numbered(keys, np.full(len(keys), -1, np.int32), none, none, np.zeros(0, np.int32))


def _numbered(
    kind: NDArray[np.int64], group: Ids, start: Offsets, size: NDArray[np.int64], rows: Ids
) -> tuple[Ids, Ids]:
    number, first = np.empty(len(kind), np.int32), np.empty(len(kind), np.int32)
    slots = np.full(1 << (2 * len(kind)).bit_length(), -1, np.int32)
    last = np.full(group.max(initial=-1) + 1, -1, np.int32)
    count = alike(kind, group, start, size, rows, slots, last, number, first)
    return number, first[:count]


def bindings_of(solved: Solved, pairs: Pairs, most: int) -> Bindings:
    """The rows of each pair, at most `most`: of a clause, the product of its components; of several clauses, the
    union."""
    pieces = solved.pieces
    start, count = np.zeros(len(pairs), np.int64), np.zeros(len(pairs), np.int64)
    count[((solved.outcome == MATCH) | (solved.outcome == TRUNCATED)) & (pairs.width == 0)] = 1
    first = np.searchsorted(pieces[:, 0], np.arange(len(pairs) + 1))
    held = np.diff(first)
    single = np.flatnonzero(held == 1)
    start[single], count[single] = pieces[first[single], 2], pieces[first[single], 3]
    several = np.flatnonzero(held > 1)
    united = np.empty(kernels.room(several, first, pairs.width, most, pieces), np.int32)
    slots = np.zeros(1 << (2 * min(most + 1, len(united))).bit_length(), np.int64)
    used = kernels.unite(several, first, pairs.width, most, pieces, solved.rows, united, start, count, slots)
    start[several] += len(solved.rows)
    rows = np.concatenate((solved.rows, united[:used]))
    group = np.arange(len(pairs), dtype=np.int32)
    return Bindings(rows, start, np.minimum(count, most), pairs.width, count > most, group, {})
