"""Orders that take one subscription after the other: naive, sequential, and along the chains of sub-order (operators
paper, section 4). Used through `triplewire.operators.order`.

    step:  put the outcomes of the last calls in the place of guesses; go back to the first that was guessed wrong
           while all guesses are right with enough probability:  choose the next call of the subscription at hand, or
                                                                 of the next one that is open; guess its outcome

Each call depends on what came of the one before it. So that Python asks less often, calls are chosen ahead as if each
outcome were the likelier one. They are made up to the first whose outcome is another; the rest is taken back.
"""

from __future__ import annotations

from typing import Any

from triplewire.kernels.calls.event import CLOSED, DOUBTED, FALSE, OPEN, TRUE, UNKNOWN, Event, reopen, shut
from triplewire.kernels.shared.compiled import helper, kernel

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
            for place in range(event.back_offset[call], event.back_offset[call + 1]):
                if event.state[event.back[place]] == DOUBTED:
                    reopen(event, event.back[place])
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
