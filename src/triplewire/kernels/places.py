"""Where the numbers of a batch lie among the constants of a lenient scale. Used by
`triplewire.clauses.node_tests.values`.

    for each term that reads as a number:
        below, upto = how many constants are less than it, and less or equal: two binary searches among `keys`
        where it, or a constant that has the same double, needs more digits than a double has: `unknown`

Constants are told by `keys`, ascending doubles; `inexact[i]` counts those before the i-th that are not exact.
"""

from __future__ import annotations

from typing import Any

from triplewire.kernels.shared.compiled import kernel
from triplewire.kernels.shared.search import lower, upper

_NO_NUMBER, _EXACT = 0, 1
_BLANK, _LITERAL = 2, 3


@kernel
def number_places(
    kind: Any, state: Any, number: Any, keys: Any, inexact: Any, below: Any, upto: Any, unknown: Any
) -> int:
    """Of each term, how many constants are less than its number, and how many less or equal; both are -1 where it has
    none. The terms of which doubles do not say so go to `unknown`; returns how many they are."""
    count = 0
    for term in range(kind.size):
        low = high = -1
        if state[term] != _NO_NUMBER and kind[term] != _BLANK:
            is_unknown = state[term] != _EXACT
            if not is_unknown:
                low = lower(keys, 0, keys.size, number[term])
                high = upper(keys, low, keys.size, number[term])
                is_unknown = low < high and inexact[high] > inexact[low]
            if is_unknown:
                unknown[count] = term
                count += 1
        below[term], upto[term] = low, high
    return count


@kernel
def group_places(kind: Any, below: Any, upto: Any, has_iris: bool, low: Any, high: Any) -> None:
    """The places in a range group: of literals, and of IRIs where it has any. An IRI may be equal to a number, but is
    not in order with it."""
    for term in range(kind.size):
        is_there = has_iris or kind[term] == _LITERAL
        low[term] = below[term] if is_there else -1
        high[term] = upto[term] if is_there else -1


@kernel
def tests_between(row: Any, low: Any, high: Any, offset: Any, test: Any, out_row: Any, out_test: Any) -> int:
    """Each row with the tests of the constants low .. high, where low is not -1: those of constant c are the slice
    `offset` of `test`. Returns how many there are; those beyond the room are not written."""
    count = 0
    for i in range(row.size):
        if low[i] >= 0:
            for k in range(offset[low[i]], offset[high[i]]):
                if count < out_row.size:
                    out_row[count], out_test[count] = row[i], test[k]
                count += 1
    return count
