"""Waiting for what other threads and processes do: `until`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

_Answer = TypeVar("_Answer")


def until(condition: Callable[[], _Answer], seconds: float = 300.0) -> _Answer:
    """What a condition answers as soon as that is true; fails where it never is, after much longer than it takes."""
    end = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < end, "it has not come about"
        time.sleep(0.02)
    return answer
