"""`sub-order` (operators paper, sections 4.2 to 4.4): subscriptions as chains, in the order that saves most calls.

A chain has the calls of a subscription by ascending probability to be true; with costs, by ascending c / (1 - p). Calls
that two chains share are their links. Which of two chains comes first is worth the sum over their links of
(1 - p) (P2 C1 - P1 C2), where P is the product of the probabilities above a link and C the expected cost of the calls
above it, without earlier links. Pairs with the largest savings become edges of paths; the paths are the order.
"""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from triplewire.kernels.calls import chains as kernels
from triplewire.kernels.calls.event import Event
from triplewire.kernels.calls.in_order import CHAINS
from triplewire.operators.order.in_order import walk
from triplewire.operators.order.protocol import Conjunctions, Expected, Numbers, Plan

LINKS = 8  # chains that each is paired with for one of its calls: the next that have it
AGAIN = 4  # the order is made anew after 1, 4, 16 ... publications, as more is known of the calls


@dataclass(slots=True)
class _Made:
    """The order of some conjunctions: `order` of the subscriptions, `chain` instead of `Conjunctions.call`."""

    order: Numbers
    chain: Numbers
    publications: int = 0
    next: int = 1


class SubOrder:
    """The order is made once for many publications, when the first of them comes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: weakref.WeakKeyDictionary[Conjunctions, _Made] = weakref.WeakKeyDictionary()

    def plan(self, event: Event, conjunctions: Conjunctions, expected: Expected, together: bool = False) -> Plan:
        """See `CallOrder`."""
        with self._lock:
            made = self._made.get(conjunctions)
            if made is None or made.publications == made.next:
                order, chain = ordered(conjunctions, expected)
                before = made or _Made(order, chain)
                made = _Made(order, chain, before.publications, before.next * (AGAIN if before.publications else 1))
                self._made[conjunctions] = made
            made.publications += 1
        is_open = np.zeros(len(event.state), np.bool_)
        is_open[event.candidate] = True
        return walk(event._replace(call=made.chain), made.order[is_open[made.order]], CHAINS)


def ordered(conjunctions: Conjunctions, expected: Expected) -> tuple[Numbers, Numbers]:
    """The subscriptions in the order of the paper, and the chain of each."""
    offset, call, cost, true = conjunctions.offset, conjunctions.call, expected.cost, 1 - expected.false
    weight, chain = ranks(cost / expected.false, np.diff(conjunctions.back_offset)), np.empty_like(call)
    kernels.chained(offset, call, weight, chain)
    count, room = len(offset) - 1, LINKS * len(call)
    edges, savings = np.empty((room, 2), np.int32), np.empty(room)
    back_offset, back = conjunctions.back_offset, conjunctions.back
    length = kernels.linked(offset, chain, back_offset, back, weight, true, cost, LINKS, edges, savings)
    largest = np.argsort(-savings[:length], kind="stable")
    neighbour, value = np.empty((count, 2), np.int32), np.empty((count, 2))
    kernels.paths(edges, savings, largest, np.empty(count, np.int32), neighbour, value)
    path, start, total = np.empty(count, np.int32), np.empty(count, np.int64), np.empty(count)
    paths = kernels.walked(neighbour, value, path, start, total, np.zeros(count, np.bool_))
    ends = np.append(start[1:paths], count)
    first = np.argsort(-total[:paths], kind="stable")
    lengths = (ends - start[:paths])[first]
    places = np.arange(count) + np.repeat(start[:paths][first] - (np.cumsum(lengths) - lengths), lengths)
    return path[places], chain


def ranks(weight: NDArray[np.float64], chains: NDArray[np.int64]) -> NDArray[np.float64]:
    """The calls' places by ascending weight; of equal ones, which the paper leaves open, the one comes first that more
    chains have: its links are worth more. Equal for all chains, so that links never cross."""
    place = np.empty(len(weight))
    place[np.lexsort((-chains, weight))] = np.arange(len(weight))
    return place
