"""Components with cycles: their patterns in an order of their own, as a path of join steps from a root.

Components that are equal but for the names of their variables and the order of their patterns get the same path, and
those that begin alike share the beginning. The idea of a trie of join paths: L. Zervakis and others, "Efficient
Continuous Multi-Query Processing over Graph Streams" (TRIC), EDBT 2020, section 4.

The order: first what gives the fewest variables new values, then the predicate that the fewest patterns have. Ties are
broken by colours of variables, refined by their neighbours, which do not depend on names or order. Two isomorphic
components that colours cannot tell apart may get different paths, which costs time only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.joins.columns import StarClauses
from triplewire.kernels.joins.network.columns import NO_STEP
from triplewire.kernels.joins.network.order import Order, order_nothing, order_path
from triplewire.kernels.joins.network.steps import COLOUR, NEXT_COLOUR, NONE, USES, VALUE, Component, Network, add_step
from triplewire.kernels.shared.columns import TestColumns
from triplewire.kernels.shared.compiled import called_helper, helper
from triplewire.kernels.shared.hashing import mix_bits

MOST_VARIABLES = 12  # that are listed
_ROUNDS = 3  # of refinement
_ANY = 1 << 62  # patterns that have any predicate, as a number that is larger than all
_int: Any = np.int64


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
def _refine(first: int, begin: int, end: int, t0: int, t1: int, clauses: StarClauses, variables: Any) -> None:
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
                cost += 1 if variables[USES, variable] == 1 else 4
    return cost if shared else -1


@called_helper
def _next(first: int, begin: int, end: int, is_first: bool, clauses: StarClauses, frequency: Any,
          variables: Any) -> int:  # fmt: skip
    """The place in `member`, of those from `begin` on, of the pattern whose turn it is."""
    pattern, member = clauses.pattern, clauses.member
    best, least, rarest, smallest = -1, 0, 0, _int(0)
    for m in range(begin, end):
        at = first + member[m]
        cost = _cost(at, is_first, pattern, variables)
        if cost < 0:
            continue
        often = frequency[pattern[at, 1]] if pattern[at, 1] >= 0 else _ANY
        seen = _int(0)
        for k in (1, 2, 0):
            seen = mix_bits(seen + _colour(pattern[at, k], -1, variables))
        if best < 0 or cost < least or (cost == least and (often < rarest or (often == rarest and seen < smallest))):
            best, least, rarest, smallest = m, cost, often, seen
    return best


@called_helper
def add_path(own: Component, clauses: StarClauses, tests: TestColumns, frequency: Any, variables: Any,
             network: Network, order: Order) -> int:  # fmt: skip
    """Add what is new of the path of a component, and its columns. Returns its last step, or NO_STEP where it has too
    many variables.
    USES is known of its variables. Its members are put in order."""
    first, begin, end, t0, t1 = own
    member, parent, width = clauses.member, NO_STEP, 0
    _refine(first, begin, end, t0, t1, clauses, variables)
    for m in range(begin, end):
        best = _next(first, m, end, m == begin, clauses, frequency, variables)
        member[m], member[best] = member[best], member[m]
        parent, width = add_step(first + member[m], parent, width, own, clauses, tests, network, variables)
        if width > MOST_VARIABLES:
            order_nothing(order)
            return NO_STEP
    order_path(width, own, clauses, variables, order)
    return int(parent)
