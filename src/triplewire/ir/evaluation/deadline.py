"""Run foreign code with a time limit: an operator that hangs must not hang the engine.

It runs in a helper thread that is kept for the next call. Code that runs out of time cannot be stopped from outside;
its thread is left behind, and ends with it or with the process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
_Answer: TypeAlias = "SimpleQueue[tuple[Any, BaseException | None]]"
_Jobs: TypeAlias = "SimpleQueue[tuple[Callable[[], Any], _Answer] | None]"


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


def within(seconds: float, function: Callable[[], T]) -> T:
    """What the function returns or raises. Raises `TimeoutError` when that takes longer than `seconds`."""
    helper = _LOCAL.helper
    if helper is None or not helper.thread.is_alive():  # none yet, or lost in a fork
        helper = _LOCAL.helper = _Helper()
    answer: _Answer = SimpleQueue()
    helper.jobs.put((function, answer))
    try:
        value, error = answer.get(timeout=seconds)
    except Empty:
        _LOCAL.helper = None
        raise TimeoutError(f"no answer within {seconds:g} s (operator_seconds)") from None
    if error is not None:
        raise error
    returned: T = value
    return returned


def _work(jobs: _Jobs) -> None:
    while (job := jobs.get()) is not None:
        function, answer = job
        try:
            answer.put((function(), None))
        except BaseException as error:
            answer.put((None, error))
        del job, function, answer  # nothing of a call outlives it
