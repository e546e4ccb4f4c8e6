"""Arrays that belong together, as kernels take them: named tuples, which Numba sees as such; what their numbers say.

Arrays that stay where they are can be lent, all in one array: a table of their addresses and lengths.

    lend:    for each field of each named tuple: write the address of its array and the number of its rows; or a number
    borrow:  for each field, from its place in the table on: an array over the memory at that address, uncounted

What the columns mean is said where they are made: `triplewire.encode.batch`, `triplewire.clauses.view`,
`triplewire.clauses.clauses`, `triplewire.clauses.node_tests.table`. Range tests compare ranks instead of values.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from itertools import accumulate
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np import arrayobj, numpy_support

from triplewire.kernels.shared.compiled import IS_COMPILED, helper

# --- lending ---------------------------------------------------------------------------------------------------------

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


class Lent:
    """Named tuples of some kinds, and the table of their addresses: for as long as it is used, they are kept."""

    def __init__(self, kinds: Kinds, *parts: Any) -> None:
        assert all(isinstance(part, kind) for part, (kind, _) in zip(parts, kinds, strict=True))
        self.parts = parts
        rows = [
            _words(value, field)
            for part, (_, fields) in zip(parts, kinds, strict=True)
            for value, field in zip(part, fields, strict=True)
        ]
        self.table = np.array(rows, np.int64).reshape(-1)


def _words(value: Any, field: Field) -> tuple[int, int]:
    """The two words of a value in the table."""
    if field.dtype is None:
        return int(value), 0
    assert value.flags.c_contiguous
    assert value.dtype == field.dtype
    assert value.shape[1:] == field.row
    return value.ctypes.data, len(value)


def places(kinds: Kinds) -> tuple[int, ...]:
    """Where named tuples of these kinds begin in the table of their addresses."""
    sizes = [WORDS * len(fields) for _, fields in kinds]
    return tuple(accumulate(sizes[:-1], initial=0))


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


# --- the columns -----------------------------------------------------------------------------------------------------


class Triples(NamedTuple):
    """The triples of a batch, by publication, subject, predicate and object."""

    offset: Any  # publication -> its slice; one longer than the publications
    subject: Any
    predicate: Any
    object: Any


class BatchColumns(NamedTuple):
    """All columns of a batch."""

    offset: Any
    subject: Any
    predicate: Any
    object: Any
    text: Any
    start: Any
    end: Any
    kind: Any
    suffix: Any
    suffix_text: Any  # the suffixes one behind the other
    suffix_offset: Any
    hash: Any
    number: Any
    number_state: Any
    word_offset: Any
    word_ids: Any
    word_text: Any
    word_start: Any
    word_end: Any
    word_hash: Any


class TermFeatures(NamedTuple):
    """What a batch is to a segment (`triplewire.clauses.view.Features`)."""

    term: Any  # batch term -> the segment's term id, or -1
    offset: Any  # batch term -> its slice of `test`
    test: Any
    node_offset: Any  # publication -> its slice of `node_term` and `node_test`
    node_term: Any
    node_test: Any
    low: Any  # shape (range groups, terms)
    high: Any


class ClauseColumns(NamedTuple):
    """The patterns and tests of clauses (`triplewire.clauses.clauses.ClauseTable`)."""

    pattern_offset: Any  # clause -> its slice of `pattern`
    pattern: Any  # shape (patterns, 3): a term, or -1 - v for the variable v
    test_offset: Any  # clause -> its slice of `test_variable` and `test`
    test_variable: Any
    test: Any


RESIDUAL, INDEXED, RANGE_TEST = 0, 1, 2
"""Kinds of tests: evaluated for each node; in the node's slice of tests; told by ranks."""


class TestColumns(NamedTuple):
    """The tests (`triplewire.clauses.node_tests.table.Tests`)."""

    kind: Any
    group: Any
    op: Any  # of a range test: LESS to UNEQUAL; else 0
    rank: Any


TEST_FIELDS = (Field(np.uint8), Field(np.int32), Field(np.uint8), Field(np.int32))
"""What `TestColumns` hold."""


def fixed(*arrays: Any) -> Any:
    """The arrays, mapped from files or not, as a tuple of contiguous views that cannot be written to: to the compiler
    they are of one type then, so a kernel is compiled once."""
    return tuple([fixed_array(array) for array in arrays])


def fixed_array(array: Any) -> Any:
    """One array as `fixed` gives it. Most are plain and contiguous, and a publication alone has some fifty of them."""
    if type(array) is not np.ndarray or not array.flags.c_contiguous:
        array = np.ascontiguousarray(array).view(np.ndarray)
    elif not array.flags.writeable:
        return array
    view = array.view()
    view.setflags(write=False)
    return view


# --- outcomes: what a kernel can say of a pair of a publication and a clause (or the clauses of a subscription) -------

MISS, MATCH, TRUNCATED = 0, 1, 2
"""There is no solution; there are at most as many as a match may have; there are more."""

UNKNOWN = 16
"""Flags that are added to it say why the outcome is not known."""

LEFT = 255
"""The kernel cannot tell. The pair is left to the next, more general one."""


class Verdicts(NamedTuple):
    """Room for what becomes of pairs: matches, as publications and subscriptions, and whether they are truncated; and
    the pairs that are left."""

    matched: Any  # shape (2, pairs)
    truncated: Any
    left: Any  # shape (2, pairs)


# --- range tests -----------------------------------------------------------------------------------------------------

LESS, AT_MOST, GREATER, AT_LEAST, UNEQUAL = 1, 2, 3, 4, 5
"""Operators of range tests: `value < constant`, `value <= constant`, `value > constant`, `value >= constant`,
`value != constant`; 0 is no range test."""


@helper
def range_holds(op: int, rank: int, below: int, upto: int) -> Any:
    """Does the range test with this operator and the rank of its constant hold of a value?"""
    if op == UNEQUAL:
        return below >= 0 and (rank < below or rank >= upto)
    bound = below if (op == AT_MOST) | (op == GREATER) else upto
    return below >= 0 and (rank >= bound if op <= AT_MOST else rank < bound)


@helper
def is_found(test: int, tests: TestColumns) -> Any:
    """Do look-ups find the nodes of which a test holds? A residual test does not hold before it is evaluated, and `!=`
    holds of nearly all nodes: these are only asked of nodes that something else has found."""
    return (tests.kind[test] != RESIDUAL) & (tests.op[test] != UNEQUAL)


@helper
def first_rank(op: int, below: int, upto: int) -> Any:
    """The lowest rank for which the test holds; not for UNEQUAL, whose ranks are no interval."""
    return (upto if op == LESS else below) if op <= AT_MOST else 0


@helper
def end_rank(op: int, below: int, upto: int) -> Any:
    """The rank behind the highest for which the test holds."""
    return 0x7FFFFFFF if op <= AT_MOST else below if op == GREATER else upto
