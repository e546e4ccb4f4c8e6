"""Measures time and memory of the engine, from bytes to match rows.

The stages are those of the engine's clock (`triplewire.engine.stats`).
"""

from __future__ import annotations

import cProfile
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from pathlib import Path
from types import CodeType

from bench.report import Figure
from bench.resident import resident_bytes
from bench.workloads.catalogue import Case, Place
from triplewire.config import Settings
from triplewire.engine import Engine
from triplewire.engine.stats import Clock, Stats, peak_bytes
from triplewire.errors import SubscriptionError
from triplewire.operators.files import operators_of, read_operator_files
from triplewire.operators.order import GREEDY

RUNS = 5
_PROFILED = 5  # functions that a profile names
_WARM_UP = 10_000  # subscriptions: with 1,000, some 3 MB of kernels were counted as memory of the index
BUDGET_SECONDS = 20.0  # for all runs of one figure; slow matchers see fewer publications
INCOMING = ("read", "encode")  # the stages before there is a batch


@dataclass(frozen=True, slots=True)
class Operators:
    """Which operators the engines of this process have beside the installed ones, and in which order they call them."""

    files: tuple[str, ...] = ()
    order: str = GREEDY


_operators = Operators()


def use(operators: Operators) -> None:
    """Engines that are loaded from now on have these."""
    global _operators
    _operators = operators


def load(matcher: str, path: Path, taxonomy: Path | None = None) -> Engine:
    """An engine with the subscriptions of a file, and a taxonomy. Raises `SubscriptionError` where one is refused, as
    no generated one is wrong."""
    limit = max(Settings().max_input_bytes, path.stat().st_size)
    engine = Engine(
        taxonomy=taxonomy,
        matcher=matcher,
        settings=Settings(max_input_bytes=limit),
        operators=operators_of(read_operator_files(_operators.files)) if _operators.files else None,
        operator_order=_operators.order,
    )
    engine.load_subscriptions(path)
    engine.settle()
    return engine


def warm_up(matcher: str, subscriptions: Path, source: Input, work: Path) -> None:
    """Import modules and compile kernels, with a few subscriptions, so that they do not count for the measured load."""
    few = work / f"{subscriptions.stem}-first-{os.getpid()}.jsonl"
    with subscriptions.open("rb") as stream:
        few.write_bytes(b"".join(islice(stream, _WARM_UP)))
    match(load(matcher, few), source)
    few.unlink()


@dataclass(frozen=True, slots=True)
class Input:
    """A file of `count` publications as N-Quads."""

    path: Path
    count: int

    @property
    def bytes(self) -> int:
        """The size of the file."""
        return self.path.stat().st_size


def split_publications(path: Path, sizes: Iterable[int], work: Path) -> list[Input]:
    """Files with the first publications of a file, one for each size, in ascending order; all where there are fewer."""
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
    """Write the first publications to a file of their own."""
    part = work / f"{path.stem}-first-{count}-{os.getpid()}.nq"
    part.write_bytes(data)
    return Input(part, count)


@dataclass(frozen=True, slots=True)
class Timed:
    """The medians of several runs, in seconds: from bytes to match rows, and of each stage.

    `stats` is of the last run.
    """

    seconds: float
    stages: dict[str, float]
    stats: Stats

    @property
    def micros(self) -> float:
        """Microseconds a publication, from bytes to match rows."""
        return self._a_publication(self.seconds)

    @property
    def encoded_micros(self) -> float:
        """Microseconds a publication when it is read and encoded already."""
        return self._a_publication(sum(seconds for stage, seconds in self.stages.items() if stage not in INCOMING))

    @property
    def matches(self) -> float:
        """Matches a publication."""
        return self.stats.matches / max(1, self.stats.publications)

    def stage_micros(self, stage: str) -> float:
        """Microseconds a publication in one stage."""
        return self._a_publication(self.stages.get(stage, 0.0))

    def _a_publication(self, seconds: float) -> float:
        return seconds / max(1, self.stats.publications) * 1e6


def match(engine: Engine, source: Input, clock: Clock | None = None) -> Stats:
    """Match the publications of a file and drop the match rows. Raises `SubscriptionError` where a pair is refused."""
    totals, clock = Stats(), clock or Clock()
    for result in engine.match_files(source.path, clock=clock):
        if result.refusals:
            raise SubscriptionError(f"a pair was refused: {result.refusals[0]}")
        totals.add(result.stats)
    return totals


def timed(engine: Engine, source: Input, runs: int = RUNS) -> Timed:
    """Match up to `runs` times, fewer where that takes long. Call it after a warm-up."""
    seconds: list[float] = []
    stages: list[dict[str, float]] = []
    for _ in range(runs):
        clock, begun = Clock(), time.perf_counter()
        stats = match(engine, source, clock)
        seconds.append(time.perf_counter() - begun)
        stages.append(clock.seconds())
        if sum(seconds) > BUDGET_SECONDS:
            break
    names = dict.fromkeys(stage for run in stages for stage in run)
    medians = {name: statistics.median(run.get(name, 0.0) for run in stages) for name in names}
    return Timed(statistics.median(seconds), medians, stats)


def affordable(engine: Engine, inputs: Sequence[Input], runs: int = RUNS) -> Input:
    """The largest input whose runs stay within the budget. It and the smaller ones are run as warm-up, because the
    first run of each takes new memory that later runs use again."""
    match(engine, inputs[0])
    for source, larger in pairwise(inputs):
        match(engine, source)
        begun = time.perf_counter()
        match(engine, source)
        seconds = time.perf_counter() - begun
        if seconds * runs * larger.count / source.count > BUDGET_SECONDS:
            return source
    match(engine, inputs[-1])
    return inputs[-1]


def profile(work: Callable[[], object]) -> str:
    """The functions in which most time of the work is spent, kernels among them, with their shares."""
    profiler = cProfile.Profile()
    profiler.runcall(work)
    spent = sorted(((entry.inlinetime, _name(entry.code)) for entry in profiler.getstats()), reverse=True)
    total = sum(seconds for seconds, _ in spent)
    return ", ".join(f"{name} {seconds / total:.0%}" for seconds, name in spent[:_PROFILED])


def _name(code: CodeType | str) -> str:
    return code if isinstance(code, str) else f"{Path(code.co_filename).stem}.{code.co_name}"


def most_bytes() -> int:
    """The largest resident memory of this process so far. On Linux from /proc, since the general figure starts with
    that of the parent process."""
    if sys.platform.startswith("linux"):
        with suppress(OSError, ValueError, IndexError):
            for line in Path("/proc/self/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    return peak_bytes()


# --- loaded ----------------------------------------------------------------------------------------------------------
# A case of a workload, loaded into an engine; and the rows of figures with targets.


NANOSECONDS_A_MATCH = 5
STEPS = (1, 8, 64, 512, 100_000)  # numbers of publications to try in turn


@dataclass(frozen=True, slots=True)
class Loaded:
    """An engine with the subscriptions of a case, the case's publications, the seconds that loading took, and the
    bytes of memory."""

    engine: Engine
    inputs: list[Input]
    seconds: float
    index_bytes: int


def load_case(place: Place, case: Case, matcher: str) -> Loaded:
    """Load a case, after a warm-up."""
    inputs = inputs_of(place, case)
    warm_up(matcher, case.subscriptions, inputs[0], place.work)
    before = resident_bytes()
    begun = time.perf_counter()
    engine = load(matcher, case.subscriptions)
    seconds = time.perf_counter() - begun
    return Loaded(engine, inputs, seconds, max(0, resident_bytes() - before))


def inputs_of(place: Place, case: Case) -> list[Input]:
    """The publications of a case, and files with the first ones of them."""
    return split_publications(case.publications, STEPS, place.work)


def allowed_micros(micros: float | None, timing: Timed) -> float | None:
    """The target of a publication, in microseconds, raised for its matches; None where there is none."""
    return None if micros is None else micros + timing.matches * NANOSECONDS_A_MATCH / 1e3


def explained(row: Figure, work: Callable[[], object]) -> Figure:
    """The row. Where its target is missed, its note is a profile of the work."""
    return replace(row, note=profile(work)) if row.met is False else row
