"""Which patterns of a clause hang together? Those that share a variable do; others are solved apart.

Used once for the clauses of a segment; `triplewire.kernels.solutions` solves the components.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _root(parent: Any, at: int) -> int:
    while parent[at] != at:
        parent[at] = parent[parent[at]]
        at = parent[at]
    return at


@njit(cache=True, nogil=True)
def components(pattern_offset: Any, pattern: Any, variables: int, part: Any, parts: Any) -> None:
    """The component of each pattern, in `part`, from 0 in every clause; how many each clause has, in `parts`.

    `pattern` has a variable v as -1 - v; `variables` is the largest number of variables of a clause.
    """
    parent, number = np.empty(variables, np.int64), np.empty(variables, np.int32)
    for clause in range(parts.size):
        first, end = pattern_offset[clause], pattern_offset[clause + 1]
        for i in range(first, end):
            for k in range(3):
                if pattern[i, k] < 0:
                    parent[-1 - pattern[i, k]] = -1 - pattern[i, k]
                    number[-1 - pattern[i, k]] = -1
        for i in range(first, end):
            seen = -1
            for k in range(3):
                if pattern[i, k] < 0:
                    at = _root(parent, -1 - pattern[i, k])
                    if seen >= 0:
                        parent[at] = seen
                    seen = _root(parent, at)
        count = 0
        for i in range(first, end):
            seen = -1
            for k in range(3):
                if pattern[i, k] < 0:
                    seen = _root(parent, -1 - pattern[i, k])
            if seen >= 0 and number[seen] >= 0:
                part[i] = number[seen]
                continue
            if seen >= 0:
                number[seen] = count
            part[i] = count
            count += 1
        parts[clause] = count


@njit(cache=True, nogil=True)
def sort_triples(publications: Any, triple_offset: Any, subject: Any, predicate: Any, object_: Any, key_offset: Any,
                 keys: Any, places: Any) -> None:  # fmt: skip
    """The triples of some publications by (predicate, object) and, behind them, by (object, subject): `keys` are the
    two ids in 64 bits, `places` the numbers of the triples. key_offset[p] is where those of publication p begin."""
    for j in range(publications.size):
        p = publications[j]
        first, n, at = triple_offset[p], triple_offset[p + 1] - triple_offset[p], key_offset[p]
        for half in range(2):
            key = np.empty(n, np.int64)
            for i in range(n):
                a, b = (predicate, object_) if half == 0 else (object_, subject)
                key[i] = (np.int64(a[first + i]) << 32) | b[first + i]
            order = np.argsort(key, kind="mergesort")
            for i in range(n):
                keys[at + i] = key[order[i]]
                places[at + i] = first + order[i]
            at += n
