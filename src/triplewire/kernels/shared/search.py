"""What kernels do in slices of arrays: search, compare, sort; sets as bits of a number, and sets that are joined.

lower, upper:  halve the slice until one place is left
sort:          sort what lies a gap apart by insertion; with smaller gaps again, at last 1 (D. L. Shell, "A
               high-speed sorting procedure", CACM 2(7), 1959): in place, without memory of its own
root:          each set is named by one member, to which `parent` leads; the way to it is halved when it is gone
"""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.shared.compiled import called_helper, helper

_int: Any = np.int64
_wide: Any = np.uint64  # of an index: that it is not negative
LONG = 256  # tests of a term: slices of more are ascending. To look through shorter ones takes no longer than to search


@helper
def lower(values: Any, low: int, high: int, wanted: Any) -> Any:
    """The first place in low .. high whose value is not below `wanted`. The values are ascending there."""
    while low < high:
        middle = (low + high) >> 1
        if values[_wide(middle)] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@helper
def upper(values: Any, low: int, high: int, wanted: Any) -> Any:
    """The first place in low .. high whose value is above `wanted`. The values are ascending there."""
    while low < high:
        middle = (low + high) >> 1
        if values[_wide(middle)] <= wanted:
            low = middle + 1
        else:
            high = middle
    return low


@helper
def same_numbers(a: Any, first: int, b: Any, second: int, length: int) -> Any:
    """Are a[first : first + length] and b[second : second + length] equal?"""
    i = 0
    while i < length and a[first + i] == b[second + i]:
        i += 1
    return i == length


@helper
def count_bits(bits: Any) -> Any:
    """How many bits are set? Each turn clears the lowest one. The compiler knows this loop."""
    count = _int(0)
    while bits != 0:
        bits &= bits - 1
        count += 1
    return count


@helper
def lowest_bit(bits: Any) -> Any:
    """The number of the lowest bit of a number that has one: `bits & -bits` is that bit alone; less 1, all below it."""
    return count_bits((bits & -bits) - 1)


@called_helper
def sort_numbers(values: Any, low: int, high: int) -> None:
    """Sort values[low:high] ascending."""
    gap = 1
    while 3 * gap + 1 < high - low:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(low + gap, high):
            value, place = values[i], i
            while place >= low + gap and values[place - gap] > value:
                values[place] = values[place - gap]
                place -= gap
            values[place] = value
        gap //= 3


@called_helper
def sort_by(values: Any, key: Any, low: int, high: int) -> None:
    """Sort values[low:high] by key[value]; values with equal keys are put in ascending order themselves."""
    gap = 1
    while 3 * gap + 1 < high - low:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(low + gap, high):
            value, place = values[i], i
            while place >= low + gap:
                other = values[place - gap]
                if key[other] < key[value] or (key[other] == key[value] and other <= value):
                    break
                values[place] = other
                place -= gap
            values[place] = value
        gap //= 3


@called_helper
def root(parent: Any, member: int) -> Any:
    """The member that names the set. The way to it is halved for the next time."""
    while parent[member] != member:
        parent[member] = parent[parent[member]]
        member = parent[member]
    return member


@called_helper
def is_listed(test: int, tests: Any, first: int, end: int) -> bool:
    """Is a test among `tests` from `first` to `end`, a term's slice (`triplewire.clauses.kernels.pairs`)?"""
    if end - first > LONG:
        place = lower(tests, first, end, test)
        return bool(place < end and tests[place] == test)
    hits = _int(0)
    if first >= 0:  # it is; so the compiler compares several at once
        for i in range(end - first):
            hits |= tests[first + i] == test
    return bool(hits)
