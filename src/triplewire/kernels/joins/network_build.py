"""The join network: the patterns of each component in an order of its own, as a path of join steps from a root.

Components that are equal but for the names of their variables and the order of their patterns get the same path, and
those that begin alike share the beginning. So what many clauses have in common is solved once for a publication
(`triplewire.kernels.joins.network`). The idea of a trie of join paths: L. Zervakis and others, "Efficient Continuous
Multi-Query Processing over Graph Streams" (TRIC), EDBT 2020, section 4.

The order: first what gives the fewest variables new values, then the predicate that the fewest patterns have. Ties are
broken by colours of variables, refined by their neighbours, which do not depend on names or order. Two isomorphic
components that colours cannot tell apart may get different paths, which costs time only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.joins.columns import StarClauses
from triplewire.kernels.joins.network_columns import (
    LEAF,
    NEW_WIDTH,
    NO_STEP,
    NUMBER,
    OBJECT,
    PARENT,
    POSITION,
    RANGED,
    SUBJECT,
    TEST,
    TEST_END,
    WIDTH,
)
from triplewire.kernels.shared.columns import RANGE_TEST, RESIDUAL, TestColumns
from triplewire.kernels.shared.compiled import allocating_kernel, called_helper, helper
from triplewire.kernels.shared.hashing import mix_bits

MOST_PATTERNS = 32  # of a component in the network
MOST_VARIABLES = 12  # that are listed
_ROUNDS = 3  # of refinement
USES, COLOUR, NEXT_COLOUR, VALUE = 0, 1, 2, 3  # rows of `variables`, by variable of the clause
_NONE = -1  # as VALUE: it has no value yet
_ANY = 1 << 62  # patterns that have any predicate, as a number that is larger than all
STEPS, TESTS = 0, 1  # places in `used`: how many there are
_int: Any = np.int64


class Network(NamedTuple):
    """The steps so far."""

    step: Any
    tested: Any
    slots: Any  # hash table of the steps
    used: Any


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
                variables[USES, variable], variables[COLOUR, variable], variables[VALUE, variable] = 0, 1, _NONE
    for m in range(begin, end):
        for k in range(3):
            if pattern[first + member[m], k] < 0:
                variables[USES, -1 - pattern[first + member[m], k]] += 1
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


@helper
def _is_before(position: int, number: int, tested: Any, at: int) -> Any:
    """Does a test belong before the one at a place? Range tests come last, and the others by position and number."""
    other = tested[at, POSITION]
    return position < other or (position == other and number < tested[at, NUMBER])


@called_helper
def _state_step(at: int, parent: int, width: int, t0: int, t1: int, clauses: StarClauses, tests: TestColumns,
                network: Network, variables: Any) -> Any:  # fmt: skip
    """Write down the step of a pattern behind those that are there, and its tests, which are not residual. Returns how
    many variables have values then, and a hash of the step."""
    step, tested, own = network.step, network.tested, network.used[STEPS]
    begin = end = network.used[TESTS]
    step[own, PARENT], step[own, WIDTH], step[own, TEST] = parent, width, begin
    seen = mix_bits(_int(parent) + 2)
    for k in range(3):
        code, variable = clauses.pattern[at, k], -1 - clauses.pattern[at, k]
        is_new = code < 0 and variables[VALUE, variable] < 0
        if is_new and variables[USES, variable] == 1:
            code = LEAF
        elif code < 0:
            if is_new:
                variables[VALUE, variable], width = width, width + 1
            code = -1 - variables[VALUE, variable]
        for t in range(t0 if is_new else t1, t1):
            number = clauses.test[t]
            if clauses.test_variable[t] == variable and tests.kind[number] != RESIDUAL:
                position, place = k + (RANGED if tests.kind[number] == RANGE_TEST else 0), end
                while place > begin and _is_before(position, number, tested, place - 1):
                    tested[place, POSITION], tested[place, NUMBER] = (
                        tested[place - 1, POSITION], tested[place - 1, NUMBER])  # fmt: skip
                    place -= 1
                tested[place, POSITION], tested[place, NUMBER], end = position, number, end + 1
        step[own, SUBJECT + k] = code
        seen = mix_bits(seen + _int(code) + 1002)
    for t in range(step[own, TEST], end):
        seen = mix_bits(seen + 3 * _int(tested[t, NUMBER]) + tested[t, POSITION])
    step[own, TEST_END], step[own, NEW_WIDTH] = end, width
    return width, seen


@called_helper
def _same_step(a: int, b: int, step: Any, tested: Any) -> bool:
    """Are two steps equal? Those with the same parent begin with the same variables."""
    size = step[a, TEST_END] - step[a, TEST]
    same = step[a, PARENT] == step[b, PARENT] and size == step[b, TEST_END] - step[b, TEST]
    for k in range(SUBJECT, OBJECT + 1):
        same = same and step[a, k] == step[b, k]
    for t in range(size if same else 0):
        x, y = step[a, TEST] + t, step[b, TEST] + t
        same = same and tested[x, POSITION] == tested[y, POSITION] and tested[x, NUMBER] == tested[y, NUMBER]
    return bool(same)


@allocating_kernel
def build(chosen: Any, clauses: StarClauses, tests: TestColumns, variables: Any, frequency: Any, step: Any,
          tested: Any, last: Any) -> Any:  # fmt: skip
    """Write down the steps of the clauses that are `chosen` (1 by clause), without their residual predicates. Returns
    how many steps and tests there are.

    `step` has a row for each pattern and one more, `tested` one for each test, `last` one for each component;
    `variables` has four rows and a column for each variable of a clause. frequency[constant]: patterns that have it as
    predicate. The members of components are put in order.
    """
    slots, used = np.full(_room(step.shape[0]), -1, np.int32), np.zeros(2, np.int64)
    for c in range(chosen.size):
        first, t0, t1 = clauses.pattern_offset[c], clauses.test_offset[c], clauses.test_offset[c + 1]
        for k in range(clauses.component_offset[c], clauses.component_offset[c + 1]):
            begin, size = first + clauses.component[k, 0], clauses.component[k, 1]
            last[k] = NO_STEP
            if chosen[c] > 0 and size <= MOST_PATTERNS:
                last[k] = _add_path(
                    first, begin, begin + size, t0, t1, clauses, tests, frequency, variables,
                    Network(step, tested, slots, used),
                )  # fmt: skip
    return used[STEPS], used[TESTS]


@helper
def _room(rows: int) -> int:
    """Places of a hash table for so many rows."""
    places = 16
    while places < 2 * rows:
        places *= 2
    return places


@called_helper
def _add_path(first: int, begin: int, end: int, t0: int, t1: int, clauses: StarClauses, tests: TestColumns,
              frequency: Any, variables: Any, network: Network) -> int:  # fmt: skip
    """Add what is new of the path of a component, whose patterns are member[begin:end]. Returns its last step."""
    step, tested, slots, used = network
    member, parent, width, mask = clauses.member, NO_STEP, 0, slots.size - 1
    _refine(first, begin, end, t0, t1, clauses, variables)
    for m in range(begin, end):
        best = _next(first, m, end, m == begin, clauses, frequency, variables)
        member[m], member[best] = member[best], member[m]
        width, seen = _state_step(first + member[m], parent, width, t0, t1, clauses, tests, network, variables)
        if width > MOST_VARIABLES:
            return NO_STEP
        own, at = used[STEPS], seen & mask
        while slots[at] >= 0 and not _same_step(slots[at], own, step, tested):
            at = (at + 1) & mask
        if slots[at] < 0:
            slots[at], used[STEPS], used[TESTS] = own, own + 1, step[own, TEST_END]
        parent = slots[at]
    return int(parent)
