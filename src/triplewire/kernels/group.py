"""Quads to publications: the triples of each graph together, sorted, each once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

_SMALL = 48  # triples that are sorted by insertion


@njit(cache=True, nogil=True)
def number_graphs(graph: Any, number: Any, publication: Any, graphs: Any) -> int:
    """Number the graphs by first occurrence. graph[i] is a term, or -1 for the default graph; `number` has a place for
    each term and one more, all -1. Fills `publication` of each quad and the `graphs` met; returns their number."""
    count = 0
    for i in range(graph.size):
        at = graph[i] if graph[i] >= 0 else number.size - 1
        if number[at] < 0:
            number[at] = count
            graphs[count] = graph[i]
            count += 1
        publication[i] = number[at]
    return count


@njit(cache=True, nogil=True)
def _before(a: Any, b: Any) -> bool:
    for i in range(3):
        if a[i] != b[i]:
            return bool(a[i] < b[i])
    return False


@njit(cache=True, nogil=True)
def _sort_small(triples: Any) -> None:
    row = np.empty(3, np.int32)
    for i in range(1, triples.shape[0]):
        row[:] = triples[i]
        j = i
        while j > 0 and _before(row, triples[j - 1]):
            triples[j] = triples[j - 1]
            j -= 1
        triples[j] = row


@njit(cache=True, nogil=True)
def _sort(triples: Any) -> None:
    """By object, then by predicate, then by subject; each keeps the order before it."""
    for column in (2, 1, 0):
        order = np.argsort(triples[:, column], kind="mergesort")
        triples[:] = triples[order]


@njit(cache=True, nogil=True)
def group(quads: Any, publication: Any, offset: Any, triples: Any) -> None:
    """Fill `triples` with the triples of each publication, sorted and distinct, and `offset` with their slices.

    `offset` has one entry more than there are publications.
    """
    offset[:] = 0
    for i in range(publication.size):
        offset[publication[i] + 1] += 1
    for p in range(offset.size - 1):
        offset[p + 1] += offset[p]
    place = offset[:-1].copy()
    for i in range(publication.size):
        for column in range(3):
            triples[place[publication[i]], column] = quads[i, column]
        place[publication[i]] += 1
    at = 0
    for p in range(offset.size - 1):
        begin, end = offset[p], place[p]
        if end - begin <= _SMALL:
            _sort_small(triples[begin:end])
        else:
            _sort(triples[begin:end])
        offset[p] = at
        for i in range(begin, end):
            if i == begin or _before(triples[at - 1], triples[i]):
                triples[at] = triples[i]
                at += 1
    offset[offset.size - 1] = at
