"""Tokens to ids: a table of the distinct terms of a batch, and one of the suffixes of its literals.

Tokens come from `triplewire.kernels.scan`, which says what their columns are. `rows` has (start, end, kind, suffix,
hash) of each term, `slots` finds them by open addressing; texts are compared, so two ids are two terms. The hash is no
secret, and who knows it can write terms that collide: past so many, the kernels give up.

Small functions are inlined by Numba itself: the compiler behind it does not always do so, and then counts references to
arrays at each call.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

START, END, KIND, SUFFIX, HASH = 0, 1, 2, 3, 4  # columns of `rows`
COLUMNS = 5
TERMS, SUFFIXES, LAST = 0, 1, 2  # places in `state`; LAST: the last subject, predicate, graph
STATE = 5
PLAIN, ODD = 0, 1
"""What is known of an IRI or a suffix: it is surely right; it has to be looked at."""

_TOKEN_START, _TOKEN_END, _TOKEN_KIND, _TOKEN_HASH, _TOKEN_SUFFIX, _TOKEN_SUFFIX_END = 0, 1, 2, 3, 4, 5
_IRI, _BLANK, _LITERAL, _SAME, _NONE = 1, 2, 3, 0, 4
_OFFSET, _PRIME = np.uint64(14695981039346656037), np.uint64(1099511628211)
_PROBES = 2_000
_int: Any = np.int64


@njit(cache=True, nogil=True, inline="always")
def _span(data: Any, start: int, end: int, h: Any) -> Any:
    for i in range(start, end):
        h = (h ^ np.uint64(data[i])) * _PRIME
    return h


@njit(cache=True, nogil=True, inline="always")
def _folded(h: Any) -> Any:
    return h ^ (h >> np.uint64(32))


@njit(cache=True, nogil=True, inline="always")
def _equal(data: Any, a: int, b: int, length: int) -> Any:
    """Compared to the end: nearly always they are equal, and so the loop is one of vectors."""
    different = np.uint8(0)
    for i in range(length):
        different |= data[a + i] ^ data[b + i]
    return different == 0


@njit(cache=True, nogil=True)
def refill(rows: Any, count: int, slots: Any) -> None:
    """Enter the first `count` rows into `slots`, a power of two at least twice as many."""
    slots[:] = -1
    mask = slots.size - 1
    for row in range(count):
        at = _int(rows[row, HASH] & np.uint64(mask))
        while slots[at] >= 0:
            at = (at + 1) & mask
        slots[at] = row


@njit(cache=True, nogil=True, inline="always")
def _find(data: Any, start: int, end: int, kind: int, suffix: int, h: Any, rows: Any, slots: Any, count: int) -> Any:
    """The row of a term; it is `count` for a new one, and -1 where too many collide."""
    mask = slots.size - 1
    at = _int(h & np.uint64(mask))
    for _ in range(_PROBES):
        row = _int(slots[at])
        if row < 0:
            slots[at] = count
            rows[count, START] = start
            rows[count, END] = end
            rows[count, KIND] = kind
            rows[count, SUFFIX] = suffix
            rows[count, HASH] = h
            return count
        if rows[row, HASH] == h and _int(rows[row, KIND]) == kind and _int(rows[row, SUFFIX]) == suffix:
            first = _int(rows[row, START])
            length = _int(rows[row, END]) - first
            if length == end - start and _equal(data, first, start, length):
                return row
        at = (at + 1) & mask
    return -1


@njit(cache=True, nogil=True, inline="always")
def _find_suffix(data: Any, start: int, end: int, rows: Any, slots: Any, string: Any, count: int) -> Any:
    """The number of a suffix: 0 for xsd:string, `count` for a new one, -1 where too many collide."""
    if end - start == string.size:
        same = True
        for i in range(end - start):
            same &= data[start + i] == string[i]
        if same:
            return 0
    return _find(data, start, end, _int(0), _int(0), _folded(_span(data, start, end, _OFFSET)), rows, slots, count)


@njit(cache=True, nogil=True)
def intern_tokens(
    data: Any,
    tokens: Any,
    count: int,
    max_iri: int,
    max_literal: int,
    string: Any,
    rows: Any,
    slots: Any,
    suffix_rows: Any,
    suffix_slots: Any,
    state: Any,
    out: Any,
) -> bool:
    """The ids of the first `count` tokens, -1 for no graph. The tables have room for as many more rows as there are
    tokens; suffix 0 is there. False where a term is too long or too many collide."""
    terms, suffixes = state[TERMS], state[SUFFIXES]
    for i in range(count):
        kind = _int(tokens[i, _TOKEN_KIND])
        place = (i & 3) - ((i & 3) > 2)  # subject, predicate, graph; an object is never SAME
        if kind == _SAME:
            out[i] = state[LAST + place]
            continue
        if kind == _NONE:
            out[i] = -1
            continue
        start, end = _int(tokens[i, _TOKEN_START]), _int(tokens[i, _TOKEN_END])
        if end - start > (max_literal if kind == _LITERAL else max_iri) and kind != _BLANK:
            return False
        h = tokens[i, _TOKEN_HASH]
        suffix = 0
        first, last = _int(tokens[i, _TOKEN_SUFFIX]), _int(tokens[i, _TOKEN_SUFFIX_END])
        if kind == _LITERAL and last > 0:
            suffix = _find_suffix(data, first, last, suffix_rows, suffix_slots, string, suffixes)
            if suffix < 0 or last - first > max_iri:
                return False
            suffixes += suffix == suffixes
            if suffix > 0:
                h = _span(data, first, last, (h ^ np.uint64(0xFF)) * _PRIME)
        row = _find(data, start, end, kind, suffix, _folded(h), rows, slots, terms)
        if row < 0:
            return False
        terms += row == terms
        out[i] = row
        if (i & 3) != 2:
            state[LAST + place] = row
    state[TERMS], state[SUFFIXES] = terms, suffixes
    return True


@njit(cache=True, nogil=True)
def intern_spans(
    data: Any, start: Any, end: Any, kind: Any, suffix: Any, hashes: Any, rows: Any, slots: Any, first: Any,
    out: Any,
) -> int:  # fmt: skip
    """The ids of terms whose suffix and hash are known; `first`: where each one of them stands first. Returns how many
    there are, or -1 where too many collide. `rows` and `first` have room for all."""
    slots[:] = -1
    count = 0
    for i in range(start.size):
        row = _find(data, start[i], end[i], _int(kind[i]), suffix[i], hashes[i], rows, slots, count)
        if row < 0:
            return -1
        if row == count:
            first[count] = i
            count += 1
        out[i] = row
    return count


# --- which IRIs are surely right -------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, inline="always")
def _is_alnum(byte: int) -> bool:
    return 97 <= byte <= 122 or 48 <= byte <= 57 or 65 <= byte <= 90


@njit(cache=True, nogil=True, inline="always")
def _is_hex(byte: int) -> bool:
    return 48 <= byte <= 57 or 97 <= byte <= 102 or 65 <= byte <= 70


@njit(cache=True, nogil=True, inline="always")
def _is_plain(data: Any, at: int, end: int) -> bool:
    """Is it surely an absolute IRI: scheme, "//", a host of letters, digits, dots and hyphens, and so on, in ASCII?"""
    if at == end or not 97 <= (_int(data[at]) | 32) <= 122:
        return False
    while at < end and (_is_alnum(_int(data[at])) or data[at] == 43 or data[at] == 45 or data[at] == 46):
        at += 1
    if end - at < 4 or data[at] != 58 or data[at + 1] != 47 or data[at + 2] != 47:
        return False
    at += 3
    while at < end and (_is_alnum(_int(data[at])) or data[at] == 45 or data[at] == 46):
        at += 1
    if at < end and data[at] != 47 and data[at] != 63 and data[at] != 35:
        return False
    fragment = False
    while at < end:
        byte = _int(data[at])
        if byte == 35:
            if fragment:
                return False
            fragment = True
        elif byte == 37:
            if end - at < 3 or not _is_hex(_int(data[at + 1])) or not _is_hex(_int(data[at + 2])):
                return False
        # ! $ & ' ( ) * + , - . / and : ; = ? @ and _ ~
        elif not (_is_alnum(byte) or byte == 33 or 36 <= byte <= 47 or byte == 58 or byte == 59 or byte == 61
                  or byte == 63 or byte == 64 or byte == 95 or byte == 126):  # fmt: skip
            return False
        at += 1
    return True


@njit(cache=True, nogil=True)
def odd_iris(data: Any, rows: Any, count: int, out: Any) -> int:
    """Which of the first `count` rows are IRIs that have to be looked at; `out` has room for all. Returns how many."""
    found = 0
    for row in range(count):
        is_iri = _int(rows[row, KIND]) == _IRI
        if is_iri and not _is_plain(data, _int(rows[row, START]), _int(rows[row, END])):
            out[found] = row
            found += 1
    return found
