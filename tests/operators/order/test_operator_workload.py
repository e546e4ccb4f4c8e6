"""The real workload of 80,000 conjunctions, under each order: the hashes of its expected answers, and the calls."""

from __future__ import annotations

import hashlib
import json
from itertools import islice
from pathlib import Path

import pytest

import shared_data
from operators.scenes import Counting, engine
from triplewire import Publication
from triplewire.model.operator import Argument
from triplewire.model.terms import Literal
from triplewire.operators.order import ORDERS

EVENTS = 5
WORKLOAD = "10-workloads/operator-"


@pytest.fixture(scope="module")
def subscriptions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of all of them, each under its number."""
    file = tmp_path_factory.mktemp("operators") / "subscriptions.jsonl"
    with file.open("w") as out:
        for number, line in enumerate(shared_data.lines(f"{WORKLOAD}subscriptions-80k.txt.gz")):
            query = ", ".join(f"holds({predicate})" for predicate in line.split())
            out.write(json.dumps({"id": str(number), "language": "predicates", "query": query}) + "\n")
    return file


@pytest.mark.slow
def test_the_answers_of_each_order(subscriptions: Path) -> None:
    rows = [line.rstrip("\n").split("\t") for line in islice(shared_data.lines(f"{WORKLOAD}events-1000.tsv.gz"), 1, EVENTS + 1)]
    true = {event: frozenset(predicates.split()) for event, predicates in rows}
    expected = [
        line.rstrip("\n").split("\t") for line in islice(shared_data.lines(f"{WORKLOAD}expected.tsv.gz"), 1, EVENTS + 1)
    ]

    def holds(publication: Publication, arguments: tuple[Argument, ...]) -> bool:
        (number,) = arguments
        assert isinstance(number, Literal)
        return number.lexical in true[publication.id]

    calls = {}
    for order in ORDERS:
        counting = Counting()
        counting.add("holds", holds)
        matching = engine("trie", counting, operator_order=order)
        matching.load_subscriptions(str(subscriptions))
        result = matching.match([Publication(event, ()) for event in true])
        told = []
        for event in true:
            ids = sorted(match.subscription for match in result if match.publication == event)
            told.append([event, str(len(ids)), hashlib.sha256(" ".join(ids).encode()).hexdigest()[:16]])
        assert sorted(told) == sorted(expected), order
        assert set(counting.asked.values()) == {1}, order
        calls[order] = result.stats.operators.calls
        assert calls[order] == counting.asked.total(), order
    assert calls["greedy"] == min(calls.values()), calls
    assert calls["greedy"] <= 0.9 * min(calls["naive"], calls["sequential"]), calls
