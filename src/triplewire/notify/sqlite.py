"""Tables of matches and dead letters in SQLite files, in which each row is written once.

All rows of a part go into one transaction, in which those of an earlier try of it go. What is there is known by stream,
part and identity, the primary key.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterable, Iterator

from triplewire.errors import BusyError, Refusal, WriteError
from triplewire.net.addresses import Address, sqlite_path
from triplewire.notify.rows import KEY, TABLES, Part, Record

_WAIT = 60  # seconds for another program that uses the file
_TYPES = {"TEXT": "TEXT", "BIGINT": "INTEGER", "BOOLEAN": "INTEGER", "TIMESTAMP WITH TIME ZONE": "TEXT"}


class SqliteSink:
    """A table of matches or of dead letters in a SQLite file: each row once. Instants are texts of ISO 8601."""

    def __init__(self, target: Address, kind: str) -> None:
        self._target = target
        self._file = sqlite_path(target.url)
        self._table = f'"{target.name}"'
        self._columns = TABLES[kind]

    def __str__(self) -> str:
        return str(self._target)

    def check(self, stream: str, stop: threading.Event | None = None) -> None:
        """Make the table where it is not there. Raises `TriplewireError`, also where a table has other columns, or no
        key that tells what is there."""
        types = ", ".join(f"[{name}] {_TYPES[kind]}" for name, kind in self._columns.items())
        with self._connected() as connection:
            key = f"PRIMARY KEY ({', '.join(KEY)})"
            connection.execute(f"CREATE TABLE IF NOT EXISTS {self._table} ({types}, {key}) WITHOUT ROWID")
            connection.execute(f"EXPLAIN {self._insertion}", [None] * len(self._columns))

    def deliver(self, rows: Iterable[Record], part: Part) -> list[Refusal]:
        """Write the rows that are not there yet, all or none; with `Part.replaces`, in place of those before."""
        with self._connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            if part.replaces:
                here = (part.stream, part.batch)
                connection.execute(f"DELETE FROM {self._table} WHERE stream = ? AND batch = ?", here)
            connection.executemany(self._insertion, ((part.stream, part.batch, *row) for row in rows))
        return []

    @property
    def _insertion(self) -> str:
        """Inserts a row that is not there. SQLite refuses it where `KEY` is no primary key, and not unique."""
        # in brackets: a name in double quotes that is none of the table is a text to SQLite
        names = ", ".join(f"[{name}]" for name in self._columns)
        marks = ", ".join("?" * len(self._columns))
        return f"INSERT INTO {self._table} ({names}) VALUES ({marks}) ON CONFLICT ({', '.join(KEY)}) DO NOTHING"

    @contextlib.contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        try:
            with contextlib.closing(sqlite3.connect(self._file, timeout=_WAIT)) as connection, connection:
                yield connection
        except sqlite3.Error as error:
            is_busy = "locked" in str(error)
            kind, remedy = (BusyError, "try again when the other program has ended") if is_busy else (WriteError, "")
            raise kind(f"the database cannot be used: {error}", source=str(self._target), remedy=remedy) from None
