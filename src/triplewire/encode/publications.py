"""Parsed publications to a batch: each distinct term once, in flat arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, groupby
from operator import attrgetter

import numpy as np

from triplewire.config import MOST
from triplewire.encode.batch import Batch, Ids
from triplewire.encode.interning import Interner
from triplewire.kernels.text.columns import Statements
from triplewire.kernels.text.intern import COLUMNS, packed_tokens
from triplewire.model.packed import PAD, Packed, pack
from triplewire.model.publication import Publication


def encode(publications: Sequence[Publication]) -> Batch:
    """The publications, in their order."""
    parts = list(_parts(publications))
    sizes = [publication.size for publication in publications]
    tokens = np.empty((sum([part.terms for part in parts]), COLUMNS), np.uint64)
    statements: Ids = np.empty((3, sum(sizes)), np.int32)
    text_start = token = statement = 0
    for part in parts:
        numbers: Ids = np.frombuffer(part.numbers, np.int32)
        packed_tokens(numbers, part.terms, len(part.suffixes), text_start, token, tokens, statement, statements)
        text_start += len(part.text)
        token += part.terms
        statement += part.statements
    text = parts[0].text if len(parts) == 1 else b"".join([part.text for part in parts]) or PAD
    interner = Interner(np.frombuffer(text, np.uint8), MOST, MOST)
    subject, predicate, object_ = interner.take_all(tokens)[statements]
    publication: Ids = np.zeros(statement, np.int32)
    if len(sizes) > 1:
        publication = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    ids = [publication.id for publication in publications]
    return interner.batch(ids, Statements(publication, subject, predicate, object_), interner.suffixes("surrogatepass"))


def _parts(publications: Sequence[Publication]) -> Iterator[Packed]:
    """The triples as bytes: of each publication that was read, and of those together that programs made one behind the
    other, as these often share terms."""
    for packed, run in groupby(publications, attrgetter("packed")):
        if packed is None:
            yield pack(list(chain.from_iterable(p.triples for p in run)))
        else:
            for _ in run:  # the same publication may come again
                yield packed
