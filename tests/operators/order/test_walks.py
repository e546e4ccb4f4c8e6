"""The calls of `naive`, `sequential` and along chains, one by one, against the operators paper's text.

By its section 4 they are chosen ahead, and none may be made that the text would not make.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from bench.operators_paper import calls_made
from triplewire.operators.order.greedy import order_named, ordered
from triplewire.operators.order.learned import Expected
from triplewire.operators.order.protocol import Conjunctions

Lists = list[list[int]]


def naive(lists: Lists, truth: NDArray[np.bool_], order: list[int]) -> list[int]:
    """Each subscription until a call of it is false; outcomes are used again."""
    made: dict[int, None] = {}
    for subscription in order:
        for call in lists[subscription]:
            made[call] = None
            if not truth[call]:
                break
    return list(made)


def sequential(lists: Lists, truth: NDArray[np.bool_], order: list[int]) -> list[int]:
    """All calls of an open subscription, also once it is closed, that an open one needs."""
    made: dict[int, None] = {}
    undecided = set(order)
    for subscription in order:
        if subscription not in undecided:
            continue
        for call in lists[subscription]:
            if call not in made and any(call in lists[other] for other in undecided):
                made[call] = None
                if not truth[call]:
                    undecided -= {other for other in undecided if call in lists[other]}
    return list(made)


def chains(lists: Lists, truth: NDArray[np.bool_], order: list[int]) -> list[int]:
    """The calls of an open subscription until it is closed; a false one closes all that have it."""
    made: dict[int, None] = {}
    undecided = set(order)
    for subscription in order:
        for call in lists[subscription]:
            if subscription not in undecided:
                break
            if call not in made:
                made[call] = None
                if not truth[call]:
                    undecided -= {other for other in undecided if call in lists[other]}
    return list(made)


TEXTS: dict[str, Callable[[Lists, NDArray[np.bool_], list[int]], list[int]]] = {
    "naive": naive,
    "sequential": sequential,
    "sub-order": chains,
}


def scene(seed: int) -> tuple[Conjunctions, Expected, NDArray[np.bool_]]:
    """Subscriptions, what is expected of their calls, and what comes of them: seldom, and often, something else."""
    chance = random.Random(seed)
    calls = chance.randint(3, 60)
    lists = [chance.sample(range(calls), chance.randint(1, min(6, calls))) for _ in range(chance.randint(1, 80))]
    offset = np.append(0, np.cumsum([len(each) for each in lists])).astype(np.int32)
    asked = Conjunctions.of(offset, np.array([call for each in lists for call in each]))
    true = np.random.default_rng(seed).choice([0.01, 0.1, 0.5, 0.95], len(asked.row))
    drawn = np.random.default_rng(seed + 1).random(len(true)) < (true if seed % 3 else 1 - true)
    return asked, Expected(1 - true, np.ones(len(true))), drawn


@pytest.mark.parametrize("order", TEXTS)
def test_the_calls_are_those_of_the_paper(order: str) -> None:
    for seed in range(60):
        asked, expected, truth = scene(seed)
        subscriptions, call = np.arange(len(asked.offset) - 1), asked.call
        if order == "sub-order":
            subscriptions, call = ordered(asked, expected)
        lists = [part.tolist() for part in np.split(call, asked.offset[1:-1])]
        made = calls_made(order_named(order), asked, truth, expected, direct=True)
        assert made.tolist() == TEXTS[order](lists, truth, subscriptions.tolist()), seed
