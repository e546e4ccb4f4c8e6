"""The bench of expensive operators: its generator, its claims, and that each target is measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench import operators as targets
from bench import operators_paper as paper
from bench.operators_paper import Plot, Points, Run, Setting, learning
from bench.workloads.catalogue import Place
from bench.workloads.operators import RECIPES, costs, generated
from triplewire.operators.order import ORDERS


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("alpha", [None, 1.0])
def test_the_generator_does_what_the_paper_says(recipe: str, alpha: float | None) -> None:
    chance = np.random.default_rng(1)
    made = generated(4_000, 2_000, 5, alpha, recipe, chance)
    lengths = np.diff(made.offset)
    assert (lengths.min(), lengths.max()) == (3, 5)
    lists = np.split(made.predicate, made.offset[1:-1])
    assert all(len(set(calls.tolist())) == len(calls) for calls in lists)
    assert np.mean([np.prod(made.true[calls]) for calls in lists]) == pytest.approx(0.002, rel=0.01)
    if recipe == "equal odds":
        assert made.true[0] == pytest.approx(0.171, abs=0.003)


def test_correlated_events_keep_the_probabilities() -> None:
    chance = np.random.default_rng(2)
    made = generated(100, 500, 5, None, "equal odds", chance)
    together = np.array([made.event(chance, 0.5) for _ in range(4_000)])
    assert together.mean(axis=0) == pytest.approx(made.true, abs=0.03)
    assert np.corrcoef(together[:, 0], together[:, 1])[0, 1] > 0.1
    assert abs(np.corrcoef(together[:, 0], together[:, 499])[0, 1]) < 0.1


def test_costs_lie_in_four_decades() -> None:
    middle = np.quantile(costs(20_000, np.random.default_rng(3)), [0.025, 0.975])
    assert middle[1] / middle[0] == pytest.approx(10_000, rel=0.3)


def test_dear_calls_are_avoided() -> None:
    chance = np.random.default_rng(4)
    made = generated(1_000, 400, 5, 1.0, "equal odds", chance)
    events, cost = [made.event(chance) for _ in range(8)], costs(400, chance)
    runs = {order: learning(made, order, events, cost) for order in ("greedy", "sequential")}
    assert runs["greedy"].cost < 0.8 * runs["sequential"].cost


def test_claims_hold_and_fail() -> None:
    plot = Plot("4", "subscriptions", (Setting(100, 50, 5, "uniform"), Setting(400, 50, 5, "uniform")))
    calls = {"naive": (50, 200), "sequential": (20, 40), "sub-order": (18, 42), "greedy": (15, 30)}
    made: Points = {
        (recipe, place, order): Run(calls[order][number], 0.0, 0.001)
        for recipe in RECIPES
        for number, place in enumerate((100, 400))
        for order in ORDERS
    }
    held = {one.claim.partition(": ")[2]: (one.held, one.measured) for one in paper.claims(plot, made)}
    assert held == {
        "sequential and sub-order grow less than the subscriptions do": (True, "2.3 in 4 times"),
        "naive grows as the subscriptions do": (True, "4.0 in 4 times"),
        "sub-order makes no more calls than sequential": (False, "1.050 of them at most"),
        "both are almost 80 % below naive at the end": (True, "80.0%, 79.0%"),
    }


@pytest.mark.slow
def test_all_is_measured_at_a_small_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No figure has a target, as none is stated for this size; none is missing."""
    for name, value in (("SECONDS", 0.005), ("ALONE", 64), ("PLANNED", 8), ("EVENTS", 4), ("SELECTED", 4)):
        monkeypatch.setattr(targets, name, value)
    monkeypatch.setattr(paper, "EVENTS", 1)
    rows = list(targets.measure(Place(tmp_path, 400), [], "trie"))
    values = {row.name: row.value for row in rows}
    assert [name for name, value in values.items() if value is None] == ["real workload"]
    assert all(row.target is None for row in rows)
    assert 0 < values["selection first: calls with a pattern of 1 % selectivity over those without"] < 40  # type: ignore[operator]
    assert values["generated, Zipf 1, odds as 1 / popularity: sub-order below naive"] > 50  # type: ignore[operator]
