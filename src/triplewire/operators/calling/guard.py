"""Guards an expensive operator: a circuit breaker, which suspends one that keeps failing, and a budget."""

from __future__ import annotations

import time
from collections.abc import Callable

from triplewire.errors import OperatorError, OperatorFault
from triplewire.forks import new_lock
from triplewire.operators.calling.budget import Budget

BREAKS = 3  # calls in a row that broke: a crash, no answer in time, a wrong one
FAILURES = 20  # calls in a row without an answer, those that the operator refused by itself included
PAUSE, LONGEST_PAUSE = 60.0, 3_600.0  # seconds until it is tried again


class Guard:
    """Lets calls of one operator through, or raises `OperatorError`. Safe with threads.

    After `BREAKS` calls in a row that broke, or `FAILURES` that gave no answer, the operator is suspended. After a
    pause one call tries it; as long as that fails, the pauses double.
    """

    def __init__(self, budget: Budget | None = None, cost: float = 1.0, clock: Callable[[], float] = time.monotonic):
        self._budget = budget
        self._cost = cost
        self._clock = clock
        self._lock = new_lock()
        self._broke = self._failed = 0  # in a row
        self._pause = 0.0
        self._until = 0.0
        self._why = ""

    def enter(self, calls: int = 1) -> None:
        """Before calls are made. Raises `OperatorError` where it is suspended, or its budget is spent."""
        if self._pause:
            self._look_at_pause()
        if self._budget is not None:
            self._budget.spend(self._cost * calls)

    def _look_at_pause(self) -> None:
        """Raises `OperatorError` where it is suspended, but for the call that tries it."""
        with self._lock:
            now = self._clock()
            if self._pause and now < self._until:
                what = f"it is suspended, as it failed again and again; the last time: {self._why:.200}"
                raise OperatorError(what, remedy="mend it; it is tried again after a while")
            if self._pause:
                self._until = now + self._pause  # this call tries it; others wait for what comes of that

    def answered(self) -> None:
        """A call was answered."""
        if not self._failed and not self._pause:  # as nearly always, and calls may be many
            return
        with self._lock:
            self._broke = self._failed = 0
            self._pause = 0.0

    def failed(self, error: Exception) -> None:
        """A call was not answered."""
        with self._lock:
            self._broke = self._broke + 1 if isinstance(error, OperatorFault) else 0
            self._failed += 1
            if self._pause or self._broke >= BREAKS or self._failed >= FAILURES:
                self._pause = min(2 * self._pause or PAUSE, LONGEST_PAUSE)
                self._until = self._clock() + self._pause
                self._why = error.what if isinstance(error, OperatorError) else f"{type(error).__name__}: {error}"
