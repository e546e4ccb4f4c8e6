"""Subscriptions in disjunctive normal form as flat arrays, independent of any matcher. Never changed once made.

`Clauses` joins them: patterns and tests, the operator calls that have to hold, and what is known of each clause before
any publication comes. `triplewire.clauses.builder` makes them of subscriptions, `merge` of other clauses. An index over
them is in `triplewire.select`; `triplewire.verify` decides what an index leaves open.
"""

from __future__ import annotations

import mmap
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from triplewire.clauses.node_tests.classes import Classes
from triplewire.clauses.node_tests.columns import Arrays, Strings, concatenated, flat, slices, unflat
from triplewire.clauses.node_tests.few import FewTerms
from triplewire.clauses.node_tests.lookup import Literals, Lookup, Substrings
from triplewire.clauses.node_tests.ranges import Scale, ScaleTests
from triplewire.clauses.node_tests.table import Tests
from triplewire.clauses.node_tests.words import Languages, WordTests
from triplewire.encode.batch import Bytes, Ids
from triplewire.encode.names import Names
from triplewire.errors import LimitError
from triplewire.ir.evaluation.unknown import CallKey
from triplewire.ir.nodes import Analyzer
from triplewire.kernels import components as component_kernels
from triplewire.kernels.shared.columns import ClauseColumns, fixed
from triplewire.operators.order.learned import key_of, text_of_key

_SMALL = 1 << 16  # bytes: smaller arrays come from the heap


def mapped_zeros(shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """An array of zeros whose pages take memory only once they are touched, for scratch arrays as large as an index and
    columns that say nothing of any row; a small one comes from the heap."""
    size = prod(shape) if isinstance(shape, tuple) else shape
    nbytes = size * np.dtype(dtype).itemsize
    if nbytes < _SMALL or not hasattr(mmap, "MAP_PRIVATE"):
        return np.zeros(shape, dtype)
    memory = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)  # a forked process has its own
    return np.frombuffer(memory, dtype, size).reshape(shape)


def compact_zeros(column: NDArray[Any]) -> NDArray[Any]:
    """The column; where all its numbers are 0, one that takes no memory, not even when it is read."""
    return column if column.any() else mapped_zeros(column.shape, column.dtype)


EXACT = 1  # flag of a subscription: its clauses are equivalent to it (`triplewire.ir.normal_form`)
ASK = 2  # flag: one empty binding
DISTINCT = 4  # flag: two different solutions of a clause are two different bindings (all its variables are selected)
CALLS = 8  # flag: operators decide in the end (`triplewire.verify.operators`)

MOST_ROWS = 1 << 27
"""Clauses, patterns and tests that a table may have, of each so many. An index has up to twelve times as many places,
which have numbers of 32 bits."""


def too_many_rows() -> LimitError:
    """The error of a table that would have more rows than it may have."""
    return LimitError(
        f"an index would have more than {MOST_ROWS:,} clauses, patterns or tests",
        remedy="divide the subscriptions between several engines; save without the index (index=False)",
    )


@dataclass(frozen=True)
class ClauseTable:
    """The clauses of the subscriptions 0 .. n-1, with their patterns and tests.

    A position of a pattern is a term id >= 0, or -1 - v for the variable v of the clause. In every clause the selected
    variables come first, in the order of the selection: v < selected[subscription]; one that stands in no pattern of a
    clause is unbound there.
    """

    clause_offset: Ids  # subscription -> its slice of the clauses
    pattern_offset: Ids  # clause -> its slice of the patterns
    pattern: Ids  # shape (patterns, 3)
    test_offset: Ids  # clause -> its slice of the tests
    test_variable: Ids
    test: Ids  # test ids
    variables: Ids  # clause -> how many variables it has, the selected ones counted
    selected: Ids  # subscription -> how many variables it selects; 0 for ASK
    flags: Bytes  # subscription -> EXACT | ASK | DISTINCT | CALLS

    def __len__(self) -> int:
        return len(self.flags)

    @cached_property
    def columns(self) -> ClauseColumns:
        """The clauses as kernels take them."""
        return ClauseColumns(*fixed(self.pattern_offset, self.pattern, self.test_offset, self.test_variable, self.test))

    @cached_property
    def width(self) -> Ids:
        """Subscription -> how many of its variables bindings have; 0 where one solution is enough, as evaluation goes
        on from there."""
        exact = (self.flags & EXACT) != 0
        width = self.selected if exact.all() else np.where(exact, self.selected, 0)
        return width.astype(np.int32, copy=False)  # that of the file, where it can be

    @property
    def rows(self) -> int:
        """How many clauses, patterns or tests there are, whatever are most."""
        return max(len(self.variables), len(self.pattern), len(self.test))

    def owners(self) -> Ids:
        """The subscription of each clause: where each has one clause, a part of `clause_offset`."""
        owner = np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.clause_offset))
        return self.clause_offset[:-1] if np.array_equal(owner, self.clause_offset[:-1]) else owner

    def compact(self) -> ClauseTable:
        """The table with one array for columns that are equal, and without memory for columns of zeros."""
        same = np.array_equal(self.variables, self.selected)
        return replace(
            self,
            test_offset=compact_zeros(self.test_offset),
            variables=self.selected if same else self.variables,
            selected=compact_zeros(self.selected),
        )


_MOST_IN_BYTES = 255

Counts: TypeAlias = "NDArray[np.uint8] | Ids"
"""Numbers of one clause, such as its patterns: bytes, unless some clause has too many of what is counted."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Columns by clause, and by component: the patterns of a clause that share variables, directly or by others
    (`triplewire.kernels.components`).
    """

    owner: Ids  # clause -> subscription
    component_offset: Ids  # clause -> its slice of `component`
    component: Counts  # shape (components, 4): a slice of the clause's members, selected variables, has it no others?
    member: Counts  # the patterns of each clause, by component

    @classmethod
    def of(cls, table: ClauseTable) -> Facts:
        """The facts of the clauses of a table."""
        owner = table.owners()
        patterns, offset = len(table.pattern), np.zeros(len(table.variables) + 1, np.int32)
        pattern_offset, pattern, width = fixed(table.pattern_offset, table.pattern, table.width[owner])
        largest = max(int(np.diff(pattern_offset).max(initial=0)), int(width.max(initial=0)))
        kind = np.uint8 if largest <= _MOST_IN_BYTES else np.int32
        component, member = mapped_zeros((patterns, 4), kind), mapped_zeros(patterns, kind)
        most = int(table.variables.max(initial=0)) + 1
        component_kernels.components(pattern_offset, pattern, width, most, offset, component, member)
        return cls(owner, offset, component[: offset[-1]], member)


def residual_clauses(table: ClauseTable, is_residual: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The clauses that have residual predicates."""
    if not is_residual.any():
        return np.zeros(0, np.int64)
    return np.searchsorted(table.test_offset, np.flatnonzero(is_residual[table.test]), side="right") - 1


_SEED = 0x9E3779B9


@dataclass(frozen=True, slots=True)
class RequiredCalls:
    """Subscription -> the operator calls that must all hold; none for a subscription that is no such conjunction."""

    names: Names
    offset: Ids
    call: Ids

    @classmethod
    def of(cls, keys: Iterable[CallKey], offset: array[int], call: array[int]) -> RequiredCalls:
        """From the calls, which are distinct, and the columns."""
        names = Names.build([text_of_key(key).encode("ascii") for key in keys], _SEED)
        return cls(names, compact_zeros(np.array(offset, np.int32)), np.array(call, np.int32))

    @property
    def keys(self) -> list[CallKey]:
        """The calls by number."""
        return [key_of(self.names[number]) for number in range(len(self.names))]

    @classmethod
    def merged(cls, parts: Sequence[tuple[RequiredCalls, NDArray[np.int64]]]) -> RequiredCalls:
        """Those of some subscriptions of each part, numbered on from part to part. Calls that nobody needs any more
        are left behind."""
        offsets, places = zip(*[slices(part.offset, numbers) for part, numbers in parts], strict=True)
        calls = [part.call[taken] for (part, _), taken in zip(parts, places, strict=True)]
        names, new = Names.union([part.names for part, _ in parts], [np.unique(call) for call in calls])
        call = np.concatenate([number[call] for number, call in zip(new, calls, strict=True)])
        return cls(names, compact_zeros(concatenated(offsets).astype(np.int32)), call)


VERSION = 18  # of what is saved: the arrays, and the names of the classes and fields that hold them
CLASSES = (
    *(ClauseTable, Facts, RequiredCalls, Names, Strings, Tests, Lookup, Literals, Substrings, Languages, Classes),
    *(WordTests, Analyzer, ScaleTests, Scale),
)


@dataclass(frozen=True)
class Clauses:
    """The subscriptions 0 .. n-1. `constants` are the terms in patterns, `tests` the conditions on single nodes,
    `asked` the operator calls that have to hold."""

    constants: Names
    tests: Tests
    table: ClauseTable
    facts: Facts
    asked: RequiredCalls

    def __len__(self) -> int:
        return len(self.table)

    @classmethod
    def of(cls, constants: Names, tests: Tests, table: ClauseTable, asked: RequiredCalls) -> Clauses:
        """The clauses of a table, with the facts worked out."""
        table = table.compact()
        return cls(constants, tests, table, Facts.of(table), asked)

    @property
    def count(self) -> int:
        """How many clauses there are."""
        return len(self.facts.owner)

    @cached_property
    def few_terms(self) -> FewTerms:
        """What looks up the terms of a few publications."""
        return FewTerms(self.constants, self.tests)

    @cached_property
    def have_alternatives(self) -> bool:
        """Has some subscription several clauses?"""
        return bool(self.has_alternatives.any())

    @cached_property
    def has_alternatives(self) -> NDArray[np.bool_]:
        """Subscription -> has it several clauses?"""
        several: NDArray[np.bool_] = np.diff(self.table.clause_offset) > 1
        return compact_zeros(several)

    @cached_property
    def _residual_places(self) -> dict[int, int]:
        """Residual test -> a place in `table.test` where it stands."""
        where = np.flatnonzero(np.asarray(self.tests.is_residual)[self.table.test])
        test, first = np.unique(self.table.test[where], return_index=True)
        return dict(zip(test.tolist(), where[first].tolist(), strict=True))

    def place(self, test: int) -> tuple[int, int, int]:
        """Where a residual test is stated: (subscription, its clause from 0, the clause's test from 0)."""
        table, row = self.table, self._residual_places[test]
        clause = int(np.searchsorted(table.test_offset, row, side="right")) - 1
        subscription = int(np.searchsorted(table.clause_offset, clause, side="right")) - 1
        first = int(table.clause_offset[subscription])
        return subscription, clause - first, row - int(table.test_offset[clause])

    def arrays(self) -> Arrays:
        """All of it as flat arrays, for `from_arrays`."""
        return flat(self)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Clauses:
        """What `arrays` gave, without a copy: they may be memory maps. Raises `KeyError` or `ValueError`."""
        clauses: Clauses = unflat(arrays, (cls, *CLASSES))
        return clauses

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(column.nbytes for column in self.arrays().values())


Numbers = NDArray[np.int64]


def merge(parts: Sequence[tuple[Clauses, Numbers]]) -> Clauses:
    """The clauses of some subscriptions (ascending numbers) of each part, numbered on from part to part; nothing is
    parsed again. Raises `LimitError` where they are too many."""
    tables = [_taken(clauses.table, numbers) for clauses, numbers in parts]
    if len(tables) > 1 and sum(part.rows for part in tables) > MOST_ROWS:
        raise too_many_rows()
    used = [np.unique(table.pattern[table.pattern >= 0]) for table in tables]
    constants, constant_numbers = Names.union([clauses.constants for clauses, _ in parts], used)
    used = [np.unique(table.test) for table in tables]
    tests, test_numbers = Tests.union([clauses.tests for clauses, _ in parts], used)
    for number, table in enumerate(tables):
        is_constant = table.pattern >= 0
        table.pattern[is_constant] = constant_numbers[number][table.pattern[is_constant]]
        table.test[:] = test_numbers[number][table.test]
    table = ClauseTable(
        concatenated([part.clause_offset for part in tables]),
        concatenated([part.pattern_offset for part in tables]),
        np.concatenate([part.pattern for part in tables]),
        concatenated([part.test_offset for part in tables]),
        *(
            np.concatenate([getattr(part, name) for part in tables])
            for name in ("test_variable", "test", "variables", "selected", "flags")
        ),
    )
    return Clauses.of(constants, tests, table, RequiredCalls.merged([(part.asked, numbers) for part, numbers in parts]))


def _taken(table: ClauseTable, subscriptions: Numbers) -> ClauseTable:
    """The rows of some subscriptions, copied."""
    clause_offset, clauses = slices(table.clause_offset, subscriptions)
    pattern_offset, patterns = slices(table.pattern_offset, clauses)
    test_offset, tests = slices(table.test_offset, clauses)
    return ClauseTable(
        clause_offset.astype(np.int32),
        pattern_offset.astype(np.int32),
        table.pattern[patterns],
        test_offset.astype(np.int32),
        table.test_variable[tests],
        table.test[tests],
        table.variables[clauses],
        table.selected[subscriptions],
        table.flags[subscriptions],
    )
