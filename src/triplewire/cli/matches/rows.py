"""Matches as rows in order: publications and subscriptions as numbers of their names, and what else programs get."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from triplewire.clauses.node_tests.columns import inverse
from triplewire.encode.buffers import of_numbers, of_text
from triplewire.encode.strings import TextColumn


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
        return dictionary(pa.concat_arrays(texts), place)


@dataclass(frozen=True)
class Payload:
    """What rows for programs hold beside the names. `construct`: row -> the graph of a CONSTRUCT query. Row i has the
    content hash contents[content[i]]; `revisions` are those of the subscriptions, by number."""

    bindings: JsonBindings
    construct: Mapping[int, bytes | memoryview]
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


def dictionary(texts: pa.LargeStringArray, number: NDArray[np.int64]) -> pa.DictionaryArray:
    """Row i is texts[number[i]]. Equal texts become one, since a dictionary with equal values is not written as one to
    Parquet; they are in the order of the rows, so that the file does not depend on how rows came together."""
    encoded = texts.dictionary_encode()
    # `to_numpy` would import pandas
    rows = np.frombuffer(encoded.indices.buffers()[1], np.int32, len(encoded))[number]
    used, first, place = np.unique(rows, return_index=True, return_inverse=True)
    order = np.argsort(first)
    indices = inverse(order)[place].astype(np.int32)
    return pa.DictionaryArray.from_arrays(of_numbers(indices), encoded.dictionary.take(of_numbers(used[order])))
