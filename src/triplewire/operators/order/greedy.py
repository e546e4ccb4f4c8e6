"""The orders of calls by their names: `order_named`.

`greedy`: next comes the call that closes most open subscriptions for its cost (`triplewire.kernels.calls.greedy`).
What is chosen depends on what is open after each outcome. To ask kernels less often, and operators for several calls at
once, choices are made ahead as long as it is likely that the calls before them are false; none of them is in vain if
one is not, as what is open then is more. The first choices are the same for all publications of which the same is
expected: they are made once.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from triplewire.forks import new_lock
from triplewire.kernels.calls import chains as chain_kernels
from triplewire.kernels.calls import greedy as kernels
from triplewire.kernels.calls.event import CHAINS, EVEN, FALSE, NAIVE, SEQUENTIAL, Event, step, transposed
from triplewire.operators.order import ORDERS, check_order
from triplewire.operators.order.learned import Expected
from triplewire.operators.order.protocol import CallOrder, Conjunctions, Numbers, Plan, Portion

AHEAD = 2_048  # calls that are chosen at once, at most
CERTAINTY = 1e-6  # how probable it is, at least, that none of them but the last is true
MORE = 0.5  # what calls that are chosen ahead with less certainty cost, at most: seconds, or declared units
AGAIN = 16_384  # subscriptions that one expects to open again, at most: that takes longer than to ask the kernel again
_LOGS = 4_096
_NO_CALLS, _NO_OUTCOMES = np.zeros(0, np.int32), np.zeros(0, np.int8)


@dataclass(frozen=True, slots=True)
class _Arranged:
    """Subscriptions in the order in which they are closed where all calls are false and cost the same. What is closed
    together then lies together in memory, also roughly so for other outcomes, which makes the kernels faster. It
    depends on nothing else: what is learned later would change the order of calls that are worth the same.

    `number`: place -> subscription; the others as in `Conjunctions`."""

    number: Numbers
    offset: Numbers
    call: Numbers
    back: Numbers


@dataclass(frozen=True, slots=True)
class _FirstCalls:
    """The first calls for publications of which the same is expected, and where they lead if all are false."""

    expected: Expected
    calls: Numbers
    event: Event
    lists: kernels.Lists


class Greedy:
    """The order that is adapted after each outcome."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._arranged: weakref.WeakKeyDictionary[Conjunctions, _Arranged] = weakref.WeakKeyDictionary()
        self._first: weakref.WeakKeyDictionary[Conjunctions, _FirstCalls] = weakref.WeakKeyDictionary()
        self._logs = np.empty(_LOGS, np.int32)
        kernels.logarithms(self._logs)

    def plan(self, event: Event, conjunctions: Conjunctions, expected: Expected, together: bool = False) -> Plan:
        """See `CallOrder`."""
        with self._lock:
            arranged = self._arranged.get(conjunctions)
            if arranged is None:
                arranged = self._arranged[conjunctions] = _arranged(conjunctions, self._logs)
        room = np.empty(AHEAD, np.int32)
        limits = np.array([CERTAINTY, MORE, np.inf if together else AGAIN])
        is_usual = not expected.is_drawn and not event.outcome.any()
        first = self._first.get(conjunctions) if is_usual else None
        if first is not None and first.expected is expected and first.event.candidate is event.candidate:
            event.outcome[:], event.count[:] = first.event.outcome, first.event.count
            state, lists, calls = first.event.state.copy(), _copied(first.lists), first.calls
            in_order = event._replace(offset=arranged.offset, call=arranged.call, back=arranged.back, state=state)
        else:
            state, lists = event.state[arranged.number], _lists(len(conjunctions.row), self._logs)
            in_order = event._replace(offset=arranged.offset, call=arranged.call, back=arranged.back, state=state)
            kernels.fill(in_order, expected.false, expected.cost, lists)
            length = kernels.step(in_order, expected.false, expected.cost, lists, limits, _NO_CALLS, _NO_OUTCOMES, room)
            calls = room[:length].copy()
            if is_usual:
                after = in_order._replace(outcome=event.outcome.copy(), state=state.copy(), count=event.count.copy())
                self._first[conjunctions] = _FirstCalls(expected, calls, after, _copied(lists))
        while len(calls):
            outcomes = yield Portion(calls)
            length = kernels.step(in_order, expected.false, expected.cost, lists, limits, calls, outcomes, room)
            calls = room[:length].copy()
        event.state[arranged.number] = state


def _lists(calls: int, logs: Numbers) -> kernels.Lists:
    head, link, moved = np.empty(kernels.LISTS, np.int32), np.empty((calls, 4), np.int32), np.empty(calls, np.int32)
    return kernels.Lists(head, link, moved, np.empty(calls, np.bool_), np.zeros(2, np.int64), logs)


def _copied(lists: kernels.Lists) -> kernels.Lists:
    return kernels.Lists._make([*(part.copy() for part in lists[:-1]), lists.logs])


def _arranged(conjunctions: Conjunctions, logs: Numbers) -> _Arranged:
    calls, count = len(conjunctions.row), len(conjunctions.offset) - 1
    event = conjunctions.begun(np.arange(count, dtype=np.int32), _NO_CALLS, _NO_OUTCOMES)
    lists, alike, rank = _lists(calls, logs), np.ones(calls), np.full(calls, calls, np.int32)
    kernels.fill(event, alike, alike, lists)
    limits, room, portion, ranked = np.array([0.0, 0.0, np.inf]), np.empty(AHEAD, np.int32), _NO_CALLS, 0
    while length := kernels.step(
        event, alike, alike, lists, limits, portion, np.full(len(portion), FALSE, np.int8), room
    ):
        portion = room[:length].copy()
        rank[portion] = np.arange(ranked, ranked + length)
        ranked += length
    lengths, closed = np.diff(conjunctions.offset), np.full(count, calls, np.int32)
    with_calls = np.flatnonzero(lengths)
    if len(with_calls):
        closed[with_calls] = np.minimum.reduceat(rank[conjunctions.call], conjunctions.offset[with_calls])
    number = np.argsort(closed, kind="stable").astype(np.int32)
    lengths = lengths[number]
    offset = np.append(0, np.cumsum(lengths)).astype(np.int32)
    call = conjunctions.call[np.arange(offset[-1]) + np.repeat(conjunctions.offset[number] - offset[:-1], lengths)]
    back = np.empty_like(conjunctions.back)
    transposed(offset, call, np.zeros_like(conjunctions.back_offset), back)
    return _Arranged(number, offset, call, back)


# --- `naive` and `sequential` (operators paper, section 4.1): subscription after subscription, in their order ---------

AHEAD_IN_TURN = 128  # calls that are chosen before what came of the first is known, at most
CERTAINTY_IN_TURN = 0.2  # how probable it is, at least, that all but the last of them are guessed right


@dataclass(frozen=True)
class InTurn:
    """NAIVE: each subscription until one of its calls is false. Earlier outcomes are used again; no outcome closes any
    other subscription. SEQUENTIAL: all calls of a subscription that is open, also once it is closed, as long as an open
    subscription needs them. At most d times as many calls as needed, where a subscription has d."""

    way: int

    def plan(self, event: Event, conjunctions: Conjunctions, expected: Expected, together: bool = False) -> Plan:
        """See `CallOrder`."""
        return walk(event, event.candidate, self.way, expected)


def walk(event: Event, order: Numbers, way: int, expected: Expected) -> Plan:
    """The calls of subscriptions in this order, up to the first whose outcome nobody expected."""
    cursor, places = np.array([0, -1, 0]), np.empty((AHEAD_IN_TURN, 2), np.int64)
    room, false, outcomes = np.empty(AHEAD_IN_TURN, np.int32), expected.false, _NO_OUTCOMES
    while length := step(event, order, way, cursor, false, CERTAINTY_IN_TURN, outcomes, places, room):
        calls = room[:length].copy()
        outcomes = yield Portion(calls, (false[calls] < EVEN).tolist())


# --- `sub-order` (operators paper, sections 4.2 to 4.4): as chains, in the order that saves most calls ----------------

LINKS = 8  # chains that each is paired with for one of its calls: the next that have it
COMPUTED_AGAIN = 4  # the order is made anew after 1, 4, 16 ... publications, as more is known of the calls
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
    """The order is made when the first publication comes, and anew in the background as more is known of the calls.
    `links`: see `LINKS`; with as many as there are subscriptions, it is that of the paper's complete graph."""

    def __init__(self, links: int = LINKS) -> None:
        self._links, self._lock = links, new_lock()
        self._made: weakref.WeakKeyDictionary[Conjunctions, _Made] = weakref.WeakKeyDictionary()
        self._working: threading.Thread | None = None

    def plan(self, event: Event, conjunctions: Conjunctions, expected: Expected, together: bool = False) -> Plan:
        """See `CallOrder`."""
        with self._lock:
            working = self._working
            is_working = working is not None and working.is_alive()  # a thread of the parent is none of a fork
            made = self._made.get(conjunctions)
            if made is None:
                made = self._made[conjunctions] = _made(conjunctions, expected, self._links)
            elif not expected.is_drawn and not is_working and made.is_due(expected.cost / expected.false):
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
            remade = _made(conjunctions, expected, self._links)
            with self._lock:
                before = self._made[conjunctions]
                remade.publications, remade.next = before.publications, before.next
                while remade.next <= remade.publications:
                    remade.next *= COMPUTED_AGAIN
                self._made[conjunctions] = remade
        finally:
            self._working = None

    def settle(self) -> None:
        """Wait for the order that is being made."""
        working = self._working
        if working is not None:
            working.join()


def _made(conjunctions: Conjunctions, expected: Expected, links: int) -> _Made:
    return _Made(*ordered(conjunctions, expected, links), expected.cost / expected.false)


def ordered(conjunctions: Conjunctions, expected: Expected, links: int = LINKS) -> tuple[Numbers, Numbers]:
    """The subscriptions in the order of the paper, and the chain of each. `links`: see `LINKS`."""
    offset, call, cost, true = conjunctions.offset, conjunctions.call, expected.cost, 1 - expected.false
    sharing = np.diff(conjunctions.back_offset)  # subscriptions of each call
    weight, chain = ranks(cost / expected.false, sharing), np.empty_like(call)
    chain_kernels.chained(offset, call, weight, chain)
    count, room = len(offset) - 1, int((np.minimum(sharing, links) * sharing).sum())
    edges, savings = np.empty((room, 2), np.int32), np.empty(room)
    back_offset, back = conjunctions.back_offset, conjunctions.back
    length = chain_kernels.linked(offset, chain, back_offset, back, weight, true, cost, links, edges, savings)
    largest = np.argsort(-savings[:length], kind="stable")
    neighbour, value = np.empty((count, 2), np.int32), np.empty((count, 2))
    chain_kernels.paths(edges, savings, largest, np.empty(count, np.int32), neighbour, value)
    path, start, total = np.empty(count, np.int32), np.empty(count, np.int64), np.empty(count)
    paths = chain_kernels.walked(neighbour, value, path, start, total, np.zeros(count, np.bool_))
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


def order_named(name: str) -> CallOrder:
    """A new order of a name in `ORDERS`. Raises `TriplewireError` where there is none."""
    check_order(name)
    in_turn = partial(InTurn, SEQUENTIAL), partial(InTurn, NAIVE)
    makers: tuple[Callable[[], CallOrder], ...] = (Greedy, SubOrder, *in_turn)
    return makers[ORDERS.index(name)]()
