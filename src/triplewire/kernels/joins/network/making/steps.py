"""The steps of the join network, each of which is written down once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.joins.columns import StatedClauses
from triplewire.kernels.joins.network.columns import (
    CHILD,
    EDGE,
    LEAF,
    LINK,
    NEW_WIDTH,
    NUMBER,
    OBJECT,
    OPS,
    PARENT,
    PLACES,
    POSITION,
    SUBJECT,
    TEST,
    TEST_END,
    WIDTH,
)
from triplewire.kernels.shared.columns import RANGE_TEST, RESIDUAL, TestColumns
from triplewire.kernels.shared.compiled import called_helper, helper
from triplewire.kernels.shared.hashing import mix_bits

USES, COLOUR, NEXT_COLOUR, VALUE, VERTEX = 0, 1, 2, 3, 4  # rows of `variables`, by variable of the clause
NONE = -1  # as VALUE: it has no value yet; as VERTEX: it is none
STEPS, TESTS, NODES = 0, 1, 2  # places in `used`: how many there are
_int: Any = np.int64


class Network(NamedTuple):
    """The steps and the nodes of trees so far."""

    step: Any
    tested: Any
    slots: Any  # hash table of the steps
    node_offset: Any
    node: Any
    node_slots: Any  # hash table of the nodes
    used: Any


class Component(NamedTuple):
    """The component at hand: where its clause's patterns begin, its slice of `member`, its clause's slice of tests."""

    first: int
    begin: int
    end: int
    test: int
    test_end: int


class Frequency(NamedTuple):
    """How often constants and tests occur."""

    constant: Any  # constant -> positions of patterns that have it
    test: Any  # test -> variables of clauses that have it


@helper
def _is_before(position: int, number: int, tested: Any, at: int) -> Any:
    """Does a test belong before the one at a place? Range tests come last, and the others by position and number."""
    other = tested[at, POSITION]
    return position < other or (position == other and number < tested[at, NUMBER])


@called_helper
def _state_step(at: int, parent: int, width: int, t0: int, t1: int, clauses: StatedClauses, tests: TestColumns,
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
                position, place = _int(k), end
                if tests.kind[number] == RANGE_TEST:
                    position |= (_int(tests.group[number]) << OPS | _int(tests.op[number])) << PLACES
                    number = tests.rank[number]
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


@helper
def _shared(new: int, seen: Any, tests: int, network: Network) -> Any:
    """The step that is equal to the one written at `new`, with the hash `seen`, or else that one."""
    slots, used, mask = network.slots, network.used, network.slots.size - 1
    place = seen & mask
    while slots[place] >= 0 and not _same_step(slots[place], new, network.step, network.tested):
        place = (place + 1) & mask
    if slots[place] < 0:
        slots[place], used[STEPS], used[TESTS] = new, new + 1, tests
    return slots[place]


@called_helper
def add_step(at: int, parent: int, width: int, own: Component, clauses: StatedClauses, tests: TestColumns,
             network: Network, variables: Any) -> Any:  # fmt: skip
    """The step of a pattern, written down if it is new; and how many variables have values then."""
    step, used = network.step, network.used
    width, seen = _state_step(at, parent, width, own.test, own.test_end, clauses, tests, network, variables)
    return _shared(used[STEPS], seen, step[used[STEPS], TEST_END], network), width


@called_helper
def add_link(edge: int, child: int, network: Network) -> Any:
    """The LINK of an edge and a node, written down if it is new."""
    new, step, tests = network.used[STEPS], network.step, network.used[TESTS]
    step[new, :], step[new, PARENT], step[new, EDGE], step[new, CHILD] = 0, LINK, edge, child
    step[new, TEST] = step[new, TEST_END] = tests
    return _shared(new, mix_bits(mix_bits(_int(edge) + 5) + child), tests, network)
