"""What an operator may cost in any hour: `Budget`. Counted in this process, or by all that share a folder."""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
import weakref
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

from triplewire.errors import CallNotMade
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
        self._name, self._clock = name, clock
        self._lock = new_lock()
        self._minutes: dict[int, float] = {}

    def spend(self, cost: float) -> None:
        """Raises `CallNotMade` where the budget does not allow it, or cannot be looked at; nothing is spent then."""
        try:
            with self._lock, self._spent() as minutes:
                self._pay(cost, minutes)
        except OSError as error:
            what = f"what its budget has paid is unknown: {error}"
            raise CallNotMade(what, remedy="mend the folder of budgets") from None

    def _pay(self, cost: float, minutes: dict[int, float]) -> None:
        now = int(self._clock() // 60)
        # what was paid more than an hour ahead was paid under a clock that was wrong, then or now
        for minute in [minute for minute in minutes if not now - HOUR < minute <= now + HOUR]:
            del minutes[minute]
        if sum(minutes.values()) + cost > self.per_hour * (1 + 1e-9):
            raise CallNotMade(
                f"its budget of {self.per_hour:g} an hour is spent", remedy="raise budget_per_hour, or try later"
            )
        minutes[now] = minutes.get(now, 0.0) + cost

    @contextlib.contextmanager
    def _spent(self) -> Iterator[dict[int, float]]:
        """What each minute has cost; what is changed there is written back. A process that is killed while it writes
        leaves the file as it was."""
        if _shared is None:
            yield self._minutes
            return
        import fcntl  # Unix only, as Spark's workers are here

        _shared.mkdir(parents=True, exist_ok=True)
        file = _shared / f"{sha256(self._name.encode()).hexdigest()[:16]}.json"
        with open(os.open(file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600), "r+b") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            minutes = _read(file)
            yield minutes
            aside = file.with_suffix(".new")
            aside.write_text(json.dumps(minutes), encoding="ascii")
            aside.replace(file)


def _read(file: Path) -> dict[int, float]:
    """What each minute has cost. Raises `CallNotMade` where that is unknown."""
    try:
        minutes = {int(minute): float(cost) for minute, cost in json.loads(file.read_bytes()).items()}
        if not all(math.isfinite(cost) and cost >= 0 for cost in minutes.values()):
            raise ValueError
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, AttributeError):
        what = f"what its budget has paid is unknown: {file} is damaged"
        raise CallNotMade(what, remedy="remove it, and the hour begins anew") from None
    return minutes


# --- of operators in Python ------------------------------------------------------------------------------------------

_budgets: dict[int, Budget] = {}  # by the identity of the operator
_stay: list[object] = []  # operators that cannot be referred to weakly
_lock = new_lock()


def budget_of(operator: object) -> Budget | None:
    """The budget of an operator, whichever engine calls it; None where it states none."""
    per_hour = getattr(operator, "budget_per_hour", None)
    if per_hour is None:
        return None
    with _lock:
        if id(operator) not in _budgets:
            _keep(operator, Budget(getattr(operator, "name", ""), per_hour))
        return _budgets[id(operator)]


def share_budget(operator: object, other: object) -> None:
    """Have another object pay from the budget of an operator, if that has one: it is the same over other data."""
    budget = budget_of(operator)
    if budget is not None and other is not operator:
        with _lock:
            _keep(other, budget)


def _keep(operator: object, budget: Budget) -> None:
    _budgets[id(operator)] = budget
    try:
        weakref.finalize(operator, _budgets.pop, id(operator), None)
    except TypeError:
        _stay.append(operator)
