"""Flat arrays in one file: written one behind the other, opened as a memory map.

What is where is told by a directory, {name: [type, shape, first byte]}, which is kept elsewhere: `engine.store` puts it
in the manifest.
"""

from __future__ import annotations

from collections.abc import Mapping
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


def map_arrays(path: Path, directory: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """The arrays of a file, as parts of a memory map. Raises `ValueError` where the directory is not that of the file.

    The map is private, so that kernels take the arrays as they take others; nothing ever writes to it.
    """
    size = path.stat().st_size
    data = np.memmap(path, np.uint8, "c").view(np.ndarray) if size else np.zeros(0, np.uint8)
    out: dict[str, NDArray[Any]] = {}
    for name, entry in directory.items():
        kind, shape, at = entry
        if kind not in _TYPES or not all(isinstance(n, int) and n >= 0 for n in (*shape, at)) or at % ALIGNMENT:
            raise ValueError(f"the array {name} has a wrong entry")
        end = at + prod(shape) * np.dtype(kind).itemsize
        if end > size:
            raise ValueError(f"the array {name} lies beyond the end of the file")
        out[name] = data[at:end].view(kind).reshape(shape)
    return out
