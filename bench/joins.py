"""What is measured of graph patterns that join, and of publications that are handed in one by one."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from functools import partial
from itertools import groupby, islice
from pathlib import Path

from bench import measure
from bench.measure import allowed_micros, explained, load_case
from bench.peers.clips import Rules
from bench.peers.workloads import statements_of, tuples_of
from bench.report import MEGA, MICROS, Figure
from bench.workloads.catalogue import (
    GRAPH_SUBSCRIPTIONS,
    RTF_SUBSCRIPTIONS,
    Case,
    Place,
    document_case,
    rtf_case,
)
from triplewire.engine import Engine
from triplewire.model.publication import Publication
from triplewire.read import read

# --- clips -----------------------------------------------------------------------------------------------------------
# How many times as long as the engine does CLIPS take, a rule engine that shares joins among rules?


TIMES = 300  # as long as the engine, at least: the target
_EACH = 10  # every tenth publication
_TURNS = 3


def beside_clips(engine: Engine, case: Case, work: Path, target: float | None) -> Iterator[Figure]:
    """The time of CLIPS over that of the engine, by turns, for every tenth publication of a case."""
    name = f"{case.label}: CLIPS over the engine"
    try:
        rules = Rules([tuples_of(subscription) for subscription in engine.subscriptions])
    except ImportError:
        yield Figure("graph", name, None, "x", note="clipspy is not installed")
        return
    source = _sample(case.publications, work)
    facts = [statements_of(publication) for publication in read(source.path)]
    their_matches = sum(len(rules.matching(triples)) for triples in facts)  # a warm-up as well
    matches = measure.match(engine, source).matches
    if their_matches != matches:
        yield Figure(
            "graph", name, None, "x", target, note=f"CLIPS finds {their_matches:,} matches, the engine {matches:,}"
        )
        return
    theirs, ours = [], []
    for _ in range(_TURNS):
        begun = time.perf_counter()
        for triples in facts:
            rules.matching(triples)
        theirs.append((time.perf_counter() - begun) / len(facts))
        ours.append(measure.timed(engine, source).micros / 1e6)
    yield Figure("graph", f"{case.label}: CLIPS", statistics.median(theirs) * 1e6, MICROS)
    ratio = statistics.median(theirs) / statistics.median(ours)
    yield Figure("graph", name, ratio, "x", target, at_least=True)


def _sample(publications: Path, work: Path) -> measure.Input:
    """A file with every tenth publication."""
    path = work / f"{publications.stem}-each-{_EACH}.nq"
    lines = publications.read_bytes().splitlines(keepends=True)
    graphs = [b"".join(own) for _, own in groupby(lines, lambda line: line.rsplit(b" ", 2)[1])]
    sampled = list(islice(graphs, 0, None, _EACH))
    path.write_bytes(b"".join(sampled))
    return measure.Input(path, len(sampled))


# --- figures ------------------------------------------------------------


ENCODED_MICROS, SMALL_MICROS = 300, 66
MEGABYTES, GROWTH = 60, 2.0
ALONE = {"rtf": (80, 250), "graph": (400, 2_000)}
"""Microseconds of a publication that is handed in alone: the median, and the 99th percentile."""

_WARM_UP, _TIMED = 300, 1_200  # publications


def graph_cases(place: Place) -> list[Case]:
    """A tenth of the subscriptions, all, and all with nine times as many that match nothing."""
    full = place.sized(GRAPH_SUBSCRIPTIONS)
    return [
        document_case(place, max(1, full // 10)),
        document_case(place, full),
        document_case(place, full, alien=9 * full),
    ]


def graph_figures(place: Place, cases: list[Case], matcher: str) -> Iterator[Figure]:
    """Match rows, memory, and ten times the subscriptions with the same matches."""
    aimed, encoded = place.sized(GRAPH_SUBSCRIPTIONS) == GRAPH_SUBSCRIPTIONS, []
    for number, case in enumerate(cases):
        loaded = load_case(place, case, matcher)
        source = measure.affordable(loaded.engine, loaded.inputs)
        timing = measure.timed(loaded.engine, source)
        encoded.append(timing.encoded_micros)
        own = aimed and number == 1
        yield Figure("graph", f"{case.label}: load", loaded.seconds, "s")
        yield Figure("graph", f"{case.label}: matches a publication", timing.matches)
        rows = Figure("graph", f"{case.label}: match rows from an encoded batch", timing.encoded_micros, MICROS,
                      allowed_micros(ENCODED_MICROS if own else None, timing))  # fmt: skip
        yield explained(rows, partial(measure.match, loaded.engine, source))
        small = SMALL_MICROS if aimed and number == 0 else None
        rows = Figure("graph", f"{case.label}: match rows from N-Quads bytes", timing.micros, MICROS, small)
        yield explained(rows, partial(measure.match, loaded.engine, source))
        if number == 0 and source == loaded.inputs[-1]:  # a matcher that takes too long for all is not compared
            yield from beside_clips(loaded.engine, case, place.work, TIMES if aimed else None)
        target = MEGABYTES if own else None
        yield Figure("graph", f"{case.label}: index memory", loaded.index_bytes / MEGA, "MB", target)
        del loaded
    grown = encoded[2] / encoded[1]
    yield Figure("graph", f"{cases[2].label} over {cases[1].label}", grown, "x", GROWTH if aimed else None)


def latency_cases(place: Place) -> list[Case]:
    """The cases whose publications are handed in one by one."""
    graph = document_case(place, place.sized(GRAPH_SUBSCRIPTIONS))
    return [
        rtf_case(place, 50, place.sized(RTF_SUBSCRIPTIONS), label="rtf"),
        Case("graph", graph.subscriptions, graph.publications),
    ]


def latency_figures(place: Place, cases: list[Case], matcher: str) -> Iterator[Figure]:
    """The time of one publication that is handed in alone, as an object."""
    for case in cases:
        engine = load_case(place, case, matcher).engine
        publications = list(islice(read(case.publications), _WARM_UP + _TIMED))
        micros = _each_alone(engine, publications)
        for name, share, target in zip(("median", "99th percentile"), (0.5, 0.99), ALONE[case.label], strict=True):
            value = micros[min(int(len(micros) * share), len(micros) - 1)]
            row = Figure(
                "latency",
                f"{case.label}: one publication alone, {name}",
                value,
                "us",
                target if place.size is None else None,
            )
            yield explained(row, partial(_each_alone, engine, publications))


def _each_alone(engine: Engine, publications: list[Publication]) -> list[float]:
    """The microseconds of each publication, ascending, after a warm-up."""
    micros: list[float] = []
    for number, publication in enumerate(publications):
        begun = time.perf_counter()
        engine.match(publication)
        if number >= _WARM_UP:
            micros.append((time.perf_counter() - begun) * 1e6)
    return sorted(micros)
