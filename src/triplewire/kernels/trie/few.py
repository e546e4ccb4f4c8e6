"""The subscriptions of a few publications, in one call: atoms and walk together, in work areas that stay. Where the
terms need no more than `triplewire.kernels.few_terms`, they are looked up in the same call.

What is done: `triplewire.kernels.trie.atoms` and `triplewire.kernels.trie.set_trie`. Who calls, and what it does where
there is not enough room: `triplewire.select.trie.walk`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.few_terms import AREAS, looked_up, take_areas
from triplewire.kernels.shared.columns import BatchColumns, TermFeatures, Triples, take_batch
from triplewire.kernels.shared.compiled import called_helper, kernel
from triplewire.kernels.shared.lending import NUMBER, Field, borrowed, places
from triplewire.kernels.trie.atoms import find_atoms
from triplewire.kernels.trie.columns import (
    AtomTable,
    Bounds,
    Predicates,
    RangeAtoms,
    RunAtoms,
    Sink,
    TrieArrays,
    WalkOutput,
    WalkSpace,
)
from triplewire.kernels.trie.set_trie import matched

NO_ROOM = -1
_int: Any = np.int64


class RunRoom(NamedTuple):
    """Room for the runs of a few publications (`RunAtoms`), and what else a walk writes."""

    first: Any
    publication_run: Any
    atom_offset: Any
    span_offset: Any
    span_atom: Any
    span_ends: Any
    most: Any
    multi: Any
    check: Any  # (`WalkOutput`)
    star_list: Any
    visited: Any
    sure: Any  # (`triplewire.kernels.trie.set_trie.match`)


_ids, _longs, _bits, _bytes = Field(np.int32), Field(np.int64), Field(np.uint64), Field(np.uint8)
_four = Field(np.int32, (4,))
_TRIE = (_longs, _ids, NUMBER, Field(np.uint32), _ids, _ids, _longs, NUMBER, _four, _ids, _ids)

LENT = (
    (AtomTable, (_longs, _ids, _four, _ids)),
    (RangeAtoms, (_ids, _ids, _four, NUMBER)),
    (TrieArrays, _TRIE),
    (TrieArrays, _TRIE),
    (Bounds, (_ids, _ids, _longs, _ids, _ids)),
    (WalkSpace, (_bits, _bits, _ids, _longs, _ids, _ids, _ids, _ids, _bytes, _ids, _bytes, _bytes)),
    (Sink, (_bits, Field(np.int64, (2,)), _ids)),
    (RunRoom, (_longs, _ids, _longs, _longs, _ids, Field(np.int32, (2,)), _four, Field(np.bool_), _ids, _ids, _longs,
               Field(np.uint8, (256,)))),
)  # fmt: skip
"""What is in the table of addresses, in its order."""

_TABLE, _RANGES, _FIRST, _SECOND, _BOUNDS, _SPACE, _SINK, _ROOM = places(LENT)
_take_table, _take_ranges, _take_trie, _, _take_bounds, _take_space, _take_sink, _take_room = (
    borrowed(kind, fields) for kind, fields in LENT
)


@called_helper
def _select(lent: Any, columns: BatchColumns, features: TermFeatures, mark: int, cap: int, may_repeat: bool,
            subscription: Any, ends: Any) -> Any:  # fmt: skip
    """See `select_few`."""
    batch = Triples(columns.offset, columns.subject, columns.predicate, columns.object)
    publications, sink, room = batch.offset.size - 1, _take_sink(lent, _SINK), _take_room(lent, _ROOM)
    runs = RunAtoms(
        room.first, room.publication_run, room.atom_offset, sink.atoms, room.span_offset, room.span_atom,
        room.span_ends, room.most, room.multi, batch.object, features.low, features.high,
    )  # fmt: skip
    room.publication_run[0] = 0
    room.atom_offset[0] = 0
    room.span_offset[0] = 0
    room.visited[0] = 0
    table, ranges = _take_table(lent, _TABLE), _take_ranges(lent, _RANGES)
    if find_atoms(0, batch, features, table, ranges, sink, runs) < publications:
        return _int(NO_ROOM)
    out = WalkOutput(subscription, room.check, room.star_list, ends[0], ends[1], room.visited)
    facts = Predicates(batch.subject, batch.predicate, features.term)
    tries = _take_trie(lent, _FIRST), _take_trie(lent, _SECOND)
    done = matched(
        0, publications, mark, cap, may_repeat, runs, facts, tries, _take_bounds(lent, _BOUNDS),
        _take_space(lent, _SPACE), out, room.sure,
    )  # fmt: skip
    room.visited[1], room.visited[2] = ends[0, publications], ends[1, publications]
    return _int(room.atom_offset[room.publication_run[publications]] if done == publications else NO_ROOM)


@kernel
def select_few(lent: Any, batch_table: Any, features: TermFeatures, mark: int, cap: int, may_repeat: bool,
               subscription: Any, ends: Any) -> int:  # fmt: skip
    """The subscriptions and the places of clauses to check of all publications of a batch. `lent`: the addresses of
    `LENT`; `batch_table`: those of the batch. `ends`, shape (2, publications + 1) and 0: their slices of
    `subscription`, and of what is to be checked.

    Returns how many atoms the publications have, or NO_ROOM: what was written is nonsense then. `visited` has how many
    nodes were visited, how many subscriptions there are, and how many clauses to check.
    """
    return int(_select(lent, take_batch(batch_table, 0), features, mark, cap, may_repeat, subscription, ends))


@kernel
def look_up_and_select(lent: Any, of_terms: Any, batch_table: Any, mark: int, cap: int, may_repeat: bool,
                       subscription: Any, ends: Any) -> int:  # fmt: skip
    """`select_few`; the terms are looked up before (`triplewire.kernels.few_terms.look_up`, which has the addresses
    `of_terms`). `visited` also has how many tests there are of terms and of nodes. NO_ROOM also where that does not
    tell."""
    columns, areas, room = take_batch(batch_table, 0), take_areas(of_terms, AREAS), _take_room(lent, _ROOM)
    room.visited[3], room.visited[4] = looked_up(of_terms, columns)
    features = TermFeatures(
        areas.term, areas.offset, areas.test, areas.node_offset, areas.node_term, areas.node_test, areas.low, areas.high
    )
    if room.visited[3] < 0:
        return NO_ROOM
    return int(_select(lent, columns, features, mark, cap, may_repeat, subscription, ends))
