"""From templates and parameters to rows of clauses, for many subscriptions at once: `TemplateRows`.

Parameters become ids, each once; a kernel writes the rows (`triplewire.clauses.kernels.filling`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.clauses import ASK, CALLS, DISTINCT, EXACT
from triplewire.clauses.kernels import filling as kernels
from triplewire.clauses.kernels.filling import ASKED, LISTED, NAME, STAR, TERM
from triplewire.clauses.node_tests.postings import postings
from triplewire.clauses.node_tests.table import TestTable, spec_of
from triplewire.encode.batch import IRI_KIND as IRI_NODE
from triplewire.encode.names import key_of
from triplewire.ir.nodes import FullText, Variable, Word
from triplewire.ir.normal_form import Clause, NormalForm, Test, X
from triplewire.languages.templates import MOST_TEMPLATES, TextForms
from triplewire.languages.templates.splitting import with_room
from triplewire.languages.templates.template import (
    IRI_KIND,
    NUMBER,
    TEXT,
    Placeholder,
    Replacement,
    Template,
    content,
    leaves,
    replaced,
    term_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from triplewire.encode.names import TermKey

Ids: TypeAlias = NDArray[np.int32]


_SUBSTITUTED = (IRI_KIND, NUMBER, TEXT)
"""Kinds of parameters that stand in the postings of a test as they are, whatever they are: no IRI is a number or date,
each number is one, and a text that is searched for is no pattern."""


@dataclass
class _Gap:
    """A test with parameters; `numbers`: theirs in the part. `tests`: by parameter, or by several, those that were made
    already. `around`: the postings around the only parameter, where only that differs."""

    test: Test
    numbers: tuple[int, ...]
    placeholders: tuple[Placeholder, ...]
    is_word: bool
    tests: dict[int | tuple[int, ...], int]

    @cached_property
    def around(self) -> tuple[bytes, bytes] | None:
        """From the test with the example."""
        test_postings = postings(self.test)
        if len(self.placeholders) > 1 or self.placeholders[0].kind not in _SUBSTITUTED or not test_postings:
            return None
        before, example, after = spec_of(test_postings).partition(_in_json(self.placeholders[0].example))
        return None if not example or example in after else (before, after)

    def filled(self, parameters: Iterable[str]) -> Test:
        """The test with these parameters."""
        replacement: Replacement = {}
        for placeholder, parameter in zip(self.placeholders, parameters, strict=True):
            replacement |= placeholder.replacement(parameter)
        return replaced(self.test, replacement)


@dataclass
class Columns:
    """The columns of one subscription, or of a template, with gaps. `clauses`: the ends of patterns and tests, and the
    count of variables. In a template with variables as parameters, all variables are gaps."""

    clauses: list[tuple[int, int, int]] = field(default_factory=list)
    pattern: list[int] = field(default_factory=list)
    terms: set[int] = field(default_factory=set)  # numbers of the parameters that are terms of patterns
    test: list[int] = field(default_factory=list)  # -1 - n for the gap n
    test_variable: list[int] = field(default_factory=list)
    gaps: list[_Gap] = field(default_factory=list)
    selected: int = 0
    flags: int = 0


class ColumnMaker:
    """Makes the columns of a subscription, or of a template."""

    def __init__(self, constant: Callable[[TermKey], int], tests: TestTable, template: Template | None = None) -> None:
        self._constant, self._tests = constant, tests
        self._has_names = template is not None and template.has_variables
        self._numbers: dict[object, int] = {}  # node of the example -> number of the parameter that takes its place
        self._placeholders = template.placeholders if template is not None else ()
        for number, placeholder in enumerate(self._placeholders):
            # nothing takes the place of a fixed one
            for node in placeholder.replacement(placeholder.example):
                self._numbers.setdefault(node, number)
        self._columns = Columns()

    def columns(self, form: NormalForm, selected: Sequence[str], ask: bool) -> Columns:
        """All of them."""
        columns, distinct = self._columns, True
        selected = () if ask else tuple(dict.fromkeys(selected))
        for clause in form.clauses:
            variables = {name: number for number, name in enumerate(selected)}
            self._clause(clause, variables)
            distinct = distinct and len(variables) == len(selected)
            columns.clauses.append((len(columns.pattern) // 3, len(columns.test), len(variables)))
        columns.selected = len(selected)
        columns.flags = (EXACT if form.exact else 0) | (ASK if ask else 0) | (CALLS if form.calls else 0)
        columns.flags |= DISTINCT if distinct else 0
        return columns

    def _clause(self, clause: Clause, variables: dict[str, int]) -> None:
        columns = self._columns
        for pattern in clause.patterns:
            for position in pattern:
                number = self._numbers.get(position)
                if isinstance(position, Variable):
                    if self._has_names:
                        columns.pattern.append(NAME if number is None else NAME - 1 - number)
                    else:
                        columns.pattern.append(-1 - variables.setdefault(position.name, len(variables)))
                elif number is None:
                    columns.pattern.append(self._constant(key_of(position)))
                else:
                    columns.terms.add(number)
                    columns.pattern.append(TERM - 1 - number)
        for name, test in clause.tests:
            variable = NAME - 1 - self._numbers[Variable(name)] if self._has_names else variables[name]
            columns.test_variable.append(variable)
            columns.test.append(self._test(test))

    def _test(self, test: Test) -> int:
        varying = [leaf for leaf in leaves(test) if leaf in self._numbers] if self._numbers else ()
        numbers = sorted({self._numbers[leaf] for leaf in varying})
        if not numbers:
            return self._tests.add(test)
        is_word = isinstance(test, FullText) and test.variable == X and isinstance(test.expression, Word)
        placeholders = tuple([self._placeholders[number] for number in numbers])
        self._columns.gaps.append(_Gap(test, tuple(numbers), placeholders, is_word, {}))
        return -len(self._columns.gaps)


def _in_json(parameter: str) -> bytes:
    """What is written between the delimiters of a parameter, as a string of JSON."""
    return encode_basestring_ascii(content(parameter)).encode()


def _key_of_parameter(parameter: str) -> TermKey:
    """The key of `term_of(parameter)`, for an IRI without that term."""
    return (IRI_NODE, parameter[1:-1], "") if parameter[0] == "<" else key_of(term_of(parameter))


class TemplateRows:
    """Fills the rows of the subscriptions of templates. For one thread at a time."""

    def __init__(self, constant: Callable[[TermKey], int], tests: TestTable) -> None:
        self._constant, self._tests = constant, tests
        self._columns: dict[Template, Columns] = {}
        self._term_of_parameter = np.zeros(0, np.int32)  # 0 where it is not known, else 1 more
        self._tests_of_words: dict[int | tuple[int, ...], int] = {}  # by parameter, for all templates

    def batch(self, forms: TextForms) -> Batch:
        """The rows of these subscriptions, to be written."""
        if len(self._columns) > MOST_TEMPLATES:
            self._columns.clear()
        is_head = forms.is_head
        used, which = np.unique(forms.template[~is_head], return_inverse=True)
        template = forms.template.copy()
        template[~is_head] = which
        kinds = [ASKED if head.ask else LISTED if head.names else STAR for head in forms.heads]
        template[is_head] = np.array(kinds, np.int32)[template[is_head]]
        columns = [self._columns_of(forms.templates[number]) for number in used.tolist()]
        parts = np.flatnonzero(~is_head)
        order = np.argsort(which, kind="stable")
        groups = np.split(parts[order], np.cumsum(np.bincount(which, minlength=len(used))))[: len(used)]
        self._make_terms(forms, columns, groups)
        gap_count = np.zeros(len(template) + 1, np.int64)
        gap_count[1:][parts] = np.array([len(its.gaps) for its in columns], np.int64)[which] if len(parts) else 0
        gap_offset = np.cumsum(gap_count)
        gap_value = np.zeros(gap_offset[-1] + 1, np.int32)
        for its, its_parts in zip(columns, groups, strict=True):
            for number, gap in enumerate(its.gaps):
                gap_value[gap_offset[its_parts] + number] = self._tests_of(forms, gap, its_parts)
        return Batch(
            kernels.Parts(
                forms.first,
                forms.last,
                forms.is_joined,
                template,
                forms.parameter_offset,
                forms.parameter,
                self._term_of_parameter - 1,
                gap_offset,
                gap_value,
            ),
            _tables(columns),
            _room(columns, which, len(forms.first), len(forms.parameter)),
        )

    def _columns_of(self, template: Template) -> Columns:
        columns = self._columns.get(template)
        if columns is None:
            maker = ColumnMaker(self._constant, self._tests, template)
            columns = self._columns[template] = maker.columns(template.example_form, template.select, template.ask)
        return columns

    def _make_terms(self, forms: TextForms, columns: Iterable[Columns], groups: Iterable[NDArray[np.int64]]) -> None:
        """The ids of all parameters that stand for terms of patterns."""
        self._term_of_parameter = with_room(self._term_of_parameter, len(forms.parameters))
        used = [
            forms.parameter[forms.parameter_offset[parts] + number]
            for its, parts in zip(columns, groups, strict=True)
            for number in its.terms
        ]
        wanted = np.concatenate(used) if used else np.zeros(0, np.int32)
        new = np.unique(wanted[self._term_of_parameter[wanted] == 0])
        text = forms.parameters.text
        self._term_of_parameter[new] = [1 + self._constant(_key_of_parameter(text(number))) for number in new.tolist()]

    def _tests_of(self, forms: TextForms, gap: _Gap, parts: NDArray[np.int64]) -> Ids:
        """The numbers of the tests of a gap in some parts."""
        columns = [forms.parameter[forms.parameter_offset[parts] + number].tolist() for number in gap.numbers]
        keys = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
        tests = self._tests_of_words if gap.is_word else gap.tests
        for key in keys:
            if key not in tests:
                numbers = (key,) if isinstance(key, int) else key
                tests[key] = self._made(gap, [forms.parameters.text(number) for number in numbers])
        return np.array([tests[key] for key in keys], np.int32)

    def _made(self, gap: _Gap, parameters: Sequence[str]) -> int:
        """The test of a gap with these parameters."""
        if gap.is_word:
            return self._tests.word(content(parameters[0]))
        if gap.around is not None:
            return self._tests.add_spec(_in_json(parameters[0]).join(gap.around))
        return self._tests.add(gap.filled(parameters))


@dataclass
class Batch:
    """The rows of some subscriptions. `count`: how much of `rows` the last `write` has written, by kind."""

    parts: kernels.Parts
    tables: kernels.TemplateTables
    rows: kernels.Rows
    count: Ids = field(default_factory=lambda: np.zeros(kernels.STATE, np.int64))

    def write(self, row: int, room: int) -> int:
        """Write the rows of subscriptions from this one on, to the first one that has none by template, or for which
        there is no room; returns which that is. `room`: clauses, patterns or tests."""
        end: int = kernels.fill(row, self.parts, self.tables, room, self.rows, self.count)
        return end

    def names(self) -> tuple[Ids, Ids]:
        """The parameters that are the selected variables of what was written, and the slices by subscription."""
        return self.rows.names, self.rows.names_offset[: self.count[kernels.ROWS] + 1]


def _tables(columns: Sequence[Columns]) -> kernels.TemplateTables:
    """The columns of some templates, one behind the other."""
    clauses = [clause for its in columns for clause in its.clauses]

    def ends(lengths: Iterable[int]) -> Ids:
        return np.cumsum([0, *lengths]).astype(np.int32)

    def flat(rows: Iterable[Sequence[int]]) -> Ids:
        return np.array([number for row in rows for number in row], np.int32)

    return kernels.TemplateTables(
        ends(len(its.clauses) for its in columns),
        np.array([patterns for patterns, _, _ in clauses], np.int32),
        np.array([tests for _, tests, _ in clauses], np.int32),
        np.array([variables for _, _, variables in clauses], np.int32),
        ends(len(its.pattern) // 3 for its in columns),
        flat(its.pattern for its in columns),
        ends(len(its.test) for its in columns),
        flat(its.test for its in columns),
        flat(its.test_variable for its in columns),
        np.array([its.selected for its in columns], np.int32),
        np.array([its.flags for its in columns], np.uint8),
    )


def _room(columns: Sequence[Columns], used: NDArray[np.int64], count: int, parameters: int) -> kernels.Rows:
    """Room for the rows of so many subscriptions, with these templates and so many parameters."""
    times = np.bincount(used, minlength=len(columns))

    def of(sizes: Iterable[int]) -> int:
        return int(times @ np.array([*sizes], np.int64)) if len(columns) else 0

    clauses = of(len(its.clauses) for its in columns) + count
    patterns, tests = of(len(its.pattern) for its in columns) + 3, of(len(its.test) for its in columns) + 1
    return kernels.Rows(
        np.empty(count + 1, np.int32),
        np.empty(clauses + 1, np.int32),
        np.empty(patterns, np.int32),
        np.empty(clauses + 1, np.int32),
        np.empty(tests, np.int32),
        np.empty(tests, np.int32),
        np.empty(clauses, np.int32),
        np.empty(count, np.int32),
        np.empty(count, np.uint8),
        np.empty(count + 1, np.int32),
        np.empty(parameters + kernels.MOST_VARIABLES, np.int32),
    )
