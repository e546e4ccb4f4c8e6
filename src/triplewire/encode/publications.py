"""Parsed publications to a batch: each distinct term once, then flat arrays."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from triplewire.encode.batch import Batch
from triplewire.encode.columns import made
from triplewire.encode.names import term_columns
from triplewire.kernels import group as kernels
from triplewire.model.publication import Publication
from triplewire.model.terms import Term


def encode(publications: Sequence[Publication]) -> Batch:
    """The publications, in their order."""
    flat: list[Term] = list(chain.from_iterable(chain.from_iterable([p.triples for p in publications])))
    distinct = list(dict.fromkeys(flat))
    number = dict(zip(distinct, range(len(distinct)), strict=True))
    triples = np.fromiter(map(number.__getitem__, flat), np.int32, len(flat)).reshape(-1, 3)
    counts = np.array([len(p.triples) for p in publications], np.int64)
    publication = np.repeat(np.arange(len(publications), dtype=np.int32), counts)
    offset, out = np.zeros(len(publications) + 1, np.int64), np.empty_like(triples)
    kernels.group(triples, publication, offset, out)
    return made([p.id for p in publications], offset, out[: offset[-1]], term_columns(distinct))
