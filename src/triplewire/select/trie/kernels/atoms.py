"""Which atoms does each subject of a publication satisfy? Look-ups of (predicate, object) keys; no joins.

    for each run of triples with one subject:
        atoms of the subject: as this term, by the tests that hold of it
        for each triple: atoms of its object under its predicate, and under any: as this term, by the tests that hold of
            it; the atom "has such a triple"
        spans: for each range atom of its predicates, the interval of ranks that the values of the objects satisfy
    Where atoms of a predicate are dense, an atom is one load from `dense`; else its key is looked up in a hash table,
    all keys of a run together

The keys are those of `triplewire.select.trie.kernels.stars`. What the tables are: `triplewire.select.trie.build`. What
is done with the atoms: `triplewire.select.trie.kernels.set_trie`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.shared.columns import TermFeatures, Triples, end_rank, first_rank
from triplewire.kernels.shared.compiled import called_helper, helper, kernel, prefetch
from triplewire.kernels.shared.hashing import enter, find_slot
from triplewire.kernels.shared.search import lower
from triplewire.select.trie.kernels import columns
from triplewire.select.trie.kernels.columns import AtomTable, RangeAtoms, Runs, Sink
from triplewire.select.trie.kernels.stars import ANY, RANGE, SUBJECT, TERM, TEST, WILD, atom_key
from triplewire.select.trie.kernels.subsets import GROUP, LAST_GROUP, LAST_OP, OP

HASHED, NOTHING = -1, -2  # in `AtomTable.asked`, in place of where the atoms lie in `dense`

_int: Any = np.int64
_wide: Any = np.uint64  # also of an index: that it is not negative
_ONE, _LOW, _WORD = _wide(1), _wide(63), _wide(6)
SPARE = 8  # room that one node needs beside that for its tests; as much is always left at the end of `atoms`


@helper
def _slot(key: int, mask: int) -> Any:
    """Where the search for a key begins: its bits mixed, so that neighbours spread. Saved engines keep such tables."""
    h = key ^ (key >> 29)
    h = (h * 0x9E3779B1) & 0x7FFFFFFFFFFFFFF  # 59 bits, so that nothing is negative
    return (h >> 15 ^ h) & mask


@kernel
def build_table(keys: Any, rows: Any, slots: Any) -> None:
    """Enter some rows of the keys, which are distinct, into `slots`, whose size is a power of two; -1 is free."""
    slots[:] = -1
    for row in rows:
        enter(slots, _slot(keys[row], slots.size - 1), row)


@kernel
def number_keys(keys: Any, slots: Any, distinct: Any, number: Any) -> int:
    """Number the distinct keys in the order in which they are met: `number` of each key, and the `distinct` ones, for
    which there is room up to half of `slots`, a power of two filled with -1. Returns how many there are, or -1 where
    there was no room for all."""
    mask = slots.size - 1
    count = 0
    for i in range(keys.size):
        slot = find_slot(slots, distinct, _slot(keys[i], mask), keys[i])
        if slots[slot] < 0:
            if 2 * count >= slots.size:
                return -1
            slots[slot] = count
            distinct[count] = keys[i]
            count += 1
        number[i] = slots[slot]
    return count


@helper
def _add(atom: int, seen: Any, atoms: Any, end: int) -> Any:
    """Append an atom unless it is seen already, as the one that stands for none always is; returns the new end. The bit
    of an atom is the one of its lowest six bits, in the word of the others."""
    word, bit = _wide(atom) >> _WORD, _ONE << (_wide(atom) & _LOW)
    bits = seen[word]
    seen[word] = bits | bit
    atoms[_wide(end)] = atom
    return end + _int(bits & bit == 0)


@helper
def _add_hashed(count: int, table: AtomTable, sink: Sink, end: int) -> int:
    """Append the atoms of the first `count` wanted keys. First all slots are fetched, then all keys there: so look-ups
    do not wait for each other's memory."""
    keys, slots, wanted = table.keys, table.slots, sink.wanted
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
            row = _int(slots[_wide(find_slot(slots, keys, _slot(key, mask), key))])
        end = _add(row if row >= 0 else none, sink.seen, sink.atoms, end)
    return end


@helper
def _add_term(place: int, predicate: int, number: int, table: AtomTable, sink: Sink, count: int, end: int) -> Any:
    """What a term, if it is a constant (its number, else -1), is under a predicate; `place`: as in `AtomTable.asked`.
    It has no branches, which would be guessed wrong often. Returns how many keys are wanted, and the end of the
    atoms."""
    is_dense, is_hashed = (place >= 0) & (number >= 0), (place == HASHED) & (number >= 0)
    atom = table.dense[_wide((place + number) * is_dense)]
    sink.wanted[_wide(count), 0] = atom_key(predicate, TERM, number)
    return count + is_hashed, _add(atom if is_dense else table.keys.size, sink.seen, sink.atoms, end)


@helper
def _add_tests(place: int, predicate: int, test: Any, begin: int, size: int, table: AtomTable, sink: Sink, count: int,
               end: int) -> Any:  # fmt: skip
    """What the tests in the slice from `begin` on are under a predicate: as `_add_term`."""
    dense, hashed = size if place >= 0 else 0, size if place == HASHED else 0
    for i in range(dense):
        end = _add(table.dense[_wide(place + test[_wide(begin + i)])], sink.seen, sink.atoms, end)
    first_key = atom_key(predicate, TEST, 0)
    for i in range(hashed):
        sink.wanted[_wide(count + i), 0] = first_key | _int(test[_wide(begin + i)])
    return count + hashed, end


@called_helper
def _add_ranges(predicate_row: int, t0: int, t1: int, objects: Any, ranges: RangeAtoms, features: TermFeatures,
                out: Any, ends: Any, end: int) -> int:  # fmt: skip
    """Add the range atoms of a predicate over its objects (triples t0 .. t1), with the ranks that are satisfied: those
    of a value are ends[i, 0] <= rank < ends[i, 1]; of several values, all between the lowest and the highest. For
    windows: the triples, where one of the objects has a value. Returns the new end; beyond the room it only counts."""
    low, high = features.low, features.high
    for i in range(ranges.offset[predicate_row], ranges.offset[predicate_row + 1]):
        if end >= out.size:
            end += 1
            continue
        test = ranges.atom[i] - ranges.first
        group, op, last = ranges.test[test, GROUP], ranges.test[test, OP], ranges.test[test, LAST_GROUP]
        is_window = ranges.test[test, LAST_OP] > 0
        lowest, highest = _int(0x7FFFFFFF), _int(0)
        for t in range(t0, t1):
            below, upto = low[group, objects[t]], high[group, objects[t]]
            first, behind = _int(first_rank(op, below, upto)), _int(end_rank(op, below, upto))
            if is_window:
                first, behind = _int(t0), _int(t1 if low[last, objects[t]] >= 0 else t0)
            if below >= 0 and first < behind:
                lowest, highest = min(lowest, first), max(highest, behind)
        ends[end, 0], ends[end, 1] = lowest, highest
        if lowest < highest:
            out[end] = ranges.atom[i]
            end += 1
    return end


@called_helper
def _add_spans(t0: int, t1: int, batch: Triples, asked: Any, ranges: RangeAtoms, features: TermFeatures, out: Any,
               ends: Any, end: int) -> int:  # fmt: skip
    """Add the range atoms of the triples t0 .. t1 of a subject."""
    wild, predicate = asked[asked.shape[0] - 2, RANGE], batch.predicate
    if wild >= 0:
        end = _add_ranges(wild, t0, t1, batch.object, ranges, features, out, ends, end)
    a = t0
    while a < t1:
        b = a + 1
        while b < t1 and predicate[b] == predicate[a]:
            b += 1
        known = features.term[predicate[a]]
        if known >= 0 and asked[known, RANGE] >= 0:
            end = _add_ranges(asked[known, RANGE], a, b, batch.object, ranges, features, out, ends, end)
        a = b
    return end


@called_helper
def _several(t0: int, t1: int, objects: Any, features: TermFeatures, n0: int, n1: int) -> bool:
    """Do tests hold of two of the objects of the triples t0 .. t1? n0 .. n1: the publication's slice of nodes."""
    tested = 0
    for t in range(t0, t1):
        o = objects[t]
        is_tested = features.offset[o + 1] > features.offset[o]
        for group in range(features.low.shape[0]):
            is_tested = is_tested or features.low[group, o] >= 0
        if not is_tested and n0 < n1:
            i = lower(features.node_term, n0, n1, o)
            is_tested = i < n1 and features.node_term[i] == o
        tested += is_tested
    return tested > 1


@helper
def _add_node(node: int, predicate: int, places: Any, features: TermFeatures, table: AtomTable, sink: Sink, count: int,
              end: int, fits: bool) -> Any:  # fmt: skip
    """What a node is under a predicate and under any, or as a subject. `places`, as in `AtomTable.asked`: of terms and
    of tests with this predicate, and of both with any. Returns how many keys are wanted, the end of the atoms, and
    whether there was room for all: if not, they are nonsense."""
    term_place, test_place, wild_term, wild_test = places
    number, begin = features.term[_wide(node)], features.offset[_wide(node)]
    size = features.offset[_wide(node + 1)] - begin
    fits = fits & (end + 2 * size + SPARE < sink.atoms.size) & (count + 2 * size + SPARE < sink.wanted.shape[0])
    size, count, end = size * fits, count * fits, end if fits else sink.atoms.size - SPARE
    count, end = _add_term(term_place, predicate, number, table, sink, count, end)
    count, end = _add_term(wild_term, WILD, number, table, sink, count, end)
    count, end = _add_tests(test_place, predicate, features.test, begin, size, table, sink, count, end)
    count, end = _add_tests(wild_test, WILD, features.test, begin, size, table, sink, count, end)
    return count, end, fits


@called_helper
def _add_stated(t0: int, t1: int, p: int, batch: Triples, features: TermFeatures, table: AtomTable, sink: Sink,
                count: int, end: int, fits: bool) -> Any:  # fmt: skip
    """What the nodes of the triples t0 .. t1 are by the tests that hold of them in the publication p only."""
    asked, node_term, node_test = table.asked, features.node_term, features.node_test
    n0, n1 = features.node_offset[p], features.node_offset[p + 1]
    for t in range(t0 - 1, t1):  # t0 - 1 stands for the subject
        node, known, row, wild = _int(batch.subject[t0]), SUBJECT, asked.shape[0] - 1, NOTHING
        if t >= t0:
            node, known = _int(batch.object[t]), features.term[batch.predicate[t]]
            row, wild = known, asked[asked.shape[0] - 2, TEST]
        place = asked[row, TEST] if row >= 0 else NOTHING
        begin = lower(node_term, n0, n1, node)
        size = lower(node_term, n0, n1, node + 1) - begin
        fits = fits and end + 2 * size + SPARE < sink.atoms.size and count + 2 * size + SPARE < sink.wanted.shape[0]
        if fits:
            count, end = _add_tests(place, known, node_test, begin, size, table, sink, count, end)
            count, end = _add_tests(wild, WILD, node_test, begin, size, table, sink, count, end)
    return count, end, fits


@helper
def _enter(most: Any, r: int, count: int, is_first: bool) -> None:
    """Enter a number of objects of one predicate among the largest of a run, which descend."""
    for i in range(most.shape[1]):
        entered = 1 if is_first else most[r, i]
        most[r, i] = max(entered, count)
        count = min(entered, count)


@helper
def _forget(first: int, last: int, none: int, sink: Sink) -> None:
    """Forget which atoms first .. last are seen. Only that there is none is seen from here on."""
    for i in range(last - first):
        sink.seen[_wide(sink.atoms[_wide(first + i)]) >> _WORD] = 0
    sink.seen[_wide(none) >> _WORD] = _ONE << (_wide(none) & _LOW)


@called_helper
def find_atoms(p0: int, publication_run: Any, batch: Triples, features: TermFeatures, table: AtomTable,
               ranges: RangeAtoms, sink: Sink, runs: Runs) -> Any:  # fmt: skip
    """See `batch_atoms`."""
    offset, subject, predicate, objects = batch
    term, test_offset, node_offset, asked = features.term, features.offset, features.node_offset, table.asked
    has_ranges, seen, atoms = ranges.offset.size > 1, sink.seen, sink.atoms
    none, of_all, of_subject = table.keys.size, asked.shape[0] - 2, asked.shape[0] - 1  # the last are rows of `asked`
    wild_term, wild_test, wild_range = asked[of_all, TERM], asked[of_all, TEST], asked[of_all, RANGE]
    always, subject_term, subject_test = asked[of_all, ANY], asked[of_subject, TERM], asked[of_subject, TEST]
    _forget(0, 0, none, sink)
    r = _int(publication_run[p0])
    for p in range(p0, offset.size - 1):
        publication_run[p] = r
        a, last, n0, n1 = offset[p], offset[p + 1], node_offset[p], node_offset[p + 1]
        slow = features.low.shape[0] > 0 or n0 < n1
        while a < last:
            t0, s, begin, spans = a, subject[_wide(a)], runs.atom_offset[r], runs.span_offset[r]
            total, several = 0, False
            places = subject_term, subject_test, NOTHING, NOTHING
            count, end, fits = _add_node(s, SUBJECT, places, features, table, sink, 0, _add(always, seen, atoms, begin),
                                         True)  # fmt: skip
            while a < last and subject[_wide(a)] == s:
                q, first, tested, term_place, test_place = predicate[_wide(a)], a, 0, _int(NOTHING), _int(NOTHING)
                known = term[_wide(q)]
                if known >= 0:
                    term_place, test_place = _int(asked[_wide(known), TERM]), _int(asked[_wide(known), TEST])
                    # without room, the last place is written again and again; below, `fits` becomes false
                    end = _add(asked[_wide(known), ANY], seen, atoms, min(end, atoms.size - 1))
                while a < last and predicate[_wide(a)] == q and subject[_wide(a)] == s:
                    o = objects[_wide(a)]
                    has_tests = test_offset[_wide(o)] < test_offset[_wide(o + 1)]
                    tested += has_tests
                    if term[_wide(o)] >= 0 or has_tests:  # else it is nothing
                        count, end, fits = _add_node(o, known, (term_place, test_place, wild_term, wild_test), features,
                                                     table, sink, count, end, fits)  # fmt: skip
                    a += 1
                total += tested
                several = several or tested > 1 or (slow and _several(first, a, objects, features, n0, n1))
                _enter(runs.most, r, a - first, first == t0)
            if (wild_test != NOTHING or wild_range >= 0) and not several:
                several = _several(t0, a, objects, features, n0, n1) if slow else total > 1
            if n0 < n1:
                count, end, fits = _add_stated(t0, a, p, batch, features, table, sink, count, end, fits)
            fits = fits & (end + count + SPARE < atoms.size)
            end = _add_hashed(count * fits, table, sink, end)
            if has_ranges:
                spans = _add_spans(t0, a, batch, asked, ranges, features, runs.span_atom, runs.span_ends, spans)
            if not fits or spans > runs.span_atom.size:
                seen[:] = 0
                return _int(p)
            _forget(begin, end, none, sink)
            runs.first[r], runs.multi[r], runs.atom_offset[r + 1], runs.span_offset[r + 1] = t0, several, end, spans
            r += 1
    publication_run[offset.size - 1], runs.first[r] = r, offset[offset.size - 1]
    return _int(offset.size - 1)


@kernel
def batch_atoms(lent: Any, of_runs: Any, publication_run: Any, p0: int, batch: Triples, features: TermFeatures) -> int:
    """The atoms of the runs of triples with one subject, as slices of `Runs.atoms`; of range atoms, with their
    intervals, as slices of the spans; and publication -> its slice of the runs. From the publication p0 on; what is
    told of the ones before it stays.

    `lent`, `of_runs`: the addresses of `INDEX` and `RUNS`, whose `Sink` has no bit set, and has the atoms of the runs.
    Returns the number of publications, or the first that found no room for its keys, its atoms or its spans: the caller
    makes it and goes on.
    """
    table, ranges = columns.take_table(lent, columns.TABLE), columns.take_ranges(lent, columns.RANGES)
    sink, runs = columns.take_sink(lent, columns.SINK), columns.take_runs(of_runs, 0)
    if p0 == 0:
        publication_run[0], runs.atom_offset[0], runs.span_offset[0] = 0, 0, 0
    return int(find_atoms(p0, publication_run, batch, features, table, ranges, sink, runs))
