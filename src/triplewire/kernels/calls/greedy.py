"""The greedy order: next comes the call that closes most open subscriptions for its cost, as far as one can expect.

    step:  take the outcomes of the last calls: close subscriptions, or open those again that were closed by assumption
           as long as it pays:  call = the first of the topmost list whose worth is still that of the list; calls that
                                have lost worth move down
                                choose it, and assume that it is false

Worth of a call: open subscriptions that have it, times its probability to be false, by its cost (Munagala, Srivastava,
Widom: Optimization of continuous queries with shared expensive filters, PODS 2007; Liu, Parthasarathy, Ranganathan,
Yang: Near-optimal algorithms for shared filter evaluation in data stream systems, SIGMOD 2008). Calls of about the same
worth are in one list. Counts mostly fall, so the list of a call says what it was worth at most; it is moved on when it
is looked at, in constant time.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from triplewire.kernels.calls.event import ASKED, ASSUMED, CLOSED, DOUBTED, FALSE, UNKNOWN, Event, reopen, shut
from triplewire.kernels.shared.compiled import helper, kernel, short_kernel

STEPS = 16  # lists for each factor of two in worth: what is in one list differs by less than 5 %
LISTS = 96 * STEPS
UNIT = 1 << 10  # logarithms are integers: so many of them are one list
_ZERO = 48 * STEPS * UNIT  # the logarithm of the worth 1, in the middle

NEXT, BEFORE, LIST, PRICE = 0, 1, 2, 3
"""Of a call: the one behind it in its list, the one before it, its list, and the logarithm of its price. -1: none."""


class Lists(NamedTuple):
    """Calls by worth, in doubly linked lists."""

    head: Any  # list -> its first call; LISTS of them
    link: Any  # call -> NEXT, BEFORE, LIST, PRICE
    moved: Any  # the calls that were moved down or taken out, not to be asked, since outcomes were learned last
    is_moved: Any  # call -> is it one of these?
    ends: Any  # two numbers: no list above the first has a call, and so many calls are `moved`
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
    lists.link[call, NEXT], lists.link[call, BEFORE], lists.link[call, LIST] = first, -1, place
    if first >= 0:
        lists.link[first, BEFORE] = call
    lists.head[place] = call
    lists.ends[0] = max(lists.ends[0], place)


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
    lists.head[:] = -1
    lists.is_moved[:] = False
    lists.ends[:] = 0
    for call in range(event.count.size - 1, -1, -1):  # of calls worth the same, the first one comes first
        lists.link[call, PRICE] = _ZERO + _log(false[call] / cost[call])
        lists.link[call, LIST] = -1
        if event.count[call] > 0 and event.outcome[call] == UNKNOWN:
            _insert(lists, call, _list_of(lists, call, event.count[call]))


@short_kernel
def step(event: Event, false: Any, cost: Any, lists: Lists, limits: Any, calls: Any, outcomes: Any, chosen: Any) -> int:
    """Take the outcomes of the calls that were asked for, then write the next ones to `chosen` and return how many: as
    many as there is room for and as `limits` allows. Each choice assumes that those before it are false. `limits`: with
    less than this probability that they are, the calls may cost so much more; and how many subscriptions one may expect
    to open again, at most. `false`, `cost`: call -> its probability to be false, its cost."""
    _learn(event, lists, calls, outcomes)
    length, likely, extra, again = 0, 1.0, 0.0, 0.0
    while length < chosen.size:
        if length > 0:
            before = chosen[length - 1]
            likely *= false[before]
            again += (1 - false[before]) * event.count[before]
            extra += cost[before] if likely < limits[0] else 0.0
            if extra > limits[1] or again > limits[2]:
                break
            shut(event, before, ASSUMED, DOUBTED)
        call = _next(event, lists)
        if call < 0:
            break
        event.outcome[call] = ASKED
        chosen[length] = call
        length += 1
    return length


@helper
def _next(event: Event, lists: Lists) -> int:
    """Take the call that is worth most out of its list; -1 where no open subscription needs one."""
    top = lists.ends[0]
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
        place = _list_of(lists, call, count) if count > 0 else -1
        if place >= top:
            break
        if place >= 0:
            _insert(lists, call, place)
        if not lists.is_moved[call]:
            lists.is_moved[call] = True
            lists.moved[lists.ends[1]] = call
            lists.ends[1] += 1
    lists.ends[0] = top
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
        shut(event, last, FALSE, CLOSED)
    for i in range(calls.size - (not is_assumed)):
        if outcomes[i] != FALSE:
            reopen(event, calls[i])
    # calls may be worth more now than when they were moved down; others are in the lists that they were in before any
    # subscription was closed that is open again, and cannot be worth more
    for i in range(lists.ends[1] - 1, -1, -1):
        call = lists.moved[i]
        lists.is_moved[call] = False
        if event.count[call] > 0 and event.outcome[call] == UNKNOWN:
            place = _list_of(lists, call, event.count[call])
            if place > lists.link[call, LIST]:
                if lists.link[call, LIST] >= 0:
                    _remove(lists, call)
                _insert(lists, call, place)
    lists.ends[1] = 0
