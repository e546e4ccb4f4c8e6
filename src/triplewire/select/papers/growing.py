"""What the papers' matchers share: which clauses they accept by themselves, and memory that grows by subscriptions.

The structure of a matcher is a `Store` of arrays, shared by an index and those that are made of it by insertion. What
is inserted comes behind what is there, and each index reads as far as its own clauses; so nothing is copied but when
the room is used up, and then it is doubled. One call at a time uses a store.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.clauses import ASK, EXACT, Clauses, residual_clauses
from triplewire.encode.batch import Bytes, Ids
from triplewire.forks import new_lock
from triplewire.kernels.shared.columns import TermFeatures, Triples, fixed
from triplewire.select.index import Selected, Space
from triplewire.select.papers.kernels.joins import ASKED, BEYOND, CHECK, ROWS, Selection, Source, Tables
from triplewire.select.papers.kernels.lists import Lists, Table, fill_slots
from triplewire.select.papers.own_numbers import TestNumbers

if TYPE_CHECKING:
    from triplewire.clauses.view import View

_LEAST = 1 << 10  # accepted subscriptions and clauses to check for which there is room at first, beside one of each


class Capacity(NamedTuple):
    """How many of each there are, or may be: patterns, tests, words of patterns at most, clauses, subscriptions; and
    variables and patterns of one clause."""

    patterns: int
    tests: int
    words: int
    clauses: int
    subscriptions: int
    variables: int
    size: int

    @classmethod
    def of(cls, clauses: Clauses) -> Capacity:
        """What some clauses need."""
        table = clauses.table
        largest = int(table.variables.max(initial=0)), int(np.diff(table.pattern_offset).max(initial=0))
        words = int((np.diff(table.pattern_offset).astype(np.int64) * np.diff(table.test_offset)).sum())
        return cls(len(table.pattern), len(table.test), words, clauses.count, len(clauses), *largest)

    def holds(self, other: Capacity) -> bool:
        """Is there room for so many?"""
        return all(mine >= its for mine, its in zip(self, other, strict=True))

    def with_spare(self) -> Capacity:
        """Room for twice as many."""
        return Capacity(*(2 * number + 8 for number in self))


def new_table(rows: int) -> Table:
    """A hash table with room for so many rows."""
    slots = np.full(1 << max(2 * rows, 8).bit_length(), -1, np.int32)
    table = Table(slots, np.zeros((rows, 2), np.int64), np.zeros(1, np.int64))
    fill_slots(table)  # with no rows: it is compiled now, and not in the middle of a call that needs more room
    return table


def new_lists(lists: int, entries: int) -> Lists:
    """Room for so many lists, which are empty, and entries."""
    none = np.full(lists, -1, np.int32), np.full(lists, -1, np.int32)
    return Lists(*none, np.full(entries, -1, np.int32), np.zeros(entries, np.int32), np.zeros(1, np.int64))


def _copied(old: Any, new: Any) -> None:
    """Copy what lies in some arrays to the beginning of larger ones."""
    if isinstance(old, Table):
        for name in ("key", "used"):
            _copied(getattr(old, name), getattr(new, name))
        fill_slots(new)
    elif isinstance(old, tuple):
        for part, its in zip(old, new, strict=True):
            _copied(part, its)
    else:
        new[: len(old)] = old


def kinds(clauses: Clauses, most_variables: int) -> Bytes:
    """Clause -> ROWS, ASKED, CHECK or BEYOND: is a solution of it a match? A clause is BEYOND that has no pattern, or
    more than `most_variables` variables."""
    table, owner = clauses.table, clauses.facts.owner
    ask = (table.flags & ASK != 0)[owner]
    kind = np.where(ask, ASKED, ROWS).astype(np.uint8)
    kind[(table.flags & EXACT == 0)[owner] | (clauses.has_alternatives[owner] & ~ask)] = CHECK
    kind[residual_clauses(table, clauses.tests.is_residual)] = CHECK
    kind[(np.diff(table.pattern_offset) == 0) | (table.variables > most_variables)] = BEYOND
    return kind


class Store:
    """The arrays of a matcher: `structure` as its kernels take it, and the binding tables of a publication. `clauses`:
    how many of them it has."""

    def __init__(self, capacity: Capacity, structure: Any, tables: int) -> None:
        self.lock, self.numbers = new_lock(), TestNumbers()
        self.capacity, self.structure, self.clauses = capacity, structure, 0
        clauses, variables, size = capacity.clauses, capacity.variables, capacity.size
        self.room = Tables(
            np.zeros(tables, np.int64), np.zeros(tables, np.int32), np.zeros(tables, np.int32),
            np.zeros(0, np.int32), np.zeros(0, np.int32),
            np.full(variables, -1, np.int32), np.zeros(variables, np.int32),
            np.zeros(size, np.int32), np.zeros(size, np.int32),
            np.zeros(capacity.subscriptions, np.int64), np.zeros(clauses, np.int64), np.zeros(clauses, np.int32),
            np.zeros(clauses, np.int32), np.zeros(3, np.int64),
        )  # fmt: skip

    def fit(self, rows: int) -> None:
        """Have room for so many rows of binding tables."""
        if rows > len(self.room.next):
            self.room = self.room._replace(next=np.zeros(2 * rows, np.int32), triple=np.zeros(2 * rows, np.int32))


class PaperIndex(ABC):
    """An index whose structure grows. A matcher makes a structure, inserts clauses into it, and matches with it."""

    order: ClassVar[None] = None
    proves_constants: ClassVar[bool] = False  # clauses that it cannot hold are named for every publication
    names_clauses: ClassVar[bool] = False
    asks_features: ClassVar[bool] = True
    most_variables: ClassVar[int] = 1 << 30  # of a clause that it can hold
    tables_of_triple: ClassVar[int] = 1  # in so many binding tables a triple may be
    taken_out: ClassVar[Callable[..., int]]  # the kernel of `delete`; "naive", which has no structure, has none

    def __init__(self, clauses: Clauses, mode: int, store: Store | None = None) -> None:
        self.clauses, self.mode = clauses, mode
        self.kind = kinds(clauses, self.most_variables)
        capacity = Capacity.of(clauses)
        if store is None:
            store = self.new_store(capacity)
        elif not store.capacity.holds(capacity):
            larger = self.new_store(capacity.with_spare())
            _copied(store.structure, larger.structure)
            larger.room.state[:] = store.room.state  # marks in the structure are of publications that came before
            larger.clauses, larger.numbers, store = store.clauses, store.numbers.copy(), larger
        self.store = store
        with store.lock:
            self.insert(store.clauses)
            store.clauses = clauses.count

    @property
    def left(self) -> Ids:
        """See `triplewire.select.index.TellsLeft`. Of a matcher that joins nothing these are all subscriptions."""
        owner, is_left = self.clauses.facts.owner, (self.kind == CHECK) | (self.kind == BEYOND) | self.names_clauses
        left: Ids = np.unique(owner[is_left])
        return left

    @property
    def beyond(self) -> Ids:
        """The clauses that this matcher cannot hold: they are left to verification, for every publication."""
        return np.flatnonzero(self.kind == BEYOND).astype(np.int32)

    def inserted(self, clauses: Clauses, first: int) -> PaperIndex:
        """See `triplewire.select.index.Insertable`. Where another index was made of this one by insertion, this is
        built anew."""
        is_last = self.store.clauses == self.clauses.count
        return type(self)(clauses, self.mode, self.store if is_last else None)

    def delete(self, clause: int) -> int:
        """Take a clause out, for all that share the store; returns how many entries of lists were looked at."""
        first, last = self.clauses.table.pattern_offset[clause : clause + 2].tolist()
        with self.store.lock:
            return self.taken_out(clause, first, last, self.store.structure)

    def prepare(self, view: View) -> None:
        """Nothing serves several parts."""
        del view

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Nothing: subscriptions are inserted again, which takes a second for a million."""
        return {}

    def select(self, view: View, prepared: None, most: int, space: Space) -> Selected:
        """See `triplewire.select.index.Index`."""
        triples, publications, count = view.batch.triples, len(view), self.clauses.count
        end = np.zeros((2, publications + 1), np.int64)
        columns = np.empty(count + _LEAST, np.int32), np.empty(count + _LEAST, np.int32)
        selection = Selection(end, *columns, np.zeros(3, np.int64))
        with self.store.lock:
            self.store.fit(int(np.diff(triples.offset).max(initial=0)) * self.tables_of_triple)
            source, done = self._source(view), 0
            while (done := self.match(done, most, source, selection)) < publications:
                accepted, checked = (
                    np.append(column, np.empty_like(column)) for column in (selection.accepted, selection.checked)
                )
                selection = selection._replace(accepted=accepted, checked=checked)
        tries, comparisons, list_steps = selection.counts.tolist()
        return Selected(
            end[0], selection.accepted[: end[0, -1]], end[1], selection.checked[: end[1, -1]],
            nodes=tries, comparisons=comparisons, list_steps=list_steps,
        )  # fmt: skip

    def _source(self, view: View) -> Source:
        """What selection looks at."""
        clauses = self.clauses
        features = TermFeatures(*fixed(*view.features.columns))
        about = fixed(self.kind, clauses.facts.owner, self.beyond)
        return Source(
            clauses.table.columns, clauses.tests.columns, features, Triples(*fixed(*view.batch.triples)), *about
        )

    @abstractmethod
    def new_store(self, capacity: Capacity) -> Store:
        """A store without clauses."""

    @abstractmethod
    def insert(self, first: int) -> None:
        """Add the clauses from a number on."""

    @abstractmethod
    def match(self, done: int, most: int, source: Source, selection: Selection) -> int:
        """Select for the publications from `done` on; returns the number of the first for which there is no room."""
