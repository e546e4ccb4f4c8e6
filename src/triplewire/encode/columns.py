"""What the encoders share: from the distinct terms and the statements to a batch, with words and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import BLANK_KIND, Batch, Bytes, Hashes, Ids, Offsets, Terms, Words
from triplewire.encode.text import has_text, words_of_terms
from triplewire.kernels import triples as triple_kernels
from triplewire.kernels.text import numbers as number_kernels


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
