"""Which atoms does each subject of a publication satisfy? Look-ups of (predicate, object) keys; no joins.

The keys are those of `triplewire.kernels.stars`. What the tables are: `triplewire.select.asked`. What is done with the
atoms: `triplewire.kernels.set_trie`.

Functions that loops call are inlined by the compiler (`forceinline`): a call would count references to arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from triplewire.kernels.prefetch import prefetch

TERM, TEST, ANY, RANGE = 0, 1, 2, 3  # kinds of atoms, and columns of `asked`
SUBJECT, WILD = -2, -1
HASHED, NOTHING = -1, -2  # in `asked`, in place of where the atoms lie in `dense`

_int: Any = np.int64
_wide: Any = np.uint64  # also of an index: that it is not negative
_ONE, _LOW, _WORD = _wide(1), _wide(63), _wide(6)
SPARE = 8  # room that one node needs beside that for its tests; as much is always left at the end of `atoms`


@njit(forceinline=True)
def _key(predicate: int, kind: int, number: int) -> Any:
    return (_int(predicate + 2) << 34) | (_int(kind) << 32) | _int(number)


@njit(forceinline=True)
def _slot(key: int, mask: int) -> Any:
    """Where the search for a key begins: its bits mixed, so that neighbours spread."""
    h = key ^ (key >> 29)
    h = (h * 0x9E3779B1) & 0x7FFFFFFFFFFFFFF
    return (h >> 15 ^ h) & mask


@njit(cache=True, nogil=True)
def build_table(keys: Any, rows: Any, slots: Any) -> None:
    """Open addressing: some rows of the keys, which are distinct, in `slots`, whose size is a power of two; -1 is
    empty."""
    mask = slots.size - 1
    slots[:] = -1
    for row in rows:
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


# --- look-ups --------------------------------------------------------------------------------------------------------


@njit(forceinline=True)
def _add(atom: int, seen: Any, atoms: Any, at: int) -> Any:
    """Append an atom unless it is seen already, as the one that stands for none always is."""
    place, bit = _wide(atom) >> _WORD, _ONE << (_wide(atom) & _LOW)
    word = seen[place]
    seen[place] = word | bit
    atoms[_wide(at)] = atom
    return at + _int(word & bit == 0)


@njit(forceinline=True)
def _add_hashed(count: int, wanted: Any, keys: Any, slots: Any, seen: Any, atoms: Any, at: int) -> int:
    """Append the atoms of the first `count` keys in `wanted`. First all slots are asked for, then all keys there: so
    look-ups do not wait for each other's memory."""
    mask, none = slots.size - 1, keys.size
    for i in range(count):
        slot = _slot(wanted[i, 0], mask)
        wanted[i, 1] = slot
        prefetch(slots, slot)
    for i in range(count):
        row = _int(slots[_wide(wanted[i, 1])])
        wanted[i, 1] = row
        prefetch(keys, row)
    for i in range(count):
        key, row = wanted[i, 0], wanted[i, 1]
        if row >= 0 and keys[_wide(row)] != key:
            slot = _slot(key, mask)
            while row >= 0 and keys[_wide(row)] != key:
                slot = (slot + 1) & mask
                row = _int(slots[_wide(slot)])
        at = _add(row if row >= 0 else none, seen, atoms, at)
    return at


@njit(forceinline=True)
def _term(place: int, predicate: int, number: int, none: int, dense: Any, wanted: Any, count: int, seen: Any,
          atoms: Any, at: int) -> Any:  # fmt: skip
    """What a term, if it is known, is under a predicate; `place`: as in `asked`. It has no branches, which would be
    guessed wrong often."""
    has, asks = (place >= 0) & (number >= 0), (place == HASHED) & (number >= 0)
    atom = dense[_wide((place + number) * has)]
    wanted[_wide(count), 0] = _key(predicate, TERM, number)
    return count + asks, _add(atom if has else none, seen, atoms, at)


@njit(forceinline=True)
def _tests(place: int, predicate: int, begin: int, some: int, test: Any, dense: Any, wanted: Any, count: int, seen: Any,
           atoms: Any, at: int) -> Any:  # fmt: skip
    """What some tests, from `begin` on, are under a predicate; `place`: as in `asked`."""
    held, asked = some if place >= 0 else 0, some if place == HASHED else 0
    for i in range(held):
        at = _add(dense[_wide(place + test[_wide(begin + i)])], seen, atoms, at)
    base = _key(predicate, TEST, 0)
    for i in range(asked):
        wanted[_wide(count + i), 0] = base | _int(test[_wide(begin + i)])
    return count + asked, at


@njit(forceinline=True)
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


# --- ranges ----------------------------------------------------------------------------------------------------------


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
def _spans(t0: int, t1: int, predicate: Any, obj: Any, term: Any, asked: Any, ranges: Any, out: Any, ends: Any,
           m: int) -> int:  # fmt: skip
    """Add the range atoms of the triples t0 .. t1 of a subject."""
    wild = asked[asked.shape[0] - 2, RANGE]
    if wild >= 0:
        m = _ranges(wild, t0, t1, obj, ranges, out, ends, m)
    a = t0
    while a < t1:
        b = a + 1
        while b < t1 and predicate[b] == predicate[a]:
            b += 1
        known = term[predicate[a]]
        if known >= 0 and asked[known, RANGE] >= 0:
            m = _ranges(asked[known, RANGE], a, b, obj, ranges, out, ends, m)
        a = b
    return m


# --- subjects --------------------------------------------------------------------------------------------------------


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


@njit(forceinline=True)
def _node(
    o: int, predicate: int, term_place: int, test_place: int, wild_term: int, wild_test: int, term: Any,
    test_offset: Any, test: Any, none: int, dense: Any, wanted: Any, seen: Any, atoms: Any, count: int, at: int,
    fits: bool,
) -> Any:  # fmt: skip
    """What a node is under a predicate and under any, or as a subject; the places are those of `asked`. Returns how
    many keys are wanted, the end of the atoms, and whether there was room for all: if not, they are nonsense."""
    number, begin = term[_wide(o)], test_offset[_wide(o)]
    some = test_offset[_wide(o + 1)] - begin
    fits = fits & (at + 2 * some + SPARE < atoms.size) & (count + 2 * some + SPARE < wanted.shape[0])
    some, count, at = some * fits, count * fits, at if fits else atoms.size - SPARE
    count, at = _term(term_place, predicate, number, none, dense, wanted, count, seen, atoms, at)
    count, at = _term(wild_term, WILD, number, none, dense, wanted, count, seen, atoms, at)
    count, at = _tests(test_place, predicate, begin, some, test, dense, wanted, count, seen, atoms, at)
    count, at = _tests(wild_test, WILD, begin, some, test, dense, wanted, count, seen, atoms, at)
    return count, at, fits


@njit(cache=True, nogil=True)
def _in_publication(
    t0: int, t1: int, subject: int, predicate: Any, obj: Any, term: Any, asked: Any, n0: int, n1: int, node_term: Any,
    node_test: Any, dense: Any, wanted: Any, seen: Any, atoms: Any, count: int, at: int, fits: bool,
) -> Any:  # fmt: skip
    """What the nodes of the triples t0 .. t1 are by the tests that hold of them in the publication n0 .. n1 only."""
    for t in range(t0 - 1, t1):
        o, known, row, wild = subject, SUBJECT, asked.shape[0] - 1, NOTHING
        if t >= t0:
            o, known, wild = obj[t], term[predicate[t]], asked[asked.shape[0] - 2, TEST]
            row = known
        place = asked[row, TEST] if row >= 0 else NOTHING
        begin = _first_of(o, n0, n1, node_term)
        some = _first_of(o + 1, n0, n1, node_term) - begin
        fits = fits and at + 2 * some + SPARE < atoms.size and count + 2 * some + SPARE < wanted.shape[0]
        if fits:
            count, at = _tests(place, known, begin, some, node_test, dense, wanted, count, seen, atoms, at)
            count, at = _tests(wild, WILD, begin, some, node_test, dense, wanted, count, seen, atoms, at)
    return count, at, fits


@njit(forceinline=True)
def _enter(most: Any, r: int, count: int, is_first: bool) -> None:
    """Enter a number of objects of one predicate among the largest of a subject."""
    for i in range(most.shape[1]):
        kept = 1 if is_first else most[r, i]
        most[r, i] = max(kept, count)
        count = min(kept, count)


@njit(forceinline=True)
def _forget(first: int, last: int, none: int, seen: Any, atoms: Any) -> None:
    """Only that there is none is seen from here on."""
    for i in range(last - first):
        seen[_wide(atoms[_wide(first + i)]) >> _WORD] = 0
    seen[_wide(none) >> _WORD] = _ONE << (_wide(none) & _LOW)


@njit(forceinline=True)
def _of_all(asked: Any) -> Any:
    """What is asked of all triples, and of subjects."""
    wild, subject = asked.shape[0] - 2, asked.shape[0] - 1
    return (
        asked[wild, TERM], asked[wild, TEST], asked[wild, ANY], asked[wild, RANGE], asked[subject, TERM],
        asked[subject, TEST],
    )  # fmt: skip


@njit(cache=True, nogil=True)
def batch_atoms(p0: int, batch: Any, features: Any, table: Any, ranges: Any, work: Any, out: Any) -> Any:
    """The atoms of the runs of triples with one subject, as slices of `atoms`; of range atoms, with their intervals, as
    slices of the spans. From the publication p0 on; what is told of the ones before it stays.

    `work`: bits by atom, and one more, none of them set; room for the keys of one run. Returns the number of
    publications, or the first that found no room in `work`, `atoms` or the spans: the caller makes it and goes on.
    """
    offset, subject, predicate, obj = batch
    term, test_offset, test, node_offset, node_term, node_test = features
    keys, slots, asked, dense = table
    low, has_ranges, (seen, wanted) = ranges[4], ranges[0].size > 1, work
    run_first, publication_run, atom_offset, atoms, span_offset, span_atom, span_ends, most, multi = out
    none, (wild_term, wild_test, always, wild_range, subject_term, subject_test) = keys.size, _of_all(asked)
    _forget(0, 0, none, seen, atoms)
    r = publication_run[p0]
    for p in range(p0, offset.size - 1):
        publication_run[p] = r
        a, last, n0, n1 = offset[p], offset[p + 1], node_offset[p], node_offset[p + 1]
        slow = low.shape[0] > 0 or n0 < n1
        while a < last:
            t0, s, before, m, total, several = a, subject[_wide(a)], atom_offset[r], span_offset[r], 0, False
            count, at, fits = _node(
                s, SUBJECT, subject_term, subject_test, NOTHING, NOTHING, term, test_offset, test, none, dense, wanted,
                seen, atoms, 0, _add(always, seen, atoms, before), True)  # fmt: skip
            while a < last and subject[_wide(a)] == s:
                q, first, tested, term_place, test_place = predicate[_wide(a)], a, 0, NOTHING, NOTHING
                known = term[_wide(q)]
                if known >= 0:
                    term_place, test_place = asked[_wide(known), TERM], asked[_wide(known), TEST]
                    at = _add(asked[_wide(known), ANY], seen, atoms, at)
                while a < last and predicate[_wide(a)] == q and subject[_wide(a)] == s:
                    o = obj[_wide(a)]
                    tested += test_offset[_wide(o)] < test_offset[_wide(o + 1)]
                    if term[_wide(o)] >= 0 or test_offset[_wide(o)] < test_offset[_wide(o + 1)]:  # else it is nothing
                        count, at, fits = _node(o, known, term_place, test_place, wild_term, wild_test, term,
                            test_offset, test, none, dense, wanted, seen, atoms, count, at, fits)  # fmt: skip
                    a += 1
                total += tested
                several = (
                    several or tested > 1 or (slow and _several(first, a, obj, test_offset, n0, n1, node_term, low))
                )
                _enter(most, r, a - first, first == t0)
            if (wild_test != NOTHING or wild_range >= 0) and not several:
                several = _several(t0, a, obj, test_offset, n0, n1, node_term, low) if slow else total > 1
            if n0 < n1:
                count, at, fits = _in_publication(
                    t0, a, s, predicate, obj, term, asked, n0, n1, node_term, node_test, dense, wanted, seen, atoms,
                    count, at, fits)  # fmt: skip
            fits = fits & (at + count + SPARE < atoms.size)
            at = _add_hashed(count * fits, wanted, keys, slots, seen, atoms, at)
            if has_ranges:
                m = _spans(t0, a, predicate, obj, term, asked, ranges, span_atom, span_ends, m)
            if not fits or m > span_atom.size:
                seen[:] = 0
                return p
            _forget(before, at, none, seen, atoms)
            run_first[r], multi[r], atom_offset[r + 1], span_offset[r + 1] = t0, several, at, m
            r += 1
    publication_run[offset.size - 1], run_first[r] = r, offset[offset.size - 1]
    return offset.size - 1
