"""Where the numbers of a batch lie among the constants of a lenient scale. Used by
`triplewire.clauses.node_tests.values`.

Constants are told by `keys`, ascending doubles; `inexact[i]` counts those before the i-th that are not exact.
"""

from __future__ import annotations

from typing import Any

from triplewire.kernels.shared.compiled import called_helper, kernel

_NO_NUMBER, _EXACT, _BLANK, _LITERAL = 0, 1, 2, 3


@called_helper
def _before(keys: Any, value: float, begin: int, or_equal: bool) -> int:
    """How many of the keys are less than the value, or equal to it; at least `begin`."""
    low, high = begin, keys.size
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < value or (or_equal and keys[middle] == value):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def number_places(kind: Any, state: Any, number: Any, keys: Any, inexact: Any, below: Any, upto: Any, left: Any) -> int:
    """Of each term, how many constants are less than its number, and how many less or equal; both are -1 where it has
    none. The terms of which doubles do not say so go to `left`; returns how many they are."""
    count = 0
    for term in range(kind.size):
        low = high = -1
        if state[term] != _NO_NUMBER and kind[term] != _BLANK:
            is_left = state[term] != _EXACT
            if not is_left:
                low = _before(keys, number[term], 0, False)
                high = _before(keys, number[term], low, True)
                is_left = low < high and inexact[high] > inexact[low]
            if is_left:
                left[count] = term
                count += 1
        below[term], upto[term] = low, high
    return count


@kernel
def spread_points(below: Any, upto: Any, point_offset: Any, point_test: Any, pair_term: Any, pair_test: Any) -> int:
    """The pairs (term, test) of tests for equality with the constants between `below` and `upto`; returns how many
    there are. Those beyond the room are not written."""
    count = 0
    for term in range(below.size):
        if below[term] >= 0:
            for at in range(point_offset[below[term]], point_offset[upto[term]]):
                if count < pair_term.size:
                    pair_term[count] = term
                    pair_test[count] = point_test[at]
                count += 1
    return count


@kernel
def literals_only(kind: Any, below: Any, upto: Any, low: Any, high: Any) -> None:
    """The places of literals to a row of range groups: an IRI is equal to a label, but not in order with it."""
    for term in range(kind.size):
        if kind[term] == _LITERAL and below[term] >= 0:
            low[term], high[term] = below[term], upto[term]
