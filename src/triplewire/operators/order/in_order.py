"""`naive` and `sequential` (operators paper, section 4.1): subscription after subscription, in their order."""

from __future__ import annotations

import numpy as np

from triplewire.kernels.calls.event import Event
from triplewire.kernels.calls.in_order import EVEN, NAIVE, SEQUENTIAL, step
from triplewire.operators.order.protocol import Conjunctions, Expected, Numbers, Plan, Portion

AHEAD = 128  # calls that are chosen before what came of the first is known, at most
CERTAINTY = 0.2  # how probable it is, at least, that all but the last of them are guessed right


class Naive:
    """Each subscription until one of its calls is false. Earlier outcomes are used again; no outcome closes any other
    subscription."""

    def plan(self, event: Event, conjunctions: Conjunctions, expected: Expected, together: bool = False) -> Plan:
        """See `CallOrder`."""
        return walk(event, event.candidate, NAIVE, expected)


class Sequential:
    """All calls of a subscription that is open, also once it is closed, as long as an open subscription needs them. At
    most d times as many calls as needed, where a subscription has d."""

    def plan(self, event: Event, conjunctions: Conjunctions, expected: Expected, together: bool = False) -> Plan:
        """See `CallOrder`."""
        return walk(event, event.candidate, SEQUENTIAL, expected)


def walk(event: Event, order: Numbers, way: int, expected: Expected) -> Plan:
    """The calls of subscriptions in this order, up to the first whose outcome nobody expected."""
    cursor, places, room = np.array([0, -1, 0]), np.empty((AHEAD, 2), np.int64), np.empty(AHEAD, np.int32)
    false, outcomes = expected.false, np.zeros(0, np.int8)
    while length := step(event, order, way, cursor, false, CERTAINTY, outcomes, places, room):
        calls = room[:length].copy()
        outcomes = yield Portion(calls, (false[calls] < EVEN).tolist())
