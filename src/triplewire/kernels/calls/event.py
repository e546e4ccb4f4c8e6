"""One publication and the subscriptions that operator calls decide: what has been called, and who is still open.

    begin:   candidates without a false call are open; count[call] = open subscriptions that have it
    shut:    a call is false: its open subscriptions close, and the counts of all their calls fall
    reopen:  a call that was only assumed to be false is not: what it closed opens again, if no other call is false

Subscriptions are conjunctions of calls. A subscription is open until one of its calls is false. `count` has, of each
call that has not been made, how many open subscriptions need it; it changes with each outcome, so that no call is made
that decides nothing (operators paper, section 4). Used through `triplewire.operators.order`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from triplewire.kernels.shared.compiled import helper, kernel, short_kernel

UNKNOWN, FALSE, TRUE, FAILED, ASSUMED, ASKED = 0, 1, 2, 3, 4, 5
"""What is known of a call. ASKED: its outcome is not there yet. ASSUMED: nor is it, and it is taken as false so far."""

CLOSED, OPEN, DOUBTED = 0, 1, 2
"""States of a subscription. DOUBTED: closed by a call that was only assumed to be false at that time."""


class Event(NamedTuple):
    """The arrays. The first four are never changed."""

    offset: Any  # subscription -> its slice of `call`
    call: Any  # each once in a subscription
    back_offset: Any  # call -> its slice of `back`
    back: Any  # the subscriptions that have the call
    candidate: Any  # the subscriptions that are asked about
    outcome: Any  # call -> what is known of it
    state: Any  # subscription -> CLOSED, OPEN or DOUBTED
    count: Any  # call -> open subscriptions that have it


@helper
def _count(event: Event, subscription: int, change: int) -> None:
    """Its calls have so many more open subscriptions."""
    for k in range(event.offset[subscription], event.offset[subscription + 1]):
        event.count[event.call[k]] += change


@kernel
def begin(event: Event) -> int:
    """Open the candidates, but for those that a known outcome closes. Returns how many are open."""
    opened = 0
    event.state[:] = CLOSED
    event.count[:] = 0
    for i in range(event.candidate.size):
        subscription = event.candidate[i]
        is_open = True
        for k in range(event.offset[subscription], event.offset[subscription + 1]):
            is_open &= event.outcome[event.call[k]] != FALSE
        if is_open:
            opened += 1
            event.state[subscription] = OPEN
            _count(event, subscription, 1)
    return opened


@helper
def shut(event: Event, call: int, outcome: int, state: int) -> None:
    """A call is false, or goes on as if it were: note this outcome of it, and this state of its open subscriptions,
    CLOSED or DOUBTED."""
    event.outcome[call] = outcome
    for place in range(event.back_offset[call], event.back_offset[call + 1]):
        subscription = event.back[place]
        if event.state[subscription] == OPEN:
            event.state[subscription] = state
            _count(event, subscription, -1)


@helper
def reopen(event: Event, subscription: int) -> bool:
    """A call that was assumed to be false is not: open a subscription of it that is DOUBTED again, unless another call
    is false."""
    for k in range(event.offset[subscription], event.offset[subscription + 1]):
        if event.outcome[event.call[k]] == FALSE:
            event.state[subscription] = CLOSED
            return False
    event.state[subscription] = OPEN
    _count(event, subscription, 1)
    return True


@short_kernel
def surviving(event: Event, out: Any) -> int:
    """Write the candidates that no call has closed, and return how many they are."""
    length = 0
    for i in range(event.candidate.size):
        if event.state[event.candidate[i]] == OPEN:
            out[length] = event.candidate[i]
            length += 1
    return length


@short_kernel
def uses(event: Event) -> int:
    """How many pairs of a candidate and a call that it has, and that has been made, there are."""
    total = 0
    for i in range(event.candidate.size):
        subscription = event.candidate[i]
        for k in range(event.offset[subscription], event.offset[subscription + 1]):
            total += event.outcome[event.call[k]] != UNKNOWN
    return total


@kernel
def transposed(offset: Any, call: Any, back_offset: Any, back: Any) -> None:
    """From subscription -> calls to call -> subscriptions, ascending. `back_offset` holds zeros at first."""
    for k in range(call.size):
        back_offset[call[k] + 1] += 1
    for number in range(back_offset.size - 1):
        back_offset[number + 1] += back_offset[number]
    for subscription in range(offset.size - 1):
        for k in range(offset[subscription], offset[subscription + 1]):
            back[back_offset[call[k]]] = subscription
            back_offset[call[k]] += 1
    for number in range(back_offset.size - 1, 0, -1):
        back_offset[number] = back_offset[number - 1]
    back_offset[0] = 0
