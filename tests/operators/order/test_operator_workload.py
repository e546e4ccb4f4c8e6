"""A part of the real workload of conjunctions under each order: expected answers, and how many calls it takes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

import shared_data
from amounts import usually
from operators.scenes import Counting, engine
from triplewire import Engine, Publication
from triplewire.model.operator import Argument, Parameter, Verdict
from triplewire.model.terms import Literal
from triplewire.operators.order import ORDERS

EVENTS, SUBSCRIPTIONS = 5, usually(3_000, 8_000)  # of 1,000 and 80,000
WORKLOAD = "10-workloads/operator-"


def rows(name: str) -> list[list[str]]:
    """The first lines of a table of the workload, without its head."""
    lines = islice(shared_data.lines(f"{WORKLOAD}{name}.tsv.gz"), 1, EVENTS + 1)
    return [line.rstrip("\n").split("\t") for line in lines]


class AtOnce:
    """The operator of the workload, of which several calls run at once."""

    name, parameters, concurrency = "holds", (Parameter("number"),), 4

    def __init__(self, evaluate: Callable[[Publication, tuple[Argument, ...]], Verdict]) -> None:
        self.evaluate = evaluate


@pytest.mark.slow
def test_the_answers_of_each_order(tmp_path: Path) -> None:
    conjunctions = [line.split() for line in shared_data.lines(f"{WORKLOAD}subscriptions-80k.txt.gz")]
    true = {event: frozenset(predicates.split()) for event, predicates in rows("events-1000")}
    expected: set[tuple[str, str]] = set()
    for event, matched, sha in rows("expected"):
        ids = [str(number) for number, calls in enumerate(conjunctions) if true[event].issuperset(calls)]
        assert (str(len(ids)), sha) == (matched, hashlib.sha256(" ".join(ids).encode()).hexdigest()[:16])
        expected |= {(event, id_) for id_ in ids if int(id_) < SUBSCRIPTIONS}

    def holds(publication: Publication, arguments: tuple[Argument, ...]) -> bool:
        (number,) = arguments
        assert isinstance(number, Literal)
        return number.lexical in true[publication.id]

    file = tmp_path / "subscriptions.jsonl"
    with file.open("w") as out:
        for number, conjunction in enumerate(conjunctions[:SUBSCRIPTIONS]):
            query = ", ".join(f"holds({predicate})" for predicate in conjunction)
            out.write(json.dumps({"id": str(number), "language": "predicates", "query": query}) + "\n")
    calls = {}
    for order in ORDERS:
        counting = Counting()
        counting.add("holds", holds)
        matching = engine("trie", counting, operator_order=order)
        matching.load_subscriptions(str(file))
        result = matching.match([Publication(event, ()) for event in true])
        assert {(match.publication, match.subscription) for match in result} == expected, order
        assert set(counting.asked.values()) == {1}, order
        calls[order] = result.stats.operators.calls
        assert calls[order] == counting.asked.total(), order
        together = AtOnce(counting.operators["holds"].evaluate)
        counting.asked.clear()
        matching = Engine(matcher="trie", operators={"holds": together}, operator_order=order)
        matching.load_subscriptions(str(file))
        result = matching.match([Publication(event, ()) for event in list(true)[:2]])
        wanted = {pair for pair in expected if pair[0] in list(true)[:2]}
        assert {(match.publication, match.subscription) for match in result} == wanted, f"{order}, several at once"
        assert set(counting.asked.values()) == {1}, order
        assert result.stats.operators.calls == counting.asked.total(), order
    assert calls["greedy"] == min(calls.values()), calls
    assert calls["greedy"] <= 0.92 * min(calls["naive"], calls["sequential"]), calls
