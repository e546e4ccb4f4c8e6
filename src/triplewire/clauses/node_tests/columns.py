"""Columns of byte strings, and slices of numbers: what flat arrays are made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Bytes, Ids, Offsets
from triplewire.encode.names import Names, strings_at
from triplewire.encode.strings import joined

Arrays: TypeAlias = dict[str, NDArray[np.generic]]


def to_bytes(text: str) -> bytes:
    """UTF-8; a lone surrogate, which only a program can write, stays what it is."""
    return text.encode("utf-8", "surrogatepass")


def to_text(data: bytes) -> str:
    """The string that `to_bytes` made this of."""
    return data.decode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True)
class Strings(Sequence[bytes]):
    """Byte strings, one behind the other."""

    text: Bytes
    offset: Offsets  # one longer than there are strings

    @classmethod
    def of(cls, parts: Sequence[bytes]) -> Strings:
        """From Python's byte strings."""
        return cls(*joined(parts))

    def __len__(self) -> int:
        return len(self.offset) - 1

    def __getitem__(self, at: int) -> bytes:  # type: ignore[override]  # no slices
        if at >= len(self):
            raise IndexError(at)
        return self.text[self.offset[at] : self.offset[at + 1]].tobytes()

    def take(self, rows: NDArray[np.integer[Any]]) -> Strings:
        """Some of the strings, in this order."""
        return Strings(*strings_at(self.text, self.offset[rows], self.offset[rows + 1]))

    def names(self, seed: int) -> Names:
        """The table of these strings, which are distinct."""
        return Names.of(self.text, self.offset, seed)

    def __iter__(self) -> Iterator[bytes]:
        data, ends = self.text.tobytes(), self.offset.tolist()
        return (data[start:end] for start, end in pairwise(ends))


def ends(lengths: NDArray[np.integer[Any]]) -> Offsets:
    """Offsets of slices with these lengths."""
    offset = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offset[1:])
    return offset


def slices(offset: Offsets | Ids, rows: NDArray[np.integer[Any]]) -> tuple[Offsets, NDArray[np.int64]]:
    """The slices of some rows, put one behind the other: their offsets, and where all that is in them was."""
    lengths = offset[rows + 1] - offset[rows]
    taken = ends(lengths)
    return taken, np.arange(taken[-1]) + np.repeat(offset[:-1][rows] - taken[:-1], lengths)


def inverse(order: NDArray[np.integer[Any]]) -> Ids:
    """Of each of the numbers 0 .. n-1, its place in an order of them."""
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return place


def grouped(rows: Iterable[int] | NDArray[np.integer[Any]], count: int) -> tuple[Ids, Offsets]:
    """The positions in `rows` of each of the numbers 0 .. count - 1, ascending, and where each slice begins."""
    row = rows if isinstance(rows, np.ndarray) else np.fromiter(rows, np.int64)
    return np.argsort(row, kind="stable").astype(np.int32), ends(np.bincount(row, minlength=count))


def prefixed(prefix: str, arrays: Mapping[str, NDArray[np.generic]]) -> Arrays:
    """The arrays under longer names."""
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def under(prefix: str, arrays: Mapping[str, NDArray[np.generic]]) -> Arrays:
    """The arrays that `prefixed` named."""
    start = f"{prefix}."
    return {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}
