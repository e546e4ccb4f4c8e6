"""A stand-in for an operator that subscriptions call, but that was not given: its calls fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from triplewire.errors import OperatorError
from triplewire.model.operator import Argument, Parameter, Verdict
from triplewire.model.publication import Publication


@dataclass(frozen=True, slots=True)
class MissingOperator:
    """An operator whose calls all fail, so that a pair that depends on one is refused, and all others are told."""

    name: str
    parameters: tuple[Parameter, ...]

    @classmethod
    def of(cls, name: str, units: Sequence[str]) -> MissingOperator:
        """The stand-in of an operator whose parameters have these units."""
        return cls(name, tuple([Parameter(str(place), unit) for place, unit in enumerate(units, 1)]))

    def evaluate(self, publication: Publication, arguments: tuple[Argument, ...]) -> Verdict:
        """Raises `OperatorError`."""
        raise OperatorError("it was not given (--operators FILE)")
