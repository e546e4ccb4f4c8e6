"""Components without cycles: trees of variables, whose equal subtrees are one node of the join network.

The vertices of a component are its variables that stand in more than one place, its edges are patterns of two of them.
A node says what a variable needs: how many steps, and which: patterns of it alone, and links along its edges to other
nodes, its children. Children are written down before their parents, and equal nodes once, so components that are equal
but for names and order have the same root: the centre of the tree. Of two centres it is the one with the rarer constant
or test, as the other one's half is shared by more clauses, or the one that comes later by a hash. Source of the order:
A. Aho, J. Hopcroft, J. Ullman, "The Design and Analysis of Computer Algorithms", 1974, section 3.2 (isomorphic trees).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.joins.columns import StatedClauses
from triplewire.kernels.joins.network.columns import APART, NO_STEP
from triplewire.kernels.joins.network.making.order import Order, order_tree
from triplewire.kernels.joins.network.making.steps import (
    NODES,
    NONE,
    USES,
    VALUE,
    VERTEX,
    Component,
    Frequency,
    Network,
    add_link,
    add_step,
)
from triplewire.kernels.shared.columns import TestColumns
from triplewire.kernels.shared.compiled import called_helper
from triplewire.kernels.shared.hashing import mix_bits
from triplewire.kernels.shared.ranks import is_found

_OFTEN = 1 << 62  # more than any constant occurs
_int: Any = np.int64


class Tree(NamedTuple):
    """The tree at hand. It may be used again."""

    step: Any  # pattern -> its step
    ends: Any  # shape (2, patterns): its vertices as subject and as object, or NONE
    degree: Any  # vertex -> its edges to vertices that have no node yet
    node: Any  # vertex -> its node, or NONE
    leaves: Any  # vertices that get a node next


@called_helper
def _vertices(own: Component, clauses: StatedClauses, variables: Any, tree: Tree) -> int:
    """Number the vertices, and write down those of each pattern. Returns how many they are, or NONE where the component
    has a cycle, or a predicate that stands in another place, too."""
    pattern, member, count, edges = clauses.pattern, clauses.member, 0, 0
    for m in range(own.begin, own.end):
        for k in range(3):
            if pattern[own.first + member[m], k] < 0:
                variables[VERTEX, -1 - pattern[own.first + member[m], k]] = NONE
    for m in range(own.begin, own.end):
        tree.ends[0, m - own.begin] = tree.ends[1, m - own.begin] = NONE
        for k in range(3):
            variable = -1 - pattern[own.first + member[m], k]
            if variable < 0 or variables[USES, variable] == 1:
                continue
            if k == 1:
                return NONE
            if variables[VERTEX, variable] == NONE:
                variables[VERTEX, variable] = count
                tree.degree[count], tree.node[count] = 0, NONE
                count += 1
            tree.ends[k // 2, m - own.begin] = variables[VERTEX, variable]
        subject, object_ = tree.ends[0, m - own.begin], tree.ends[1, m - own.begin]
        if subject == object_:
            tree.ends[1, m - own.begin] = NONE
        elif subject != NONE and object_ != NONE:
            tree.degree[subject] += 1
            tree.degree[object_] += 1
            edges += 1
    return count if edges == max(count, 1) - 1 else NONE


@called_helper
def _describe(vertex: int, patterns: int, tree: Tree, network: Network) -> Any:
    """Write down a node behind those that are there. Returns where it ends, and a hash of it."""
    node, at = network.node, network.node_offset[network.used[NODES]]
    end, seen = at + 1, _int(0)
    for m in range(patterns):
        subject, object_ = tree.ends[0, m], tree.ends[1, m]
        is_edge, step = subject != NONE and object_ != NONE, tree.step[m]
        if subject != vertex and object_ != vertex and (subject != NONE or object_ != NONE):
            continue
        if is_edge:
            child = tree.node[object_ if subject == vertex else subject]
            if child == NONE:
                continue
            step = add_link(step << 1 | int(object_ == vertex), child, network)
        place, end = end, end + 1
        while place > at + 1 and node[place - 1] > step:
            node[place] = node[place - 1]
            place -= 1
        node[place] = step
    node[at] = end - at - 1
    for place in range(at, end):
        seen = mix_bits(seen + node[place] + 7)
    return end, seen


@called_helper
def _same_node(other: int, at: int, end: int, network: Network) -> bool:
    """Is a node equal to the one that has been written at `at`?"""
    node, begin = network.node, network.node_offset[other]
    same = network.node_offset[other + 1] - begin == end - at
    for k in range(end - at if same else 0):
        same = same and node[begin + k] == node[at + k]
    return bool(same)


@called_helper
def _add_node(vertex: int, patterns: int, tree: Tree, network: Network) -> Any:
    """The node of a vertex, which is written down if it is new."""
    slots, new = network.node_slots, network.used[NODES]
    end, seen = _describe(vertex, patterns, tree, network)
    place, mask = seen & (slots.size - 1), slots.size - 1
    while slots[place] >= 0 and not _same_node(slots[place], network.node_offset[new], end, network):
        place = (place + 1) & mask
    if slots[place] < 0:
        slots[place], network.node_offset[new + 1], network.used[NODES] = new, end, new + 1
    return slots[place]


@called_helper
def _strip(patterns: int, count: int, tree: Tree, network: Network) -> int:
    """Give the outermost vertices their nodes, again and again, until one or two are left. Returns how many are."""
    left = count
    while left > 2:
        leaves = 0
        for vertex in range(count):
            if tree.degree[vertex] == 1 and tree.node[vertex] == NONE:
                tree.leaves[leaves], leaves = vertex, leaves + 1
        for k in range(leaves):
            vertex = tree.leaves[k]
            node = _add_node(vertex, patterns, tree, network)
            for m in range(patterns):
                subject, object_ = tree.ends[0, m], tree.ends[1, m]
                if subject != NONE and object_ != NONE and (subject == vertex or object_ == vertex):
                    tree.degree[subject] -= 1
                    tree.degree[object_] -= 1
            tree.node[vertex] = node
        left -= leaves
    return left


@called_helper
def _rarest(
    vertex: int, own: Component, clauses: StatedClauses, tests: TestColumns, often: Frequency, tree: Tree
) -> Any:
    """How often does the rarest constant or test in the patterns of a vertex alone occur?"""
    least = _int(_OFTEN)
    for m in range(own.end - own.begin):
        subject, object_ = tree.ends[0, m], tree.ends[1, m]
        if (subject == NONE or object_ == NONE) and (subject == vertex or object_ == vertex):
            for k in range(3):
                code = clauses.pattern[own.first + clauses.member[own.begin + m], k]
                least = min(least, often.constant[code]) if code >= 0 else least
                for t in range(own.test if code < 0 else own.test_end, own.test_end):
                    if clauses.test_variable[t] == -1 - code and is_found(clauses.test[t], tests):
                        least = min(least, often.test[clauses.test[t]])
    return least


@called_helper
def _root(count: int, left: int, own: Component, clauses: StatedClauses, tests: TestColumns, often: Frequency,
          tree: Tree, network: Network) -> int:  # fmt: skip
    """The vertex that becomes the root. Where two are left, the other one gets its node."""
    patterns = own.end - own.begin
    root = child = NONE
    for vertex in range(count):
        if tree.node[vertex] == NONE:
            root, child = vertex, root
    if left < 2:
        return max(root, 0)
    for m in range(patterns):
        if min(tree.ends[0, m], tree.ends[1, m]) == child and max(tree.ends[0, m], tree.ends[1, m]) == root:
            root, child = tree.ends[0, m], tree.ends[1, m]
            break
    rarest = _rarest(root, own, clauses, tests, often, tree)
    other = _rarest(child, own, clauses, tests, often, tree)
    _, of_root = _describe(root, patterns, tree, network)
    _, of_child = _describe(child, patterns, tree, network)
    if other < rarest or (other == rarest and of_child > of_root):
        root, child = child, root
    tree.node[child] = _add_node(child, patterns, tree, network)
    return int(root)


@called_helper
def add_tree(own: Component, clauses: StatedClauses, tests: TestColumns, often: Frequency, variables: Any, tree: Tree,
             network: Network, order: Order) -> int:  # fmt: skip
    """Add what is new of the tree of a component, and its columns. Returns its root, or NO_STEP where it is no tree.
    USES is known of its variables."""
    count, patterns = _vertices(own, clauses, variables, tree), own.end - own.begin
    if count == NONE:
        return NO_STEP
    for m in range(patterns):
        at = own.first + clauses.member[own.begin + m]
        for k in range(3):
            if clauses.pattern[at, k] < 0:
                variables[VALUE, -1 - clauses.pattern[at, k]] = NONE
        tree.step[m], _ = add_step(at, APART, 0, own, clauses, tests, network, variables)
    left = _strip(patterns, count, tree, network)
    root = _root(count, left, own, clauses, tests, often, tree, network)
    tree.node[root] = _add_node(root, patterns, tree, network)
    order_tree(root, count, own, clauses, variables, tree, network, order)
    return int(tree.node[root])
