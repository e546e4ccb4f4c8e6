"""Components with cycles: their patterns in an order of their own, as a path of join steps from a root.

Components that are equal but for the names of their variables and the order of their patterns get the same path, and
those that begin alike share the beginning. The idea of a trie of join paths: L. Zervakis and others, "Efficient
Continuous Multi-Query Processing over Graph Streams" (TRIC), EDBT 2020, section 4.

The order: first what gives the fewest variables new values, then the predicate that the fewest patterns have, then
colours of variables, refined by their neighbours. None of that depends on names or on the order as it is given. Where
several patterns are still alike, each is tried, and the smallest path is taken, so that components have the same path
exactly if they are isomorphic. Only what is large and looks alike everywhere is given up before all is tried: it may
get a path of its own, which costs time only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.joins.columns import StatedClauses
from triplewire.kernels.joins.network.columns import NO_STEP
from triplewire.kernels.joins.network.making.order import Order, order_nothing, order_path
from triplewire.kernels.joins.network.making.steps import (
    COLOUR,
    NEXT_COLOUR,
    NONE,
    USES,
    VALUE,
    Component,
    Network,
    add_step,
)
from triplewire.kernels.shared.columns import TestColumns
from triplewire.kernels.shared.compiled import called_helper, helper
from triplewire.kernels.shared.hashing import mix_bits

MOST_VARIABLES = 12  # that are listed
_ROUNDS = 3  # of refinement
_MOST_LOOKS = 1 << 14  # at patterns, while orders of a component are tried
_LISTED = 4  # what a new variable that is listed costs: more than those of a pattern that are not
_ANY = 1 << 62  # patterns that have any predicate, as a number that is larger than all
_int: Any = np.int64


class Orders(NamedTuple):
    """Orders of the patterns of a component that are tried. It may be used again. A code is what a position says."""

    choice: Any  # place in the order -> which of the patterns that are alike there
    alike: Any  # place in the order -> how many they are
    order: Any  # shape (2, patterns): the order at hand, the best one; what stood at a place of `member`
    codes: Any  # shape (2, patterns, 4): of these orders, the codes of each pattern and the colours of its tests


@helper
def _colour(code: int, own: int, variables: Any) -> Any:
    """What a position looks like, to the variable `own` or (-1) to nobody."""
    if code >= 0:
        return mix_bits(_int(code) + 3)
    if -1 - code == own:
        return _int(2)
    at = variables[VALUE, -1 - code]
    return mix_bits(at + (_int(1) << 33)) if at >= 0 else variables[COLOUR, -1 - code]


@called_helper
def _refine(first: int, begin: int, end: int, t0: int, t1: int, clauses: StatedClauses, variables: Any) -> None:
    """Colour the variables of a component by their tests, their places and their neighbours."""
    pattern, member = clauses.pattern, clauses.member
    for m in range(begin, end):
        for k in range(3):
            if pattern[first + member[m], k] < 0:
                variable = -1 - pattern[first + member[m], k]
                variables[COLOUR, variable], variables[VALUE, variable] = 1, NONE
    for t in range(t0, t1):
        variables[COLOUR, clauses.test_variable[t]] += mix_bits(_int(clauses.test[t]) + 1)
    for _ in range(_ROUNDS):
        for m in range(begin, end):
            for k in range(3):
                if pattern[first + member[m], k] < 0:
                    variable = -1 - pattern[first + member[m], k]
                    variables[NEXT_COLOUR, variable] = mix_bits(variables[COLOUR, variable])
        for m in range(begin, end):
            at = first + member[m]
            for k in range(3):
                if pattern[at, k] < 0:
                    seen, own = _int(k + 1), -1 - pattern[at, k]
                    for q in range(3):
                        seen = mix_bits(seen + _colour(pattern[at, q], own, variables))
                    variables[NEXT_COLOUR, own] += seen
        for m in range(begin, end):
            for k in range(3):
                if pattern[first + member[m], k] < 0:
                    variable = -1 - pattern[first + member[m], k]
                    variables[COLOUR, variable] = variables[NEXT_COLOUR, variable] & 0x7FFFFFFF


@called_helper
def _cost(at: int, is_first: bool, pattern: Any, variables: Any) -> Any:
    """The fewer new variables and the fewer of them listed, the better; -1 where the pattern shares no variable with
    those before it."""
    cost, shared = 0, is_first
    for k in range(3):
        if pattern[at, k] < 0:
            variable = -1 - pattern[at, k]
            if variables[VALUE, variable] >= 0:
                shared = True
            else:
                cost += 1 if variables[USES, variable] == 1 else _LISTED
    return cost if shared else -1


@called_helper
def _next(begin: int, own: Component, choice: int, clauses: StatedClauses, frequency: Any, variables: Any) -> Any:
    """The place in `member`, of those from `begin` on, of the pattern whose turn it is; and among how many that are
    alike this is a `choice`. Without a new variable that is listed, any of them will do."""
    pattern, member = clauses.pattern, clauses.member
    chosen, least, rarest, smallest, alike = begin, 0, 0, _int(0), 0
    for m in range(begin, own.end):
        at = own.first + member[m]
        cost = _cost(at, begin == own.begin, pattern, variables)
        if cost < 0:
            continue
        often, seen = frequency[pattern[at, 1]] if pattern[at, 1] >= 0 else _ANY, _int(0)
        for k in (1, 2, 0):
            seen = mix_bits(seen + _colour(pattern[at, k], -1, variables))
        is_alike = alike > 0 and cost == least and often == rarest and seen == smallest
        if is_alike and cost >= _LISTED:
            chosen, alike = m if alike == choice else chosen, alike + 1
        elif (
            alike == 0 or cost < least or (cost == least and (often < rarest or (often == rarest and seen < smallest)))
        ):
            chosen, least, rarest, smallest, alike = m, cost, often, seen, 1
    return chosen, alike


@called_helper
def _count_listed(own: Component, clauses: StatedClauses, variables: Any) -> int:
    """How many variables stand in more than one place? The last step of the path has a value of each."""
    count = 0
    _forget(own, clauses, variables)
    for m in range(own.begin, own.end):
        for k in range(3):
            code = clauses.pattern[own.first + clauses.member[m], k]
            if code < 0 and variables[USES, -1 - code] > 1 and variables[VALUE, -1 - code] == NONE:
                variables[VALUE, -1 - code], count = count, count + 1
    return count


@called_helper
def _forget(own: Component, clauses: StatedClauses, variables: Any) -> None:
    """No variable has a value."""
    for m in range(own.begin, own.end):
        for k in range(3):
            code = clauses.pattern[own.first + clauses.member[m], k]
            if code < 0:
                variables[VALUE, -1 - code] = NONE


@called_helper
def _code(at: int, width: int, clauses: StatedClauses, variables: Any, codes: Any) -> int:
    """Write down the codes of a pattern, whose new variables get values. Returns how many have one then."""
    codes[3] = 0
    for k in range(3):
        code = _int(clauses.pattern[at, k])
        if code < 0 and variables[VALUE, -1 - code] < 0:
            codes[3] = mix_bits(codes[3] + variables[COLOUR, -1 - code])
            if variables[USES, -1 - code] > 1:
                variables[VALUE, -1 - code], width = width, width + 1
        codes[k] = code if code >= 0 else -2 - variables[VALUE, -1 - code]  # -1: it stands in no other place
    return width


@called_helper
def _try(own: Component, clauses: StatedClauses, frequency: Any, variables: Any, orders: Orders, count: int) -> int:
    """Put the patterns in the order of the choices, and keep it where it is the first or the smallest. Returns -1 where
    it was the last one to be tried, or else `count` and how many patterns were looked at."""
    member, size, width, is_less = clauses.member, own.end - own.begin, 0, _int(count == 0)
    _forget(own, clauses, variables)
    for m in range(size):
        place, alike = _next(own.begin + m, own, orders.choice[m], clauses, frequency, variables)
        member[own.begin + m], member[place] = member[place], member[own.begin + m]
        orders.alike[m], orders.order[0, m] = alike, member[own.begin + m]
        width = _code(own.first + member[own.begin + m], width, clauses, variables, orders.codes[0, m])
        for k in range(4):
            if is_less == 0 and orders.codes[0, m, k] != orders.codes[1, m, k]:
                is_less = _int(1 if orders.codes[0, m, k] < orders.codes[1, m, k] else -1)
    for m in range(size if is_less > 0 else 0):
        orders.order[1, m] = orders.order[0, m]
        for k in range(4):
            orders.codes[1, m, k] = orders.codes[0, m, k]
    last = size - 1
    while last >= 0 and orders.choice[last] + 1 >= orders.alike[last]:
        orders.choice[last], last = 0, last - 1
    if last < 0:
        return -1
    orders.choice[last] += 1
    return count + size * size


@called_helper
def add_path(own: Component, clauses: StatedClauses, tests: TestColumns, frequency: Any, variables: Any, orders: Orders,
             network: Network, order: Order) -> int:  # fmt: skip
    """Add what is new of the path of a component, and its columns. Returns its last step, or NO_STEP where it has too
    many variables. USES is known of its variables. Its members are put in order."""
    if _count_listed(own, clauses, variables) > MOST_VARIABLES:
        order_nothing(order)
        return NO_STEP
    first, begin, end, t0, t1 = own
    member, parent, width, looks, size = clauses.member, NO_STEP, 0, 0, end - begin
    _refine(first, begin, end, t0, t1, clauses, variables)
    orders.choice[:size] = 0
    while 0 <= looks < _MOST_LOOKS:
        looks = _try(own, clauses, frequency, variables, orders, looks)
    _forget(own, clauses, variables)
    for m in range(size):
        member[begin + m] = orders.order[1, m]
        parent, width = add_step(first + member[begin + m], parent, width, own, clauses, tests, network, variables)
    order_path(width, own, clauses, variables, order)
    return int(parent)
