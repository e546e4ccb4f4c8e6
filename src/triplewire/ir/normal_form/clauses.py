"""Subscriptions in disjunctive normal form: clauses of triple patterns and tests on single nodes.

A clause is a conjunction. A subscription needs at least one of its clauses. The index (`triplewire.select`) finds
clauses whose parts are there; where `exact` holds, that is all there is to the subscription, else
`triplewire.ir.evaluation.evaluate` decides. A call of an operator may be true: it adds no clause and takes none
away. How conditions become tests: `triplewire.ir.normal_form.conditions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple, TypeAlias, TypeVar

from triplewire.ir.evaluation.unknown import CallKey
from triplewire.ir.nodes import (
    And,
    AnyOf,
    Expression,
    Filter,
    Function,
    Label,
    Or,
    Pattern,
    PatternTerm,
    Values,
    Variable,
    Where,
)
from triplewire.ir.normal_form.calls import split
from triplewire.ir.normal_form.conditions import Alternatives, Necessary, Test, Tests, common
from triplewire.ir.subscription import Subscription
from triplewire.ir.walk import calls_in
from triplewire.model.terms import IRI, Literal

T = TypeVar("T")
Position: TypeAlias = IRI | Literal | Variable


@dataclass(frozen=True, slots=True)
class Clause:
    """Patterns that must have a common solution, in which each test holds of the value of its variable.

    Wildcards and labels are variables of their own here (their names start with "*"); every tested variable stands in
    a pattern.
    """

    patterns: tuple[tuple[Position, Position, Position], ...]
    tests: tuple[tuple[str, Test], ...]


@dataclass(frozen=True, slots=True)
class NormalForm:
    """The clauses of a subscription. `exact`: its solutions are those of its clauses, no more and no fewer. `calls`:
    operators decide in the end. `asked`: the calls that have to hold, where those and the clauses are all there is to
    it; where calls are all there is to it, there is no clause."""

    clauses: tuple[Clause, ...]
    exact: bool
    calls: bool = False
    asked: tuple[CallKey, ...] = ()


def normal_form(subscription: Subscription, *, most: int) -> NormalForm:
    """The clauses of the subscription, at most `most` of them: past that, they keep what they have in common."""
    calls = any(True for _ in calls_in(subscription.where))
    normal, where = _Normal(max(most, 1)), subscription.where
    asked: tuple[CallKey, ...] = ()
    try:
        if calls:
            asked, where = split(where)
        if asked and isinstance(where, And) and not where.parts:
            return NormalForm((), False, True, asked)
        branches = normal.group(where)
    except RecursionError:  # only where max_query_depth was raised past what Python can hold
        return NormalForm((Clause((), ()),), False, calls)
    clauses = _distinct([_clause(branch) for branch in branches])
    # a clause without patterns binds nothing, so there is nothing to look for
    exact = normal.exact and all(clause.patterns for clause in clauses)
    return NormalForm(clauses, exact and not calls, calls, asked if exact else ())


# --- clauses -----------------------------------------------------------------------------------------------------


class _Branch(NamedTuple):
    """A conjunction. `bound`: the variables that each of its solutions binds. `given`: values that inline data has."""

    patterns: tuple[Pattern, ...]
    bound: frozenset[str]
    tests: Tests
    given: tuple[tuple[str, IRI | Literal], ...] = ()


_EMPTY = _Branch((), frozenset(), ())
_MOST_ROWS = 16  # of inline data that become branches


def _clause(branch: _Branch) -> Clause:
    given = dict(branch.given)
    tests = [test for test in branch.tests if test[0] not in given] if given else list(branch.tests)
    fresh = 0

    def position(term: PatternTerm) -> Position:
        nonlocal fresh
        kind = type(term)
        if kind is Variable:
            return given.get(term.name, term) if given else term  # type: ignore[union-attr,return-value,arg-type]  # `kind` says what it is
        if kind is IRI or kind is Literal:
            return term  # type: ignore[return-value]  # `kind` says what it is
        fresh += 1
        variable = Variable(f"*{fresh}")
        if kind is Label:
            tests.append((variable.name, term))  # type: ignore[arg-type]  # a Label, by its kind
        return variable

    distinct = _distinct(branch.patterns)  # before each wildcard becomes a variable of its own
    patterns = [(position(p.subject), position(p.predicate), position(p.object)) for p in distinct]
    return Clause(_distinct(patterns) if given else tuple(patterns), _distinct(tests))


def _distinct(parts: Sequence[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(parts)) if len(parts) > 1 else tuple(parts)


def _joined(a: _Branch, b: _Branch) -> _Branch | None:
    """Both; None where no solution can be one of both."""
    given = a.given
    if b.given:
        values = dict(given)
        if any(values.setdefault(name, term) != term for name, term in b.given):
            return None
        given = tuple(values.items())
    return _Branch(a.patterns + b.patterns, a.bound | b.bound, a.tests + b.tests, given)


def _common(branches: list[_Branch]) -> _Branch:
    """What all branches ask for."""
    patterns = common([branch.patterns for branch in branches])
    bound = frozenset.intersection(*[branch.bound for branch in branches])
    named = _variables(patterns)
    tests = [test for test in common([branch.tests for branch in branches]) if test[0] in named]
    return _Branch(patterns, bound & named, tuple(tests))


def _variables(patterns: Iterable[Pattern]) -> frozenset[str]:
    return frozenset([t.name for p in patterns for t in (p.subject, p.predicate, p.object) if type(t) is Variable])


# --- the normal form ---------------------------------------------------------------------------------------------


class _Normal:
    """Builds the disjunctive normal form of one tree; `exact` until something had to be left out."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.exact = True

    def group(self, where: Where) -> list[_Branch]:
        """The branches of a group. Its filters see what the group itself binds, and nothing else."""
        patterns: list[Pattern] = []
        conditions: list[Expression] = []
        factors: list[list[_Branch]] = []
        inline_data: list[Values] = []
        for part in where.parts if isinstance(where, And) else (where,):
            kind = type(part)
            if kind is Pattern:
                patterns.append(part)  # type: ignore[arg-type]  # a Pattern, by its kind
            elif kind is Filter:
                conditions.append(part.condition)  # type: ignore[union-attr]  # a Filter, by its kind
            elif isinstance(part, And):
                factors.append(self.group(part))
            elif isinstance(part, Or):
                factors.append(self._limited([inner for branch in part.branches for inner in self.group(branch)]))
            elif isinstance(part, Values):
                inline_data.append(part)
            else:
                self.exact = False  # it only takes away, or adds to what is there
        bound = _variables(patterns)
        branches = [_Branch(tuple(patterns), bound, ())] if patterns else [_EMPTY]
        for values in inline_data:
            choices = _choices(values, bound)
            if len(values.variables) == len(choices) == 1:
                conditions += choices  # the data say no more than this
                continue
            factors.append(self._values(values))
            conditions += choices if factors[-1] == [_EMPTY] else []
        if factors:
            branches = self._product(branches, factors)
        return self._filtered(branches, conditions) if conditions else branches

    def _limited(self, branches: list[_Branch]) -> list[_Branch]:
        if len(branches) <= self.most:
            return branches
        self.exact = False
        return [_common(branches)]

    def _product(self, branches: list[_Branch], factors: list[list[_Branch]]) -> list[_Branch]:
        """All combinations; past the limit, of the longest factors only what their branches have in common."""
        while prod(map(len, factors)) > self.most:
            at = max(range(len(factors)), key=lambda i: len(factors[i]))
            factors[at] = [_common(factors[at])]
            self.exact = False
        for factor in factors:
            branches = [both for a in branches for b in factor if (both := _joined(a, b)) is not None]
        return branches

    def _values(self, values: Values) -> list[_Branch]:
        """Each row of short inline data is a branch, in which its values stand for the variables."""
        if not values.rows:
            return []
        self.exact = False
        if len(values.rows) > min(_MOST_ROWS, self.most):
            return [_EMPTY]
        rows = []
        for row in values.rows:
            given = [(v.name, term) for v, term in zip(values.variables, row, strict=True) if term is not None]
            rows.append(_Branch((), frozenset([name for name, _ in given]), (), tuple(given)))
        return rows

    def _filtered(self, branches: list[_Branch], conditions: list[Expression]) -> list[_Branch]:
        for condition in conditions:
            combined: list[_Branch] = []
            split = [self._alternatives(condition, branch.bound, self.most) for branch in branches]
            if sum(map(len, split)) > self.most:
                split = [self._alternatives(condition, branch.bound, 1) for branch in branches]
            for branch, alternatives in zip(branches, split, strict=True):
                for tests in alternatives:
                    combined.append(_Branch(branch.patterns, branch.bound, branch.tests + tests, branch.given))
            branches = combined
        return branches

    def _alternatives(self, condition: Expression, bound: frozenset[str], most: int) -> Alternatives:
        necessary = Necessary(bound, most)
        alternatives = necessary.of(condition)
        self.exact = self.exact and necessary.exact
        return alternatives


def _choices(values: Values, bound: frozenset[str]) -> list[Expression]:
    """What all solutions of inline data satisfy: which terms a variable may be, for each that patterns bind and whose
    column has no UNDEF."""
    conditions: list[Expression] = []
    if not values.rows:
        return conditions
    for variable, column in zip(values.variables, zip(*values.rows, strict=True), strict=True):
        terms = [term for term in dict.fromkeys(column) if term is not None]
        if variable.name in bound and None not in column:
            conditions.append(AnyOf(tuple([Function("SAMETERM", (variable, term)) for term in terms])))
    return conditions
