"""From an MDV rule to its tree, the intermediate form: each branch is a conjunction of comparisons.

A path step becomes a pattern with a hidden variable. A comparison holds if some value at the end of its path satisfies
it, so that each comparison has an end of its own: `c.set = 2 and c.set = 3` asks for two values. A resource that some
path of the branch goes on from is one for all (`c.at.lat > 42 and c.at.long < 19` asks for one `at`), also where a
comparison is about that resource itself (`c.at = <x> and c.at.lat > 4`). `path = variable` makes the variable the end
of the path. A `?` changes none of this. How a rule is read: `languages.mdv`.
"""

from __future__ import annotations

from itertools import chain
from typing import TypeAlias

from triplewire.errors import LimitError
from triplewire.ir.nodes import (
    AllOf,
    And,
    Coercion,
    Compare,
    Expression,
    Filter,
    Function,
    Negate,
    Or,
    Pattern,
    TextRelation,
    TextTest,
    Variable,
    Where,
)
from triplewire.ir.subscription import Subscription
from triplewire.ir.walk import rewrite, walk
from triplewire.languages.context import Context
from triplewire.languages.grammar.conditions import FLIPPED
from triplewire.languages.mdv.form import CONTAINS, Path, Rule, Side, Test
from triplewire.model.terms import IRI, RDF_TYPE, Literal

Place: TypeAlias = str | int
"""Where paths with the same steps from the same variable meet: the variable's name, or a number."""


def where_of(rule: Rule, context: Context) -> Where:
    """What a rule asks, as a tree. Raises `LimitError` past `max_patterns`."""
    searched = _searched(rule, context)
    branches = tuple(_Branch(rule.registered).compile(searched, tests) for tests in rule.branches)
    return branches[0] if len(branches) == 1 else Or(branches)


def _searched(rule: Rule, context: Context) -> tuple[Where, ...]:
    """What the search clause asks: classes as types, rules as their own conditions."""
    limit, patterns = context.settings.max_patterns, 0
    parts: list[Where] = []
    for place, (name, meaning) in enumerate(rule.variables.items(), 1):
        if isinstance(meaning, IRI):
            parts.append(Pattern(Variable(name), RDF_TYPE, meaning))
        else:
            patterns += sum(isinstance(node, Pattern) for node in walk(meaning.where)) - 1
            parts += _inlined(meaning, Variable(name), f".{place}.")
        patterns += 1
        if patterns > limit:
            raise LimitError(
                f"the rule and those that it names have more than {limit} patterns",
                source=context.source,
                remedy="raise max_patterns",
            )
    return tuple(parts)


def _inlined(rule: Subscription, variable: Variable, fresh: str) -> tuple[Where, ...]:
    """The parts of another rule in which `variable` stands for what that rule registers.

    Its other variables become hidden ones, whose names begin with `fresh`."""
    (registered,) = rule.select
    names: dict[Variable, Variable] = {Variable(registered): variable}
    for node in walk(rule.where):
        if isinstance(node, Variable):
            names.setdefault(node, Variable(f"{fresh}{len(names)}"))
    where = rewrite(rule.where, (Variable,), names.__getitem__)
    return where.parts if isinstance(where, And) else (where,)


class _Branch:
    def __init__(self, registered: str) -> None:
        self._registered = registered
        self._places: dict[tuple[Place, IRI], Place] = {}  # where a step leads from a place
        self._middle: set[Place] = set()  # places that some path goes on from
        self._shared: dict[Place, Variable] = {}  # the resources there
        self._patterns: list[Pattern] = []
        self._count = 0  # hidden variables made
        self._same: dict[Variable, Variable] = {}  # a variable and another that is the same

    def compile(self, searched: tuple[Where, ...], tests: tuple[Test, ...]) -> And:
        """One branch: what the search clause asks, then the paths, then the conditions."""
        for path in chain.from_iterable(test.paths for test in tests):
            self._walk(path)
        filters = [condition for test in tests if (condition := self._condition(test)) is not None]
        parts: list[Where] = [*searched, *self._patterns, *filters]
        if self._same:
            names = {variable: self._root(variable) for variable in self._same}
            parts = [rewrite(part, (Variable,), lambda variable: names.get(variable, variable)) for part in parts]
        return And(tuple(dict.fromkeys(parts)))

    def _walk(self, path: Path) -> None:
        """Note the places along a path."""
        place: Place = path.variable
        for position, step in enumerate(path.steps):
            if position:
                self._middle.add(place)
            place = self._places.setdefault((place, step.property), len(self._places))

    def _condition(self, test: Test) -> Filter | None:
        if test.op == "=" and isinstance(test.left, Path) and isinstance(test.right, Path):
            path, resource = (test.left, test.right) if test.left.steps else (test.right, test.left)
            if not resource.steps:
                self._equate(path, Variable(resource.variable))
                return None
        left, right = self._value(test.left), self._value(test.right)
        if test.op == CONTAINS:
            return Filter(_contains(left, right, test.negated))
        if isinstance(left, Variable):
            return Filter(Compare(test.op, left, right, Coercion.LENIENT))
        return Filter(Compare(FLIPPED[test.op], right, left, Coercion.LENIENT))

    def _value(self, side: Side) -> Variable | IRI | Literal:
        """The constant, or the variable at the end of the path."""
        return self._end(side) if isinstance(side, Path) else side

    def _end(self, path: Path, end: Variable | None = None) -> Variable:
        """The variable at the end of the path: the shared one, else `end`, else a new one."""
        at = Variable(path.variable)
        place: Place = path.variable
        for step in path.steps:
            place = self._places[place, step.property]
            following = self._shared.get(place)
            if following is None:
                following = end if end is not None and place not in self._middle else self._hidden()
                self._patterns.append(Pattern(at, step.property, following))
                if place in self._middle:
                    self._shared[place] = following
            at = following
        return at

    def _hidden(self) -> Variable:
        self._count += 1
        return Variable(f".{self._count}")

    def _equate(self, path: Path, resource: Variable) -> None:
        end = self._end(path, resource)
        if end != resource:
            self._join(end, resource)

    def _join(self, first: Variable, second: Variable) -> None:
        """Make two variables one: the registered one, else one of the search clause, else a hidden one."""
        representative, other_name = sorted((self._root(first), self._root(second)), key=self._rank)
        if representative != other_name:
            self._same[other_name] = representative

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
    texts: list[Expression] = []
    for side in sides:  # a constant is read by its text, quoted or not
        texts.append(Literal(side.lexical) if isinstance(side, Literal) else Function("STR", (side,)))
    contains = Function("CONTAINS", tuple(texts))
    return AllOf((*literals, Negate(contains) if negated else contains))
