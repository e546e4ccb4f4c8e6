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

from triplewire.kernels.calls.event import ASKED, ASSUMED, DOUBTED, FALSE, OPEN, UNKNOWN, Event, assume, close, reopen
from triplewire.kernels.shared.compiled import helper, kernel

STEPS = 16  # lists for each factor of two in worth: what is in one list differs by less than 5 %
LISTS = 96 * STEPS
UNIT = 1 << 10  # logarithms are integers: so many of them are one list
_ZERO = 48 * STEPS * UNIT  # the logarithm of the worth 1, in the middle

MANY = 64  # lists are made anew where more than one in so many calls was made or is in a subscription opened again

NEXT, BEFORE, LIST, PRICE = 0, 1, 2, 3
"""Of a call: the one behind it in its list, the one before it, its list, and the logarithm of its price. -1: none."""


class Lists(NamedTuple):
    """Calls by worth, in doubly linked lists."""

    head: Any  # list -> its first call; LISTS of them
    link: Any  # call -> NEXT, BEFORE, LIST, PRICE
    top: Any  # one number: no list above it has a call
    logs: Any  # number of open subscriptions, from 0 on -> its logarithm; of larger ones it is computed


@helper
def _log(value: float) -> int:
    return math.floor(math.log2(value) * (STEPS * UNIT))


@helper
def _list_of(lists: Lists, call: int, count: int) -> int:
    """The list of a call that so many open subscriptions have, at least one."""
    log = lists.logs[count] if count < lists.logs.size else _log(count)
    return int(min(max((log + lists.link[call, PRICE]) // UNIT, 0), LISTS - 1))


@kernel
def logarithms(out: Any) -> None:
    """Write the logarithms of 1, 2, ... to `out`, from place 1 on."""
    out[0] = 0
    for count in range(1, out.size):
        out[count] = _log(count)


@helper
def _insert(lists: Lists, call: int, place: int) -> None:
    first = lists.head[place]
    lists.link[call, NEXT] = first
    lists.link[call, BEFORE] = -1
    if first >= 0:
        lists.link[first, BEFORE] = call
    lists.head[place] = call
    lists.link[call, LIST] = place
    lists.top[0] = max(lists.top[0], place)


@helper
def _remove(lists: Lists, call: int) -> None:
    before, after = lists.link[call, BEFORE], lists.link[call, NEXT]
    if before >= 0:
        lists.link[before, NEXT] = after
    else:
        lists.head[lists.link[call, LIST]] = after
    if after >= 0:
        lists.link[after, BEFORE] = before
    lists.link[call, LIST] = -1


@kernel
def fill(event: Event, false: Any, cost: Any, lists: Lists) -> None:
    """Make the lists of all calls that open subscriptions need. `false`: call -> its probability to be false, above 0;
    `cost`: call -> its cost. The price of a call is one by the other."""
    for call in range(event.count.size):
        lists.link[call, PRICE] = _ZERO + _log(false[call] / cost[call])
    _list_all(event, lists)


@helper
def _list_all(event: Event, lists: Lists) -> None:
    """Make the lists anew. Of calls worth the same, the first one comes first."""
    lists.head[:] = -1
    lists.top[0] = 0
    for call in range(event.count.size - 1, -1, -1):
        lists.link[call, LIST] = -1
        if event.count[call] > 0 and event.outcome[call] == UNKNOWN:
            _insert(lists, call, _list_of(lists, call, event.count[call]))


@kernel
def step(event: Event, false: Any, lists: Lists, limits: Any, calls: Any, outcomes: Any, asked: Any) -> int:
    """Take the outcomes of the calls that were asked for, then write the next ones to `asked` and return how many: as
    many as there is room for and as `limits` allows. Each choice assumes that those before it are false. `limits`: the
    least probability that they are, and how many subscriptions one may expect to open again, at most. `false`: call ->
    its probability to be false."""
    _learn(event, lists, calls, outcomes)
    length, likely, again = 0, 1.0, 0.0
    while length < asked.size:
        if length > 0:
            before = asked[length - 1]
            likely *= false[before]
            again += (1 - false[before]) * event.count[before]
            if likely < limits[0] or again > limits[1]:
                break
            assume(event, before, ASSUMED)
        call = _next(event, lists)
        if call < 0:
            break
        event.outcome[call] = ASKED
        asked[length] = call
        length += 1
    return length


@helper
def _next(event: Event, lists: Lists) -> int:
    """Take the call that is worth most out of its list; -1 where no open subscription needs one."""
    top = lists.top[0]
    while True:
        while top > 0 and lists.head[top] < 0:
            top -= 1
        call = lists.head[top]
        if call < 0:
            break
        after = lists.link[call, NEXT]  # it is the first of the topmost list
        lists.head[top] = after
        if after >= 0:
            lists.link[after, BEFORE] = -1
        lists.link[call, LIST] = -1
        count = event.count[call]
        if count <= 0:
            continue
        place = _list_of(lists, call, count)
        if place >= top:
            break
        _insert(lists, call, place)
    lists.top[0] = top
    return int(call)


@helper
def _learn(event: Event, lists: Lists, calls: Any, outcomes: Any) -> None:
    if calls.size == 0:
        return
    last = calls[calls.size - 1]
    is_assumed = event.outcome[last] != ASKED
    for i in range(calls.size):
        event.outcome[calls[i]] = outcomes[i]
    if not is_assumed and event.outcome[last] == FALSE:
        close(event, last)
    assumed, reopened = calls.size - (not is_assumed), 0
    for i in range(assumed):
        if outcomes[i] != FALSE:
            for place in range(event.back_offset[calls[i]], event.back_offset[calls[i] + 1]):
                subscription = event.back[place]
                reopened += event.state[subscription] == DOUBTED and reopen(event, subscription)
    if (reopened + calls.size) * MANY > event.count.size:
        _list_all(event, lists)
        return
    for i in range(assumed):
        if outcomes[i] != FALSE:
            for place in range(event.back_offset[calls[i]], event.back_offset[calls[i] + 1]):
                if event.state[event.back[place]] == OPEN:
                    _raise(event, lists, event.back[place])


@helper
def _raise(event: Event, lists: Lists, subscription: int) -> None:
    """The calls of a subscription have become worth more. Of those worth the same, the first stated comes first."""
    first = event.offset[subscription]
    for number in range(event.offset[subscription + 1] - 1 - first, -1, -1):
        at = first + number
        call = event.call[at]
        if event.outcome[call] != UNKNOWN:
            continue
        place = _list_of(lists, call, event.count[call])
        if place > lists.link[call, LIST]:
            if lists.link[call, LIST] >= 0:
                _remove(lists, call)
            _insert(lists, call, place)
