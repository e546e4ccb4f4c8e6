"""Run foreign code with a time limit: an operator that hangs must not hang the engine.

It runs in a helper thread that is kept for the next call. Code that runs out of time cannot be stopped from outside;
its thread is left behind, and ends with it or with the process. `within` runs one function. `in_turn` runs many in one
thread, as to hand each over takes longer than many of them do.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeAlias, TypeVar

S = TypeVar("S")
T = TypeVar("T")
_Answer: TypeAlias = "SimpleQueue[tuple[Any, BaseException | None]]"
_Jobs: TypeAlias = "SimpleQueue[tuple[Callable[[], Any], _Answer] | None]"
_LOOK_SECONDS = 0.05  # between two checks whether a function of `in_turn` has run out of time


class _Helper:
    """A thread that does one job after the other until this handle is dropped."""

    def __init__(self) -> None:
        self.jobs: _Jobs = SimpleQueue()
        self.thread = threading.Thread(target=_work, args=(self.jobs,), name="triplewire-operator", daemon=True)
        self.thread.start()

    def __del__(self) -> None:
        self.jobs.put(None)


class _Local(threading.local):
    helper: _Helper | None = None


_LOCAL = _Local()  # each thread of the engine has a helper of its own


def _handed(function: Callable[[], Any]) -> _Answer:
    """The answer of the helper, which will be there when it has run the function."""
    helper = _LOCAL.helper
    if helper is None or not helper.thread.is_alive():  # none yet, or lost in a fork
        helper = _LOCAL.helper = _Helper()
    answer: _Answer = SimpleQueue()
    helper.jobs.put((function, answer))
    return answer


def _late(seconds: float, setting: str) -> TimeoutError:
    return TimeoutError(f"no answer within {seconds:g} s ({setting})")


def within(seconds: float, function: Callable[[], T], setting: str = "operator_seconds") -> T:
    """What the function returns or raises. Raises `TimeoutError`, which names the setting, when that takes longer than
    `seconds`."""
    try:
        value, error = _handed(function).get(timeout=seconds)
    except Empty:
        _LOCAL.helper = None
        raise _late(seconds, setting) from None
    if error is not None:
        raise error
    returned: T = value
    return returned


@dataclass(slots=True)
class Turn(Generic[S, T]):
    """A function to run for one item after the other, with so many seconds for each. `done` takes what it returned, or
    the `TimeoutError` of an item that ran out of time, and the seconds that each took. With `guesses`, what comes
    behind the first item that returned another object than guessed is left out. `setting`: what sets the seconds, for
    messages. `late`: items that ran out of time."""

    seconds: float
    function: Callable[[S], T]
    items: Sequence[S]
    done: Callable[[Turn[S, T]], None]
    guesses: Sequence[object] = ()
    setting: str = "operator_seconds"
    values: list[T | TimeoutError] = field(default_factory=list)
    spent: list[float] = field(default_factory=list)
    late: int = 0

    def left(self) -> Sequence[S]:
        """The items that are still to be run."""
        if self.guesses and self.values and self.values[-1] is not self.guesses[len(self.values) - 1]:
            return ()
        return self.items[len(self.values) :]


def in_turn(turns: Iterator[Turn[S, T]]) -> None:
    """Run all turns. What gives the turns, and `done`, run in the helper as well, one at a time: a
    turn may depend on what came of the one before it. Raises what any of them raises."""
    row = _TurnQueue(turns)
    while True:
        answer = _handed(row.run)
        while True:
            try:
                _, error = answer.get(timeout=_LOOK_SECONDS)
            except Empty:
                if row.given_up():
                    _LOCAL.helper = None
                    break
                continue
            if error is not None:
                raise error
            return


class _TurnQueue(Generic[S, T]):
    """The state of `in_turn`. Where a helper is left behind after a time-out, the next helper goes on with it."""

    def __init__(self, turns: Iterator[Turn[S, T]]) -> None:
        self._turns = turns
        self._lock = threading.Lock()
        self._helpers = 0
        self._turn: Turn[S, T] | None = None
        self._begun = 0.0  # when the function began that runs now; 0: none does

    def run(self) -> None:
        """Run what is left, in the present helper."""
        self._helpers += 1
        mine = self._helpers
        while True:
            if self._turn is None:
                self._turn = next(self._turns, None)
            turn = self._turn
            if turn is None:
                return
            if not self._is_run(turn, mine):
                return
            turn.done(turn)
            self._turn = None

    def _is_run(self, turn: Turn[S, T], mine: int) -> bool:
        """Run the items of a turn that are left. False: one was given up, and so is this helper."""
        clock, lock, values, spent = time.perf_counter, self._lock, turn.values, turn.spent
        function, left = turn.function, turn.left()
        guesses = turn.guesses[len(values) :] or repeat(None)
        begun = self._begun = clock()
        for item, guess in zip(left, guesses, strict=False):
            value = function(item)
            now = clock()
            with lock:
                if self._helpers != mine:
                    return False
                values.append(value)
                spent.append(now - begun)
                begun = self._begun = now
            if guess is not None and value is not guess:
                break
        with lock:
            self._begun = 0.0
        return True

    def given_up(self) -> bool:
        """Has the running function run out of time? Then its outcome is a `TimeoutError`, and its helper is retired."""
        with self._lock:
            turn = self._turn
            late = time.perf_counter() - self._begun if self._begun else 0.0
            if turn is None or late <= turn.seconds or len(turn.values) == len(turn.items):
                return False
            turn.values.append(_late(turn.seconds, turn.setting))
            turn.spent.append(late)
            turn.late += 1
            self._begun = 0.0
            self._helpers += 1
            return True


def _work(jobs: _Jobs) -> None:
    while (job := jobs.get()) is not None:
        function, answer = job
        try:
            answer.put((function(), None))
        except BaseException as error:
            answer.put((None, error))
        del job, function, answer  # nothing of a call outlives it
