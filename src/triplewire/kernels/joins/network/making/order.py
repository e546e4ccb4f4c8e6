"""Which variable of a clause is which column of a solution?

Solutions of a component have their columns in an order that the network gives, so that components that share a root
share their solutions.

Of a tree: first the variable of the root, then node by node, those nearest to the root first, what each step adds: the
places of a pattern that are LEAF, and behind that of a link's edge the variable of its child. Of a path: the variables
in the order in which its steps give them values, then what is LEAF, step by step. The same order from the network
alone: `triplewire.kernels.joins.network.levels`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from triplewire.kernels.joins.columns import StatedClauses
from triplewire.kernels.joins.network.columns import CHILD, EDGE, LINK, PARENT, UNLISTED
from triplewire.kernels.joins.network.making.steps import NONE, USES, VALUE, Component, Network
from triplewire.kernels.shared.compiled import called_helper, helper

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
