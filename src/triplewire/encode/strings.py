"""Strings as flat arrays, and as columns whose rows share them. It needs no compiled kernels.

Strings lie one behind the other in one text. Also: arrays of Arrow that look at memory of NumPy and of Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from triplewire.encode.batch import Bytes, Ids, Offsets

_DIGITS = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), np.uint16)  # two digits a byte


def joined(strings: Sequence[bytes]) -> tuple[Bytes, Offsets]:
    """The strings in one text, and where each begins and the last one ends."""
    offset = np.zeros(len(strings) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, strings), np.int64, len(strings)), out=offset[1:])
    return np.frombuffer(b"".join(strings), np.uint8), offset


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


# --- Arrow arrays ----------------------------------------------------------------------------------------------------
# `pa.array` would do, but it imports pandas first, where that is installed: half a second, and 40 MB.


def of_numbers(numbers: NDArray[np.number[Any]]) -> pa.Array:
    """Numbers of their own type, without a copy where they lie in one piece."""
    type_ = pa.from_numpy_dtype(numbers.dtype)
    return pa.Array.from_buffers(type_, len(numbers), [None, pa.py_buffer(np.ascontiguousarray(numbers))])


def of_strings(strings: Sequence[bytes]) -> pa.LargeBinaryArray:
    """Strings of bytes."""
    return of_text(*joined(strings))


def of_text(text: Bytes, offset: Offsets) -> pa.LargeBinaryArray:
    """The strings text[offset[i] : offset[i + 1]], without a copy."""
    buffers = [None, pa.py_buffer(offset), pa.py_buffer(text)]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(offset) - 1, buffers)


def of_few(strings: Mapping[int, bytes], length: int) -> pa.LargeBinaryArray:
    """A column of this length with strings at some places, and null at the others."""
    number, is_there = np.zeros(length, np.int64), np.zeros(length, np.bool_)
    places = np.fromiter(strings, np.int64, len(strings))
    number[places], is_there[places] = np.arange(len(strings)), True
    bits = np.packbits(is_there, bitorder="little")
    indices = pa.Array.from_buffers(pa.int64(), length, [pa.py_buffer(bits), pa.py_buffer(number)])
    return of_strings(list(strings.values()) or [b""]).take(indices)


def of_bools(values: NDArray[np.bool_]) -> pa.BooleanArray:
    """Truth values, a bit each."""
    bits = np.packbits(values, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(bits)])
