"""Subscriptions of known shapes, added to growing programs by look-ups alone.

Each shape (`triplewire.languages.shape`) becomes a template once: its columns, with holes where the ids of constants
go. Tables from constants, as written, to ids fill them; what they lack is made as for any other subscription.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeAlias

from triplewire.ir.evidence import Clause, Test, X
from triplewire.ir.nodes import FullText, Variable
from triplewire.ir.text import Word
from triplewire.languages.masks import Constants, term_of
from triplewire.languages.shape import VARIABLE, Composed, Shape, leaves, put
from triplewire.model.terms import IRI, Literal
from triplewire.select.growing import GrowingPrograms
from triplewire.select.programs import ASK, DISTINCT, EXACT
from triplewire.select.tests import TestTable

Ids: TypeAlias = dict[Any, int]
"""From constants, one or a tuple of several, to ids."""


@dataclass(frozen=True, slots=True)
class _TestHole:
    """A test with slots. `key` takes their constants from those of the text."""

    at: int
    key: Callable[[Constants], Any]
    ids: Ids
    test: Test


@dataclass(slots=True)
class _Template:
    """The columns of one subscription. `clauses`: the ends of patterns and tests, and the count of variables. In a part
    of a `Composed`, variables are written with a question mark: `names` and `test_names` say where."""

    clauses: list[tuple[int, int, int]]
    pattern: list[int]
    terms: list[tuple[int, int]]  # place and slot
    names: list[tuple[int, int | str]]  # place, and slot or variable
    test: list[int]
    test_variable: list[int]
    test_names: list[int | str]
    holes: list[_TestHole]
    selected: int
    flags: int


class ShapedRows:
    """Adds subscriptions to `rows`; `term` and `tests` give the ids of what is new."""

    def __init__(self, rows: GrowingPrograms, term: Callable[[IRI | Literal], int], tests: TestTable) -> None:
        self._rows = rows
        self._term = term
        self._tests = tests
        self._templates: dict[Shape, _Template] = {}
        self._terms = _Terms(term)
        self._words: Ids = {}

    def add(self, shape: Shape | Composed, constants: Constants) -> bool:
        """The next subscription; False where it has to be added by its evidence."""
        if isinstance(shape, Composed):
            return self._add_composed(shape, constants)
        template = self._templates.get(shape) or self._template(shape)
        self._fill(template, shape, constants)
        rows, pattern, test = self._rows, template.pattern, template.test
        rows.pattern.extend(pattern)
        if test:
            rows.test.extend(test)
            rows.test_variable.extend(template.test_variable)
        if len(template.clauses) == 1:
            rows.end_clause(template.clauses[0][2])
        else:
            patterns, tests = len(rows.pattern) - len(pattern), len(rows.test) - len(test)
            for last_pattern, last_test, variables in template.clauses:
                rows.pattern_offset.append((patterns + last_pattern) // 3)
                rows.test_offset.append(tests + last_test)
                rows.variables.append(variables)
        rows.end(template.selected, template.flags)
        return True

    def _template(self, shape: Shape) -> _Template:
        template = self._templates.get(shape)
        if template is None:
            template = self._templates[shape] = _Maker(shape, self._term, self._tests, self._words).template()
        return template

    def _fill(self, template: _Template, shape: Shape, constants: Constants) -> None:
        """Put the ids of these constants into the holes."""
        pattern, terms = template.pattern, self._terms
        for at, slot in template.terms:
            pattern[at] = terms[constants[slot]]
        for hole in template.holes:
            key = hole.key(constants)
            number = hole.ids.get(key)
            if number is None:
                number = hole.ids[key] = self._tests.add(put(hole.test, shape.replacement(constants)))
            template.test[hole.at] = number

    def _add_composed(self, composed: Composed, constants: Constants) -> bool:
        numbers: dict[str, int] = {}  # of variables, in order of appearance: all are selected
        pattern: list[int] = []
        tests: list[tuple[int, int]] = []
        flags = EXACT | DISTINCT
        for part, own in composed.pairs(constants):
            template = self._template(part)
            self._fill(template, part, own)
            for at, slot in template.names:
                name = slot if isinstance(slot, str) else own[slot]
                template.pattern[at] = -1 - numbers.setdefault(name, len(numbers))
            pattern += template.pattern
            if template.test:
                names = [numbers[slot if isinstance(slot, str) else own[slot]] for slot in template.test_names]
                tests += zip(names, template.test, strict=True)
            flags &= template.flags | DISTINCT
        triples = set(zip(pattern[::3], pattern[1::3], pattern[2::3], strict=True))
        if 3 * len(triples) < len(pattern) or len(set(tests)) < len(tests):
            return False
        rows = self._rows
        rows.pattern.extend(pattern)
        for variable, test in tests:
            rows.test_variable.append(variable)
            rows.test.append(test)
        rows.end_clause(len(numbers))
        rows.end(len(numbers), flags)
        return True


class _Terms(dict[str, int]):
    """Constant -> the id of its term."""

    def __init__(self, term: Callable[[IRI | Literal], int]) -> None:
        super().__init__()
        self._term = term

    def __missing__(self, constant: str) -> int:
        found = self[constant] = self._term(term_of(constant))
        return found


class _Maker:
    """Makes the template of a shape."""

    def __init__(self, shape: Shape, term: Callable[[IRI | Literal], int], tests: TestTable, words: Ids) -> None:
        self._shape = shape
        self._term = term
        self._tests = tests
        self._words = words
        self._slots = {node: n for n in shape.varying for node in shape.slots[n].replaced(shape.slots[n].placeholder)}
        self._named = any(slot.kind == VARIABLE for slot in shape.slots)
        self._made = _Template([], [], [], [], [], [], [], [], 0, 0)

    def template(self) -> _Template:
        """All of it."""
        shape, made = self._shape, self._made
        selected = () if shape.ask else tuple(dict.fromkeys(shape.select))
        distinct = True
        for clause in shape.evidence.clauses:
            variables = {name: number for number, name in enumerate(selected)}
            self._clause(clause, variables)
            distinct = distinct and len(variables) == len(selected)
            made.clauses.append((len(made.pattern), len(made.test), len(variables)))
        made.selected = len(selected)
        exact, ask = shape.evidence.exact, shape.ask
        made.flags = (EXACT if exact else 0) | (ASK if ask else 0) | (DISTINCT if distinct else 0)
        return made

    def _clause(self, clause: Clause, variables: dict[str, int]) -> None:
        made = self._made
        for pattern in clause.patterns:
            for position in pattern:
                at, slot = len(made.pattern), self._slots.get(position)
                if isinstance(position, Variable):
                    if self._named:
                        made.names.append((at, f"?{position.name}" if slot is None else slot))
                    made.pattern.append(-1 - variables.setdefault(position.name, len(variables)))
                elif slot is None:
                    made.pattern.append(self._term(position))
                else:
                    made.terms.append((at, slot))
                    made.pattern.append(0)
        for name, test in clause.tests:
            made.test_names.append(self._slots.get(Variable(name), f"?{name}"))
            made.test_variable.append(variables[name])
            self._test(test)

    def _test(self, test: Test) -> None:
        slots = sorted({self._slots[leaf] for leaf in leaves(test) if leaf in self._slots})
        if not slots:
            self._made.test.append(self._tests.add(test))
            return
        is_word = isinstance(test, FullText) and test.variable == X and isinstance(test.expression, Word)
        hole = _TestHole(len(self._made.test), itemgetter(*slots), self._words if is_word else {}, test)
        self._made.holes.append(hole)
        self._made.test.append(0)
