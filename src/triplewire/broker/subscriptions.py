"""The subscriptions of the store, in an engine that follows them.

The engine knows a subscription by the text of its number, so that owners may give the same id. What matching asks of a
subscription beside its query (whose it is, whether its stories are told once, whether somebody waits for its events)
lies in arrays by that number: nothing is kept a subscription as an object.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.engine import Connection

from triplewire.broker import saved_engine
from triplewire.engine import Engine
from triplewire.errors import Refusal, StoreError, TriplewireError
from triplewire.languages.sources.rows import Row
from triplewire.store.database import Database
from triplewire.store.tables import changes, subscriptions, targets

ACTIVE, PAUSED, SUSPENDED, ENDED = "active", "paused", "suspended", "ended"

ONCE_PER_STORY, HAS_TARGETS = 1, 2
"""Bits of `Followed.flags`: stories are told once; events are delivered somewhere beside the feed."""

_AT_ONCE = 5_000  # rows of one query


class StoreTexts:
    """The active subscriptions of a store as a table of texts (`triplewire.languages.sources.tables`): the engine reads
    a text when it needs it."""

    name = "subscriptions"

    def __init__(self, database: Database) -> None:
        self._database = database

    def rows(self, ids: Any = None) -> Iterator[Row | Refusal]:
        """The rows with these numbers, or of all active subscriptions. Raises `StoreError`."""
        table, last = subscriptions, 0
        columns = sa.select(table.c.number, table.c.query, table.c.language, table.c.prefixes).order_by(table.c.number)
        try:
            if ids is not None:
                with self._database.reading() as connection:
                    for part in _parts(sorted(map(int, ids))):
                        yield from map(_row, connection.execute(columns.where(table.c.number.in_(part))).all())
                return
            while True:  # portions, so that no query stays open
                with self._database.reading() as connection:
                    here = columns.where(table.c.state == ACTIVE, table.c.number > last).limit(_AT_ONCE)
                    found = connection.execute(here).all()
                if not found:
                    return
                last = found[-1].number
                yield from map(_row, found)
        except sa.exc.SQLAlchemyError as error:
            raise StoreError(f"the texts of subscriptions cannot be read: {error}", source=self.name) from error


def _row(row: Any) -> Row:
    prefixes = json.loads(row.prefixes) if row.prefixes else {}
    return Row(str(row.number), row.language, row.query, prefixes, source="the store", table=StoreTexts.name)


def _parts(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    for begin in range(0, len(numbers), 500):
        yield numbers[begin : begin + 500]


class Followed:
    """An engine with the active subscriptions of a store. `follow` takes over what has changed since."""

    def __init__(self, engine: Engine, database: Database, warn: Callable[[str], None]) -> None:
        self.engine = engine
        self._database = database
        self._warn = warn
        self._lock = threading.Lock()
        self._folder: Path | None = None
        self._unsaved = 0  # subscriptions that were registered or removed since the engine was saved
        self._safe = 0  # all changes up to this number are done
        self._done: set[int] = set()  # and these, behind one that was not committed yet
        self.owners: list[str] = []
        self._owner_numbers: dict[str, int] = {}
        self.owner: NDArray[np.int32] = np.zeros(1_024, np.int32)
        self.flags: NDArray[np.uint8] = np.zeros(1_024, np.uint8)

    def load(self, progress: Callable[[int], None] | None = None, folder: Path | None = None) -> None:
        """Register all active subscriptions: those that were saved in a folder, with what has changed since, or all of
        the store."""
        self._folder = folder
        if folder is not None and self._load_saved(folder):
            self.follow()
        else:
            self._load_all(progress)
            self._unsaved = len(self.engine)
        self.save()

    def _load_saved(self, folder: Path) -> bool:
        saved = saved_engine.load(folder, self.engine, StoreTexts(self._database), self._database)
        if saved is None:
            return False
        with self._lock:
            self.engine, about = saved
            self.owner, self.flags, self._safe = about["owner"], about["flags"], about["last"]
            self.owners = about["owners"]
            self._owner_numbers = {owner: number for number, owner in enumerate(self.owners)}
        return True

    def save(self) -> None:
        """Save the engine in the folder where that spares the next start enough."""
        if self._folder is None or self._unsaved < saved_engine.FEWEST:
            return
        with self._lock:
            try:
                saved_engine.save(self._folder, self, self._safe, self._database)
                self._unsaved = 0
            except (TriplewireError, OSError) as error:
                self._warn(f"the engine is not saved, and the next start takes longer: {error}")

    def _load_all(self, progress: Callable[[int], None] | None) -> None:
        with self._lock:
            with self._database.reading() as connection:
                self._safe = connection.execute(sa.select(sa.func.max(changes.c.number))).scalar() or 0
                self._about(connection, None)
            self.engine.load_subscriptions(
                StoreTexts(self._database),
                on_refusal=lambda refusal: self._warn(str(refusal)),
                progress=progress,
            )

    def follow(self) -> None:
        """Take over changes that were committed since. A change whose transaction ends later than that of a higher
        number is found, too."""
        with self._lock, self._database.reading() as connection:
            found = connection.execute(
                sa.select(changes.c.number, changes.c.subscription).where(changes.c.number > self._safe)
            ).all()
            new = [row for row in found if row.number not in self._done]
            if not new:
                return
            numbers = sorted({row.subscription for row in new})
            self._unsaved += len(numbers)
            for part in _parts(numbers):
                self._take_over(connection, part)
            self._done.update(row.number for row in new)
            while self._safe + 1 in self._done:
                self._safe += 1
                self._done.discard(self._safe)
            if len(self._done) > 1_000:  # a number that was never committed: of a write that failed
                self._safe = max(self._done) - 500
                self._done = {number for number in self._done if number > self._safe}

    def _take_over(self, connection: Connection, numbers: Sequence[int]) -> None:
        self._about(connection, numbers)
        table = subscriptions
        rows = connection.execute(sa.select(table).where(table.c.number.in_(numbers))).all()
        for number in set(numbers) - {row.number for row in rows if row.state == ACTIVE}:
            self.engine.unsubscribe(str(number))
        for row in rows:
            if row.state != ACTIVE:
                continue
            prefixes = json.loads(row.prefixes) if row.prefixes else None
            try:
                self.engine.subscribe(row.query, row.language, id=str(row.number), prefixes=prefixes, replace=True)
            except TriplewireError as error:
                self._warn(f"subscription {row.id}: {error}")

    def _about(self, connection: Connection, numbers: Sequence[int] | None) -> None:
        """Learn of these subscriptions, or of all, what matching asks beside the query."""
        table = subscriptions
        columns = sa.select(table.c.number, table.c.owner, table.c.once_per_story)
        active = sa.select(targets.c.subscription).where(targets.c.state == "active").distinct()
        if numbers is not None:
            columns = columns.where(table.c.number.in_(numbers))
            active = active.where(targets.c.subscription.in_(numbers))
        rows = connection.execute(columns).all()
        has_targets = set(connection.execute(active).scalars())
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
