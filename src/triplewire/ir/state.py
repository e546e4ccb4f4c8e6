"""What one evaluation carries along: the publication, the world around it, the budget, the calls already made.

`World` is the same for many evaluations, `Evaluation` belongs to one pair. The meaning: `triplewire.ir.evaluate`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from triplewire.config import Settings
from triplewire.errors import LimitError, OperatorError
from triplewire.ir.functions import Surroundings
from triplewire.ir.nodes import Where
from triplewire.ir.numbers import ExpressionError
from triplewire.ir.taxonomy import EMPTY, Taxonomy
from triplewire.model.operator import Argument, Operator
from triplewire.model.publication import Publication
from triplewire.model.terms import Term

Solution: TypeAlias = dict[str, Term]
"""What each variable is bound to; never changed once made. Hidden variables are in it like others."""

Row: TypeAlias = tuple[Term, ...]

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True)
class World:
    """What a match depends on beside subscription and publication."""

    taxonomy: Taxonomy = EMPTY
    operators: Mapping[str, Operator] = field(default_factory=dict)
    settings: Settings = field(default_factory=Settings)


class UnknownCall(ExpressionError):
    """An operator call that failed: neither it nor its negation holds."""


class Evaluation:
    """One publication in one world, while one subscription is evaluated against it."""

    def __init__(
        self,
        publication: Publication,
        world: World,
        outputs: frozenset[str],
        exists: Callable[[Where, Solution, Evaluation], bool],
    ) -> None:
        self.publication = publication
        self.graph = publication.graph
        self.world = world
        self.outputs = outputs  # the variables that only operator calls bind
        self.exists = exists
        """Has the group a solution, with these values put in? Raises `UnknownCall` where a failed call decides."""
        self.steps_left = world.settings.max_steps
        self.calls: dict[tuple[str, tuple[Argument, ...]], bool | tuple[Row, ...] | OperatorError] = {}
        self.unknown_calls = 0  # how often a failed call was met

    def step(self, count: int = 1) -> None:
        """Count candidate triples and rows looked at, and work that comes with them. Raises `LimitError` past the
        budget."""
        self.steps_left -= count
        if self.steps_left < 0:
            limit = self.world.settings.max_steps
            raise LimitError(
                f"the evaluation takes more than {limit} steps",
                source=self.publication.id,
                remedy="raise max_steps, or connect the patterns by variables",
            )

    @cached_property
    def surroundings(self) -> Surroundings:
        """For functions. NOW is when the publication was published, else 1970: matching is deterministic."""
        settings = self.world.settings
        published = self.publication.published
        now = published.astimezone(dt.UTC) if published is not None else _EPOCH
        return Surroundings(now, settings.max_literal_bytes, settings.max_regex_bytes)

    @property
    def failures(self) -> tuple[OperatorError, ...]:
        """The calls that failed, each once."""
        return tuple(outcome for outcome in self.calls.values() if isinstance(outcome, OperatorError))
