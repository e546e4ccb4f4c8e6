"""A pool of expensive scratch objects, reused between calls. Each is used by one thread at a time."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

MOST = os.cpu_count() or 1  # idle objects that are kept: as many as can be busy at once

T = TypeVar("T")


class Pool(Generic[T]):
    """Any thread may take an object, and `give` it back when it has done with it, for the next who takes one. After an
    error, which may have left it in any state, it does not. No `with` block: that would take longer than some of what
    is done inside."""

    def __init__(self) -> None:
        self.idle: deque[T] = deque(maxlen=MOST)  # which lets go of those that nobody has taken for longest
        self.give: Callable[[T], None] = self.idle.append

    def take(self, make: Callable[[], T]) -> T:
        """An idle object; where there is none, one that `make` makes."""
        try:
            return self.idle.pop()
        except IndexError:  # there is none yet, or others use them
            return make()
