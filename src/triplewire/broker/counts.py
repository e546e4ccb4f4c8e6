"""What a broker counts while it runs, by name and labels, for who watches it (`triplewire.service.metrics`)."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Mapping

COUNTED: Mapping[str, tuple[str, ...]] = {
    "publications": ("outcome",),  # accepted, repeated (it was there); matched, refused
    "events": ("type",),
    "notifications": ("channel", "outcome"),
    "feed_fetch": ("outcome",),
    "crossed": ("outcome",),  # publications that came from upstreams: new, repeated, own, refused
}
"""The counters and their labels, which have few values each."""

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Counts:
    """Counters, and how long batches took. Any thread may count."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: defaultdict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
        self._buckets = Counter[float]()
        self._seconds, self._batches = 0.0, 0

    def add(self, name: str, *labels: str, by: int = 1) -> None:
        """Count, under a name of `COUNTED`."""
        with self._lock:
            self._counts[name][labels] += by

    def matched(self, seconds: float) -> None:
        """A batch of publications was matched in so many seconds."""
        with self._lock:
            self._seconds, self._batches = self._seconds + seconds, self._batches + 1
            self._buckets[next((bound for bound in _BOUNDS if seconds <= bound), float("inf"))] += 1

    def of(self, name: str) -> dict[tuple[str, ...], int]:
        """The counts under a name, by the values of its labels."""
        with self._lock:
            return dict(self._counts[name])

    def durations(self) -> tuple[list[tuple[str, float]], float]:
        """How many batches took at most so long, for each bound, and how long all took."""
        with self._lock:
            total, rows = 0, list[tuple[str, float]]()
            for bound in _BOUNDS:
                total += self._buckets[bound]
                rows.append((str(bound), total))
            return [*rows, ("+Inf", self._batches)], self._seconds
