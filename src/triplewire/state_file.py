"""SQLite files in which a program keeps what it must know at its next start."""

from __future__ import annotations

import contextlib
import errno
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from triplewire.errors import DamagedError

_WAIT = 60  # seconds for another process that looks at the file
_NUMBERS = {sqlite3.SQLITE_FULL: errno.ENOSPC, sqlite3.SQLITE_IOERR: errno.EIO, sqlite3.SQLITE_READONLY: errno.EROFS}


@contextlib.contextmanager
def connected(file: Path, tables: str = "") -> Iterator[sqlite3.Connection]:
    """A connection to a file that is made where it is not there, with these tables (SQL that makes those that are
    missing; without, the file is only read). What the block did is committed at its end.

    Raises `OSError` where the disk is full or fails, and `DamagedError` where the file is damaged or in use.
    """
    mode = "rwc" if tables else "ro"
    try:
        name = f"{file.absolute().as_uri()}?mode={mode}"
        with contextlib.closing(sqlite3.connect(name, _WAIT, uri=True)) as connection, connection:
            connection.executescript(tables)
            yield connection
    except sqlite3.Error as error:
        number = _NUMBERS.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)  # its other bits say where
        if number is not None:
            raise OSError(number, str(error), str(file)) from None
        remedy = "put it back as it was, or choose another output folder"
        raise DamagedError(f"it cannot be used: {error}", source=str(file), remedy=remedy) from error
