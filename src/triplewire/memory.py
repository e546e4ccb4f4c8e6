"""Memory: given back to the system once it is freed, and a pool of expensive scratch objects, reused between calls."""

from __future__ import annotations

import ctypes
import os
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar


def give_back() -> None:
    """Give freed memory back: the C library keeps what it expects to need again, and so does Arrow, where it is in use;
    after large temporary arrays that is much. Other C libraries than GNU's are not asked. It takes some
    milliseconds."""
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


MOST = os.cpu_count() or 1  # idle objects that are kept: as many as can be busy at once

T = TypeVar("T")


class Pool(Generic[T]):
    """Idle objects, each used by one thread at a time. Any thread may take one, and `give` it back when it has done
    with it, for the next who takes one. After an error, which may have left it in any state, it does not. No `with`
    block: that would take longer than some of what is done inside."""

    def __init__(self) -> None:
        self.idle: deque[T] = deque(maxlen=MOST)  # which lets go of those that nobody has taken for longest
        self.give: Callable[[T], None] = self.idle.append

    def take(self, make: Callable[[], T]) -> T:
        """An idle object; where there is none, one that `make` makes."""
        try:
            return self.idle.pop()
        except IndexError:  # there is none yet, or others use them
            return make()
