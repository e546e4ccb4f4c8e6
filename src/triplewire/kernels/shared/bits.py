"""Sets as the bits of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.shared.compiled import helper

BLOCK, BLOCK_SIZE = 5, 32  # members of one block: as a power of two

_int: Any = np.int64
_wide: Any = np.uint64  # also of an index: that it is not negative


@helper
def count_bits(bits: Any) -> Any:
    """How many bits are set? The compiler knows this loop."""
    count = _int(0)
    while bits != 0:
        bits &= bits - 1
        count += 1
    return count


@helper
def lowest_bit(bits: Any) -> Any:
    """The number of the lowest bit of a number that has one."""
    return count_bits((bits & -bits) - 1)


@helper
def member(blocks: Any, number: int) -> Any:
    """Is a number in a set, and how many smaller ones are? number >> BLOCK -> the members before this block, above
    BLOCK_SIZE, and a bit for each that is in it (`triplewire.select.trie.members`)."""
    block, bit = blocks[_wide(number >> BLOCK)], number & (BLOCK_SIZE - 1)
    return _int(block >> bit & 1), (block >> BLOCK_SIZE) + count_bits(block & ((_int(1) << bit) - 1))
