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
    """A folder of Parquet files, numbered as they came. One process writes to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        for part in folder.glob(".*.part"):  # of a process that was killed
            part.unlink(missing_ok=True)
        self._last = max((int(file.stem) for file in folder.glob("[0-9]*.parquet")), default=0)

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
