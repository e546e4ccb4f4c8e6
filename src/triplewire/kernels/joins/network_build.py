"""The join network: the patterns of each component in an order of its own, as a path of join steps from a root.

Components that are equal but for the names of their variables and the order of their patterns get the same path, and
those that begin alike share the beginning. So what many clauses have in common is solved once for a publication
(`triplewire.kernels.joins.network`). The idea of a trie of join paths: L. Zervakis and others, "Efficient Continuous
Multi-Query Processing over Graph Streams" (TRIC), EDBT 2020, section 4.

The order: first what gives the fewest variables new values, then the predicate that most patterns have, so that common
beginnings are long. Ties are broken by colours of variables, refined by their neighbours, which do not depend on names
or order. Two isomorphic components that colours cannot tell apart may get different paths, which costs time only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.joins.columns import StarClauses
from triplewire.kernels.joins.network_columns import (
    LEAF,
    NEW_WIDTH,
    NO_STEP,
    OBJECT,
    PARENT,
    SUBJECT,
    TEST,
    TEST_END,
    WIDTH,
)
from triplewire.kernels.shared.columns import RESIDUAL, TestColumns
from triplewire.kernels.shared.compiled import allocating_kernel, called_helper, helper
from triplewire.kernels.shared.hashing import mix_bits

MOST_PATTERNS = 32  # of a component in the network
MOST_VARIABLES = 12  # that are listed
_ROUNDS = 3  # of refinement
USES, COLOUR, NEXT_COLOUR, VALUE = 0, 1, 2, 3  # rows of `variables`, by variable of the clause
_NONE = -1  # as VALUE: it has no value yet
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
    best, least, most, smallest = -1, 0, 0, _int(0)
    for m in range(begin, end):
        at = first + member[m]
        cost = _cost(at, is_first, pattern, variables)
        if cost < 0:
            continue
        often = frequency[pattern[at, 1]] if pattern[at, 1] >= 0 else 0
        seen = _int(0)
        for k in (1, 2, 0):
            seen = mix_bits(seen + _colour(pattern[at, k], -1, variables))
        if best < 0 or cost < least or (cost == least and (often > most or (often == most and seen < smallest))):
            best, least, most, smallest = m, cost, often, seen
    return best


@called_helper
def _state_step(at: int, parent: int, width: int, t0: int, t1: int, clauses: StarClauses, step: Any, tested: Any,
                used: int, tests: int, variables: Any) -> Any:  # fmt: skip
    """Write down the step of a pattern as row `used`, and its tests from `tests` on. Returns the variables with values,
    the end of the tests, and a hash of the step; the first of these is -1 where there are too many variables."""
    step[used, PARENT], step[used, WIDTH], step[used, TEST] = parent, width, tests
    seen = mix_bits(_int(parent) + 2)
    for k in range(3):
        code = clauses.pattern[at, k]
        if code < 0:
            variable = -1 - code
            is_new = variables[VALUE, variable] < 0
            if is_new and variables[USES, variable] == 1:
                code = LEAF
            else:
                if is_new:
                    variables[VALUE, variable] = width
                    width += 1
                code = -1 - variables[VALUE, variable]
            begin = tests
            for t in range(t0 if is_new else t1, t1):
                if clauses.test_variable[t] == variable:
                    number, place = clauses.test[t], tests
                    while place > begin and tested[place - 1, 1] > number:
                        tested[place, 0], tested[place, 1] = tested[place - 1, 0], tested[place - 1, 1]
                        place -= 1
                    tested[place, 0], tested[place, 1] = k, number
                    tests += 1
        step[used, SUBJECT + k] = code
        seen = mix_bits(seen + _int(code) + 1002)
    for t in range(step[used, TEST], tests):
        seen = mix_bits(seen + 3 * _int(tested[t, 1]) + tested[t, 0])
    step[used, TEST_END], step[used, NEW_WIDTH] = tests, width
    return (width if width <= MOST_VARIABLES else -1), tests, seen


@called_helper
def _same_step(a: int, b: int, step: Any, tested: Any) -> bool:
    """Are two steps equal? Those with the same parent begin with the same variables."""
    size = step[a, TEST_END] - step[a, TEST]
    same = step[a, PARENT] == step[b, PARENT] and size == step[b, TEST_END] - step[b, TEST]
    for k in range(SUBJECT, OBJECT + 1):
        same = same and step[a, k] == step[b, k]
    for t in range(size if same else 0):
        x, y = step[a, TEST] + t, step[b, TEST] + t
        same = same and tested[x, 0] == tested[y, 0] and tested[x, 1] == tested[y, 1]
    return bool(same)


@allocating_kernel
def build(chosen: Any, clauses: StarClauses, tests: TestColumns, variables: Any, frequency: Any, step: Any,
          tested: Any, last: Any) -> Any:  # fmt: skip
    """Write down the steps of the clauses that are `chosen` (1 by clause). Returns how many steps and tests there are.

    `step` has a row for each pattern and one more, `tested` one for each test, `last` one for each component; `variables`
    has four rows and a column for each variable of a clause. frequency[constant]: patterns that have it as predicate.
    """
    slots = np.full(_room(step.shape[0]), -1, np.int32)
    steps, used = 0, 0
    for c in range(chosen.size):
        first, t0, t1 = clauses.pattern_offset[c], clauses.test_offset[c], clauses.test_offset[c + 1]
        usable = chosen[c] > 0
        for t in range(t0, t1):
            usable = usable and tests.kind[clauses.test[t]] != RESIDUAL
        for k in range(clauses.component_offset[c], clauses.component_offset[c + 1]):
            last[k] = NO_STEP
            begin, size = first + clauses.component[k, 0], clauses.component[k, 1]
            if usable and size <= MOST_PATTERNS:
                last[k], steps, used = _add_path(
                    first,
                    begin,
                    begin + size,
                    t0,
                    t1,
                    clauses,
                    frequency,
                    variables,
                    (step, tested, slots),
                    steps,
                    used,
                )
    return steps, used


@helper
def _room(rows: int) -> int:
    """Places of a hash table for so many rows."""
    places = 16
    while places < 2 * rows:
        places *= 2
    return places


@called_helper
def _add_path(first: int, begin: int, end: int, t0: int, t1: int, clauses: StarClauses, frequency: Any, variables: Any,
              network: Any, steps: int, used: int) -> Any:  # fmt: skip
    """Add what is new of the path of a component, whose patterns are member[begin:end]; these are put in order.
    Returns its last step, and how many steps and tests there are then."""
    step, tested, slots = network
    member, parent, width, mask = clauses.member, NO_STEP, 0, slots.size - 1
    _refine(first, begin, end, t0, t1, clauses, variables)
    for m in range(begin, end):
        best = _next(first, m, end, m == begin, clauses, frequency, variables)
        member[m], member[best] = member[best], member[m]
        width, upto, seen = _state_step(first + member[m], parent, width, t0, t1, clauses, step, tested, steps, used,
                                        variables)  # fmt: skip
        if width < 0:
            return NO_STEP, steps, used
        at = seen & mask
        while slots[at] >= 0 and not _same_step(slots[at], steps, step, tested):
            at = (at + 1) & mask
        if slots[at] < 0:
            slots[at] = steps
            steps, used = steps + 1, upto
        parent = slots[at]
    return parent, steps, used
