"""The SQLite of stores: that of `pysqlite3`, where it is installed, whose WAL is mended; else the one of Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3
else:
    try:
        import pysqlite3 as sqlite3
    except ImportError:
        import sqlite3

__all__ = ["sqlite3"]
