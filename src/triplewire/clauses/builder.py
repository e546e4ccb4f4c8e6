"""From subscriptions, one after the other, to clauses: `ClauseBuilder`."""

from __future__ import annotations

import gc
import sys
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cache
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np

from triplewire.clauses import clauses as table
from triplewire.clauses.clauses import (
    ASK,
    CALLS,
    DISTINCT,
    EXACT,
    Clauses,
    ClauseTable,
    RequiredCalls,
    too_many_rows,
)
from triplewire.clauses.node_tests.table import TestTable, build
from triplewire.encode.names import term_names
from triplewire.ir.evaluation.unknown import CallKey
from triplewire.ir.nodes import FullText, Variable, Word
from triplewire.ir.normal_form import Clause, NormalForm, Test, X
from triplewire.languages.templates import AnyTemplate
from triplewire.languages.templates.conjunctions import CallList
from triplewire.languages.templates.template import Conjunction, Parameters, Template, leaves, replaced, term_of
from triplewire.model.terms import IRI, Literal


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

    def end_clause(self, variables: int) -> None:
        """The patterns and tests that were added last are a clause with so many variables."""
        self.pattern_offset.append(len(self.pattern) // 3)
        self.test_offset.append(len(self.test))
        self.variables.append(variables)

    def end(self, selected: int, flags: int) -> None:
        """The clauses that were added last are a subscription."""
        self.clause_offset.append(len(self.variables))
        self.selected.append(selected)
        self.flags.append(flags)

    def table(self) -> ClauseTable:
        """All of it."""
        columns = {field.name: getattr(self, field.name) for field in fields(ClauseTable)}
        arrays: dict[str, Any] = {name: np.array(values, values.typecode) for name, values in columns.items()}
        return ClauseTable(**{**arrays, "pattern": arrays["pattern"].reshape(-1, 3)})


Ids: TypeAlias = dict[Any, int]
"""From parameters, one or a tuple of several, to ids."""


@dataclass(frozen=True, slots=True)
class _TestGap:
    """The place of a test with parameters; `key` takes them from those of the text."""

    place: int
    key: Callable[[Parameters], Any]
    ids: Ids
    test: Test


@dataclass(slots=True)
class _Columns:
    """The columns of one subscription. `clauses`: the ends of patterns and tests, and the count of variables.

    Those of a template have gaps, `terms` and `test_gaps`. In a template of a `Conjunction`, variables are written with
    a question mark; `names` and `test_names` say where they stand.
    """

    clauses: list[tuple[int, int, int]]
    pattern: list[int]
    terms: list[tuple[int, int]]  # place and number of the parameter
    names: list[tuple[int, int | str]]  # place, and number of the parameter or variable
    test: list[int]
    test_variable: list[int]
    test_names: list[int | str]
    test_gaps: list[_TestGap]
    selected: int
    flags: int


_MANY = 1 << 14  # subscriptions for which it is worth the time to release small objects


class ClauseBuilder:
    """Collects subscriptions: one by its normal form, or many by template, by look-ups alone. `build` makes the clauses
    of them, numbered in the order in which they came."""

    def __init__(self) -> None:
        self._constants: dict[IRI | Literal, int] = {}
        self._tests = TestTable()
        self._table = GrowingTable()
        self._calls: dict[CallKey, int] = {}
        self._call_offset, self._call = array("i", [0]), array("i")
        self._columns: dict[Template, _Columns] = {}
        self._term_of_parameter = cache(lambda parameter: self._term(term_of(parameter)))
        self._words: Ids = {}

    def __len__(self) -> int:
        return len(self._table.flags)

    @property
    def is_full(self) -> bool:
        """Is there no room for a subscription? What one adds is little against what is left then."""
        rows = self._table
        return max(len(rows.variables), len(rows.pattern) // 3, len(rows.test)) >= table.MOST_ROWS

    def add(self, form: NormalForm, select: Sequence[str], ask: bool) -> None:
        """The next subscription. `select` names its selected variables, none of an ASK query. Raises `LimitError` where
        there is no room for it."""
        if self.is_full:
            raise too_many_rows()
        self._append(_Maker(self._term, self._tests, self._words).columns(form, select, ask))
        self._add_calls(form.asked)

    def add_from_template(self, template: AnyTemplate, parameters: Parameters, asked: Sequence[CallKey] = ()) -> None:
        """The next subscription, as `triplewire.languages.templates` found it: the same as `add`, and faster. `asked`:
        the calls that have to hold."""
        if self.is_full or isinstance(template, CallList):
            is_added = False
        elif isinstance(template, Conjunction):
            is_added = self._add_conjunction(template, parameters)
        else:
            self._append(self._filled_columns(template, parameters))
            is_added = True
        if is_added:
            self._add_calls(asked)
        else:
            self.add(template.normal_form(parameters), template.selected(parameters), template.ask)

    def _add_calls(self, calls: Iterable[CallKey]) -> None:
        """The next subscription needs these."""
        self._call.extend([self._calls.setdefault(key, len(self._calls)) for key in calls])
        self._call_offset.append(len(self._call))

    def _term(self, term: IRI | Literal) -> int:
        return self._constants.setdefault(term, len(self._constants))

    def build(self) -> Clauses:
        """The clauses of all that was added. The builder is spent then: it lets go of its objects before the arrays are
        made, so that their memory can be given back."""
        constants, specs, table = term_names(list(self._constants)), self._tests.specs(), self._table.table()
        asked = RequiredCalls.of(self._calls, self._call_offset, self._call)
        del self._calls, self._constants, self._tests, self._table, self._columns, self._term_of_parameter, self._words
        if len(table) >= _MANY:  # then whole arenas of Python's allocator become free (decision 025)
            gc.collect()
            # the type cache holds names as they were asked for: thousands of strings, each in an arena of its own
            (getattr(sys, "_clear_internal_caches", None) or sys._clear_type_cache)()
        return Clauses.of(constants, build(specs), table, asked)

    def _append(self, columns: _Columns) -> None:
        """Add a subscription whose columns have no gaps any more."""
        rows, pattern, test = self._table, columns.pattern, columns.test
        rows.pattern.extend(pattern)
        if test:
            rows.test.extend(test)
            rows.test_variable.extend(columns.test_variable)
        if len(columns.clauses) == 1:
            rows.end_clause(columns.clauses[0][2])
        else:
            patterns, tests = len(rows.pattern) - len(pattern), len(rows.test) - len(test)
            for last_pattern, last_test, variables in columns.clauses:
                rows.pattern_offset.append((patterns + last_pattern) // 3)
                rows.test_offset.append(tests + last_test)
                rows.variables.append(variables)
        rows.end(columns.selected, columns.flags)

    def _filled_columns(self, template: Template, parameters: Parameters) -> _Columns:
        """The columns of a template, with the ids of these parameters in the gaps."""
        columns = self._columns.get(template)
        if columns is None:
            maker = _Maker(self._term, self._tests, self._words, template)
            columns = self._columns[template] = maker.columns(template.example_form, template.select, template.ask)
        pattern, term = columns.pattern, self._term_of_parameter
        for place, number in columns.terms:
            pattern[place] = term(parameters[number])
        for gap in columns.test_gaps:
            key = gap.key(parameters)
            test = gap.ids.get(key)
            if test is None:
                test = gap.ids[key] = self._tests.add(replaced(gap.test, template.replacement(parameters)))
            columns.test[gap.place] = test
        return columns

    def _add_conjunction(self, conjunction: Conjunction, parameters: Parameters) -> bool:
        variables: dict[str, int] = {}  # name -> number, in order of appearance: all are selected
        pattern: list[int] = []
        tests: list[tuple[int, int]] = []
        flags = EXACT | DISTINCT
        for template, of_template in conjunction.parts(parameters):
            columns = self._filled_columns(template, of_template)
            for place, variable in columns.names:
                name = variable if isinstance(variable, str) else of_template[variable]
                columns.pattern[place] = -1 - variables.setdefault(name, len(variables))
            pattern += columns.pattern
            if columns.test:
                names = [name if isinstance(name, str) else of_template[name] for name in columns.test_names]
                tested = [variables[name] for name in names]
                tests += zip(tested, columns.test, strict=True)
            flags &= columns.flags | DISTINCT
        triples = set(zip(pattern[::3], pattern[1::3], pattern[2::3], strict=True))
        if 3 * len(triples) < len(pattern) or len(set(tests)) < len(tests):
            return False
        rows = self._table
        rows.pattern.extend(pattern)
        for number, test in tests:
            rows.test_variable.append(number)
            rows.test.append(test)
        rows.end_clause(len(variables))
        rows.end(len(variables), flags)
        return True


class _Maker:
    """Makes the columns of a subscription; of those of a template, with the gaps where its parameters go."""

    def __init__(
        self, term: Callable[[IRI | Literal], int], tests: TestTable, words: Ids, template: Template | None = None
    ) -> None:
        self._term = term
        self._tests = tests
        self._words = words
        self._has_variables = template is not None and template.has_variables
        self._numbers: dict[object, int] = {}  # node of the example -> number of the parameter that takes its place
        for number, placeholder in enumerate(template.placeholders if template is not None else ()):
            # nothing takes the place of a fixed one
            self._numbers |= dict.fromkeys(placeholder.replacement(placeholder.example), number)
        self._filled = _Columns([], [], [], [], [], [], [], [], 0, 0)

    def columns(self, form: NormalForm, selected: Sequence[str], ask: bool) -> _Columns:
        """All of them."""
        columns, distinct = self._filled, True
        selected = () if ask else tuple(dict.fromkeys(selected))
        for clause in form.clauses:
            variables = {name: number for number, name in enumerate(selected)}
            self._clause(clause, variables)
            distinct = distinct and len(variables) == len(selected)
            columns.clauses.append((len(columns.pattern), len(columns.test), len(variables)))
        columns.selected = len(selected)
        columns.flags = (EXACT if form.exact else 0) | (ASK if ask else 0) | (CALLS if form.calls else 0)
        columns.flags |= DISTINCT if distinct else 0
        return columns

    def _clause(self, clause: Clause, variables: dict[str, int]) -> None:
        columns = self._filled
        for pattern in clause.patterns:
            for position in pattern:
                place, number = len(columns.pattern), self._numbers.get(position)
                if isinstance(position, Variable):
                    if self._has_variables:
                        columns.names.append((place, f"?{position.name}" if number is None else number))
                    columns.pattern.append(-1 - variables.setdefault(position.name, len(variables)))
                elif number is None:
                    columns.pattern.append(self._term(position))
                else:
                    columns.terms.append((place, number))
                    columns.pattern.append(0)
        for name, test in clause.tests:
            columns.test_names.append(self._numbers.get(Variable(name), f"?{name}"))
            columns.test_variable.append(variables[name])
            self._test(test)

    def _test(self, test: Test) -> None:
        varying = [leaf for leaf in leaves(test) if leaf in self._numbers] if self._numbers else ()
        numbers = sorted({self._numbers[leaf] for leaf in varying})
        if not numbers:
            self._filled.test.append(self._tests.add(test))
            return
        is_word = isinstance(test, FullText) and test.variable == X and isinstance(test.expression, Word)
        gap = _TestGap(len(self._filled.test), itemgetter(*numbers), self._words if is_word else {}, test)
        self._filled.test_gaps.append(gap)
        self._filled.test.append(0)
