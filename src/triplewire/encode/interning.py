"""The distinct terms of a text in the making: tables that grow, filled by `triplewire.kernels.text.intern`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Bytes, Hashes, Ids
from triplewire.encode.columns import Columns
from triplewire.kernels.text import intern as kernels
from triplewire.kernels.text.names import hash_terms
from triplewire.model.terms import XSD_STRING

_STRING = np.frombuffer(XSD_STRING.encode(), np.uint8)
_ROOM, _MOST_ROOM = 64, 1 << 15  # rows of a new table, at least and at most
_BYTES_A_TERM = 256  # of text, as a guess


def wide(data: Bytes) -> Hashes:
    """Eight bytes of `data` from each place on as one number, the first byte the lowest. The numbers overlap."""
    return np.ndarray((max(len(data) - 7, 0),), np.uint64, data, strides=(1,))


class _Table:
    """Rows and the slots that find them, at most half full."""

    def __init__(self, room: int) -> None:
        self._room = room  # at least, once there are rows
        self.rows: NDArray[np.uint64] = np.empty((0, kernels.COLUMNS), np.uint64)
        self.slots: Ids = np.full(2, -1, np.int32)

    @property
    def columns(self) -> kernels.Interned:
        """The table as kernels take it."""
        return kernels.Interned(self.rows, self.slots)

    def reserve(self, count: int, more: int) -> None:
        """Make room for `more` rows, besides the `count` that are there."""
        if count + more <= len(self.rows):
            return
        room = max(2 * len(self.rows), count + more, self._room)
        rows = np.empty((room, kernels.COLUMNS), np.uint64)
        rows[:count] = self.rows[:count]
        self.rows, self.slots = rows, np.empty(1 << (2 * room - 1).bit_length(), np.int32)
        kernels.refill(rows, count, self.slots)


class Interner:
    """The terms of `data` and the suffixes of its literals, both by number."""

    def __init__(self, data: Bytes, max_iri_bytes: int, max_literal_bytes: int) -> None:
        self._data, self.wide = data, wide(data)
        self._limits = max_iri_bytes, max_literal_bytes
        self._terms, self._suffixes = _Table(min(len(data) // _BYTES_A_TERM, _MOST_ROOM) + _ROOM), _Table(_ROOM)
        self._suffixes.reserve(0, 1)
        self._state = np.zeros(kernels.STATE, np.int64)
        self._state[kernels.SUFFIXES] = 1  # 0 is none; no slot leads there

    def __len__(self) -> int:
        return int(self._state[kernels.TERMS])

    def take(self, tokens: NDArray[np.uint64], count: int, out: Ids) -> bool:
        """The ids of the first `count` tokens. False where a term is over a limit, or too many collide."""
        self._terms.reserve(len(self), count)
        self._suffixes.reserve(int(self._state[kernels.SUFFIXES]), count)
        return bool(
            kernels.intern_tokens(
                self._data, self.wide, tokens, count, *self._limits, _STRING, self._terms.columns,
                self._suffixes.columns, self._state, out,
            )
        )  # fmt: skip

    def odd_iris(self) -> list[bytes]:
        """The IRIs that are not of the plainest form, but for those in suffixes."""
        out = np.empty(len(self), np.int32)
        count = kernels.odd_iris(self._data, self._terms.rows, len(self), kernels.byte_classes(), out)
        return self._texts(self._terms.rows[out[:count]])

    def columns(self) -> Columns:
        """The terms. Raises `UnicodeDecodeError` where a datatype is no UTF-8."""
        rows = self._terms.rows[: len(self)].T
        texts = self._texts(self._suffixes.rows[1 : self._state[kernels.SUFFIXES]])
        start, end = rows[kernels.START].astype(np.int64), rows[kernels.END].astype(np.int64)
        kind, suffix = rows[kernels.KIND].astype(np.uint8), rows[kernels.SUFFIX].astype(np.int32)
        suffix_text = np.frombuffer(b"".join(texts) + b"\n", np.uint8)
        suffix_offset = np.cumsum([0, 0, *map(len, texts)])  # suffix 0 is none
        hashes = hash_terms(self._data, start, end, kind, suffix, suffix_text, suffix_offset)
        return Columns(self._data, start, end, kind, suffix, ("", *(text.decode() for text in texts)), hashes)

    def _texts(self, rows: NDArray[np.uint64]) -> list[bytes]:
        data = memoryview(self._data.data)
        spans = zip(rows[:, kernels.START].tolist(), rows[:, kernels.END].tolist(), strict=True)
        return [bytes(data[start:end]) for start, end in spans]
