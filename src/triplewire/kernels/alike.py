"""What is the same: subscriptions with the same clauses, and lists of rows. Much of what matches a publication is.

Used by `triplewire.verify.columnar`, so that such matches are solved once, and by `triplewire.verify.rows`, so that
their bindings become objects once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, inline="always")
def _mixed(number: Any) -> Any:
    """Spread the bits of a number; nothing overflows."""
    number = ((number ^ (number >> 31)) & 0x7FFFFFFF) * 0x9E3779B1
    return (number ^ (number >> 20)) & 0x7FFFFFFF


@njit(cache=True, nogil=True, forceinline=True)
def _hash(h: Any, numbers: Any, begin: Any, end: Any) -> Any:
    for k in range(begin, end):
        h = _mixed(h + numbers[k] + 2)
    return h


@njit(cache=True, nogil=True, forceinline=True)
def _same(numbers: Any, a: Any, b: Any, length: Any) -> Any:
    """Are the `length` numbers from a on those from b on?"""
    k = 0
    while k < length and numbers[a + k] == numbers[b + k]:
        k += 1
    return k == length


@njit(cache=True, nogil=True)
def forms(kind: Any, clause_offset: Any, pattern_offset: Any, pattern: Any, test_offset: Any, test_variable: Any,
          test: Any, slots: Any, form: Any) -> None:  # fmt: skip
    """Of each subscription, the first that has the same kind and clauses. `pattern` is flat.

    `slots` is full of -1; it has a power of two places, at least twice as many as there are subscriptions.
    """
    mask = slots.size - 1
    for i in range(kind.size):
        c, d = clause_offset[i], clause_offset[i + 1]
        p, q, t, u = pattern_offset[c], pattern_offset[d], test_offset[c], test_offset[d]
        h = _hash(_mixed(np.int64(kind[i]) + 2), pattern, 3 * p, 3 * q)
        at, found = _hash(_hash(h, test_variable, t, u), test, t, u) & mask, -1
        while slots[at] >= 0 and found < 0:
            j = slots[at]
            e, f = clause_offset[j], clause_offset[j + 1]
            r, v, same = pattern_offset[e], test_offset[e], kind[i] == kind[j] and d - c == f - e
            for k in range(1, d - c + 1 if same else 0):
                same = same and pattern_offset[c + k] - p == pattern_offset[e + k] - r
                same = same and test_offset[c + k] - t == test_offset[e + k] - v
            if (
                same
                and _same(pattern, 3 * p, 3 * r, 3 * (q - p))
                and _same(test_variable, t, v, u - t)
                and _same(test, t, v, u - t)
            ):
                found = j
            at = (at + 1) & mask
        if found < 0:
            slots[at] = found = i
        form[i] = found


@njit(cache=True, nogil=True)
def alike(kind: Any, group: Any, start: Any, size: Any, rows: Any, slots: Any, last: Any, number: Any,
          first: Any) -> int:  # fmt: skip
    """Number the lists of rows: two have the same number where `kind` and the `size` ids from `start` on in `rows` are
    the same. first[n] is the first list with the number n. Returns how many numbers there are. Lists of one group >= 0
    have the same rows, which are looked at once.

    `slots` is full of -1; it has a power of two places, at least twice as many as there are lists. `last`: -1 for each
    group.
    """
    found, mask = 0, slots.size - 1
    for i in range(start.size):
        begin, length, g = start[i], size[i], group[i]
        if g >= 0 and last[g] >= 0 and kind[first[last[g]]] == kind[i]:
            number[i] = last[g]
            continue
        at = _hash(_mixed(np.int64(kind[i]) + length + 2), rows, begin, begin + length) & mask
        while slots[at] >= 0:
            j = first[slots[at]]
            if kind[j] == kind[i] and size[j] == length and _same(rows, begin, start[j], length):
                break
            at = (at + 1) & mask
        if slots[at] < 0:
            slots[at], first[found] = found, i
            found += 1
        number[i] = slots[at]
        if g >= 0:
            last[g] = number[i]
    return found
