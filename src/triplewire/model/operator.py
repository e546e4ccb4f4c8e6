"""The protocol of expensive operators (operators paper, section 3): predicates over a whole publication.

An operator gets the publication and its arguments and returns false, true, or a finite set of bindings. The built-in
ones and the registry: `triplewire.operators`. An operator may check the constants of a call, once, when a
subscription is registered (`ChecksConstants`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Literal, Term

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


@runtime_checkable
class ChecksConstants(Protocol):
    """What an operator may have besides: a look at the constants of a call, before any publication comes."""

    def check_constants(self, arguments: tuple[Argument, ...]) -> Iterable[str]:
        """Warnings about a call with these constants; None stands for a variable. Raises `ValueError`, whose text says
        what is wrong and what is expected, where the call could only fail."""


def warnings_of_call(operator: Operator, arguments: Sequence[object]) -> tuple[str, ...]:
    """The warnings of an operator about the arguments of a call. Raises `ValueError` where it refuses them."""
    check = getattr(operator, "check_constants", None)
    if check is None:
        return ()
    constants = tuple([term if isinstance(term, IRI | Literal) else None for term in arguments])
    try:
        return tuple(check(constants))
    except ValueError:
        raise
    except Exception as error:  # foreign code
        raise ValueError(f"its check failed: {type(error).__name__}: {error}") from error
