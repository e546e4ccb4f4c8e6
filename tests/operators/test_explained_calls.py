"""What an explanation says of operator calls (`tests/cases/operators/explained_calls.toml`).

Calls are counted: an explanation makes those that it names, each once, and no other.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from operators.scenes import Counting, E, engine, publication, usual
from triplewire import Engine, Publication
from triplewire.extend import Argument, Parameter

CASES = tomllib.loads((Path(__file__).parents[1] / "cases" / "operators" / "explained_calls.toml").read_text())["case"]
PUBLICATION = publication("urn:p", "a p 1")


class Dear:
    """dear(x) is true, and costs 50."""

    name, parameters, cost = "dear", (Parameter("x"),), 50.0

    def __init__(self, counting: Counting) -> None:
        self.counting = counting

    def evaluate(self, publication: Publication, arguments: tuple[Argument, ...]) -> bool:
        self.counting.asked[publication.id, self.name, arguments] += 1
        return True


def with_dear(matcher: str = "trie", **given: Any) -> tuple[Engine, Counting]:
    """An engine with the operators of the cases."""
    counting = usual()
    counting.operators["dear"] = Dear(counting)
    return engine(matcher, counting, **given), counting


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_what_is_said_of_calls(case: dict[str, Any]) -> None:
    explaining, counting = with_dear(operator_order=case.get("order", "greedy"))
    explaining.settle()
    for query in case.get("before", ()):
        explaining.subscribe(query, "predicates")
    explaining.match(PUBLICATION)
    counting.asked.clear()
    prefixes = {"": E} if case.get("language") == "sparql" else None
    explaining.subscribe(case["query"], case.get("language", "predicates"), id="query", prefixes=prefixes)
    explanation = explaining.explain("query", PUBLICATION)
    calls = explanation.calls
    assert [f"{call.call}: {call.outcome}" for call in calls.made] == case.get("made", [])
    assert [f"{skipped.call}: {skipped.why}" for skipped in calls.skipped] == case.get("skipped", [])
    assert calls.for_explanation == ()
    assert sorted(counting.asked.values()) == [1] * len(calls.made)
    if "cost" in case:
        assert calls.cost == pytest.approx(case["cost"], abs=20)  # an operator that states nothing costs its seconds
    told = explanation.to_dict()["calls"]
    assert json.loads(json.dumps(told)) == told
    assert [entry["call"] for entry in told["made"]] == [call.call for call in calls.made]
    assert told["seconds"] == sum(entry["seconds"] for entry in told["made"])
    matched = {match.subscription for match in explaining.match(PUBLICATION)}
    assert explanation.matched == ("query" in matched)


@pytest.mark.parametrize("matcher", ["trie", "reference"])  # the interpreted tier matches as "reference" does
def test_the_calls_of_a_match_are_used_again(matcher: str) -> None:
    explaining, counting = with_dear(matcher)
    explaining.settle()
    explaining.subscribe("dear(1), yes(2)", "predicates", id="query")
    result = explaining.match(PUBLICATION)
    (match,) = result
    counting.asked.clear()
    calls = explaining.explain(match).calls
    assert [call.reused for call in calls.made] == ["the match before"] * 2
    assert (calls.cost, calls.seconds) == (0, 0)
    assert "0 made, 2 reused, 0 skipped" in str(explaining.explain(match))
    assert not counting.asked


def test_no_calls_no_word_of_them() -> None:
    explaining, _ = with_dear()
    explaining.subscribe("ASK { ?s ?p ?x }", id="query")
    explanation = explaining.explain("query", PUBLICATION)
    assert not explanation.calls
    assert "operator" not in str(explanation)
