"""`naive` and `sequential` (operators paper, section 4.1): subscription after subscription, in their order."""

from __future__ import annotations

import numpy as np

from triplewire.kernels.calls.event import Event
from triplewire.kernels.calls.in_order import NAIVE, SEQUENTIAL, after
from triplewire.operators.order.protocol import Conjunctions, Expected, Numbers, Plan


class Naive:
    """Each subscription until one of its calls is false. Earlier outcomes are used again; no outcome closes any other
    subscription."""

    def plan(self, event: Event, conjunctions: Conjunctions, expected: Expected, together: bool = False) -> Plan:
        """See `CallOrder`."""
        return walk(event, event.candidate, NAIVE)


class Sequential:
    """All calls of a subscription that is open, also once it is closed, as long as an open subscription needs them. At
    most d times as many calls as needed, where a subscription has d."""

    def plan(self, event: Event, conjunctions: Conjunctions, expected: Expected, together: bool = False) -> Plan:
        """See `CallOrder`."""
        return walk(event, event.candidate, SEQUENTIAL)


def walk(event: Event, order: Numbers, way: int) -> Plan:
    """The calls of subscriptions in this order, one at a time."""
    cursor, outcome = np.array([0, 0, -1]), 0
    while (call := after(event, order, way, cursor, outcome)) >= 0:
        (outcome,) = (yield np.array([call], np.int32)).tolist()
