"""Which open call about one publication comes next, where pairs are decided one by one: in plain Python, for all calls.

The orders are those of `triplewire.operators.order.greedy`, which has compiled loops for subscriptions that calls with
constants decide. Here a call may have outputs, take values of patterns, or stand in an OR: what each subscription waits
for is told after each outcome.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Container
from random import Random

from triplewire.ir.evaluation.unknown import CallKey
from triplewire.operators.order import GREEDY, SUB_ORDER
from triplewire.operators.order.call_trees import Connective, Predicate, Rated, rated
from triplewire.operators.order.statistics import LearnedCalls

_FREE = 1e-9  # what a call costs whose outcome is kept somewhere: it comes first
_SAME = 1 - 1e-9  # sums of the same numbers differ in the last digits


class CallChoice:
    """Chooses calls about one publication. `tree` gives the calls of a pair by its place, `cost` what an operator
    states; outcomes of `recalled` calls are there already. `is_drawn`: may probabilities be drawn, now and then?"""

    def __init__(
        self,
        order: str,
        tree: Callable[[int], Connective],
        learned: LearnedCalls,
        cost: Callable[[str], float | None],
        recalled: Container[CallKey] = (),
        is_drawn: bool = True,
    ) -> None:
        self._order, self._tree, self._learned, self._cost, self._recalled = order, tree, learned, cost, recalled
        self._is_rated = order in (GREEDY, SUB_ORDER)
        self._random: Random | None = learned.drawing() if order == GREEDY and is_drawn else None
        self._waiting: dict[int, Collection[CallKey]] = {}
        self._chances: dict[CallKey, tuple[float, float]] = {}
        self._ratings: dict[int, list[Rated]] = {}
        self._worth: dict[CallKey, dict[int, float]] = {}  # call -> pair -> what it is worth for that
        self._sums: dict[CallKey, float] = {}  # of all pairs
        self._raised: dict[CallKey, None] = {}  # those that have become worth more since the last choice
        # (-worth, when it was first met, call): no call is worth more than it is here
        self._heap: list[tuple[float, int, CallKey]] = []
        self._met: dict[CallKey, int] = {}
        self._predicates: dict[CallKey, dict[str, Predicate]] = {}  # those with conditions, by these

    def waits(self, place: int, calls: Collection[CallKey]) -> None:
        """These are the calls that a pair waits for by now, those that more depends on first; none: it is decided."""
        if calls:
            self._waiting[place] = calls
        else:
            self._waiting.pop(place, None)
        if not self._is_rated:
            return
        for key in dict.fromkeys(rating.key for rating in self._ratings.pop(place, ())):
            self._sums[key] -= self._worth[key].pop(place)
            if not self._worth[key]:
                del self._worth[key], self._sums[key]
        if not calls:
            return
        ratings = self._ratings[place] = rated(self._tree(place), calls, self._chance)
        for key, rate in ratings:
            worth = self._worth.setdefault(key, {})
            worth[place] = worth.get(place, 0.0) + rate
            self._sums[key] = self._sums.get(key, 0.0) + rate
            self._raised[key] = None

    def next(self) -> CallKey:
        """The call to make. Some pair waits."""
        if self._order == GREEDY:
            return self._worth_most()
        place = next(iter(self._waiting))
        if not self._is_rated:
            return next(iter(self._waiting[place]))
        # of calls that are worth the same for this pair, the one that more pairs wait for
        return max(self._ratings[place], key=lambda rating: (rating.rate, len(self._worth[rating.key]))).key

    def _worth_most(self) -> CallKey:
        while True:
            for key in self._raised:
                if key in self._sums:
                    heapq.heappush(self._heap, (-self._sums[key], self._met.setdefault(key, len(self._met)), key))
            self._raised.clear()
            worth, _, key = heapq.heappop(self._heap)
            if key in self._sums:
                if self._sums[key] >= -worth * _SAME:
                    return key
                self._raised[key] = None

    def predicates(self, key: CallKey) -> Collection[Predicate]:
        """Those with conditions that a call is part of, each once, as far as pairs have waited for it."""
        return self._predicates.get(key, {}).values()

    def _chance(self, key: CallKey, predicate: Predicate) -> tuple[float, float]:
        known = predicate.key(key)
        if (chance := self._chances.get(known)) is None:
            true, _ = self._learned.chance(known, None, self._random)
            _, cost = self._learned.chance(key, self._cost(key.operator), None)
            chance = self._chances[known] = true, _FREE if key in self._recalled else cost
        if predicate.text:
            self._predicates.setdefault(key, {})[predicate.text] = predicate
        return chance
