"""The subscriptions of the store, in an engine that follows them.

The engine knows a subscription by the text of its number, so that owners may give the same id. What matching asks of a
subscription beside its query (whose it is, whether its stories are told once, whether somebody waits for its events)
lies in arrays by that number: nothing is kept a subscription as an object.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.engine import Connection

from triplewire.broker.incoming.registered_sources import names_by_source
from triplewire.broker.subscriptions import saved_engine
from triplewire.engine import Engine
from triplewire.errors import TriplewireError
from triplewire.ir.taxonomy import Taxonomy
from triplewire.languages.sources.rows import Row
from triplewire.store.database import Database, fact, highest
from triplewire.store.tables import SOURCES, TAXONOMY, changes, facts, subscriptions, targets

T = TypeVar("T")

ACTIVE, PAUSED, SUSPENDED, ENDED = "active", "paused", "suspended", "ended"

ONCE_PER_STORY, HAS_TARGETS = 1, 2
"""Bits of `Followed.flags`: stories are told once; events are delivered somewhere beside the feed."""

_SINCE = sa.select(changes.c.number, changes.c.subscription).where(changes.c.number > sa.bindparam("last"))
_AT_ONCE = 5_000  # rows of one query
MANY = 1_000  # subscriptions from which they are loaded together, which waits for compiled kernels


class StoreTexts:
    """The active subscriptions of a store as a table of texts (`triplewire.languages.sources.tables`): the engine reads
    a text when it needs it."""

    name = "subscriptions"

    def __init__(self, database: Database) -> None:
        self._database = database

    def rows(self, ids: Iterable[Any] | None = None) -> Iterator[Row]:
        """The rows with these numbers, or of all active subscriptions. Raises as `Database.reading` does."""
        table, last = subscriptions, 0
        columns = sa.select(table.c.number, table.c.query, table.c.language, table.c.prefixes).order_by(table.c.number)
        if ids is not None:
            for these in are_among(table.c.number, sorted(map(int, ids))):
                yield from map(_row, self._database.rows(columns.where(these)))
            return
        while True:  # portions, so that no query stays open
            here = columns.where(table.c.state == ACTIVE, table.c.number > last).limit(_AT_ONCE)
            if not (texts := self._database.rows(here)):
                return
            last = texts[-1].number
            yield from map(_row, texts)


def _row(row: Any) -> Row:
    return Row(
        str(row.number), row.language, row.query, prefixes_of(row) or {}, source="the store", table=StoreTexts.name
    )


def prefixes_of(row: Any) -> dict[str, str] | None:
    """The prefixes of a subscription; None where it has none."""
    return json.loads(row.prefixes) if row.prefixes else None


def parts(keys: Sequence[T], size: int = 500) -> Iterator[Sequence[T]]:
    """Numbers or ids in portions that a query can name, or what else in portions of a size."""
    for begin in range(0, len(keys), size):
        yield keys[begin : begin + size]


def rows_with(
    connection: Connection, query: sa.Select[Any], column: sa.Column[Any], keys: Sequence[Any]
) -> Iterator[Any]:
    """The rows that a query finds with one of these keys in a column, of any number of them."""
    for part in parts(keys):
        yield from connection.execute(query.where(column.in_(part)))


def are_among(column: sa.Column[int], numbers: Sequence[int]) -> Iterator[sa.ColumnElement[bool]]:
    """Conditions that a number in a column is one of these, which ascend, each of a portion of them: a range, where
    none is left out, as of subscriptions that were registered together."""
    for part in parts(numbers, _AT_ONCE):
        if part[-1] - part[0] == len(part) - 1:
            yield column.between(part[0], part[-1])
        else:
            yield from map(column.in_, parts(part))


class Followed:
    """An engine with the active subscriptions of a store. `follow` takes over what has changed since."""

    def __init__(self, engine: Engine, database: Database, warn: Callable[[str], None]) -> None:
        self.engine = engine
        self._database = database
        self._warn = warn
        self._texts = StoreTexts(database)
        self._lock = threading.Lock()
        self._folder: Path | None = None  # where the engine is saved
        self._unsaved = 0  # subscriptions that have changed since it was saved
        self._last = 0  # the number of the last change that was taken over
        self._highest = 0  # the number of a subscription, above which the engine has none
        self.sources_seen = 0  # grows with each change of the sources
        self.owners: list[str] = []
        self._owner_numbers: dict[str, int] = {}
        self.owner: NDArray[np.int32] = np.zeros(1_024, np.int32)
        self.flags: NDArray[np.uint8] = np.zeros(1_024, np.uint8)

    def load(self, progress: Callable[[int], None] | None = None, folder: Path | None = None) -> None:
        """Register all active subscriptions: those that were saved in a folder, with what has changed since, or all of
        the store. The taxonomy is that of the store, where it has one."""
        self._folder = folder
        saved = None if folder is None else saved_engine.load(folder, self.engine, self._texts, self._database)
        with self._lock, self._database.reading() as connection:
            if saved is not None:
                self.engine, (self._last, self.owners, self.owner, self.flags) = saved
                self._owner_numbers = {owner: number for number, owner in enumerate(self.owners)}
            self._about_all(connection, (TAXONOMY, SOURCES))
            if saved is None:
                self._last = highest(connection, changes.c.number)
                self._about(connection, None)
        if saved is None:
            self._register_all(progress)
        self._highest = self._database.value(sa.select(sa.func.max(subscriptions.c.number))) or 0
        self.follow()
        self.save()

    def _register_all(self, progress: Callable[[int], None] | None) -> None:
        here = sa.select(subscriptions.c.number).where(subscriptions.c.state == ACTIVE).limit(MANY + 1)
        few = [row.number for row in self._database.rows(here)]
        if len(few) <= MANY:
            self._register_each(few)
            if progress is not None and few:
                progress(len(few))
        else:
            self._load(None, progress)
        self._unsaved = len(self.engine)

    def save(self) -> None:
        """Save the engine in the folder where that spares the next start enough."""
        if self._folder is None or self._unsaved < saved_engine.FEWEST:
            return
        with self._lock:
            known = saved_engine.Known(self._last, list(self.owners), self.owner.copy(), self.flags.copy())
            self._unsaved = 0
        try:
            saved_engine.save(self._folder, self.engine, known, self._database)
        except (TriplewireError, OSError) as error:
            self._warn(f"the engine is not saved, and the next start takes longer: {error}")

    def write(self, work: Callable[[Connection], T]) -> T:
        """What `Database.write` does, of a change that has been taken over when this returns."""
        written = self._database.write(work)
        self.follow()
        return written

    def follow(self, is_matching: bool = False) -> None:
        """Take over changes that were committed since: they are numbered in the order of commits. Who makes a change is
        answered after it was taken over. So who is matching needs not wait for others that load what is not answered
        yet, unless another process may have answered."""
        if not self._lock.acquire(blocking=not (is_matching and self._database.is_sqlite)):
            return
        try:
            with self._database.reading() as connection:
                new = connection.execute(_SINCE, {"last": self._last}).all()
                if not new:
                    return
                numbers = sorted({row.subscription for row in new})
                self._about_all(connection, numbers)
                numbers = [number for number in numbers if number not in (TAXONOMY, SOURCES)]
                self._about(connection, numbers)
            if numbers:  # outside of the reading: what takes long holds up no commit
                self._take_over(numbers)
            self._unsaved += len(numbers)
            self._last = max(row.number for row in new)
        finally:
            self._lock.release()

    def _take_over(self, numbers: Sequence[int]) -> None:
        active: set[int] = set()
        with self._database.reading() as connection:
            for these in are_among(subscriptions.c.number, numbers):
                here = sa.select(subscriptions.c.number).where(these, subscriptions.c.state == ACTIVE)
                active.update(connection.execute(here).scalars())
        for number in set(numbers) - active:
            self.engine.unsubscribe(str(number))
        new = [number for number in active if number > self._highest or str(number) not in self.engine]
        self._highest = max(self._highest, *numbers)
        if len(new) > MANY:
            self._load(list(map(str, new)))
            active.difference_update(new)
        self._register_each(active)

    def _register_each(self, numbers: Iterable[int]) -> None:
        """Register these subscriptions one by one, in place of those before: without waiting for compiled kernels."""
        for row in self._texts.rows(numbers):
            try:
                self.engine.subscribe(row.query, row.language, id=row.id, prefixes=row.prefixes or None, replace=True)
            except TriplewireError as error:
                self._warn(f"subscription {row.id}: {error}")

    def _load(self, ids: Collection[str] | None, progress: Callable[[int], None] | None = None) -> None:
        """Register subscriptions that the engine does not have, or all, as columns whose texts stay in the store."""
        self.engine.load_subscriptions(
            self._texts, on_refusal=lambda refusal: self._warn(str(refusal)), progress=progress, ids=ids
        )

    def _about_all(self, connection: Connection, numbers: Collection[int]) -> None:
        """Take over the taxonomy, or the names of sources, where these numbers say so."""
        if TAXONOMY in numbers and (taxonomy := stored_taxonomy(connection)) not in (None, self.engine.taxonomy):
            self.engine.taxonomy = taxonomy
        if SOURCES in numbers:
            self.engine.source_names = names_by_source(connection)
            self.sources_seen += 1

    def _about(self, connection: Connection, numbers: Sequence[int] | None) -> None:
        """Learn of these subscriptions, or of all, what matching asks beside the query."""
        table = subscriptions

        def read(query: sa.Select[Any], number: sa.Column[int]) -> Iterator[Any]:
            for these in [sa.true()] if numbers is None else are_among(number, numbers):
                yield from connection.execute(query.where(these))

        rows = list(read(sa.select(table.c.number, table.c.owner, table.c.once_per_story), table.c.number))
        with_target = sa.select(targets.c.subscription).where(targets.c.state == "active").distinct()
        has_targets = {row.subscription for row in read(with_target, targets.c.subscription)}
        most = max((row.number for row in rows), default=0)
        if most >= len(self.flags):
            size = 2 * most
            self.owner = np.concatenate([self.owner, np.zeros(size - len(self.owner), np.int32)])
            self.flags = np.concatenate([self.flags, np.zeros(size - len(self.flags), np.uint8)])
        for row in rows:
            self.owner[row.number] = self._number_of(row.owner)
            self.flags[row.number] = ONCE_PER_STORY * bool(row.once_per_story) + HAS_TARGETS * (
                row.number in has_targets
            )

    def _number_of(self, owner: str) -> int:
        if owner not in self._owner_numbers:
            self._owner_numbers[owner] = len(self.owners)
            self.owners.append(owner)
        return self._owner_numbers[owner]

    def owners_among(self, readers: Iterable[str]) -> NDArray[np.int32]:
        """The numbers of these owners, as far as they have subscriptions."""
        return np.array([self._owner_numbers[name] for name in readers if name in self._owner_numbers], np.int32)


def stored_taxonomy(connection: Connection) -> Taxonomy | None:
    """The taxonomy of the store; None where it has none."""
    text = fact(connection, facts, "taxonomy")
    return None if text is None else Taxonomy.from_json(json.loads(text))
