"""One publication and the subscriptions that operator calls decide: what has been called, and who is still open.

    begin:   candidates without a false call are open; count[call] = open subscriptions that have it
    shut:    a call is false: its open subscriptions close, and the counts of all their calls fall
    reopen:  a call that was only assumed to be false is not: what it closed opens again, if no other call is false
    step:    go back to the first call that was guessed wrong; then, subscription by subscription, choose the calls that
             are not known yet and guess each, as long as all guesses are likely to be right

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


@helper
def _open(event: Event, subscription: int) -> bool:
    """Open a subscription, unless one of its calls is known to be false; else close it."""
    is_open = True
    for k in range(event.offset[subscription], event.offset[subscription + 1]):
        is_open &= event.outcome[event.call[k]] != FALSE
    event.state[subscription] = OPEN if is_open else CLOSED
    if is_open:
        _count(event, subscription, 1)
    return is_open


@kernel
def begin(event: Event) -> int:
    """Open the candidates, but for those that a known outcome closes. Returns how many are open."""
    opened = 0
    event.state[:] = CLOSED
    event.count[:] = 0
    for i in range(event.candidate.size):
        opened += _open(event, event.candidate[i])
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
def reopen(event: Event, call: int) -> None:
    """A call that was assumed to be false is not: open its subscriptions that are DOUBTED again, but close those of
    which another call is false."""
    for place in range(event.back_offset[call], event.back_offset[call + 1]):
        subscription = event.back[place]
        if event.state[subscription] == DOUBTED:
            _open(event, subscription)


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


# --- orders that take one subscription after the other (operators paper, section 4) ----------------------------------

NAIVE, SEQUENTIAL, CHAINS = 0, 1, 2
"""NAIVE: each subscription up to its first false call. SEQUENTIAL: all calls of an open subscription that an open one
needs. CHAINS: the calls of an open subscription, until it is closed."""

EVEN = 0.5  # a call that is false with at least this probability is guessed to be false


@kernel
def step(event: Event, order: Any, way: int, cursor: Any, false: Any, least: float, outcomes: Any, places: Any,
         chosen: Any) -> int:  # fmt: skip
    """Take the outcomes of the calls that were made, then write those to make next to `chosen` and return how many: as
    many as there is room for, until all guesses are right with a probability below `least`.

    `order` has all candidates. `cursor`: the place in it; the place in the slice of that subscription where the walk
    goes on, -1 before it; how many calls were asked for last. It is 0, -1, 0 at first. `places` has, of each of those
    calls, where the walk was, and `outcomes` what came of the first of them, which were made. `false`: call -> its
    probability to be false."""
    _settle(event, cursor, false, outcomes, places, chosen)
    length, likely = 0, 1.0
    while length < chosen.size and likely >= least:
        call = _next(event, order, way, cursor)
        if call < 0:
            break
        chosen[length], places[length, 0], places[length, 1] = call, cursor[0], cursor[1]
        length += 1
        if false[call] >= EVEN:
            likely *= false[call]
            shut(event, call, FALSE, DOUBTED)
        else:
            likely *= 1 - false[call]
            event.outcome[call] = TRUE
    cursor[2] = length
    return length


@helper
def _settle(event: Event, cursor: Any, false: Any, outcomes: Any, places: Any, chosen: Any) -> None:
    """Put outcomes in the place of guesses, and go back to the first call that was not made or guessed wrong."""
    went = cursor[2]
    for i in range(cursor[2] - 1, -1, -1):
        outcome = outcomes[i] if i < outcomes.size else UNKNOWN
        if outcome == UNKNOWN or (outcome == FALSE) != (false[chosen[i]] >= EVEN):
            went = i
        event.outcome[chosen[i]] = outcome
    if went == cursor[2]:
        return
    for i in range(went, cursor[2]):
        call = chosen[i]
        if false[call] < EVEN:
            if event.outcome[call] == FALSE:
                shut(event, call, FALSE, CLOSED)
        elif event.outcome[call] != FALSE:
            reopen(event, call)
    cursor[0], cursor[1] = places[went, 0], places[went, 1]


@helper
def _next(event: Event, order: Any, way: int, cursor: Any) -> int:
    """The next call; -1 where there is none."""
    while cursor[0] < order.size:
        subscription = order[cursor[0]]
        first, end = event.offset[subscription], event.offset[subscription + 1]
        if cursor[1] < 0:
            is_passed = way != NAIVE and event.state[subscription] != OPEN
            cursor[1] = end - first if is_passed else 0
        while first + cursor[1] < end:
            call = event.call[first + cursor[1]]
            if event.outcome[call] == UNKNOWN and (way == NAIVE or event.count[call] > 0):
                return int(call)
            if event.outcome[call] == FALSE and way != SEQUENTIAL:
                break
            cursor[1] += 1
        cursor[0] += 1
        cursor[1] = -1
    return -1
