"""Evaluates pieces of one subscription, of which explanations are made.

Each answer is an evaluation of a smaller tree by the reference against the same publication, so that an explanation
agrees with the match. The explanation: `explanation`. Its sentences: `reasons`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from triplewire.ir.evaluation.evaluate import Answer, CallKey, CallResults, World, evaluate
from triplewire.ir.nodes import (
    And,
    Bind,
    Call,
    Expression,
    Filter,
    Negate,
    Not,
    Values,
    Variable,
    Where,
    conjuncts,
)
from triplewire.ir.subscription import Subscription
from triplewire.ir.walk import calls_in, walk
from triplewire.model.match import Binding
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Literal, Term

SOLUTIONS = 200  # partial solutions among which the nearest is searched
VALUE = Variable(".value")  # the variable to which an expression is bound to get its value


@dataclass(frozen=True)
class ExplainedPair:
    """A subscription and a publication, with the taxonomy, operators and limits of the engine. `results` are the calls
    of operators that have been made; no piece makes one of them again."""

    subscription: Subscription
    publication: Publication
    world: World
    results: CallResults = field(default_factory=dict)

    def solutions(self, where: Where, limit: int = SOLUTIONS) -> tuple[Binding, ...]:
        """Solutions of a tree, with all its variables, hidden ones too."""
        return self.answer(where, limit).bindings

    def answer(self, where: Where, limit: int = SOLUTIONS) -> Answer:
        """The same, with the failed calls that it depends on."""
        piece = replace(self.subscription, select=variables(where), where=where, ask=False, construct=None)
        world = replace(self.world, settings=replace(self.world.settings, max_bindings=limit))
        return evaluate(piece, self.publication, world, self.results)

    def extensions(self, solution: Binding, parts: Iterable[Where]) -> tuple[Binding, ...]:
        """The solutions of a group of these parts together with the solution's values."""
        return self.solutions(And((inline_values(solution), *parts)))

    def failed_call(self, solution: Binding, part: Where) -> str:
        """What an operator said that failed when the part was asked with the solution's values; "" where none did."""
        failures = self.answer(And((inline_values(solution), part))).failures
        return failures[0].what if failures else ""

    def truth(self, condition: Expression, solution: Binding) -> bool | None:
        """The condition's effective boolean value; None is an error."""
        if self.extensions(solution, [Filter(condition)]):
            return True
        return False if self.extensions(solution, [Filter(Negate(condition))]) else None

    def value(self, expression: Expression, solution: Binding) -> Term | None:
        """The expression's value; None if it is an error or unbound."""
        if isinstance(expression, Variable):
            return solution.get(expression.name)
        if isinstance(expression, IRI | Literal):
            return expression
        for extension in self.extensions(solution, [Bind(VALUE, expression)]):
            return extension.get(VALUE.name)
        return None


def variables(where: object) -> tuple[str, ...]:
    """The names of all variables in a tree, each once."""
    return tuple(dict.fromkeys(node.name for node in walk(where) if isinstance(node, Variable)))


def inline_values(solution: Mapping[str, Term]) -> Where:
    """A solution as a part of a group."""
    # with blank nodes as they are: no text can write such Values, but they join like any other term
    row = cast(tuple[IRI | Literal | None, ...], tuple(solution.values()))
    return Values(tuple(map(Variable, solution)), (row,))


def cheap_first(parts: tuple[Where, ...], made: Mapping[CallKey, object]) -> tuple[Where, ...]:
    """The parts; behind all others those that call operators and bind nothing: first those with calls that have been
    made, then the others. So a part that is cheap and fails is named without a call."""
    bound = frozenset(name for part in parts if not calls_operators(part) for name in variables(part))

    def rank(part: Where) -> int:
        calls = list(calls_in(part))
        if not calls or not bound.issuperset(variables(part)):
            return 0
        return 1 if all(_is_made(call, made) for call in calls) else 2

    return tuple(sorted(parts, key=rank))


def calls_operators(node: object) -> bool:
    """Is there a call of an operator in the tree?"""
    return any(True for _ in calls_in(node))


def _is_made(call: Call, made: Mapping[CallKey, object]) -> bool:
    if any(isinstance(argument, Variable) for argument in call.arguments):
        return any(key.operator == call.operator for key in made)
    return (call.operator, call.arguments) in made


def parts_of(where: Where) -> tuple[Where, ...]:
    """The parts of a group, with filters split into their conjuncts. Any other tree is its only part."""
    parts = where.parts if isinstance(where, And) else (where,)
    out: list[Where] = []
    for part in parts:
        out += [Filter(c) for c in conjuncts(part.condition)] if isinstance(part, Filter) else [part]
    return tuple(out)


def in_order(parts: tuple[Where, ...]) -> tuple[Where, ...]:
    """The parts in an order in which each prefix can be evaluated as a group of its own.

    It is the order of the text, except for parts that act on the whole group: a Filter, a Not and a Call come right
    after the last part that shares a variable with them, if that is later than their own place.
    """
    place = {number: (number, 0) for number in range(len(parts))}
    names = [frozenset(variables(part)) for part in parts]
    for rank, kind in ((1, Call), (2, Filter | Not)):
        settled = [n for n, part in enumerate(parts) if not isinstance(part, Call | Filter | Not)]
        settled += [n for n, part in enumerate(parts) if rank == 2 and isinstance(part, Call)]
        for number, part in enumerate(parts):
            if isinstance(part, kind):
                shared = [place[n] for n in settled if names[n] & names[number]]
                last = max(shared, default=(number, 0))
                if last > place[number]:
                    place[number] = (last[0], rank)
    return tuple(parts[number] for number in sorted(place, key=lambda n: (place[n], n)))
