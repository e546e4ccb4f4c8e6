"""The matches of a run, taken one result after the other, or a whole table of them, and put in order at the end."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from triplewire.clauses.node_tests.columns import inverse
from triplewire.cli.matches.held import HeldTexts
from triplewire.cli.matches.rows import JsonBindings, Ordered, Payload
from triplewire.encode.buffers import of_numbers
from triplewire.encode.strings import utf8
from triplewire.engine import MatchResult
from triplewire.engine.result import Part, pair_order
from triplewire.model.match import Match

Show: TypeAlias = "Callable[[Match], str] | Literal['json'] | None"
"""How bindings are written: as what a function makes of a match, as JSON text, or not at all."""


class Collected:
    """Takes match results one by one. Their texts are held by `HeldTexts`, which is told of `output`."""

    def __init__(self, show: Show, output: Path | None = None) -> None:
        self.show = show
        self._names: list[str] = []  # of publications with matches
        self._columns: list[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_]]] = []
        self._shown: list[str] = []
        self._texts = HeldTexts(output)
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
                    self._texts.add(texts.bindings, {first + row: graph for row, graph in texts.construct.items()})
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
        graphs = self._texts.graphs
        place = {row: place for place, row in enumerate(order.tolist())} if graphs else {}
        graphs = {place[row]: graph for row, graph in graphs.items()}
        bindings = JsonBindings.of(self._texts.bindings).ordered(order)
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
    keys.sort()  # equal keys are equal rows
    return (keys >> 32).astype(np.int32), (keys >> 1 & 0x7FFFFFFF).astype(np.int32), (keys & 1).astype(np.bool_)


def _numbered(values: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The distinct values, ascending, and the place of each value among them; without sorting, as there are many."""
    present = np.zeros(int(values.max()) + 1, np.bool_)
    present[values] = True
    used = np.flatnonzero(present).astype(np.int32)
    place = np.zeros(len(present), np.int32)
    place[used] = np.arange(len(used), dtype=np.int32)
    return used, place[values]
