"""The texts of subscriptions, on disk: one JSON row a subscription, found by its place.

A row is a line of a subscription file: {"id", "language", "query", "prefixes", "base"}. `TextWriter` holds new rows,
in memory at first, then in a temporary file that vanishes with it; `TextFile` is the file of a saved engine. Neither is
mapped: what is read seldom shall not count as memory in use.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Protocol

import numpy as np

from triplewire.encode.batch import Ids, Offsets
from triplewire.errors import StoreError

IN_MEMORY = 1 << 20  # bytes of rows before they go to a file


class TextSource(Protocol):
    """Rows by place."""

    def read(self, start: int, length: int) -> bytes:
        """The bytes at this place. Any thread may ask."""

    @property
    def size(self) -> int:
        """Bytes of all rows."""


class TextWriter:
    """Rows that are appended and read by any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._memory = bytearray()
        self._file: IO[bytes] | None = None
        self._size = 0

    @property
    def size(self) -> int:
        """Bytes of all rows."""
        return self._size

    def append(self, rows: Sequence[bytes]) -> tuple[Offsets, Ids]:
        """Add rows; returns where each begins and how long it is."""
        lengths = np.array([len(row) for row in rows], np.int32)
        starts = np.zeros(len(rows), np.int64)
        np.cumsum(lengths[:-1], out=starts[1:])
        data = b"".join(rows)
        with self._lock:
            starts += self._size
            self._size += len(data)
            if self._file is not None:
                self._file.seek(0, os.SEEK_END)
                self._file.write(data)
            else:
                self._memory += data
                if self._size > IN_MEMORY:
                    self._file = tempfile.TemporaryFile(prefix="triplewire-texts-")  # noqa: SIM115  # as below
                    self._file.write(self._memory)
                    self._memory = bytearray()
        return starts, lengths

    def read(self, start: int, length: int) -> bytes:
        """The bytes at this place."""
        with self._lock:
            if self._file is None:
                return bytes(self._memory[start : start + length])
            return _read(self._file, start, length, "temporary file")


class TextFile:
    """The rows of a saved engine, read from its file. The file may be removed or replaced meanwhile."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._file = open(path, "rb")  # noqa: SIM115  # it lives as long as the rows
        self._size = os.fstat(self._file.fileno()).st_size

    @property
    def size(self) -> int:
        """Bytes of all rows."""
        return self._size

    def read(self, start: int, length: int) -> bytes:
        """The bytes at this place. Raises `StoreError` where they are missing."""
        with self._lock:
            return _read(self._file, start, length, str(self._path))


def _read(file: IO[bytes], start: int, length: int, source: str) -> bytes:
    file.seek(start)
    data = file.read(length)
    if len(data) != length:
        raise StoreError("the text of a subscription is missing", source=source)
    return data
