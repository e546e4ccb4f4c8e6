"""Calls with outputs take part in every order: counted, in all matchers and tiers, beside the same with constants."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from triplewire import Engine, Publication
from triplewire.extend import Argument, Parameter, Verdict
from triplewire.model.terms import IRI, Literal, Triple
from triplewire.operators.order import ORDERS

FILE = Path(__file__).parents[2] / "cases" / "operators" / "order_with_outputs.toml"
CASES = tomllib.loads(FILE.read_text())["case"]
TWO_ARGUMENTS = ("near",)


class Answering:
    """An operator that gives one answer, and counts its calls."""

    def __init__(self, name: str, answer: bool | int, cost: float | None) -> None:
        self.name, self.answer, self.calls = name, answer, 0
        self.parameters = tuple(map(Parameter, "xy" if name in TWO_ARGUMENTS else "x"))
        if cost is not None:
            self.cost = cost

    def evaluate(self, publication: Publication, arguments: tuple[Argument, ...]) -> Verdict:
        self.calls += 1
        if isinstance(self.answer, bool):
            return self.answer
        if None not in arguments:
            return True
        row = Literal(str(self.answer), "http://www.w3.org/2001/XMLSchema#integer")
        return [tuple([row if argument is None else argument for argument in arguments])]


def called(
    case: dict[str, Any], queries: list[str], matcher: str, order: str
) -> tuple[dict[str, int], float, list[str]]:
    """How often each operator is called, what that costs, and the pairs that match."""
    costs = case.get("cost", {})
    operators = {name: Answering(name, answer, costs.get(name)) for name, answer in case["answers"].items()}
    engine = Engine(matcher=matcher, operators=operators, operator_order=order)
    for number in range(case.get("subscriptions", 1)):
        for query in queries:
            language, _, text = query.rpartition(": ")
            engine.subscribe(text.replace("{n}", str(number)), language or "predicates", id=f"s{number}")
    cost, pairs = 0.0, []
    triple = Triple(IRI("urn:s"), IRI("urn:p"), Literal("1"))
    for number in range(case["events"]):
        result = engine.match(Publication(f"urn:{number}", (triple,)))
        pairs += [f"{match.publication} {match.subscription}" for match in result]
        assert not list(result.refusals)
        counts = result.stats.operators
        cost += counts.cost
        assert counts.cost == sum(costs.get(name, 0) * own["calls"] for name, own in counts.by_name.items())
    return {name: operator.calls for name, operator in operators.items()}, cost, sorted(pairs)


@pytest.mark.parametrize("matcher", ["trie", "reference"])  # the interpreted tier matches as "reference" does
@pytest.mark.parametrize("order", ["greedy", "sub-order"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_no_more_calls_than_with_constants(case: dict[str, Any], order: str, matcher: str) -> None:
    calls, cost, _ = called(case, case["queries"], matcher, order)

    assert all(count <= case["calls"][name] for name, count in calls.items()), calls
    if case["twins"]:
        twin_calls, twin_cost, _ = called(case, case["twins"], matcher, order)
        assert sum(calls.values()) <= 1.1 * sum(twin_calls.values())
        assert cost <= 1.1 * twin_cost


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_the_order_changes_no_answer(case: dict[str, Any]) -> None:
    few = case | {"events": 3}
    answers = [called(few, case["queries"], matcher, order)[2] for matcher in ("trie", "reference") for order in ORDERS]
    assert all(pairs == answers[0] for pairs in answers)
