"""How many solutions can a clause have that joins nothing? What bounds them, found once for all clauses alike.

    for each clause:  bound = (variable subjects, variable predicates, the predicates of variable objects, ascending)
                      number = that of the bound in a hash table of bounds, entered if it is new
                      code = its status, and how many objects are variable
                      need = code, number

A bound is a list of numbers: how many subjects are variable (-1 for ASK, which has one solution), how many patterns
have a variable predicate, and the predicates of the others whose object is variable. What it comes to for a
publication: `triplewire.kernels.trie.set_trie`. Who calls: `triplewire.select.trie.build`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.shared.columns import ClauseColumns
from triplewire.kernels.shared.compiled import allocating_kernel, called_helper
from triplewire.kernels.shared.hashing import hash_numbers
from triplewire.kernels.shared.search import same_numbers
from triplewire.kernels.trie.stars import CHECK

NUMBER = 23  # bits of the number of a bound, in a need
STATUS = 6  # bits below the status, in a code
LOOSE = 32  # in a code: two of the predicates are the same, or one is variable
GENERAL = 31  # in a code: only the bound tells; smaller numbers count the variable objects


@called_helper
def _stated(pattern: Any, p0: int, p1: int, ask: bool, out: Any) -> int:
    """Write the bound of a clause, with its predicates ascending; returns its length."""
    subjects, wild, end = 0, 0, 2
    for i in range(p0, p1):
        is_first = pattern[i, 0] < 0
        for j in range(p0, i):
            is_first = is_first and pattern[j, 0] != pattern[i, 0]
        subjects += is_first
        wild += pattern[i, 1] < 0
        if pattern[i, 1] >= 0 and pattern[i, 2] < 0:
            place = end
            while place > 2 and out[place - 1] > pattern[i, 1]:
                out[place] = out[place - 1]
                place -= 1
            out[place] = pattern[i, 1]
            end += 1
    out[0], out[1] = -1 if ask else subjects, wild
    return end


@called_helper
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


@called_helper
def _slot_of(slots: Any, offset: Any, bounds: Any, bound: Any, end: int) -> Any:
    """Where a bound is in the table, or the free slot where it belongs."""
    mask = slots.size - 1
    slot, is_there = hash_numbers(np.int64(end), bound, 0, end) & mask, False
    while slots[slot] >= 0 and not is_there:
        first = offset[slots[slot]]
        is_there = offset[slots[slot] + 1] - first == end and same_numbers(bounds, first, bound, 0, end)
        slot = slot if is_there else (slot + 1) & mask
    return slot


@allocating_kernel
def number_bounds(clauses: ClauseColumns, ask: Any, status: Any, offset: Any, bounds: Any, code: Any, need: Any) -> int:
    """The bounds that occur: number k is bounds[offset[k] : offset[k + 1]]. Of each clause: its code, and as its need
    its code << NUMBER | the number of its bound, which is empty where it is to be checked. Where there are too many
    bounds to be numbered, a clause has the code of one that is to be checked. ask[c]: is it a clause of an ASK query?
    Returns how many bounds there are."""
    pattern_offset, longest = clauses.pattern_offset, 0
    for c in range(status.size):
        longest = max(longest, pattern_offset[c + 1] - pattern_offset[c])
    bound, slots, count = np.empty(longest + 2, np.int32), np.empty(64, np.int32), 0
    slots[:] = -1
    offset[0] = 0
    for c in range(status.size):
        last = pattern_offset[c] if status[c] == CHECK else pattern_offset[c + 1]  # nobody asks for its bound
        end = _stated(clauses.pattern, pattern_offset[c], last, ask[c], bound)
        slot = _slot_of(slots, offset, bounds, bound, end)
        if slots[slot] < 0 and count >> NUMBER:
            code[c], need[c] = CHECK << STATUS, CHECK << STATUS << NUMBER
            continue
        if slots[slot] < 0:
            first = offset[count]
            for i in range(end):
                bounds[first + i] = bound[i]
            slots[slot] = count
            count += 1
            offset[count] = first + end
        code[c] = _code(bound, end, status[c])
        need[c] = np.int64(code[c]) << NUMBER | slots[slot]
        if 2 * count >= slots.size:
            slots = np.empty(4 * slots.size, np.int32)
            slots[:] = -1
            for number in range(count):
                known = bounds[offset[number] : offset[number + 1]]
                slots[_slot_of(slots, offset, bounds, known, known.size)] = number
    return count
