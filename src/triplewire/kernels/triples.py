"""Statements of ids to triples in order: by publication, subject, predicate, object; each once.

Sorted from the last key to the first by counting, so the time is linear whatever the statements are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.shared.compiled import allocating_kernel, called_helper, kernel


@kernel
def number_graphs(graph: Any, number: Any, first: Any) -> int:
    """Number the graphs by first occurrence: `graph` has a term id or -1 for each statement, and gets the number
    instead. `number` (one longer than the terms) is all -1. `first`: number -> term id or -1. Returns how many."""
    count = 0
    for i in range(graph.size):
        key = graph[i] + 1
        if number[key] < 0:
            number[key] = count
            first[count] = graph[i]
            count += 1
        graph[i] = number[key]
    return count


@called_helper
def _sort(order: Any, key: Any, keys: int, counts: Any, out: Any) -> None:
    """`out`: `order`, stably sorted by the key, which is from 0 to keys - 1. `counts` has room for keys + 1."""
    for value in range(keys + 1):
        counts[value] = 0
    for i in range(order.size):
        counts[key[i] + 1] += 1
    for value in range(1, keys + 1):
        counts[value] += counts[value - 1]
    for i in range(order.size):
        row = order[i]
        out[counts[key[row]]] = row
        counts[key[row]] += 1


@allocating_kernel
def sort_statements(
    graph: Any, subject: Any, predicate: Any, object_: Any, terms: int, graphs: int, order: Any, other: Any
) -> None:
    """`order`: the statements by graph, subject, predicate, object; `other` is scratch of the same size."""
    counts = np.empty(max(terms, graphs) + 1, np.int64)
    sort_by_all(graph, subject, predicate, object_, terms, graphs, counts, order, other)


@called_helper
def sort_by_all(
    graph: Any, subject: Any, predicate: Any, object_: Any, terms: int, graphs: int, counts: Any, order: Any, other: Any
) -> None:
    """`sort_statements` with `counts` as scratch: one number more than there are terms, or graphs."""
    for i in range(order.size):
        order[i] = i
    _sort(order, object_, terms, counts, other)
    _sort(other, predicate, terms, counts, order)
    _sort(order, subject, terms, counts, other)
    _sort(other, graph, graphs, counts, order)


@kernel
def distinct_triples(
    graph: Any, subject: Any, predicate: Any, object_: Any, order: Any, offset: Any, s: Any, p: Any, o: Any
) -> int:
    """See `write_distinct`."""
    return write_distinct(graph, subject, predicate, object_, order, offset, s, p, o)


@called_helper
def write_distinct(
    graph: Any, subject: Any, predicate: Any, object_: Any, order: Any, offset: Any, s: Any, p: Any, o: Any
) -> int:
    """The triples in this order, each once, to `s`, `p` and `o`; graph g's are offset[g] .. offset[g + 1]. Returns how
    many there are."""
    count = 0
    now = 0
    offset[0] = 0
    for i in range(order.size):
        row = order[i]
        while now < graph[row]:
            now += 1
            offset[now] = count
        if count > offset[now] and (
            s[count - 1] == subject[row] and p[count - 1] == predicate[row] and o[count - 1] == object_[row]
        ):
            continue
        s[count] = subject[row]
        p[count] = predicate[row]
        o[count] = object_[row]
        count += 1
    for g in range(now + 1, offset.size):
        offset[g] = count
    return count
