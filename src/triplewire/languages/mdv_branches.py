"""From a branch of an MDV rule (a conjunction of comparisons) to the intermediate form.

A path step becomes a pattern with a hidden variable. Within one branch the same path, however often it is written and
with or without `?`, is the same variable; `path = variable` makes both one. How a rule is read: `languages.mdv`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from triplewire.ir.nodes import (
    AllOf,
    And,
    Coercion,
    Compare,
    Expression,
    Filter,
    Function,
    Negate,
    Pattern,
    TextRelation,
    TextTest,
    Variable,
    Where,
)
from triplewire.ir.subscription import Subscription
from triplewire.ir.walk import walk
from triplewire.languages.conditions import FLIPPED
from triplewire.model.terms import IRI, Literal

CONTAINS = "contains"


@dataclass(frozen=True, slots=True)
class Path:
    """A variable of the search clause and the properties that lead on from it."""

    variable: str
    steps: tuple[IRI, ...] = ()


Side: TypeAlias = Path | IRI | Literal


@dataclass(frozen=True, slots=True)
class Test:
    """A comparison. `op` is one of = != < <= > >= contains, a negation already worked in; `negated` is for contains."""

    op: str
    left: Side
    right: Side
    negated: bool = False


def inline(rule: Subscription, variable: Variable, fresh: str) -> tuple[Where, ...]:
    """The parts of another rule that make `variable` what that rule registers; its other variables become hidden ones,
    whose names begin with `fresh`."""
    (registered,) = rule.select
    names: dict[Variable, Variable] = {Variable(registered): variable}
    for node in walk(rule.where):
        if isinstance(node, Variable):
            names.setdefault(node, Variable(f"{fresh}{len(names)}"))
    where = _renamed(rule.where, names)
    return where.parts if isinstance(where, And) else (where,)


def compile_branch(
    registered: str, variables: frozenset[str], searched: tuple[Where, ...], tests: Iterable[Test]
) -> And:
    """One branch: what the search clause asks, then the paths, then the conditions."""
    return _Branch(registered, variables).compile(searched, tests)


class _Branch:
    def __init__(self, registered: str, variables: frozenset[str]) -> None:
        self._registered = registered
        self._variables = variables
        self._steps: dict[tuple[Variable, IRI], Variable] = {}
        self._same: dict[Variable, Variable] = {}  # a variable and another that is the same

    def compile(self, searched: tuple[Where, ...], tests: Iterable[Test]) -> And:
        filters = [found for test in tests if (found := self._condition(test)) is not None]
        paths = [Pattern(start, step, end) for (start, step), end in self._steps.items()]
        parts: list[Where] = [*searched, *paths, *filters]
        if self._same:
            names = {variable: self._root(variable) for variable in self._same}
            parts = [_renamed(part, names) for part in parts]
        return And(tuple(dict.fromkeys(parts)))

    def _condition(self, test: Test) -> Filter | None:
        left, right = self._value(test.left), self._value(test.right)
        if test.op == CONTAINS:
            return Filter(_contains(left, right, test.negated))
        if isinstance(left, Variable) and isinstance(right, Variable) and test.op == "=":
            resource = self._variables & {left.name, right.name}
            if resource:
                self._join(left, right)
                return None
        if isinstance(left, Variable):
            return Filter(Compare(test.op, left, right, Coercion.LENIENT))
        return Filter(Compare(FLIPPED[test.op], right, left, Coercion.LENIENT))

    def _value(self, side: Side) -> Variable | IRI | Literal:
        """The constant, or the variable at the end of the path."""
        if not isinstance(side, Path):
            return side
        at = Variable(side.variable)
        for step in side.steps:
            at = self._steps.setdefault((at, step), Variable(f".{len(self._steps) + 1}"))
        return at

    def _join(self, one: Variable, other: Variable) -> None:
        """From here on both are one variable: the registered one, else one of the search clause, else a hidden one."""
        kept, gone = sorted((self._root(one), self._root(other)), key=self._rank)
        if kept != gone:
            self._same[gone] = kept

    def _rank(self, variable: Variable) -> tuple[bool, bool]:
        return variable.name != self._registered, variable.hidden

    def _root(self, variable: Variable) -> Variable:
        while variable in self._same:
            variable = self._same[variable]
        return variable


def _contains(left: Variable | IRI | Literal, right: Variable | IRI | Literal, negated: bool) -> Expression:
    if isinstance(left, Variable) and isinstance(right, Literal):
        return TextTest(TextRelation.CONTAINS, left, right.lexical, negated)
    sides = (left, right)
    literals = [Function("ISLITERAL", (side,)) for side in sides if isinstance(side, Variable)]
    texts = (Function("STR", (side,)) if isinstance(side, Variable) else side for side in sides)
    found = Function("CONTAINS", tuple(texts))
    return AllOf((*literals, Negate(found) if negated else found))


def _renamed(node: Any, names: Mapping[Variable, Variable]) -> Any:
    """The tree with other variables."""
    if isinstance(node, Variable):
        return names.get(node, node)
    if isinstance(node, tuple):
        return tuple(_renamed(part, names) for part in node)
    if not dataclasses.is_dataclass(node) or isinstance(node, type | IRI | Literal):
        return node
    changes = {field.name: _renamed(getattr(node, field.name), names) for field in dataclasses.fields(node)}
    return type(node)(**changes)
