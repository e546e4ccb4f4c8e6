"""Memory that has been freed, given back to the system."""

from __future__ import annotations

import ctypes
from contextlib import suppress


def give_back() -> None:
    """Give freed memory back: the C library keeps what it expects to need again, which after large temporary arrays is
    much. Where the library is not GNU's, this does nothing. It takes some milliseconds."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
