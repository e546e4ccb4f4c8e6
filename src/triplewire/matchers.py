"""Matchers by name, and what the engine asks of them: an immutable `Snapshot` of subscriptions that answers chunks.

A matcher is a plug-in of the family "matcher" (`triplewire.plugins`). The usual form is a function
`(subscriptions, world) -> Matcher`, a selector and a verifier over one fixed set of subscriptions; it is called anew
when the set has changed (`triplewire.engine.pairs`). One that can do better gives snapshots itself: `MakeSnapshot`
(`triplewire.engine.snapshot`). All give the same answers; they differ in what they cost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Batch, Ids
from triplewire.errors import TriplewireError
from triplewire.ir.evaluate import World
from triplewire.ir.nodes import PatternTerm
from triplewire.ir.subscription import Subscription
from triplewire.model.match import Binding
from triplewire.model.publication import Publication
from triplewire.select import Selector
from triplewire.select.everything import Everything
from triplewire.verify import Verifier
from triplewire.verify.reference import Reference

if TYPE_CHECKING:
    from triplewire.encode.decode import Decoder

Stage: TypeAlias = Callable[[str], AbstractContextManager[None]]
"""Says which stage ("encode", "select", "verify" ...) the time inside a `with` block belongs to."""

Install: TypeAlias = "Callable[[Snapshot], Snapshot]"
"""Puts the outcome of work on an earlier snapshot into a later one."""

Template: TypeAlias = "tuple[tuple[PatternTerm, PatternTerm, PatternTerm], ...]"
"""The triples that a CONSTRUCT query makes of a binding."""

Detail: TypeAlias = "tuple[tuple[Binding, ...], Template | None]"
"""Of a match: its bindings, and the template of a CONSTRUCT query."""


@dataclass(frozen=True, slots=True)
class Details:
    """Of some matches: the bindings of each, which may be made while they are taken; about how many these are; and by
    place the templates of those that have one."""

    bindings: Iterable[tuple[Binding, ...]]
    count: int
    templates: Mapping[int, Template]

    @classmethod
    def of(cls, some: Sequence[Detail]) -> Details:
        """Those of matches whose bindings are known."""
        bindings = [found for found, _ in some]
        templates = {place: template for place, (_, template) in enumerate(some) if template is not None}
        return cls(bindings, sum(map(len, bindings)), templates)


class Chunk:
    """Some publications on their way through the stages: as objects, as a batch, or both.

    Whichever form is missing is made of the other one when it is asked for. A batch knows neither source nor date nor
    attachments: `source` is where a batch was read; `one` gives the publication of a number where there is more to it.
    """

    def __init__(
        self,
        publications: Sequence[Publication] | None = None,
        batch: Batch | None = None,
        *,
        source: str = "",
        one: Callable[[int], Publication] | None = None,
        whole: tuple[Chunk, int, int] | None = None,
    ) -> None:
        assert publications is not None or batch is not None or whole is not None
        self._source = source
        self._one = one
        self._publications = publications
        self._batch = batch
        self._decoder: Decoder | None = None
        self.whole = whole  # what this is a part of: its publications from .. to
        self.kept: dict[int, tuple[Any, Any]] = {}  # what a snapshot has worked out and may need again

    def __len__(self) -> int:
        return len(self._publications) if self._publications is not None else len(self.batch)

    def part(self, first: int, last: int) -> Chunk:
        """The publications first .. last - 1. What a snapshot works out for the whole serves all parts."""
        if (first, last) == (0, len(self)):
            return self
        one = self._one
        return Chunk(
            None if self._publications is None else self._publications[first:last],
            source=self._source,
            one=None if one is None else lambda number: one(first + number),
            whole=(self, first, last),
        )

    @property
    def ids(self) -> Sequence[str]:
        """The publications' ids."""
        if self._publications is None:
            return self.batch.ids
        return [publication.id for publication in self._publications]

    @property
    def batch(self) -> Batch:
        """The publications as columns."""
        if self._batch is None and self.whole is not None:
            whole, first, last = self.whole
            self._batch = whole.batch.part(first, last)
        if self._batch is None:
            # compiled kernels, which the reference matcher does without
            from triplewire.encode.publications import encode

            assert self._publications is not None
            self._batch = encode(self._publications)
        return self._batch

    def publication(self, number: int) -> Publication:
        """One of the publications."""
        if self._publications is not None:
            return self._publications[number]
        if self._one is not None:
            return self._one(number)
        return replace(self.decoder.publication(number), source=self._source)

    @property
    def decoder(self) -> Decoder:
        """From the ids of the batch back to terms."""
        if self._decoder is None:
            from triplewire.encode.decode import Decoder  # as `encode` above

            self._decoder = Decoder(self.batch)
        return self._decoder


@dataclass(frozen=True, slots=True)
class Rows:
    """What a snapshot says of a chunk: one row a match, in any order, and the pairs that could not be decided.

    `publication` are numbers in the chunk, `subscription` numbers of the snapshot; `failures` has
    (publication, subscription, error), several of one pair where several operators failed. `atoms`, `candidates` and
    `verified` count what the stages looked at. `details` is set where the matches' bindings are known already.
    """

    publication: Ids
    subscription: Ids
    truncated: NDArray[np.bool_]
    failures: tuple[tuple[int, int, TriplewireError], ...] = ()
    triples: int = 0
    atoms: int = 0
    candidates: int = 0
    verified: int = 0
    details: Sequence[Detail] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.publication)


class Snapshot(Protocol):
    """Subscriptions as they stand at one moment. Never changed, so any number of threads may use it at once.

    Each subscription has a number of this snapshot. `columnar`: publications are taken as batches; without it, as
    objects.
    """

    columnar: bool

    def changed(self, added: Sequence[Subscription], removed: Collection[str], *, plain: bool = False) -> Snapshot:
        """A snapshot without those removed, then with those added; this one stays as it is.

        The ids added are new or just removed. `plain` says that each of those added is what its text gives by itself.
        """

    def due(self) -> Callable[[], Install] | None:
        """Work that would make later calls cheaper, if there is any: to be done aside, while changes go on."""

    def match(self, chunk: Chunk, stage: Stage) -> Rows:
        """The matches of a chunk."""

    def details(self, chunk: Chunk, rows: Rows, places: NDArray[np.int64]) -> Details:
        """The bindings of the matches at these places of the rows that `match` gave for the chunk."""

    def ranks(self, numbers: Ids) -> NDArray[np.int64]:
        """Keys that order subscriptions, by number, as their ids do."""

    def ids(self, numbers: Ids) -> list[str]:
        """The ids of subscriptions, by number."""

    def __len__(self) -> int:
        """How many subscriptions there are."""

    def __contains__(self, id: object) -> bool:
        """Is a subscription of this id there?"""

    def get(self, id: str) -> Subscription | None:
        """The subscription of this id, as it was registered."""

    def all(self, start: int = 0) -> Iterator[Subscription]:
        """The subscriptions in the order of their registration, but for the first `start`."""


@dataclass(frozen=True, slots=True)
class Matcher:
    """A selector and a verifier over one fixed set of subscriptions."""

    selector: Selector
    verifier: Verifier


class MakeMatcher(Protocol):
    """What the name of a matcher stands for."""

    def __call__(self, subscriptions: Sequence[Subscription], world: World) -> Matcher:
        """A matcher over these subscriptions, with the taxonomy, operators and limits of `world`."""


class Meaning(Protocol):
    """How texts become subscriptions in an engine."""

    @property
    def world(self) -> World:
        """Its taxonomy, operators and limits."""

    def meant(self, subscription: Subscription) -> Subscription:
        """The subscription as it is evaluated: where entailment is on, with subclasses."""

    def compiled(self, row: Mapping[str, object]) -> Subscription:
        """The subscription of a row {"id", "language", "query", "prefixes", "base"}, as it was registered."""

    def is_plain(self, subscription: Subscription) -> bool:
        """Is the subscription what its text gives by itself, without other rules?"""


@runtime_checkable
class MakeSnapshot(Protocol):
    """What the name of a matcher stands for whose snapshots take changes."""

    def empty(self, meaning: Meaning) -> Snapshot:
        """A snapshot of no subscriptions."""


def reference(subscriptions: Sequence[Subscription], world: World) -> Matcher:
    """Every pair, by the reference meaning: slow, obvious, and right by definition."""
    return Matcher(Everything(subscriptions), Reference(world))
