"""From subscriptions, one after the other, to clauses: `ClauseBuilder`."""

from __future__ import annotations

import gc
import sys
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
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
    RequiredCallsBuilder,
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

# --- growing ---------------------------------------------------------------------------------------------------------
# A clause table that grows: the columns of `triplewire.clauses.clauses`, subscription by subscription.


class GrowingTable:
    """The columns of `ClauseTable` as arrays that are extended. Offsets begin with 0."""

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

    def __len__(self) -> int:
        return len(self.flags)

    @property
    def is_full(self) -> bool:
        """Has it as many rows as it may have? What one subscription adds is little against what is left then."""
        return max(len(self.variables), len(self.pattern) // 3, len(self.test)) >= table.MOST_ROWS

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
        columns: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(ClauseTable)}
        columns = {name: np.array(values, values.typecode) for name, values in columns.items()}
        return ClauseTable(**{**columns, "pattern": columns["pattern"].reshape(-1, 3)})


# --- template rows ---------------------------------------------------------------------------------------------------
# Subscriptions added to a growing table: one by its normal form, or many by template, by look-ups alone.


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


class TemplateRows:
    """Adds subscriptions to `rows`. `term` and `tests` give the ids of what is new."""

    def __init__(self, rows: GrowingTable, term: Callable[[IRI | Literal], int], tests: TestTable) -> None:
        self._rows = rows
        self._term = term
        self._tests = tests
        self._columns: dict[Template, _Columns] = {}
        self._terms = _Terms(term)
        self._words: Ids = {}

    def add_form(self, form: NormalForm, selected: Sequence[str], ask: bool) -> None:
        """Add the next subscription, by its normal form."""
        self._append(_Maker(self._term, self._tests, self._words).columns(form, selected, ask))

    def add(self, template: Template | Conjunction, parameters: Parameters) -> bool:
        """Add the next subscription; False where it has to be added by its normal form."""
        if isinstance(template, Conjunction):
            return self._add_conjunction(template, parameters)
        columns = self._columns_of(template)
        self._fill(columns, template, parameters)
        self._append(columns)
        return True

    def _append(self, columns: _Columns) -> None:
        """Add a subscription whose columns have no gaps any more."""
        rows, pattern, test = self._rows, columns.pattern, columns.test
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

    def _columns_of(self, template: Template) -> _Columns:
        columns = self._columns.get(template)
        if columns is None:
            maker = _Maker(self._term, self._tests, self._words, template)
            selected = () if template.ask else tuple(dict.fromkeys(template.select))
            columns = maker.columns(template.example_form, selected, template.ask)
            self._columns[template] = columns
        return columns

    def _fill(self, columns: _Columns, template: Template, parameters: Parameters) -> None:
        """Put the ids of these parameters into the gaps."""
        pattern, terms = columns.pattern, self._terms
        for place, number in columns.terms:
            pattern[place] = terms[parameters[number]]
        for gap in columns.test_gaps:
            key = gap.key(parameters)
            test = gap.ids.get(key)
            if test is None:
                test = gap.ids[key] = self._tests.add(replaced(gap.test, template.replacement(parameters)))
            columns.test[gap.place] = test

    def _add_conjunction(self, conjunction: Conjunction, parameters: Parameters) -> bool:
        variables: dict[str, int] = {}  # name -> number, in order of appearance: all are selected
        pattern: list[int] = []
        tests: list[tuple[int, int]] = []
        flags = EXACT | DISTINCT
        for template, own in conjunction.parts(parameters):
            columns = self._columns_of(template)
            self._fill(columns, template, own)
            for place, variable in columns.names:
                name = variable if isinstance(variable, str) else own[variable]
                columns.pattern[place] = -1 - variables.setdefault(name, len(variables))
            pattern += columns.pattern
            if columns.test:
                tested = [variables[name if isinstance(name, str) else own[name]] for name in columns.test_names]
                tests += zip(tested, columns.test, strict=True)
            flags &= columns.flags | DISTINCT
        triples = set(zip(pattern[::3], pattern[1::3], pattern[2::3], strict=True))
        if 3 * len(triples) < len(pattern) or len(set(tests)) < len(tests):
            return False
        rows = self._rows
        rows.pattern.extend(pattern)
        for number, test in tests:
            rows.test_variable.append(number)
            rows.test.append(test)
        rows.end_clause(len(variables))
        rows.end(len(variables), flags)
        return True


class _Terms(dict[str, int]):
    """A cache from parameters to the ids of their terms."""

    def __init__(self, term: Callable[[IRI | Literal], int]) -> None:
        super().__init__()
        self._term = term

    def __missing__(self, parameter: str) -> int:
        number = self[parameter] = self._term(term_of(parameter))
        return number


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
        if template is not None:
            placeholders = {number: template.placeholders[number] for number in template.varying}
            for number, placeholder in placeholders.items():
                self._numbers |= dict.fromkeys(placeholder.replacement(placeholder.example), number)
        self._made = _Columns([], [], [], [], [], [], [], [], 0, 0)

    def columns(self, form: NormalForm, selected: Sequence[str], ask: bool) -> _Columns:
        """All of them."""
        made, distinct = self._made, True
        for clause in form.clauses:
            variables = {name: number for number, name in enumerate(selected)}
            self._clause(clause, variables)
            distinct = distinct and len(variables) == len(selected)
            made.clauses.append((len(made.pattern), len(made.test), len(variables)))
        made.selected = len(selected)
        made.flags = (EXACT if form.exact else 0) | (ASK if ask else 0) | (CALLS if form.calls else 0)
        made.flags |= DISTINCT if distinct else 0
        return made

    def _clause(self, clause: Clause, variables: dict[str, int]) -> None:
        made = self._made
        for pattern in clause.patterns:
            for position in pattern:
                place, number = len(made.pattern), self._numbers.get(position)
                if isinstance(position, Variable):
                    if self._has_variables:
                        made.names.append((place, f"?{position.name}" if number is None else number))
                    made.pattern.append(-1 - variables.setdefault(position.name, len(variables)))
                elif number is None:
                    made.pattern.append(self._term(position))
                else:
                    made.terms.append((place, number))
                    made.pattern.append(0)
        for name, test in clause.tests:
            made.test_names.append(self._numbers.get(Variable(name), f"?{name}"))
            made.test_variable.append(variables[name])
            self._test(test)

    def _test(self, test: Test) -> None:
        varying = [leaf for leaf in leaves(test) if leaf in self._numbers] if self._numbers else ()
        numbers = sorted({self._numbers[leaf] for leaf in varying})
        if not numbers:
            self._made.test.append(self._tests.add(test))
            return
        is_word = isinstance(test, FullText) and test.variable == X and isinstance(test.expression, Word)
        gap = _TestGap(len(self._made.test), itemgetter(*numbers), self._words if is_word else {}, test)
        self._made.test_gaps.append(gap)
        self._made.test.append(0)


# --- builder ------------------------------------------------------------


_MANY = 1 << 14  # subscriptions for which it is worth the time to release small objects


class ClauseBuilder:
    """Collects subscriptions. `build` makes the clauses of them, numbered in the order in which they came."""

    def __init__(self) -> None:
        self._constants: dict[IRI | Literal, int] = {}
        self._tests = TestTable()
        self._table = GrowingTable()
        self._asked = RequiredCallsBuilder()
        self._rows = TemplateRows(self._table, self._constant, self._tests)

    def __len__(self) -> int:
        return len(self._table)

    @property
    def is_full(self) -> bool:
        """Is there no room for a subscription?"""
        return self._table.is_full

    def add(self, form: NormalForm, select: Sequence[str], ask: bool) -> None:
        """The next subscription. `select` names its selected variables, none of an ASK query. Raises `LimitError` where
        there is no room for it."""
        if self.is_full:
            raise too_many_rows()
        self._rows.add_form(form, () if ask else tuple(dict.fromkeys(select)), ask)
        self._asked.add(form.asked)

    def add_from_template(self, template: AnyTemplate, parameters: Parameters, asked: Sequence[CallKey] = ()) -> None:
        """The next subscription, as `triplewire.languages.templates` found it: the same as `add`, and faster. `asked`:
        the calls that have to hold."""
        if self.is_full or isinstance(template, CallList) or not self._rows.add(template, parameters):
            self.add(template.normal_form(parameters), template.selected(parameters), template.ask)
        else:
            self._asked.add(asked)

    def _constant(self, term: IRI | Literal) -> int:
        return self._constants.setdefault(term, len(self._constants))

    def build(self) -> Clauses:
        """The clauses of all that was added. The builder is spent then: it lets go of its objects before the arrays are
        made, so that their memory can be given back."""
        constants, specs, table = term_names(list(self._constants)), self._tests.specs(), self._table.table()
        asked = self._asked.build()
        del self._constants, self._tests, self._table, self._rows
        if len(table) >= _MANY:
            _release_small_objects()
        return Clauses.of(constants, build(specs), table, asked)


def _release_small_objects() -> None:
    """Drop objects that nobody needs, so that whole arenas of Python's allocator are free (decision 025).

    The interpreter's type cache holds names as they were asked for: thousands of strings, each in an arena of its own.
    """
    gc.collect()
    clear = getattr(sys, "_clear_internal_caches", None) or sys._clear_type_cache
    clear()
