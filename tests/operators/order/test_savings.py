"""The formulas of `sub-order` (operators paper, section 4.2) against the enumeration of all outcomes."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest

from triplewire.kernels.calls import chains as kernels
from triplewire.operators.order.greedy import ordered
from triplewire.operators.order.learned import Expected
from triplewire.operators.order.protocol import Conjunctions

CALLS = 8


def expected_cost(pair: list[list[int]], true: np.ndarray, cost: np.ndarray) -> float:
    """Of two chains, one after the other, over all outcomes. A call is made once, a chain ends at a false one."""
    total = 0.0
    for outcome in itertools.product((False, True), repeat=CALLS):
        likely = math.prod(true[i] if outcome[i] else 1 - true[i] for i in range(CALLS))
        made: set[int] = set()
        for chain in pair:
            if any(call in made and not outcome[call] for call in chain):
                continue  # closed by a call of the other chain
            for call in chain:
                made.add(call)
                if not outcome[call]:
                    break
        total += likely * sum(cost[call] for call in made)
    return total


@pytest.mark.parametrize("links", [1, 2, 3])
@pytest.mark.parametrize("unequal", [False, True], ids=["equal costs", "unequal costs"])
def test_what_it_saves_to_take_one_of_two_chains_first(links: int, unequal: bool) -> None:
    chance = random.Random(f"{links} {unequal}")
    for _ in range(6):
        true = np.array([chance.uniform(0.05, 0.95) for _ in range(CALLS)])
        cost = np.array([10 ** chance.uniform(-2, 2) if unequal else 1.0 for _ in range(CALLS)])
        weight = cost / (1 - true)
        drawn = chance.sample(range(CALLS), CALLS)
        shared, rest = drawn[:links], drawn[links:]
        cut = chance.randint(1, len(rest) - 1)
        two = [sorted([*shared, *own], key=lambda call: float(weight[call])) for own in (rest[:cut], rest[cut:])]
        offset = np.array([0, len(two[0]), CALLS + links], np.int32)
        chain = np.array(two[0] + two[1], np.int32)
        said = kernels.saving(offset, chain, weight, true, cost, 0, 1)
        assert said == pytest.approx(expected_cost(two, true, cost) - expected_cost(two[::-1], true, cost)), two


def test_what_is_rare_or_dear_behind_a_shared_call_comes_later() -> None:
    """Two chains that share the call 0. Above it, one has a call that is seldom true, the other nothing: it comes
    first, as its P/C is larger. A chain has its calls by ascending c / (1 - p)."""
    asked = Conjunctions.of(np.array([0, 2, 4], np.int32), np.array([0, 1, 0, 2]))
    true, cost = np.array([0.5, 0.1, 0.4]), np.ones(3)
    order, chain = ordered(asked, Expected(1 - true, cost))
    assert chain.tolist() == [1, 0, 2, 0]
    assert order.tolist() == [1, 0]
    cost[2] = 10
    order, chain = ordered(asked, Expected(1 - true, cost))
    assert chain.tolist() == [1, 0, 0, 2]
    assert order.tolist() == [1, 0]
    order, chain = ordered(asked, Expected(1 - true, np.array([9.0, 1.0, 1.0])))
    assert chain.tolist() == [1, 0, 2, 0]
    assert order.tolist() == [1, 0]  # 0.4 / 1 against 0.1 / 1


def test_every_chain_is_in_the_order_once() -> None:
    chance = random.Random(3)
    for _ in range(50):
        chains = [chance.sample(range(12), chance.randint(1, 5)) for _ in range(chance.randint(1, 30))]
        offset = np.cumsum([0, *map(len, chains)]).astype(np.int32)
        asked = Conjunctions.of(offset, np.array([call for calls in chains for call in calls]))
        calls = len(asked.row)
        false = np.array([chance.uniform(0.05, 0.95) for _ in range(calls)])
        order, chain = ordered(asked, Expected(false, np.ones(calls)))
        assert sorted(order.tolist()) == list(range(len(chains)))
        for number, own in enumerate(chains):
            mine = chain[offset[number] : offset[number + 1]].tolist()
            assert sorted(asked.row[mine].tolist()) == sorted(own)
            assert mine == sorted(mine, key=lambda call: -false[call])
