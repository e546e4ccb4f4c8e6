"""Things that are dear to make and used by one thread at a time: those that nobody uses now, to be used again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

MOST = os.cpu_count() or 1  # that are kept: as many as can be busy at once

T = TypeVar("T")


class Idle(Generic[T]):
    """Any thread may ask for one."""

    def __init__(self) -> None:
        self.kept: list[T] = []

    @contextmanager
    def one(self, make: Callable[[], T], is_worth: Callable[[T], bool] = lambda _: True) -> Iterator[T]:
        """One for the time of a `with` block; `make` makes it where there is none. It is kept afterwards if it
        `is_worth` its memory, but not after an error, which may have left anything in it."""
        try:
            found = self.kept.pop()
        except IndexError:  # there is none yet, or others use them
            found = make()
        yield found
        if len(self.kept) < MOST and is_worth(found):
            self.kept.append(found)
