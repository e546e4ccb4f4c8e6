"""The registry of operators, and the built-in ones: `families` needs extras of the package, the others nothing.

The protocol is `triplewire.model.operator`. `function_operator` makes an operator of a function. A call in a query is
`triplewire.ir.nodes.Call`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Protocol, TypeAlias, runtime_checkable

from triplewire import plugins
from triplewire.errors import OperatorError
from triplewire.ir.taxonomy import Taxonomy
from triplewire.model.operator import Argument, Operator, Parameter, Verdict, nothing_to_say
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, BlankNode
from triplewire.operators.calling.budgets import share_budget
from triplewire.operators.calling.isolated import Isolated

__all__ = ["built_in_operators", "function_operator", "remedy_for_unknown", "with_taxonomy"]

Evaluate: TypeAlias = Callable[[Publication, tuple[Argument, ...]], Verdict]
Check: TypeAlias = Callable[[tuple[Argument, ...]], Iterable[str]]


@dataclass(frozen=True, slots=True)
class FunctionOperator:
    """An operator that calls a function with the publication and the arguments."""

    name: str
    parameters: tuple[Parameter, ...]
    function: Evaluate
    check_constants: Check = nothing_to_say
    other_forms: tuple[tuple[Parameter, ...], ...] = ()

    def evaluate(self, publication: Publication, arguments: tuple[Argument, ...]) -> Verdict:
        """The result of the function."""
        return self.function(publication, arguments)


def function_operator(
    name: str,
    parameters: Iterable[Parameter | str],
    function: Evaluate,
    check: Check = nothing_to_say,
    other_forms: tuple[tuple[Parameter, ...], ...] = (),
) -> FunctionOperator:
    """An operator of this name. A parameter given as a string takes no unit. `check` as in
    `triplewire.model.operator.ChecksConstants`, `other_forms` as in `parameters_of` there."""
    formal = tuple(Parameter(p) if isinstance(p, str) else p for p in parameters)
    return FunctionOperator(name, formal, function, check, other_forms)


def text_of(argument: Argument, parameter: str) -> str:
    """The text of a constant or bound argument. Raises `ValueError` naming the parameter."""
    if argument is None or isinstance(argument, BlankNode):
        raise ValueError(f"{parameter} must be given")
    return argument.value if isinstance(argument, IRI) else argument.lexical


@cache
def built_in_operators() -> Mapping[str, Operator]:
    """All installed operators by name: the built-in ones and those of plug-ins."""
    return MappingProxyType({name: plugins.find("operator", name) for name in plugins.names("operator")})


def remedy_for_unknown(operators: Mapping[str, Operator], name: str) -> str:
    """What to do where there is no operator of this name: those that are there, and where to get a built-in one."""
    known = f"known: {', '.join(sorted(operators)) or 'none'}"
    if name not in built_in_operators():
        return known
    return f"{known}; it is built in: Engine(operators={{**built_in_operators(), ...}}) keeps such ones"


@runtime_checkable
class AsksTaxonomy(Protocol):
    """What an operator may have besides: a need of the taxonomy."""

    def with_taxonomy(self, taxonomy: Taxonomy) -> Operator:
        """The same operator over this taxonomy. The engine calls it before the first subscription, and for each
        taxonomy that takes the place of that one."""


def with_taxonomy(operators: Mapping[str, Operator], taxonomy: Taxonomy) -> Mapping[str, Operator]:
    """The same operators; those that ask a taxonomy ask this one."""
    asking: dict[str, Operator] = {}
    for name, operator in operators.items():
        inner = operator.inner if isinstance(operator, Isolated) else operator
        if isinstance(inner, AsksTaxonomy):
            new = inner.with_taxonomy(taxonomy)
            share_budget(inner, new)
            asking[name] = operator.of(new) if isinstance(operator, Isolated) else new
    return {**operators, **asking} if asking else operators


@dataclass(frozen=True, slots=True)
class MissingOperator:
    """In place of an operator that subscriptions call, but that was not given. Its calls all fail, so that a pair that
    depends on one is refused, and all others are told."""

    name: str
    parameters: tuple[Parameter, ...]

    @classmethod
    def of(cls, name: str, units: Sequence[str]) -> MissingOperator:
        """The stand-in of an operator whose parameters have these units."""
        return cls(name, tuple([Parameter(str(place), unit) for place, unit in enumerate(units, 1)]))

    def evaluate(self, publication: Publication, arguments: tuple[Argument, ...]) -> Verdict:
        """Raises `OperatorError`."""
        raise OperatorError("it was not given (--operators FILE)")
