"""Where the numbers of a batch lie among the constants of a lenient scale. Used by
`triplewire.clauses.node_tests.values`.

Constants are told by `keys`, ascending doubles; `inexact[i]` counts those before the i-th that are not exact.
"""

from __future__ import annotations

from typing import Any

from triplewire.kernels.shared.compiled import kernel
from triplewire.kernels.shared.search import lower, upper

_NO_NUMBER, _EXACT, _BLANK = 0, 1, 2


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
                low = lower(keys, 0, keys.size, number[term])
                high = upper(keys, low, keys.size, number[term])
                is_left = low < high and inexact[high] > inexact[low]
            if is_left:
                left[count] = term
                count += 1
        below[term], upto[term] = low, high
    return count
