"""The ids of subscriptions, as a table of byte strings: look-up, order, and what of several tables is kept.

The table itself: `triplewire.encode.names`. An id is looked up as its UTF-8 bytes, whose order is that of the ids.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from triplewire.encode.batch import Ids
from triplewire.encode.buffers import of_numbers
from triplewire.encode.names import Names
from triplewire.kernels.names import build

SEED = 5  # of the hashes; terms and words have lower ones
_OFFSET = pa.py_buffer(np.array([0, 1], np.int64))
_BREAK = pa.LargeBinaryArray.from_buffers(pa.large_binary(), 1, [None, _OFFSET, pa.py_buffer(b"\n")])


def id_key(id: str) -> bytes:
    """An id as it is looked up."""
    return id.encode("utf-8", "surrogatepass")


def id_names(ids: Sequence[str]) -> Names:
    """The table of ids, which are distinct."""
    return Names.build([id_key(id_) for id_ in ids], SEED)


def id_texts(names: Names, numbers: Ids) -> list[str]:
    """Some of the ids."""
    column = _column(names).take(of_numbers(numbers))
    whole = pa.LargeListArray.from_arrays(of_numbers(np.array([0, len(column)], np.int64)), column)
    data = pc.binary_join(whole, _BREAK[0]).buffers()[2]
    texts = data.to_pybytes().decode("utf-8", "surrogatepass").split("\n") if data else []
    if len(texts) == len(column):
        return texts
    return [bytes(id_).decode("utf-8", "surrogatepass") for id_ in column.to_pylist()]  # there are breaks in ids


def id_ranks(names: Names) -> Ids:
    """Of each id, how many come before it."""
    order = np.frombuffer(pc.array_sort_indices(_column(names)).buffers()[1], np.uint64, len(names))
    ranks = np.empty(len(order), np.int32)
    ranks[order] = np.arange(len(order), dtype=np.int32)
    return ranks


def ids_joined(parts: Sequence[Names], kept: Sequence[NDArray[np.int64]]) -> Names:
    """One table of some ids of several tables, which are distinct."""
    column = pa.concat_arrays([_column(names).take(of_numbers(some)) for names, some in zip(parts, kept, strict=True)])
    offset = np.frombuffer(column.buffers()[1], np.int64)[: len(column) + 1].copy()
    text = np.frombuffer(column.buffers()[2] or b"", np.uint8)[: offset[-1]].copy()
    hashes = np.concatenate([names.hash[some] for names, some in zip(parts, kept, strict=True)])
    slots = np.empty(1 << max((2 * len(hashes)).bit_length(), 1), np.int32)
    build(hashes, slots)
    return Names(text, offset, hashes, slots, np.array([SEED]), np.zeros(0, np.uint8))


def _column(names: Names) -> pa.Array:
    """The strings as Arrow sees them, without a copy."""
    buffers = [None, pa.py_buffer(names.offset), pa.py_buffer(names.text)]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(names), buffers)
