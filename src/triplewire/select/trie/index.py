"""The matcher "trie": the tries over the atoms and stars of clauses, with the memory that a walk through them needs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.clauses import Clauses, mapped_zeros
from triplewire.clauses.node_tests.columns import flat
from triplewire.clauses.view import Features, View
from triplewire.encode.batch import Batch, Ids
from triplewire.kernels.shared.columns import Lent, TermFeatures, Triples, fixed, fixed_array
from triplewire.memory import Pool
from triplewire.select.index import Selected, Space
from triplewire.select.trie.build import SetTrie, Trie
from triplewire.select.trie.kernels import atoms as atom_kernels
from triplewire.select.trie.kernels import columns, set_trie

_MOST = 4  # predicates with the most objects, of a subject
_ROOM = 1 << 16  # rows, and atoms, at first
_RUNS = 1 << 10  # runs, at first
_KEYS = 1 << 12  # keys that a subject asks for, at first
_MOST_MARKS = (1 << 31) - 1
_LARGEST = 1 << 24  # atoms, or clauses, for which a workspace that is kept has room; a larger one is let go
_BY_RUN = ("first", "atom_offset", "span_offset", "most", "multi")


@dataclass(slots=True)
class SubjectAtoms:
    """The atoms of each run of triples with one subject, of the publications of a batch or some of them. They lie in
    the workspace until it is used again, unless they are `copied`."""

    lent: Lent  # the addresses of `Runs`
    publication_run: Ids  # publication -> its slice of the runs
    triples: Triples  # of the whole batch
    features: TermFeatures

    def copied(self) -> SubjectAtoms:
        """The same in memory of its own."""
        (runs,), count = self.lent.parts, self.publication_run[-1]
        sizes = [count + 1, count + 1, runs.atom_offset[count], count + 1, *[runs.span_offset[count]] * 2, count, count]
        copies = [array[:size].copy() for array, size in zip(runs, sizes, strict=True)]
        return replace(self, lent=Lent(columns.RUNS, columns.Runs(*copies)))

    def part(self, first: int, last: int) -> SubjectAtoms:
        """The same for the publications first .. last - 1 alone; runs and triples keep their numbers."""
        return replace(self, publication_run=self.publication_run[first : last + 1])

    def __len__(self) -> int:
        return len(self.publication_run) - 1

    @property
    def count(self) -> int:
        """How many atoms the publications have."""
        offset = self.lent.parts[0].atom_offset
        return int(offset[self.publication_run[-1]] - offset[self.publication_run[0]])


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
        self.checks = np.empty(_ROOM, np.int32)
        self.visited = np.zeros(3, np.int64)
        self._runs = columns.Runs(
            np.empty(_RUNS + 1, np.int64), np.empty(_RUNS + 1, np.int64),
            np.empty(_ROOM + atom_kernels.SPARE, np.int32), np.empty(_RUNS + 1, np.int64), np.empty(1024, np.int32),
            np.empty((1024, 2), np.int32), np.empty((_RUNS, _MOST), np.int32), np.empty(_RUNS, np.bool_),
        )  # fmt: skip
        self._atom_seen = mapped_zeros(atoms // 64 + 1, np.uint64)
        star_list = mapped_zeros(stars + 1, np.int32)
        self._room = columns.WalkRoom(self.checks, star_list, self.visited, np.zeros((2, 256), np.uint8))
        space = columns.WalkSpace(
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
        self.bounds = columns.Bounds(
            fixed_array(trie.bound_offset),
            fixed_array(trie.bounds),
            mapped_zeros(len(trie.bound_offset), np.int64),
            mapped_zeros(len(trie.asked), np.int32),
            mapped_zeros(len(trie.asked), np.int32),
        )
        table = columns.AtomTable(*fixed(trie.keys, trie.slots, trie.asked, trie.dense))
        ranges = columns.RangeAtoms(*(*fixed(trie.range_offset, trie.range_atom, trie.range_test), trie.first_range))
        windows = fixed(trie.range_test, trie.window_low, trie.window_high)
        first = _arrays(trie.atoms, 0, trie.first_range, windows)
        second = _arrays(trie.stars, len(trie.atoms.item), stars, windows)
        self._index = table, ranges, first, second, self.bounds, space
        self._lend()

    def _lend(self) -> None:
        """Look up the addresses of all that kernels take, anew after any of it has grown."""
        sink = columns.Sink(self._atom_seen, self.wanted, self._runs.atoms)
        self.lent = Lent(columns.INDEX, *self._index, sink, self._room._replace(check=self.checks))
        self.runs = Lent(columns.RUNS, self._runs)

    def fit(self, triples: int) -> None:
        """Have room for the runs of so many triples."""
        missing, runs = triples - len(self._runs.multi), self._runs
        if missing > 0:
            longer = {name: _larger(getattr(runs, name), missing) for name in _BY_RUN}
            self._runs = runs._replace(**longer)
            self._lend()

    def more_atoms(self, atoms: int, spans: int) -> None:
        """Have room for so many more atoms, and spans of them."""
        runs = self._runs
        self.wanted = _larger(self.wanted, 0)
        self._runs = runs._replace(
            atoms=_larger(runs.atoms, atoms),
            span_atom=_larger(runs.span_atom, spans),
            span_ends=_larger(runs.span_ends, spans),
        )
        self._lend()

    def more_checks(self, count: int) -> None:
        """Have room for so many count clauses to check."""
        self.checks = _larger(self.checks, count)
        self._lend()

    def marks(self, count: int) -> int:
        """A number below which all marks so far are, and above which `count` are free."""
        if self._mark + count >= _MOST_MARKS:
            self._mark = 0
            for stamp in (self.bounds.verdict, self.bounds.stamp):
                stamp[:] = 0
        first = self._mark
        self._mark += count
        return first


def subject_atoms(trie: Trie, batch: Batch, features: Features, space: Workspace) -> SubjectAtoms:
    """The atoms that each subject of each publication satisfies."""
    publication_run, done = np.zeros(len(batch) + 1, np.int32), 0
    triples, term_features = batch.triples, features.columns
    space.fit(len(triples.subject))
    while True:
        done = atom_kernels.batch_atoms(
            space.lent.table, space.runs.table, publication_run, done, triples, term_features
        )
        if done == len(batch):
            return SubjectAtoms(space.runs, publication_run, triples, term_features)
        space.more_atoms(len(trie.keys), len(trie.keys) - trie.first_range)


def _larger(array: Any, more: int) -> Any:
    """The array with room for twice as many rows, or for `more` of them if that is more."""
    grown = np.empty((len(array) + max(len(array), more), *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown


def walk(trie: Trie, atoms: SubjectAtoms, cap: int, space: Workspace, room: Space) -> Selected:
    """The subscriptions whose clauses are satisfied, and the clauses to check. `cap` is `Settings.most_bindings`."""
    publications, done = len(atoms), 0
    ends = np.zeros((2, publications + 1), np.int64)
    space.visited[:] = 0
    while True:
        done = set_trie.match(
            space.lent.table, atoms.lent.table, atoms.publication_run, done, space.marks(publications + 1), cap,
            trie.may_repeat, atoms.triples, atoms.features, room.free, ends,
        )  # fmt: skip
        nodes, rows, checks = space.visited.tolist()
        if done == publications:
            break
        share = publications / (done + 1)  # what the publications so far needed tells what the others will
        if rows >= len(room.free):
            room.more(int(1.2 * share * rows) + 1, int(ends[0, done]))
        if checks >= len(space.checks):
            space.more_checks(int(1.2 * share * checks) + 1 - len(space.checks))
    offset, check_offset = ends
    checked = space.checks[: check_offset[-1]].copy()
    return Selected(offset, room.free[: offset[-1]], check_offset, checked, atoms.count, nodes)


def _arrays(trie: SetTrie, before: int, first_range: int, windows: Any) -> columns.TrieArrays:
    """A trie as the kernel takes it. `before`: items of other tries. `windows`: what range atoms ask, and the bounds of
    windows."""
    subscription = trie.subscription if len(trie.subscription) else np.zeros(1, np.int32)  # it is read without a look
    nodes, root, need = fixed(trie.nodes.reshape(-1), trie.root, trie.need)
    named = fixed(subscription, trie.tail, trie.star)
    return columns.TrieArrays(*(nodes, root, before, need, *named, first_range, *windows))


class TrieIndex:
    """Finds the clauses whose stars a publication has."""

    names_clauses = True
    asks_features = True
    proves_constants = True  # a star has all patterns of its subject

    def __init__(self, trie: Trie, clauses: Clauses) -> None:
        self.trie = trie
        self.order = trie.order
        self._workspaces: Pool[Workspace] = Pool()
        self._new_workspace = partial(Workspace, trie, clauses)

    def prepare(self, view: View) -> SubjectAtoms:
        """The atoms that the subjects of the publications satisfy."""
        workspace = self._workspaces.take(self._new_workspace)
        atoms = subject_atoms(self.trie, view.batch, view.features, workspace).copied()
        self._give(workspace)
        return atoms

    def select(self, view: View, prepared: SubjectAtoms | None, most: int, space: Space) -> Selected:
        """See `triplewire.select.index.Index`. What is accepted lies in the space."""
        workspace = self._workspaces.take(self._new_workspace)
        atoms = prepared
        if atoms is None:
            atoms = subject_atoms(self.trie, view.batch, view.features, workspace)
        selected = walk(self.trie, atoms, most, workspace, space)
        self._give(workspace)
        return selected

    def _give(self, workspace: Workspace) -> None:
        """Keep a workspace for the next call, unless it has grown out of measure."""
        if len(workspace.checks) <= _LARGEST and len(workspace.runs.parts[0].atoms) <= _LARGEST:
            self._workspaces.give(workspace)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The tries as flat arrays."""
        return flat(self.trie)
