"""The matches of a run as columns, put in order at the end, and how they are written: JSON Lines and Parquet.

There is no Python object a match, unless its bindings are shown. Tables, and files that nobody sees half of:
`triplewire.cli.output`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from triplewire.encode.buffers import of_numbers, of_strings
from triplewire.engine import MatchResult
from triplewire.engine.result import Part, pair_order
from triplewire.model.match import Match

ROW_GROUP, BINDINGS_ROW_GROUP = 1 << 20, 1 << 13  # rows of one Parquet row group, without bindings and with them
LINES = 1 << 16, 1 << 12  # lines of JSON put together at once, without bindings and with them

_UTF8 = ("utf-8", "backslashreplace")  # text without the lone surrogates that UTF-8 cannot hold
_NAMES = pa.dictionary(pa.int32(), pa.large_string())


@dataclass(frozen=True)
class Ordered:
    """Rows by publication, then by subscription, as strings. `publication` and `subscription` number the names;
    `bindings` are texts, None where they are left out."""

    publications: Sequence[str]
    subscriptions: Sequence[str]
    publication: NDArray[np.int32]
    subscription: NDArray[np.int32]
    truncated: NDArray[np.bool_]
    bindings: list[str] | None

    def __len__(self) -> int:
        return len(self.publication)

    def shown(self) -> Iterator[tuple[str, ...]]:
        """Each row as text, without `truncated`."""
        names, ids = self.publications, self.subscriptions
        pairs = zip(self.publication.tolist(), self.subscription.tolist(), strict=True)
        for row, (publication, subscription) in enumerate(pairs):
            more = () if self.bindings is None else (self.bindings[row],)
            yield (names[publication], ids[subscription], *more)


class Collected:
    """Takes match results one by one; `show` makes the text of a match's bindings, None leaves them out."""

    def __init__(self, show: Callable[[Match], str] | None) -> None:
        self.show = show
        self._names: list[str] = []  # of publications with matches
        self._columns: list[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_]]] = []
        self._bindings: list[str] = []
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
                columns = part.publication, part.subscription, part.truncated
                self._bindings += map(self.show, part)
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
            return Ordered((), (), nothing, nothing, np.zeros(0, np.bool_), None if self.show is None else [])
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
        bindings = [self._bindings[row] for row in order.tolist()]
        self._bindings.clear()
        return Ordered(names, ids, publication[order], subscription[order], truncated[order], bindings)


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
    between = b', "bindings": ' if rows.bindings is not None else b', "truncated": '
    publications = _pieces(
        f'{{"publication": {dumps(name)}, "subscription": '.encode(*_UTF8) for name in rows.publications
    )
    subscriptions = _pieces(dumps(name).encode(*_UTF8) + between for name in rows.subscriptions)
    ends = _pieces((b"false}\n", b"true}\n"))
    together = LINES[rows.bindings is not None]
    for start in range(0, len(rows), together):
        some = slice(start, start + together)
        columns = [publications.take(of_numbers(rows.publication[some]))]
        columns.append(subscriptions.take(of_numbers(rows.subscription[some])))
        if rows.bindings is not None:
            columns.append(_pieces(text.encode(*_UTF8) + b', "truncated": ' for text in rows.bindings[some]))
        columns.append(ends.take(of_numbers(rows.truncated[some].astype(np.int8))))
        lines = pc.binary_join_element_wise(*columns, of_strings([b""])[0])
        end = np.frombuffer(lines.buffers()[1], np.int64)[len(lines)]
        stream.write(lines.buffers()[2].slice(0, end).to_pybytes().decode())


def write_parquet(path: Path, rows: Ordered) -> None:
    """The same columns as JSON Lines; the bindings are JSON text."""
    publications = _pieces(name.encode(*_UTF8) for name in rows.publications).cast(pa.large_string())
    subscriptions = _pieces(name.encode(*_UTF8) for name in rows.subscriptions).cast(pa.large_string())
    schema = {"publication": _NAMES, "subscription": _NAMES, "bindings": pa.string(), "truncated": pa.bool_()}
    if rows.bindings is None:
        del schema["bindings"]
    # without Arrow's own schema in it, the names are read back as plain strings
    with pq.ParquetWriter(path, pa.schema(schema), store_schema=False) as writer:
        group = ROW_GROUP if rows.bindings is None else BINDINGS_ROW_GROUP
        for start in range(0, len(rows), group):
            some = slice(start, start + group)
            columns = {
                "publication": pa.DictionaryArray.from_arrays(rows.publication[some], publications),
                "subscription": pa.DictionaryArray.from_arrays(rows.subscription[some], subscriptions),
                "truncated": pa.array(rows.truncated[some]),
            }
            if rows.bindings is not None:
                texts = (text.encode(*_UTF8).decode() for text in rows.bindings[some])
                columns["bindings"] = pa.array(texts, pa.string())
            writer.write_batch(pa.record_batch([columns[name] for name in schema], schema=writer.schema), group)


def _pieces(texts: Iterable[bytes]) -> pa.Array:
    return of_strings(list(texts))
