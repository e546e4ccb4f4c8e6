"""Making a set-trie of sequences of labels: which nodes there are, where each of them lies, what hangs on them.

    grow:     for each sequence, a node for each label that the node so far has no child for (found by a hash table)
    arrange:  children by label; each node gets its row, depth first from each child of the root, siblings together;
              ways without forks become tails; range nodes with many windows get levels (`.subsets`)
    hang:     the clauses by the rows where their sequences end, ascending by need; the largest code to each row

What the rows mean, and the walk: `triplewire.select.trie.kernels.subsets`, whose numbers are used here. Who
calls: `triplewire.select.trie.build`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.shared.compiled import allocating_kernel, called_helper
from triplewire.kernels.shared.hashing import mix_bits
from triplewire.kernels.shared.search import sort_by
from triplewire.select.trie.kernels.stars import CHECK, STATUS
from triplewire.select.trie.kernels.subsets import (
    ALONE,
    AT,
    CODE,
    COUNT,
    ENDS,
    HALF,
    LAST_OP,
    RANGE,
    SCANNED,
    SEARCHED,
    TAIL,
    WIDE,
    level_rows,
    write_levels,
)

_LONGEST = 1 << 15  # labels of a tail
LEVELS = 8  # siblings a row of the levels above windows, at the least


@called_helper
def _slot_of(slots: Any, parent: Any, label: Any, node: int, child_label: int) -> Any:
    """Where the child of a node with this label is in the table, or the free slot where it belongs."""
    mask = slots.size - 1
    slot = mix_bits(mix_bits(node) + child_label) & mask
    while slots[slot] >= 0 and (parent[slots[slot]] != node or label[slots[slot]] != child_label):
        slot = (slot + 1) & mask
    return slot


@allocating_kernel
def grow(offset: Any, labels: Any, root: Any, parent: Any, label: Any, node: Any) -> int:
    """The nodes of all sets, numbered as they come; node 0 is the root. Set k is labels[offset[k] : offset[k + 1]] and
    ends in node[k]. root: label -> child of the root, all -1 before. Returns how many nodes there are."""
    slots, count = np.empty(1024, np.int32), 1
    slots[:] = -1
    parent[0], label[0] = -1, -1
    for k in range(node.size):
        current = 0
        for i in range(offset[k], offset[k + 1]):
            next_label, slot = labels[i], 0
            if current > 0:  # children of the root need no hashing: their labels are atoms, not ranks or windows
                slot = _slot_of(slots, parent, label, current, next_label)
                child = slots[slot]
            else:
                child = root[next_label]
            if child < 0:
                child = count
                parent[child], label[child] = current, next_label
                count += 1
                if current > 0:
                    slots[slot] = child
                else:
                    root[next_label] = child
                if 2 * count > slots.size:
                    slots = np.empty(4 * slots.size, np.int32)
                    slots[:] = -1
                    for below in range(1, count):
                        if parent[below] > 0:
                            slots[_slot_of(slots, parent, label, parent[below], label[below])] = below
            current = child
        node[k] = current
    return count


@called_helper
def _sort(values: Any, key: Any, low: int, high: int) -> None:
    """Sort values[low:high] by their keys. They mostly are in order."""
    in_order = low + 1
    while in_order < high and key[values[in_order - 1]] <= key[values[in_order]]:
        in_order += 1
    if in_order < high:
        sort_by(values, key, low, high)


@called_helper
def _mark_ranges(parent: Any, label: Any, count: int, first_range: int, is_range: Any) -> None:
    """Node -> is it a range node? A parent comes before its children."""
    is_range[0] = False
    for node in range(1, count):
        is_range[node] = label[node] >= first_range and not is_range[parent[node]]


@called_helper
def _measure_tails(first: Any, order: Any, is_range: Any, is_end: Any, length: Any) -> None:
    """Node -> how many nodes are below it, where they have one child each and no set ends in it or in them but for the
    last; 0 where there is none, -1 where it is not so."""
    for node in range(length.size - 1, 0, -1):  # children come behind their parents
        children, below = first[node + 1] - first[node], np.int64(-1)
        if children == 1:
            below = length[order[first[node]]]
        length[node] = 0 if children == 0 else -1
        if below >= 0 and below < _LONGEST and not is_end[node] and not is_range[node]:
            length[node] = below + 1


@called_helper
def _write_tail(node: int, length: int, is_alone: Any, first: Any, order: Any, label: Any, nodes: Any, row: Any,
                tail: Any, end: int) -> int:  # fmt: skip
    """Make the row of a node a tail, whose labels go to `tail` from `end` on. Returns where they end, with room for the
    only item."""
    tail_row = row[node]
    nodes[tail_row, 1] = end | np.int64(length) << COUNT | np.int64(1) << TAIL
    for _ in range(length):
        node = order[first[node]]
        tail[end] = label[node]
        end += 1
    row[node] = tail_row
    return end + int(is_alone[node])


@allocating_kernel
def arrange(parent: Any, label: Any, count: int, root: Any, first_range: int, range_test: Any, window_high: Any,
            is_alone: Any, is_end: Any, nodes: Any, row: Any, tail: Any) -> Any:  # fmt: skip
    """Give each node its row, and fill in labels and children: siblings lie side by side, and what is below a child of
    the root lies behind it, so that a walk stays in one place. `root` leads to rows then. Returns how many there are,
    and how much of `tail` is used. `nodes`, shape (rows, 2), has room for count + count // WIDE + count // LEVELS rows;
    `tail` for twice as many numbers as there are nodes. Of each node: will it have one item, and does a set end in it?
    """
    first, order, place = np.empty(count + 1, np.int32), np.empty(count, np.int32), np.empty(count, np.int32)
    is_range, length, tails = np.empty(count, np.bool_), np.empty(count, np.int32), 0
    _mark_ranges(parent, label, count, first_range, is_range)
    first[:] = 0
    for node in range(1, count):
        first[parent[node] + 1] += 1
    for node in range(count):
        first[node + 1] += first[node]
    for node in range(count):
        place[node] = first[node]
    for node in range(1, count):
        order[place[parent[node]]] = node
        place[parent[node]] += 1
    for node in range(1, count):
        _sort(order, label, first[node], first[node + 1])
    _measure_tails(first, order, is_range, is_end, length)
    waiting = place  # no longer needed as it was
    nodes[0, 0], nodes[0, 1], rows, row[0] = HALF, 0, 1, 0
    for a in range(root.size):
        if root[a] < 0:
            continue
        top, waiting[0], row[root[a]] = 1, root[a], rows
        nodes[rows, 0] = a
        root[a] = rows
        rows += 1
        while top > 0:
            top -= 1
            node = waiting[top]
            if length[node] > 0:
                tails = _write_tail(node, length[node], is_alone, first, order, label, nodes, row, tail, tails)
                continue
            children = first[node + 1] - first[node]
            levels = children >= WIDE and is_range[node] and range_test[label[node] - first_range, LAST_OP] > 0
            if children >= WIDE:
                rows += level_rows(children) if levels else 0
                nodes[rows, 0], nodes[rows, 1] = children, 0
                rows += 1
            is_searched, range_bit = np.int64(children >= WIDE or is_range[node]), np.int64(is_range[node])
            is_scanned = np.int64(children > 0) & (1 - is_searched)
            flags = is_searched << SEARCHED | is_scanned << SCANNED | range_bit << RANGE
            nodes[row[node], 1] = rows | np.int64(min(children, WIDE)) << COUNT | flags
            for i in range(children):
                child = order[first[node] + i]
                nodes[rows + i, 0] = label[child]
                row[child] = rows + i
                waiting[top + children - 1 - i] = child
            if levels:
                write_levels(nodes, rows, children, window_high)
            rows += children
            top += children
    return rows, tails


@allocating_kernel
def hang(node: Any, clause: Any, code: Any, need: Any, owner: Any, before: int, nodes: Any, tail: Any,
         item: Any) -> None:  # fmt: skip
    """Put the clauses, by node, into `item`, and what is to be known of them into `nodes`, whose last row is the end.
    Those of a node are ascending by need. `code`, `need`, `owner`: of each clause, the last its subscription. `before`:
    items of other tries, whose places come first. `tail`: what is named there, of rows that are tails, is written."""
    rows = nodes.shape[0] - 1
    for k in range(node.size):
        nodes[node[k] + 1, 0] += np.int64(1) << AT
    for n in range(rows):
        nodes[n + 1, 0] += nodes[n, 0] >> AT << AT
    place = np.empty(rows + 1, np.int64)
    for n in range(rows + 1):
        place[n] = nodes[n, 0] >> AT
    for k in range(node.size):
        item[place[node[k]]] = clause[k]
        place[node[k]] += 1
    for n in range(rows):
        begin, end, marks = nodes[n, 0] >> AT, nodes[n + 1, 0] >> AT, nodes[n, 1]
        most = np.int64(0)
        for i in range(begin, end):
            most = max(most, np.int64(code[item[i]]))
        marks |= most << CODE | np.int64(end > begin) << ENDS
        if end - begin > 1:
            _sort(item, need, begin, end)
        elif end > begin and (marks >> COUNT & WIDE == 0 or marks >> TAIL & 1):
            named = before + begin if most >> STATUS == CHECK else np.int64(owner[item[begin]])
            if marks >> TAIL & 1:
                tail[(marks & HALF) + (marks >> COUNT & 0xFFFF)] = named
                marks |= np.int64(1) << ALONE
            else:
                marks = (marks >> COUNT << COUNT) | np.int64(1) << ALONE | named
        nodes[n, 1] = marks
