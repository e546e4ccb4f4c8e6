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

from triplewire.kernels.calls.event import DOUBTED, FALSE, UNKNOWN, Event, assume, reopen
from triplewire.kernels.shared.compiled import called_helper, kernel

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


@called_helper
def _list_of(worth: float) -> int:
    """The list of a worth above 0."""
    return min(max(math.floor(math.log2(worth) * STEPS) + _ZERO, 0), LISTS - 1)


@called_helper
def _insert(lists: Lists, call: int, place: int) -> None:
    first = lists.head[place]
    lists.next[call] = first
    lists.before[call] = -1
    if first >= 0:
        lists.before[first] = call
    lists.head[place] = call
    lists.place[call] = place
    lists.top[0] = max(lists.top[0], place)


@called_helper
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
def step(event: Event, price: Any, false: Any, lists: Lists, certainty: float, calls: Any, outcomes: Any, asked: Any) -> int:  # fmt: skip  # noqa: E501
    """Take the outcomes of the calls that were asked for, then write the next ones to `asked` and return how many: as
    many as there is room for, as long as it has the probability `certainty` that all are false, as each choice assumes
    of those before it. `price` as in `fill`; `false`: call -> its probability to be false."""
    _learn(event, price, lists, calls, outcomes)
    length, likely = 0, 1.0
    while length < asked.size:
        while lists.top[0] > 0 and lists.head[lists.top[0]] < 0:
            lists.top[0] -= 1
        call = lists.head[lists.top[0]]
        if call < 0:
            break
        count = event.count[call]
        if count <= 0:
            _remove(lists, call)
            continue
        place = _list_of(count * price[call])
        if place < lists.top[0]:
            _remove(lists, call)
            _insert(lists, call, place)
            continue
        likely *= false[call]
        if length > 0 and likely < certainty:
            break
        _remove(lists, call)
        assume(event, call)
        asked[length] = call
        length += 1
    return length


@called_helper
def _learn(event: Event, price: Any, lists: Lists, calls: Any, outcomes: Any) -> None:
    for i in range(calls.size):
        event.outcome[calls[i]] = outcomes[i]
    for i in range(calls.size):
        if outcomes[i] == FALSE:
            continue
        for place in range(event.back_offset[calls[i]], event.back_offset[calls[i] + 1]):
            subscription = event.back[place]
            is_mine = event.state[subscription] == DOUBTED and event.blamed[subscription] == calls[i]
            if is_mine and reopen(event, subscription):
                _raise(event, price, lists, subscription)


@called_helper
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
