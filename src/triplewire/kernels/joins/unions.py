"""The rows of pairs whose clauses have several components, or that have several clauses: products, and their union.

    for each pair, for each clause, until there are more rows than `most`:
        number = 0, 1, ... below the product of its pieces' sizes: its digits say which row of each piece
        row = for each column the value of the piece that has one; put down if it is new

Used through `triplewire.verify.rows`. The rows of a component: `triplewire.kernels.joins.network.listing`
and `triplewire.kernels.joins.solutions`.
"""

from __future__ import annotations

from typing import Any

from triplewire.kernels.shared.compiled import helper, kernel
from triplewire.kernels.shared.hashing import is_new_row

CLAUSE, BEGIN, COUNT = 1, 2, 3  # columns of `pieces`, by component: where its rows begin, how many they are


@helper
def _end(at: Any, end: Any, pieces: Any) -> Any:
    """Where the pieces of a clause end."""
    clause = pieces[at, CLAUSE]
    while at < end and pieces[at, CLAUSE] == clause:
        at += 1
    return at


@helper
def _product(begin: Any, end: Any, most: Any, pieces: Any) -> Any:
    """How many rows have the pieces together, at most one more than `most`?"""
    product = 1
    for at in range(begin, end):
        product = min(product * pieces[at, COUNT], most + 1)
    return product


@kernel
def room(pairs: Any, first: Any, width: Any, most: int, pieces: Any) -> int:
    """How many places `unite` fills at the most."""
    total = 0
    for i in pairs:
        at, rows = first[i], 0
        while at < first[i + 1]:
            end = _end(at, first[i + 1], pieces)
            rows += _product(at, end, most, pieces)
            at = end
        total += rows * width[i]
    return total


@kernel
def unite(pairs: Any, first: Any, width: Any, most: int, pieces: Any, rows: Any, out: Any, start: Any, count: Any,
          slots: Any) -> int:  # fmt: skip
    """Put the distinct rows of some pairs into `out`, of each at most one more than `most`: those of pair i are
    count[i], from start[i] on. Its pieces are those from first[i] to first[i + 1], in order of their clauses; a row of
    a piece has -1 where the other pieces of the clause have the values. `slots`: 0 at first, a power of two, twice as
    many as a pair may have rows. Returns how many places are filled."""
    used = 0
    for i in pairs:
        begin, w, at, distinct = used, width[i], first[i], 0
        while at < first[i + 1] and distinct <= most:
            end = _end(at, first[i + 1], pieces)
            alone = at == first[i] and end == first[i + 1]
            number, product = 0, _product(at, end, most, pieces)
            while number < product and distinct <= most:
                for k in range(w):
                    out[used + k] = -1
                left, number = number, number + 1
                for piece in range(end - 1, at - 1, -1):
                    row = pieces[piece, BEGIN] + left % pieces[piece, COUNT] * w
                    left //= pieces[piece, COUNT]
                    for k in range(w):
                        if rows[row + k] >= 0:
                            out[used + k] = rows[row + k]
                if alone or is_new_row(out, begin, used, w, slots):
                    used, distinct = used + w, distinct + 1
            at = end
        start[i], count[i] = begin, distinct
    return used
