"""A case of a workload, loaded into an engine; and the rows of figures with targets."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from triplewire.bench import measure
from triplewire.bench.measure import Timed
from triplewire.bench.report import Figure
from triplewire.bench.workloads.catalogue import Case, Place
from triplewire.engine import Engine

NANOSECONDS_A_MATCH = 5
MEGA, GIGA = 1e6, 1e9
MICROS = "us/publication"
STEPS = (1, 8, 64, 512, 100_000)  # numbers of publications to try in turn


@dataclass(frozen=True, slots=True)
class Loaded:
    """An engine with the subscriptions of a case, the case's publications, the seconds that loading took, and the
    bytes of memory."""

    engine: Engine
    inputs: list[measure.Input]
    seconds: float
    index_bytes: int


def load_case(place: Place, case: Case, matcher: str) -> Loaded:
    """Load a case, after a warm-up."""
    inputs = inputs_of(place, case)
    measure.warm_up(matcher, case.subscriptions, inputs[0], place.work)
    before = measure.resident_bytes()
    begun = time.perf_counter()
    engine = measure.load(matcher, case.subscriptions)
    seconds = time.perf_counter() - begun
    return Loaded(engine, inputs, seconds, max(0, measure.resident_bytes() - before))


def inputs_of(place: Place, case: Case) -> list[measure.Input]:
    """The publications of a case, and files with the first ones of them."""
    return measure.split_publications(case.publications, STEPS, place.work)


def allowed_micros(micros: float | None, timing: Timed) -> float | None:
    """The target of a publication, in microseconds, raised for its matches; None where there is none."""
    return None if micros is None else micros + timing.matches * NANOSECONDS_A_MATCH / 1e3


def explained(row: Figure, work: Callable[[], object]) -> Figure:
    """The row. Where its target is missed, its note is a profile of the work."""
    return replace(row, note=measure.profile(work)) if row.met is False else row
