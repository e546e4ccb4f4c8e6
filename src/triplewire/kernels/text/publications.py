"""Parsed publications to the columns of a batch, in one call: the calls would take longer than a publication alone.

Texts come one behind the other. Terms are interned (`triplewire.kernels.text.intern`), hashed and read as numbers;
statements are sorted (`triplewire.kernels.triples`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.shared.compiled import called_helper, helper, kernel
from triplewire.kernels.shared.hashing import hash_bytes
from triplewire.kernels.text.intern import Interned, interned
from triplewire.kernels.text.names import hash_with
from triplewire.kernels.text.numbers import NO, number_of
from triplewire.kernels.triples import sort_by_all, write_distinct
from triplewire.model.packed import BLANK_CODE, LITERAL_CODE

PUBLICATION, SUBJECT, PREDICATE, OBJECT, ORDER, OTHER = 0, 1, 2, 3, 4, 5  # rows of `Work.statement`
STATEMENT_ROWS = 6
_int: Any = np.int64


class Given(NamedTuple):
    """The terms, which need not be distinct, and the statements of them."""

    text: Any
    wide: Any  # the same, as `triplewire.encode.interning.wide`
    length: Any  # term -> the bytes of its text
    code: Any  # of each
    suffix_text: Any
    suffix_offset: Any
    is_plain: Any  # suffix -> has a literal with it text?
    statement: Any  # three terms each
    size: Any  # publication -> how many statements


class Work(NamedTuple):
    """Scratch, but for the first two: `first` and `number` are where each distinct term stands first, and which of them
    each term is."""

    first: Any
    number: Any
    begin: Any  # one longer than the terms
    rows: Any
    slots: Any
    counts: Any  # one number more than there are terms, or publications
    statement: Any  # of shape (STATEMENT_ROWS, statements)


class Encoded(NamedTuple):
    """Columns of a batch, with room for all that is given (`triplewire.encode.batch`)."""

    start: Any
    end: Any
    kind: Any
    suffix: Any
    hash: Any
    number: Any
    number_state: Any
    has_text: Any
    offset: Any  # publication -> its slice of the triples
    subject: Any
    predicate: Any
    object: Any


@helper
def kind_and_suffix(code: int) -> tuple[int, int]:
    """What a term of a code is: up to LITERAL_CODE, the kind is one more."""
    return _int(min(code, LITERAL_CODE) + 1), _int(max(code - LITERAL_CODE, 0))


@kernel
def number_terms(given: Given, work: Work) -> int:
    """Number the distinct terms; returns how many there are, or -1 where too many collide."""
    terms = Interned(work.rows, work.slots)
    terms.slots[:] = -1
    at, count, row, i = 0, 0, 0, 0
    while row >= 0 and i < given.length.size:
        kind, suffix = kind_and_suffix(_int(given.code[i]))
        end = at + given.length[i]
        row = interned(given.wide, at, end, kind, suffix, terms, count)
        if row == count:
            work.first[count] = i
            count += 1
        work.number[i] = row
        at = end
        i += 1
    return count if row >= 0 else -1


@called_helper
def _write_terms(given: Given, count: int, work: Work, out: Encoded) -> None:
    """The columns of the distinct terms."""
    begin, text = work.begin, given.text
    begin[0] = 0
    for i in range(given.length.size):
        begin[i + 1] = begin[i] + given.length[i]
    for term in range(count):
        i = work.first[term]
        start, end = begin[i], begin[i + 1]
        code = _int(given.code[i])
        kind, suffix = kind_and_suffix(code)
        out.start[term], out.end[term], out.kind[term], out.suffix[term] = start, end, kind, suffix
        h = hash_bytes(text, start, end, kind)
        out.hash[term] = hash_with(h, suffix, given.suffix_text, given.suffix_offset)
        out.number_state[term], out.number[term] = NO, np.nan
        if code != BLANK_CODE:  # which reads as nothing, whatever its label
            out.number_state[term], out.number[term] = number_of(text, start, end)
        out.has_text[term] = code >= LITERAL_CODE and given.is_plain[suffix]


@kernel
def encode(given: Given, count: int, work: Work, out: Encoded) -> int:
    """Write the columns of the `count` distinct terms, and the triples; returns how many triples there are."""
    _write_terms(given, count, work, out)
    statement, number, row = work.statement, work.number, 0
    for publication in range(given.size.size):
        for _ in range(given.size[publication]):
            statement[PUBLICATION, row] = publication
            statement[SUBJECT, row] = number[given.statement[3 * row]]
            statement[PREDICATE, row] = number[given.statement[3 * row + 1]]
            statement[OBJECT, row] = number[given.statement[3 * row + 2]]
            row += 1
    columns = statement[PUBLICATION], statement[SUBJECT], statement[PREDICATE], statement[OBJECT]
    sort_by_all(*columns, count, given.size.size, work.counts, statement[ORDER], statement[OTHER])
    return write_distinct(*columns, statement[ORDER], out.offset, out.subject, out.predicate, out.object)
