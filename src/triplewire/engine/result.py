"""What `Engine.match` returns: the matches, the pairs that failed, and what it cost.

The matches lie in arrays, chunk by chunk; `Match` objects, with their bindings, are made when they are asked for.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, overload
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from triplewire.argument_checks import expect_text
from triplewire.encode.batch import Ids
from triplewire.encode.strings import TextColumn, hexadecimal, utf8
from triplewire.engine.chunk import Chunk, Details, Rows, Snapshot, Template
from triplewire.engine.match_block import MatchBlock, construct
from triplewire.engine.stats import Stats
from triplewire.errors import Refusal
from triplewire.model.match import Binding, Match, graph_text, table, term_bytes
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Literal, Triple

if TYPE_CHECKING:
    import pyarrow as pa

    from triplewire.encode.matches import MatchColumns


_AT_ONCE = 4_096  # matches whose bindings are computed in one call
_BYTES = 64 << 20  # bytes of terms that are written as text in one call, at most
_SPARSE = 8  # with more than so many subscriptions a match, those that do not occur are left out of a dictionary
_IN_TURN = 4  # times `_AT_ONCE` matches in one call, at most, where all are read in turn and have few bindings


@dataclass(frozen=True, slots=True)
class MatchTexts:
    """Some matches as text. `bindings`: JSON text, by row; `construct`: row of a CONSTRUCT match -> its graph as
    N-Quads in UTF-8."""

    bindings: TextColumn
    construct: Mapping[int, bytes]

    def __len__(self) -> int:
        return len(self.bindings)


@dataclass(eq=False)
class Part:
    """The matches of one chunk of publications, all arrays in the order promised by `MatchResult`.

    `publications` are the ids of the chunk's publications; `publication` numbers them, `subscription` numbers the
    subscriptions of the snapshot (`subscription_ids`). `stats` count the matches that turn out to be truncated. The
    terms in a graph of a CONSTRUCT query have at most `most_bytes` (`Settings.max_binding_bytes`).
    """

    snapshot: Snapshot
    chunk: Chunk
    rows: Rows
    matched_at: dt.datetime
    stats: Stats
    most_bytes: int

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """The places of the rows, by publication and then by the subscriptions' ids."""
        ranks = self.snapshot.ranks(self.rows.subscription)
        return np.argsort(ranks, kind="stable") if len(self.chunk) == 1 else pair_order(self.rows.publication, ranks)

    @property
    def publications(self) -> Sequence[str]:
        """The ids of the publications of the chunk."""
        return self.chunk.ids

    @property
    def publication(self) -> Ids:
        """Match -> number of its publication in `publications`."""
        return self.rows.publication[self.order]

    @property
    def subscription(self) -> Ids:
        """Match -> number of its subscription."""
        return self.rows.subscription[self.order]

    @property
    def truncated(self) -> NDArray[np.bool_]:
        """Match -> are its bindings cut? Where listing them passes a limit, that is known once they are listed."""
        return self.rows.truncated[self.order]

    def ids(self, publication: str | None = None) -> list[str]:
        """The ids of the matches' subscriptions; with the id of a publication, of its matches."""
        if publication is None:
            return self.snapshot.ids(self.subscription)
        numbers = self._numbers.get(publication, ())
        begins, ends = (np.searchsorted(self.publication, numbers, side) for side in ("left", "right"))
        places = [self.order[begin:end] for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]
        return self.snapshot.ids(self.rows.subscription[np.concatenate(places)]) if places else []

    @cached_property
    def _numbers(self) -> dict[str, list[int]]:
        """Id -> the numbers of the publications that have it."""
        numbers: dict[str, list[int]] = {}
        for number, id_ in enumerate(self.publications):
            numbers.setdefault(id_, []).append(number)
        return numbers

    def publication_ids(self) -> list[str]:
        """The id of the publication of each match."""
        return list(map(self.publications.__getitem__, self.publication.tolist()))

    def __iter__(self) -> Iterator[Match]:
        return chain.from_iterable(self._blocks())

    def _blocks(self) -> Iterator[MatchBlock]:
        """The matches, some at a time, so that their memory is reused where the caller keeps none."""
        start, count = 0, _AT_ONCE
        while start < len(self):
            block = self.block(start, start + count)
            yield block
            start += count
            count = _AT_ONCE if block.count is None else _next_count(count, block.count)

    def block(self, start: int, end: int) -> MatchBlock:
        """Some of the matches."""
        places, reference = self.order[start:end], ref(self)

        def cut(rows: NDArray[np.int64]) -> None:
            part = reference()
            if part is not None:
                part._cut(places[rows])

        rows = self.rows.take(places)
        return MatchBlock(self.chunk, self.snapshot, rows, self.matched_at, self.most_bytes, cut)

    def texts(self) -> Iterator[MatchTexts]:
        """The bindings and graphs as text, of some matches at a time, in their order."""
        start, count = 0, _AT_ONCE
        while start < len(self):
            places = self.order[start : start + count]
            details = self._details(places)
            while len(places) > 1 and _bytes_of_texts(details) > _BYTES:
                places = places[: len(places) // 2]
                details = self._details(places)
            templates, rows = details.templates, sorted(details.templates)
            bindings = self.snapshot.details(self.chunk, self.rows, places[rows]).bindings if rows else ()
            graphs = {
                row: utf8(graph_text(self._graph(templates[row], of_match, places[row])))
                for row, of_match in zip(rows, bindings, strict=True)
            }
            yield MatchTexts(details.as_text(), graphs)
            start += len(places)
            count = _next_count(len(places), details.count)

    def _graph(self, template: Template, bindings: tuple[Binding, ...], place: np.int64) -> tuple[Triple, ...]:
        """The graph of the match at this place. Where it is cut, the match is marked as truncated."""
        triples, cut = construct(template, bindings, self.most_bytes)
        if cut:
            self._cut(np.array([place]))
        return triples

    def columns(self) -> Iterator[MatchColumns]:
        """The matches as columns whose rows share texts, some at a time. They are made when they are asked for."""
        from triplewire.encode.matches import MatchColumns, names_of  # as in `Engine.match_batch`

        first = 0
        for texts in self.texts():
            places = self.order[first : (first := first + len(texts))]
            publication, subscription = self.rows.publication[places], self.rows.subscription[places]
            begins = np.diff(publication, prepend=-1) != 0
            contents = TextColumn.of([utf8(text) for text in self.chunk.contents(publication[begins])])
            revisions = hexadecimal(self.snapshot.revisions(subscription))
            yield MatchColumns(
                names_of(self.chunk.ids, publication),
                self.snapshot.id_column(subscription),
                texts.bindings,
                TextColumn(contents.text, contents.offset, (np.cumsum(begins) - 1).astype(np.int32)),
                revisions,
                self.rows.truncated[places],
                texts.construct,
            )

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The same as Arrow batches of the schema `triplewire.encode.schema.MATCHES`, so memory is that of one."""
        from triplewire.encode.matches import batches  # as above

        return chain.from_iterable(batches(columns, self.matched_at) for columns in self.columns())

    def pairs(self) -> pa.RecordBatch:
        """The matches as they were found, in the schema `triplewire.encode.schema.PAIRS`: the arrays themselves, which
        name publications and subscriptions by number, with the ids as dictionaries."""
        from triplewire.encode.matches import names_of, pairs, strings  # as in `Engine.match_batch`

        publications = strings(names_of(self.publications, np.arange(len(self.publications), dtype=np.int32)))
        subscription, ids = self.rows.subscription, self.snapshot.id_array
        if ids is None or len(ids) > _SPARSE * len(subscription):
            used, place = np.unique(subscription, return_inverse=True)
            ids, subscription = strings(self.snapshot.id_column(used)), place.astype(np.int32)
        return pairs((self.rows.publication, publications), (subscription, ids), self.rows.truncated)

    def _details(self, places: NDArray[np.int64]) -> Details:
        """The bindings of the matches at these places. A match of which they turn out to be cut says so from now on."""
        details = self.snapshot.details(self.chunk, self.rows, places)
        self._cut(places[details.cut])
        return details

    def _cut(self, places: NDArray[np.int64]) -> None:
        """Mark the matches at these places as truncated, and count those that were not before."""
        fresh = places[~self.rows.truncated[places]]
        self.rows.truncated[fresh] = True
        self.stats.truncated += len(fresh)


def _bytes_of_texts(details: Details) -> int:
    """An upper estimate of the bytes of terms that become text. Each graph counts as large as the largest may be."""
    templates = set(details.templates.values())
    times = 1 + max(map(len, templates), default=0)
    stated = (sum(term_bytes(x) for x in chain(*rows) if isinstance(x, IRI | Literal)) for rows in templates)
    return times * details.bytes_of_terms() + details.count * max(stated, default=0)


def _next_count(count: int, bindings: int) -> int:
    """How many matches to take next, after `count` matches with so many bindings together."""
    return min(4 * count, _IN_TURN * _AT_ONCE) if bindings <= 4 * count else _AT_ONCE


def pair_order(first: Ids, second: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places of pairs in ascending order; equal ones stay as they are. All numbers are at least 0."""
    if len(second) and second.max() >> 32:
        second = np.unique(second, return_inverse=True)[1]
    return np.argsort(first.astype(np.int64) << 32 | second, kind="stable")


class MatchRows(NamedTuple):
    """Matches as columns of Python's own values."""

    publication: list[str]
    subscription: list[str]
    truncated: list[bool]


class MatchResult(Sequence[Match]):
    """The matches in the order of the publications given, then of the subscriptions' ids; it is their sequence.

    A match becomes an object, with its bindings, when it is asked for; `parts` has the arrays. `refusals` are the pairs
    that could not be decided (a limit, a failed operator), of kind "pair"; `stats` counts what was looked at, and the
    seconds of each stage.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._most_bytes = snapshot.compiler.world.settings.max_binding_bytes
        self.refusals: list[Refusal] = []
        self.stats = Stats()
        self.parts: list[Part] = []
        self._snapshot = snapshot
        self._starts = [0]  # of each part, and the end
        self._kept: tuple[int, int, list[Match]] = 0, 0, []  # of the last block: where it begins and ends

    def __reduce__(self) -> NoReturn:
        raise TypeError("a result is not copied or pickled, its matches are: list(result)")

    def add(self, chunk: Chunk, rows: Rows) -> None:
        """Record what the snapshot said of a chunk."""
        if rows.failures:
            self.refusals += self._refused(chunk, rows)
        self.stats.count(len(chunk), rows)
        if len(rows):
            self.parts.append(Part(self._snapshot, chunk, rows, dt.datetime.now(dt.UTC), self.stats, self._most_bytes))
            self._starts.append(self._starts[-1] + len(rows))

    def _refused(self, chunk: Chunk, rows: Rows) -> Iterator[Refusal]:
        """The failures by publication, then by subscription; several of one pair stay in their order."""
        publication, subscription, errors = zip(*rows.failures, strict=True)
        numbers = np.array(subscription, np.int32)
        ids = self._snapshot.ids(numbers)
        order = pair_order(np.array(publication, np.int32), self._snapshot.ranks(numbers))
        names = chunk.ids
        for place in order.tolist():
            yield Refusal.of("pair", f"{names[publication[place]]} {ids[place]}", errors[place])

    @property
    def matches(self) -> list[Match]:
        """All matches as objects."""
        return list(self)

    @property
    def publications(self) -> int:
        """How many publications were looked at."""
        return self.stats.publications

    @property
    def pairs(self) -> int:
        """How many pairs and clauses the index named."""
        return self.stats.candidates

    @property
    def truncated(self) -> int:
        """How many matches have their bindings cut; see `Part.truncated`."""
        return self.stats.truncated

    @property
    def seconds(self) -> float:
        """The time of the match call."""
        return sum(self.stats.seconds.values())

    def __len__(self) -> int:
        return self._starts[-1]

    def __iter__(self) -> Iterator[Match]:
        return chain.from_iterable(self.parts)  # as `yield from` does, without a generator that each match goes through

    @property
    def subscription_ids(self) -> list[str]:
        """The id of the subscription of each match, in their order: the fastest way to get them."""
        return list(chain.from_iterable(part.ids() for part in self.parts))

    def ids(self, publication: str | Publication) -> list[str]:
        """The ids of the subscriptions that a publication satisfies, in their order; it may be given by its id."""
        id_ = publication.id if isinstance(publication, Publication) else publication
        expect_text("MatchResult.ids(publication)", id_)
        return list(chain.from_iterable(part.ids(id_) for part in self.parts))

    def rows(self) -> MatchRows:
        """The matches in their order as plain columns, without an object a match and without bindings."""
        publications = chain.from_iterable(part.publication_ids() for part in self.parts)
        truncated = chain.from_iterable(part.truncated.tolist() for part in self.parts)
        return MatchRows(list(publications), self.subscription_ids, list(truncated))

    def to_arrow(self, *, bindings: bool = True) -> pa.Table:
        """The matches in their order as columns of the schema `triplewire.encode.schema.MATCHES`, without an object a
        match: `bindings` is JSON text. `parts` give the same a batch at a time. Raises `LimitError` where the bindings
        of one match are longer than a batch holds, 2 GiB.

        Without `bindings` it is what matching has found, as it lies there, in no order, of the schema `PAIRS`: numbers
        without a copy, and dictionaries of the ids."""
        import pyarrow as pa  # as in `Engine.match_batch`

        from triplewire.encode.schema import MATCHES, PAIRS

        if not bindings:
            return pa.Table.from_batches([part.pairs() for part in self.parts], PAIRS)
        return pa.Table.from_batches(chain.from_iterable(part.batches() for part in self.parts), MATCHES)

    def to_pandas(self) -> Any:
        """The bindings as a data frame of pandas: publication, subscription, truncated, and a column a variable
        (`triplewire.engine.data_frames.columns_of`). Raises `TriplewireError` where pandas is not installed."""
        from triplewire.engine.data_frames import frame_of  # most programs want none

        return frame_of(self, "pandas")

    def to_polars(self) -> Any:
        """The same as a data frame of Polars."""
        from triplewire.engine.data_frames import frame_of  # as above

        return frame_of(self, "polars")

    @overload
    def __getitem__(self, index: int) -> Match: ...

    @overload
    def __getitem__(self, index: slice) -> list[Match]: ...

    def __getitem__(self, index: int | slice) -> Match | list[Match]:
        numbers = range(len(self))[index]
        return self._one(numbers) if isinstance(numbers, int) else [self._one(number) for number in numbers]

    def _one(self, number: int) -> Match:
        begin, end, matches = self._kept  # one read, so that threads may ask at once
        if not begin <= number < end:
            place = bisect_right(self._starts, number) - 1
            start = (number - self._starts[place]) // _AT_ONCE * _AT_ONCE
            matches = list(self.parts[place].block(start, start + _AT_ONCE))
            begin = self._starts[place] + start
            self._kept = begin, begin + len(matches), matches
        return matches[number - begin]

    def _repr_html_(self) -> str:
        """A table of the first matches, in notebooks."""
        rows = ((match.subscription, match.publication, repr(match).partition(": ")[2][:-1]) for match in self)
        return table(repr(self)[1:-1], ("subscription", "publication", "bindings"), rows, len(self))

    def __repr__(self) -> str:
        return f"<MatchResult: {len(self)} matches, {self.publications} publications, {len(self.refusals)} refusals>"
