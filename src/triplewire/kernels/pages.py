"""Room for large arrays, on large pages of memory where the system has them.

The first touch of a page costs a microsecond and more, whatever its size, so that a text of some megabytes takes longer
to write than to read. NumPy asks for large pages (`madvise`) for arrays of 4 MiB and more; they are there for stretches
that begin and end where such a page does. What is not touched costs nothing.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

_Item = TypeVar("_Item", bound=np.generic)

_PAGE = 1 << 21
_ASKED = 1 << 22  # bytes of an array for which NumPy asks
_LEAST = 1 << 19  # bytes of an array for which a large page is worth the time to clear it


def empty(count: int, kind: type[_Item]) -> NDArray[_Item]:
    """A flat array that is not set, as `numpy.empty` makes one."""
    size = count * np.dtype(kind).itemsize
    if size < _LEAST:
        return np.empty(count, kind)
    pages = -(-size // _PAGE)
    room: NDArray[Any] = np.empty(max((pages + 1) * _PAGE, _ASKED), np.uint8)
    first = -room.ctypes.data % _PAGE
    return room[first : first + size].view(kind)
