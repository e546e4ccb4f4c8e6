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

from triplewire.kernels.shared.columns import TestColumns, is_found
from triplewire.kernels.shared.compiled import called_helper, helper
from triplewire.kernels.shared.hashing import mix_bits
from triplewire.verify.kernels.columns import APART, NO_STEP, StatedClauses
from triplewire.verify.kernels.make_steps import (
    COLOUR,
    NEXT_COLOUR,
    NODES,
    NONE,
    USES,
    VALUE,
    VERTEX,
    Component,
    Frequency,
    Network,
    Order,
    add_link,
    add_step,
    order_nothing,
    order_path,
    order_tree,
)

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


# --- paths -----------------------------------------------------------------------------------------------------------
# Components with cycles: their patterns in an order of their own, as a path of join steps from a root.


MOST_VARIABLES = 12  # that are listed
_ROUNDS = 3  # of refinement
_MOST_LOOKS = 1 << 14  # at patterns, while orders of a component are tried
_LISTED = 4  # what a new variable that is listed costs: more than those of a pattern that are not
_ANY = 1 << 62  # patterns that have any predicate, as a number that is larger than all


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
