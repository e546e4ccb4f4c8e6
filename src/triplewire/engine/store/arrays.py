"""Flat arrays in one file: written one behind the other, opened as a memory map.

What is where is told by a directory, {name: [type, shape, first byte]}, which is kept elsewhere: `engine.store` puts it
in the manifest. What an array holds is not looked at here: `triplewire.clauses.schema`.
"""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

ALIGNMENT = 64  # bytes
_TYPES = frozenset({"|b1", "|u1", "|i1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8"})


def write_arrays(stream: IO[bytes], arrays: Mapping[str, NDArray[Any]]) -> dict[str, list[Any]]:
    """Write the arrays, little-endian, to a new file; returns the directory."""
    directory: dict[str, list[Any]] = {}
    at = 0
    for name, array in arrays.items():
        plain = np.ascontiguousarray(array)
        plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
        padding = -at % ALIGNMENT
        stream.write(bytes(padding))
        at += padding
        directory[name] = [plain.dtype.str.replace("=", "<"), list(plain.shape), at]
        stream.write(plain.reshape(-1).view(np.uint8).data)
        at += plain.nbytes
    return directory


@dataclass(frozen=True, eq=False)
class MappedArrays:
    """The arrays of a file as parts of a memory map. The map is private, so that kernels take the arrays as they take
    others; nothing ever writes to it."""

    arrays: Mapping[str, NDArray[Any]]
    _data: mmap.mmap | bytes

    def sha256(self) -> str:
        """The hash of the whole file."""
        return hashlib.sha256(self._data).hexdigest()

    def release(self) -> None:
        """Give back the memory of what has been read. Whatever asks for it again gets it from the file."""
        if isinstance(self._data, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            self._data.madvise(mmap.MADV_DONTNEED)


def map_arrays(path: Path, directory: Mapping[str, Any]) -> MappedArrays:
    """The arrays of a file. Raises `ValueError` where the directory is not that of the file: the arrays lie one behind
    the other, from its first byte to its last."""
    size = path.stat().st_size
    with open(path, "rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if size else b""
    numbers = np.frombuffer(data, np.uint8) if size else np.zeros(0, np.uint8)
    arrays: dict[str, NDArray[Any]] = {}
    end = 0
    for name, entry in directory.items():
        kind, shape, at = entry
        if kind not in _TYPES or not all(type(number) is int and number >= 0 for number in (*shape, at)):
            raise ValueError(f"the array {name} has a wrong entry")
        if at != end + -end % ALIGNMENT:
            raise ValueError(f"the array {name} does not begin where the one before it ends")
        end = at + prod(shape) * np.dtype(kind).itemsize
        if end > size:
            raise ValueError(f"the array {name} lies beyond the end of the file")
        arrays[name] = numbers[at:end].view(kind).reshape(shape)
    if end != size:
        raise ValueError(f"the file has {size:,} bytes, and its arrays {end:,}")
    return MappedArrays(arrays, data)
