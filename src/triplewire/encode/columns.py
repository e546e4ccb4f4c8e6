"""What the encoders share: from the columns of distinct terms to a batch, with words and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from triplewire.encode import text as texts
from triplewire.encode.batch import (
    EXACT_NUMBER,
    LITERAL_KIND,
    LONG_NUMBER,
    NO_NUMBER,
    Batch,
    Bytes,
    Hashes,
    Ids,
    Offsets,
    Terms,
)
from triplewire.ir.numbers import lenient_number
from triplewire.kernels import iris as iri_kernels
from triplewire.kernels import numbers as number_kernels

Columns: TypeAlias = tuple[Bytes, Offsets, Offsets, Bytes, Ids, tuple[str, ...], Hashes]
"""text, start, end, kind, suffix, suffixes and hash of the distinct terms, as in `Terms`."""


def made(ids: Sequence[str], offset: Offsets, triples: NDArray[np.int32], columns: Columns) -> Batch:
    """The batch of triples (sorted and distinct in each publication) over these terms."""
    text, start, end, kind, suffix, suffixes, hashes = columns
    number, state = _numbers(text, start, end, kind == LITERAL_KIND)
    words = texts.words(text, start, end, texts.has_text(kind, suffix, suffixes))
    terms = Terms(text, start, end, kind, suffix, suffixes, hashes, number, state)
    subject, predicate, obj = (np.ascontiguousarray(triples[:, column]) for column in range(3))
    return Batch(ids, offset, subject, predicate, obj, terms, words)


def _numbers(
    text: Bytes, start: Offsets, end: Offsets, literal: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], Bytes]:
    """What the literals read as, and how well."""
    number, state = np.zeros(len(start)), np.zeros(len(start), np.uint8)
    number_kernels.numbers(text, start, end, literal, number, state)
    for row in np.flatnonzero(state == number_kernels.UNSURE).tolist():
        found = lenient_number(text[start[row] : end[row]].tobytes().decode("utf-8", "surrogatepass"))
        state[row] = NO_NUMBER if found is None else LONG_NUMBER
    number[state != EXACT_NUMBER] = np.nan
    return number, state


def plain_iris(text: Bytes, start: Offsets, end: Offsets) -> NDArray[np.bool_]:
    """Which of these are absolute IRIs beyond doubt: a scheme, then plain ASCII without anything that needs a look."""
    plain = np.zeros(len(start), np.bool_)
    iri_kernels.plain(text, start, end, plain)
    return plain
