"""The inbox: what was fetched. Files are written aside, flushed to the disk and renamed, and never changed.

So Spark's own file source reads it, and reads the same again after a crash: decision 038.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from triplewire.encode.schema import storable_text
from triplewire.errors import ReadError
from triplewire.folders import on_disk, sync

FOLDER = "documents"
"""The folder of an inbox, beside what a poller knows of its feeds."""

PREFIX = "inbox:"
"""Before the path of an inbox, where a source is named."""

_SCHEMA = pa.schema(
    [
        ("id", pa.binary()),
        ("place", pa.string()),
        ("content", pa.binary()),
        ("reason", pa.string()),
        ("fetched", pa.timestamp("us", tz="UTC")),
    ]
)


class Delivered(NamedTuple):
    """A document and where it came from; or, without content, why there is none. `fetched` in seconds since 1970."""

    place: str
    content: bytes | None
    reason: str
    fetched: float


class Inbox:
    """A folder of Parquet files, numbered as they came, from `after` on. One process writes to it."""

    def __init__(self, folder: Path, after: int = 0) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        for part in folder.glob(".*.part"):  # of a process that was killed
            part.unlink(missing_ok=True)
        self._last = max((number for number, _ in self.files()), default=after)

    def append(self, came: Sequence[Delivered]) -> None:
        """Add what came, all or nothing."""
        if not came:
            return
        rows = [
            {
                "place": storable_text(entry.place),
                "content": entry.content,
                "reason": storable_text(entry.reason),
                "fetched": round(entry.fetched * 1_000_000),
            }
            for entry in came
        ]
        part = self.folder / f".{os.getpid()}.part"
        with on_disk(part) as stream:
            pq.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA), stream, compression="zstd")
        self._last += 1
        os.replace(part, self.folder / f"{self._last:012}.parquet")
        sync(self.folder)

    def files(self) -> list[tuple[int, Path]]:
        """The files with their numbers, in the order in which they came."""
        return sorted((int(file.stem), file) for file in self.folder.glob("[0-9]*.parquet"))


def delivered(file: Path) -> list[Delivered]:
    """What a file of an inbox holds. Raises `ReadError` where it is damaged."""
    try:
        rows = pq.read_table(file).to_pylist()
    except (OSError, pa.ArrowException) as error:
        remedy = "put it back as it was, or remove it: what it held is not matched then"
        raise ReadError(f"it cannot be read: {error}", source=str(file), remedy=remedy) from None
    return [Delivered(row["place"], row["content"], row["reason"], row["fetched"].timestamp()) for row in rows]
