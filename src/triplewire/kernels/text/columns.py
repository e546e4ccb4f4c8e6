"""Interned terms and statements of them to the columns of a batch (`triplewire.encode.batch`).

for each distinct term:  its span, kind, suffix and hash; what its text reads as a number; has it words?
order  = the statements by publication, subject, predicate, object: sorted by counting, from the last key to the
         first, so that the time is linear whatever they are
triples = the statements in this order, but for those that are equal to the one before
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.shared.columns import Triples
from triplewire.kernels.shared.compiled import allocating_kernel, called_helper, kernel
from triplewire.kernels.text.intern import BLANK, END, HASH, KIND, LITERAL, START, SUFFIX
from triplewire.kernels.text.numbers import NO, number_of

_int: Any = np.int64


class Statements(NamedTuple):
    """Statements of ids, in any order and with repetitions. Columns of one length."""

    publication: Any
    subject: Any
    predicate: Any
    object: Any


class TermColumns(NamedTuple):
    """Columns of the distinct terms; `has_text`: which of them have words."""

    start: Any
    end: Any
    kind: Any
    suffix: Any
    hash: Any
    number: Any
    number_state: Any
    has_text: Any


@kernel
def number_graphs(graph: Any, number: Any, first: Any) -> int:
    """Number the graphs by first occurrence: `graph` has a term id or -1 for each statement, and gets the number
    instead. `number` (one longer than the terms) is all -1. `first`: number -> term id or -1. Returns how many."""
    count = 0
    for i in range(graph.size):
        key = graph[i] + 1
        if number[key] < 0:
            number[key] = count
            first[count] = graph[i]
            count += 1
        graph[i] = number[key]
    return count


@called_helper
def _write_terms(data: Any, rows: Any, is_plain: Any, out: TermColumns) -> Any:
    """The columns of the terms of these rows (`triplewire.kernels.text.intern`); returns how many bytes have words."""
    text_bytes = _int(0)
    for term in range(rows.shape[0]):
        start, end, kind = _int(rows[term, START]), _int(rows[term, END]), _int(rows[term, KIND])
        out.start[term], out.end[term], out.kind[term] = start, end, kind
        out.suffix[term], out.hash[term] = rows[term, SUFFIX], rows[term, HASH]
        out.number_state[term], out.number[term] = NO, np.nan
        if kind != BLANK:  # which reads as nothing, whatever its label
            out.number_state[term], out.number[term] = number_of(data, start, end)
        out.has_text[term] = kind == LITERAL and is_plain[out.suffix[term]]
        text_bytes += (end - start) * out.has_text[term]
    return text_bytes


@called_helper
def _sort(order: Any, key: Any, keys: int, counts: Any, out: Any) -> None:
    """`out`: `order`, stably sorted by the key, which is from 0 to keys - 1. `counts` has room for keys + 1."""
    for value in range(keys + 1):
        counts[value] = 0
    for i in range(order.size):
        counts[key[i] + 1] += 1
    for value in range(1, keys + 1):
        counts[value] += counts[value - 1]
    for i in range(order.size):
        row = order[i]
        out[counts[key[row]]] = row
        counts[key[row]] += 1


@called_helper
def _sort_statements(statements: Statements, terms: int, publications: int, counts: Any, order: Any,
                     other: Any) -> None:  # fmt: skip
    """`order`: the numbers of the statements by publication, subject, predicate, object; `other` is scratch."""
    for i in range(order.size):
        order[i] = i
    _sort(order, statements.object, terms, counts, other)
    _sort(other, statements.predicate, terms, counts, order)
    _sort(order, statements.subject, terms, counts, other)
    _sort(other, statements.publication, publications, counts, order)


@called_helper
def _write_distinct(statements: Statements, order: Any, out: Triples) -> int:
    """The statements in this order, each once, as slices by publication; returns how many."""
    (publications, subjects, predicates, objects), (offset, subject, predicate, object_) = statements, out
    count, publication = 0, 0
    offset[0] = 0
    for i in range(order.size):
        row = order[i]
        while publication < publications[row]:
            publication += 1
            offset[publication] = count
        s, p, o = subjects[row], predicates[row], objects[row]
        last = count - 1
        is_first = count == offset[publication]
        if is_first or subject[last] != s or predicate[last] != p or object_[last] != o:
            subject[count], predicate[count], object_[count] = s, p, o
            count += 1
    for later in range(publication + 1, offset.size):
        offset[later] = count
    return count


@allocating_kernel
def write_columns(data: Any, rows: Any, is_plain: Any, statements: Statements, terms: TermColumns,
                  triples: Triples) -> tuple[int, int]:  # fmt: skip
    """Fill the columns of a batch; returns how many triples there are, and how many bytes of literals have words.
    `rows`: of the distinct terms, whose texts are in `data`. `is_plain`: suffix -> has a literal with it words?
    `triples` has room for all statements."""
    publications, count = triples.offset.size - 1, statements.subject.size
    counts = np.empty(max(rows.shape[0], publications) + 1, np.int64)
    order, other = np.empty(count, np.int32), np.empty(count, np.int32)
    text_bytes = _write_terms(data, rows, is_plain, terms)
    _sort_statements(statements, rows.shape[0], publications, counts, order, other)
    return _write_distinct(statements, order, triples), text_bytes
