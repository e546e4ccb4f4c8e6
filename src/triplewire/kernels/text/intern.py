"""Tokens to ids: a table of the distinct terms of a text, and one of the suffixes of its literals; ids to columns.

A token is a row of five numbers: where the text of a term begins and ends, its kind, and where its suffix begins and
ends. Scanners write them (`triplewire.kernels.text.scan`), and `packed_tokens`. Tables have a row (start, end, kind,
suffix, hash) for each term, which `slots` finds; texts are compared, so two ids are two terms. The hash is no secret,
and who knows it can write terms that collide: past so many, the kernels give up.

    for each token:  suffix = its number in the table of suffixes, entered if it is new
                     hash   = hash of the text, seeded by the kind; with a suffix, mixed with the hash of that
                     id     = the row in the table of terms with this hash, kind, suffix and text; else a new row
    for a batch:     write the columns of the terms; sort the statements by publication, subject, predicate, object:
                     by one column after the other, the last first, each time by counting; write each once
                     (`triplewire.encode.batch`)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.shared.columns import Triples
from triplewire.kernels.shared.compiled import allocating_kernel, called_helper, helper, kernel
from triplewire.kernels.shared.hashing import enter, hash_bytes, mixed, same_bytes
from triplewire.kernels.text.numbers import NO, number_of
from triplewire.model.packed import LITERAL_CODE

START, END, KIND, SUFFIX, HASH = 0, 1, 2, 3, 4  # columns of `rows`
SUFFIX_END = 4  # of tokens, whose column SUFFIX is where the suffix begins; 0 where there is none
COLUMNS = 5
TERMS, SUFFIXES, LAST = 0, 1, 2  # places in `state`; LAST: the last subject, predicate, graph
STATE = 5
IRI, BLANK, LITERAL = 1, 2, 3
SAME, NONE = 0, 4  # in place of a kind: the IRI that stood in this place last; no graph

_PROBES = 2_000
_int: Any = np.int64
_wide: Any = np.uint64


class Interned(NamedTuple):
    """The terms so far (or the suffixes): see above."""

    rows: Any
    slots: Any


@kernel
def refill(rows: Any, count: int, slots: Any) -> None:
    """Enter the first `count` rows into `slots`, a power of two at least twice as many."""
    slots[:] = -1
    for row in range(count):
        enter(slots, _int(rows[row, HASH] & _wide(slots.size - 1)), row)


@helper
def _row_of(data: Any, start: int, end: int, kind: int, suffix: int, h: Any, table: Interned, count: int) -> Any:
    """The row of a term with the hash `h`; it is `count` for a new one, and -1 where too many collide."""
    rows, slots = table
    mask = slots.size - 1
    slot = _int(h & _wide(mask))
    row_found, probes = -1, 0
    while row_found < 0 and probes < _PROBES:
        row = _int(slots[slot])
        if row < 0:
            slots[slot] = count
            rows[count, START], rows[count, END] = start, end
            rows[count, KIND], rows[count, SUFFIX], rows[count, HASH] = kind, suffix, h
            row_found = count
        elif rows[row, HASH] == h and _int(rows[row, KIND]) == kind and _int(rows[row, SUFFIX]) == suffix:
            first = _int(rows[row, START])
            if _int(rows[row, END]) - first == end - start and same_bytes(data, start, end, data, first):
                row_found = row
        slot = (slot + 1) & mask
        probes += 1
    return row_found


@helper
def _suffix_of(data: Any, start: int, end: int, suffixes: Interned, xsd_string: Any, count: int) -> Any:
    """The number of a suffix: 0 for xsd:string, `count` for a new one, -1 where too many collide."""
    if end - start == xsd_string.size and same_bytes(data, start, end, xsd_string, 0):
        return _int(0)
    return _row_of(data, start, end, _int(0), _int(0), hash_bytes(data, start, end, _int(0)), suffixes, count)


@kernel
def intern_tokens(data: Any, tokens: Any, count: int, max_iri: int, max_literal: int, xsd_string: Any,
                  terms: Interned, suffixes: Interned, state: Any, out: Any) -> bool:  # fmt: skip
    """The ids of the first `count` tokens, -1 for no graph. The tables have room for as many more rows as there are
    tokens; suffix 0 is there. False where a term is too long or too many collide."""
    term_count, suffix_count, good, i = state[TERMS], state[SUFFIXES], True, 0
    while good and i < count:
        kind = _int(tokens[i, KIND])
        place = (i & 3) - ((i & 3) > 2)  # subject 0, predicate 1, graph 2; an object is never SAME
        if kind == SAME:
            out[i] = state[LAST + place]
        elif kind == NONE:
            out[i] = -1
        else:
            start, end = _int(tokens[i, START]), _int(tokens[i, END])
            good = kind == BLANK or end - start <= (max_literal if kind == LITERAL else max_iri)
            suffix, h = _int(0), hash_bytes(data, start, end, kind)
            first, last = _int(tokens[i, SUFFIX]), _int(tokens[i, SUFFIX_END])
            if kind == LITERAL and last > 0:
                suffix = _suffix_of(data, first, last, suffixes, xsd_string, suffix_count)
                good = good and suffix >= 0 and last - first <= max_iri
                suffix_count += suffix == suffix_count
                if suffix > 0:
                    h = mixed(h ^ suffixes.rows[suffix, HASH])
            row = _row_of(data, start, end, kind, suffix, h, terms, term_count) if good else -1
            good = row >= 0
            term_count += row == term_count
            out[i] = row
            if (i & 3) != 2:
                state[LAST + place] = row
        i += 1
    state[TERMS], state[SUFFIXES] = term_count, suffix_count
    return good


@allocating_kernel
def packed_tokens(numbers: Any, terms: int, suffixes: int, text_start: int, first_token: int, tokens: Any,
                  first_statement: int, statements: Any) -> None:  # fmt: skip
    """The terms of a publication as tokens, from row `first_token` on, and its statements as three rows of numbers of
    tokens, from column `first_statement` on.

    `numbers`: bytes of each term, bytes of each suffix, code of each term, three terms of each statement, as
    `triplewire.model.packed.Packed` has them. The texts of the terms stand one behind the other from `text_start` on,
    then those of the suffixes.
    """
    lengths, suffix_lengths, codes = numbers[:terms], numbers[terms : terms + suffixes], numbers[terms + suffixes :]
    suffix_offset, start = np.empty(suffixes + 1, np.int64), _int(text_start)
    for i in range(terms):
        token = first_token + i
        tokens[token, START], tokens[token, END] = start, start + lengths[i]
        start += lengths[i]
    suffix_offset[0] = start
    for i in range(suffixes):
        suffix_offset[i + 1] = suffix_offset[i] + suffix_lengths[i]
    for i in range(terms):
        token, code = first_token + i, _int(codes[i])
        suffix = max(code - LITERAL_CODE, 0)
        tokens[token, KIND] = min(code, LITERAL_CODE) + 1
        tokens[token, SUFFIX] = suffix_offset[suffix]
        tokens[token, SUFFIX_END] = suffix_offset[suffix + 1] if suffix > 0 else 0
    for i in range(codes.size - terms):
        statements[i % 3, first_statement + i // 3] = codes[terms + i] + first_token


_SCHEME, _HOST, _PATH, _HEX = 1, 2, 4, 8


def byte_classes() -> Any:
    """In which parts of an IRI each byte may stand, as bits."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    classes = np.zeros(256, np.uint8)
    for bit, characters in (
        (_SCHEME, letters + "+-."),
        (_HOST, letters + "-."),
        (_PATH, letters + "!$&'()*+,-./:;=?@_~"),
        (_HEX, "0123456789abcdefABCDEF"),
    ):
        classes[list(characters.encode())] |= np.uint8(bit)
    return classes


@helper
def _pass(data: Any, place: int, end: int, classes: Any, allowed: int) -> int:
    """Behind the bytes of the allowed classes that stand from `place` on."""
    while place < end and classes[data[_wide(place)]] & allowed:
        place += 1
    return place


@helper
def _is_plain(data: Any, place: int, end: int, classes: Any) -> bool:
    """Is it surely an absolute IRI: scheme, "//", a host of letters, digits, dots and hyphens, and so on, in ASCII?"""
    good = place < end and 97 <= (_int(data[place]) | 32) <= 122
    place = _pass(data, place, end, classes, _SCHEME)
    good = good and end - place >= 4 and data[place] == 58 and data[place + 1] == 47 and data[place + 2] == 47
    place = _pass(data, place + 3, end, classes, _HOST)
    good = good and (place >= end or data[place] == 47 or data[place] == 63 or data[place] == 35)
    fragment = False
    while good and place < end:
        place = _pass(data, place, end, classes, _PATH)
        if place < end:
            byte = _int(data[place])
            good = byte == 35 and not fragment
            fragment = fragment or byte == 35
            if byte == 37 and end - place >= 3:
                good = (classes[data[place + 1]] & classes[data[place + 2]] & _HEX) != 0
            place += 1
    return good


@kernel
def odd_iris(data: Any, rows: Any, count: int, classes: Any, out: Any) -> int:
    """Which of the first `count` rows are IRIs that are not surely right; `out` has room for all. Returns how many.
    `classes`: of each byte (`byte_classes`)."""
    odd = 0
    for row in range(count):
        is_iri = _int(rows[row, KIND]) == IRI
        if is_iri and not _is_plain(data, _int(rows[row, START]), _int(rows[row, END]), classes):
            out[odd] = row
            odd += 1
    return odd


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
    """The columns of the terms of these rows; returns how many bytes have words."""
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
    for i in range(count):
        order[i] = i
    _sort(order, statements.object, rows.shape[0], counts, other)
    _sort(other, statements.predicate, rows.shape[0], counts, order)
    _sort(order, statements.subject, rows.shape[0], counts, other)
    _sort(other, statements.publication, publications, counts, order)
    return _write_distinct(statements, order, triples), text_bytes
