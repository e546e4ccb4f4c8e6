"""What a match call cost: counts, and the seconds of each stage. No two stages overlap, so they add up to the whole."""

from __future__ import annotations

import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from triplewire.verify.operators import CallCounts

if TYPE_CHECKING:
    from triplewire.engine.chunk import Rows

OTHER = "other"  # what belongs to no named stage

INTERPRETED, COMPILED = "interpreted", "compiled"  # the tiers that answer: docs/decisions/015


@dataclass(slots=True)
class LookedAt:
    """What the stages looked at for some matches. `atoms`: the indexed conditions that the publications satisfied;
    `candidates`: the pairs and clauses that the index named; `verified`: those of them that were verified;
    `join_steps`: the shared join steps that were solved, each counted once per publication; `nodes`, `comparisons` and
    `list_steps`: what of the index was visited, the rows that joins of its own tried, and the entries of its lists that
    were read."""

    triples: int = 0
    atoms: int = 0
    candidates: int = 0
    verified: int = 0
    join_steps: int = 0
    nodes: int = 0
    comparisons: int = 0
    list_steps: int = 0

    def include(self, other: LookedAt) -> None:
        """Count what was looked at for others as well."""
        for name in _LOOKED_AT:
            setattr(self, name, getattr(self, name) + getattr(other, name))


_LOOKED_AT = tuple([each.name for each in fields(LookedAt)])
COUNTS = ("publications", *_LOOKED_AT, "matches", "truncated")


class Clock:
    """A clock that runs for one stage at a time. Entering a stage stops the one around it until the end. `bytes_read`
    are those of documents, as they lie in their files. `now` tells the time, in seconds."""

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self.bytes_read = 0
        self._now, self._stage, self._at = now, OTHER, now()
        self._seconds: defaultdict[str, float] = defaultdict(float)

    @classmethod
    def of_process(cls) -> Clock:
        """A clock that counts from the start of the process: until now, the stage "start". Where the system does not
        say when that was, that stage is the processor time that the process has used."""
        clock = cls()
        try:
            with open("/proc/self/stat", "rb") as stream:
                fields = stream.read().rpartition(b")")[2].split()
            started = int(fields[19])  # field 22 of the line: ticks after the machine's start
            age = time.clock_gettime(time.CLOCK_BOOTTIME) - started / os.sysconf("SC_CLK_TCK")
        except (OSError, AttributeError, ValueError, IndexError):
            age = time.process_time()
        clock._seconds["start"] = max(age, 0.0)
        return clock

    def __call__(self, stage: str) -> _Stage:
        """The time inside a `with` block belongs to `stage`."""
        return _Stage(self, stage)

    def switch(self, stage: str) -> str:
        """Begin a stage; returns the one that ran until now. Cheaper than a `with` block where stages follow each
        other."""
        now = self._now()
        self._seconds[self._stage] += now - self._at
        outer, self._stage, self._at = self._stage, stage, now
        return outer

    def seconds(self) -> dict[str, float]:
        """Seconds by stage until now; their sum is the time since the beginning."""
        self.switch(self._stage)
        return dict(self._seconds)

    def lap(self) -> dict[str, float]:
        """The same, and the clock begins anew."""
        seconds = self.seconds()
        self._seconds.clear()
        return seconds


class _Stage:
    """A stage as a `with` block; `contextlib` would take longer than some stages."""

    __slots__ = ("_clock", "_name", "_outer")

    def __init__(self, clock: Clock, name: str) -> None:
        self._clock, self._name, self._outer = clock, name, OTHER

    def __enter__(self) -> None:
        self._outer = self._clock.switch(self._name)

    def __exit__(self, *_: object) -> None:
        self._clock.switch(self._outer)


@dataclass(slots=True)
class Stats(LookedAt):
    """The counts of one match call, or of several. `network_rows`: the steps and nodes of the join networks, at most, 0
    where none was needed; `tiers`: publications by the tier that answered them; `operators`: the calls."""

    publications: int = 0
    network_rows: int = 0
    matches: int = 0
    truncated: int = 0
    tiers: dict[str, int] = field(default_factory=lambda: {INTERPRETED: 0, COMPILED: 0})
    seconds: dict[str, float] = field(default_factory=dict)
    operators: CallCounts = field(default_factory=CallCounts)

    def count(self, publications: int, rows: Rows) -> None:
        """Count what a snapshot said of so many publications."""
        self.publications += publications
        self.tiers[COMPILED if rows.compiled else INTERPRETED] += publications
        self.include(rows.looked_at)
        self.network_rows = max(self.network_rows, rows.network_rows)
        self.matches += len(rows)
        self.truncated += int(np.count_nonzero(rows.truncated))
        if rows.operators is not None:
            self.operators.add(rows.operators)

    def add(self, other: Stats) -> None:
        """Count another call as well."""
        self.include(other)
        self.publications += other.publications
        self.matches += other.matches
        self.truncated += other.truncated
        self.network_rows = max(self.network_rows, other.network_rows)
        self.operators.add(other.operators)
        for tier, publications in other.tiers.items():
            self.tiers[tier] += publications
        for stage, seconds in other.seconds.items():
            self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds

    def to_json(self, seconds: Mapping[str, float] | None = None) -> dict[str, Any]:
        """A JSON object, with the largest memory that this process has used so far."""
        counts: dict[str, Any] = {name: getattr(self, name) for name in COUNTS}
        counts |= {"network_rows": self.network_rows, "tiers": dict(self.tiers), "operators": asdict(self.operators)}
        return counts | {"peak_bytes": peak_bytes(), "seconds": dict(self.seconds if seconds is None else seconds)}


def peak_bytes() -> int:
    """The largest resident memory of this process so far; 0 where the system does not say."""
    try:
        import resource  # Unix only
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
