"""The join network of a segment is made: trees (`make_trees`), and paths where there are cycles.

build(clauses), in the order of the network:
    each component: add_tree; has it a cycle: add_path; has it too many patterns or variables: NO_STEP
add_path(component):
    colour variables by their tests, places and neighbours, which does not depend on names
    order the patterns: each time the one with the fewest new variables, then the rarest predicate
    of those that are alike try each, and keep the order with the smallest codes
    the first step joins to nothing, each other one to the step before it: equal beginnings are shared
pack: nodes of any size into rows of ROW numbers
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.shared.columns import TestColumns
from triplewire.kernels.shared.compiled import allocating_kernel, called_helper, helper, kernel
from triplewire.kernels.shared.hashing import mix_bits
from triplewire.verify.kernels import columns as net
from triplewire.verify.kernels.columns import StatedClauses
from triplewire.verify.kernels.make_trees import (
    Component,
    Frequency,
    Network,
    Order,
    Tree,
    add_step,
    add_tree,
    fill,
    order_path,
)

_int: Any = np.int64
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
def _colour(code: int, asking: int, variables: Any) -> Any:
    """What a position looks like, to the variable `asking` or (-1) to nobody."""
    if code >= 0:
        return mix_bits(_int(code) + 3)
    if -1 - code == asking:
        return _int(2)
    at = variables[net.VALUE, -1 - code]
    return mix_bits(at + (_int(1) << 33)) if at >= 0 else variables[net.COLOUR, -1 - code]


@called_helper
def _refine(part: Component, clauses: StatedClauses, variables: Any) -> None:
    """Colour the variables of a component by their tests, their places and their neighbours."""
    (first, begin, end, t0, t1), pattern, member = part, clauses.pattern, clauses.member
    fill(net.COLOUR, 1, part, clauses, variables)
    fill(net.VALUE, net.NONE, part, clauses, variables)
    for t in range(t0, t1):
        variables[net.COLOUR, clauses.test_variable[t]] += mix_bits(_int(clauses.test[t]) + 1)
    for _ in range(_ROUNDS):
        for m in range(begin, end):
            for k in range(3):
                if pattern[first + member[m], k] < 0:
                    variable = -1 - pattern[first + member[m], k]
                    variables[net.NEXT_COLOUR, variable] = mix_bits(variables[net.COLOUR, variable])
        for m in range(begin, end):
            at = first + member[m]
            for k in range(3):
                if pattern[at, k] < 0:
                    seen, variable = _int(k + 1), -1 - pattern[at, k]
                    for q in range(3):
                        seen = mix_bits(seen + _colour(pattern[at, q], variable, variables))
                    variables[net.NEXT_COLOUR, variable] += seen
        for m in range(begin, end):
            for k in range(3):
                if pattern[first + member[m], k] < 0:
                    variable = -1 - pattern[first + member[m], k]
                    variables[net.COLOUR, variable] = variables[net.NEXT_COLOUR, variable] & 0x7FFFFFFF


@called_helper
def _cost(at: int, is_first: bool, pattern: Any, variables: Any) -> Any:
    """The fewer new variables and the fewer of them listed, the better; -1 where the pattern shares no variable with
    those before it."""
    cost, shared = 0, is_first
    for k in range(3):
        if pattern[at, k] < 0:
            variable = -1 - pattern[at, k]
            if variables[net.VALUE, variable] >= 0:
                shared = True
            else:
                cost += 1 if variables[net.USES, variable] == 1 else _LISTED
    return cost if shared else -1


@called_helper
def _next(begin: int, part: Component, choice: int, clauses: StatedClauses, frequency: Any, variables: Any) -> Any:
    """The place in `member`, of those from `begin` on, of the pattern whose turn it is; and among how many that are
    alike this is a `choice`. Without a new variable that is listed, any of them will do."""
    pattern, member = clauses.pattern, clauses.member
    chosen, least, rarest, smallest, alike = begin, 0, 0, _int(0), 0
    for m in range(begin, part.end):
        at = part.first + member[m]
        cost = _cost(at, begin == part.begin, pattern, variables)
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
def _count_listed(part: Component, clauses: StatedClauses, variables: Any) -> int:
    """How many variables stand in more than one place? The last step of the path has a value of each."""
    count = 0
    fill(net.VALUE, net.NONE, part, clauses, variables)
    for m in range(part.begin, part.end):
        for k in range(3):
            code = clauses.pattern[part.first + clauses.member[m], k]
            if code < 0 and variables[net.USES, -1 - code] > 1 and variables[net.VALUE, -1 - code] == net.NONE:
                variables[net.VALUE, -1 - code], count = count, count + 1
    return count


@called_helper
def _code(at: int, width: int, clauses: StatedClauses, variables: Any, codes: Any) -> int:
    """Write down the codes of a pattern, whose new variables get values. Returns how many have one then."""
    codes[3] = 0
    for k in range(3):
        code = _int(clauses.pattern[at, k])
        if code < 0 and variables[net.VALUE, -1 - code] < 0:
            codes[3] = mix_bits(codes[3] + variables[net.COLOUR, -1 - code])
            if variables[net.USES, -1 - code] > 1:
                variables[net.VALUE, -1 - code], width = width, width + 1
        codes[k] = code if code >= 0 else -2 - variables[net.VALUE, -1 - code]  # -1: it stands in no other place
    return width


@called_helper
def _try(part: Component, clauses: StatedClauses, frequency: Any, variables: Any, orders: Orders, count: int) -> int:
    """Put the patterns in the order of the choices, and keep it where it is the first or the smallest. Returns -1 where
    it was the last one to be tried, or else `count` and how many patterns were looked at."""
    member, size, width, is_less = clauses.member, part.end - part.begin, 0, _int(count == 0)
    fill(net.VALUE, net.NONE, part, clauses, variables)
    for m in range(size):
        place, alike = _next(part.begin + m, part, orders.choice[m], clauses, frequency, variables)
        member[part.begin + m], member[place] = member[place], member[part.begin + m]
        orders.alike[m], orders.order[0, m] = alike, member[part.begin + m]
        width = _code(part.first + member[part.begin + m], width, clauses, variables, orders.codes[0, m])
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
def add_path(part: Component, clauses: StatedClauses, tests: TestColumns, frequency: Any, variables: Any,
             orders: Orders, network: Network, order: Order) -> int:  # fmt: skip
    """Add what is new of the path of a component, and its columns. Returns its last step, or NO_STEP where it has too
    many variables. USES is known of its variables. Its members are put in order."""
    if _count_listed(part, clauses, variables) > MOST_VARIABLES:
        return net.NO_STEP
    (first, begin, end, _, _), member = part, clauses.member
    parent, width, looks, size = net.NO_STEP, 0, 0, end - begin
    _refine(part, clauses, variables)
    orders.choice[:size] = 0
    while 0 <= looks < _MOST_LOOKS:
        looks = _try(part, clauses, frequency, variables, orders, looks)
    fill(net.VALUE, net.NONE, part, clauses, variables)
    for m in range(size):
        member[begin + m] = orders.order[1, m]
        parent, width = add_step(first + member[begin + m], parent, width, part, clauses, tests, network, variables)
    order_path(width, part, clauses, variables, order)
    return int(parent)


# --- the network -----------------------------------------------------------------------------------------------------


MOST_PATTERNS = 32  # of a component in the network


@called_helper
def _add(part: Component, clauses: StatedClauses, tests: TestColumns, often: Frequency, variables: Any, tree: Tree,
         orders: Orders, network: Network, order: Order) -> int:  # fmt: skip
    """What stands in `last` for a component. Its columns are put down, too."""
    root = net.NO_STEP
    if part.end - part.begin <= MOST_PATTERNS:
        fill(net.USES, 0, part, clauses, variables)
        for m in range(part.begin, part.end):
            for k in range(3):
                code = clauses.pattern[part.first + clauses.member[m], k]
                if code < 0:
                    variables[net.USES, -1 - code] += 1
        root = add_tree(part, clauses, tests, often, variables, tree, network, order)
        if root == net.NO_STEP:
            last = add_path(part, clauses, tests, often.constant, variables, orders, network, order)
            root = last if last == net.NO_STEP else -2 - last
    if root == net.NO_STEP:  # it is not in the network
        order.variable[order.used[0]], order.used[0] = net.UNLISTED, order.used[0] + 1
    return int(root)


@allocating_kernel
def build(clauses: StatedClauses, in_order: Any, tests: TestColumns, variables: Any, often: Frequency, step: Any,
          tested: Any, node_offset: Any, node: Any, last: Any, variable: Any, begins: Any) -> Any:  # fmt: skip
    """Write down the network of clauses, without their residual predicates. Returns how many steps, tests and nodes
    there are, and how much of `variable` is used (`StepColumns.variable`): what is of a clause, from where `begins`
    says. `in_order`, shape (clauses, 2): the clauses in the order of the network, and how many variables they select.

    `step` has two rows for each pattern and two more, `tested` one for each test and pattern of the tested variable,
    `last` one for each component, `node_offset` two for each pattern and two more, `node` five for each pattern.
    `variables` has five rows and a column for each variable of a clause. The members of components with cycles are put
    in order.
    """
    places = 16  # of hash tables: a power of two
    while places < 2 * max(step.shape[0], node_offset.size):
        places *= 2
    slots, used = np.full(places, -1, np.int32), np.zeros(3, np.int64)
    node_slots = np.full(places, -1, np.int32)
    of_pattern = np.empty((3, MOST_PATTERNS), np.int32)
    of_vertex = np.empty((3, 2 * MOST_PATTERNS), np.int32)  # until it is known that it is no tree, there may be so many
    tree = Tree(of_pattern[0], of_pattern[1:], of_vertex[0], of_vertex[1], of_vertex[2])
    of_order, codes = np.zeros((4, MOST_PATTERNS), np.int32), np.zeros((2, MOST_PATTERNS, 4), np.int64)
    orders = Orders(of_order[0], of_order[1], of_order[2:], codes)
    network = Network(step, tested, slots, node_offset, node, node_slots, used)
    order = Order(
        variable, np.full(1, 2, np.int64), np.empty(MOST_PATTERNS + 1, np.int32), np.empty(MOST_PATTERNS, np.uint8)
    )
    variable[:2] = net.UNLISTED
    node_offset[0], used[net.USED_STEPS] = 0, net.ALWAYS + 1
    step[net.ALWAYS, :], step[net.ALWAYS, net.PARENT] = 0, net.APART
    step[net.ALWAYS, net.SUBJECT : net.OBJECT + 1] = net.LEAF
    for place in range(begins.size):
        c = in_order[place, 0]
        first, t0, t1 = clauses.pattern_offset[c], clauses.test_offset[c], clauses.test_offset[c + 1]
        begins[place] = order.used[0]
        variable[order.used[0]], order.used[0] = min(in_order[place, 1], net.UNLISTED), order.used[0] + 1
        for k in range(clauses.component_offset[c], clauses.component_offset[c + 1]):
            begin, size = first + clauses.component[k, 0], clauses.component[k, 1]
            part = Component(first, begin, begin + size, t0, t1)
            last[k] = _add(part, clauses, tests, often, variables, tree, orders, network, order)
    return used[net.USED_STEPS], used[net.USED_TESTS], used[net.USED_NODES], order.used[0]


@kernel
def count_rows(node_offset: Any, nodes: int, place: Any) -> int:
    """The first row of each node, in `place`. Returns how many rows there are."""
    rows = 0
    for n in range(nodes):
        place[n] = rows
        steps = node_offset[n + 1] - node_offset[n] - 1
        rows += (net.FIRST_STEP + max(steps, net.AT_HAND) + net.ROW - 1) // net.ROW
    return rows


@kernel
def pack(node_offset: Any, node: Any, nodes: int, place: Any, step: Any, last: Any, rows: Any) -> None:
    """Put the nodes into `rows`, flat and all ALWAYS before, and have their places told to all who lead to them: the
    links in `step`, and the components in `last`."""
    for n in range(nodes):
        begin, at = node_offset[n] + 1, net.ROW * place[n]
        rows[at] = node_offset[n + 1] - begin
        for k in range(begin, node_offset[n + 1]):
            rows[at + net.FIRST_STEP + k - begin] = node[k]
    for s in range(step.shape[0]):
        if step[s, net.PARENT] == net.LINK:
            step[s, net.CHILD] = place[step[s, net.CHILD]]
    for k in range(last.size):
        if last[k] >= 0:
            last[k] = place[last[k]]
