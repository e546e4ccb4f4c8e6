"""Windows: which pairs of a lower and an upper bound hold of a value? The pairs below a node of a trie, as siblings.

    reach, least = the ranks that the value says (`triplewire.kernels.shared.ranks`)
    for each sibling, ascending by low, as long as low < reach:
        where a block of FAN siblings (or FAN * FAN, ...) begins whose largest high is below `least`: skip the block
        else add the window to `hits` if high >= least, and it does not hold of an earlier value

A window is a pair of ranks, `low` and `high`: of the constant that the value is to be above, and of the one that it is
to be below. It holds where low < `reach` and high >= `least`, which the value says (`triplewire.kernels.shared.ranks`).
Siblings ascend by `low`, so those with low < reach are the first of them; of these, the ones with high >= least are
found by the largest `high` of every FAN siblings, of every FAN * FAN, and so on: a priority search tree (E. McCreight,
1985) in flat arrays, but that the largest stay in their places as well. A window that holds costs about FAN looks at
the most where those that hold lie together, and FAN for each level where they are scattered.

The largest are the labels of rows before the siblings: behind them is the row with the number of siblings, before them
the next level. Where there are fewer than WIDE siblings there are no such rows, and all siblings are looked at.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.shared.compiled import called_helper, helper
from triplewire.kernels.shared.ranks import end_rank, first_rank
from triplewire.kernels.trie.columns import RunAtoms, TrieArrays

GROUP, OP, LAST_GROUP, LAST_OP = 0, 1, 2, 3
"""Columns of what a range atom asks: the lower bound, or the only one; the upper bound, whose operator is 0 without."""

FAN_BITS = 4
FAN = 1 << FAN_BITS
_EACH = 16  # triples with one subject and predicate of which each is asked for its windows; more are asked together

_int: Any = np.int64
_HALF = 0xFFFFFFFF  # as `triplewire.kernels.trie.subsets.HALF`


@helper
def above(count: int) -> Any:
    """How many there are on the next level."""
    return (count + FAN - 1) >> FAN_BITS


@called_helper
def level_rows(count: int) -> int:
    """How many rows the levels above so many siblings take."""
    rows, size = 0, above(count)
    while size > 1:
        rows += size
        size = above(size)
    return rows


@called_helper
def write_levels(nodes: Any, begin: int, count: int, high: Any) -> None:
    """Fill in the levels above the siblings begin .. begin + count. `high`: of each window."""
    below, size, end, is_first = begin, count, begin - 1, True
    while above(size) > 1:
        first = end - above(size)
        for block in range(above(size)):
            most = _int(0)
            for i in range(block << FAN_BITS, min((block + 1) << FAN_BITS, size)):
                label = nodes[below + i, 0] & _HALF
                most = max(most, _int(high[label]) if is_first else label)
            nodes[first + block, 0], nodes[first + block, 1] = most, 0
        below, size, end, is_first = first, above(size), first, False


@helper
def _reached(nodes: Any, low: Any, begin: int, count: int, reach: int) -> Any:
    """How many of the siblings have a lower bound before `reach`."""
    first, end = _int(0), _int(count)
    while first < end:
        middle = (first + end) >> 1
        if low[nodes[2 * (begin + middle)] & _HALF] < reach:
            first = middle + 1
        else:
            end = middle
    return first


@helper
def _skipped(nodes: Any, begin: int, count: int, sibling: int, least: int) -> Any:
    """How many siblings from this one on can be passed by, as none of them is up to `least`: the largest block that
    begins with it. A level lies before the one below it; its blocks are FAN times as large."""
    size, level_end, block, passed, block_size = above(count), _int(begin - 1), _int(sibling), _int(0), _int(1)
    while size > 1 and block & (FAN - 1) == 0:
        block, block_size, level_end = block >> FAN_BITS, block_size << FAN_BITS, level_end - size
        if nodes[2 * (level_end + block)] & _HALF >= least:
            break
        passed, size = block_size, above(size)
    return passed


@helper
def _holds(window: int, trie: TrieArrays, atom: int, t: int, runs: RunAtoms) -> Any:
    """Does a window of this range atom hold of the object of the triple t?"""
    o, test = runs.object[t], trie.range_test
    group, last = test[atom, GROUP], test[atom, LAST_GROUP]
    reach = end_rank(test[atom, OP], runs.below[group, o], runs.upto[group, o])
    least = first_rank(test[atom, LAST_OP], runs.below[last, o], runs.upto[last, o])
    has_values = (runs.below[group, o] >= 0) & (runs.below[last, o] >= 0)
    return has_values & (trie.window_low[window] < reach) & (trie.window_high[window] >= least)


@helper
def _stab(trie: TrieArrays, begin: int, count: int, reach: int, least: int, is_wide: bool, atom: int, t0: int, t1: int,
          runs: RunAtoms, hits: Any, hit: int) -> Any:  # fmt: skip
    """Add the siblings whose windows hold to `hits`, but for those that hold of one of the triples t0 .. t1, too."""
    nodes, sibling, end = trie.nodes, _int(0), _reached(trie.nodes, trie.window_low, begin, count, reach)
    while sibling < end:
        passed = _skipped(nodes, begin, count, sibling, least) if is_wide else _int(0)
        if passed > 0:
            sibling += passed
            continue
        window = nodes[2 * (begin + sibling)] & _HALF
        is_new = trie.window_high[window] >= least
        t = t0
        while is_new and t < t1:
            is_new = not _holds(window, trie, atom, t, runs)
            t += 1
        if is_new:
            hits[hit] = begin + sibling
            hit += 1
        sibling += 1
    return hit


@called_helper
def stabbed(trie: TrieArrays, atom: int, begin: int, count: int, is_wide: bool, t0: int, t1: int, runs: RunAtoms,
            hits: Any, hit: int) -> Any:  # fmt: skip
    """Add the siblings begin .. begin + count whose windows hold of an object of the triples t0 .. t1 to `hits`, each
    once; returns the end. `atom`: the range atom, counted from the first. Of very many objects, those are added that
    hold of all together: that may be more, and what has several tested objects is checked anyway."""
    test, below, upto = trie.range_test, runs.below, runs.upto
    group, op, last, last_op = test[atom, GROUP], test[atom, OP], test[atom, LAST_GROUP], test[atom, LAST_OP]
    reach, least = _int(0), _int(0x7FFFFFFF)
    for t in range(t0, t1):
        o = runs.object[t]
        if below[group, o] >= 0 and below[last, o] >= 0:
            value_reach = _int(end_rank(op, below[group, o], upto[group, o]))
            value_least = _int(first_rank(last_op, below[last, o], upto[last, o]))
            if t1 - t0 <= _EACH:
                hit = _stab(trie, begin, count, value_reach, value_least, is_wide, atom, t0, t, runs, hits, hit)
            reach, least = max(reach, value_reach), min(least, value_least)
    if t1 - t0 > _EACH:
        hit = _stab(trie, begin, count, reach, least, is_wide, atom, t0, t0, runs, hits, hit)
    return hit
