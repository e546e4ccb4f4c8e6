"""The bindings of many matches as columns: rows of term ids, put together from the rows of clauses' components.

Made by `triplewire.verify.columnar`. `Bindings.of` makes `Binding` objects of one pair.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Ids, Offsets
from triplewire.ir.evaluate import Answer
from triplewire.kernels.alike import alike
from triplewire.kernels.solutions import MATCH, MORE
from triplewire.model.match import Binding, SharedBinding
from triplewire.model.terms import IRI, BlankNode, Literal, Term
from triplewire.verify.solve import Pairs, Solved


@dataclass(frozen=True, slots=True)
class Bindings:
    """The distinct rows of pairs: those of pair i are rows[start[i] :], count[i] of them, each width[i] long. A row
    holds the selected variables in order, as term ids of the batch; -1 is unbound. `more`: there are more of them than
    are kept. Pairs in `answers` have their bindings there instead."""

    rows: Ids
    start: Offsets
    count: NDArray[np.int64]
    width: Ids
    more: NDArray[np.bool_]
    answers: dict[int, Answer]

    def __len__(self) -> int:
        return len(self.start)

    def ids(self, pair: int) -> Ids:
        """The rows of a pair, shape (count, width)."""
        start, count, width = int(self.start[pair]), int(self.count[pair]), int(self.width[pair])
        return self.rows[start : start + count * width].reshape(count, width)

    def of(self, pair: int, select: Sequence[str], term: Callable[[int], Term]) -> tuple[Binding, ...]:
        """The bindings of a pair. `select`: its selected variables, each once; `term` gives a term of the batch. Their
        order depends on the terms alone, not on what else is in the batch."""
        answer = self.answers.get(pair)
        if answer is not None:
            return answer.bindings
        rows = [[term(number) if number >= 0 else None for number in row] for row in self.ids(pair).tolist()]
        if len(rows) > 1:
            rows.sort(key=_row_key)
        return tuple([SharedBinding({n: t for n, t in zip(select, row, strict=True) if t is not None}) for row in rows])

    def alike(self, selection: Ids) -> tuple[Ids, Ids]:
        """The pairs by their bindings: of each pair a number, the same for those of one `selection` with the same rows;
        of each number, the first pair that has it."""
        kind = selection.astype(np.int64)
        kind[list(self.answers)] = -1 - np.array(list(self.answers), np.int64)  # unlike any other
        number, first = np.empty(len(self), np.int32), np.empty(len(self), np.int32)
        slots = np.full(1 << (2 * len(self)).bit_length(), -1, np.int32)
        count = alike(kind, self.start, self.count * self.width, self.rows, slots, number, first)
        return number, first[:count]

    def ordered(self, places: NDArray[np.int64]) -> Bindings:
        """Pair i of these is the one that was at places[i]."""
        answers = {}
        if self.answers:
            new = np.empty_like(places)
            new[places] = np.arange(len(places))
            answers = {int(new[old]): answer for old, answer in self.answers.items()}
        return replace(
            self,
            start=self.start[places],
            count=self.count[places],
            width=self.width[places],
            more=self.more[places],
            answers=answers,
        )


def _row_key(row: list[Term | None]) -> list[tuple[str, str, str, str]]:
    return [_key(term) for term in row]


def _key(term: Term | None) -> tuple[str, str, str, str]:
    if isinstance(term, IRI):
        return "I", term.value, "", ""
    if isinstance(term, Literal):
        return "L", term.lexical, term.datatype, term.language
    return ("B", term.label, "", "") if isinstance(term, BlankNode) else ("", "", "", "")


def gathered(solved: Solved, pairs: Pairs, most: int) -> Bindings:
    """The rows of each pair, at most `most`: of a clause, the product of its components; of several clauses, the
    union."""
    pieces = solved.pieces
    start, count = np.zeros(len(pairs), np.int64), np.zeros(len(pairs), np.int64)
    count[((solved.outcome == MATCH) | (solved.outcome == MORE)) & (pairs.width == 0)] = 1
    first = np.searchsorted(pieces[:, 0], np.arange(len(pairs) + 1))
    held = np.diff(first)
    single = np.flatnonzero(held == 1)
    start[single], count[single] = pieces[first[single], 2], pieces[first[single], 3]
    rows, used = [solved.rows], len(solved.rows)
    for pair in np.flatnonzero(held > 1).tolist():
        found = _union(pieces[first[pair] : first[pair + 1]].tolist(), solved.rows, int(pairs.width[pair]), most)
        start[pair], count[pair] = used, len(found)
        rows.append(found.ravel())
        used += found.size
    more = count > most
    return Bindings(np.concatenate(rows), start, np.minimum(count, most), pairs.width, more, {})


def _union(pieces: list[list[int]], rows: Ids, width: int, most: int) -> Ids:
    """The rows of one pair, at most one more than `most`."""
    clauses = []
    for _, some in groupby(pieces, itemgetter(1)):
        found: Any = np.full((1, width), -1, np.int32)
        for _, _, start, count in some:
            own = rows[start : start + count * width].reshape(count, width)[: most // len(found) + 1]
            found = np.maximum(np.repeat(found, len(own), axis=0), np.tile(own, (len(found), 1)))
        clauses.append(found)
    every: Ids = clauses[0] if len(clauses) == 1 else np.unique(np.concatenate(clauses), axis=0)
    return every[: most + 1]
