"""An ordered map in threads, so that slow operators are asked about several publications at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")
AHEAD = 2  # as many wait as are being decided
MOST = 64  # threads


def threaded_map(function: Callable[[Item], Outcome], items: Iterable[Item], at_once: int) -> Iterator[Outcome]:
    """Apply the function to each item, in up to `at_once` threads (at most `MOST`); yields the results in order."""
    if at_once <= 1:
        yield from map(function, items)
        return
    workers = min(at_once, MOST)
    running: deque[Future[Outcome]] = deque()
    with ThreadPoolExecutor(workers, thread_name_prefix="triplewire-publications") as pool:
        try:
            for item in items:
                running.append(pool.submit(function, item))
                if len(running) >= AHEAD * workers:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            for future in running:
                future.cancel()
