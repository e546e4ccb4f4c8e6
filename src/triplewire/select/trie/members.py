"""Sets of numbers as bits, with how many members there are before: which labels, which rows.

A member is told from others, and numbered, by one look at one line of memory (`triplewire.kernels.shared.bits.member`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from triplewire.kernels.shared.bits import BLOCK_SIZE


def members_of(is_member: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The set of the numbers that are members, in blocks of BLOCK_SIZE."""
    padded = np.zeros(block_count(len(is_member)) * BLOCK_SIZE, np.bool_)
    padded[: len(is_member)] = is_member
    bits = np.packbits(padded, bitorder="little").view(f"<u{BLOCK_SIZE // 8}").astype(np.int64)
    counts = np.count_nonzero(padded.reshape(-1, BLOCK_SIZE), axis=1)
    members: NDArray[np.int64] = (np.cumsum(counts) - counts) << BLOCK_SIZE | bits
    return members


def block_count(numbers: int) -> int:
    """How many blocks a set of numbers below this one has."""
    return numbers // BLOCK_SIZE + 1


def count_members(members: NDArray[np.int64]) -> int:
    """How many numbers are in the set."""
    last = members[-1:]
    return int((last >> BLOCK_SIZE).sum()) + int(np.bitwise_count(last & ((1 << BLOCK_SIZE) - 1)).sum())
