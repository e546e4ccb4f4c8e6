"""Engines with subscriptions of calls, and what they take."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

from triplewire.bench.workloads.operators import CallWorkload, Truths
from triplewire.engine import Engine
from triplewire.model.operator import Argument, Operator
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Literal, Triple
from triplewire.operators import function_operator

_KINDS = 100  # of subscriptions and events; each event has one
_SUBSCRIBED = 100


def call_engine(work: Path, workload: CallWorkload, truths: list[Truths], matcher: str) -> Engine:
    """An engine whose subscriptions are calls alone, loaded from a file."""
    return _loaded(work, workload, truths, matcher, lambda number, calls: {
        "id": str(number), "language": "predicates", "query": ", ".join(f"holds({call})" for call in calls),
    })  # fmt: skip


def with_kinds(work: Path, workload: CallWorkload, truths: list[Truths], matcher: str) -> int:
    """How many calls there are where each subscription has a pattern as well, which an event of a hundred satisfies."""

    def row(number: int, calls: list[int]) -> dict[str, str]:
        conditions = " && ".join(f'op:holds("{call}")' for call in calls)
        query = f'SELECT * {{ ?event <urn:kind> "k{number % _KINDS}" FILTER ({conditions}) }}'
        return {"id": str(number), "language": "sparql", "query": query}

    return asked(_loaded(work, workload, truths, matcher, row), truths)


def _loaded(
    work: Path,
    workload: CallWorkload,
    truths: list[Truths],
    matcher: str,
    row: Callable[[int, list[int]], dict[str, str]],
) -> Engine:
    def holds(publication: Publication, arguments: tuple[Argument, ...]) -> bool:
        (predicate,) = arguments
        assert isinstance(predicate, Literal)
        return bool(truths[int(publication.id)][int(predicate.lexical)])

    operators: dict[str, Operator] = {"holds": function_operator("holds", ["number"], holds)}
    engine, file = Engine(operators=operators, matcher=matcher), work / "operators.jsonl"
    predicate, ends = workload.predicate.tolist(), workload.offset.tolist()
    with file.open("w", encoding="utf-8") as out:
        for number, (begin, end) in enumerate(pairwise(ends)):
            out.write(json.dumps(row(number, predicate[begin:end])) + "\n")
    engine.load_subscriptions(file)
    engine.settle()
    file.unlink()
    return engine


def _publications(truths: list[Truths]) -> Iterator[Publication]:
    for number in range(len(truths)):
        name = IRI(f"urn:event:{number}")
        yield Publication(str(number), (Triple(name, IRI("urn:kind"), Literal(f"k{number % _KINDS}")),))


def planned(engine: Engine, truths: list[Truths]) -> list[float]:
    """The seconds that choosing the calls of each event took."""
    return [engine.match(publication).stats.operators.planning_seconds for publication in _publications(truths)]


def asked(engine: Engine, truths: list[Truths]) -> int:
    """How many calls the events take."""
    return engine.match(_publications(truths)).stats.operators.calls


def subscribe_millis(engine: Engine) -> float:
    """The median time of a further subscription."""
    millis = []
    for number in range(_SUBSCRIBED):
        begun = time.perf_counter()
        engine.subscribe(
            f"holds({number}), holds({number + 7}), holds({3 * number + 11})", "predicates", id=f"+{number}"
        )
        millis.append((time.perf_counter() - begun) * 1e3)
    return statistics.median(millis)
