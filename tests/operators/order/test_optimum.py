"""The orders against the optimum, which is computed for few predicates.

It is found by dynamic programming where outcomes have probabilities, by trying all sets of calls where they are known
(set cover).
"""

from __future__ import annotations

import random
from functools import cache
from itertools import combinations, product

import numpy as np
import pytest
from numpy.typing import NDArray

from bench.operators_paper import calls_made, least_calls
from bench.workloads.operators import CallWorkload
from triplewire.operators.order import ORDERS
from triplewire.operators.order.greedy import order_named
from triplewire.operators.order.learned import Expected
from triplewire.operators.order.protocol import Conjunctions

Subscriptions = frozenset[frozenset[int]]


def drawn(seed: int, predicates: int, subscriptions: int, longest: int) -> tuple[list[list[int]], NDArray[np.float64]]:
    """Subscriptions, and how likely each predicate is true."""
    chance = random.Random(seed)
    lists = [sorted(chance.sample(range(predicates), chance.randint(1, longest))) for _ in range(subscriptions)]
    return lists, np.array([chance.choice((0.05, 0.2, 0.5, 0.8, 0.95)) for _ in range(predicates)])


def workload(lists: list[list[int]], true: NDArray[np.float64]) -> CallWorkload:
    """The same as arrays."""
    offset = np.append(0, np.cumsum([len(calls) for calls in lists])).astype(np.int32)
    return CallWorkload(offset, np.array([call for calls in lists for call in calls], np.int64), true)


def made(order: str, given: CallWorkload, truth: NDArray[np.bool_]) -> set[int]:
    """The predicates that an order calls."""
    asked = Conjunctions.of(given.offset, given.predicate)
    expected = Expected(1 - given.true[asked.row], np.ones(len(asked.row)))
    calls = calls_made(order_named(order), asked, truth, expected).tolist()
    assert len(calls) == len(set(calls)), "a call is made once"
    return set(asked.row[calls].tolist())


def decides(calls: set[int], lists: list[list[int]], truth: NDArray[np.bool_]) -> bool:
    """Do these outcomes decide each subscription?"""
    return all(
        calls.issuperset(needed) or any(call in calls and not truth[call] for call in needed) for needed in lists
    )


def fewest(lists: list[list[int]], truth: NDArray[np.bool_]) -> int:
    """The least number of calls that decide all, by trying all sets of them."""
    everything = sorted({call for calls in lists for call in calls})
    return next(
        size
        for size in range(len(everything) + 1)
        if any(decides(set(calls), lists, truth) for calls in combinations(everything, size))
    )


def expected_optimum(lists: list[list[int]], true: NDArray[np.float64]) -> float:
    """The least expected number of calls of any strategy, which may depend on outcomes: by dynamic programming over
    what is left of the open subscriptions."""

    likely: list[float] = true.tolist()

    @cache
    def least(left: Subscriptions) -> float:
        if not left:
            return 0.0
        return min(
            1.0
            + likely[call] * least(frozenset(rest for needed in left if (rest := needed - {call})))
            + (1 - likely[call]) * least(frozenset(needed for needed in left if call not in needed))
            for call in {call for needed in left for call in needed}
        )

    return least(frozenset(map(frozenset, lists)))


@pytest.mark.parametrize("seed", range(6))
def test_expected_calls_against_the_optimum(seed: int) -> None:
    lists, true = drawn(seed, predicates=6, subscriptions=7, longest=4)
    given, optimum, longest = workload(lists, true), expected_optimum(lists, true), max(map(len, lists))
    mean = dict.fromkeys(ORDERS, 0.0)
    for outcomes in product((False, True), repeat=len(true)):
        truth = np.array(outcomes)
        likely, least = float(np.where(truth, true, 1 - true).prod()), fewest(lists, truth)
        assert least_calls(given, truth, steps=40) <= least + 1e-9
        for order in ORDERS:
            calls = made(order, given, truth)
            assert decides(calls, lists, truth), order
            assert len(calls) >= least, order
            mean[order] += likely * len(calls)
        assert len(made("sequential", given, truth)) <= longest * least, "theorem 2"
    assert all(calls >= optimum - 1e-9 for calls in mean.values())
    assert mean["greedy"] <= 1.15 * optimum


@pytest.mark.slow
def test_the_optimum_of_twelve_predicates() -> None:
    lists, true = drawn(3, predicates=12, subscriptions=9, longest=3)
    given, optimum, chance = workload(lists, true), expected_optimum(lists, true), np.random.default_rng(3)
    events = [given.event(chance) for _ in range(400)]
    mean = {order: np.mean([len(made(order, given, event)) for event in events]) for order in ORDERS}
    assert min(mean.values()) >= 0.95 * optimum, "events are drawn"
    assert mean["greedy"] <= 1.15 * optimum


@pytest.mark.parametrize("seed", range(5))
def test_set_cover(seed: int) -> None:
    """Where all calls are false, those that are made are a cover of the subscriptions (paper, theorem 1)."""
    chance = random.Random(seed)
    sets, elements = 10, 14
    lists = [sorted(chance.sample(range(sets), chance.randint(1, 4))) for _ in range(elements)]
    given, truth = workload(lists, np.full(sets, 1e-6)), np.zeros(sets, np.bool_)
    optimum = fewest(lists, truth)
    assert least_calls(given, truth) <= optimum + 1e-9
    for order in ORDERS:
        assert len(made(order, given, truth)) >= optimum, order
    largest = max(sum(number in needed for needed in lists) for number in range(sets))
    harmonic = sum(1 / number for number in range(1, largest + 1))
    assert len(made("greedy", given, truth)) <= harmonic * optimum


def test_the_bound_is_near_the_optimum_of_a_large_instance() -> None:
    """Disjoint subscriptions need a call each; one call that all share is enough for all."""
    apart = workload([[3 * n, 3 * n + 1, 3 * n + 2] for n in range(50)], np.full(150, 0.5))
    assert least_calls(apart, np.zeros(150, np.bool_)) == pytest.approx(50, rel=0.01)
    shared = workload([[0, n + 1] for n in range(50)], np.full(51, 0.5))
    assert least_calls(shared, np.zeros(51, np.bool_)) == pytest.approx(1, rel=0.01)
    assert least_calls(shared, np.ones(51, np.bool_)) == 51
