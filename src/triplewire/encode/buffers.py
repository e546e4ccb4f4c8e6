"""Arrow arrays that look at memory of NumPy and of Python. `pa.array` would do, but it imports pandas first, where that
is installed: half a second, and 40 MB.

Columns of publications that come as Arrow: `triplewire.encode.arrow`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from triplewire.encode.names import joined


def of_numbers(numbers: NDArray[np.number[Any]]) -> pa.Array:
    """Numbers of their own type, without a copy where they lie in one piece."""
    type_ = pa.from_numpy_dtype(numbers.dtype)
    return pa.Array.from_buffers(type_, len(numbers), [None, pa.py_buffer(np.ascontiguousarray(numbers))])


def of_strings(strings: Sequence[bytes]) -> pa.LargeBinaryArray:
    """Strings of bytes."""
    text, offset = joined(strings)
    buffers = [None, pa.py_buffer(offset), pa.py_buffer(text)]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(strings), buffers)
