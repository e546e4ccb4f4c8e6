"""Which of many byte strings were there before? A set that grows, without a Python object a string.

    for each string: look for it in a hash table of numbers; if it is not there, copy it to the end of the pool and
        enter its number

The bytes are compared. Used through `triplewire.languages.sources.ids`, whose seed of the hashes is a secret.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.shared.compiled import helper, kernel
from triplewire.kernels.shared.eight_bytes import same_bytes
from triplewire.kernels.shared.hashing import enter, hash_bytes

_int: Any = np.int64
_wide: Any = np.uint64


@helper
def _first_slot(text: Any, start: int, end: int, seed: int, mask: int) -> Any:
    """Where in a table the search for a string begins."""
    return _int(hash_bytes(text, start, end, seed) & _wide(mask))


@kernel
def refill(pool: Any, ends: Any, count: int, seed: int, slots: Any) -> None:
    """Enter the first `count` strings of the pool into an empty table of a power of two at least twice as many."""
    slots[:] = -1
    for row in range(count):
        enter(slots, _first_slot(pool, ends[row], ends[row + 1], seed, slots.size - 1), row)


@kernel
def insert(text: Any, offset: Any, pool: Any, ends: Any, count: int, seed: int, slots: Any, out: Any) -> int:
    """Add those strings of `text` that are new; `out` says which were there before. Returns how many there are now.

    The pool, its `ends` (the first is 0) and the table must have room for all of them.
    """
    mask = slots.size - 1
    for i in range(offset.size - 1):
        start, end, is_there = offset[i], offset[i + 1], False
        slot = _first_slot(text, start, end, seed, mask)
        while slots[slot] >= 0 and not is_there:
            row = slots[slot]
            is_there = ends[row + 1] - ends[row] == end - start and same_bytes(text, start, end, pool, ends[row])
            slot = (slot + 1) & mask
        out[i] = is_there
        if not is_there:
            for j in range(end - start):
                pool[ends[count] + j] = text[start + j]
            ends[count + 1] = ends[count] + end - start
            slots[slot] = count
            count += 1
    return count
