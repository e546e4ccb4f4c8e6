"""The rows of matches in order, as steps from each to the next: which columns change, and to what.

Used through `triplewire.verify.rows`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.shared.compiled import allocating_kernel, helper, kernel

FEW = 40  # rows that are put in order by insertion
DIGIT = 11  # bits of a rank that more rows are put in order by at once


@kernel
def mark(start: Any, count: Any, width: Any, rows: Any, seen: Any) -> int:
    """Set seen[id + 1] for the ids in the rows of each list: count[i] rows from start[i] on, each width[i] long.
    Returns how many ids these are, each as often as it occurs."""
    total = 0
    for i in range(start.size):
        size = count[i] * width[i]
        for at in range(start[i], start[i] + size):
            seen[rows[at] + 1] = True
        total += size
    return total


@kernel
def bytes_of_rows(lists: Any, start: Any, count: Any, width: Any, rows: Any, terms: Any, sizes: Any) -> None:
    """sizes[n]: how many bytes the terms have in the rows of lists[n] together. `terms` is (start, end, suffix) of
    each and the bytes of each suffix; -1 is no term, and has none."""
    begin, end, suffix, suffix_bytes = terms
    for n in range(lists.size):
        i = lists[n]
        size = 0
        for at in range(start[i], start[i] + count[i] * width[i]):
            term = rows[at]
            if term >= 0:
                size += end[term] - begin[term] + suffix_bytes[suffix[term]]
        sizes[n] = size


@helper
def _is_before(a: Any, b: Any, width: Any, rows: Any, rank: Any) -> Any:
    """Does the row at a come before the row at b?"""
    k = 0
    while k < width - 1 and rows[a + k] == rows[b + k]:
        k += 1
    return rank[rows[a + k] + 1] < rank[rows[b + k] + 1]


@helper
def _order_few(begin: Any, count: Any, width: Any, rows: Any, rank: Any, order: Any) -> None:
    """Put where rows begin in the order of the rows."""
    for number in range(count):
        at, place = begin + number * width, number
        while place > 0 and _is_before(at, order[place - 1], width, rows, rank):
            order[place] = order[place - 1]
            place -= 1
        order[place] = at


@helper
def _order_many(begin: Any, count: Any, width: Any, rows: Any, rank: Any, ranks: Any, order: Any, spare: Any,
                bucket: Any) -> None:  # fmt: skip
    """`_order_few` for many rows: digit by digit, from the last one of the last column."""
    for number in range(count):
        order[number] = begin + number * width
    for k in range(width - 1, -1, -1):
        shift = 0
        while ranks >> shift:
            bucket[:] = 0
            for number in range(count):
                bucket[(rank[rows[order[number] + k] + 1] >> shift) & (bucket.size - 1)] += 1
            before = 0
            for digit in range(bucket.size):
                before, bucket[digit] = before + bucket[digit], before
            for number in range(count):
                digit = (rank[rows[order[number] + k] + 1] >> shift) & (bucket.size - 1)
                spare[bucket[digit]] = order[number]
                bucket[digit] += 1
            for number in range(count):
                order[number] = spare[number]
            shift += DIGIT


@allocating_kernel
def steps(start: Any, count: Any, width: Any, rows: Any, rank: Any, ranks: int, offset: Any, step: Any,
          completes: Any) -> None:  # fmt: skip
    """The steps through the rows of each list, as for `mark`: step[:, n] is (column, rank of what is there now), where
    rank[id + 1] < `ranks` says what the rows are ordered by. The first row of a list changes all columns, one that is
    there again its last one. `completes`, False at first, marks the last step to each row; the steps of list i begin at
    offset[i], which is one longer than there are lists."""
    most, used = 0, 0
    for i in range(start.size):
        most = max(most, count[i] if width[i] > 0 else 0)
    order, spare, bucket = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(1 << DIGIT, np.int64)
    for i in range(start.size):
        offset[i], n, w = used, count[i] if width[i] > 0 else 0, width[i]
        if n <= FEW:
            _order_few(start[i], n, w, rows, rank, order)
        else:
            _order_many(start[i], n, w, rows, rank, ranks, order, spare, bucket)
        for number in range(n):
            at, before = order[number], used
            for k in range(w):
                if number == 0 or rows[at + k] != rows[order[number - 1] + k] or (k == w - 1 and used == before):
                    step[0, used], step[1, used] = k, rank[rows[at + k] + 1]
                    used += 1
            completes[used - 1] = True
    offset[start.size] = used
