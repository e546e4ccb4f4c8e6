"""`greedy`: next comes the call that closes most open subscriptions for its cost (`triplewire.kernels.calls.greedy`).

What is chosen depends on what is open after each outcome. To ask kernels less often, and operators for several calls at
once, choices are made ahead as long as it is likely that the calls before them are false; none of them is in vain if
one is not, as what is open then is more.
"""

from __future__ import annotations

import numpy as np

from triplewire.kernels.calls import greedy as kernels
from triplewire.kernels.calls.event import Event
from triplewire.operators.order.protocol import Conjunctions, Expected, Plan

AHEAD = 512  # calls that are chosen at once, at most
CERTAINTY = 0.1  # how probable it is, at least, that none of them but the last is true
AGAIN = 256  # subscriptions that one expects to open again, at most: that takes longer than to ask the kernel once more


class Greedy:
    """The order that is adapted after each outcome."""

    def plan(self, event: Event, conjunctions: Conjunctions, expected: Expected, together: bool = False) -> Plan:
        """See `CallOrder`."""
        price, false, calls = expected.false / expected.cost, expected.false, len(conjunctions.row)
        head, top = np.empty(kernels.LISTS, np.int32), np.zeros(1, np.int64)
        after, before, place = np.empty((3, calls), np.int32)
        lists = kernels.Lists(head, after, before, place, top)
        kernels.fill(event, price, lists)
        room, limits = np.empty(AHEAD, np.int32), np.array([CERTAINTY, np.inf if together else AGAIN])
        asked, outcomes = np.zeros(0, np.int32), np.zeros(0, np.int8)
        while length := kernels.step(event, price, false, lists, limits, asked, outcomes, room):
            asked = room[:length].copy()
            outcomes = yield asked
