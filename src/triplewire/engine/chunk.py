"""A `Chunk` of publications, and what answers it with `Rows`: an immutable `Snapshot` of subscriptions.

Each matcher has snapshots of its own sort: segments behind an index over clauses (`triplewire.engine.segments`), or
pair by pair (`triplewire.engine.reference`). All give the same answers. They differ in what they cost.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from triplewire.bounded_cache import BoundedCache
from triplewire.encode.batch import Batch, Ids
from triplewire.encode.strings import TextColumn, joined, utf8
from triplewire.engine.stats import LookedAt
from triplewire.errors import TriplewireError
from triplewire.ir.nodes import PatternTerm
from triplewire.ir.subscription import Subscription
from triplewire.model.match import Binding, bindings_text, term_bytes
from triplewire.model.publication import Publication
from triplewire.verify.operators import AnswerTable, CallCounts, CallTable

if TYPE_CHECKING:
    import pyarrow as pa

    from triplewire.clauses.view import View
    from triplewire.encode.decode import Decoder
    from triplewire.engine.compiler import Compiler
    from triplewire.engine.stats import Clock
    from triplewire.languages.sources.row_columns import RowColumns
    from triplewire.languages.sources.rows import Row
    from triplewire.select.index import Prepared

LARGE = 5 << 19
"""Subscriptions of a segment that was loaded or merged, at most: a few segments cost less than the memory to merge
more."""

_KEPT_TRIPLES = 1 << 15  # in publications of a batch that are kept as objects: some 10 MB with their look-ups

Install: TypeAlias = "Callable[[Snapshot], Snapshot]"
"""Puts the outcome of work on an earlier snapshot into a later one."""

Template: TypeAlias = "tuple[tuple[PatternTerm, PatternTerm, PatternTerm], ...]"
"""The triples that a CONSTRUCT query makes of a binding."""

Detail: TypeAlias = "tuple[tuple[Binding, ...], Template | None]"
"""Of a match: its bindings, and the template of a CONSTRUCT query."""


@dataclass(frozen=True, slots=True)
class Details:
    """The bindings and CONSTRUCT templates of matches. `bindings`: by match, perhaps made lazily; `count`: about how
    many they are together. `templates`: place of a match -> its CONSTRUCT template. `texts`: makes JSON text of the
    bindings without objects, where that is possible. Use either `bindings` or `texts`, and only once. `cut`: the places
    of the matches that have, or may have, more bindings than these. `bytes_of_terms`: about how many bytes the terms of
    the bindings have."""

    bindings: Iterable[tuple[Binding, ...]]
    count: int
    templates: Mapping[int, Template]
    texts: Callable[[], TextColumn] | None = None
    cut: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    bytes_of_terms: Callable[[], int] = lambda: 0

    def as_text(self) -> TextColumn:
        """The bindings of each match as JSON text (`triplewire.model.match.bindings_text`)."""
        if self.texts is not None:
            return self.texts()
        place: dict[bytes, int] = {}  # of each distinct text
        number = [place.setdefault(utf8(bindings_text(bindings)), len(place)) for bindings in self.bindings]
        return TextColumn(*joined(list(place)), np.array(number, np.int32))

    @classmethod
    def of(cls, details: Sequence[Detail]) -> Details:
        """Those of matches whose bindings are known."""
        bindings = [of_match for of_match, _ in details]
        templates = {place: template for place, (_, template) in enumerate(details) if template is not None}
        every = chain.from_iterable(bindings)
        terms = chain.from_iterable(binding.values() for binding in every)
        return cls(bindings, sum(map(len, bindings)), templates, bytes_of_terms=lambda: sum(map(term_bytes, terms)))


class Part(NamedTuple):
    """The publications first .. last - 1 of a larger chunk."""

    chunk: Chunk
    first: int
    last: int


@dataclass(slots=True)
class SegmentState:
    """What one segment has worked out of a chunk and needs again, for its parts or for bindings.

    `view`: the chunk as the segment's clauses see it. `prepared`: what its index found for all parts at once.
    """

    view: View | None = None
    prepared: Prepared | None = None


class Chunk:
    """Some publications on their way through the stages: as objects, as a batch, or both.

    Whichever form is missing is made of the other one when it is asked for. A batch knows neither source nor date nor
    attachments: `source` is where a batch was read, `file` the file beside which attachments lie, "" where there is
    none; `read_publication` gives the publication of a number where there is more to it. `given` are the publications
    without what entailment added, where it did.
    """

    def __init__(
        self,
        publications: Sequence[Publication] | None = None,
        batch: Batch | None = None,
        *,
        source: str = "",
        file: str = "",
        read_publication: Callable[[int], Publication] | None = None,
        given: Sequence[Publication] | None = None,
        part_of: Part | None = None,
    ) -> None:
        assert publications is not None or batch is not None or part_of is not None
        self._source, self._file = source, file
        self._read_publication = read_publication
        self._given = publications if given is None else given
        self._contents: dict[int, str] = {}
        self._publications = publications
        self._made: BoundedCache[int, Publication] | None = None
        self._batch = batch
        self.part_of = part_of
        self.states: defaultdict[object, SegmentState] = defaultdict(SegmentState)  # by segment
        self.calls: CallTable = CallTable() if part_of is None else part_of.chunk.calls.part(part_of.first)

    def __len__(self) -> int:
        return len(self._publications) if self._publications is not None else len(self.batch)

    def part(self, first: int, last: int) -> Chunk:
        """The publications first .. last - 1. What a snapshot works out for the whole serves all parts."""
        if (first, last) == (0, len(self)):
            return self
        return Chunk(
            None if self._publications is None else self._publications[first:last],
            source=self._source,
            file=self._file,
            given=None if self._given is None else self._given[first:last],
            part_of=Part(self, first, last),
        )

    def take(self, numbers: NDArray[np.integer]) -> Chunk:
        """The publications of these numbers, for another engine of the same entailment. Their encoding and their
        content hashes are reused."""
        if self.part_of is not None:
            return self.part_of.chunk.take(numbers + self.part_of.first)
        order, read = numbers.tolist(), self._read_publication
        chunk = Chunk(
            None if self._publications is None else [self._publications[number] for number in order],
            None if self._publications is not None and self._batch is None else self.batch.take(numbers),
            source=self._source,
            file=self._file,
            read_publication=None if read is None else lambda number: read(order[number]),
            given=None if self._given is None else [self._given[number] for number in order],
        )
        known = self._contents
        chunk._contents = {place: known[number] for place, number in enumerate(order) if number in known}
        return chunk

    @cached_property
    def ids(self) -> Sequence[str]:
        """The publications' ids."""
        if self._publications is None:
            return self.batch.ids
        return [publication.id for publication in self._publications]

    @property
    def batch(self) -> Batch:
        """The publications as columns."""
        if self._batch is None and self.part_of is not None:
            whole, first, last = self.part_of
            self._batch = whole.batch.part(first, last)
        if self._batch is None:
            from triplewire.encode.publications import encode  # compiled kernels, which "reference" does without

            assert self._publications is not None
            self._batch = encode(self._publications)
        return self._batch

    def publication(self, number: int) -> Publication:
        """One of the publications. Those made of a batch are kept for whoever asks next: each subscription that is
        evaluated asks for them."""
        if self._publications is not None:
            return self._publications[number]
        if self.part_of is not None:
            return self.part_of.chunk.publication(self.part_of.first + number)
        offset = self.batch.offset
        triples = int(offset[number + 1] - offset[number])
        if self._made is None:
            self._made = BoundedCache()
        read = self._read_publication or self._decoded
        return self._made.get_or_make(number, lambda: read(number), 1 + triples, _KEPT_TRIPLES)

    def _decoded(self, number: int) -> Publication:
        publication = replace(self.decoder.publication(number), source=self._source)
        return publication.with_files_beside(self._file) if self._file else publication

    def given(self, number: int) -> Publication:
        """One of the publications as it was given, without what entailment added."""
        return self.publication(number) if self._given is None else self._given[number]

    def origin(self, number: int) -> tuple[str, dt.datetime | None]:
        """Where one of the publications was read, and the instant that it states. Those that came as columns are not
        decoded for that: N-Quads state none."""
        if self.part_of is not None:
            return self.part_of.chunk.origin(self.part_of.first + number)
        if self._publications is None and self._read_publication is None:
            return self._source, None
        publication = self.publication(number)
        return publication.source, publication.published

    def contents(self, numbers: NDArray[np.integer]) -> list[str]:
        """The content hashes of some of the publications, as they were given."""
        if self._given is not None:
            return [self._given[number].content_hash for number in numbers.tolist()]
        if self.part_of is not None:
            return self.part_of.chunk.contents(numbers + self.part_of.first)
        new = [number for number in numbers.tolist() if number not in self._contents]
        if new:
            from triplewire.encode.decode import content_hashes  # compiled kernels

            self._contents.update(zip(new, content_hashes(self.batch, np.array(new), self.decoder), strict=True))
        return [self._contents[number] for number in numbers.tolist()]

    @cached_property
    def answers(self) -> AnswerTable:
        """The answers of matches that needed an evaluation, kept for their bindings."""
        part = self.part_of
        return AnswerTable() if part is None else part.chunk.answers.part(part.first)

    @cached_property
    def decoder(self) -> Decoder:
        """From the ids of the batch back to terms."""
        from triplewire.encode.decode import Decoder  # compiled kernels

        return Decoder(self.batch)


@dataclass(slots=True)
class Rows:
    """What a snapshot says of a chunk: one row a match, in any order, and the pairs that could not be decided.

    `publication` are numbers in the chunk, `subscription` numbers of the snapshot; `failures` has
    (publication, subscription, error), several of one pair where its outcome depends on several operators that failed.
    `truncated` becomes true where listing the bindings of a match passes a limit that finding it did not.
    `details` is set where the matches' bindings are known already. `compiled`: kernels found them, not the interpreted
    tier. `operators`: what was called. `network_rows`: those of the join networks that have been made.
    """

    publication: Ids
    subscription: Ids
    truncated: NDArray[np.bool_]
    failures: tuple[tuple[int, int, TriplewireError], ...] = ()
    looked_at: LookedAt = field(default_factory=LookedAt)
    details: Sequence[Detail] | None = field(default=None, repr=False)
    compiled: bool = False
    operators: CallCounts | None = None
    network_rows: int = 0

    def __len__(self) -> int:
        return len(self.publication)

    def take(self, places: NDArray[np.int64]) -> Rows:
        """Some of the rows, in this order, without what the stages looked at."""
        details = None if self.details is None else [self.details[place] for place in places.tolist()]
        return Rows(self.publication[places], self.subscription[places], self.truncated[places], details=details)


class Snapshot(Protocol):
    """Subscriptions as they stand at one moment. Never changed, so any number of threads may use it at once.

    Each subscription has a number of this snapshot. `columnar`: publications are taken as batches; without it, as
    objects. `compiler`: what the subscriptions are compiled and evaluated with.
    """

    columnar: bool
    compiler: Compiler

    def with_compiler(self, compiler: Compiler) -> Snapshot:
        """The same subscriptions with another compiler, which differs in nothing but its taxonomy."""

    def by_template(self, row: Mapping[str, Any]) -> Subscription | None:
        """What `Compiler.compiled` makes in full of a row {"id", "language", "query", "prefixes", "base"}, where the
        template of its text is known; else None."""

    def changed(self, added: Sequence[Subscription], removed: Collection[str], *, plain: bool = False) -> Snapshot:
        """A snapshot without those removed, then with those added; this one stays as it is.

        The ids added are new or just removed. `plain` says that each of those added is what its text gives by itself.
        """

    def background_work(self) -> Callable[[], Install] | None:
        """Work that would make later calls cheaper, if there is any: to be done aside, while changes go on."""

    def match(self, chunk: Chunk, stage: Clock) -> Rows:
        """The matches of a chunk."""

    def details(self, chunk: Chunk, rows: Rows, places: NDArray[np.int64]) -> Details:
        """The bindings of the matches at these places of the rows that `match` gave for the chunk."""

    def ranks(self, numbers: Ids) -> NDArray[np.int64]:
        """Keys that order subscriptions, by number, as their ids do."""

    def ids(self, numbers: Ids) -> list[str]:
        """The ids of subscriptions, by number."""

    def id_column(self, numbers: Ids) -> TextColumn:
        """The same as a column; lone surrogates are three bytes."""

    @property
    def id_array(self) -> pa.LargeStringArray | None:
        """The ids by number, without a copy where that is possible; None where it is not known that they differ, or
        they are no table."""

    def revisions(self, numbers: Ids) -> NDArray[np.uint64]:
        """The revisions of subscriptions, by number (`triplewire.ir.subscription.revision_of`)."""

    def revision(self, id: str) -> str:
        """The revision of the subscription of this id; "" where there is none."""

    def __len__(self) -> int:
        """How many subscriptions there are."""

    def __contains__(self, id: object) -> bool:
        """Is a subscription of this id there?"""

    def get(self, id: str) -> Subscription | None:
        """The subscription of this id, as it was registered."""

    def registered(self, ids: Collection[str]) -> set[str]:
        """Those of these distinct ids that are registered."""

    def left_to_verification(self) -> list[str]:
        """The ids of subscriptions that the index tells it never accepts (`triplewire.select.index.TellsLeft`)."""

    def unchanged(self, rows: Sequence[Row] | RowColumns) -> NDArray[np.bool_]:
        """Which of these rows of subscription files are surely registered as they are? Their ids are distinct."""

    def all_ids(self) -> list[str]:
        """The ids in the order of registration."""

    def all(self, start: int = 0) -> Iterator[Subscription]:
        """The subscriptions in the order of their registration, from place `start` on."""
