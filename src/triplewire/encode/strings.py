"""Strings as flat arrays: one behind the other in one text, and columns whose rows share them.

It needs neither Arrow nor compiled kernels. As Arrow: `triplewire.encode.buffers`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Bytes, Ids, Offsets


def joined(strings: Sequence[bytes]) -> tuple[Bytes, Offsets]:
    """The strings in one text, and where each begins and the last one ends."""
    offset = np.zeros(len(strings) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, strings), np.int64, len(strings)), out=offset[1:])
    return np.frombuffer(b"".join(strings), np.uint8), offset


_DIGITS = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), np.uint16)  # two digits a byte


def hexadecimal(numbers: NDArray[np.uint64]) -> TextColumn:
    """Numbers as a column of their 16 hexadecimal digits."""
    text = _DIGITS[numbers.astype(">u8").view(np.uint8)].view(np.uint8)
    return TextColumn(text, np.arange(0, len(text) + 1, 16), np.arange(len(numbers), dtype=np.int32))


def utf8(text: str) -> bytes:
    """A text in UTF-8; lone surrogates, which it cannot hold, as `\\udc80`, which is an escape of JSON as well."""
    return text.encode("utf-8", "backslashreplace")


@dataclass(frozen=True, slots=True)
class TextColumn:
    """A column of texts in UTF-8: row i has the string number[i], which is text[offset[n] : offset[n + 1]]."""

    text: Bytes
    offset: Offsets  # one longer than there are strings
    number: Ids

    def __len__(self) -> int:
        return len(self.number)

    @classmethod
    def of(cls, strings: Sequence[bytes]) -> TextColumn:
        """Row i is strings[i]."""
        return cls(*joined(strings), np.arange(len(strings), dtype=np.int32))

    @classmethod
    def scattered(cls, parts: Iterable[tuple[NDArray[np.int64], TextColumn]], length: int) -> TextColumn:
        """A column of `length` rows, of parts: the rows where each goes, and what goes there."""
        number = np.empty(length, np.int32)
        texts, offsets = [np.zeros(0, np.uint8)], [np.zeros(1, np.int64)]
        strings = size = 0
        for rows, part in parts:
            number[rows] = part.number + np.int32(strings)
            texts.append(part.text[part.offset[0] : part.offset[-1]])
            offsets.append(part.offset[1:] + (size - part.offset[0]))
            strings += len(part.offset) - 1
            size += len(texts[-1])
        return cls(np.concatenate(texts), np.concatenate(offsets), number)
