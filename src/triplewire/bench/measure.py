"""Clocks, memory, and the doors of the engine that are measured: bytes in, match rows out.

A matcher that cannot take bytes gets publications that were parsed; what is timed is said where it is used
(`experiments`).
"""

from __future__ import annotations

import ctypes
import gc
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from triplewire.config import Settings
from triplewire.engine import Engine
from triplewire.engine.result import MatchResult
from triplewire.engine.stats import Stats, peak_bytes
from triplewire.errors import Refusal, SubscriptionError
from triplewire.model.publication import Publication
from triplewire.read import read

RUNS = 5
BUDGET_SECONDS = 20.0  # for all runs of one figure; slow matchers see fewer publications
LARGE = 2**62


def load(matcher: str, path: Path) -> Engine:
    """An engine with the subscriptions of a file. Raises `SubscriptionError` where one is refused: generated ones are
    all good."""

    def refuse(refusal: Refusal) -> None:
        raise SubscriptionError(refusal.reason, source=refusal.where or refusal.subject, remedy=refusal.remedy)

    engine = Engine(matcher=matcher, settings=Settings(max_input_bytes=LARGE))
    engine.load_subscriptions(path, on_refusal=refuse)
    engine.settle()
    return engine


@dataclass(frozen=True, slots=True)
class Input:
    """Some publications as N-Quads; `count` of them."""

    path: Path
    count: int

    @property
    def bytes(self) -> int:
        """The size of the file."""
        return self.path.stat().st_size


def split_publications(path: Path, sizes: Iterable[int], work: Path) -> list[Input]:
    """For each size a file with the first so many publications (all, where there are fewer), in ascending order."""
    wanted = sorted(set(sizes))
    out: list[Input] = []
    data, names, ends, last = path.read_bytes(), 0, 0, b""
    for line in data.splitlines(keepends=True):
        name = line.rsplit(b" ", 2)[1]
        if name != last:
            while len(out) < len(wanted) and names == wanted[len(out)]:
                out.append(_part(work, path, names, data[:ends]))
            names, last = names + 1, name
        ends += len(line)
    if len(out) < len(wanted):
        out.append(_part(work, path, names, data))
    return out


def _part(work: Path, path: Path, count: int, data: bytes) -> Input:
    part = work / f"{path.stem}-first-{count}-{os.getpid()}.nq"
    part.write_bytes(data)
    return Input(part, count)


def from_bytes(engine: Engine, source: Input) -> MatchResult:
    """End to end: N-Quads in, match rows out."""
    return engine.match(read(source.path))


def encoded(source: Input) -> Sequence[Publication]:
    """The publications, ready to be matched."""
    return list(read(source.path))


def from_encoded(engine: Engine, publications: Sequence[Publication]) -> MatchResult:
    """What is left when the publications are ready: match rows."""
    return engine.match(publications)


@dataclass(frozen=True, slots=True)
class Timed:
    """The median of the seconds of some runs, and the counts of the last one."""

    seconds: float
    stats: Stats

    @property
    def micros(self) -> float:
        """Microseconds a publication."""
        return self.seconds / max(1, self.stats.publications) * 1e6

    @property
    def matches(self) -> float:
        """Matches a publication."""
        return self.stats.matches / max(1, self.stats.publications)


def timed(match: Callable[[], MatchResult], runs: int = RUNS) -> Timed:
    """Run it some times, fewer where that takes long. What compiles and warms up has to be run before."""
    seconds = []
    for _ in range(runs):
        begun = time.perf_counter()
        result = match()
        seconds.append(time.perf_counter() - begun)
        stats = result.stats
        del result  # its arrays need not stand beside those of the next run
        if sum(seconds) > BUDGET_SECONDS:
            break
    return Timed(statistics.median(seconds), stats)


def affordable(match: Callable[[Input], MatchResult], inputs: Sequence[Input], runs: int = RUNS) -> Input:
    """The largest input whose runs stay within the budget; it and the smaller ones have been run once, as warm-up."""
    match(inputs[0])
    for place, source in enumerate(inputs):
        begun = time.perf_counter()
        match(source)
        seconds = time.perf_counter() - begun
        if place + 1 == len(inputs) or seconds * runs * inputs[place + 1].count / source.count > BUDGET_SECONDS:
            return source
    raise ValueError("no input")


def resident_bytes() -> int:
    """Resident memory of this process, with what was freed given back; 0 where the system does not say."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    with suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def most_bytes() -> int:
    """The largest resident memory of this process so far. On Linux the process's own: the other figure starts with that
    of the process that started it."""
    if sys.platform.startswith("linux"):
        with suppress(OSError, ValueError, IndexError):
            for line in Path("/proc/self/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    return peak_bytes()
