"""Arrays that stay where they are, handed to a kernel as one array: a table of their addresses.

Numba takes a quarter of a microsecond for each array of a call, which a publication alone pays for a hundred arrays.
`addresses` makes the table, once; a kernel takes named tuples from it with what `borrowed` gives. The arrays have to
stay alive as long as the table is used. Generated with `llvmlite`, as `triplewire.kernels.prefetch` is.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from itertools import accumulate
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np import arrayobj, numpy_support
from numpy.typing import NDArray

from triplewire.kernels.shared.compiled import IS_COMPILED

WORDS = 2  # of the table, a field: the address and the number of rows of an array; or a number, and nothing
_tools: Any = cgutils  # they have no types
_make: Any = arrayobj
_types: Any = types


class Field(NamedTuple):
    """An array that is lent: what it holds, and the shape of a row. Without a `dtype` it is no array, but a whole
    number."""

    dtype: Any
    row: tuple[int, ...] = ()


NUMBER = Field(None)


Kinds = tuple[tuple[type[Any], tuple[Field, ...]], ...]
"""Kinds of named tuples, each with its fields."""


def addresses(*values: Any) -> NDArray[np.int64]:
    """The table of arrays, whole numbers and named tuples of these, in their order. The arrays are contiguous."""
    table: list[int] = []
    for value in _flat(values):
        if isinstance(value, np.ndarray):
            assert value.flags.c_contiguous
            table += (value.ctypes.data, len(value))
        else:
            table += (int(value), 0)
    return np.array(table, np.int64)


def _flat(values: tuple[Any, ...]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, tuple):
            yield from _flat(value)
        else:
            yield value


class Lent:
    """Named tuples of some kinds, and the table of their addresses: for as long as it is used, they are kept."""

    def __init__(self, kinds: Kinds, *parts: Any) -> None:
        assert len(parts) == len(kinds)
        assert all(isinstance(part, kind) for part, (kind, _) in zip(parts, kinds, strict=True))
        assert all(all(map(_is_like, part, fields)) for part, (_, fields) in zip(parts, kinds, strict=True))
        self.parts = parts
        self.table = addresses(*parts)


def places(kinds: Kinds) -> tuple[int, ...]:
    """Where named tuples of these kinds begin in the table of their addresses."""
    sizes = [WORDS * len(fields) for _, fields in kinds]
    return tuple(accumulate(sizes[:-1], initial=0))


def _is_like(value: Any, field: Field) -> bool:
    if field.dtype is None:
        return not isinstance(value, np.ndarray)
    return bool(value.dtype == field.dtype) and value.shape[1:] == field.row


def borrowed(kind: type[Any], fields: tuple[Field, ...]) -> Callable[[Any, int], Any]:
    """A function for kernels: the named tuple of this `kind` whose fields begin at a place of a table of addresses."""

    def plain(table: Any, place: int) -> Any:
        """The function where kernels run as plain Python."""
        rows = table[place : place + WORDS * len(fields)].reshape(-1, WORDS).tolist()
        return kind(*(_array(field, *row) for field, row in zip(fields, rows, strict=True)))

    if not IS_COMPILED:
        return plain
    arrays = [_type_of(field) for field in fields]
    tuple_type = _types.NamedTuple(arrays, kind)

    def typed(context: Any, table: Any, place: Any) -> Any:
        del context, place

        def generated(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            words = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            values = []
            for number, array in enumerate(arrays):
                word = builder.add(arguments[1], arguments[1].type(WORDS * number))
                first = builder.load(builder.gep(words, [word]))
                if array is types.int64:
                    values.append(first)
                    continue
                rows = builder.load(builder.gep(words, [builder.add(word, word.type(1))]))
                values.append(_view(context, builder, array, first, rows, fields[number].row))
            return context.make_tuple(builder, tuple_type, values)

        return tuple_type(table, types.intp), generated

    taken: Any = intrinsic(typed)
    return taken  # type: ignore[no-any-return]


def _type_of(field: Field) -> Any:
    if field.dtype is None:
        return types.int64
    return types.Array(numpy_support.from_dtype(np.dtype(field.dtype)), 1 + len(field.row), "C")


def _view(context: Any, builder: Any, kind: Any, address: Any, rows: Any, row: tuple[int, ...]) -> Any:
    """An array of so many rows of a shape at an address, whose memory nobody counts."""
    array = context.make_array(kind)(context, builder)
    size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    strides = [size * prod(row[place:]) for place in range(len(row) + 1)]
    _make.populate_array(
        array,
        data=builder.inttoptr(address, array.data.type),
        shape=_tools.pack_array(builder, [rows, *map(rows.type, row)]),
        strides=_tools.pack_array(builder, list(map(rows.type, strides))),
        itemsize=rows.type(size),
        meminfo=None,
    )
    return array._getvalue()


def _array(field: Field, first: int, rows: int) -> Any:
    if field.dtype is None:
        return first
    shape = (rows, *field.row)
    if not rows:
        return np.empty(shape, field.dtype)
    size = prod(shape) * np.dtype(field.dtype).itemsize
    return np.frombuffer((ctypes.c_byte * size).from_address(first), field.dtype).reshape(shape)
