"""How many solutions can a clause have that joins nothing? What bounds them, found once for all clauses alike.

A bound is a list of numbers: how many subjects are variable (-1 for ASK, which has one solution), how many patterns
have a variable predicate, and the predicates of the others whose object is variable. What it comes to for a
publication: `triplewire.kernels.set_trie`. Who calls: `triplewire.select.trie`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

CHECK = 2  # of the status of clauses
NUMBER = 23  # bits of the number of a bound, in a need
STATUS = 6  # bits below the status, in a code
LOOSE = 32  # in a code: two of the predicates are the same, or one is variable
GENERAL = 31  # in a code: only the bound tells; smaller numbers count the variable objects


@njit(cache=True, nogil=True)
def _stated(pattern: Any, p0: int, p1: int, ask: bool, out: Any) -> int:
    """Write the bound of a clause, with its predicates ascending; returns its length."""
    subjects, wild, end = 0, 0, 2
    for i in range(p0, p1):
        first = pattern[i, 0] < 0
        for j in range(p0, i):
            first = first and pattern[j, 0] != pattern[i, 0]
        subjects += first
        wild += pattern[i, 1] < 0
        if pattern[i, 1] >= 0 and pattern[i, 2] < 0:
            at = end
            while at > 2 and out[at - 1] > pattern[i, 1]:
                out[at] = out[at - 1]
                at -= 1
            out[at] = pattern[i, 1]
            end += 1
    out[0], out[1] = -1 if ask else subjects, wild
    return end


@njit(cache=True, nogil=True)
def _code(bound: Any, end: int, status: int) -> Any:
    """A clause at a glance: status << STATUS, and how many objects are variable, LOOSE or GENERAL."""
    if bound[0] < 0:
        return np.int64(status) << STATUS
    repeated = False
    for i in range(3, end):
        repeated = repeated or bound[i] == bound[i - 1]
    free = end - 2 + bound[1]
    if bound[0] > 1 or bound[1] > 1 or free >= GENERAL:
        free = GENERAL
    elif repeated or bound[1] > 0:
        free |= LOOSE
    return np.int64(status) << STATUS | free


@njit(cache=True, nogil=True)
def _place(slots: Any, offset: Any, bounds: Any, some: Any, end: int) -> Any:
    """Where a bound is in the table, or the free place where it belongs."""
    mixed = np.int64(end)
    for i in range(end):
        mixed = (mixed * 0x9E3779B1 + some[i]) & 0x3FFFFFFF
        mixed ^= mixed >> 15
    at, mask = mixed & (slots.size - 1), slots.size - 1
    while slots[at] >= 0:
        first = offset[slots[at]]
        same = offset[slots[at] + 1] - first == end
        i = 0
        while same and i < end:
            same = bounds[first + i] == some[i]
            i += 1
        if same:
            return at
        at = (at + 1) & mask
    return at


@njit(cache=True, nogil=True)
def _larger(offset: Any, bounds: Any, count: int, size: int) -> Any:
    """A table of the bounds so far."""
    slots = np.full(size, -1, np.int32)
    for number in range(count):
        some = bounds[offset[number] : offset[number + 1]]
        slots[_place(slots, offset, bounds, some, some.size)] = number
    return slots


@njit(cache=True, nogil=True)
def number_bounds(pattern_offset: Any, pattern: Any, ask: Any, status: Any, offset: Any, bounds: Any, code: Any,
                  need: Any) -> int:  # fmt: skip
    """The bounds that occur: number k is bounds[offset[k] : offset[k + 1]]. Of each clause: its code, and as its need
    its code << NUMBER | the number of its bound. Where there are too many bounds to be numbered, a clause has the code
    of one that is to be checked. ask[c]: is it a clause of an ASK query? Returns how many bounds there are."""
    longest = 0
    for c in range(status.size):
        longest = max(longest, pattern_offset[c + 1] - pattern_offset[c])
    some, slots, count = np.empty(longest + 2, np.int32), np.full(64, -1, np.int32), 0
    offset[0] = 0
    for c in range(status.size):
        end = _stated(pattern, pattern_offset[c], pattern_offset[c + 1], ask[c], some)
        at = _place(slots, offset, bounds, some, end)
        glance = _code(some, end, status[c])
        if slots[at] < 0 and count >> NUMBER:
            code[c], need[c] = CHECK << STATUS, CHECK << STATUS << NUMBER
            continue
        if slots[at] < 0:
            first = offset[count]
            for i in range(end):
                bounds[first + i] = some[i]
            slots[at] = count
            count += 1
            offset[count] = first + end
        code[c], need[c] = glance, glance << NUMBER | slots[at]
        if 2 * count >= slots.size:
            slots = _larger(offset, bounds, count, 4 * slots.size)
    return count
