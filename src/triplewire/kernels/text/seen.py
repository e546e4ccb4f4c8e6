"""Which of many byte strings were there before? A set that grows, without a Python object a string.

Strings lie one behind the other in a pool; a table of their numbers is searched by hash (FNV-1a, seeded by the caller)
and the bytes are compared. Used through `triplewire.languages.sources.ids`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.shared.compiled import helper, kernel
from triplewire.kernels.shared.hashing import enter
from triplewire.kernels.shared.search import same_numbers

OFFSET, PRIME = np.uint64(14695981039346656037), np.uint64(1099511628211)


@helper
def _place(text: Any, start: int, end: int, seed: Any, mask: int) -> Any:
    """Where in a table the search for a string begins."""
    h = OFFSET ^ seed
    for i in range(start, end):
        h = (h ^ np.uint64(text[i])) * PRIME
    return np.int64((h ^ (h >> np.uint64(32))) & np.uint64(mask))


@kernel
def refill(pool: Any, ends: Any, count: int, seed: Any, slots: Any) -> None:
    """Enter the first `count` strings of the pool into an empty table of a power of two at least twice as many."""
    slots[:] = -1
    for row in range(count):
        enter(slots, _place(pool, ends[row], ends[row + 1], seed, slots.size - 1), row)


@kernel
def insert(text: Any, offset: Any, pool: Any, ends: Any, count: int, seed: Any, slots: Any, out: Any) -> int:
    """Add those strings of `text` that are new; `out` says which were there before. Returns how many there are now.

    The pool, its `ends` (the first is 0) and the table must have room for all of them.
    """
    mask = slots.size - 1
    for i in range(offset.size - 1):
        start, length = offset[i], offset[i + 1] - offset[i]
        at = _place(text, start, offset[i + 1], seed, mask)
        out[i] = 0
        while slots[at] >= 0:
            row = slots[at]
            if ends[row + 1] - ends[row] == length and same_numbers(text, start, pool, ends[row], length):
                out[i] = 1
                break
            at = (at + 1) & mask
        if out[i] == 0:
            for j in range(length):
                pool[ends[count] + j] = text[start + j]
            ends[count + 1] = ends[count] + length
            slots[at] = count
            count += 1
    return count
