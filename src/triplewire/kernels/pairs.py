"""Pairs (term, test) in the making: from the words of terms, and gathered into sorted slices.

What the tests are: `triplewire.select.tests`. Who asks: `triplewire.select.features`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

_FEW = 24  # numbers that are sorted by insertion


@njit(cache=True, nogil=True)
def from_words(
    offset: Any, ids: Any, row: Any, test_offset: Any, tests: Any, stamp: Any, out_term: Any, out_test: Any
) -> int:
    """The tests of the words of each term: `ids` holds the words of term t at offset[t] .. offset[t + 1], `row` the row
    of each word or -1, `tests` those of each row. `stamp`: a number for each row, all -1.

    Returns how many pairs there are; those beyond the room in `out_term` are not written.
    """
    count = 0
    for term in range(offset.size - 1):
        for i in range(offset[term], offset[term + 1]):
            at = row[ids[i]]
            if at < 0 or stamp[at] == term:
                continue
            stamp[at] = term
            for j in range(test_offset[at], test_offset[at + 1]):
                if count < out_term.size:
                    out_term[count] = term
                    out_test[count] = tests[j]
                count += 1
    return count


@njit(cache=True, nogil=True)
def _admits(wanted: int, kind: int) -> bool:
    """Is a node of this kind meant? `kind`: suffix * 32 + a bit of 1, 2, 4, + bits of 8 and 16 for odd texts.
    `wanted`: a suffix * 32, or a set of kinds and of the oddities that are not meant."""
    if wanted >= 32:
        return (wanted >> 5) == (kind >> 5)
    return (wanted & kind & 7) != 0 and (wanted & kind & 24) == 0


@njit(cache=True, nogil=True)
def spread(
    pair_term: Any, pair_row: Any, test_offset: Any, tests: Any, wanted: Any, kind: Any, out_term: Any, out_test: Any
) -> int:
    """From pairs (term, row) to pairs (term, test): the tests of the row that are meant for terms of this `kind`.

    Returns how many pairs there are; those beyond the room are not written.
    """
    count = 0
    for i in range(pair_term.size):
        term, at = pair_term[i], pair_row[i]
        for j in range(test_offset[at], test_offset[at + 1]):
            if _admits(wanted[j], kind[term]):
                if count < out_term.size:
                    out_term[count] = term
                    out_test[count] = tests[j]
                count += 1
    return count


@njit(cache=True, nogil=True)
def _sort(values: Any, low: int, high: int) -> None:
    if high - low > _FEW:
        values[low:high] = np.sort(values[low:high])
        return
    for i in range(low + 1, high):
        value = values[i]
        j = i
        while j > low and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value


@njit(cache=True, nogil=True)
def gather(pair_term: Any, pair_test: Any, offset: Any, test: Any) -> int:
    """The pairs as slices, one a term, ascending and distinct: `offset` is one longer than the terms, `test` has room
    for all pairs. Returns how many are left."""
    offset[:] = 0
    for i in range(pair_term.size):
        offset[pair_term[i] + 1] += 1
    for term in range(offset.size - 1):
        offset[term + 1] += offset[term]
    for i in range(pair_term.size - 1, -1, -1):  # fill each slice from its end: offset[t + 1] comes down to its start
        at = offset[pair_term[i] + 1] - 1
        offset[pair_term[i] + 1] = at
        test[at] = pair_test[i]
    kept = 0
    for term in range(offset.size - 1):  # now offset[t + 1] is where the slice of t begins
        low = offset[term + 1]
        high = offset[term + 2] if term + 2 < offset.size else pair_term.size
        _sort(test, low, high)
        offset[term] = kept
        for i in range(low, high):
            if i == low or test[i] != test[i - 1]:
                test[kept] = test[i]
                kept += 1
    offset[offset.size - 1] = kept
    return kept
