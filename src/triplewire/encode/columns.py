"""What the encoders share: from the distinct terms and the statements to a batch, with words and numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import BLANK_KIND, Batch, Bytes, Hashes, Ids, Offsets, Sizes, Terms, Words
from triplewire.encode.names import suffix_columns
from triplewire.encode.text import has_text, words_of_terms
from triplewire.kernels import triples as triple_kernels
from triplewire.kernels.shared.columns import BATCH_FIELDS, BatchColumns
from triplewire.kernels.shared.lending import WORDS, Lent
from triplewire.kernels.text import numbers as number_kernels

_TABLE = WORDS * len(BATCH_FIELDS)
_OF_TRIPLES = ("offset", "subject", "predicate", "object")
_PLACE = BatchColumns(*range(len(BATCH_FIELDS)))
_OF_TERMS = tuple(
    getattr(_PLACE, name) for name in ("start", "end", "kind", "suffix", "hash", "number", "number_state")
)
_OF_WORDS = range(_PLACE.word_offset, _PLACE.word_hash + 1)


@dataclass(frozen=True, slots=True)
class Columns:
    """The distinct terms, as in `Terms`, without what their texts read as."""

    text: Bytes
    start: Offsets
    end: Offsets
    kind: Bytes
    suffix: Ids
    suffixes: tuple[str, ...]
    hash: Hashes

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True, slots=True)
class Triples:
    """As in `Batch`: sorted and distinct within each publication."""

    offset: Offsets
    subject: Ids
    predicate: Ids
    object: Ids


def sorted_triples(
    publication: Ids, subject: Ids, predicate: Ids, object_: Ids, terms: int, publications: int
) -> Triples:
    """Statements of `terms` terms in `publications` publications, in any order and with repetitions."""
    count = len(publication)
    order, scratch = np.empty(count, np.int32), np.empty(count, np.int32)
    triple_kernels.sort_statements(publication, subject, predicate, object_, terms, publications, order, scratch)
    offset = np.empty(publications + 1, np.int64)
    columns = [np.empty(count, np.int32) for _ in range(3)]
    distinct = triple_kernels.distinct_triples(publication, subject, predicate, object_, order, offset, *columns)
    return Triples(offset, *(column[:distinct] for column in columns))


def numbers(columns: Columns) -> tuple[NDArray[np.float64], Bytes]:
    """`number` and `number_state` of each term; blank nodes read as nothing, whatever their labels."""
    number, state = np.full(len(columns), np.nan), np.zeros(len(columns), np.uint8)
    wanted = columns.kind != BLANK_KIND
    number_kernels.read_numbers(columns.text, columns.start, columns.end, wanted, number, state)
    return number, state


def frozen_batch(ids: Sequence[str], triples: Triples, terms: Terms, words: Words) -> Batch:
    """The batch, whose arrays nobody writes to any more: kernels take them as they are."""
    columns = triples.offset, triples.subject, triples.predicate, triples.object
    of_terms = terms.text, terms.start, terms.end, terms.kind, terms.suffix, terms.hash, terms.number
    of_words = words.offset, words.ids, words.text, words.start, words.end, words.hash
    array: NDArray[Any]
    for array in (*columns, *of_terms, terms.number_state, *of_words):
        array.setflags(write=False)
    return Batch(ids, *columns, terms, words)


def made(ids: Sequence[str], triples: Triples, columns: Columns) -> Batch:
    """The batch."""
    number, state = numbers(columns)
    c = columns
    terms = Terms(c.text, c.start, c.end, c.kind, c.suffix, c.suffixes, c.hash, number, state)
    words = words_of_terms(c.text, c.start, c.end, has_text(c.kind, c.suffix, c.suffixes))
    return frozen_batch(ids, triples, terms, words)


class PackedBatch(Batch):
    """One publication whose columns lie in one block of memory, behind the table of their addresses
    (`triplewire.kernels.text.alone`). They become arrays when somebody asks for them: kernels take the table."""

    __slots__ = ("_suffixes", "_text", "sizes", "table")
    sizes: Sizes  # how many of all there are
    table: NDArray[np.int64]  # see `table_of`

    def __init__(self, id: str, text: Bytes, suffixes: tuple[str, ...], block: NDArray[np.int64], sizes: Sizes) -> None:
        self.ids, self.lent = [id], None
        self._text, self._suffixes, self.table, self.sizes = text, suffixes, block, sizes

    def __len__(self) -> int:
        return 1

    def __getattr__(self, name: str) -> Any:
        """A part that nobody has asked for before."""
        if name in _OF_TRIPLES:
            self.offset, self.subject, self.predicate, self.object = self._columns(range(len(_OF_TRIPLES)))
        elif name == "terms":
            start, end, kind, suffix, hashes, number, state = self._columns(_OF_TERMS)
            self.terms = Terms(self._text, start, end, kind, suffix, self._suffixes, hashes, number, state)
        elif name == "words":
            self.words = Words(*self._columns(_OF_WORDS))
        else:
            raise AttributeError(name)
        return getattr(self, name)

    def _columns(self, places: Iterable[int]) -> Iterator[Any]:
        """Some columns, which nobody can write to."""
        table, memory = self.table[:_TABLE].tolist(), self.table.data.toreadonly()
        addresses, rows = table[::WORDS], table[1::WORDS]
        first = addresses[_PLACE.start] - _TABLE * self.table.itemsize  # the first column is behind the table
        for column in places:
            yield np.frombuffer(memory, BATCH_FIELDS[column].dtype, rows[column], addresses[column] - first)


def table_of(batch: Batch) -> NDArray[np.int64]:
    """The addresses of the columns of a batch, as `triplewire.kernels.shared.columns.take_batch` takes them."""
    if isinstance(batch, PackedBatch):
        return batch.table
    if batch.lent is None:
        terms, words = batch.terms, batch.words
        of_terms = terms.text, terms.start, terms.end, terms.kind, terms.suffix, *suffix_columns(terms.suffixes)
        of_numbers = terms.hash, terms.number, terms.number_state
        of_words = words.offset, words.ids, words.text, words.start, words.end, words.hash
        columns = BatchColumns(*batch.triples, *of_terms, *of_numbers, *of_words)
        batch.lent = Lent(((BatchColumns, BATCH_FIELDS),), columns)
    return batch.lent.table
