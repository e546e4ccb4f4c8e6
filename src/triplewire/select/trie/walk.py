"""Which subscriptions could match each publication of a batch? The walk through the tries, columnar.

Law: never too few. A publication's clause is accepted (it matches, and its bindings are not cut) or to be checked by
`triplewire.verify.batch_verifier`. How the tries are built: `triplewire.select.trie.build`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.clauses import Clauses
from triplewire.clauses.features import Features
from triplewire.clauses.mapped_zeros import mapped_zeros
from triplewire.clauses.view import View
from triplewire.encode.batch import Batch, Ids, Offsets
from triplewire.encode.columns import table_of
from triplewire.kernels.shared.columns import fixed, fixed_array
from triplewire.kernels.shared.lending import Lent
from triplewire.kernels.trie import atoms as atom_kernels
from triplewire.kernels.trie import few, set_trie
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
from triplewire.kernels.trie.few import LENT, RunRoom
from triplewire.select.index import Selected, Space
from triplewire.select.trie.build import SetTrie, Trie

FEW = 1 << 10  # triples, and publications, for which `select_few` has room
_MOST = 4  # predicates with the most objects, of a subject
_ROOM = 1 << 16  # rows, and atoms, at first
_KEYS = 1 << 12  # keys that a subject asks for, at first
_MOST_MARKS = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class SubjectAtoms:
    """The atoms of each run of triples with one subject; they lie in the workspace until it is used again, unless they
    are `copied`."""

    first: Offsets  # run -> its first triple; one entry more
    publication_run: Ids  # publication -> its slice of the runs
    offset: Offsets
    atoms: Ids
    span_offset: Offsets
    span_atom: Ids
    span_ends: Ids  # shape (range atoms, 2): the ranks that are satisfied, or the triples with the values of windows
    most: Ids  # shape (runs, 4): the largest numbers of objects of one predicate
    multi: Any  # run -> do tests hold of two objects of one predicate?
    subject: Ids  # triple -> its subject and predicate, as in the batch
    predicate: Ids
    object: Ids
    below: Ids  # shape (range groups, terms): the places of values
    upto: Ids

    def copied(self) -> SubjectAtoms:
        """The same in memory of its own."""
        size, spans = self.offset[-1], self.span_offset[-1]
        return replace(
            self,
            atoms=self.atoms[:size].copy(),
            span_atom=self.span_atom[:spans].copy(),
            span_ends=self.span_ends[:spans].copy(),
        )

    def part(self, first: int, last: int) -> SubjectAtoms:
        """The same for the publications first .. last - 1 alone; runs and triples keep their numbers."""
        return replace(self, publication_run=self.publication_run[first : last + 1])

    def __len__(self) -> int:
        return len(self.publication_run) - 1

    @property
    def count(self) -> int:
        """How many atoms the publications have."""
        return int(self.offset[self.publication_run[-1]] - self.offset[self.publication_run[0]])


class Workspace:
    """What one thread at a time needs to walk the tries of an index: made once, as fresh memory is slow. What no
    publication touches takes no memory.

    Marks are numbers: what a publication marks is its number, counted from `_mark` on, which grows from call to call.
    So what earlier ones have marked counts as not marked, and nothing is cleared.
    """

    def __init__(self, trie: Trie, clauses: Clauses) -> None:
        atoms, stars = len(trie.keys), len(trie.stars.root)
        nodes = max(len(trie.atoms), len(trie.stars))
        self._mark = 0
        self.wanted = np.empty((_KEYS + atom_kernels.SPARE, 2), np.int64)
        self.atoms = np.empty(_ROOM + atom_kernels.SPARE, np.int32)
        self.spans = np.empty(1024, np.int32), np.empty((1024, 2), np.int32)
        self.atom_seen = mapped_zeros(atoms // 64 + 1, np.uint64)
        self.star_list = mapped_zeros(stars + 1, np.int32)
        self.checks = np.empty(_ROOM, np.int32)
        self.marked = WalkSpace(
            mapped_zeros(atoms // 64 + 1, np.uint64),
            mapped_zeros(stars // 64 + 1, np.uint64),
            mapped_zeros(max(atoms - trie.first_range, 1), np.int32),
            mapped_zeros(nodes + 2, np.int64),  # every node is reached once at the most; what is not used costs nothing
            mapped_zeros(nodes + 2, np.int32),
            mapped_zeros(nodes + 2, np.int32),
            mapped_zeros(nodes + 2, np.int32),
            mapped_zeros(nodes + 2, np.int32),
            mapped_zeros(len(trie.atoms) // 8 + 1, np.uint8),
            mapped_zeros(len(trie.atoms), np.int32),
            mapped_zeros(len(clauses) // 8 + 1, np.uint8),
            mapped_zeros(clauses.count // 8 + 1, np.uint8),
        )
        self.bounds = Bounds(
            fixed_array(trie.bound_offset),
            fixed_array(trie.bounds),
            mapped_zeros(len(trie.bound_offset), np.int64),
            mapped_zeros(len(trie.asked), np.int32),
            mapped_zeros(len(trie.asked), np.int32),
        )
        self.table = AtomTable(*fixed(trie.keys, trie.slots, trie.asked, trie.dense))
        self.ranges = RangeAtoms(*(*fixed(trie.range_offset, trie.range_atom, trie.range_test), trie.first_range))
        windows = fixed(trie.range_test, trie.window_low, trie.window_high)
        self.tries = (
            _arrays(trie.atoms, 0, trie.first_range, windows),
            _arrays(trie.stars, len(trie.atoms.item), stars, windows),
        )
        self.visited = np.zeros(5, np.int64)  # of `select_few`
        self._runs = RunRoom(
            np.empty(FEW + 1, np.int64), np.empty(FEW + 1, np.int32), np.empty(FEW + 1, np.int64),
            np.empty(FEW + 1, np.int64), *self.spans, np.empty((FEW, _MOST), np.int32), np.empty(FEW, np.bool_),
            self.checks, self.star_list, self.visited, np.zeros((2, 256), np.uint8),
        )  # fmt: skip
        self._lent: Lent | None = None

    @property
    def lent(self) -> NDArray[np.int64]:
        """The addresses of all of it (`triplewire.kernels.trie.few.LENT`), until any of it grows."""
        if self._lent is None:
            runs = self._runs._replace(span_atom=self.spans[0], span_ends=self.spans[1], check=self.checks)
            sink = Sink(self.atom_seen, self.wanted, self.atoms)
            self._lent = Lent(LENT, self.table, self.ranges, *self.tries, self.bounds, self.marked, sink, runs)
        return self._lent.table

    def more_atoms(self, atoms: int, spans: int) -> None:
        """Have room for so many more atoms, and spans of them."""
        self.wanted, self.atoms = _larger(self.wanted, 0), _larger(self.atoms, atoms)
        self.spans = _larger(self.spans[0], spans), _larger(self.spans[1], spans)
        self._lent = None

    def more_checks(self, more: int) -> None:
        """Have room for so many more clauses to check."""
        self.checks, self._lent = _larger(self.checks, more), None

    def marks(self, count: int) -> int:
        """A number below which all marks so far are, and above which `count` are free."""
        if self._mark + count >= _MOST_MARKS:
            self._mark = 0
            for stamp in (self.bounds.verdict, self.bounds.stamp):
                stamp[:] = 0
        first = self._mark
        self._mark += count
        return first


def select_few(trie: Trie, view: View, cap: int, space: Workspace, room: Space) -> Selected | None:
    """What `subject_atoms` and `walk` say, for batches with no more than FEW triples, nor publications; None where
    that takes more room than there is. Terms that are not looked up yet are looked up in the same call."""
    publications, table, few_terms = len(view.batch), table_of(view.batch), view.clauses.few_terms
    work = few_terms.work_for(view.batch, view.world) if view.known_features is None else None
    ends, free, mark = np.zeros((2, publications + 1), np.int64), room.free, space.marks(publications + 1)
    if work is None:
        columns = view.features.columns
        atoms = few.select_few(space.lent, table, columns, mark, cap, trie.may_repeat, free, ends)
    else:
        of_terms = work.lent.table
        atoms = few.look_up_and_select(space.lent, of_terms, table, mark, cap, trie.may_repeat, free, ends)
    nodes, accepted, checks, tests, of_nodes = space.visited.tolist()
    if work is not None:
        if checks and atoms != few.NO_ROOM:  # else nobody asks for them again
            view.known_features = Features(*work.copied(view.batch, tests, of_nodes))
        few_terms.give(work)
    if atoms == few.NO_ROOM:
        return None
    return Selected(ends[0], free[:accepted], ends[1], space.checks[:checks].copy(), atoms, nodes)


def subject_atoms(trie: Trie, batch: Batch, features: Features, space: Workspace) -> SubjectAtoms:
    """The atoms that each subject of each publication satisfies."""
    triples = len(batch.subject)
    first, publication_run = np.empty(triples + 1, np.int64), np.zeros(len(batch) + 1, np.int32)
    offset, span_offset = np.empty((2, triples + 1), np.int64)
    offset[0] = span_offset[0] = 0
    most, multi = np.empty((triples, _MOST), np.int32), np.empty(triples, np.bool_)
    done, values = 0, fixed(batch.object, features.low, features.high)
    while True:
        sink = Sink(space.atom_seen, space.wanted, space.atoms)
        runs = RunAtoms(first, publication_run, offset, space.atoms, span_offset, *space.spans, most, multi, *values)
        done = atom_kernels.batch_atoms(done, batch.triples, features.columns, space.table, space.ranges, sink, runs)
        if done == len(batch):
            break
        space.more_atoms(len(trie.keys), len(trie.keys) - trie.first_range)
    count = int(publication_run[-1])
    return SubjectAtoms(
        first[: count + 1], publication_run, offset[: count + 1], space.atoms, span_offset[: count + 1], *space.spans,
        most[:count], multi[:count], batch.subject, batch.predicate, *values,
    )  # fmt: skip


def _larger(array: Any, more: int) -> Any:
    """The array with room for twice as many rows, or for `more` of them if that is more."""
    grown = np.empty((len(array) + max(len(array), more), *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown


def walk(trie: Trie, features: Features, atoms: SubjectAtoms, cap: int, space: Workspace, room: Space) -> Selected:
    """The subscriptions whose clauses are satisfied, and the clauses to check. `cap` is `Settings.most_bindings`."""
    publications = len(atoms)
    offset, check_offset = np.zeros(publications + 1, np.int64), np.zeros(publications + 1, np.int64)
    runs = RunAtoms(
        atoms.first, atoms.publication_run, atoms.offset, atoms.atoms, atoms.span_offset, atoms.span_atom,
        atoms.span_ends, atoms.most, atoms.multi, atoms.object, atoms.below, atoms.upto,
    )  # fmt: skip
    predicates = Predicates(atoms.subject, atoms.predicate, features.term)
    visited, done = np.zeros(3, np.int64), 0
    while True:
        out = WalkOutput(room.free, space.checks, space.star_list, offset, check_offset, visited)
        mark = space.marks(publications + 1)
        done = set_trie.match(
            done,
            publications,
            mark,
            cap,
            trie.may_repeat,
            runs,
            predicates,
            *space.tries,
            space.bounds,
            space.marked,
            out,
        )
        if done == publications:
            break
        share = publications / (done + 1)  # what the publications so far needed tells what the others will
        _, rows, checks = visited.tolist()
        if rows >= len(room.free):
            room.more(int(1.2 * share * rows) + 1, int(offset[done]))
        if checks >= len(space.checks):
            space.more_checks(int(1.2 * share * checks) + 1 - len(space.checks))
    return Selected(
        offset,
        room.free[: offset[-1]],
        check_offset,
        space.checks[: check_offset[-1]].copy(),
        atoms.count,
        int(visited[0]),
    )


def _arrays(trie: SetTrie, before: int, first_range: int, windows: Any) -> TrieArrays:
    """A trie as the kernel takes it. `before`: items of other tries. `windows`: what range atoms ask, and the bounds of
    windows."""
    subscription = trie.subscription if len(trie.subscription) else np.zeros(1, np.int32)  # it is read without a look
    nodes, root, need = fixed(trie.nodes.reshape(-1), trie.root, trie.need)
    named = fixed(subscription, trie.tail, trie.star)
    return TrieArrays(*(nodes, root, before, need, *named, first_range, *windows))
