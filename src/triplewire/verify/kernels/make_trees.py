"""Components without cycles become trees of variables, whose equal subtrees are one node of the join network.

    add_tree(component):
        each pattern becomes a step: equal steps (with their tests) are written down once, found by a hash
        again and again: each outermost vertex becomes a node, {its patterns' steps, its links to nodes}, once as well
        one vertex is left: it is the root. Of two, the one with the rarer constant or test, or with the larger hash
        columns: from the root on, the variables in the order in which steps are come to

The vertices of a component are its variables that stand in more than one place, its edges are patterns of two of them.
A node says what a variable needs: patterns of it alone, and links along its edges to other nodes, its children. These
are written down before it, so components that are equal but for names and order have the same root, the centre of the
tree; of two centres the one with what is rarer, as the other one's half is shared by more clauses. Source of the order:
A. Aho, J. Hopcroft, J. Ullman, "The Design and Analysis of Computer Algorithms", 1974, section 3.2 (isomorphic trees).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.shared.columns import RANGE_TEST, RESIDUAL, TestColumns, is_found
from triplewire.kernels.shared.compiled import called_helper, helper
from triplewire.kernels.shared.hashing import mix_bits
from triplewire.kernels.shared.search import same_numbers
from triplewire.verify.kernels import columns as net
from triplewire.verify.kernels.columns import StatedClauses

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


@called_helper
def fill(row: int, value: int, part: Component, clauses: StatedClauses, variables: Any) -> None:
    """Write a value for all variables of a component into a row of `variables`."""
    for m in range(part.begin, part.end):
        for k in range(3):
            code = clauses.pattern[part.first + clauses.member[m], k]
            if code < 0:
                variables[row, -1 - code] = value


class Frequency(NamedTuple):
    """How often constants and tests occur."""

    constant: Any  # constant -> positions of patterns that have it
    test: Any  # test -> variables of clauses that have it


@helper
def _sort_test(position: int, number: int, begin: int, end: int, tested: Any) -> None:
    """Put a test among those from `begin` to `end`: range tests come last, and the others by position and number."""
    place = end
    while place > begin and (
        position < tested[place - 1, net.POSITION]
        or (position == tested[place - 1, net.POSITION] and number < tested[place - 1, net.NUMBER])
    ):
        for column in range(2):
            tested[place, column] = tested[place - 1, column]
        place -= 1
    tested[place, net.POSITION], tested[place, net.NUMBER] = position, number


@called_helper
def _state_step(at: int, parent: int, width: int, t0: int, t1: int, clauses: StatedClauses, tests: TestColumns,
                network: Network, variables: Any) -> Any:  # fmt: skip
    """Write down the step of a pattern behind those that are there, and its tests, which are not residual. Returns how
    many variables have values then, and a hash of the step."""
    step, tested, new = network.step, network.tested, network.used[net.USED_STEPS]
    begin = end = network.used[net.USED_TESTS]
    step[new, net.PARENT], step[new, net.WIDTH], step[new, net.TEST] = parent, width, begin
    seen = mix_bits(_int(parent) + 2)
    for k in range(3):
        code, variable = clauses.pattern[at, k], -1 - clauses.pattern[at, k]
        is_new = code < 0 and variables[net.VALUE, variable] < 0
        if is_new and variables[net.USES, variable] == 1:
            code = net.LEAF
        elif code < 0:
            if is_new:
                variables[net.VALUE, variable], width = width, width + 1
            code = -1 - variables[net.VALUE, variable]
        for t in range(t0 if is_new else t1, t1):
            number = clauses.test[t]
            if clauses.test_variable[t] == variable and tests.kind[number] != RESIDUAL:
                position = _int(k)
                if tests.kind[number] == RANGE_TEST:
                    position |= (_int(tests.group[number]) << net.OPS | _int(tests.op[number])) << net.PLACES
                    number = tests.rank[number]
                _sort_test(position, number, begin, end, tested)
                end += 1
        step[new, net.SUBJECT + k] = code
        seen = mix_bits(seen + _int(code) + 1002)
    for t in range(step[new, net.TEST], end):
        seen = mix_bits(seen + 3 * _int(tested[t, net.NUMBER]) + tested[t, net.POSITION])
    step[new, net.TEST_END], step[new, net.NEW_WIDTH] = end, width
    return width, seen


@called_helper
def _same_step(a: int, b: int, step: Any, tested: Any) -> bool:
    """Are two steps equal? Those with the same parent begin with the same variables."""
    size = step[a, net.TEST_END] - step[a, net.TEST]
    same = step[a, net.PARENT] == step[b, net.PARENT] and size == step[b, net.TEST_END] - step[b, net.TEST]
    for k in range(net.SUBJECT, net.OBJECT + 1):
        same = same and step[a, k] == step[b, k]
    for t in range(size if same else 0):
        for k in range(2):
            same = same and tested[step[a, net.TEST] + t, k] == tested[step[b, net.TEST] + t, k]
    return bool(same)


@helper
def _shared(new: int, seen: Any, tests: int, network: Network) -> Any:
    """The step that is equal to the one written at `new`, with the hash `seen`, or else that one."""
    slots, used, mask = network.slots, network.used, network.slots.size - 1
    place = seen & mask
    while slots[place] >= 0 and not _same_step(slots[place], new, network.step, network.tested):
        place = (place + 1) & mask
    if slots[place] < 0:
        slots[place], used[net.USED_STEPS], used[net.USED_TESTS] = new, new + 1, tests
    return slots[place]


@called_helper
def add_step(at: int, parent: int, width: int, part: Component, clauses: StatedClauses, tests: TestColumns,
             network: Network, variables: Any) -> Any:  # fmt: skip
    """The step of a pattern, written down if it is new; and how many variables have values then."""
    step, used = network.step, network.used
    width, seen = _state_step(at, parent, width, part.test, part.test_end, clauses, tests, network, variables)
    return _shared(used[net.USED_STEPS], seen, step[used[net.USED_STEPS], net.TEST_END], network), width


@called_helper
def add_link(edge: int, child: int, network: Network) -> Any:
    """The LINK of an edge and a node, written down if it is new."""
    new, step, tests = network.used[net.USED_STEPS], network.step, network.used[net.USED_TESTS]
    step[new, :], step[new, net.PARENT], step[new, net.EDGE], step[new, net.CHILD] = 0, net.LINK, edge, child
    step[new, net.TEST] = step[new, net.TEST_END] = tests
    return _shared(new, mix_bits(mix_bits(_int(edge) + 5) + child), tests, network)


# --- order: which variable of a clause is which column of a solution -------------------------------------------------


MOST_COLUMNS = 60  # of a component whose solutions are listed: a set of columns is the bits of a number


class Order(NamedTuple):
    """What the order of columns is worked out with. It may be used again."""

    variable: Any  # as in `StepColumns`
    used: Any  # one number: how much of `variable`
    queue: Any  # vertices whose steps come next
    is_done: Any  # pattern -> has it had its turn?


@helper
def _emit_leaves(row: int, at: int, pattern: Any, variables: Any, order: Order) -> int:
    """Put down the variables of a pattern that stand in no other place."""
    for k in range(3):
        variable = -1 - pattern[row, k]
        if variable >= 0 and variables[net.USES, variable] == 1:
            order.variable[at], at = min(variable, net.UNLISTED), at + 1
    return at


@called_helper
def _end(begin: int, at: int, order: Order) -> None:
    """A component's columns lie from `begin` to `at`, behind their number."""
    count = at - begin - 1
    for k in range(begin + 1, at):
        count = net.UNLISTED if order.variable[k] == net.UNLISTED else count
    order.variable[begin] = net.UNLISTED if count > MOST_COLUMNS else count
    order.used[0] = begin + 1 if order.variable[begin] == net.UNLISTED else at


@helper
def _is_next(s: int, vertex: int, m: int, tree: Any, step: Any) -> Any:
    """Is a pattern of a vertex what a step of the vertex's node stands for?"""
    subject, object_ = tree.ends[0, m], tree.ends[1, m]
    if step[s, net.PARENT] != net.LINK:
        return tree.step[m] == s and max(subject, object_) == vertex and min(subject, object_) == net.NONE
    near, far = (object_, subject) if step[s, net.EDGE] & 1 else (subject, object_)
    is_edge = tree.step[m] == step[s, net.EDGE] >> 1 and near == vertex and far != net.NONE
    return is_edge and tree.node[far] == step[s, net.CHILD]


@called_helper
def order_tree(root: int, count: int, part: Component, clauses: StatedClauses, variables: Any, tree: Any,
               network: Network, order: Order) -> None:  # fmt: skip
    """Put down the columns of a tree of `count` vertices, whose nodes are known."""
    pattern, step, begin = clauses.pattern, network.step, order.used[0]
    at, patterns, head, tail = begin + 1, part.end - part.begin, 0, 1
    order.queue[0] = root if count > 0 else net.NONE
    order.is_done[:patterns] = 0
    for m in range(patterns):
        for k in range(2):
            if at == begin + 1 and count > 0 and tree.ends[k, m] == root:
                variable = -1 - pattern[part.first + clauses.member[part.begin + m], 2 * k]
                order.variable[at], at = min(variable, net.UNLISTED), at + 1
    while head < tail:
        vertex, head = order.queue[head], head + 1
        n = tree.node[max(vertex, 0)]
        for place in range(network.node_offset[n] + 1, network.node_offset[n + 1]):
            s, pattern_at = network.node[place], net.NONE
            for m in range(patterns):
                if pattern_at == net.NONE and order.is_done[m] == 0 and _is_next(s, vertex, m, tree, step):
                    pattern_at = m
            order.is_done[pattern_at] = 1
            row = part.first + clauses.member[part.begin + pattern_at]
            at = _emit_leaves(row, at, pattern, variables, order)
            if step[s, net.PARENT] == net.LINK:
                back = step[s, net.EDGE] & 1
                order.variable[at], at = min(-1 - pattern[row, 2 - 2 * back], net.UNLISTED), at + 1
                order.queue[tail], tail = tree.ends[1 - back, pattern_at], tail + 1
    _end(begin, at, order)


@called_helper
def order_path(width: int, part: Component, clauses: StatedClauses, variables: Any, order: Order) -> None:
    """Put down the columns of a path whose members are in order, and that lists `width` variables."""
    pattern, begin = clauses.pattern, order.used[0]
    at = begin + 1 + width
    for m in range(part.begin, part.end):
        row = part.first + clauses.member[m]
        for k in range(3):
            variable = -1 - pattern[row, k]
            if variable >= 0 and variables[net.VALUE, variable] >= 0:
                order.variable[begin + 1 + variables[net.VALUE, variable]] = min(variable, net.UNLISTED)
        at = _emit_leaves(row, at, pattern, variables, order)
    _end(begin, at, order)


# --- trees -----------------------------------------------------------------------------------------------------------


_OFTEN = 1 << 62  # more than any constant occurs


class Tree(NamedTuple):
    """The tree at hand. It may be used again."""

    step: Any  # pattern -> its step
    ends: Any  # shape (2, patterns): its vertices as subject and as object, or NONE
    degree: Any  # vertex -> its edges to vertices that have no node yet
    node: Any  # vertex -> its node, or NONE
    leaves: Any  # vertices that get a node next


@called_helper
def _vertices(part: Component, clauses: StatedClauses, variables: Any, tree: Tree) -> int:
    """Number the vertices, and write down those of each pattern. Returns how many they are, or NONE where the component
    has a cycle, or a predicate that stands in another place, too."""
    pattern, member, count, edges = clauses.pattern, clauses.member, 0, 0
    fill(net.VERTEX, net.NONE, part, clauses, variables)
    for m in range(part.begin, part.end):
        tree.ends[0, m - part.begin] = tree.ends[1, m - part.begin] = net.NONE
        for k in range(3):
            variable = -1 - pattern[part.first + member[m], k]
            if variable < 0 or variables[net.USES, variable] == 1:
                continue
            if k == 1:
                return net.NONE
            if variables[net.VERTEX, variable] == net.NONE:
                variables[net.VERTEX, variable] = count
                tree.degree[count], tree.node[count] = 0, net.NONE
                count += 1
            tree.ends[k // 2, m - part.begin] = variables[net.VERTEX, variable]
        subject, object_ = tree.ends[0, m - part.begin], tree.ends[1, m - part.begin]
        if subject == object_:
            tree.ends[1, m - part.begin] = net.NONE
        elif subject != net.NONE and object_ != net.NONE:
            tree.degree[subject] += 1
            tree.degree[object_] += 1
            edges += 1
    return count if edges == max(count, 1) - 1 else net.NONE


@called_helper
def _describe(vertex: int, patterns: int, tree: Tree, network: Network) -> Any:
    """Write down a node behind those that are there. Returns where it ends, and a hash of it."""
    node, at = network.node, network.node_offset[network.used[net.USED_NODES]]
    end, seen = at + 1, _int(0)
    for m in range(patterns):
        subject, object_ = tree.ends[0, m], tree.ends[1, m]
        is_edge, step = subject != net.NONE and object_ != net.NONE, tree.step[m]
        if subject != vertex and object_ != vertex and (subject != net.NONE or object_ != net.NONE):
            continue
        if is_edge:
            child = tree.node[object_ if subject == vertex else subject]
            if child == net.NONE:
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
def _add_node(vertex: int, patterns: int, tree: Tree, network: Network) -> Any:
    """The node of a vertex, which is written down if it is new."""
    slots, new = network.node_slots, network.used[net.USED_NODES]
    end, seen = _describe(vertex, patterns, tree, network)
    offset, place, mask = network.node_offset, seen & (slots.size - 1), slots.size - 1
    size, is_same = end - offset[new], False
    while slots[place] >= 0 and not is_same:
        begin = offset[slots[place]]
        is_same = offset[slots[place] + 1] - begin == size
        is_same = is_same and same_numbers(network.node, begin, network.node, offset[new], size)
        place = place if is_same else (place + 1) & mask
    if slots[place] < 0:
        slots[place], offset[new + 1], network.used[net.USED_NODES] = new, end, new + 1
    return slots[place]


@called_helper
def _strip(patterns: int, count: int, tree: Tree, network: Network) -> int:
    """Give the outermost vertices their nodes, again and again, until one or two are left. Returns how many are."""
    left = count
    while left > 2:
        leaves = 0
        for vertex in range(count):
            if tree.degree[vertex] == 1 and tree.node[vertex] == net.NONE:
                tree.leaves[leaves], leaves = vertex, leaves + 1
        for k in range(leaves):
            vertex = tree.leaves[k]
            node = _add_node(vertex, patterns, tree, network)
            for m in range(patterns):
                subject, object_ = tree.ends[0, m], tree.ends[1, m]
                if subject != net.NONE and object_ != net.NONE and (subject == vertex or object_ == vertex):
                    tree.degree[subject] -= 1
                    tree.degree[object_] -= 1
            tree.node[vertex] = node
        left -= leaves
    return left


@called_helper
def _rarest(
    vertex: int, part: Component, clauses: StatedClauses, tests: TestColumns, often: Frequency, tree: Tree
) -> Any:
    """How often does the rarest constant or test in the patterns of a vertex alone occur?"""
    least = _int(_OFTEN)
    for m in range(part.end - part.begin):
        subject, object_ = tree.ends[0, m], tree.ends[1, m]
        if (subject == net.NONE or object_ == net.NONE) and (subject == vertex or object_ == vertex):
            for k in range(3):
                code = clauses.pattern[part.first + clauses.member[part.begin + m], k]
                least = min(least, often.constant[code]) if code >= 0 else least
                for t in range(part.test if code < 0 else part.test_end, part.test_end):
                    if clauses.test_variable[t] == -1 - code and is_found(clauses.test[t], tests):
                        least = min(least, often.test[clauses.test[t]])
    return least


@called_helper
def _root(count: int, left: int, part: Component, clauses: StatedClauses, tests: TestColumns, often: Frequency,
          tree: Tree, network: Network) -> int:  # fmt: skip
    """The vertex that becomes the root. Where two are left, the other one gets its node."""
    patterns = part.end - part.begin
    root = child = net.NONE
    for vertex in range(count):
        if tree.node[vertex] == net.NONE:
            root, child = vertex, root
    if left < 2:
        return max(root, 0)
    for m in range(patterns):
        if min(tree.ends[0, m], tree.ends[1, m]) == child and max(tree.ends[0, m], tree.ends[1, m]) == root:
            root, child = tree.ends[0, m], tree.ends[1, m]
            break
    rarest = _rarest(root, part, clauses, tests, often, tree)
    other = _rarest(child, part, clauses, tests, often, tree)
    _, of_root = _describe(root, patterns, tree, network)
    _, of_child = _describe(child, patterns, tree, network)
    if other < rarest or (other == rarest and of_child > of_root):
        root, child = child, root
    tree.node[child] = _add_node(child, patterns, tree, network)
    return int(root)


@called_helper
def add_tree(part: Component, clauses: StatedClauses, tests: TestColumns, often: Frequency, variables: Any, tree: Tree,
             network: Network, order: Order) -> int:  # fmt: skip
    """Add what is new of the tree of a component, and its columns. Returns its root, or NO_STEP where it is no tree.
    USES is known of its variables."""
    count, patterns = _vertices(part, clauses, variables, tree), part.end - part.begin
    if count == net.NONE:
        return net.NO_STEP
    for m in range(patterns):
        at = part.first + clauses.member[part.begin + m]
        for k in range(3):
            if clauses.pattern[at, k] < 0:
                variables[net.VALUE, -1 - clauses.pattern[at, k]] = net.NONE
        tree.step[m], _ = add_step(at, net.APART, 0, part, clauses, tests, network, variables)
    left = _strip(patterns, count, tree, network)
    root = _root(count, left, part, clauses, tests, often, tree, network)
    tree.node[root] = _add_node(root, patterns, tree, network)
    order_tree(root, count, part, clauses, variables, tree, network, order)
    return int(tree.node[root])
