"""Is a test in a term's slice of tests? The slices are those of `triplewire.kernels.pairs`.

Numba's caches do not see a change of this file in the kernels that use it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

LONG = 256  # tests of a term: slices of more are ascending. To look through shorter ones takes no longer than to search

_int: Any = np.int64


@njit(cache=True, nogil=True)
def is_listed(test: int, tests: Any, first: int, end: int) -> bool:
    """Is it among `tests` from `first` to `end`, a term's slice?"""
    if end - first > LONG:
        low, high = first, end
        while low < high:
            middle = (low + high) >> 1
            if tests[middle] < test:
                low = middle + 1
            else:
                high = middle
        return bool(low < end and tests[low] == test)
    found = _int(0)
    if first >= 0:  # it is; so the compiler compares several at once
        for i in range(end - first):
            found |= tests[first + i] == test
    return bool(found)
