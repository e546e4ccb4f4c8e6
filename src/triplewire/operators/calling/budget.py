"""Budgets of operators: so many units of cost an hour, of one process, or of all that share a folder."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

from triplewire.errors import OperatorError
from triplewire.forks import new_lock

HOUR = 60  # minutes

_shared: Path | None = None


def share_budgets(folder: str | Path | None) -> None:
    """From now on, the budgets of this process are those of all processes that name the same folder."""
    global _shared
    _shared = Path(folder) if folder is not None else None


class Budget:
    """What an operator may cost in any hour, counted by the minute. Safe with threads, and across processes that share
    a folder (`share_budgets`)."""

    def __init__(self, name: str, per_hour: float, clock: Callable[[], float] = time.time) -> None:
        self.per_hour = per_hour
        self._name = name
        self._clock = clock
        self._lock = new_lock()
        self._minutes: dict[int, float] = {}

    def spend(self, cost: float) -> None:
        """Raises `OperatorError` where the budget does not allow it; nothing is spent then."""
        with self._lock, self._spent() as minutes:
            now = int(self._clock() // 60)
            for minute in [minute for minute in minutes if minute <= now - HOUR]:
                del minutes[minute]
            if sum(minutes.values()) + cost > self.per_hour * (1 + 1e-9):
                raise OperatorError(
                    f"its budget of {self.per_hour:g} an hour is spent", remedy="raise budget_per_hour, or try later"
                )
            minutes[now] = minutes.get(now, 0.0) + cost

    @contextlib.contextmanager
    def _spent(self) -> Iterator[dict[int, float]]:
        """What each minute has cost; what is changed there is written back."""
        if _shared is None:
            yield self._minutes
            return
        import fcntl  # Unix only, as Spark's workers are here

        _shared.mkdir(parents=True, exist_ok=True)
        file = _shared / f"{sha256(self._name.encode()).hexdigest()[:16]}.json"
        handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
        with open(handle, "r+", encoding="ascii") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            try:
                minutes = {int(minute): float(cost) for minute, cost in json.loads(stream.read() or "{}").items()}
            except (ValueError, TypeError, AttributeError):
                what = f"what its budget has paid is unknown: {file} is damaged"
                raise OperatorError(what, remedy="remove it, and the hour begins anew") from None
            yield minutes
            stream.seek(0)
            stream.truncate()
            stream.write(json.dumps(minutes))
            stream.flush()
