"""A set of ids for files with millions of them: about 40 bytes an id, where a Python set takes more than 100."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import numpy as np

FEW = 64
"""Up to this number of ids a Python set is used, so that small files need no compiled kernel."""


class Ids:
    """A set of ids that only grows. For one thread at a time."""

    def __init__(self, few: int = FEW) -> None:
        self._few = few
        self._set: set[str] | None = set()
        self._count = 0
        self._seed = secrets.randbits(31)  # so that nobody can choose ids with equal hashes
        self._texts = np.empty(1 << 10, np.uint8)
        self._ends = np.zeros(1 << 7, np.int64)
        self._table = np.full(1 << 7, -1, np.int32)

    def __len__(self) -> int:
        return self._count if self._set is None else len(self._set)

    def add(self, ids: Sequence[str]) -> list[bool]:
        """Add ids, which hold no lone surrogates. Returns for each whether it was there before."""
        known = self._set
        if known is None:
            return self._insert(ids)
        if len(known) + len(ids) > self._few:
            self._set = None
            self._insert(tuple(known))
            return self._insert(ids)
        was_there = []
        for id in ids:
            was_there.append(id in known)
            known.add(id)
        return was_there

    def _insert(self, ids: Sequence[str]) -> list[bool]:
        # compiled kernels, which small sets do without
        from triplewire.kernels.text import seen

        if not ids:
            return []
        texts = [id.encode() for id in ids]
        offset = np.zeros(len(texts) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=offset[1:])
        text = np.frombuffer(b"".join(texts) or b"\0", np.uint8)
        self._texts = _with_room(self._texts, int(self._ends[self._count] + offset[-1]))
        self._ends = _with_room(self._ends, self._count + len(ids) + 1)
        if 2 * (self._count + len(ids)) > len(self._table):
            self._table = np.empty(1 << (4 * (self._count + len(ids))).bit_length(), np.int32)
            seen.refill(self._texts, self._ends, self._count, self._seed, self._table)
        was_there = np.empty(len(ids), np.uint8)
        self._count = seen.insert(
            text, offset, self._texts, self._ends, self._count, self._seed, self._table, was_there
        )
        return was_there.astype(bool).tolist()


def _with_room(array: np.ndarray, size: int) -> np.ndarray:
    """The array, or a longer one that begins with it."""
    if size <= len(array):
        return array
    longer = np.empty(max(size, len(array) + len(array) // 2), array.dtype)
    longer[: len(array)] = array
    return longer
