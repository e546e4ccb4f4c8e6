"""Which hosts this process delivers to, where several processes have one database.

Hosts are divided into `COUNT` shares by a hash of their names, and a share is delivered to by the process that has its
advisory lock of PostgreSQL. So a limit of a host holds for all processes together, nothing is written to take work, and
the shares of a process that ends are free at once. Each process takes its part of them: how many there are is counted
by a lock that all of them have. A SQLite file has one process.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from contextlib import suppress

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import SQLAlchemyError

from triplewire.store.database import Database

COUNT = 64
_SHARE, _PRESENCE = 7_461_002, 7_461_003  # the first number of our advisory locks


class Shares:
    """The shares that this process has. One thread calls it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: Connection | None = None
        self._mine: set[int] = set(range(COUNT)) if database.is_sqlite else set()
        self._leaving: set[int] = set()  # locked still, until nothing is sent to them any more

    def has(self, host: str) -> bool:
        """Does this process deliver to a host?"""
        return share_of(host) in self._mine

    def update(self, is_busy: Callable[[int], bool]) -> None:
        """Take what is free, and give up what is more than our part; a share that is busy is given up later. Raises
        what the database raises: then nothing is ours until the next time."""
        if self._database.is_sqlite:
            return
        try:
            connection = self._connected()
            for share in [share for share in self._leaving if not is_busy(share)]:
                connection.execute(sa.select(sa.func.pg_advisory_unlock(_SHARE, share)))
                self._leaving.discard(share)
            part = -(-COUNT // self._processes(connection))
            for share in sorted(self._mine, reverse=True)[: max(len(self._mine) - part, 0)]:
                self._mine.discard(share)
                self._leaving.add(share)
            for share in range(COUNT):
                if len(self._mine) >= part:
                    break
                if share in self._mine or share in self._leaving:
                    continue
                if connection.execute(sa.select(sa.func.pg_try_advisory_lock(_SHARE, share))).scalar_one():
                    self._mine.add(share)
        except SQLAlchemyError:
            self.close()
            raise

    def close(self) -> None:
        """Give up all shares."""
        if self._database.is_sqlite:
            return
        self._mine, self._leaving = set(), set()
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(SQLAlchemyError):
                connection.invalidate()  # the session ends, and its locks
                connection.close()

    def _connected(self) -> Connection:
        if self._connection is None:
            connection = self._database.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            self._connection = connection
            connection.execute(sa.select(sa.func.pg_advisory_lock_shared(_PRESENCE, 0)))
        return self._connection

    @staticmethod
    def _processes(connection: Connection) -> int:
        here = (
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND classid = :kind AND database = "
        )
        text = sa.text(here + "(SELECT oid FROM pg_database WHERE datname = current_database())")
        return max(int(connection.execute(text, {"kind": _PRESENCE}).scalar_one()), 1)


def share_of(host: str) -> int:
    """The share that a host is in."""
    return zlib.crc32(host.encode("utf-8", "surrogatepass")) % COUNT
