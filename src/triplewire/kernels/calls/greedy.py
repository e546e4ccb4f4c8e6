"""The greedy order: next comes the call that closes most open subscriptions for its cost, as far as one can expect.

Worth of a call: open subscriptions that have it, times its probability to be false, by its cost (Munagala, Srivastava,
Widom: Optimization of continuous queries with shared expensive filters, PODS 2007; Liu, Parthasarathy, Ranganathan,
Yang: Near-optimal algorithms for shared filter evaluation in data stream systems, SIGMOD 2008). Calls of about the same
worth are in one list. Counts mostly fall, so the list of a call says what it was worth at most; it is moved on when it
is looked at, in constant time.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from triplewire.kernels.calls.event import ASKED, DOUBTED, FALSE, UNKNOWN, Event, assume, close, reopen
from triplewire.kernels.shared.compiled import helper, kernel

STEPS = 16  # lists for each factor of two in worth: what is in one list differs by less than 5 %
LISTS = 96 * STEPS
_ZERO = 48 * STEPS  # the list of the worth 1


class Lists(NamedTuple):
    """Calls by worth, in doubly linked lists; -1 is nowhere."""

    head: Any  # list -> its first call; LISTS of them
    next: Any  # call -> the one behind it
    before: Any  # call -> the one before it
    place: Any  # call -> its list
    top: Any  # one number: no list above it has a call


@helper
def _list_of(worth: float) -> int:
    """The list of a worth above 0."""
    return min(max(math.floor(math.log2(worth) * STEPS) + _ZERO, 0), LISTS - 1)


@helper
def _insert(lists: Lists, call: int, place: int) -> None:
    first = lists.head[place]
    lists.next[call] = first
    lists.before[call] = -1
    if first >= 0:
        lists.before[first] = call
    lists.head[place] = call
    lists.place[call] = place
    lists.top[0] = max(lists.top[0], place)


@helper
def _remove(lists: Lists, call: int) -> None:
    before, after = lists.before[call], lists.next[call]
    if before >= 0:
        lists.next[before] = after
    else:
        lists.head[lists.place[call]] = after
    if after >= 0:
        lists.before[after] = before
    lists.place[call] = -1


@kernel
def fill(event: Event, price: Any, lists: Lists) -> None:
    """Make the lists of all calls that open subscriptions need. `price`: call -> probability to be false, by cost; it
    is above 0."""
    lists.head[:] = -1
    lists.place[:] = -1
    lists.top[0] = 0
    for call in range(event.count.size - 1, -1, -1):
        if event.count[call] > 0 and event.outcome[call] == UNKNOWN:
            _insert(lists, call, _list_of(event.count[call] * price[call]))


@kernel
def step(event: Event, price: Any, false: Any, lists: Lists, limits: Any, calls: Any, outcomes: Any,
         asked: Any) -> int:  # fmt: skip
    """Take the outcomes of the calls that were asked for, then write the next ones to `asked` and return how many: as
    many as there is room for and as `limits` allows. Each choice assumes that those before it are false. `limits`: the
    least probability that they are, and how many subscriptions one may expect to open again, at most. `price` as in
    `fill`; `false`: call -> its probability to be false."""
    _learn(event, price, lists, calls, outcomes)
    length, likely, again = 0, 1.0, 0.0
    while length < asked.size:
        if length > 0:
            before = asked[length - 1]
            likely *= false[before]
            again += (1 - false[before]) * event.count[before]
            if likely < limits[0] or again > limits[1]:
                break
            assume(event, before)
        call = _next(event, price, lists)
        if call < 0:
            break
        event.outcome[call] = ASKED
        asked[length] = call
        length += 1
    return length


@helper
def _next(event: Event, price: Any, lists: Lists) -> int:
    """Take the call that is worth most out of its list; -1 where no open subscription needs one."""
    top = lists.top[0]
    while True:
        while top > 0 and lists.head[top] < 0:
            top -= 1
        call = lists.head[top]
        if call < 0:
            break
        after = lists.next[call]  # it is the first of the topmost list
        lists.head[top] = after
        if after >= 0:
            lists.before[after] = -1
        lists.place[call] = -1
        count = event.count[call]
        if count <= 0:
            continue
        place = _list_of(count * price[call])
        if place >= top:
            break
        _insert(lists, call, place)
    lists.top[0] = top
    return int(call)


@helper
def _learn(event: Event, price: Any, lists: Lists, calls: Any, outcomes: Any) -> None:
    if calls.size == 0:
        return
    last = calls[calls.size - 1]
    is_assumed = event.outcome[last] != ASKED
    for i in range(calls.size):
        event.outcome[calls[i]] = outcomes[i]
    if not is_assumed and event.outcome[last] == FALSE:
        close(event, last)
    for i in range(calls.size - (not is_assumed)):
        if outcomes[i] == FALSE:
            continue
        for place in range(event.back_offset[calls[i]], event.back_offset[calls[i] + 1]):
            subscription = event.back[place]
            is_mine = event.state[subscription] == DOUBTED and event.blamed[subscription] == calls[i]
            if is_mine and reopen(event, subscription):
                _raise(event, price, lists, subscription)


@helper
def _raise(event: Event, price: Any, lists: Lists, subscription: int) -> None:
    """The calls of a subscription have become worth more. Of those worth the same, the first stated comes first."""
    first = event.offset[subscription]
    for number in range(event.offset[subscription + 1] - 1 - first, -1, -1):
        at = first + number
        call = event.call[at]
        if event.outcome[call] != UNKNOWN:
            continue
        place = _list_of(event.count[call] * price[call])
        if place > lists.place[call]:
            if lists.place[call] >= 0:
                _remove(lists, call)
            _insert(lists, call, place)
