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

from triplewire.forks import new_lock
from triplewire.kernels.calls import chains as kernels
from triplewire.kernels.calls.event import Event
from triplewire.kernels.calls.in_order import CHAINS
from triplewire.operators.order.in_order import walk
from triplewire.operators.order.protocol import Conjunctions, Expected, Numbers, Plan

LINKS = 8  # chains that each is paired with for one of its calls: the next that have it
AGAIN = 4  # the order is made anew after 1, 4, 16 ... publications, as more is known of the calls
LOOK = 16  # publications between looks at how far what is expected has drifted from what the order was made with
DRIFT = 0.25  # mean change of ln(cost / probability to be false) after which it is made anew as well


@dataclass(slots=True)
class _Made:
    """The order of some conjunctions: `order` of the subscriptions, `chain` instead of `Conjunctions.call`."""

    order: Numbers
    chain: Numbers
    weight: NDArray[np.float64]  # of each call: what the order was made with
    publications: int = 0
    next: int = 1

    def is_due(self, weight: NDArray[np.float64]) -> bool:
        """Should the order be made anew, now that calls weigh this?"""
        if self.publications >= self.next:
            return True
        return self.publications % LOOK == 0 and float(np.abs(np.log(weight / self.weight)).mean()) > DRIFT


class SubOrder:
    """The order is made when the first publication comes, and anew in the background as more is known of the calls."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._made: weakref.WeakKeyDictionary[Conjunctions, _Made] = weakref.WeakKeyDictionary()
        self._working: threading.Thread | None = None

    def plan(self, event: Event, conjunctions: Conjunctions, expected: Expected, together: bool = False) -> Plan:
        """See `CallOrder`."""
        with self._lock:
            made = self._made.get(conjunctions)
            if made is None:
                made = self._made[conjunctions] = _made(conjunctions, expected)
            elif not expected.is_drawn and not self._is_working() and made.is_due(expected.cost / expected.false):
                self._working = threading.Thread(
                    target=self._anew, args=(conjunctions, expected), name="triplewire-order", daemon=True
                )
                self._working.start()
            made.publications += 1
        is_open = np.zeros(len(event.state), np.bool_)
        is_open[event.candidate] = True
        return walk(event._replace(call=made.chain), made.order[is_open[made.order]], CHAINS, expected)

    def _anew(self, conjunctions: Conjunctions, expected: Expected) -> None:
        """Make the order anew, while publications go on with the one before."""
        try:
            made = _made(conjunctions, expected)
            with self._lock:
                before = self._made[conjunctions]
                made.publications = before.publications
                made.next = before.next
                while made.next <= made.publications:
                    made.next *= AGAIN
                self._made[conjunctions] = made
        finally:
            self._working = None

    def _is_working(self) -> bool:
        """A thread of the parent is none of a fork."""
        working = self._working
        return working is not None and working.is_alive()

    def settle(self) -> None:
        """Wait for the order that is being made."""
        working = self._working
        if working is not None:
            working.join()


def _made(conjunctions: Conjunctions, expected: Expected) -> _Made:
    return _Made(*ordered(conjunctions, expected), expected.cost / expected.false)


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
