"""Which of many lists of rows are the same? Matches of a publication often have the same bindings.

Used by `triplewire.verify.rows`, so that such bindings become objects once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, inline="always")
def _mixed(number: Any) -> Any:
    """Spread the bits of a number; nothing overflows."""
    number = ((number ^ (number >> 31)) & 0x7FFFFFFF) * 0x9E3779B1
    return (number ^ (number >> 20)) & 0x7FFFFFFF


@njit(cache=True, nogil=True)
def alike(kind: Any, start: Any, size: Any, rows: Any, slots: Any, number: Any, first: Any) -> int:
    """Number the lists of rows: two have the same number where `kind` and the `size` ids from `start` on in `rows` are
    the same. first[n] is the first list with the number n. Returns how many numbers there are.

    `slots` is full of -1; it has a power of two places, at least twice as many as there are lists.
    """
    found, mask = 0, slots.size - 1
    for i in range(start.size):
        begin, length = start[i], size[i]
        h = _mixed(np.int64(kind[i]) + length + 2)
        for k in range(begin, begin + length):
            h = _mixed(h + rows[k] + 2)
        at = h & mask
        while slots[at] >= 0:
            j = first[slots[at]]
            if kind[j] == kind[i] and size[j] == length:
                k = 0
                while k < length and rows[begin + k] == rows[start[j] + k]:
                    k += 1
                if k == length:
                    break
            at = (at + 1) & mask
        if slots[at] < 0:
            slots[at], first[found] = found, i
            found += 1
        number[i] = slots[at]
    return found
