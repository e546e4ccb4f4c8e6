"""Is a test in a term's slice of tests? The slices are those of `triplewire.kernels.pairs`."""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.shared.compiled import called_helper
from triplewire.kernels.shared.search import lower

LONG = 256  # tests of a term: slices of more are ascending. To look through shorter ones takes no longer than to search

_int: Any = np.int64


@called_helper
def is_listed(test: int, tests: Any, first: int, end: int) -> bool:
    """Is it among `tests` from `first` to `end`, a term's slice?"""
    if end - first > LONG:
        place = lower(tests, first, end, test)
        return bool(place < end and tests[place] == test)
    hits = _int(0)
    if first >= 0:  # it is; so the compiler compares several at once
        for i in range(end - first):
            hits |= tests[first + i] == test
    return bool(hits)
