"""Parsed publications to a batch: each distinct term once, then flat arrays."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from triplewire.encode.batch import Batch
from triplewire.encode.columns import Columns, made, sorted_triples
from triplewire.encode.names import term_columns
from triplewire.model.publication import Publication
from triplewire.model.terms import Term


def encode(publications: Sequence[Publication]) -> Batch:
    """The publications, in their order."""
    flat: list[Term] = list(chain.from_iterable(chain.from_iterable([p.triples for p in publications])))
    distinct = list(dict.fromkeys(flat))
    number = dict(zip(distinct, range(len(distinct)), strict=True))
    statements = np.fromiter(map(number.__getitem__, flat), np.int32, len(flat)).reshape(-1, 3)
    subject, predicate, object_ = (np.ascontiguousarray(column) for column in statements.T)
    counts = np.array([len(p.triples) for p in publications], np.int64)
    publication = np.repeat(np.arange(len(publications), dtype=np.int32), counts)
    triples = sorted_triples(publication, subject, predicate, object_, len(distinct), len(publications))
    return made([p.id for p in publications], triples, Columns(*term_columns(distinct)))
