"""`greedy`: next comes the call that closes most open subscriptions for its cost (`triplewire.kernels.calls.greedy`).

What is chosen depends on what is open after each outcome. To ask kernels less often, and operators for several calls at
once, choices are made ahead as long as it is likely that the calls before them are false; none of them is in vain if
one is not, as what is open then is more. The first choices are the same for all publications of which the same is
expected: they are made once.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass

import numpy as np

from triplewire.forks import new_lock
from triplewire.kernels.calls import event as events
from triplewire.kernels.calls import greedy as kernels
from triplewire.kernels.calls.event import FALSE, Event
from triplewire.operators.order.protocol import Conjunctions, Expected, Numbers, Outcomes, Plan, Portion

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
    candidate: Numbers
    asked: Numbers
    outcome: Outcomes
    state: Outcomes
    count: Numbers
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
        arranged, room = self._of(conjunctions), np.empty(AHEAD, np.int32)
        limits = np.array([CERTAINTY, MORE, np.inf if together else AGAIN])
        is_usual = not expected.is_drawn and not event.outcome.any()
        first = self._first.get(conjunctions) if is_usual else None
        if first is not None and first.expected is expected and first.candidate is event.candidate:
            event.outcome[:], event.count[:] = first.outcome, first.count
            own, lists, asked = _with(arranged, event, first.state.copy()), _copied(first.lists), first.asked
        else:
            own = _with(arranged, event, event.state[arranged.number])
            lists = _lists(len(conjunctions.row), self._logs)
            kernels.fill(own, expected.false, expected.cost, lists)
            length = kernels.step(own, expected.false, expected.cost, lists, limits, _NO_CALLS, _NO_OUTCOMES, room)
            asked = room[:length].copy()
            if is_usual:
                then = own.outcome.copy(), own.state.copy(), own.count.copy(), _copied(lists)
                self._first[conjunctions] = _FirstCalls(expected, event.candidate, asked, *then)
        while len(asked):
            outcomes = yield Portion(asked)
            length = kernels.step(own, expected.false, expected.cost, lists, limits, asked, outcomes, room)
            asked = room[:length].copy()
        event.state[arranged.number] = own.state

    def _of(self, conjunctions: Conjunctions) -> _Arranged:
        with self._lock:
            arranged = self._arranged.get(conjunctions)
            if arranged is None:
                arranged = self._arranged[conjunctions] = _arranged(conjunctions, self._logs)
            return arranged


def _lists(calls: int, logs: Numbers) -> kernels.Lists:
    head, link, moved = np.empty(kernels.LISTS, np.int32), np.empty((calls, 4), np.int32), np.empty(calls, np.int32)
    return kernels.Lists(head, link, moved, np.empty(calls, np.bool_), np.zeros(2, np.int64), logs)


def _copied(lists: kernels.Lists) -> kernels.Lists:
    return kernels.Lists._make([*(part.copy() for part in lists[:-1]), lists.logs])


def _with(arranged: _Arranged, event: Event, state: Outcomes) -> Event:
    return event._replace(offset=arranged.offset, call=arranged.call, back=arranged.back, state=state)


def _arranged(asked: Conjunctions, logs: Numbers) -> _Arranged:
    calls, count = len(asked.row), len(asked.offset) - 1
    event = asked.begun(np.arange(count, dtype=np.int32), _NO_CALLS, _NO_OUTCOMES)
    lists, alike, rank = _lists(calls, logs), np.ones(calls), np.full(calls, calls, np.int32)
    kernels.fill(event, alike, alike, lists)
    limits, room, portion, ranked = np.array([0.0, 0.0, np.inf]), np.empty(AHEAD, np.int32), _NO_CALLS, 0
    while length := kernels.step(
        event, alike, alike, lists, limits, portion, np.full(len(portion), FALSE, np.int8), room
    ):
        portion = room[:length].copy()
        rank[portion] = np.arange(ranked, ranked + length)
        ranked += length
    lengths, closed = np.diff(asked.offset), np.full(count, calls, np.int32)
    with_calls = np.flatnonzero(lengths)
    if len(with_calls):
        closed[with_calls] = np.minimum.reduceat(rank[asked.call], asked.offset[with_calls])
    number = np.argsort(closed, kind="stable").astype(np.int32)
    lengths = lengths[number]
    offset = np.append(0, np.cumsum(lengths)).astype(np.int32)
    call = asked.call[np.arange(offset[-1]) + np.repeat(asked.offset[number] - offset[:-1], lengths)]
    back = np.empty_like(asked.back)
    events.transposed(offset, call, np.zeros_like(asked.back_offset), back)
    return _Arranged(number, offset, call, back)
