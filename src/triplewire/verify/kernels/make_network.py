"""The join network of a segment: trees, and paths where there are cycles.

Trees: `triplewire.verify.kernels.make_trees`. Paths: `triplewire.verify.kernels.make_trees`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.shared.columns import TestColumns
from triplewire.kernels.shared.compiled import allocating_kernel, called_helper, helper, kernel
from triplewire.verify.kernels.columns import (
    ALWAYS,
    APART,
    AT_HAND,
    CHILD,
    FIRST_STEP,
    LEAF,
    LINK,
    NO_STEP,
    OBJECT,
    PARENT,
    ROW,
    SUBJECT,
    UNLISTED,
    StatedClauses,
)
from triplewire.verify.kernels.make_steps import (
    NODES,
    STEPS,
    TESTS,
    USES,
    Component,
    Frequency,
    Network,
    Order,
    order_clause,
    order_nothing,
)
from triplewire.verify.kernels.make_trees import Orders, Tree, add_path, add_tree

MOST_PATTERNS = 32  # of a component in the network


@helper
def _room(rows: int) -> int:
    """Places of a hash table for so many rows."""
    places = 16
    while places < 2 * rows:
        places *= 2
    return places


@called_helper
def _add(own: Component, clauses: StatedClauses, tests: TestColumns, often: Frequency, variables: Any, tree: Tree,
         orders: Orders, network: Network, order: Order) -> int:  # fmt: skip
    """What stands in `last` for a component. Its columns are put down, too."""
    pattern, member = clauses.pattern, clauses.member
    for count in range(2):
        for m in range(own.begin, own.end):
            for k in range(3):
                if pattern[own.first + member[m], k] < 0:
                    variable = -1 - pattern[own.first + member[m], k]
                    variables[USES, variable] = variables[USES, variable] + 1 if count else 0
    root = add_tree(own, clauses, tests, often, variables, tree, network, order)
    if root == NO_STEP:
        last = add_path(own, clauses, tests, often.constant, variables, orders, network, order)
        root = last if last == NO_STEP else -2 - last
    return int(root)


@allocating_kernel
def build(clauses: StatedClauses, in_order: Any, tests: TestColumns, variables: Any, often: Frequency, step: Any,
          tested: Any, node_offset: Any, node: Any, last: Any, variable: Any, begins: Any) -> Any:  # fmt: skip
    """Write down the network of clauses, without their residual predicates. Returns
    how many steps, tests and nodes there are, and how much of `variable` is used (`StepColumns.variable`): what is of a
    clause, from where `begins` says. `in_order`, shape (clauses, 2): the clauses in the order of the network, and how
    many variables they select.

    `step` has two rows for each pattern and two more, `tested` one for each test and pattern of the tested variable,
    `last` one for each component, `node_offset` two for each pattern and two more, `node` five for each pattern (see
    `triplewire.verify.kernels.make_trees`). `variables` has five rows and a column for each variable of a
    clause. The members of components with cycles are put in order.
    """
    slots, used = np.full(_room(step.shape[0]), -1, np.int32), np.zeros(3, np.int64)
    node_slots = np.full(_room(node_offset.size), -1, np.int32)
    of_pattern = np.empty((3, MOST_PATTERNS), np.int32)
    of_vertex = np.empty((3, 2 * MOST_PATTERNS), np.int32)  # until it is known that it is no tree, there may be so many
    tree = Tree(of_pattern[0], of_pattern[1:], of_vertex[0], of_vertex[1], of_vertex[2])
    of_order, codes = np.zeros((4, MOST_PATTERNS), np.int32), np.zeros((2, MOST_PATTERNS, 4), np.int64)
    orders = Orders(of_order[0], of_order[1], of_order[2:], codes)
    network = Network(step, tested, slots, node_offset, node, node_slots, used)
    order = Order(
        variable, np.full(1, 2, np.int64), np.empty(MOST_PATTERNS + 1, np.int32), np.empty(MOST_PATTERNS, np.uint8)
    )
    variable[:2] = UNLISTED
    node_offset[0], used[STEPS] = 0, ALWAYS + 1
    step[ALWAYS, :], step[ALWAYS, PARENT], step[ALWAYS, SUBJECT : OBJECT + 1] = 0, APART, LEAF
    for place in range(begins.size):
        c = in_order[place, 0]
        first, t0, t1 = clauses.pattern_offset[c], clauses.test_offset[c], clauses.test_offset[c + 1]
        begins[place] = order_clause(in_order[place, 1], order)
        for k in range(clauses.component_offset[c], clauses.component_offset[c + 1]):
            begin, size = first + clauses.component[k, 0], clauses.component[k, 1]
            last[k] = NO_STEP
            if size <= MOST_PATTERNS:
                own = Component(first, begin, begin + size, t0, t1)
                last[k] = _add(own, clauses, tests, often, variables, tree, orders, network, order)
            else:
                order_nothing(order)
    return used[STEPS], used[TESTS], used[NODES], order.used[0]


@helper
def rows_of(steps: int) -> int:
    """Rows of a node of so many steps."""
    return (FIRST_STEP + max(steps, AT_HAND) + ROW - 1) // ROW


@kernel
def count_rows(node_offset: Any, nodes: int, place: Any) -> int:
    """The first row of each node, in `place`. Returns how many rows there are."""
    rows = 0
    for n in range(nodes):
        place[n] = rows
        rows += rows_of(node_offset[n + 1] - node_offset[n] - 1)
    return rows


@kernel
def pack(node_offset: Any, node: Any, nodes: int, place: Any, step: Any, last: Any, rows: Any) -> None:
    """Put the nodes into `rows`, flat and all ALWAYS before, and have their places told to all who lead to them: the
    links in `step`, and the components in `last`."""
    for n in range(nodes):
        begin, at = node_offset[n] + 1, ROW * place[n]
        rows[at] = node_offset[n + 1] - begin
        for k in range(begin, node_offset[n + 1]):
            rows[at + FIRST_STEP + k - begin] = node[k]
    for s in range(step.shape[0]):
        if step[s, PARENT] == LINK:
            step[s, CHILD] = place[step[s, CHILD]]
    for k in range(last.size):
        if last[k] >= 0:
            last[k] = place[last[k]]
