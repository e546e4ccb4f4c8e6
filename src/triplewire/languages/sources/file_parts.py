"""Files of many subscriptions in parts, each for a process of its own: of JSON Lines some lines that stand together,
of Parquet some row groups.

    parts_of(files, workers):
        for each file:      pieces = JSON Lines: about 4 MB, to the end of a line; Parquet: each row group
        for each worker:    the next pieces, until it has its share of all rows
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet as pq

from triplewire.config import Settings
from triplewire.errors import Refusal
from triplewire.folders import entries_of
from triplewire.languages.sources.rows import Row, row_bytes
from triplewire.languages.sources.tables import SubscriptionSource, SubscriptionTexts

if TYPE_CHECKING:
    from triplewire.languages.sources.row_columns import RowColumns

_PIECE = 4 << 20  # bytes of JSON Lines
_PIECES = 16  # of a file for each worker, at least
_SAMPLE = 1 << 16  # bytes of JSON Lines that tell how long a line is
_SUFFIXES = (".jsonl", ".parquet")
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class FilePart:
    """Rows of a file that stand together: of JSON Lines the bytes `begin` to `end` - 1, of Parquet these row groups.
    `record`: the number of the first row, from 1; `rows`: how many there are. `source`: the file as it was named."""

    source: str
    path: str
    begin: int
    end: int
    record: int
    rows: int

    def items(self, settings: Settings) -> Iterator[Row | Refusal | RowColumns]:
        """The rows, as the reader of the whole file gives them. Raises what opening and reading the file raises, and
        `SubscriptionError` where it cannot be read on."""
        from triplewire.languages.sources.row_columns import json_columns, parquet_columns  # compiled kernels

        with open(self.path, "rb") as file:
            if self.path.endswith(".parquet"):
                yield from parquet_columns(file, self.source, settings, range(self.begin, self.end))
            else:
                lines = cast("BinaryIO", io.BufferedReader(_Range(file, self.begin, self.end), _PIECE))
                yield from json_columns(lines, self.source, settings, self.record)


class _Range(io.RawIOBase):
    """The bytes of a file from one place to another."""

    def __init__(self, file: BinaryIO, begin: int, end: int) -> None:
        file.seek(begin)
        self._file, self._left = file, end - begin

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # it is called with nothing else
        """Read the next bytes; returns how many."""
        data = self._file.read(min(len(buffer), self._left))
        buffer[: len(data)] = data
        self._left -= len(data)
        return len(data)


def about_rows(sources: Sequence[SubscriptionSource]) -> int:
    """About how many rows there are; 0 where they cannot be read in parts."""
    files = _files(sources)
    try:
        return sum(map(_about, files or ()))
    except (OSError, pa.ArrowException):
        return 0


def parts_of(sources: Sequence[SubscriptionSource], workers: int, settings: Settings) -> list[tuple[FilePart, ...]]:
    """The rows of all files, in order, for so many workers; none where they cannot be read in parts: those of streams,
    tables, packed files, files of one query, of files that are too large or cannot be read, and of few pieces."""
    try:
        pieces = [piece for file in _files(sources) or () for piece in _pieces(file, workers, settings)]
    except (OSError, pa.ArrowException, _NotInParts):
        return []
    total, done = sum(piece.rows for piece in pieces), 0
    shares: list[list[FilePart]] = [[] for _ in range(workers)]
    for piece in pieces:
        share = shares[min(done * workers // max(total, 1), workers - 1)]
        if share and share[-1].path == piece.path:
            share[-1] = replace(share[-1], end=piece.end, rows=share[-1].rows + piece.rows)
        else:
            share.append(piece)
        done += piece.rows
    filled = [tuple(share) for share in shares if share]
    return filled if len(filled) > 1 else []


class _NotInParts(Exception):
    """Raised for a file that is refused in full, or has a line that is too long."""


def _files(sources: Sequence[SubscriptionSource]) -> list[Path] | None:
    """The files, each of which has many rows; None where there are others, or something is left out."""
    files: list[Path] = []
    for source in sources:
        if isinstance(source, SubscriptionTexts) or str(source) == "-":
            return None
        for file, left_out in entries_of(Path(source)):
            if left_out or file.suffix not in _SUFFIXES or not file.is_file():
                return None
            files.append(file)
    return files


def _about(file: Path) -> int:
    if file.suffix == ".parquet":
        return int(pq.read_metadata(file).num_rows)
    with open(file, "rb") as stream:
        sample = stream.read(_SAMPLE)
    return file.stat().st_size * sample.count(b"\n") // max(len(sample), 1)


def _pieces(file: Path, workers: int, settings: Settings) -> Iterator[FilePart]:
    record, begin, names = 1, 0, (str(file), os.path.abspath(file))
    if file.suffix == ".parquet":
        about = pq.read_metadata(file)
        for group in range(about.num_row_groups):
            rows = about.row_group(group).num_rows
            yield FilePart(*names, group, group + 1, record, rows)
            record += rows
        return
    size = file.stat().st_size
    if size > settings.max_input_bytes:
        raise _NotInParts
    at_once = min(max(size // (_PIECES * workers), 1), _PIECE)
    with open(file, "rb") as stream:
        while block := stream.read(at_once):
            block += stream.readline(row_bytes(settings))
            if begin == 0 and block.startswith(_GZIP):
                raise _NotInParts
            end, rows = begin + len(block), block.count(b"\n")
            if not block.endswith(b"\n"):
                if end < size:
                    raise _NotInParts
                rows += 1
            yield FilePart(*names, begin, end, record, rows)
            record, begin = record + rows, end
