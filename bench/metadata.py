"""The registry of metadata: experiments 11 to 15 of the MDV paper, and what its filter is held to.

Documents are like figure 1 of the paper, with two resources each. A rule of type OID, PATH or JOIN fits one document;
of COMP rules a document fits a share. The cost of a document is the time of its batch, from its bytes to the
notices, divided by the size of the batch.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence

from bench import metadata_beside
from bench.report import Figure
from bench.workloads.catalogue import Case, Place
from bench.workloads.mdv_documents import document, rules
from triplewire.metadata import filter as matching
from triplewire.metadata.messages import Withdraw
from triplewire.metadata.registry import Registry
from triplewire.metadata.tables import subscriptions
from triplewire.metadata.working import prepare

BASES = (1_000, 10_000, 100_000)
BATCHES = (1, 10, 100, 1_000)
SHARES = (1, 10, 50, 100)
SHARED_RULES = 10_000
OID_GROWTH, CONTAINS_GROWTH, OVER_EVALUATION = 1.3, 2.0, 100
_ASKED_ALONE = 50  # rules that are evaluated one by one, of all that would have to be
_RUNS = 5
_MILLIS = "ms"


def cases(place: Place) -> list[Case]:
    """No files: documents and rules are made where they are used."""
    return []


def _milliseconds(registry: Registry, base: int, batch: int, value: int) -> float:
    """The cost of a document: median of some batches of new documents, which are deleted again."""
    costs = []
    for run in range(_RUNS if batch < 1_000 else 1):
        changes = [document((run * batch + place) % base, value) for place in range(batch)]
        begun = time.perf_counter()
        registry.apply(changes)
        costs.append((time.perf_counter() - begun) * 1e3 / batch)
        registry.apply([Withdraw(change.document) for change in changes])
    return statistics.median(costs)


def measure(place: Place, cases: list[Case], matcher: str) -> Iterator[Figure]:
    """All of it; where a number of rules is given, it takes the place of the largest base."""
    largest = place.sized(BASES[-1])
    bases = sorted({max(base * largest // BASES[-1], 1) for base in BASES})
    batches = [batch for batch in BATCHES if batch <= bases[0]]
    for figure, kind in ((11, "OID"), (12, "PATH"), (13, "COMP"), (14, "JOIN"), (0, "contains")):
        about = f"figure {figure}, {kind}" if figure else kind
        for base in bases:
            for batch, cost in _costs(place, kind, base, batches, share=10):
                yield Figure("metadata", f"{about}, {base:,} rules, batch {batch:,}: a document", cost, _MILLIS)
    yield from _shared(place, min(SHARED_RULES, largest), batches)
    at = 100 if 100 in batches else batches[-1]
    for kind, target in (("OID", OID_GROWTH), ("contains", CONTAINS_GROWTH)):
        name = f"{kind}, a document, {bases[-1]:,} rules over {bases[0]:,}, batch {at}"
        ratio = _growth(place, kind, bases, at)
        yield Figure("metadata", name, ratio, "x", target if place.size is None else None)
    yield _over_evaluation(place, min(SHARED_RULES, largest), at)
    yield from metadata_beside.figures(place)


def _file(place: Place, kind: str, base: int, share: int) -> str:
    return f"sqlite:///{place.work / f'{kind}-{base}-{share}.db'}"


def _growth(place: Place, kind: str, bases: Sequence[int], batch: int) -> float:
    """How many times as much a document costs with the most rules as with the fewest, measured by turns."""
    few, many = bases[0], bases[-1]
    with (
        Registry.open(_file(place, kind, few, 10)) as small,
        Registry.open(_file(place, kind, many, 10)) as large,
    ):
        return statistics.median(
            _milliseconds(large, many, batch, 0) / _milliseconds(small, few, batch, 0) for _ in range(_RUNS)
        )


def _costs(place: Place, kind: str, base: int, batches: Sequence[int], *, share: int) -> Iterator[tuple[int, float]]:
    """Batch sizes and the cost of a document; `share`: the percentage of COMP rules that fit."""
    with Registry.open(_file(place, kind, base, share)) as registry:
        registry.subscribe("lmr", rules(kind, base))
        _milliseconds(registry, base, 1, 0)  # the parsing process starts
        for batch in batches:
            if kind == "COMP" and base * share // 100 * batch > 1_000_000:
                continue  # so many notices that nothing else would be measured
            yield batch, _milliseconds(registry, base, batch, base * share // 100)


def _shared(place: Place, base: int, batches: Sequence[int]) -> Iterator[Figure]:
    """Experiment 15: COMP rules, by share and size of batch."""
    for share in SHARES:
        for batch, cost in _costs(place, "COMP", base, batches, share=share):
            name = f"figure 15, {base:,} COMP rules, {share} % fit, batch {batch:,}: a document"
            yield Figure("metadata", name, cost, _MILLIS)


def _over_evaluation(place: Place, base: int, batch: int) -> Figure:
    """How many times longer it takes to ask every rule anew than to filter a batch."""
    with Registry.open(f"sqlite:///{place.work / 'anew.db'}") as registry:
        registry.subscribe("lmr", rules("PATH", base))
        filtered = _milliseconds(registry, base, batch, 0) * batch
        registry.apply([document(number, 0) for number in range(min(base, 1_000))])
        with registry.database.reading() as connection:
            prepare(connection)
            ends = list(connection.execute(subscriptions.select()).all())[:: max(base // _ASKED_ALONE, 1)]
            begun = time.perf_counter()
            for row in ends:
                matching.evaluated(connection, [row.rule])
            anew = (time.perf_counter() - begun) * 1e3 / len(ends) * base
    name = f"every one of {base:,} PATH rules anew, over the filter of a batch of {batch:,}"
    return Figure(
        "metadata", name, anew / filtered, "x", OVER_EVALUATION if place.size is None else None, at_least=True
    )
