"""A pool of expensive scratch objects, reused between calls. Each is used by one thread at a time."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Generic, TypeVar

MOST = os.cpu_count() or 1  # idle objects that are kept: as many as can be busy at once

T = TypeVar("T")


class Pool(Generic[T]):
    """Any thread may borrow an object."""

    def __init__(self) -> None:
        self.idle: list[T] = []

    def borrowed(self, make: Callable[[], T], is_worth: Callable[[T], bool] | None = None) -> _Loan[T]:
        """An object for the time of a `with` block; `make` makes it where none is idle. Afterwards it is kept if it
        `is_worth` its memory, but not after an error, which may have left it in any state."""
        return _Loan(self.idle, make, is_worth)


class _Loan(Generic[T]):
    """The `with` block; `contextlib` would take longer than some of what is done inside."""

    __slots__ = ("_borrowed", "_idle", "_is_worth", "_make")

    def __init__(self, idle: list[T], make: Callable[[], T], is_worth: Callable[[T], bool] | None) -> None:
        self._idle, self._make, self._is_worth = idle, make, is_worth
        self._borrowed: T

    def __enter__(self) -> T:
        try:
            self._borrowed = self._idle.pop()
        except IndexError:  # there is none yet, or others use them
            self._borrowed = self._make()
        return self._borrowed

    def __exit__(self, error: object, *_: object) -> None:
        if error is None and len(self._idle) < MOST and (self._is_worth is None or self._is_worth(self._borrowed)):
            self._idle.append(self._borrowed)
