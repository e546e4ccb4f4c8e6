"""The matches of a run as columns, put in order at the end, and how they are written: JSON Lines and Parquet.

There is no Python object a match, unless it is shown in a table. Tables, and files that nobody sees half of:
`triplewire.cli.output`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import IO, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from triplewire.encode.buffers import of_bools, of_numbers, of_strings, of_text
from triplewire.encode.strings import TextColumn, utf8
from triplewire.engine import MatchResult
from triplewire.engine.result import Part, pair_order
from triplewire.model.match import Match

ROW_GROUP, BINDINGS_ROW_GROUP = 1 << 20, 1 << 13  # rows of one Parquet row group, without bindings and with them
LINES = 1 << 16, 1 << 12  # lines of JSON put together at once, without bindings and with them

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
        # equal texts of several pieces as one: a dictionary with equal values is not written as one to Parquet
        encoded = pa.concat_arrays(texts).dictionary_encode()
        return pa.DictionaryArray.from_arrays(encoded.indices.take(of_numbers(place)), encoded.dictionary)


@dataclass(frozen=True)
class Ordered:
    """Rows by publication, then by subscription, as strings. `publication` and `subscription` number the names;
    `bindings` are texts for people or for programs, None where they are left out."""

    publications: Sequence[str]
    subscriptions: Sequence[str]
    publication: NDArray[np.int32]
    subscription: NDArray[np.int32]
    truncated: NDArray[np.bool_]
    bindings: list[str] | JsonBindings | None

    def __len__(self) -> int:
        return len(self.publication)

    def shown(self) -> Iterator[tuple[str, ...]]:
        """Each row as text, without `truncated`."""
        names, ids = self.publications, self.subscriptions
        pairs = zip(self.publication.tolist(), self.subscription.tolist(), strict=True)
        for row, (publication, subscription) in enumerate(pairs):
            more = (self.bindings[row],) if isinstance(self.bindings, list) else ()
            yield (names[publication], ids[subscription], *more)


class Collected:
    """Takes match results one by one."""

    def __init__(self, show: Show) -> None:
        self.show = show
        self._names: list[str] = []  # of publications with matches
        self._columns: list[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_]]] = []
        self._shown: list[str] = []
        self._texts: list[TextColumn] = []
        self._last: Part | None = None
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, result: MatchResult) -> None:
        """Keep the rows of a result. All results come from one snapshot of the subscriptions."""
        self._count += len(result)
        for part in result.parts:
            rows = part.rows
            columns = rows.publication, rows.subscription, rows.truncated
            if self.show is not None:
                if self.show == "json":
                    self._texts += part.texts()
                else:
                    self._shown += map(self.show, part)
                columns = part.publication, part.subscription, part.truncated  # as listing bindings may find them cut
            used, number = _numbered(columns[0])
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
            return Ordered((), (), nothing, nothing, np.zeros(0, np.bool_), self._bindings(np.zeros(0, np.int64)))
        names = sorted(set(self._names))
        rank = {name: number for number, name in enumerate(names)}
        ranks = np.array([rank[name] for name in self._names], np.int32)
        publication = ranks[np.concatenate([columns[0] for columns in self._columns])]
        all_subscriptions = np.concatenate([columns[1] for columns in self._columns])
        truncated = np.concatenate([columns[2] for columns in self._columns])
        self._columns.clear()
        used, subscription = _numbered(all_subscriptions)
        snapshot = self._last.snapshot
        by_id = np.argsort(snapshot.ranks(used), kind="stable")
        subscription = _inverse(by_id)[subscription]
        ids = snapshot.ids(used[by_id])
        if self.show is None:
            return Ordered(names, ids, *_sorted(publication, subscription, truncated), None)
        order = pair_order(publication, subscription.astype(np.int64))
        bindings = self._bindings(order)
        return Ordered(names, ids, publication[order], subscription[order], truncated[order], bindings)

    def _bindings(self, order: NDArray[np.int64]) -> list[str] | JsonBindings | None:
        """The bindings in this order."""
        if self.show == "json":
            return JsonBindings.of(self._texts).ordered(order)
        return None if self.show is None else [self._shown[row] for row in order.tolist()]


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


def _inverse(order: NDArray[np.int64]) -> NDArray[np.int32]:
    inverse = np.empty(len(order), np.int32)
    inverse[order] = np.arange(len(order), dtype=np.int32)
    return inverse


def write_json_lines(stream: IO[str], rows: Ordered) -> None:
    """One JSON object a line, as the README describes it."""
    dumps = json.JSONEncoder(ensure_ascii=False).encode
    bindings = rows.bindings if isinstance(rows.bindings, JsonBindings) else None
    between = b', "bindings": ' if bindings is not None else b""
    publications = _pieces(utf8(f'{{"publication": {dumps(name)}, "subscription": ') for name in rows.publications)
    subscriptions = _pieces(utf8(dumps(name)) + between for name in rows.subscriptions)
    ends = _pieces((b', "truncated": false}\n', b', "truncated": true}\n'))
    together = LINES[bindings is not None]
    for start in range(0, len(rows), together):
        portion = slice(start, start + together)
        columns = [publications.take(of_numbers(rows.publication[portion]))]
        columns.append(subscriptions.take(of_numbers(rows.subscription[portion])))
        if bindings is not None:
            columns.append(bindings.encoded(portion).dictionary_decode().cast(pa.large_binary()))
        columns.append(ends.take(of_numbers(rows.truncated[portion].astype(np.int8))))
        lines = pc.binary_join_element_wise(*columns, of_strings([b""])[0])
        end = np.frombuffer(lines.buffers()[1], np.int64)[len(lines)]
        stream.write(lines.buffers()[2].slice(0, end).to_pybytes().decode())


def write_parquet(path: Path, rows: Ordered) -> None:
    """The same columns as JSON Lines; the bindings are JSON text."""
    import pyarrow.parquet as pq  # JSON Lines do without it

    publications, subscriptions = (
        _pieces(map(utf8, names)).cast(pa.large_string()) for names in (rows.publications, rows.subscriptions)
    )
    schema = {"publication": _NAMES, "subscription": _NAMES, "bindings": _NAMES, "truncated": pa.bool_()}
    bindings = rows.bindings if isinstance(rows.bindings, JsonBindings) else None
    if bindings is None:
        del schema["bindings"]
    # without Arrow's own schema in it, the names are read back as plain strings
    with pq.ParquetWriter(path, pa.schema(schema), store_schema=False) as writer:
        group = ROW_GROUP if bindings is None else BINDINGS_ROW_GROUP
        for start in range(0, len(rows), group):
            portion = slice(start, start + group)
            columns = {
                "publication": pa.DictionaryArray.from_arrays(of_numbers(rows.publication[portion]), publications),
                "subscription": pa.DictionaryArray.from_arrays(of_numbers(rows.subscription[portion]), subscriptions),
                "truncated": of_bools(rows.truncated[portion]),
            }
            if bindings is not None:
                columns["bindings"] = bindings.encoded(portion)
            writer.write_batch(pa.record_batch([columns[name] for name in schema], schema=writer.schema), group)


def _pieces(texts: Iterable[bytes]) -> pa.Array:
    return of_strings(list(texts))
