"""Ids that were met, by the million: some forty bytes each, where a set of Python's takes more than a hundred."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import numpy as np

FEW = 64
"""Up to so many, a set of Python's will do, and no compiled kernel has to be loaded. For more it is loaded at once: it
stays for good, and shall not come to lie among the many small objects of a large file."""


class Ids:
    """A set of ids that only grows. For one thread at a time."""

    def __init__(self, few: int = FEW) -> None:
        self._few = few
        self._set: set[str] | None = set()
        self._count = 0
        self._seed = np.uint64(secrets.randbits(64))  # so that nobody can choose ids that all fall into one place
        self._pool = np.empty(1 << 10, np.uint8)
        self._ends = np.zeros(1 << 7, np.int64)
        self._slots = np.full(1 << 7, -1, np.int32)

    def __len__(self) -> int:
        return self._count if self._set is None else len(self._set)

    def add(self, ids: Sequence[str]) -> list[bool]:
        """Add some ids; says of each whether it was there before it. An id holds no lone surrogate."""
        known = self._set
        if known is None:
            return self._insert(ids)
        if len(known) + len(ids) > self._few:
            self._set = None
            self._insert(tuple(known))
            return self._insert(ids)
        found = []
        for id in ids:
            found.append(id in known)
            known.add(id)
        return found

    def _insert(self, ids: Sequence[str]) -> list[bool]:
        # compiled kernels, which small sets do without
        from triplewire.kernels import seen

        if not ids:
            return []
        texts = [id.encode() for id in ids]
        offset = np.zeros(len(texts) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=offset[1:])
        text = np.frombuffer(b"".join(texts) or b"\0", np.uint8)
        self._pool = _with_room(self._pool, int(self._ends[self._count] + offset[-1]))
        self._ends = _with_room(self._ends, self._count + len(ids) + 1)
        with np.errstate(over="ignore"):
            if 2 * (self._count + len(ids)) > len(self._slots):
                self._slots = np.empty(1 << (4 * (self._count + len(ids))).bit_length(), np.int32)
                seen.refill(self._pool, self._ends, self._count, self._seed, self._slots)
            was_there = np.empty(len(ids), np.uint8)
            self._count = seen.insert(
                text, offset, self._pool, self._ends, self._count, self._seed, self._slots, was_there
            )
        return was_there.astype(bool).tolist()


def _with_room(array: np.ndarray, size: int) -> np.ndarray:
    """The array, or a longer one that begins with it."""
    if size <= len(array):
        return array
    longer = np.empty(max(size, len(array) + len(array) // 2), array.dtype)
    longer[: len(array)] = array
    return longer
