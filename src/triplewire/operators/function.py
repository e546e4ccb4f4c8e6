"""Makes operators from functions, for programs that embed Triplewire.

near = function_operator("near", [Parameter("distance", "m")], lambda publication, arguments: ...)

A function may also check the constants of a call when a subscription is registered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from triplewire.model.operator import Argument, Parameter, Verdict, nothing_to_say
from triplewire.model.publication import Publication
from triplewire.model.terms import BlankNode, Term

Evaluate: TypeAlias = Callable[[Publication, tuple[Argument, ...]], Verdict]
Check: TypeAlias = Callable[[tuple[Argument, ...]], Iterable[str]]


@dataclass(frozen=True, slots=True)
class FunctionOperator:
    """An operator that calls a function with the publication and the arguments."""

    name: str
    parameters: tuple[Parameter, ...]
    function: Evaluate
    check_constants: Check = nothing_to_say

    def evaluate(self, publication: Publication, arguments: tuple[Argument, ...]) -> Verdict:
        """The result of the function."""
        return self.function(publication, arguments)


def function_operator(
    name: str, parameters: Iterable[Parameter | str], function: Evaluate, check: Check = nothing_to_say
) -> FunctionOperator:
    """An operator of this name. A parameter given as a string takes no unit. `check` as in
    `triplewire.model.operator.ChecksConstants`."""
    formal = tuple(Parameter(p) if isinstance(p, str) else p for p in parameters)
    return FunctionOperator(name, formal, function, check)


def text_of(argument: Argument, parameter: str) -> str:
    """The text of a constant or bound argument. Raises `ValueError` naming the parameter."""
    if argument is None or isinstance(argument, BlankNode):
        raise ValueError(f"{parameter} must be given")
    term: Term = argument
    return str(getattr(term, "lexical", None) or getattr(term, "value", ""))
