"""From subscriptions, one after the other, to clauses: `ClauseBuilder`."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from triplewire.clauses import clauses as table
from triplewire.clauses.clauses import (
    Clauses,
    ClauseTable,
    RequiredCalls,
    too_many_rows,
)
from triplewire.clauses.from_templates import Batch, ColumnMaker, Columns, TemplateRows
from triplewire.clauses.kernels.filling import Rows
from triplewire.clauses.node_tests.table import TestTable, build
from triplewire.encode.names import TermKey, names_of_keys
from triplewire.ir.evaluation.unknown import CallKey
from triplewire.ir.normal_form import NormalForm
from triplewire.languages.templates import TextForms


class GrowingTable:
    """The columns of `ClauseTable` as arrays that are extended, subscription by subscription. Offsets begin with 0."""

    def __init__(self) -> None:
        self.clause_offset = array("i", [0])
        self.pattern_offset = array("i", [0])
        self.pattern = array("i")  # flat
        self.test_offset = array("i", [0])
        self.test_variable = array("i")
        self.test = array("i")
        self.variables = array("i")
        self.selected = array("i")
        self.flags = array("B")

    @property
    def rows(self) -> int:
        """How many clauses, patterns or tests there are, whatever are most."""
        return max(len(self.variables), len(self.pattern) // 3, len(self.test))

    def end(self, selected: int, flags: int) -> None:
        """The clauses that were added last are a subscription."""
        self.clause_offset.append(len(self.variables))
        self.selected.append(selected)
        self.flags.append(flags)

    def extend(self, rows: Rows, count: Sequence[int]) -> None:
        """Add what a kernel has written; `count`: how much."""
        subscriptions, clauses, patterns, tests, _ = count
        for column, first, numbers in (
            (self.clause_offset, len(self.variables), rows.clause_offset[1 : subscriptions + 1]),
            (self.pattern_offset, len(self.pattern) // 3, rows.pattern_offset[1 : clauses + 1]),
            (self.test_offset, len(self.test), rows.test_offset[1 : clauses + 1]),
        ):
            column.frombytes((numbers + np.int32(first)).tobytes())
        for column, numbers in (
            (self.pattern, rows.pattern[: 3 * patterns]),
            (self.test, rows.test[:tests]),
            (self.test_variable, rows.test_variable[:tests]),
            (self.variables, rows.variables[:clauses]),
            (self.selected, rows.selected[:subscriptions]),
            (self.flags, rows.flags[:subscriptions]),
        ):
            column.frombytes(numbers.tobytes())

    def table(self) -> ClauseTable:
        """All of it."""
        columns = {field.name: getattr(self, field.name) for field in fields(ClauseTable)}
        arrays: dict[str, Any] = {name: np.array(values, values.typecode) for name, values in columns.items()}
        return ClauseTable(**{**arrays, "pattern": arrays["pattern"].reshape(-1, 3)})


_MANY = 1 << 14  # subscriptions for which it is worth the time to release small objects


class ClauseBuilder:
    """Collects subscriptions: one by its normal form, or many by template, by look-ups alone. `build` makes the clauses
    of them, numbered in the order in which they came."""

    def __init__(self) -> None:
        self._constants: dict[TermKey, int] = {}
        self._tests = TestTable()
        self._table = GrowingTable()
        self._calls: dict[CallKey, int] = {}
        self._call_offset, self._call = array("i", [0]), array("i")
        self._rows = TemplateRows(self._constant, self._tests)

    def __len__(self) -> int:
        return len(self._table.flags)

    @property
    def is_full(self) -> bool:
        """Is there no room for a subscription? What one adds is little against what is left then."""
        return self._table.rows >= table.MOST_ROWS

    def add(self, form: NormalForm, select: Sequence[str], ask: bool) -> None:
        """The next subscription. `select` names its selected variables, none of an ASK query. Raises `LimitError` where
        there is no room for it."""
        if self.is_full:
            raise too_many_rows()
        self._append(ColumnMaker(self._constant, self._tests).columns(form, select, ask))
        self._add_calls(form.asked)

    def batch(self, forms: TextForms) -> Batch:
        """The rows of subscriptions that `triplewire.languages.templates` forms, for `add_from`."""
        return self._rows.batch(forms)

    def add_from(self, batch: Batch, row: int, asked: Callable[[int], Sequence[CallKey]] | None = None) -> int:
        """The subscriptions of a batch from a row on, to the first one that has no template, or for which there is no
        room: the same as `add` of each, and faster. Returns which that is. `asked`: the calls that a row needs."""
        end = batch.write(row, table.MOST_ROWS - self._table.rows)
        self._table.extend(batch.rows, batch.count.tolist())
        if asked is None:
            self._call_offset.frombytes(np.full(end - row, len(self._call), np.int32).tobytes())
        else:
            for number in range(row, end):
                self._add_calls(asked(number))
        return end

    def _add_calls(self, calls: Iterable[CallKey]) -> None:
        """The next subscription needs these."""
        self._call.extend([self._calls.setdefault(key, len(self._calls)) for key in calls])
        self._call_offset.append(len(self._call))

    def _constant(self, key: TermKey) -> int:
        return self._constants.setdefault(key, len(self._constants))

    def build(self) -> Clauses:
        """The clauses of all that was added. The builder is spent then: it lets go of its objects before the arrays are
        made, so that their memory can be given back."""
        constants, specs, table = names_of_keys(list(self._constants)), self._tests.specs(), self._table.table()
        asked = RequiredCalls.of(self._calls, self._call_offset, self._call)
        del self._calls, self._constants, self._tests, self._table, self._rows
        if len(table) >= _MANY:  # then whole arenas of Python's allocator become free (decision 025)
            # the type cache holds names as they were asked for: thousands of strings, each in an arena of its own
            (getattr(sys, "_clear_internal_caches", None) or sys._clear_type_cache)()
        return Clauses.of(constants, build(specs), table, asked)

    def _append(self, columns: Columns) -> None:
        """Add a subscription whose columns have no gaps."""
        rows = self._table
        patterns, tests = len(rows.pattern) // 3, len(rows.test)
        rows.pattern.extend(columns.pattern)
        rows.test.extend(columns.test)
        rows.test_variable.extend(columns.test_variable)
        for last_pattern, last_test, variables in columns.clauses:
            rows.pattern_offset.append(patterns + last_pattern)
            rows.test_offset.append(tests + last_test)
            rows.variables.append(variables)
        rows.end(columns.selected, columns.flags)
