"""A pool of expensive scratch objects, reused between calls. Each is used by one thread at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

MOST = os.cpu_count() or 1  # idle objects that are kept: as many as can be busy at once

T = TypeVar("T")


class Pool(Generic[T]):
    """Any thread may borrow an object."""

    def __init__(self) -> None:
        self.idle: list[T] = []

    @contextmanager
    def borrowed(self, make: Callable[[], T], is_worth: Callable[[T], bool] = lambda _: True) -> Iterator[T]:
        """An object for the time of a `with` block; `make` makes it where none is idle. Afterwards it is kept if it
        `is_worth` its memory, but not after an error, which may have left it in any state."""
        try:
            borrowed = self.idle.pop()
        except IndexError:  # there is none yet, or others use them
            borrowed = make()
        yield borrowed
        if len(self.idle) < MOST and is_worth(borrowed):
            self.idle.append(borrowed)
