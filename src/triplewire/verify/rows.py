"""The bindings of many matches as columns: rows of term ids, put together from the rows of clauses' components.

Made by `triplewire.verify.batch_verifier`. `triplewire.verify.bindings` puts them in order, as steps from each row to
the next, which are most alike, and makes `Binding` objects or texts of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.node_tests.columns import inverse
from triplewire.encode.batch import Ids, Offsets, Terms
from triplewire.ir.evaluation.evaluate import Answer
from triplewire.kernels.shared.columns import fixed
from triplewire.model.match import first_bindings, term_bytes, term_key
from triplewire.model.terms import Term
from triplewire.verify.kernels import rows as kernels
from triplewire.verify.solve import Pairs, Solved

_FEW_BYTES = 1 << 24  # which are not counted

Row: TypeAlias = tuple[int, ...]
"""The selected variables in order, as term ids of the batch; -1 is unbound."""

ToTerms: TypeAlias = Callable[[NDArray[np.integer[Any]]], list[Term]]


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
        if self.answers:
            kind[list(self.answers)] = -1 - np.array(list(self.answers), np.int64)  # unlike any other
        number, first = kernels.alike(kind, self.group, self.start, self.count * self.width, self.rows)
        return number, first

    def bytes_of_terms(self, selection: Ids, terms: Terms) -> int:
        """How many bytes the terms have that are here, those of pairs that are `alike` once; where they are few, more.
        `terms` are those of the batch."""
        listed = sum(sum(map(term_bytes, row.values())) for answer in self.answers.values() for row in answer.bindings)
        most = int(self._bytes_of(np.arange(len(self)), terms).sum())
        if most > _FEW_BYTES:
            most = int(self._bytes_of(self.alike(selection)[1], terms).sum())
        return most + listed

    def within(self, most_bytes: int, terms: Terms, to_terms: ToTerms) -> Bindings:
        """The bindings, where a pair whose terms have more bytes keeps only its first rows, in the order of
        `triplewire.model.match.row_key`, as `triplewire.model.match.first_bindings` does. `terms` are those of the
        batch; `to_terms` gives some of them as objects."""
        if not self.answers and len(self.rows) * terms.longest <= most_bytes:
            return self
        answers = dict(self.answers)
        for pair, answer in self.answers.items():
            first = first_bindings(answer.bindings, most_bytes)
            if len(first) < len(answer.bindings):
                answers[pair] = replace(answer, bindings=first, truncated=True)
        large = np.flatnonzero(self.count * self.width > most_bytes // max(terms.longest, 1))
        if len(large):  # seldom
            large = large[self._bytes_of(large, terms) > most_bytes]
        if not len(large):
            return replace(self, answers=answers) if answers else self
        start, count, more, group = self.start.copy(), self.count.copy(), self.more.copy(), self.group.copy()
        rows, end = [self.rows], len(self.rows)
        cut_rows: dict[tuple[int, int, int], tuple[int, int]] = {}  # rows -> where those kept begin, and how many
        for pair in large.tolist():
            begin, size, width = int(start[pair]), int(count[pair] * self.width[pair]), int(self.width[pair])
            if (begin, size, width) not in cut_rows:
                leading = _first_rows(self.rows[begin : begin + size].reshape(-1, width), most_bytes, terms, to_terms)
                cut_rows[begin, size, width] = end, len(leading)
                rows.append(leading.ravel())
                end += leading.size
            start[pair], count[pair] = cut_rows[begin, size, width]
            more[pair], group[pair] = True, -1
        return Bindings(np.concatenate(rows), start, count, self.width, more, group, answers)

    def _bytes_of(self, pairs: NDArray[np.integer[Any]], terms: Terms) -> NDArray[np.int64]:
        """How many bytes the terms in the rows of each of these pairs have."""
        sizes = _sizes(pairs, self.start, self.count, self.width, self.rows, terms)
        sizes[np.isin(pairs, list(self.answers))] = 0
        return sizes


def in_order(ids: NDArray[np.integer[Any]], to_terms: ToTerms) -> tuple[list[Term | None], NDArray[np.int64]]:
    """The terms with these ids, which ascend, None for -1; and the places of all in the order of terms."""
    unbound = int(len(ids) > 0 and ids[0] < 0)  # it comes first
    terms: list[Term | None] = [*[None] * unbound, *to_terms(ids[unbound:])]
    keys = [("",) if term is None else term_key(term) for term in terms]
    return terms, np.array(sorted(range(len(terms)), key=keys.__getitem__), np.int64)


def _first_rows(rows: Ids, most_bytes: int, terms: Terms, to_terms: ToTerms) -> Ids:
    """The first of these rows in the order of their terms, whose terms have at most so many bytes together."""
    used, place = np.unique(rows, return_inverse=True)
    rank = inverse(in_order(used, to_terms)[1])
    ordered = rows[np.lexsort(rank[place].reshape(rows.shape).T[::-1])]
    each, width = np.arange(len(rows)), rows.shape[1]
    counts, widths = np.ones(len(rows), np.int64), np.full(len(rows), width, np.int32)
    sizes = _sizes(each, each * width, counts, widths, ordered.ravel(), terms)
    return ordered[: np.searchsorted(np.cumsum(sizes), most_bytes, "right")]


def _sizes(
    lists: NDArray[np.integer[Any]], start: Offsets, count: NDArray[np.int64], width: Ids, rows: Ids, terms: Terms
) -> NDArray[np.int64]:
    """How many bytes the terms have in the rows of each of these lists."""
    sizes = np.empty(len(lists), np.int64)
    columns = fixed(terms.start, terms.end, terms.suffix, terms.suffix_bytes)
    kernels.bytes_of_rows(lists.astype(np.int64), start, count, width, rows, columns, sizes)
    return sizes


def bindings_of(solved: Solved, pairs: Pairs, most: int) -> Bindings:
    """The rows of each pair, at most `most`: of a clause, the product of its components; of several clauses, the
    union."""
    pieces, rows = solved.pieces, solved.rows
    first, (start, count) = np.empty(len(pairs) + 1, np.int64), np.empty((2, len(pairs)), np.int64)
    room = kernels.begin_rows(solved.outcome, pairs.width, most, pieces, first, start, count)
    if room:
        several, united = np.flatnonzero(np.diff(first) > 1), np.empty(room, np.int32)
        slots = np.zeros(1 << (2 * min(most + 1, room)).bit_length(), np.int64)
        used = kernels.unite(several, first, pairs.width, most, pieces, rows, united, start, count, slots)
        start[several] += len(rows)
        rows = np.concatenate((rows, united[:used]))
    group = np.arange(len(pairs), dtype=np.int32)
    return Bindings(rows, start, np.minimum(count, most), pairs.width, count > most, group, {})


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps through the rows of each pair, in the order of their terms."""

    offset: Offsets  # pair -> where its steps begin; one longer than there are pairs
    column: Ids  # that changes
    place: Ids  # what it changes to, as a place in the order of the terms
    completes: NDArray[np.bool_]  # is the row complete behind this step?


class UsedTerms:
    """The rows of some pairs, and `ids`: the terms that occur in them, ascending, first -1 where one is unbound."""

    def __init__(self, bindings: Bindings, pairs: NDArray[np.integer[Any]]) -> None:
        self._rows = bindings.rows
        self._lists = bindings.start[pairs], bindings.count[pairs], bindings.width[pairs]
        self._seen = np.zeros(bindings.rows.max(initial=-1) + 2, np.bool_)
        self._size = kernels.mark(*self._lists, self._rows, self._seen)
        self.ids: NDArray[np.int64] = np.flatnonzero(self._seen) - 1

    def steps(self, order: NDArray[np.integer[Any]]) -> Steps:
        """The steps, where `order` says which of `ids` comes first, second ..."""
        rank = np.zeros(len(self._seen), np.int32)
        rank[self.ids[order] + 1] = np.arange(len(order))
        offset, steps = np.empty(len(self._lists[0]) + 1, np.int64), np.empty((2, self._size), np.int32)
        completes = np.zeros(self._size, np.bool_)
        kernels.steps(*self._lists, self._rows, rank, len(order), offset, steps, completes)
        return Steps(offset, steps[0], steps[1], completes)
