"""Which atoms does each subject of a publication satisfy? Look-ups of (predicate, object) keys; no joins.

The keys are those of `triplewire.kernels.stars`. What is done with the atoms: `triplewire.kernels.set_trie`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

TERM, TEST, ANY, RANGE = 0, 1, 2, 3
SUBJECT, WILD = -2, -1
HAS_TERM, HAS_TEST = 1, 2  # what atoms a predicate has


@njit(cache=True, nogil=True)
def _key(predicate: int, kind: int, number: int) -> Any:
    return (np.int64(predicate + 2) << 34) | (np.int64(kind) << 32) | np.int64(number)


@njit(cache=True, nogil=True)
def _slot(key: int, mask: int) -> int:
    """Where the search for a key begins: its bits mixed, so that neighbours spread."""
    h = key ^ (key >> 29)
    h = (h * 0x9E3779B1) & 0x7FFFFFFFFFFFFFF
    return (h >> 15 ^ h) & mask


@njit(cache=True, nogil=True)
def build_table(keys: Any, slots: Any) -> None:
    """Open addressing: the row of each key (all distinct), in `slots`, whose size is a power of two; -1 is empty."""
    mask = slots.size - 1
    slots[:] = -1
    for row in range(keys.size):
        at = _slot(keys[row], mask)
        while slots[at] >= 0:
            at = (at + 1) & mask
        slots[at] = row


@njit(cache=True, nogil=True)
def number_keys(keys: Any, slots: Any, distinct: Any, number: Any) -> int:
    """Number the distinct keys in the order in which they are met: `number` of each key, and the `distinct` ones, for
    which there is room up to half of `slots`, a power of two filled with -1. Returns how many there are, or -1 where
    there was no room for all."""
    mask = slots.size - 1
    count = 0
    for i in range(keys.size):
        at = _slot(keys[i], mask)
        while slots[at] >= 0 and distinct[slots[at]] != keys[i]:
            at = (at + 1) & mask
        if slots[at] < 0:
            if 2 * count >= slots.size:
                return -1
            slots[at] = count
            distinct[count] = keys[i]
            count += 1
        number[i] = slots[at]
    return count


@njit(cache=True, nogil=True)
def runs(offset: Any, subject: Any, out_first: Any, out_publication: Any) -> int:
    """The runs of triples with one subject; returns their number. out_first has one entry more."""
    count = 0
    for p in range(offset.size - 1):
        for t in range(offset[p], offset[p + 1]):
            if t == offset[p] or subject[t] != subject[t - 1]:
                out_first[count] = t
                out_publication[count] = p
                count += 1
    out_first[count] = offset[offset.size - 1]
    return count


@njit(cache=True, nogil=True)
def _look_up(wanted: Any, count: int, keys: Any, slots: Any, stamp: Any, now: int, out: Any, at: int) -> int:
    """Append the atoms of the wanted keys, each once, as far as there is room; returns the end with all of them.

    One plain loop over all keys of a run: the processor fetches several of them at the same time.
    """
    mask = slots.size - 1
    for i in range(count):
        key = wanted[i]
        slot = _slot(key, mask)
        row = slots[slot]
        while row >= 0 and keys[row] != key:
            slot = (slot + 1) & mask
            row = slots[slot]
        if row >= 0 and stamp[row] != now:
            stamp[row] = now
            if at < out.size:
                out[at] = row
            at += 1
    return at


@njit(cache=True, nogil=True)
def _first_of(term: int, first: int, last: int, node_term: Any) -> int:
    """Where the tests of a term begin in the publication's slice of `node_term`, ascending."""
    low, high = first, last
    while low < high:
        middle = (low + high) >> 1
        if node_term[middle] < term:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def _want(predicate: int, flags: int, o: int, term: Any, test_offset: Any, test: Any, n0: int, n1: int, node_term: Any,
          node_test: Any, wanted: Any, at: int) -> int:  # fmt: skip
    """Append the keys that an object has under a predicate, as far as there is room; returns the end with all.
    n0 .. n1 is the publication's slice of `node_term` and `node_test`."""
    if flags & HAS_TERM and term[o] >= 0:
        if at < wanted.size:
            wanted[at] = _key(predicate, TERM, term[o])
        at += 1
    if flags & HAS_TEST == 0:
        return at
    begin, end = test_offset[o], test_offset[o + 1]
    if at + end - begin <= wanted.size:
        base = _key(predicate, TEST, 0)
        for i in range(begin, end):
            wanted[at + i - begin] = base | np.int64(test[i])
    at += end - begin
    if n0 < n1:
        i = _first_of(o, n0, n1, node_term)
        while i < n1 and node_term[i] == o:
            if at < wanted.size:
                wanted[at] = _key(predicate, TEST, node_test[i])
            at += 1
            i += 1
    return at


@njit(cache=True, nogil=True)
def _range(op: int, below: int, upto: int, ends: Any, at: int) -> None:
    """Widen the interval of satisfied ranks, ends[at, 0] <= rank < ends[at, 1], by one value."""
    low, high = 0, 0x7FFFFFFF
    if op == 1:
        low = upto
    elif op == 2:
        low = below
    elif op == 3:
        high = below
    else:
        high = upto
    if low < high:
        if ends[at, 0] >= ends[at, 1]:
            ends[at, 0] = low
            ends[at, 1] = high
        else:
            ends[at, 0] = min(ends[at, 0], low)
            ends[at, 1] = max(ends[at, 1], high)


@njit(cache=True, nogil=True)
def _ranges(predicate_row: int, t0: int, t1: int, obj: Any, ranges: Any, out: Any, ends: Any, at: int) -> int:
    """Add the range atoms of a predicate over its objects (triples t0 .. t1), with their intervals."""
    offset, atoms, group, op, low, high = ranges
    for i in range(offset[predicate_row], offset[predicate_row + 1]):
        if at >= out.size:
            at += 1
            continue
        ends[at, 0] = 0
        ends[at, 1] = 0
        for t in range(t0, t1):
            if low[group[i], obj[t]] >= 0:
                _range(op[i], low[group[i], obj[t]], high[group[i], obj[t]], ends, at)
        if ends[at, 0] < ends[at, 1]:
            out[at] = atoms[i]
            at += 1
    return at


@njit(cache=True, nogil=True)
def _several(t0: int, t1: int, obj: Any, test_offset: Any, n0: int, n1: int, node_term: Any, low: Any) -> bool:
    """Do tests hold of two of the objects of the triples t0 .. t1?"""
    found = 0
    for t in range(t0, t1):
        o = obj[t]
        tested = test_offset[o + 1] > test_offset[o]
        for g in range(low.shape[0]):
            tested = tested or low[g, o] >= 0
        if not tested and n0 < n1:
            i = _first_of(o, n0, n1, node_term)
            tested = i < n1 and node_term[i] == o
        found += tested
    return found > 1


@njit(cache=True, nogil=True)
def _wanted_keys(t0: int, t1: int, subject: int, predicate: Any, obj: Any, term: Any, test_offset: Any, test: Any,
                 n0: int, n1: int, node_term: Any, node_test: Any, any_key: Any, flags: Any,
                 wanted: Any) -> int:  # fmt: skip
    """The keys that the triples t0 .. t1 of a subject give, as far as there is room; returns how many there are."""
    wild_flags, subject_flags = flags[flags.size - 2], flags[flags.size - 1]
    at = 0
    if any_key[any_key.size - 2]:
        wanted[0] = _key(WILD, ANY, 0)
        at = 1
    if subject_flags:
        at = _want(SUBJECT, subject_flags, subject, term, test_offset, test, n0, n1, node_term, node_test, wanted, at)
    for t in range(t0, t1):
        known = term[predicate[t]]
        if known >= 0:
            if any_key[known] and (t == t0 or predicate[t] != predicate[t - 1]):
                if at < wanted.size:
                    wanted[at] = _key(known, ANY, 0)
                at += 1
            if flags[known]:
                at = _want(known, flags[known], obj[t], term, test_offset, test, n0, n1, node_term, node_test, wanted,
                           at)  # fmt: skip
        if wild_flags:
            at = _want(WILD, wild_flags, obj[t], term, test_offset, test, n0, n1, node_term, node_test, wanted, at)
    return at


@njit(cache=True, nogil=True)
def _facts(t0: int, t1: int, predicate: Any, obj: Any, test_offset: Any, n0: int, n1: int, node_term: Any, low: Any,
           wild: bool, most: Any) -> bool:  # fmt: skip
    """Do tests hold of two objects of one predicate? Fills `most`: the largest numbers of objects of one predicate."""
    multi, a = False, t0
    most[:] = 1
    while a < t1:
        b = a + 1
        while b < t1 and predicate[b] == predicate[a]:
            b += 1
        count = b - a
        if count > 1:
            for i in range(most.size):
                if count > most[i]:
                    count, most[i] = most[i], count
            multi = multi or _several(a, b, obj, test_offset, n0, n1, node_term, low)
        a = b
    if wild and not multi:
        multi = _several(t0, t1, obj, test_offset, n0, n1, node_term, low)
    return multi


@njit(cache=True, nogil=True)
def _spans(t0: int, t1: int, predicate: Any, obj: Any, term: Any, range_row: Any, ranges: Any, spans: Any,
           m: int) -> int:  # fmt: skip
    """Add the range atoms of the triples t0 .. t1 of a subject."""
    wild = range_row[range_row.size - 2]
    if wild >= 0:
        m = _ranges(wild, t0, t1, obj, ranges, spans[0], spans[1], m)
    a = t0
    while a < t1:
        b = a + 1
        while b < t1 and predicate[b] == predicate[a]:
            b += 1
        known = term[predicate[a]]
        if known >= 0 and range_row[known] >= 0:
            m = _ranges(range_row[known], a, b, obj, ranges, spans[0], spans[1], m)
        a = b
    return m


@njit(cache=True, nogil=True)
def batch_atoms(run_first: Any, run_publication: Any, r0: int, r1: int, batch: Any, features: Any, table: Any,
                predicates: Any, ranges: Any, stamp: Any, mark: int, wanted: Any, atom_offset: Any, atoms: Any,
                span_offset: Any, spans: Any, most: Any, multi: Any) -> int:  # fmt: skip
    """The atoms of the runs r0 .. r1, as slices of `atoms`; of range atoms, with their intervals, as slices of `spans`.

    `stamp` holds no value above `mark`; `wanted` is room for the keys of one run. Returns r1, or the first run that
    found no room in `atoms` or `spans`, or ~r where `wanted` was too short for r; the caller makes room and goes on
    there.
    """
    subject, predicate, obj = batch
    term, test_offset, test, node_offset, node_term, node_test = features
    keys, slots = table
    any_key, flags, range_row = predicates
    has_ranges = ranges[0].size > 1
    wild = flags[flags.size - 2] & HAS_TEST != 0 or range_row[range_row.size - 2] >= 0
    for r in range(r0, r1):
        t0, t1, p = run_first[r], run_first[r + 1], run_publication[r]
        n0, n1 = node_offset[p], node_offset[p + 1]
        count = _wanted_keys(t0, t1, subject[t0], predicate, obj, term, test_offset, test, n0, n1, node_term, node_test,
                             any_key, flags, wanted)  # fmt: skip
        if count > wanted.size:
            return ~r
        n = _look_up(wanted, count, keys, slots, stamp, mark + r + 1, atoms, atom_offset[r])
        m = span_offset[r]
        if has_ranges:
            m = _spans(t0, t1, predicate, obj, term, range_row, ranges, spans, m)
        if n > atoms.size or m > spans[0].size:
            return r
        atom_offset[r + 1] = n
        span_offset[r + 1] = m
        multi[r] = _facts(t0, t1, predicate, obj, test_offset, n0, n1, node_term, ranges[4], wild, most[r])
    return r1
