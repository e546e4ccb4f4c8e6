"""The experiments: what is measured of each workload, and the targets. Each runs in a process of its own (`run`).

Targets are stated only here. They hold for the default matcher and the full sizes; at other sizes a figure has no
target. A target for a publication is raised by 5 ns for each match.
"""

from __future__ import annotations

import json
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench import broker, measure, metadata, network, partition, spark
from bench import operators as targets
from bench.handover import handover_cases, handover_figures
from bench.joins import graph_cases, graph_figures, latency_cases, latency_figures
from bench.load import load_cases, load_figures
from bench.measure import Timed, allowed_micros, explained, inputs_of, load_case
from bench.peers.runner import peers_cases, peers_figures
from bench.report import GIGA, MEGA, MICROS, Figure
from bench.workloads.catalogue import (
    RTF_SUBSCRIPTIONS,
    SEED,
    WORKLOADS,
    Case,
    Place,
    rtf_case,
    same_structure,
)
from triplewire.engine import Engine

HUGE_MICROS = 100
BINDING_MICROS = 2
GROWTH, FLAT = 2.0, 2.0
HUGE, HUGE_MINUTES, HUGE_GIGABYTES = 10_000_000, 10, 4
SUBSCRIBE_MILLIS, SLOWER_PERCENT = 1, 10
TWO_THREADS, OVER_REFERENCE = 1.8, 1_000

_ASKED = 20_000  # matches whose bindings are read
_SUBSCRIBED = 100  # subscriptions that are added one at a time
_RATIOS = 9  # measurements of two threads against one; they spread more than single runs
_PASSES = 5  # through all publications in each run of these: a single pass is short beside the start of threads
_HUGE_PUBLICATIONS = 128  # the match rows of each take 2 MB


@dataclass(frozen=True, slots=True)
class _Aims:
    """Targets of a case: microseconds for a publication from an encoded batch and from bytes, raised for its matches;
    megabytes of the index. Bindings have the same everywhere."""

    encoded: float
    whole: float | None
    index: float


_AIMS = {
    ("rtf", "50 % text"): _Aims(8, 60, 40),
    ("cluster", "0.1 % match"): _Aims(80, None, 50),
    ("cluster", "1 % match"): _Aims(150, None, 50),
}
_AIMED_SIZE = RTF_SUBSCRIPTIONS  # that of the cases with targets


@dataclass(frozen=True, slots=True)
class Experiment:
    """`prepare` writes the files and `measure` reads them, in different processes, so that memory is the engine's
    alone."""

    workload: str
    about: str
    prepare: Callable[[Place], list[Case]]
    measure: Callable[[Place, list[Case], str], Iterator[Figure]]
    apart: bool = False  # each case in a process of its own
    by_name: bool = False  # takes too long for `python -m bench all`, and runs by its name only


# --- any workload ----------------------------------------------------------------------------------------------------


def _plain(workload: str) -> Experiment:
    """The experiment that every workload has."""

    def run(place: Place, cases: list[Case], matcher: str) -> Iterator[Figure]:
        for case in cases:
            yield from _figures(workload, place, case, matcher)
            yield Figure(workload, f"{case.label}: peak memory", measure.most_bytes() / MEGA, "MB")

    return Experiment(workload, "counts, times, memory", WORKLOADS[workload], run, apart=True)


def _figures(workload: str, place: Place, case: Case, matcher: str) -> Iterator[Figure]:
    """The counts and times of one case; some have targets."""

    def row(name: str, value: float, unit: str = "", target: float | None = None) -> Figure:
        return Figure(workload, f"{case.label}: {name}", value, unit, target)

    aims = _AIMS.get((workload, case.label)) if place.sized(_AIMED_SIZE) == _AIMED_SIZE else None
    loaded = load_case(place, case, matcher)
    engine, inputs = loaded.engine, loaded.inputs
    yield row("subscriptions", len(engine.subscriptions))
    yield row("load", loaded.seconds, "s")
    source = measure.affordable(engine, inputs)
    timing = measure.timed(engine, source)
    stats = timing.stats
    yield row("publications", stats.publications)
    yield row("triples a publication", stats.triples / stats.publications)
    yield row("matches a publication", timing.matches)
    if stats.matches:
        yield row("candidates a match", stats.candidates / stats.matches)
    for stage in timing.stages:
        yield row(f"  {stage}", timing.stage_micros(stage), MICROS)
    encoded = allowed_micros(aims.encoded if aims else None, timing)
    whole = allowed_micros(aims.whole if aims else None, timing)
    for name, micros, allowed in (
        ("an encoded batch", timing.encoded_micros, encoded),
        ("N-Quads bytes", timing.micros, whole),
    ):
        timed = row(f"match rows from {name}", micros, MICROS, allowed)
        yield explained(timed, lambda: measure.match(engine, source))
    yield row("N-Quads", source.bytes / MEGA / timing.seconds, "MB/s")
    yield row("index memory", loaded.index_bytes / MEGA, "MB", aims.index if aims else None)
    if stats.matches:
        asked = _binding_micros(engine, inputs)
        timed = row("bindings, when asked for", asked, "us/match", BINDING_MICROS if aims else None)
        yield explained(timed, lambda: _binding_micros(engine, inputs))
    if aims and workload == "rtf":
        threads = Figure(
            workload, "two threads over one", _two_threads(engine, source), "x", TWO_THREADS, at_least=True
        )
        yield explained(threads, lambda: measure.match(engine, source))


def _binding_micros(engine: Engine, inputs: list[measure.Input]) -> float:
    """Microseconds that reading its bindings adds to a match."""
    figures = []
    for _ in range(measure.RUNS):
        count = 0
        for source in inputs:  # more publications until there are enough matches
            for result in engine.match_files(source.path):
                begun = time.perf_counter()
                for match in result:
                    assert match.bindings
                seconds, count = time.perf_counter() - begun, len(result)
            if count >= _ASKED:
                break
        figures.append(seconds / max(1, count) * 1e6)
    return statistics.median(figures)


def _two_threads(engine: Engine, source: measure.Input) -> float:
    """The time of two runs in one thread divided by the time of one run in each of two threads."""

    def run() -> None:
        for _ in range(_PASSES):
            measure.match(engine, source)

    ratios = []
    for _ in range(_RATIOS):
        begun = time.perf_counter()
        run()
        run()
        alone = time.perf_counter() - begun
        threads = [threading.Thread(target=run) for _ in range(2)]
        begun = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        ratios.append(alone / (time.perf_counter() - begun))
    return statistics.median(ratios)


# --- two matchers ----------------------------------------------------------------------------------------------------


def compare(workload: str, place: Place, cases: list[Case], first: str, second: str) -> Iterator[Figure]:
    """Compare two matchers on the same cases, with alternating runs."""
    for case in cases:
        yield from _compared(workload, place, case, first, second, None)


def _compared(
    workload: str, place: Place, case: Case, first: str, second: str, target: float | None
) -> Iterator[Figure]:
    """The times of two matchers on one case, their matches, and the ratio of the times."""
    names = (first, second)
    engines = [measure.load(name, case.subscriptions) for name in names]
    inputs = inputs_of(place, case)
    # each run may take the whole budget: with few publications, the fixed cost of a match call would be compared
    sources = [measure.affordable(engine, inputs, runs=1) for engine in engines]
    source = min(sources, key=lambda source: source.count)
    runs: list[list[Timed]] = [[], []]
    for _ in range(3):
        for engine, timings in zip(engines, runs, strict=True):
            timings.append(measure.timed(engine, source, runs=1))
    for name, timings in zip(names, runs, strict=True):
        micros = statistics.median(t.micros for t in timings)
        yield Figure(workload, f"{case.label}: {name}, from N-Quads", micros, MICROS)
    counts = [timings[0].stats.matches for timings in runs]
    yield Figure(workload, f"{case.label}: publications", source.count)
    yield Figure(
        workload, f"{case.label}: matches of {first} over those of {second}", counts[0] / max(1, counts[1]), "x"
    )
    ratio = statistics.median(b.seconds / a.seconds for a, b in zip(*runs, strict=True))
    yield Figure(workload, f"{case.label}: {first} faster than {second}", ratio, "x", target, at_least=True)


def _over_reference(place: Place, cases: list[Case], matcher: str) -> Iterator[Figure]:
    """A matcher against "reference"."""
    full = place.size is None
    yield from _compared("rtf", place, cases[0], matcher, "reference", OVER_REFERENCE if full else None)


# --- growth ----------------------------------------------------------------------------------------------------------


def _grown_cases(place: Place) -> list[Case]:
    """A tenth of the queries, and these with nine times as many that match nothing."""
    full = place.sized(10 * RTF_SUBSCRIPTIONS)
    small = max(1, full // 10)
    return [
        rtf_case(place, 50, small, label=f"{small:,} queries"),
        rtf_case(place, 50, small, alien=full - small, label=f"{full:,} queries"),
    ]


def _growth(place: Place, cases: list[Case], matcher: str) -> Iterator[Figure]:
    """Ten times the subscriptions with the same matches; then subscriptions that are added one at a time."""
    figures: list[Timed] = []
    full = place.size is None
    for case in cases:
        loaded = load_case(place, case, matcher)
        engine = loaded.engine
        source = measure.affordable(engine, loaded.inputs)
        figures.append(measure.timed(engine, source))
        yield Figure("rtf", f"{case.label}: match rows from an encoded batch", figures[-1].encoded_micros, MICROS)
        yield Figure("rtf", f"{case.label}: matches a publication", figures[-1].matches)
    ratio = figures[1].encoded_micros / figures[0].encoded_micros
    grown = Figure("rtf", f"{cases[1].label} over {cases[0].label}, same matches", ratio, "x", GROWTH if full else None)
    yield explained(grown, lambda: measure.match(engine, source))
    yield from _one_at_a_time(engine, place, source, full)


def _one_at_a_time(engine: Engine, place: Place, source: measure.Input, full: bool) -> Iterator[Figure]:
    """Add subscriptions one at a time. After each tenth one, the next match is timed, and right after it a match
    without all new ones, several times: other load of the machine affects both alike."""
    newcomers = rtf_case(place, 50, _SUBSCRIBED, seed=SEED + 1)
    rows = [json.loads(line) for line in newcomers.subscriptions.read_text(encoding="utf-8").splitlines()]
    millis, slower = [], []
    for number, row in enumerate(rows):
        begun = time.perf_counter()
        engine.subscribe(row["query"], row["language"], id=f"new{number}")
        millis.append((time.perf_counter() - begun) * 1e3)
        for _ in range(0 if number % 10 else measure.RUNS):
            after = measure.timed(engine, source, runs=1).encoded_micros
            for n in range(number + 1):
                engine.unsubscribe(f"new{n}")
            slower.append((after / measure.timed(engine, source, runs=1).encoded_micros - 1) * 100)
            for n, earlier in enumerate(rows[: number + 1]):
                engine.subscribe(earlier["query"], earlier["language"], id=f"new{n}")
    name = f"subscribe, with {len(engine.subscriptions):,} standing"
    yield Figure("rtf", name, statistics.median(millis), "ms", SUBSCRIBE_MILLIS if full else None)
    percent = statistics.median(slower)
    last = Figure("rtf", "next match slower by", percent, "%", SLOWER_PERCENT if full else None)
    yield explained(last, lambda: measure.match(engine, source))


def _same_structure_cases(place: Place) -> list[Case]:
    """A thousandth of the subscriptions and all of them, with single constraints and with windows."""
    large = place.sized(1_000_000)
    sizes = (min(large, max(100, large // 1_000)), large)
    return [same_structure(place, size, windows=windows) for windows in (False, True) for size in sizes]


def _same_structure(place: Place, cases: list[Case], matcher: str) -> Iterator[Figure]:
    """A thousand times the subscriptions with the same matches."""
    figures = []
    for case in cases:
        loaded = load_case(place, case, matcher)
        figures.append(measure.timed(loaded.engine, measure.affordable(loaded.engine, loaded.inputs)))
        yield Figure("cluster", f"{case.label}: match rows from an encoded batch", figures[-1].encoded_micros, MICROS)
        yield Figure("cluster", f"{case.label}: matches a publication", figures[-1].matches)
    target = FLAT if place.size is None else None
    for at in (0, 2):
        few, many = cases[at : at + 2]
        ratio = figures[at + 1].encoded_micros / figures[at].encoded_micros
        yield Figure("cluster", f"{many.label} over {few.label}, same matches", ratio, "x", target)


# --- ten million -----------------------------------------------------------------------------------------------------


def _huge_cases(place: Place) -> list[Case]:
    return [rtf_case(place, 50, place.sized(HUGE), seed=SEED + 2, label=f"{place.sized(HUGE):,} queries")]


def _huge(place: Place, cases: list[Case], matcher: str) -> Iterator[Figure]:
    """Loading and matching ten million queries."""
    case, full = cases[0], place.size is None
    source = measure.split_publications(case.publications, (1, 16, _HUGE_PUBLICATIONS), place.work)
    loaded = load_case(place, case, matcher)
    minutes = loaded.seconds / 60
    yield Figure("rtf", f"{case.label}: load", minutes, "min", HUGE_MINUTES if full else None)
    yield Figure("rtf", f"{case.label}: index memory", loaded.index_bytes / MEGA, "MB")
    engine = loaded.engine
    used = measure.affordable(engine, source)
    timing = measure.timed(engine, used)
    yield Figure("rtf", f"{case.label}: publications", timing.stats.publications)
    yield Figure("rtf", f"{case.label}: matches a publication", timing.matches)
    name = f"{case.label}: match rows from N-Quads bytes"
    timed = Figure("rtf", name, timing.micros, MICROS, allowed_micros(HUGE_MICROS if full else None, timing))
    yield explained(timed, lambda: measure.match(engine, used))
    peak = measure.most_bytes() / GIGA
    yield Figure("rtf", f"{case.label}: peak memory, load and match", peak, "GB", HUGE_GIGABYTES if full else None)


def _reference_cases(place: Place) -> list[Case]:
    size = place.sized(10_000)
    return [rtf_case(place, 50, size, label=f"{size:,} queries")]


EXPERIMENTS: dict[str, Experiment] = {
    **{name: _plain(name) for name in WORKLOADS},
    "graph": Experiment("graph", "patterns that join", graph_cases, graph_figures),
    "latency": Experiment("latency", "one publication at a time", latency_cases, latency_figures),
    "handover": Experiment("handover", "what a caller takes of a result", handover_cases, handover_figures),
    "rtf-reference": Experiment("rtf", "against matcher reference", _reference_cases, _over_reference),
    "cluster-same": Experiment("cluster", "same structure, other constraints", _same_structure_cases, _same_structure),
    "rtf-growth": Experiment("rtf", "a million queries, and one at a time", _grown_cases, _growth),
    "operators": Experiment("operators", "expensive calls", targets.cases, targets.measure, by_name=True),
    "partition": Experiment("cluster", "partitioned over nodes", partition.cases, partition.measure, by_name=True),
    broker.NAME: Experiment("broker", "the broker", broker.cases, broker.figures, by_name=True),
    network.NAME: Experiment("network", "brokers in a line", network.cases, network.figures, by_name=True),
    "spark": Experiment("spark", "the pipeline on Spark", spark.cases, spark.measure_pipeline, by_name=True),
    "metadata": Experiment(
        "metadata", "rules over documents that change", metadata.cases, metadata.measure, by_name=True
    ),
    "peers": Experiment("peers", "systems of today", peers_cases, peers_figures, by_name=True),
    "load": Experiment("load", "from texts to an index", load_cases, load_figures, by_name=True),
    "rtf-huge": Experiment("rtf", "ten million queries", _huge_cases, _huge),
}
"""All experiments, in the order of `python -m bench all`. Those without a hyphen in their names also run alone;
those marked `by_name` run only so."""


def to_json(cases: list[Case]) -> list[list[str]]:
    """Cases as JSON, for another process."""
    return [[case.label, str(case.subscriptions), str(case.publications)] for case in cases]


def from_json(items: list[list[str]]) -> list[Case]:
    """The cases that `to_json` wrote."""
    return [Case(label, Path(subscriptions), Path(publications)) for label, subscriptions, publications in items]
