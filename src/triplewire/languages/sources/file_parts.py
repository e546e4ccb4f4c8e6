"""Files of many subscriptions in parts, each for a process of its own.

pieces_of(files):        of JSON Lines about 8 MB, to the end of a line; of Parquet some row groups
parts_of(pieces):        for each process the next pieces, until it has its share of all rows
"""

from __future__ import annotations

import io
import os
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from triplewire.config import Settings
from triplewire.errors import Refusal, SubscriptionError
from triplewire.folders import entries_of
from triplewire.languages.sources.files import GZIP, unreadable
from triplewire.languages.sources.rows import Row, read_some, row_bytes, too_large
from triplewire.languages.sources.tables import SubscriptionSource, SubscriptionTexts

if TYPE_CHECKING:
    from triplewire.languages.sources.row_columns import RowColumns

_PIECE = 8 << 20  # bytes of JSON Lines
_PIECES = 64  # of a file, at least, where it has so many lines or row groups
_SUFFIXES = (".jsonl", ".parquet")


@dataclass(frozen=True)
class FilePiece:
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
                return
            file.seek(self.begin)
            failed: list[Exception] = []
            lines = read_some(file, self.end - self.begin, failed)
            whole = lines[: lines.rfind(b"\n") + 1] if failed else lines
            yield from json_columns(io.BytesIO(whole), self.source, settings, self.record)
            if failed:
                raise failed[0]


def items_of(
    pieces: Iterable[FilePiece], settings: Settings, refusals: list[Refusal]
) -> Iterator[Row | Refusal | RowColumns]:
    """The rows of pieces. Of a file that cannot be read on, the refusal of the rest, which also goes to `refusals`,
    those of pieces before."""
    for piece in pieces:
        if piece.begin and refusals and refusals[-1].where == piece.source:
            continue
        try:
            yield from piece.items(settings)
        except (SubscriptionError, OSError, EOFError) as error:
            refusals.append(unreadable(piece.source, piece.source, error))
            yield refusals[-1]


def pieces_of(sources: Sequence[SubscriptionSource], settings: Settings) -> list[FilePiece]:
    """The rows of all files, in order; none where they cannot be read in pieces: those of streams, tables, packed
    files, files of one query, of files that are too large, have too long lines, or cannot be read."""
    pieces: list[FilePiece] = []
    try:
        for source in sources:
            if isinstance(source, SubscriptionTexts) or str(source) == "-":
                return []
            for file, left_out in entries_of(Path(source)):
                if left_out or file.suffix not in _SUFFIXES or not file.is_file():
                    return []
                pieces += (_row_groups if file.suffix == ".parquet" else _lines)(file, settings)
    except (OSError, pa.ArrowException, SubscriptionError):
        return []
    return pieces


def parts_of(pieces: Sequence[FilePiece], shares: Sequence[float]) -> list[list[FilePiece]]:
    """The pieces in parts, of which each has its share of the rows, and may be empty."""
    ends, total, done = list(accumulate(shares)), sum(piece.rows for piece in pieces), 0
    parts: list[list[FilePiece]] = [[] for _ in shares]
    for piece in pieces:
        parts[min(bisect(ends, ends[-1] * done / max(total, 1)), len(parts) - 1)].append(piece)
        done += piece.rows
    return parts


def _row_groups(file: Path, settings: Settings) -> Iterator[FilePiece]:
    about, record = pq.read_metadata(file), 1
    at_once = max(about.num_row_groups // _PIECES, 1)
    for begin in range(0, about.num_row_groups, at_once):
        end = min(begin + at_once, about.num_row_groups)
        rows = sum(about.row_group(group).num_rows for group in range(begin, end))
        yield FilePiece(str(file), os.path.abspath(file), begin, end, record, rows)
        record += rows


def _lines(file: Path, settings: Settings) -> Iterator[FilePiece]:
    record, begin, size = 1, 0, file.stat().st_size
    if size > settings.max_input_bytes:
        raise too_large(settings.max_input_bytes)
    with open(file, "rb") as stream:
        while block := stream.read(max(min(size // _PIECES, _PIECE), 1)):
            block += stream.readline(row_bytes(settings))
            end, rows = begin + len(block), block.count(b"\n")
            if (begin == 0 and block.startswith(GZIP)) or not (block.endswith(b"\n") or end == size):
                raise SubscriptionError("it is packed, or has a line that is too long")
            rows += not block.endswith(b"\n")
            yield FilePiece(str(file), os.path.abspath(file), begin, end, record, rows)
            record, begin = record + rows, end
