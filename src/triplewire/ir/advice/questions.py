"""What of a query has to be looked at for warnings, picked out of its tree once, for all texts of a template.

`Questions` are a tree of nodes: with other constants in their place (`triplewire.ir.walk.rewrite`), they are those of
another text of the same form.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from triplewire.ir.advice.conditions import constrained, contradictions, incomparable
from triplewire.ir.advice.vocabularies import schema_of, schema_warning, term_warning
from triplewire.ir.nodes import (
    And,
    AnyOf,
    Bind,
    Call,
    Coercion,
    Compare,
    Exists,
    Expression,
    Filter,
    FullText,
    Function,
    In,
    Minus,
    Not,
    Optional,
    Or,
    Pattern,
    PatternTerm,
    Values,
    Variable,
    Where,
    conjuncts,
)
from triplewire.ir.show import show
from triplewire.model.terms import IRI, Literal

Scope: TypeAlias = tuple[Expression, ...]
"""Conditions that must hold together."""

_BINDERS = frozenset((Pattern, Bind, Values, Call))
_CONDITIONS = frozenset((Compare, FullText, Function))
_datatype = lru_cache(maxsize=1_024)(IRI)
_MOST_CONDITIONS = 4_096  # in scopes other than the first, all together


@dataclass(frozen=True, slots=True)
class Questions:
    """`unbound`: variables that are used, and bound nowhere. `comparisons`: strict ones with a constant or between
    functions. `empty`: lists without a member, in which nothing is."""

    unbound: tuple[Variable, ...]
    iris: tuple[IRI, ...]
    comparisons: tuple[Compare, ...]
    scopes: tuple[Scope, ...]
    empty: tuple[In, ...] = ()

    def warnings(self) -> Iterator[str]:
        """All warnings; one may come twice."""
        for variable in self.unbound:
            yield f"?{variable.name} is used, but nothing binds it"
        values = [iri.value for iri in self.iris]
        yield from filter(None, map(term_warning, values))
        schema = schema_warning(map(schema_of, values))
        if schema:
            yield schema
        yield from self.of_conditions()

    def of_conditions(self) -> Iterator[str]:
        """Those of conditions alone."""
        yield from filter(None, map(incomparable, self.comparisons))
        for scope in self.scopes:
            yield from contradictions(scope)
        for choice in self.empty:
            yield f"{show(choice)} never holds: the list is empty"


def questions_of(where: Where, nodes: Sequence[object], template: Iterable[PatternTerm] = ()) -> Questions:
    """The questions about a query. `nodes`: all of its tree (`triplewire.ir.walk.walk`); `template`: the terms of a
    CONSTRUCT query's triples."""
    used: dict[str, Variable] = {}
    bound: set[str] = set()
    iris: dict[IRI, None] = {}
    comparisons: list[Compare] = []
    empty: list[In] = []
    conditions = 0
    for node in (*nodes, *template):  # by type alone, as each registration comes by here
        kind = type(node)
        if kind is Variable:
            used[node.name] = node  # type: ignore[attr-defined, assignment]  # it is one
        elif kind is IRI:
            iris[node] = None  # type: ignore[index]  # as above
        elif kind is Literal:
            iris[_datatype(node.datatype)] = None  # type: ignore[attr-defined]  # as above
        elif kind in _BINDERS:
            bound.update(_bound(node))
        elif kind in _CONDITIONS:
            conditions += 1
            if isinstance(node, Compare) and node.coercion is Coercion.STRICT:
                comparisons.append(node)
        elif isinstance(node, In) and not node.choices and not node.negated:
            empty.append(node)
    unbound = tuple([variable for name, variable in used.items() if name not in bound and not variable.hidden])
    scopes = tuple(filter(_is_asked, _scopes(where))) if conditions > 1 else ()
    return Questions(unbound, tuple(iris), tuple(comparisons), scopes, tuple(empty))


def conditions_of(where: Where) -> Scope:
    """The conditions of the whole query that must hold together, and of which something is asked."""
    return next(_scopes(where))


def _bound(node: object) -> Iterator[str]:
    """The names of variables that a node binds. A call in an expression binds nothing outside."""
    if isinstance(node, Pattern):
        yield from [term.name for term in (node.subject, node.predicate, node.object) if type(term) is Variable]
    elif isinstance(node, Bind):
        yield node.variable.name
    elif isinstance(node, Values):
        yield from (variable.name for variable in node.variables)
    elif isinstance(node, Call):
        yield from (argument.name for argument in node.arguments if isinstance(argument, Variable))


def _is_asked(scope: Scope) -> bool:
    """Are there two conditions on one variable?"""
    names = [variable.name for variable in map(constrained, scope) if variable is not None]
    return len(set(names)) < len(names)


def _scopes(where: Where) -> Iterator[Scope]:
    """The conditions that must hold together: those of a group, with those around its alternatives.

    First those of the whole query. The conditions around stand in the scope of each alternative again; where that makes
    too many of them, the alternatives that are left are not looked at.
    """
    waiting: list[tuple[Where, Scope]] = [(where, ())]
    room = _MOST_CONDITIONS
    while waiting and room > 0:
        group, around = waiting.pop()
        parts = list(_flat(group))
        conditions = [
            condition for part in parts if isinstance(part, Filter) for condition in conjuncts(part.condition)
        ]
        scope = (*around, *(condition for condition in conditions if constrained(condition) is not None))
        yield scope
        if group is not where:
            room -= 1 + len(scope)
        for condition in conditions:
            if isinstance(condition, AnyOf):
                for choice in condition.conditions:
                    room -= 1 + len(scope)
                    if room <= 0:
                        return
                    yield (*scope, *conjuncts(choice))
            elif isinstance(condition, Exists):
                waiting.append((condition.group, ()))
        for part in parts:
            if isinstance(part, Or):
                waiting.extend((branch, scope) for branch in part.branches)
            elif isinstance(part, Not | Optional | Minus):
                waiting.append((part.group, ()))


def _flat(where: Where) -> Iterator[Where]:
    """The parts of a group, and those of groups that are joined with it."""
    waiting = [where]
    while waiting:
        part = waiting.pop()
        if isinstance(part, And):
            waiting.extend(reversed(part.parts))
        else:
            yield part
