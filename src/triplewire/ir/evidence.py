"""What must a publication contain for a subscription to match? Clauses of patterns and tests on single nodes.

A clause is a conjunction; the subscription needs at least one of its clauses. The index (`triplewire.select`) finds
clauses whose parts are there; where `exact` holds, that is all there is to the subscription, else
`triplewire.ir.evaluate` decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from triplewire.ir.nodes import Expression, Label, Variable
from triplewire.model.terms import IRI, Literal

Position: TypeAlias = IRI | Literal | Variable
Test: TypeAlias = Expression
"""A condition on one node: an expression over `X`, true of the node, or a bare `Label` that the node answers to."""

X = Variable("x")


@dataclass(frozen=True, slots=True)
class Clause:
    """Patterns that must have a common solution, in which each test holds of the value of its variable.

    Wildcards and labels are variables of their own here (their names start with "*"); every tested variable stands in
    a pattern.
    """

    patterns: tuple[tuple[Position, Position, Position], ...]
    tests: tuple[tuple[str, Test], ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """The clauses of a subscription. `exact`: its solutions are those of its clauses, no more and no fewer."""

    clauses: tuple[Clause, ...]
    exact: bool


__all__ = ["Clause", "Evidence", "Label", "Position", "Test", "X"]
