"""Arrays of the index "trie" that belong together, as its kernels take them, and where their addresses lie in tables.

INDEX: the atom table, range atoms, two tries, bounds, and the work areas of one walk at a time
RUNS:  the atoms of each run of triples with one subject, of the batch at hand
take_x(table, X) in a kernel: the named tuple of that place (`triplewire.kernels.shared.columns`)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.shared.columns import NUMBER, Field, borrowed, places


class AtomTable(NamedTuple):
    """Where atoms lie (`triplewire.select.trie.build`)."""

    keys: Any  # atom -> its key (`triplewire.select.trie.kernels.stars`)
    slots: Any  # hash table over the keys
    asked: Any  # shape (terms + 2, 4)
    dense: Any


class RangeAtoms(NamedTuple):
    """The range atoms by predicate (`triplewire.select.trie.build`)."""

    offset: Any
    atom: Any
    test: Any  # shape (range atoms, 4): what each asks (`triplewire.select.trie.kernels.subsets`)
    first: int  # the first range atom


class Sink(NamedTuple):
    """Where the atoms of a subject are collected."""

    seen: Any  # bits by atom, and one more, which stands for no atom
    wanted: Any  # shape (keys, 2): keys that are looked up in the hash table, and scratch
    atoms: Any


class Runs(NamedTuple):
    """Room for the atoms of each run of triples with one subject. One entry more than runs have `first`, `atom_offset`
    and `span_offset`."""

    first: Any  # run -> its first triple
    atom_offset: Any  # run -> its slice of `atoms`
    atoms: Any
    span_offset: Any  # run -> its slice of `span_atom` and `span_ends`
    span_atom: Any
    span_ends: Any  # shape (range atoms, 2): the ranks that are satisfied; of windows, the triples with the values
    most: Any  # shape (runs, 4): the largest numbers of objects of one predicate
    multi: Any  # run -> do tests hold of two objects of one predicate?


class RunAtoms(NamedTuple):
    """`Runs`, with the values of a batch that windows are asked of."""

    lists: Runs
    object: Any  # triple -> its object, as in the batch
    below: Any  # shape (range groups, terms): the places of values (`triplewire.clauses.view`)
    upto: Any


class TrieArrays(NamedTuple):
    """A set-trie (`triplewire.select.trie.build.SetTrie`)."""

    nodes: Any  # flat (`triplewire.select.trie.kernels.subsets`)
    root: Any
    before: int  # items of other tries, whose places come first
    need: Any
    subscription: Any
    tail: Any  # labels that are all to be there (`triplewire.select.trie.kernels.subsets`)
    star: Any  # row >> BLOCK -> the stars before those rows << BLOCK_ROWS, and the bits of those that are stars
    first_range: int
    range_test: Any  # shape (range atoms, 4): what each asks (`triplewire.select.trie.kernels.subsets`)
    window_low: Any  # window -> the rank of its lower bound
    window_high: Any


class Bounds(NamedTuple):
    """The bounds of clauses (`triplewire.select.trie.kernels.stars`), and what they say of the publication at hand. A
    verdict or a number of objects counts where it is marked with the publication's mark."""

    offset: Any
    bounds: Any
    verdict: Any  # bound -> mark << 2 | verdict
    most: Any  # predicate -> the most objects that a subject has
    stamp: Any  # predicate -> mark; the last one is of the publication itself


class WalkSpace(NamedTuple):
    """What one walk at a time works with (`triplewire.select.trie.index.Workspace`). All bits are clear in between."""

    atom_bits: Any  # of the labels that are present
    star_bits: Any
    span_of: Any  # range atom -> its row in the spans
    queue: Any  # second words of nodes whose children are to be looked at
    hits: Any  # nodes reached
    searched: Any  # of these, those whose children are found by a search
    tails: Any  # tails whose first label is present
    rest: Any  # nodes whose items are not handed out at a glance
    reached_bits: Any  # of the nodes that earlier subjects of the publication have reached
    reached: Any  # and these nodes
    subscription_bits: Any  # to drop repetitions with
    clause_bits: Any


class WalkRoom(NamedTuple):
    """What a walk writes, beside what it accepts."""

    check: Any  # places of clauses to check
    star_list: Any  # the stars of the publication at hand
    visited: Any  # nodes; and the two ends that the last publication had, or would have had
    sure: Any  # shape (2, 256): is a run multi?, code of an item -> is such an item a match at once?


class WalkOutput(NamedTuple):
    """Where a walk puts what it finds."""

    subscription: Any  # accepted; those of a publication are the slice `offset`
    check: Any  # places of clauses to check; those of a publication are the slice `check_offset`
    star_list: Any
    offset: Any
    check_offset: Any
    visited: Any


class Limits(NamedTuple):
    """What bounds the solutions in the publication at hand."""

    mark: int
    subjects: int
    degree: int  # the most triples of a subject
    cap: int  # `max_bindings`
    safe: int  # clauses with codes up to this one have at most `cap` solutions


_ids, _longs, _bits, _bytes = Field(np.int32), Field(np.int64), Field(np.uint64), Field(np.uint8)
_two, _four = Field(np.int32, (2,)), Field(np.int32, (4,))
_TRIE = (_longs, _ids, NUMBER, Field(np.uint32), _ids, _ids, _longs, NUMBER, _four, _ids, _ids)

INDEX = (
    (AtomTable, (_longs, _ids, _four, _ids)),
    (RangeAtoms, (_ids, _ids, _four, NUMBER)),
    (TrieArrays, _TRIE),
    (TrieArrays, _TRIE),
    (Bounds, (_ids, _ids, _longs, _ids, _ids)),
    (WalkSpace, (_bits, _bits, _ids, _longs, _ids, _ids, _ids, _ids, _bytes, _ids, _bytes, _bytes)),
    (Sink, (_bits, Field(np.int64, (2,)), _ids)),
    (WalkRoom, (_ids, _ids, _longs, Field(np.uint8, (256,)))),
)
"""What is in the table of addresses of an index and its work areas, in its order."""

RUNS = ((Runs, (_longs, _longs, _ids, _longs, _ids, _two, _four, Field(np.bool_))),)
"""What is in that of the runs of a batch."""

TABLE, RANGES, FIRST, SECOND, BOUNDS, SPACE, SINK, ROOM = places(INDEX)
take_table, take_ranges, take_trie, _, take_bounds, take_space, take_sink, take_room = (
    borrowed(kind, fields) for kind, fields in INDEX
)
take_runs = borrowed(*RUNS[0])
