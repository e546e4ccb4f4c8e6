"""Arrow arrays that look at memory of NumPy and of Python. `pa.array` would do, but it imports pandas first, where that
is installed: half a second, and 40 MB.

Columns of publications that come as Arrow: `triplewire.encode.arrow`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from triplewire.encode.batch import Bytes, Offsets
from triplewire.encode.strings import joined


def of_numbers(numbers: NDArray[np.number[Any]]) -> pa.Array:
    """Numbers of their own type, without a copy where they lie in one piece."""
    type_ = pa.from_numpy_dtype(numbers.dtype)
    return pa.Array.from_buffers(type_, len(numbers), [None, pa.py_buffer(np.ascontiguousarray(numbers))])


def of_strings(strings: Sequence[bytes]) -> pa.LargeBinaryArray:
    """Strings of bytes."""
    return of_text(*joined(strings))


def of_text(text: Bytes, offset: Offsets) -> pa.LargeBinaryArray:
    """The strings text[offset[i] : offset[i + 1]], without a copy."""
    buffers = [None, pa.py_buffer(offset), pa.py_buffer(text)]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(offset) - 1, buffers)


def of_few(strings: Mapping[int, bytes], length: int) -> pa.LargeBinaryArray:
    """A column of this length with strings at some places, and null at the others."""
    number, is_there = np.zeros(length, np.int64), np.zeros(length, np.bool_)
    places = np.fromiter(strings, np.int64, len(strings))
    number[places], is_there[places] = np.arange(len(strings)), True
    bits = np.packbits(is_there, bitorder="little")
    indices = pa.Array.from_buffers(pa.int64(), length, [pa.py_buffer(bits), pa.py_buffer(number)])
    return of_strings(list(strings.values()) or [b""]).take(indices)


def of_bools(values: NDArray[np.bool_]) -> pa.BooleanArray:
    """Truth values, a bit each."""
    bits = np.packbits(values, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(bits)])
