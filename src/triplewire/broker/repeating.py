"""A thread that does one thing again and again, until its owner ends."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from typing import Self

_log = logging.getLogger("triplewire.broker")


class Repeating(ABC):
    """Calls `_turn` in a thread, with a pause of so many seconds after each call, from `start` or `with` on. What a
    turn raises, as for a database that is away, is logged: nothing is lost, so the next turn does it."""

    def __init__(self, name: str, pause: float) -> None:
        self._pause = pause
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self, seconds: float | None = None) -> None:
        """End once the turn that is under way is done, or after so many seconds."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(seconds)

    @abstractmethod
    def _turn(self) -> None:
        """What is done each time."""

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._turn()
            except Exception:
                _log.exception("%s failed, and is tried again", self._thread.name)
            self._stop.wait(self._pause)
