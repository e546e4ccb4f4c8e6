"""Arrays that stay where they are, handed to a kernel as one array: a table of their addresses.

Numba takes a quarter of a microsecond for each array of a call, which a publication alone pays for a hundred arrays.
`addresses` makes the table, once; a kernel takes named tuples from it with what `borrowed` gives. The arrays have to
stay alive as long as the table is used. Generated with `llvmlite`, as `triplewire.kernels.prefetch` is.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
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


class Field(NamedTuple):
    """An array that is lent: what it holds, and how many columns it has if it has two dimensions. Without a `dtype` it
    is no array, but a whole number."""

    dtype: Any
    columns: int = 0


NUMBER = Field(None)


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


def fits(value: Any, fields: tuple[Field, ...]) -> bool:
    """Is the named tuple made of such fields?"""
    return len(value) == len(fields) and all(map(_is_like, value, fields))


def _is_like(value: Any, field: Field) -> bool:
    if field.dtype is None:
        return not isinstance(value, np.ndarray)
    return bool(value.dtype == field.dtype) and value.shape[1:] == ((field.columns,) if field.columns else ())


def borrowed(kind: type[Any], fields: tuple[Field, ...]) -> Callable[[Any, int], Any]:
    """A function for kernels: the named tuple of this `kind` whose fields begin at a place of a table of addresses."""

    def plain(table: Any, place: int) -> Any:
        """The same where kernels run as plain Python."""
        rows = table[place : place + WORDS * len(fields)].reshape(-1, WORDS).tolist()
        return kind(*(_array(field, *row) for field, row in zip(fields, rows, strict=True)))

    if not IS_COMPILED:
        return plain
    arrays = [_type_of(field) for field in fields]
    made = types.NamedTuple(arrays, kind)

    def typed(context: Any, table: Any, place: Any) -> Any:
        del context, place

        def generated(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            words = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            values = []
            for number, array in enumerate(arrays):
                at = builder.add(arguments[1], arguments[1].type(WORDS * number))
                first = builder.load(builder.gep(words, [at]))
                if array is types.int64:
                    values.append(first)
                    continue
                rows = builder.load(builder.gep(words, [builder.add(at, at.type(1))]))
                values.append(_view(context, builder, array, first, rows, fields[number].columns))
            return context.make_tuple(builder, made, values)

        return made(table, types.intp), generated

    return intrinsic(typed)  # type: ignore[no-any-return]


def _type_of(field: Field) -> Any:
    if field.dtype is None:
        return types.int64
    return types.Array(numpy_support.from_dtype(np.dtype(field.dtype)), 2 if field.columns else 1, "C")


def _view(context: Any, builder: Any, kind: Any, address: Any, rows: Any, columns: int) -> Any:
    """An array of these rows at an address, whose memory nobody counts."""
    array = context.make_array(kind)(context, builder)
    size = rows.type(context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    width = rows.type(columns or 1)
    _make.populate_array(
        array,
        data=builder.inttoptr(address, array.data.type),
        shape=_tools.pack_array(builder, [rows, width] if columns else [rows]),
        strides=_tools.pack_array(builder, [builder.mul(size, width), size] if columns else [size]),
        itemsize=size,
        meminfo=None,
    )
    return array._getvalue()


def _array(field: Field, first: int, rows: int) -> Any:
    if field.dtype is None:
        return first
    shape = (rows, field.columns) if field.columns else (rows,)
    if not rows:
        return np.empty(shape, field.dtype)
    size = int(np.prod(shape)) * np.dtype(field.dtype).itemsize
    return np.frombuffer((ctypes.c_byte * size).from_address(first), field.dtype).reshape(shape)
