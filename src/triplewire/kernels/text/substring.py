"""Which of many byte strings occur in a text? An Aho-Corasick automaton in flat arrays.

Source: A. V. Aho, M. J. Corasick, "Efficient string matching", CACM 18(6), 1975.

    build:  the trie of the patterns, level by level; from each node a link to the node of its longest proper suffix
    find:   for each byte of a text: go to the child with this label; where there is none, to that of the next suffix
            report the patterns that end in the node, or in one of its suffixes

Nodes stand in breadth-first order, so the children of node n are the nodes first[n] .. first[n + 1], by their labels in
ascending order; node 0 is the root. The bytes 0xFE and 0xFF, which UTF-8 never has, stand for the start and the end of
a text: a pattern with one of them is anchored there. What the patterns mean:
`triplewire.clauses.node_tests.lookup`.
"""

from __future__ import annotations

from typing import Any

from triplewire.kernels.shared.compiled import called_helper, kernel

START, END = 0xFE, 0xFF


@kernel
def build_nodes(text: Any, offset: Any, low: Any, high: Any, first: Any, label: Any, parent: Any, end: Any) -> int:
    """The trie of the patterns text[offset[i] : offset[i + 1]], which are sorted, distinct and not empty.

    The arrays have room for as many nodes as the patterns have bytes, and one (`first`: two). `low` and `high` are
    scratch. `end`: node -> the pattern that ends there, or -1. Returns the number of nodes.
    """
    low[0], high[0], parent[0], end[0], label[0] = 0, offset.size - 1, 0, -1, 0
    nodes, begin, stop, depth = 1, 0, 1, 0  # begin .. stop: the nodes of this depth
    while begin < stop:
        for node in range(begin, stop):
            first[node] = nodes
            pattern = low[node]
            if depth and offset[pattern + 1] - offset[pattern] == depth:
                end[node] = pattern
                pattern += 1
            while pattern < high[node]:
                byte = text[offset[pattern] + depth]
                low[nodes], parent[nodes], end[nodes], label[nodes] = pattern, node, -1, byte
                while pattern < high[node] and text[offset[pattern] + depth] == byte:
                    pattern += 1
                high[nodes] = pattern
                nodes += 1
        begin, stop, depth = stop, nodes, depth + 1
    first[nodes] = nodes
    return nodes


@called_helper
def child_of(node: int, byte: int, first: Any, label: Any) -> int:
    """The child with this label, or -1."""
    low, high = first[node], first[node + 1]
    while high - low > 8:
        middle = (low + high) >> 1
        if label[middle] <= byte:
            low = middle
        else:
            high = middle
    for child in range(low, high):
        if label[child] == byte:
            return child
    return -1


@kernel
def build_links(first: Any, label: Any, parent: Any, end: Any, root: Any, fail: Any, report: Any) -> None:
    """`root`: byte -> child of the root, or 0. `fail`: node -> the node of its longest proper suffix. `report`: node ->
    the nearest node among its suffixes where a pattern ends, or 0."""
    root[:] = 0
    for child in range(first[0], first[1]):
        root[label[child]] = child
    fail[0] = 0
    report[0] = 0
    for node in range(1, fail.size):
        byte, ancestor = label[node], parent[node]
        suffix = 0
        while ancestor:
            ancestor = fail[ancestor]
            suffix = child_of(ancestor, byte, first, label) if ancestor else root[byte]
            if suffix > 0:
                break
            suffix = 0
        fail[node] = suffix
        report[node] = suffix if end[suffix] >= 0 else report[suffix]


@called_helper
def _step(node: int, byte: int, first: Any, label: Any, root: Any, fail: Any) -> int:
    while node:
        child = child_of(node, byte, first, label)
        if child > 0:
            return child
        node = fail[node]
    start: int = root[byte]
    return start


@called_helper
def _emit(node: int, row: int, automaton: Any, stamp: Any, out_row: Any, out_pattern: Any, count: int) -> int:
    """Add the patterns that end here. Where one has been added for this row, so have all its suffixes."""
    _, _, end, _, _, report = automaton
    if end[node] < 0:
        node = report[node]
    while node and stamp[end[node]] != row:
        stamp[end[node]] = row
        if count < out_row.size:
            out_row[count] = row
            out_pattern[count] = end[node]
        count += 1
        node = report[node]
    return count


@kernel
def find_patterns(
    text: Any, start: Any, stop: Any, rows: Any, automaton: Any, stamp: Any, out_row: Any, out_pattern: Any
) -> int:
    """The patterns that occur in the texts of the given rows, each once a row, as pairs (row, pattern).

    `automaton`: (first, label, end, root, fail, report). `stamp`: a number for each pattern, all -1. Returns how many
    pairs there are; those beyond the room in `out_row` are not written.
    """
    first, label, end, root, fail, report = automaton
    count = 0
    for row in rows:
        node = _step(0, START, first, label, root, fail)
        for pos in range(start[row], stop[row]):
            node = _step(node, text[pos], first, label, root, fail)
            if end[node] >= 0 or report[node]:
                count = _emit(node, row, automaton, stamp, out_row, out_pattern, count)
        node = _step(node, END, first, label, root, fail)
        if end[node] >= 0 or report[node]:
            count = _emit(node, row, automaton, stamp, out_row, out_pattern, count)
    return count
