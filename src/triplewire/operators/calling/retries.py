"""Calls that failed for a passing reason are made again, after a pause: `with_retries`."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from triplewire.errors import OperatorError, PassingError, TriplewireError

PAUSE = 0.25  # seconds before a call is made again for the first time; the pauses double
T = TypeVar("T")


def is_passing(error: BaseException) -> bool:
    """May a call that raised this succeed soon? Of what operators in Python raise, all may but `ValueError` and
    `TypeError`, with which they refuse what they are asked, `MemoryError`, and what ends a process (`SystemExit`)."""
    if isinstance(error, TriplewireError):
        return isinstance(error, PassingError)
    return isinstance(error, Exception) and not isinstance(error, ValueError | TypeError | MemoryError)


def with_retries(make: Callable[[], T], enter: Callable[[], None], retries: int, longest: float) -> T:
    """What `make` returns, which is called again up to `retries` times where it fails for a passing reason. Between two
    calls lies a pause: of a length that doubles, drawn between its half and all of it, or as long as a service asks
    for. It is at most `longest` seconds; who asks for more is not asked again. `enter` is called before each call but
    the first; where it raises `OperatorError`, none is made. Raises what the last call raised."""
    for attempt in range(retries):
        try:
            return make()
        except Exception as error:
            wait = error.wait if isinstance(error, PassingError) else 0.0
            if not is_passing(error) or wait > longest:
                raise
            time.sleep(max(wait, min(PAUSE * 2**attempt, longest) * random.uniform(0.5, 1.0)))
            try:
                enter()
            except OperatorError:
                raise error from None
    return make()
