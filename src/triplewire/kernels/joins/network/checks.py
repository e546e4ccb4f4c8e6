"""The arrays of a join network that was saved, checked: no kernel may leave them, or run through them without end.

Kernels rely on this without testing it: steps and nodes lead to others that exist and were written before them, no
tree is deeper or wider than the scratch arrays allow, and a component has as many columns as its solutions. Whether it
is the network of these clauses is not checked.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.joins.network.columns import (
    ABSENT,
    AFTER,
    ALWAYS,
    APART,
    AT_HAND,
    BEFORE,
    CHILD,
    COUNT_MASK,
    EDGE,
    FIRST_STEP,
    KIND,
    LEAF,
    LINK,
    MARK,
    MARKS,
    NO_STEP,
    NUMBER,
    OBJECT,
    OPS,
    OWNER,
    PARENT,
    PLACES,
    POSITION,
    PREDICATE,
    RANGED,
    ROOT,
    ROW,
    SECOND,
    SEVERAL,
    SUBJECT,
    UNLISTED,
    StepColumns,
)
from triplewire.kernels.joins.network.direct import LINKED, MOST_STEPS, PLAIN
from triplewire.kernels.joins.network.levels import of_variable
from triplewire.kernels.joins.network.making.build import MOST_PATTERNS, rows_of
from triplewire.kernels.joins.network.making.order import MOST_COLUMNS
from triplewire.kernels.joins.network.making.paths import MOST_VARIABLES
from triplewire.kernels.joins.network.selected import leaves_of
from triplewire.kernels.shared.compiled import called_helper, helper, kernel

RIGHT, STEP, TESTED, NODE, CLAUSE = 0, 1, 2, 3, 4
"""What `check_network` finds: nothing wrong, or where it is wrong first."""

_int: Any = np.int64


class Limits(NamedTuple):
    """How many there are of what a network leads to."""

    constants: int
    tests: int
    groups: int  # of range tests


class Extents(NamedTuple):
    """What the check keeps of steps and nodes that it has been through; all 0 before."""

    length: Any  # step of a path -> steps up to it
    of_path: Any  # step of a path -> columns of the solutions up to it, without those that are joined
    size: Any  # row -> 1 more than the steps of the tree below the node that begins there; 0 where none does
    below: Any  # row of a node -> columns of the tree below it, without that of its own variable
    of_tree: Any  # row of a node -> columns of its solutions


@helper
def _has_codes(s: int, variables: int, constants: int, step: Any) -> Any:
    """Are the positions of a pattern LEAF, one of so many variables, or one of the constants?"""
    holds = True
    for k in range(SUBJECT, OBJECT + 1):
        holds &= step[s, k] == LEAF or -variables <= step[s, k] < constants
    return holds


@called_helper
def _are_steps(steps: StepColumns, limits: Limits, extents: Extents) -> bool:
    """Do the steps of paths follow others, with as many variables as are joined? LINKs are looked at from nodes."""
    step, width = steps.step, steps.width
    holds = step[ALWAYS, PARENT] == APART
    for s in range(step.shape[0]):
        parent, before, after = step[s, PARENT], _int(width[s, BEFORE]), _int(width[s, AFTER])
        if parent == APART:
            holds &= bool(_has_codes(s, 2, limits.constants, step))
        elif parent != LINK:
            if not NO_STEP <= parent < s or not before <= after <= MOST_VARIABLES:
                return False
            if parent >= 0:
                holds &= step[parent, PARENT] >= NO_STEP and before == width[parent, AFTER]
                extents.length[s], extents.of_path[s] = extents.length[parent], extents.of_path[parent]
            else:
                holds &= before == 0
            extents.length[s] += 1
            extents.of_path[s] += leaves_of(s, steps)
            holds &= extents.length[s] <= MOST_PATTERNS and bool(_has_codes(s, after, limits.constants, step))
    return bool(holds)


@called_helper
def _are_tests(tested: Any, limits: Limits) -> Any:
    """Is what is tested a position of a pattern, and its test or its group one of those that there are?"""
    holds = True
    for t in range(tested.shape[0]):
        position, number = tested[t, POSITION], tested[t, NUMBER]
        holds &= position >= 0 and position & (RANGED - 1) < 3
        if position >= RANGED:
            holds &= position >> (PLACES + OPS) < limits.groups
        else:
            holds &= 0 <= number < limits.tests
    return holds


@helper
def _is_edge(edge: int, step: Any) -> Any:
    """Is a step APART, and the pattern of two variables?"""
    return (
        0 <= edge < step.shape[0]
        and step[edge, PARENT] == APART
        and step[edge, SUBJECT] == -1
        and step[edge, OBJECT] == -2
    )


@helper
def _is_direct(n: int, count: int, sort: int, columns: int, steps: StepColumns) -> Any:
    """Can a node, whose steps are right, be the sort of direct node that it says?"""
    if sort == PLAIN:
        return 0 < count <= MOST_STEPS and columns == 1
    linked = sort - LINKED
    if not 0 <= linked < count <= MOST_STEPS or columns != 2:
        return False
    s = steps.node[ROW * n + FIRST_STEP + linked]
    if steps.step[s, PARENT] == LINK:
        s = steps.step[s, EDGE] >> 1
    return steps.step[s, PREDICATE] >= 0


@called_helper
def _is_node(n: int, steps: StepColumns, extents: Extents) -> bool:
    """Has the node whose first row is `n` the steps that it says, which lead to nodes before it? What it keeps of the
    node is put down."""
    step, node, count = steps.step, steps.node, steps.node[ROW * n] & COUNT_MASK
    size, below = _int(1), _int(0)
    for k in range(max(count, AT_HAND)):
        s = node[ROW * n + FIRST_STEP + k]
        if not 0 <= s < step.shape[0] or (k >= count and s != ALWAYS):
            return False
        edge = step[s, EDGE] >> 1 if step[s, PARENT] == LINK else s
        if step[s, PARENT] == LINK:
            child = step[s, CHILD]
            if not 0 <= child < n or extents.size[child] == 0 or not _is_edge(edge, step):
                return False
            size += extents.size[child]
            below += 1 + extents.below[child]
        elif step[s, PARENT] != APART:
            return False
        if s != ALWAYS:
            size += step[s, PARENT] != LINK
            below += leaves_of(edge, steps)
        if size > MOST_PATTERNS + 1:
            return False
    sort, columns = node[ROW * n] >> KIND, below + of_variable(n, steps)
    extents.size[n], extents.below[n], extents.of_tree[n] = size, below, columns
    return bool(sort == 0 or _is_direct(n, count, sort, columns, steps))


@called_helper
def _are_nodes(steps: StepColumns, extents: Extents) -> Any:
    """Is the table of nodes one node behind the other?"""
    n, rows = 0, steps.node.size // ROW
    while n < rows:
        if steps.node[ROW * n] < 0 or n + rows_of(steps.node[ROW * n] & COUNT_MASK) > rows:
            return False
        if not _is_node(n, steps, extents):
            return False
        n += rows_of(steps.node[ROW * n] & COUNT_MASK)
    return rows > 0


@helper
def _columns_of(root: int, steps: StepColumns, extents: Extents) -> Any:
    """How many columns have the solutions of a component? UNLISTED: it is not in the network; -1: it has a wrong
    root."""
    if root >= 0:
        return _int(extents.of_tree[root]) if root < extents.size.size and extents.size[root] > 0 else _int(-1)
    if root == NO_STEP:
        return _int(UNLISTED)
    last = _int(-2) - root
    if last >= steps.step.shape[0] or steps.step[last, PARENT] < NO_STEP:
        return _int(-1)
    return _int(steps.width[last, AFTER]) + extents.of_path[last]


@helper
def _behind(columns: int, at: int, variable: Any) -> Any:
    """Where the variables of the next component are, behind those of one with so many columns at a place; 0 where
    kernels look at no more of them, which is so behind an UNLISTED one, and -1 where these are wrong."""
    if columns < 0 or at >= variable.size:
        return _int(-1)
    if at == 0 or variable[at] == UNLISTED:
        return _int(0)
    if variable[at] != columns or columns > MOST_COLUMNS or at + columns >= variable.size:
        return _int(-1)
    return at + 1 + columns


@called_helper
def _are_clauses(steps: StepColumns, components: Any, owner: Any, extents: Extents) -> bool:
    """Has each clause an owner, components that there are, and their variables? Components of several are one behind
    the other in `roots`."""
    clause, roots, variable, used = steps.clause, steps.roots, steps.variable, _int(0)
    for c in range(clause.shape[0]):
        root, second, is_several = clause[c, ROOT], clause[c, SECOND], clause[c, ROOT] == SEVERAL
        if is_several and (second != used or used >= roots.size):
            return False
        count = _int(roots[used]) if is_several else _int(1 + (second != ABSENT))
        if not 0 <= count <= components[c]:
            return False
        if is_several and used + 1 + count > roots.size:
            return False
        at = _int(clause[c, MARK] >> MARKS) + 1
        if clause[c, OWNER] != owner[c] or not 0 < at <= variable.size:
            return False
        for j in range(count):
            own = roots[used + 1 + j] if is_several else root if j == 0 else second
            at = _behind(_columns_of(own, steps, extents), at, variable)
            if at < 0:
                return False
        used += (1 + count) * is_several
    return bool(used == roots.size)


@kernel
def check_network(steps: StepColumns, limits: Limits, components: Any, owner: Any, extents: Extents) -> int:
    """What is wrong with a network whose arrays have the right types and shapes, or RIGHT. `components` says how
    many each clause has at the most, `owner` whose it is, both in the order of the network."""
    if not _are_steps(steps, limits, extents):
        return STEP
    if not _are_tests(steps.tested, limits):
        return TESTED
    if not _are_nodes(steps, extents):
        return NODE
    return RIGHT if _are_clauses(steps, components, owner, extents) else CLAUSE
