"""Flat arrays in one file: written one behind the other, opened as parts of a memory map.

What is where is told by a directory, {name: [type, shape, first byte]}, which `engine.store` keeps in the manifest.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

ALIGNMENT = 64  # bytes


def write_arrays(stream: IO[bytes], arrays: Mapping[str, NDArray[Any]]) -> dict[str, list[Any]]:
    """Write the arrays, little-endian, to a new file; returns the directory."""
    directory: dict[str, list[Any]] = {}
    end = 0  # bytes written so far
    for name, array in arrays.items():
        plain = np.ascontiguousarray(array)
        plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
        padding = -end % ALIGNMENT
        stream.write(bytes(padding))
        directory[name] = [plain.dtype.str.replace("=", "<"), list(plain.shape), end + padding]
        stream.write(plain.reshape(-1).view(np.uint8).data)
        end += padding + plain.nbytes
    return directory


def map_arrays(path: Path, directory: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """The arrays of a file that its directory names. The map is private, so that kernels take the arrays as they take
    others; nothing ever writes to it. Raises `ValueError` or `TypeError` where the directory is of another file."""
    with open(path, "rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if path.stat().st_size else b""
    return {
        name: np.frombuffer(data, kind, prod(shape), begin).reshape(shape) if prod(shape) else np.zeros(shape, kind)
        for name, (kind, shape, begin) in directory.items()
    }
