"""The protocol of expensive operators (operators paper, section 3): predicates over a whole publication.

An operator gets the publication and its arguments and returns false, true, or a finite set of bindings. The built-in
ones and the registry: `triplewire.operators`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from triplewire.model.publication import Publication
from triplewire.model.terms import Term

Argument: TypeAlias = Term | None
"""A constant or a bound variable's value; None stands for an output, which the answer binds."""

Verdict: TypeAlias = bool | Iterable[tuple[Term, ...]]
"""True or False, or the rows that hold: one term for each argument, inputs repeated as given."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A formal argument. `unit` ("m", "kg", ...) is what quantities such as `5 km` are converted to; "" takes none."""

    name: str
    unit: str = ""


class Operator(Protocol):
    """An expensive predicate. It must be deterministic and must not change the publication."""

    @property
    def name(self) -> str:
        """The name under which subscriptions call it."""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The formal arguments, in order. A call must have as many arguments."""

    def evaluate(self, publication: Publication, arguments: tuple[Argument, ...]) -> Verdict:
        """Does it hold? Any exception makes the call unknown, and is reported."""
