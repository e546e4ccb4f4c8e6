"""All stored sets that are subsets of a given set: a walk through a trie of labels, a set-trie.

Source: I. Savnik, "Index Data Structure for Fast Subset and Superset Queries", CD-ARES 2013, here walked breadth first.
An example: `docs/matching.md`, section 1.

    bits  = the labels that are present
    reach the children of the root whose labels are present
    for each node reached, in the order in which they were:
        a scanned node:   reach each child whose label is in `bits`
        a searched node:  reach the children that a search finds: by the labels present, or by the interval of a range
        a tail:           keep it; at the end, those are reached whose labels are all in `bits`

The trie is flat, a row of two 64-bit words a node, which `triplewire.select.trie.kernels.trie_nodes` writes:

    first word     the lower half (HALF): its label; from AT on, where its items begin: they end where those of the
                   next row begin
    second word    the lower half: the row of its first child; 16 bits from COUNT on: how many children; 8 bits from
                   CODE on: the largest code of its items (`triplewire.select.trie.kernels.stars`); then single bits

    SCANNED  its children are to be looked at one by one
    ENDS     it has items: the clauses whose set ends there
    ALONE    it has one item and no children. The subscription of that item, or its place where its code says CHECK,
             stands in the place of the first child, or of a tail behind its labels
    RANGE    it is a range node, see below
    SEARCHED it is a range node, or has WIDE children or more; their number is the label of the row before the first
    STAR     it is a label of the second trie, whose sets are stars
    TAIL     below it are nothing but children of one child each, and no set ends in it or in them but for the last: the
             row stands for that one. The labels of all of them are a slice of `tail`, which stands in the places of
             the first child and of the number of children

Siblings lie side by side, ascending by label. A label from `first_range` on leads to a range node: the labels of its
children are ranks, and those within the interval of that range atom are reached; or, where it asks for two bounds, the
labels are windows, and those that hold are reached: windows ascend by their lower bounds, and of WIDE siblings or more
there are levels above, a row for each FAN of the level below, with the largest upper bound there.

    stab:  end = the first window whose lower bound is above the value
           from the first window to `end`: skip a whole block whose largest upper bound is below the value; else
               add the window, if its upper bound is not below the value and no earlier object satisfies it

Hardly a branch of this walk could be guessed by a processor. So what is found is written at the end of its list in any
case, and that end is moved by 1 or 0: by the bit that says whether it holds. `x & -bit` is x where the bit is 1, or 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.shared.columns import end_rank, first_rank
from triplewire.kernels.shared.compiled import called_helper, helper, prefetch
from triplewire.select.trie.kernels.columns import RunAtoms, TrieArrays, WalkSpace

GROUP, OP, LAST_GROUP, LAST_OP = 0, 1, 2, 3
"""Columns of what a range atom asks: the lower bound, or the only one; the upper bound, whose operator is 0 without."""

AT, COUNT, CODE = 32, 32, 48  # first bits of the items in the first word; of the children and the code in the second
SCANNED, ENDS, ALONE, SEARCHED, RANGE, STAR, TAIL = 56, 57, 58, 59, 60, 61, 62  # bits of the second
HALF, _COUNT = 0xFFFFFFFF, 0xFFFF  # masks: of the lower half of a word; of the number of children, shifted by COUNT
WIDE = 127  # so many children or more
AHEAD = 8  # tails whose end is fetched ahead
ROOM = 8  # children a present label for which they are looked at one by one; more are searched
FAN_BITS = 4
FAN = 1 << FAN_BITS
_EACH = 16  # triples with one subject and predicate of which each is asked for its windows; more are asked together

_int: Any = np.int64
_wide: Any = np.uint64  # also of an index: that it is not negative
_ONE, _SIX, _LOW = _wide(1), _wide(6), _wide(63)  # of 64 bits in a word: label >> 6 is the word, label & 63 the bit


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
                label = nodes[below + i, 0] & HALF
                most = max(most, _int(high[label]) if is_first else label)
            nodes[first + block, 0], nodes[first + block, 1] = most, 0
        below, size, end, is_first = first, above(size), first, False


@helper
def _reached(nodes: Any, low: Any, begin: int, count: int, reach: int) -> Any:
    """How many of the siblings have a lower bound before `reach`."""
    first, end = _int(0), _int(count)
    while first < end:
        middle = (first + end) >> 1
        if low[nodes[2 * (begin + middle)] & HALF] < reach:
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
        if nodes[2 * (level_end + block)] & HALF >= least:
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
        window = nodes[2 * (begin + sibling)] & HALF
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


@helper
def _child(nodes: Any, low: int, high: int, label: int) -> Any:
    """The first of the siblings low .. high whose label is not below this one."""
    while low < high:
        middle = (low + high) >> 1
        if nodes[_wide(2 * middle)] & HALF < label:
            low = middle + 1
        else:
            high = middle
    return low


@helper
def _roots(trie: TrieArrays, present: Any, begin: int, end: int, bits: Any, hits: Any, hit: int) -> Any:
    """Set the bits of the labels present[begin:end], and add the children of the root that have them to `hits`."""
    for i in range(end - begin):
        label = _wide(present[_wide(begin + i)])
        bits[label >> _SIX] |= _ONE << (label & _LOW)
        row = _int(trie.root[label])
        hits[_wide(hit)] = row
        prefetch(trie.nodes, 2 * row)
        hit += row >= 0
    return hit


@helper
def _clear(present: Any, begin: int, end: int, bits: Any) -> None:
    """Clear the bits of the labels present[begin:end]."""
    for i in range(end - begin):
        bits[_wide(present[_wide(begin + i)]) >> _SIX] = 0


@helper
def _enter(trie: TrieArrays, begin: int, hit: int, space: WalkSpace, queued: int, searched: int, tails: int) -> Any:
    """Sort the nodes hits[begin:hit] by what is to be done with them: second words of scanned nodes go to the queue,
    searched nodes to `searched` as well, tails from `hits` to `tails`. Returns the new ends of all, of `hits` first."""
    nodes, hits, hits_end = trie.nodes, space.hits, _int(begin)
    for i in range(begin, hit):
        row = hits[_wide(i)]
        marks = nodes[_wide(2 * _int(row) + 1)]
        is_scanned, is_tail = marks >> SCANNED & 1, marks >> TAIL & 1
        space.queue[_wide(queued)] = marks
        queued += is_scanned
        space.tails[_wide(tails)] = row
        tails += is_tail
        prefetch(nodes, 2 * (marks & HALF & -is_scanned))
        prefetch(trie.tail, marks & HALF & -is_tail)
        hits[_wide(hits_end)] = row
        hits_end += 1 - is_tail
        space.searched[_wide(searched)] = row
        searched += marks >> SEARCHED & 1
    return hits_end, queued, searched, tails


@helper
def _reach(trie: TrieArrays, bits: Any, space: WalkSpace, head: int, queued: int, hit: int, searched: int,
           tails: int) -> Any:  # fmt: skip
    """Look at all children in the queue from `head` on, and at the children of those that are reached.

        for each entry of the queue:  for each child of that node:
            if its label is in `bits`:  add it to `hits`, or to `tails`; to the queue, if its children are scanned; to
                                        `searched`, if they are searched

    Both loops are one, which goes from child to child and from entry to entry, so that nothing is to be guessed but
    where all ends."""
    nodes, queue = trie.nodes, space.queue
    entry = queue[_wide(head)]
    row, siblings = entry & HALF, entry >> COUNT & _COUNT  # the child at hand; how many there are from it on
    head += 1
    while head <= queued:
        label, marks = _wide(nodes[_wide(2 * row)] & HALF), nodes[_wide(2 * row + 1)]
        is_present = _int(bits[label >> _SIX] >> (label & _LOW) & _ONE)
        is_scanned, is_tail = is_present & marks >> SCANNED, is_present & marks >> TAIL
        queue[_wide(queued)] = marks
        queued += is_scanned
        space.tails[_wide(tails)] = row
        tails += is_tail
        prefetch(nodes, 2 * (marks & HALF & -is_scanned))
        prefetch(trie.tail, marks & HALF & -is_tail)
        space.hits[_wide(hit)] = row
        hit += is_present - is_tail
        space.searched[_wide(searched)] = row
        searched += is_present & marks >> SEARCHED
        row, siblings = row + 1, siblings - 1
        # -1, which is all bits, behind the last sibling; else 0: row, siblings and head go to the next entry, or stay
        is_behind = (siblings - 1) >> 63
        entry = queue[_wide(head)]
        row += ((entry & HALF) - row) & is_behind
        siblings += entry >> COUNT & _COUNT & is_behind
        head -= is_behind
    return queued, hit, searched, tails


@helper
def _whole_tails(trie: TrieArrays, bits: Any, space: WalkSpace, tails: int, hit: int) -> Any:
    """Add the tails of which all labels are present to `hits`."""
    nodes, labels = trie.nodes, trie.tail
    for i in range(tails):
        ahead = nodes[_wide(2 * _int(space.tails[_wide(min(i + AHEAD, tails - 1))]) + 1)]
        prefetch(labels, (ahead & HALF) + (ahead >> COUNT & _COUNT))
        row = _int(space.tails[_wide(i)])
        marks, is_whole = nodes[_wide(2 * row + 1)], _int(1)
        place, length = marks & HALF, marks >> COUNT & _COUNT
        while is_whole & _int(length > 0):
            label = _wide(labels[_wide(place)])
            is_whole = _int(bits[label >> _SIX] >> (label & _LOW) & _ONE)
            place, length = place + 1, length - 1
        space.hits[_wide(hit)] = row
        hit += is_whole
    return hit


@called_helper
def _search(node: int, trie: TrieArrays, present: Any, p0: int, p1: int, runs: RunAtoms, s0: int, s1: int,
            space: WalkSpace, queued: int, hit: int) -> Any:  # fmt: skip
    """Add the children of a searched node that are reached to `hits`; or all of them to the queue, if they are few for
    so many labels. Returns the end of the queue, and of `hits`."""
    nodes, hits = trie.nodes, space.hits
    marks = nodes[2 * node + 1]
    begin, count = marks & HALF, marks >> COUNT & _COUNT
    is_wide = count == WIDE
    if is_wide:
        count = nodes[2 * begin - 2] & HALF
    if marks >> RANGE & 1:  # below a range node come ordinary nodes
        atom = (nodes[2 * node] & HALF) - trie.first_range
        span = space.span_of[atom]
        first, end = runs.lists.span_ends[span, 0], runs.lists.span_ends[span, 1]
        if trie.range_test[atom, LAST_OP] > 0:
            return queued, stabbed(trie, atom, begin, count, is_wide, first, end, runs, hits, hit)
        low, high = _child(nodes, begin, begin + count, first), _child(nodes, begin, begin + count, end)
        for child in range(low, high):
            hits[hit] = child
            hit += 1
    elif count <= min(ROOM * (p1 - p0 + s1 - s0), _COUNT):
        space.queue[queued] = begin | count << COUNT
        queued += 1
    else:
        for i in range(p1 - p0 + s1 - s0):
            label = _int(present[p0 + i]) if i < p1 - p0 else _int(runs.lists.span_atom[s0 + i - (p1 - p0)])
            child = _child(nodes, begin, begin + count, label)
            if child < begin + count and nodes[2 * child] & HALF == label:
                hits[hit] = child
                hit += 1
    return queued, hit


@helper
def subsets(trie: TrieArrays, present: Any, p0: int, p1: int, runs: RunAtoms, s0: int, s1: int, bits: Any,
            space: WalkSpace) -> Any:  # fmt: skip
    """The nodes that are reached by the labels present[p0:p1] and the range atoms s0 .. s1 of `runs`, in `hits`;
    returns how many. `bits`: one a label. Breadth first: what is in the queue is fetched until its turn comes."""
    span_atom = runs.lists.span_atom
    hit = _roots(trie, present, p0, p1, bits, space.hits, _int(0))
    hit = _roots(trie, span_atom, s0, s1, bits, space.hits, hit)
    for i in range(s0, s1):
        space.span_of[span_atom[i] - trie.first_range] = i
    hit, queued, searched, tails = _enter(trie, 0, hit, space, _int(0), _int(0), _int(0))
    head, done = _int(0), _int(0)
    while head < queued or done < searched:
        if head < queued:
            queued, hit, searched, tails = _reach(trie, bits, space, head, queued, hit, searched, tails)
            head = queued
        if done < searched:
            before = hit
            queued, hit = _search(space.searched[done], trie, present, p0, p1, runs, s0, s1, space, queued, hit)
            done += 1
            hit, queued, searched, tails = _enter(trie, before, hit, space, queued, searched, tails)
    hit = _whole_tails(trie, bits, space, tails, hit)
    _clear(present, p0, p1, bits)
    _clear(span_atom, s0, s1, bits)
    return hit


@helper
def fresh(nodes: Any, space: WalkSpace, hit: int, count: int) -> Any:
    """Keep the nodes that matter, and that this publication reaches for the first time, by another subject than before;
    they are added to `reached`. Returns the new ends of both. No item comes twice then: each hangs on one node."""
    hits_end, hits, bits = _int(0), space.hits, space.reached_bits
    for i in range(hit):
        node = hits[_wide(i)]
        marks, mark = nodes[_wide(2 * _int(node) + 1)], np.uint8(1 << (node & 7))  # eight nodes a byte
        if (marks >> ENDS | marks >> STAR) & 1 and bits[node >> 3] & mark == 0:
            bits[node >> 3] |= mark
            space.reached[count] = node
            count += 1
            hits[hits_end] = node
            hits_end += 1
    return hits_end, count
