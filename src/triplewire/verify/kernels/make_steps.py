"""The steps of the join network, each of which is written down once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.shared.columns import RANGE_TEST, RESIDUAL, TestColumns
from triplewire.kernels.shared.compiled import called_helper, helper
from triplewire.kernels.shared.hashing import mix_bits
from triplewire.verify.kernels.columns import (
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
    UNLISTED,
    WIDTH,
    StatedClauses,
)

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


# --- order -----------------------------------------------------------------------------------------------------------
# Which variable of a clause is which column of a solution?


MOST_COLUMNS = 60  # of a component whose solutions are listed: a set of columns is the bits of a number


class Order(NamedTuple):
    """What the order of columns is worked out with. It may be used again."""

    variable: Any  # as in `StepColumns`
    used: Any  # one number: how much of `variable`
    queue: Any  # vertices whose steps come next
    is_done: Any  # pattern -> has it had its turn?


@helper
def _emit(variable: int, at: int, order: Order) -> int:
    """Put a variable behind those that end at `at`. Returns the end."""
    order.variable[at] = min(variable, UNLISTED)
    return at + 1


@helper
def _emit_leaves(row: int, at: int, pattern: Any, variables: Any, order: Order) -> int:
    """Put down the variables of a pattern that stand in no other place."""
    for k in range(3):
        if pattern[row, k] < 0 and variables[USES, -1 - pattern[row, k]] == 1:
            at = _emit(-1 - pattern[row, k], at, order)
    return at


@called_helper
def _end(begin: int, at: int, order: Order) -> None:
    """A component's columns lie from `begin` to `at`, behind their number."""
    count = at - begin - 1
    for k in range(begin + 1, at):
        count = UNLISTED if order.variable[k] == UNLISTED else count
    order.variable[begin] = UNLISTED if count > MOST_COLUMNS else count
    order.used[0] = begin + 1 if order.variable[begin] == UNLISTED else at


@helper
def order_clause(selected: int, order: Order) -> Any:
    """Begin a clause that selects so many variables. Returns where it begins."""
    begin = order.used[0]
    order.variable[begin], order.used[0] = min(selected, UNLISTED), begin + 1
    return begin


@called_helper
def order_nothing(order: Order) -> None:
    """The component at hand is not in the network."""
    order.variable[order.used[0]] = UNLISTED
    order.used[0] += 1


@helper
def _is_next(s: int, vertex: int, m: int, tree: Any, step: Any) -> Any:
    """Is a pattern of a vertex what a step of the vertex's node stands for?"""
    subject, object_ = tree.ends[0, m], tree.ends[1, m]
    if step[s, PARENT] != LINK:
        return tree.step[m] == s and max(subject, object_) == vertex and min(subject, object_) == NONE
    near, far = (object_, subject) if step[s, EDGE] & 1 else (subject, object_)
    return tree.step[m] == step[s, EDGE] >> 1 and near == vertex and far != NONE and tree.node[far] == step[s, CHILD]


@called_helper
def order_tree(root: int, count: int, own: Component, clauses: StatedClauses, variables: Any, tree: Any,
               network: Network, order: Order) -> None:  # fmt: skip
    """Put down the columns of a tree of `count` vertices, whose nodes are known."""
    pattern, step, begin = clauses.pattern, network.step, order.used[0]
    at, patterns, head, tail = begin + 1, own.end - own.begin, 0, 1
    order.queue[0] = root if count > 0 else NONE
    for m in range(patterns):
        order.is_done[m] = 0
    for m in range(patterns):
        for k in range(2):
            if at == begin + 1 and count > 0 and tree.ends[k, m] == root:
                at = _emit(-1 - pattern[own.first + clauses.member[own.begin + m], 2 * k], at, order)
    while head < tail:
        vertex, head = order.queue[head], head + 1
        n = tree.node[max(vertex, 0)]
        for place in range(network.node_offset[n] + 1, network.node_offset[n + 1]):
            s, pattern_at = network.node[place], NONE
            for m in range(patterns):
                if pattern_at == NONE and order.is_done[m] == 0 and _is_next(s, vertex, m, tree, step):
                    pattern_at = m
            order.is_done[pattern_at] = 1
            row = own.first + clauses.member[own.begin + pattern_at]
            at = _emit_leaves(row, at, pattern, variables, order)
            if step[s, PARENT] == LINK:
                back = step[s, EDGE] & 1
                at = _emit(-1 - pattern[row, 2 - 2 * back], at, order)
                order.queue[tail], tail = tree.ends[1 - back, pattern_at], tail + 1
    _end(begin, at, order)


@called_helper
def order_path(width: int, own: Component, clauses: StatedClauses, variables: Any, order: Order) -> None:
    """Put down the columns of a path whose members are in order, and that lists `width` variables."""
    pattern, begin = clauses.pattern, order.used[0]
    at = begin + 1 + width
    for m in range(own.begin, own.end):
        row = own.first + clauses.member[m]
        for k in range(3):
            if pattern[row, k] < 0 and variables[VALUE, -1 - pattern[row, k]] >= 0:
                order.variable[begin + 1 + variables[VALUE, -1 - pattern[row, k]]] = min(-1 - pattern[row, k], UNLISTED)
        at = _emit_leaves(row, at, pattern, variables, order)
    _end(begin, at, order)
