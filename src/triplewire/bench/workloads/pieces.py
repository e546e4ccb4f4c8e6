"""Writes millions of rows fast: a row is a sequence of pieces, and a piece is a text that many rows share.

A Python string is made for each piece and not for each row. The bytes of a chunk of rows are gathered by Arrow. What
rows say is decided in `rtf_queries`, `graphs`, `metadata` and `adversarial`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Rows: TypeAlias = NDArray[np.int32]
"""Piece ids, shape (rows, pieces of a row); the piece 0 is empty."""

CHUNK = 100_000  # rows made at a time
_THOUSAND = 1_000


class Pieces:
    """The distinct texts of which rows are made, with their numbers."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {"": 0}
        self._texts: pa.Array | None = None

    def add(self, text: str) -> int:
        """The id of a text."""
        known = self._ids.get(text)
        if known is None:
            known = self._ids[text] = len(self._ids)
            self._texts = None
        return known

    def add_all(self, texts: Iterable[str]) -> Rows:
        """The ids of texts."""
        return np.array([self.add(text) for text in texts], dtype=np.int32)

    def render(self, rows: Rows) -> memoryview:
        """The bytes of the rows, one after the other."""
        if self._texts is None:
            self._texts = pa.array([text.encode() for text in self._ids], pa.large_binary())
        taken = self._texts.take(pa.array(np.ascontiguousarray(rows).reshape(-1)))
        size = int(np.frombuffer(taken.buffers()[1], np.int64)[len(taken)])
        return memoryview(taken.buffers()[2])[:size]


class SubscriptionRows:
    """The frame of a JSON Lines row around the pieces of a query: its id, its language, its end."""

    def __init__(self, pieces: Pieces, language: str, letter: str, query_head: str = "", query_tail: str = "") -> None:
        self._pieces = pieces
        self._head = pieces.add(f'{{"id": "{letter}')
        self._numbers = pieces.add_all(f"{number:03d}" for number in range(_THOUSAND))
        self._middle = pieces.add(f'", "language": "{language}", "query": "{quoted(query_head)}')
        self._tail = pieces.add(f'{quoted(query_tail)}"}}\n')

    def around(self, query: Rows, first: int) -> Rows:
        """The pieces of whole rows, made from those of their queries. Ids count from `first`."""
        number = np.arange(first, first + len(query))
        frame = np.empty((len(query), 5), np.int32)
        frame[:, 0] = self._head
        for place, divisor in enumerate((_THOUSAND * _THOUSAND, _THOUSAND, 1), 1):
            frame[:, place] = self._numbers[number // divisor % _THOUSAND]
        frame[:, 4] = self._middle
        return np.hstack([frame, query, np.full((len(query), 1), self._tail, np.int32)])


def quoted(text: str) -> str:
    """The text, escaped for a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def write_rows(path: Path, pieces: Pieces, chunks: Iterable[Rows]) -> int:
    """Write rows to a file, chunk by chunk. Returns their number."""
    count = 0
    with path.open("wb") as stream:
        for rows in chunks:
            stream.write(pieces.render(rows))
            count += len(rows)
    return count
