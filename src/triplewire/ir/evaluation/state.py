"""What one evaluation carries along: the publication, the world around it, the budget, the known results of calls.

`World` is the same for many evaluations, `Evaluation` belongs to one pair. The meaning:
`triplewire.ir.evaluation.evaluate`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, TypeAlias

from triplewire.config import Settings
from triplewire.errors import LimitError, OperatorError
from triplewire.ir.evaluation.unknown import CallKey, Solution
from triplewire.ir.fulltext import Reader, TextWords, words_of
from triplewire.ir.nodes import Analyzer, Where
from triplewire.ir.taxonomy import EMPTY, Taxonomy
from triplewire.ir.values import regexes
from triplewire.ir.values.functions import Surroundings
from triplewire.model.operator import Operator
from triplewire.model.origins import BUILT_IN, FROM_SOURCE, FromSource
from triplewire.model.publication import Publication
from triplewire.model.terms import Term, Triple

__all__ = ["CallResults", "Evaluation", "Result", "Row", "Solution", "World"]

Row: TypeAlias = tuple[Term, ...]

Result: TypeAlias = bool | tuple[Row, ...] | OperatorError
"""What came of a call: true, false, the rows that hold, or why it failed."""

CallResults: TypeAlias = dict[CallKey, Result]
"""The calls of one publication that have been made."""

_KEPT_CHARACTERS = 1 << 20  # of the texts whose words an evaluation keeps
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class CallCache(Protocol):
    """Outcomes of calls that are kept from publication to publication, by content: `operators.calling.cache`."""

    def known(self, publication: Publication) -> CallResults:
        """Those about a publication of this content."""

    def keep(self, publication: Publication, key: CallKey, result: Result) -> None:
        """Keep one, if it is of an operator whose outcomes are kept."""

    def flush(self) -> None:
        """Write what waits."""

    def of(self, operators: Mapping[str, Operator], taxonomy: Taxonomy) -> CallCache:
        """The same cache for other operators, or another taxonomy."""


@dataclass(frozen=True)
class World:
    """What a match depends on beside subscription and publication."""

    taxonomy: Taxonomy = EMPTY
    operators: Mapping[str, Operator] = field(default_factory=dict)
    settings: Settings = field(default_factory=Settings)
    operator_order: str = "greedy"  # in which calls are made; it changes no answer
    recall: CallCache | None = None  # a cache of calls; it changes no answer either

    def __post_init__(self) -> None:
        # FROM needs it, whatever operators are given; each world has its own
        if self.operators.get(FROM_SOURCE, BUILT_IN) is BUILT_IN:
            object.__setattr__(self, "operators", {**self.operators, FROM_SOURCE: FromSource()})

    def known(self, publication: Publication) -> CallResults:
        """The calls about a publication of this content whose outcomes are in the cache."""
        return {} if self.recall is None else self.recall.known(publication)


class Evaluation:
    """One publication in one world, while one subscription is evaluated against it."""

    def __init__(
        self,
        publication: Publication,
        world: World,
        outputs: frozenset[str],
        exists: Callable[[Where, Solution, Evaluation], bool],
        results: Mapping[CallKey, Result] | None = None,
        most_steps: int | None = None,
    ) -> None:
        self.publication = publication
        self.graph = publication.graph
        self.world = world
        self.outputs = outputs  # the variables that only operator calls bind
        self.exists = exists
        """Has the group a solution, with these values put in? Raises `Undecided` where unknown calls decide."""
        self.steps_left = world.settings.max_steps if most_steps is None else most_steps
        self.results: Mapping[CallKey, Result] = {} if results is None else results
        self.open: dict[CallKey, None] = {}  # the calls met that have not been made
        self.doubtful = False  # has an unknown call been met?
        self._words: dict[tuple[str, Analyzer], TextWords] = {}
        self._characters = 0  # of the texts in `_words`
        self.fitting: dict[tuple[int | Term | None, ...], Iterable[Triple]] = {}
        """By the identity of a triple pattern and the terms that it is given: the triples that fit it."""

    def step(self, count: int = 1) -> None:
        """Count candidate triples and rows looked at, and work that comes with them (`triplewire.ir.values.regexes`).
        Raises `LimitError` past the budget."""
        self.steps_left -= count
        if self.steps_left < 0:
            limit = self.world.settings.max_steps
            raise LimitError(
                f"the evaluation takes more than {limit} steps",
                source=self.publication.id,
                remedy="raise max_steps, connect the patterns by variables, or compute less with long texts",
            )

    def words(self, text: str, analyzer: Analyzer) -> TextWords:
        """The words of a text. To find them is counted, once as long as they are kept here."""
        key = text, analyzer
        words = self._words.get(key)
        if words is None:
            self.step(regexes.of_words(text, analyzer))
            if self._characters > _KEPT_CHARACTERS:
                self._words.clear()
                self._characters = 0
            words = self._words[key] = words_of(text, analyzer)
            self._characters += len(text)
        return words

    @cached_property
    def reader(self) -> Reader:
        """How full-text expressions read texts."""
        return Reader(self.step, self.words)

    @cached_property
    def surroundings(self) -> Surroundings:
        """For functions. NOW is when the publication was published, else 1970: matching is deterministic."""
        settings = self.world.settings
        published = self.publication.published
        now = published.astimezone(dt.UTC) if published is not None else _EPOCH
        return Surroundings(now, settings.max_literal_bytes, settings.max_regex_bytes, self.step)
