"""The matches of a run as columns, put in order at the end, and how they are written: JSON Lines and Parquet.

There is no Python object a match, unless it is shown in a table. Tables, and files that nobody sees half of:
`triplewire.cli.output`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import IO, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from triplewire.clauses.node_tests.columns import inverse
from triplewire.encode.buffers import of_bools, of_few, of_numbers, of_strings, of_text
from triplewire.encode.strings import TextColumn, hexadecimal, utf8
from triplewire.engine import MatchResult
from triplewire.engine.result import Part, pair_order
from triplewire.model.match import Match

ROW_GROUPS = 1 << 20, 1 << 13  # rows of one Parquet row group, without bindings and with them
LINES = 1 << 16, 1 << 12  # lines of JSON put together at once, without bindings and with them

BYTES = 1 << 25
"""Bytes of bindings and graphs that are put together at once, if there are several rows."""

_NAMES = pa.dictionary(pa.int32(), pa.large_string())

Show: TypeAlias = "Callable[[Match], str] | Literal['json'] | None"
"""How bindings are written: as what a function makes of a match, as JSON text, or not at all."""


@dataclass(frozen=True)
class JsonBindings:
    """The bindings of rows as JSON text: row i has the text number[i]. The texts lie in `pieces`, of which the k-th has
    those from starts[k] up to starts[k + 1]."""

    pieces: list[pa.LargeStringArray]
    starts: NDArray[np.int64]
    number: NDArray[np.int64]

    @classmethod
    def of(cls, columns: Sequence[TextColumn]) -> JsonBindings:
        """These columns, one behind the other."""
        pieces = [of_text(column.text, column.offset).cast(pa.large_string()) for column in columns]
        starts = np.array([0, *accumulate(map(len, pieces))])
        numbers = [column.number + start for column, start in zip(columns, starts[:-1], strict=True)]
        return cls(pieces, starts, np.concatenate([np.zeros(0, np.int64), *numbers]))

    def ordered(self, order: NDArray[np.int64]) -> JsonBindings:
        """The rows in this order."""
        return JsonBindings(self.pieces, self.starts, self.number[order])

    @cached_property
    def _lengths(self) -> NDArray[np.int64]:
        """Of each text, in bytes."""
        pieces = [piece for piece in self.pieces if len(piece)]
        offsets = [np.frombuffer(piece.buffers()[1], np.int64)[piece.offset :][: len(piece) + 1] for piece in pieces]
        return np.concatenate([np.zeros(0, np.int64), *map(np.diff, offsets)])

    def lengths(self, rows: slice, *, once: bool) -> NDArray[np.int64]:
        """The bytes of the texts of some rows; with `once` a text counts for the first of the rows that have it."""
        number = self.number[rows]
        lengths = self._lengths[number]
        if once:
            again = np.ones(len(number), np.bool_)
            again[np.unique(number, return_index=True)[1]] = False
            lengths[again] = 0
        return lengths

    def encoded(self, rows: slice) -> pa.DictionaryArray:
        """Some rows, with the texts that occur in them."""
        used, place = np.unique(self.number[rows], return_inverse=True)
        ends = np.searchsorted(used, self.starts).tolist()  # of the texts before each piece
        # `ChunkedArray.take` copies all pieces each time
        texts = [
            piece.take(of_numbers(used[begin:end] - start))
            for piece, start, begin, end in zip(self.pieces, self.starts, ends, ends[1:], strict=False)
            if begin < end
        ]
        return _dictionary(pa.concat_arrays(texts), place)


@dataclass(frozen=True)
class Payload:
    """What rows for programs hold beside the names. `construct`: row -> the graph of a CONSTRUCT query. Row i has the
    content hash contents[content[i]]; `revisions` are those of the subscriptions, by number."""

    bindings: JsonBindings
    construct: Mapping[int, bytes]
    contents: Sequence[str]
    content: NDArray[np.int32]
    revisions: NDArray[np.uint64]


@dataclass(frozen=True)
class Ordered:
    """Rows by publication, then by subscription, as strings. `publication` and `subscription` number the names;
    `payload` are the bindings as texts for people, or what programs get, or None where they are left out."""

    publications: Sequence[str]
    subscriptions: Sequence[str]
    publication: NDArray[np.int32]
    subscription: NDArray[np.int32]
    truncated: NDArray[np.bool_]
    payload: list[str] | Payload | None

    def __len__(self) -> int:
        return len(self.publication)

    def shown(self) -> Iterator[tuple[str, ...]]:
        """Each row as text, without `truncated`."""
        names, ids = self.publications, self.subscriptions
        pairs = zip(self.publication.tolist(), self.subscription.tolist(), strict=True)
        for row, (publication, subscription) in enumerate(pairs):
            more = (self.payload[row],) if isinstance(self.payload, list) else ()
            yield (names[publication], ids[subscription], *more)


class Collected:
    """Takes match results one by one."""

    def __init__(self, show: Show) -> None:
        self.show = show
        self._names: list[str] = []  # of publications with matches
        self._columns: list[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_]]] = []
        self._shown: list[str] = []
        self._texts: list[TextColumn] = []
        self._construct: dict[int, bytes] = {}  # by row, in the order in which they came
        self._contents: list[str] = []  # of each of `_names`
        self._last: Part | None = None
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, result: MatchResult) -> None:
        """Keep the rows of a result. All results come from one snapshot of the subscriptions."""
        for part in result.parts:
            rows, first = part.rows, self._count
            self._count += len(part)
            columns = rows.publication, rows.subscription, rows.truncated
            if self.show is not None:
                if self.show != "json":
                    self._shown += map(self.show, part)
                for texts in part.texts() if self.show == "json" else ():
                    self._texts.append(texts.bindings)
                    self._construct.update((first + row, graph) for row, graph in texts.construct.items())
                    first += len(texts)
                columns = part.publication, part.subscription, part.truncated  # as listing bindings may find them cut
            used, number = _numbered(columns[0])
            if self.show == "json":
                self._contents += part.chunk.contents(used)
            ids = part.publications
            number += np.int32(len(self._names))
            self._names += [ids[publication] for publication in used.tolist()]
            # copies: so the matcher has the room of its own columns again
            self._columns.append((number, columns[1].copy(), columns[2].copy()))
            self._last = part

    def ordered(self) -> Ordered:
        """All rows, in order."""
        if self._last is None:
            nothing = np.zeros(0, np.int32)
            payload = self._payload(np.zeros(0, np.int64), nothing, np.zeros(0, np.uint64))
            return Ordered((), (), nothing, nothing, np.zeros(0, np.bool_), payload)
        names = sorted(set(self._names))
        rank = {name: number for number, name in enumerate(names)}
        ranks = np.array([rank[name] for name in self._names], np.int32)
        name_of = np.concatenate([columns[0] for columns in self._columns])
        publication = ranks[name_of]
        all_subscriptions = np.concatenate([columns[1] for columns in self._columns])
        truncated = np.concatenate([columns[2] for columns in self._columns])
        self._columns.clear()
        used, subscription = _numbered(all_subscriptions)
        snapshot = self._last.snapshot
        by_id = np.argsort(snapshot.ranks(used), kind="stable")
        subscription = inverse(by_id)[subscription]
        ids = snapshot.ids(used[by_id])
        if self.show is None:
            return Ordered(names, ids, *_sorted(publication, subscription, truncated), None)
        order = pair_order(publication, subscription.astype(np.int64))
        revisions = snapshot.revisions(used[by_id]) if self.show == "json" else np.zeros(0, np.uint64)
        payload = self._payload(order, name_of, revisions)
        return Ordered(names, ids, publication[order], subscription[order], truncated[order], payload)

    def _payload(
        self, order: NDArray[np.int64], name_of: NDArray[np.int32], revisions: NDArray[np.uint64]
    ) -> list[str] | Payload | None:
        """What the rows hold beside the names, in this order; `name_of` is the place in `_names` of each."""
        if self.show != "json":
            return None if self.show is None else [self._shown[row] for row in order.tolist()]
        place = {row: place for place, row in enumerate(order.tolist())} if self._construct else {}
        graphs = {place[row]: graph for row, graph in self._construct.items()}
        bindings = JsonBindings.of(self._texts).ordered(order)
        return Payload(bindings, graphs, self._contents, name_of[order], revisions)


def ordered_rows(table: pa.Table) -> Ordered:
    """The matches of a table as the same rows, with all columns that programs get.

    The table has the columns of `triplewire.encode.schema.MATCHES`, as strings or dictionaries of them, and `place` and
    `row`, by which matches of one publication id and one subscription are ordered.
    """
    names, publication = _ranked(table["publication"])
    ids, subscription = _ranked(table["subscription"])
    order = np.lexsort((table["row"].to_numpy(), table["place"].to_numpy(), subscription, publication))
    numbers: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
    texts: list[pa.LargeStringArray] = []
    for chunk in _encoded(table["bindings"]).chunks:
        numbers.append(np.asarray(chunk.indices) + sum(map(len, texts)))
        texts.append(chunk.dictionary.cast(pa.large_string()))
    starts = np.array([0, *accumulate(map(len, texts))])
    graphs = table["construct"].cast(pa.large_string()).take(of_numbers(order))
    construct = {row: utf8(graphs[row].as_py()) for row in np.flatnonzero(graphs.is_valid()).tolist()}
    contents, content = _ranked(table["content"])
    texts_of, revision = _ranked(table["revision"])
    revisions = np.zeros(len(ids), np.uint64)
    revisions[subscription] = np.array([int(text, 16) for text in texts_of], np.uint64)[revision]
    payload = Payload(
        JsonBindings(texts, starts, np.concatenate(numbers)[order]), construct, contents, content[order], revisions
    )
    truncated = table["truncated"].to_numpy()[order]
    return Ordered(names, ids, publication[order], subscription[order], truncated, payload)


def _encoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column if pa.types.is_dictionary(column.type) else column.dictionary_encode()


def _ranked(column: pa.ChunkedArray) -> tuple[list[str], NDArray[np.int32]]:
    """The distinct texts of a column in order, and the place of each row's among them."""
    chunks = _encoded(column).chunks
    used = [np.unique(chunk.indices) for chunk in chunks]
    texts = [chunk.dictionary.take(of_numbers(own)).to_pylist() for chunk, own in zip(chunks, used, strict=True)]
    names = sorted(set().union(*texts))
    rank = {name: number for number, name in enumerate(names)}
    rows = [np.zeros(0, np.int32)]
    for chunk, own, names_of in zip(chunks, used, texts, strict=True):
        ranks = np.zeros(len(chunk.dictionary), np.int32)
        ranks[own] = [rank[name] for name in names_of]
        rows.append(ranks[np.asarray(chunk.indices)])
    return names, np.concatenate(rows)


def _sorted(
    publication: NDArray[np.int32], subscription: NDArray[np.int32], truncated: NDArray[np.bool_]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_]]:
    """The rows in order, put into one number each: to sort numbers is quicker than to find their order."""
    keys = publication.astype(np.int64) << 32
    keys |= subscription.astype(np.int64) << 1
    keys |= truncated
    keys.sort(kind="stable")  # as most rows are in order already
    return (keys >> 32).astype(np.int32), (keys >> 1 & 0x7FFFFFFF).astype(np.int32), (keys & 1).astype(np.bool_)


def _numbered(values: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The distinct values, ascending, and the place of each value among them; without sorting, as there are many."""
    present = np.zeros(int(values.max()) + 1, np.bool_)
    present[values] = True
    used = np.flatnonzero(present).astype(np.int32)
    place = np.zeros(len(present), np.int32)
    place[used] = np.arange(len(used), dtype=np.int32)
    return used, place[values]


def _portions(rows: Ordered, most: tuple[int, int], *, once: bool) -> Iterator[slice]:
    """The rows in portions of so many, without payload and with it; fewer where those have more than `BYTES`. `once`:
    equal texts of a portion are written once."""
    payload = rows.payload if isinstance(rows.payload, Payload) else None
    start = 0
    while start < len(rows):
        end = min(start + most[payload is not None], len(rows))
        if payload is not None:
            lengths = payload.bindings.lengths(slice(start, end), once=once)
            for row, graph in _within(payload.construct, slice(start, end)).items():
                lengths[row] += len(graph)
            end = start + max(1, int(np.searchsorted(np.cumsum(lengths), BYTES, "right")))
        yield slice(start, end)
        start = end


def write_json_lines(stream: IO[str], rows: Ordered) -> None:
    """One JSON object a line, as the README describes it."""
    dumps = json.JSONEncoder(ensure_ascii=False).encode
    payload = rows.payload if isinstance(rows.payload, Payload) else None
    between = b', "bindings": ' if payload is not None else b""
    publications = _pieces(utf8(f'{{"publication": {dumps(name)}, "subscription": ') for name in rows.publications)
    subscriptions = _pieces(utf8(dumps(name)) + between for name in rows.subscriptions)
    end = b', "construct": ' if payload is not None else b"}\n"
    truncated = _pieces((b', "truncated": false' + end, b', "truncated": true' + end))
    for portion in _portions(rows, LINES, once=False):
        columns = [publications.take(of_numbers(rows.publication[portion]))]
        columns.append(subscriptions.take(of_numbers(rows.subscription[portion])))
        if payload is not None:
            columns.append(payload.bindings.encoded(portion).dictionary_decode().cast(pa.large_binary()))
        columns.append(truncated.take(of_numbers(rows.truncated[portion].astype(np.int8))))
        if payload is not None:
            columns += _json_ends(payload, portion, rows.subscription[portion])
        lines = pc.binary_join_element_wise(*columns, of_strings([b""])[0])
        end = np.frombuffer(lines.buffers()[1], np.int64)[len(lines)]
        stream.write(lines.buffers()[2].slice(0, end).to_pybytes().decode())


def _json_ends(payload: Payload, portion: slice, subscription: NDArray[np.int32]) -> Iterator[pa.Array]:
    """The last values of some lines: the graph, the content hash, and the revision with the end of the line."""
    dumps = json.JSONEncoder(ensure_ascii=False).encode
    graphs = [b"null", *(utf8(dumps(graph.decode())) for graph in _within(payload.construct, portion).values())]
    place = np.zeros(portion.stop - portion.start, np.int32)
    place[list(_within(payload.construct, portion))] = np.arange(1, len(graphs))
    yield of_strings(graphs).take(of_numbers(place))
    used, number = np.unique(payload.content[portion], return_inverse=True)
    contents = [b', "content": "%s", "revision": "' % utf8(payload.contents[content]) for content in used.tolist()]
    yield of_strings(contents).take(of_numbers(number))
    revisions = hexadecimal(payload.revisions[subscription])
    yield of_text(revisions.text, revisions.offset)
    yield of_strings([b'"}\n']).take(of_numbers(np.zeros(len(subscription), np.int8)))


def _within(graphs: Mapping[int, bytes], portion: slice) -> dict[int, bytes]:
    """The graphs of some rows, by their place among these."""
    rows = range(portion.start, portion.stop) if graphs else ()
    return {row - portion.start: graphs[row] for row in rows if row in graphs}


def write_parquet(path: Path, rows: Ordered) -> None:
    """The same columns as JSON Lines; the bindings are JSON text, and `construct` is N-Quads."""
    import pyarrow.parquet as pq  # JSON Lines do without it

    publications, subscriptions = (
        _pieces(map(utf8, names)).cast(pa.large_string()) for names in (rows.publications, rows.subscriptions)
    )
    schema = {"publication": _NAMES, "subscription": _NAMES, "bindings": _NAMES, "truncated": pa.bool_()}
    schema |= {"construct": pa.large_string(), "content": _NAMES, "revision": _NAMES}
    payload = rows.payload if isinstance(rows.payload, Payload) else None
    if payload is None:
        for name in ("bindings", "construct", "content", "revision"):
            del schema[name]
    # without Arrow's own schema in it, the names are read back as plain strings
    with pq.ParquetWriter(path, pa.schema(schema), store_schema=False) as writer:
        for portion in _portions(rows, ROW_GROUPS, once=True):
            columns = {
                "publication": pa.DictionaryArray.from_arrays(of_numbers(rows.publication[portion]), publications),
                "subscription": pa.DictionaryArray.from_arrays(of_numbers(rows.subscription[portion]), subscriptions),
                "truncated": of_bools(rows.truncated[portion]),
            }
            if payload is not None:
                columns["bindings"] = payload.bindings.encoded(portion)
                columns["construct"] = of_few(_within(payload.construct, portion), portion.stop - portion.start).cast(
                    pa.large_string()
                )
                used, number = np.unique(payload.content[portion], return_inverse=True)
                contents = of_strings([utf8(payload.contents[content]) for content in used.tolist()])
                columns["content"] = _dictionary(contents.cast(pa.large_string()), number)
                used, number = np.unique(rows.subscription[portion], return_inverse=True)
                revisions = hexadecimal(payload.revisions[used])
                columns["revision"] = _dictionary(
                    of_text(revisions.text, revisions.offset).cast(pa.large_string()), number
                )
            writer.write_batch(pa.record_batch([columns[name] for name in schema], schema=writer.schema), ROW_GROUPS[0])


def _dictionary(texts: pa.LargeStringArray, number: NDArray[np.int64]) -> pa.DictionaryArray:
    """Row i is texts[number[i]]. Equal texts become one, since a dictionary with equal values is not written as one to
    Parquet; they are in the order of the rows, so that the file does not depend on how rows came together."""
    encoded = texts.dictionary_encode()
    # `to_numpy` would import pandas
    rows = np.frombuffer(encoded.indices.buffers()[1], np.int32, len(encoded))[number]
    used, first, place = np.unique(rows, return_index=True, return_inverse=True)
    order = np.argsort(first)
    indices = inverse(order)[place].astype(np.int32)
    return pa.DictionaryArray.from_arrays(of_numbers(indices), encoded.dictionary.take(of_numbers(used[order])))


def _pieces(texts: Iterable[bytes]) -> pa.Array:
    return of_strings(list(texts))
