"""A thread that does one thing again and again, until its owner ends."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from typing import Self

from triplewire.errors import StoreError, UnavailableError

_AFTER_ERROR = 2.0  # seconds

_log = logging.getLogger("triplewire.broker")


class Repeating(ABC):
    """Calls `_turn` in a thread from `start` or `with` on: again after as many seconds as it returns, or as soon as it
    is woken. What a turn raises is logged: nothing is lost by it, so the next turn tries again."""

    def __init__(self, name: str) -> None:
        self._woken, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wake(self) -> None:
        """Begin the next turn at once, or after the one that is under way."""
        self._woken.set()

    def stop(self, seconds: float | None = None) -> None:
        """End once the turn that is under way is done, or after so many seconds."""
        self._stop.set()
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join(seconds)

    @abstractmethod
    def _turn(self) -> float:
        """What is done each time; returns the seconds until the next time."""

    def _run(self) -> None:
        while not self._stop.is_set():
            self._woken.clear()
            try:
                pause = self._turn()
            except (StoreError, UnavailableError) as error:  # another process does it, the disk is full, and the like
                _log.warning("%s waits: %s", self._thread.name, error)
                pause = _AFTER_ERROR
            except Exception:
                _log.exception("%s failed, and is tried again", self._thread.name)
                pause = _AFTER_ERROR
            if not self._stop.is_set():  # `stop` may have come before the clearing
                self._woken.wait(pause)
