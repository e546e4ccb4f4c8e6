"""Arrays of zeros whose pages take memory only once they are touched: for scratch arrays as large as an index, and for
columns that say nothing of any row.

Memory of the heap may have been used before, and then all of it is resident. These arrays are anonymous memory maps: a
page takes memory when it is first written (reading maps a shared page of zeros), and all is freed with the array.
"""

from __future__ import annotations

import mmap
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

_SMALL = 1 << 16  # bytes: smaller arrays come from the heap


def mapped_zeros(shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """An array of zeros in a memory map of its own; a small one comes from the heap."""
    size = prod(shape) if isinstance(shape, tuple) else shape
    nbytes = size * np.dtype(dtype).itemsize
    if nbytes < _SMALL or not hasattr(mmap, "MAP_PRIVATE"):
        return np.zeros(shape, dtype)
    memory = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)  # a forked process has its own
    return np.frombuffer(memory, dtype, size).reshape(shape)


def compact_zeros(column: NDArray[Any]) -> NDArray[Any]:
    """The column; where all its numbers are 0, one that takes no memory, not even when it is read."""
    return column if column.any() else mapped_zeros(column.shape, column.dtype)
