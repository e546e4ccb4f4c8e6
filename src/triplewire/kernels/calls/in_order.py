"""Orders that take one subscription after the other: naive, sequential, and along the chains of sub-order (operators
paper, section 4). One call at a time. Used through `triplewire.operators.order`."""

from __future__ import annotations

from typing import Any

from triplewire.kernels.calls.event import FALSE, OPEN, UNKNOWN, Event, close
from triplewire.kernels.shared.compiled import kernel

NAIVE, SEQUENTIAL, CHAINS = 0, 1, 2
"""NAIVE: each subscription up to its first false call. SEQUENTIAL: all calls of an open subscription that an open one
needs. CHAINS: the calls of an open subscription, until it is closed."""


@kernel
def after(event: Event, order: Any, way: int, cursor: Any, outcome: int) -> int:
    """The next call; -1 where there is none. `order` has all candidates. `cursor`: the place in it, the place in the
    slice of that subscription, where the walk goes on, and the last call; zeros and -1 at first. `outcome` is that of
    the last call."""
    if cursor[2] >= 0:
        if outcome == FALSE:
            close(event, cursor[2])
        else:
            event.outcome[cursor[2]] = outcome
    while cursor[0] < order.size:
        subscription = order[cursor[0]]
        first, end = event.offset[subscription], event.offset[subscription + 1]
        if cursor[1] == 0 and way != NAIVE and event.state[subscription] != OPEN:
            end = first
        while first + cursor[1] < end:
            call = event.call[first + cursor[1]]
            if event.outcome[call] == UNKNOWN and (way == NAIVE or event.count[call] > 0):
                cursor[2] = call
                return int(call)
            if event.outcome[call] == FALSE and way != SEQUENTIAL:
                break
            cursor[1] += 1
        cursor[0] += 1
        cursor[1] = 0
    return -1
