"""The registry of metadata: what its filter is held to (`bench/papers/mdv.py` draws the paper's figures)."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from bench import metadata_beside
from bench.papers.mdv import MOST_RULES, SHARED_RULES, cost
from bench.report import Figure
from bench.workloads.catalogue import Case, Place
from bench.workloads.mdv_documents import document, rules
from triplewire.metadata import filter as matching
from triplewire.metadata.registry import Registry
from triplewire.metadata.tables import subscriptions
from triplewire.metadata.working import prepare

OID_GROWTH, CONTAINS_GROWTH, OVER_EVALUATION = 1.3, 2.0, 100
_BATCH = 100
_ASKED_ALONE = 50  # rules that are evaluated one by one, of all that would have to be
_RUNS = 5


def cases(place: Place) -> list[Case]:
    """No files: documents and rules are made where they are used."""
    return []


def measure(place: Place, cases: list[Case], matcher: str) -> Iterator[Figure]:
    """All of it; where a number of rules is given, it takes the place of the largest base."""
    largest = place.sized(MOST_RULES)
    bases = max(largest // 100, 1), largest
    batch = min(_BATCH, bases[0])
    for kind, target in (("OID", OID_GROWTH), ("contains", CONTAINS_GROWTH)):
        name = f"{kind}, a document, {bases[-1]:,} rules over {bases[0]:,}, batch {batch}"
        yield Figure("metadata", name, _growth(place, kind, bases, batch), "x", target if place.size is None else None)
    yield _over_evaluation(place, min(SHARED_RULES, largest), batch)
    yield from metadata_beside.figures(place)


def _growth(place: Place, kind: str, bases: Sequence[int], batch: int) -> float:
    """How many times as much a document costs with the most rules as with the fewest, measured by turns."""
    with ExitStack() as open_:
        made = []
        for base in bases:
            registry = open_.enter_context(Registry.open(f"sqlite:///{place.work / f'{kind}-{base}.db'}"))
            registry.subscribe("lmr", rules(kind, base))
            made.append((registry, base))
        pairs = [[cost(registry, base, batch, 0) for registry, base in made] for _ in range(_RUNS)]
    return statistics.median(many / few for few, many in pairs)


def _over_evaluation(place: Place, base: int, batch: int) -> Figure:
    """How many times longer it takes to ask every rule anew than to filter a batch."""
    with Registry.open(f"sqlite:///{place.work / 'anew.db'}") as registry:
        registry.subscribe("lmr", rules("PATH", base))
        filtered = cost(registry, base, batch, 0) * batch
        registry.apply([document(number, 0) for number in range(min(base, 1_000))])
        with registry.database.reading() as connection:
            prepare(connection)
            ends = list(connection.execute(subscriptions.select()).all())[:: max(base // _ASKED_ALONE, 1)]
            begun = time.process_time()
            for row in ends:
                matching.evaluated(connection, [row.rule])
            anew = (time.process_time() - begun) * 1e3 / len(ends) * base
    name = f"every one of {base:,} PATH rules anew, over the filter of a batch of {batch:,}"
    return Figure(
        "metadata", name, anew / filtered, "x", OVER_EVALUATION if place.size is None else None, at_least=True
    )
