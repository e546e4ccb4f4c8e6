"""What `Engine.match` returns: the matches, the pairs that failed, and what it cost.

The matches lie in arrays, chunk by chunk; `Match` objects, with their bindings, are made when they are asked for.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, repeat
from operator import sub
from typing import TYPE_CHECKING, NoReturn, overload

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Ids
from triplewire.encode.strings import TextColumn, hexadecimal, utf8
from triplewire.engine.chunk import Chunk, Details, Rows, Snapshot, Template
from triplewire.engine.stats import Stats
from triplewire.errors import Refusal
from triplewire.ir.nodes import Label, PatternTerm, Variable
from triplewire.model.match import Binding, Match, MatchRow, graph_text, matches_of, table, term_bytes
from triplewire.model.terms import IRI, BlankNode, Literal, Term, Triple

if TYPE_CHECKING:
    import pyarrow as pa

    from triplewire.encode.matches import MatchColumns


_AT_ONCE = 1_024  # matches whose bindings are computed in one call
_BYTES = 64 << 20  # bytes of terms that are written as text in one call, at most
_IN_TURN = 16  # times `_AT_ONCE` matches in one call, at most, where all are read in turn and have few bindings
_NAMED = 4_096  # matches whose ids are listed in one call: the garbage collector is slow on long new lists
_KEPT = 1 << 16  # ids that are kept for the next matches
_SPARSE = 16  # with more than so many subscriptions per match, the cache takes longer than making the ids


class _SubscriptionIds:
    """The ids of the subscriptions of matches: made each time or, where that is faster, when they first occur, and then
    kept up to `_KEPT`. `numbers`: all that will be asked for, where they are many."""

    def __init__(self, snapshot: Snapshot, numbers: Ids | None = None) -> None:
        self._snapshot = snapshot
        self._place: Ids | None = None  # subscription -> place in `_made`, or -1
        if numbers is not None and (size := int(numbers.max()) + 1) <= _SPARSE * len(numbers):
            self._place = np.full(size, -1, np.int32)
            self._made = np.empty(min(len(numbers), _KEPT), object)
            self._count = 0

    def texts(self, numbers: Ids) -> NDArray[np.object_]:
        """The ids of these."""
        place = self._place
        if place is not None:
            new = _each_once(numbers[place[numbers] < 0], place)
            if self._count + len(new) > len(self._made):  # begin anew
                place[:], self._count = -1, 0
                new = _each_once(numbers, place)
            if len(new) <= len(self._made):
                if len(new):
                    end = self._count + len(new)
                    self._made[self._count : end] = self._snapshot.ids(new)
                    place[new] = np.arange(self._count, end)
                    self._count = end
                return self._made[place[numbers]]
            place[:] = -1
        texts = np.empty(len(numbers), object)
        texts[:] = self._snapshot.ids(numbers)
        return texts


def _each_once(numbers: Ids, place: Ids) -> Ids:
    """The distinct numbers. Overwrites their entries in `place`."""
    every = np.arange(len(numbers))
    place[numbers] = every
    each: Ids = numbers[place[numbers] == every]
    return each


def construct(template: Template, bindings: Iterable[Binding], most_bytes: int) -> tuple[tuple[Triple, ...], bool]:
    """The graph of a CONSTRUCT query (SPARQL 1.1, 16.2): its template once for each binding, as a set of triples in the
    order of their making, up to the first with which their terms have more than `most_bytes` together; and whether
    there was one.

    A triple with an unbound variable, a literal subject or a predicate that is no IRI is left out. A hidden variable
    is a blank node of the template: a new one for each binding, of a label that no blank node of the bindings has.
    """
    bindings = tuple(bindings)
    taken = {term.label for binding in bindings for term in binding.values() if isinstance(term, BlankNode)}
    stem = "c"
    while any(label.startswith(stem) for label in taken):
        stem += "c"
    triples: dict[Triple, None] = {}
    sizes: dict[Term, int] = {}
    total = 0
    for number, binding in enumerate(bindings):
        for row in template:
            subject, predicate, object_ = (_instance(term, binding, f"{stem}{number}") for term in row)
            if isinstance(subject, IRI | BlankNode) and isinstance(predicate, IRI) and object_ is not None:
                triple = Triple(subject, predicate, object_)
                if triple in triples:
                    continue
                for term in triple:
                    if term not in sizes:
                        sizes[term] = term_bytes(term)
                    total += sizes[term]
                if total > most_bytes:
                    return tuple(triples), True
                triples[triple] = None
    return tuple(triples), False


def _instance(term: PatternTerm, binding: Binding, stem: str) -> Term | None:
    if isinstance(term, Variable):
        return BlankNode(stem + term.name.replace(".", "_")) if term.hidden else binding.get(term.name)
    if isinstance(term, Label):
        return IRI(term.iri) if term.iri else Literal(term.text)
    return term if isinstance(term, IRI | Literal) else None


@dataclass(frozen=True, slots=True)
class MatchTexts:
    """Some matches as text. `bindings`: JSON text, by row; `construct`: row of a CONSTRUCT match -> its graph as
    N-Quads in UTF-8."""

    bindings: TextColumn
    construct: Mapping[int, bytes]

    def __len__(self) -> int:
        return len(self.bindings)


class ChunkOrigin:
    """What the matches of one publication of a chunk were made from (`triplewire.model.match.Origin`)."""

    __slots__ = ("_chunk", "_number", "snapshot")

    def __init__(self, chunk: Chunk, number: int, snapshot: Snapshot) -> None:
        self._chunk, self._number, self.snapshot = chunk, number, snapshot

    @property
    def content(self) -> str:
        """See `Origin`."""
        return self._chunk.contents(np.array([self._number]))[0]

    def revision(self, subscription: str) -> str:
        """See `Origin`."""
        return self.snapshot.revision(subscription)


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
        return pair_order(self.rows.publication, self.snapshot.ranks(self.rows.subscription))

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

    def __iter__(self) -> Iterator[Match]:
        return chain.from_iterable(self._portions())

    def _portions(self) -> Iterator[Iterator[Match]]:
        """The matches, in iterators of some at a time, so that their memory is reused where the caller keeps none."""
        start, count, ids = 0, _AT_ONCE, _SubscriptionIds(self.snapshot, self.rows.subscription)
        while start < len(self):
            binding_count, rows = self._rows(start, (start := start + count), ids)
            yield matches_of(rows, self.matched_at)
            count = _next_count(count, binding_count)

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
            used, number = np.unique(subscription, return_inverse=True)
            revisions = hexadecimal(self.snapshot.revisions(used))
            yield MatchColumns(
                names_of(self.chunk.ids, publication),
                self.snapshot.id_column(subscription),
                texts.bindings,
                TextColumn(contents.text, contents.offset, (np.cumsum(begins) - 1).astype(np.int32)),
                TextColumn(revisions.text, revisions.offset, number.astype(np.int32)),
                self.rows.truncated[places],
                texts.construct,
            )

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The same as Arrow batches of the schema `triplewire.encode.schema.MATCHES`, so memory is that of one."""
        from triplewire.encode.matches import batches  # as above

        return chain.from_iterable(batches(columns, self.matched_at) for columns in self.columns())

    def matches(self, start: int, end: int) -> list[Match]:
        """Some of the matches as objects."""
        return list(matches_of(self._rows(start, end, _SubscriptionIds(self.snapshot))[1], self.matched_at))

    def _rows(self, start: int, end: int, ids: _SubscriptionIds) -> tuple[int, Iterator[MatchRow]]:
        """What some of the matches are made of, and how many bindings they have together."""
        places = self.order[start:end]
        details = self._details(places)
        texts = ids.texts(self.rows.subscription[places])
        few = [slice(begin, begin + _NAMED) for begin in range(0, len(places), _NAMED)]
        bindings = iter(details.bindings)
        rows: Iterator[MatchRow] = chain.from_iterable(self._named(places[each], texts[each], bindings) for each in few)
        return details.count, self._with_graphs(rows, details.templates, places) if details.templates else rows

    def _with_graphs(
        self, rows: Iterator[MatchRow], templates: Mapping[int, Template], places: NDArray[np.int64]
    ) -> Iterator[MatchRow]:
        """The same, with the graphs of CONSTRUCT queries, each made shortly before it is taken."""
        for number, row in enumerate(rows):
            if number in templates:
                publication, subscription, bindings, _, _, origin = row
                graph = self._graph(templates[number], bindings, places[number])
                truncated = bool(self.rows.truncated[places[number]])
                yield publication, subscription, bindings, truncated, graph, origin
            else:
                yield row

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

    def _named(
        self, places: NDArray[np.int64], ids: NDArray[np.object_], bindings: Iterator[tuple[Binding, ...]]
    ) -> Iterator[MatchRow]:
        """The rows of the matches at these places, with these subscription ids and the next of the bindings."""
        publication = self.rows.publication[places]
        begins = [0, *((publication[1:] != publication[:-1]).nonzero()[0] + 1).tolist()]
        numbers, counts = publication[begins].tolist(), list(map(sub, [*begins[1:], len(places)], begins))
        every = self.chunk.ids
        names = chain.from_iterable(map(repeat, [every[number] for number in numbers], counts))
        origin_of_each = [ChunkOrigin(self.chunk, number, self.snapshot) for number in numbers]
        origins = chain.from_iterable(map(repeat, origin_of_each, counts))
        truncated = self.rows.truncated[places].tolist()
        none: Iterator[None] = repeat(None)
        return zip(names, ids.tolist(), bindings, truncated, none, origins, strict=False)  # it ends with the names


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
        self._kept: tuple[int, int, list[Match]] = 0, 0, []  # the matches made last: where they begin and end

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

    def to_arrow(self) -> pa.Table:
        """The matches in their order as columns of the schema `triplewire.encode.schema.MATCHES`, without an object a
        match: `bindings` is JSON text. `parts` give the same a batch at a time. Raises `LimitError` where the bindings
        of one match are longer than a batch holds, 2 GiB."""
        import pyarrow as pa  # as in `Engine.match_batch`

        from triplewire.encode.schema import MATCHES

        return pa.Table.from_batches(chain.from_iterable(part.batches() for part in self.parts), MATCHES)

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
            matches = self.parts[place].matches(start, start + _AT_ONCE)
            begin = self._starts[place] + start
            self._kept = begin, begin + len(matches), matches
        return matches[number - begin]

    def _repr_html_(self) -> str:
        """A table of the first matches, in notebooks."""
        rows = ((match.subscription, match.publication, repr(match).partition(": ")[2][:-1]) for match in self)
        return table(repr(self)[1:-1], ("subscription", "publication", "bindings"), rows, len(self))

    def __repr__(self) -> str:
        return f"<MatchResult: {len(self)} matches, {self.publications} publications, {len(self.refusals)} refusals>"
