"""Tokens to ids: a table of the distinct terms of a batch, and one of the suffixes of its literals.

Tokens come from `triplewire.kernels.text.scan`, which says what their columns and `wide` are. `rows` has (start, end,
kind, suffix, hash) of each term, `slots` finds them by open addressing; texts are compared, so two ids are two terms.
The hash is no secret, and who knows it can write terms that collide: past so many, the kernels give up.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.shared.compiled import helper, kernel
from triplewire.kernels.shared.eight_bytes import low_bytes
from triplewire.kernels.shared.hashing import enter, mixed, seeded

START, END, KIND, SUFFIX, HASH = 0, 1, 2, 3, 4  # columns of `rows`
COLUMNS = 5
TERMS, SUFFIXES, LAST = 0, 1, 2  # places in `state`; LAST: the last subject, predicate, graph
STATE = 5

_TOKEN_START, _TOKEN_END, _TOKEN_KIND, _TOKEN_SUFFIX, _TOKEN_SUFFIX_END = 0, 1, 2, 3, 4
_IRI, _BLANK, _LITERAL, _SAME, _NONE = 1, 2, 3, 0, 4
_PROBES = 2_000
_int: Any = np.int64
_wide: Any = np.uint64


@helper
def _hash(wide: Any, start: int, end: int, seed: int) -> Any:
    """The hash of a span of terms or suffixes."""
    h = seeded(seed, end - start)
    while start + 8 <= end:
        h = mixed(h ^ wide[_wide(start)])
        start += 8
    return mixed(mixed(h ^ (wide[_wide(start)] & low_bytes(end - start))))


@helper
def _equal(wide: Any, a: int, b: int, length: int) -> Any:
    """Compared to the end: nearly always they are equal."""
    different, i = _wide(0), 0
    while i + 8 <= length:
        different |= wide[_wide(a + i)] ^ wide[_wide(b + i)]
        i += 8
    different |= (wide[_wide(a + i)] ^ wide[_wide(b + i)]) & low_bytes(length - i)
    return different == 0


@kernel
def refill(rows: Any, count: int, slots: Any) -> None:
    """Enter the first `count` rows into `slots`, a power of two at least twice as many."""
    slots[:] = -1
    for row in range(count):
        enter(slots, _int(rows[row, HASH] & _wide(slots.size - 1)), row)


class Interned(NamedTuple):
    """The terms so far (or the suffixes): see above."""

    rows: Any
    slots: Any


@helper
def interned(wide: Any, start: int, end: int, kind: int, suffix: int, terms: Interned, count: int) -> Any:
    """The row of a term; it is `count` for a new one, and -1 where too many collide."""
    rows, slots = terms
    h = _hash(wide, start, end, kind << 28 ^ suffix)
    mask = slots.size - 1
    at = _int(h & _wide(mask))
    number, probes = -1, 0
    while number < 0 and probes < _PROBES:
        row = _int(slots[at])
        if row < 0:
            slots[at] = count
            rows[count, START] = start
            rows[count, END] = end
            rows[count, KIND] = kind
            rows[count, SUFFIX] = suffix
            rows[count, HASH] = h
            number = count
        elif rows[row, HASH] == h and _int(rows[row, KIND]) == kind and _int(rows[row, SUFFIX]) == suffix:
            first = _int(rows[row, START])
            length = _int(rows[row, END]) - first
            if length == end - start and _equal(wide, first, start, length):
                number = row
        at = (at + 1) & mask
        probes += 1
    return number


@helper
def _find_suffix(data: Any, wide: Any, start: int, end: int, suffixes: Interned, string: Any, count: int) -> Any:
    """The number of a suffix: 0 for xsd:string, `count` for a new one, -1 where too many collide."""
    same = end - start == string.size
    if same:
        for i in range(string.size):
            same &= data[start + i] == string[i]
    return _int(0) if same else interned(wide, start, end, _int(0), _int(0), suffixes, count)


@kernel
def intern_tokens(data: Any, wide: Any, tokens: Any, count: int, max_iri: int, max_literal: int, string: Any,
                  terms: Interned, suffixes: Interned, state: Any, out: Any) -> bool:  # fmt: skip
    """The ids of the first `count` tokens, -1 for no graph. The tables have room for as many more rows as there are
    tokens; suffix 0 is there. False where a term is too long or too many collide."""
    rows, suffix_rows, good, i = state[TERMS], state[SUFFIXES], True, 0
    while good and i < count:
        kind = _int(tokens[i, _TOKEN_KIND])
        place = (i & 3) - ((i & 3) > 2)  # subject, predicate, graph; an object is never SAME
        if kind == _SAME:
            out[i] = state[LAST + place]
        elif kind == _NONE:
            out[i] = -1
        else:
            start, end = _int(tokens[i, _TOKEN_START]), _int(tokens[i, _TOKEN_END])
            good = kind == _BLANK or end - start <= (max_literal if kind == _LITERAL else max_iri)
            suffix = _int(0)
            if kind == _LITERAL:
                first, last = _int(tokens[i, _TOKEN_SUFFIX]), _int(tokens[i, _TOKEN_SUFFIX_END])
                if last > 0:
                    suffix = _find_suffix(data, wide, first, last, suffixes, string, suffix_rows)
                    good = good and suffix >= 0 and last - first <= max_iri
                    suffix_rows += suffix == suffix_rows
            row = interned(wide, start, end, kind, suffix, terms, rows) if good else -1
            good = row >= 0
            rows += row == rows
            out[i] = row
            if (i & 3) != 2:
                state[LAST + place] = row
        i += 1
    state[TERMS], state[SUFFIXES] = rows, suffix_rows
    return good


# --- which IRIs are surely right -------------------------------------------------------------------------------------

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
def _pass(data: Any, at: int, end: int, classes: Any, allowed: int) -> int:
    """Behind the bytes of the allowed classes that stand from `at` on."""
    while at < end and classes[data[_wide(at)]] & allowed:
        at += 1
    return at


@helper
def _is_plain(data: Any, at: int, end: int, classes: Any) -> bool:
    """Is it surely an absolute IRI: scheme, "//", a host of letters, digits, dots and hyphens, and so on, in ASCII?"""
    good = at < end and 97 <= (_int(data[at]) | 32) <= 122
    at = _pass(data, at, end, classes, _SCHEME)
    good = good and end - at >= 4 and data[at] == 58 and data[at + 1] == 47 and data[at + 2] == 47
    at = _pass(data, at + 3, end, classes, _HOST)
    good = good and (at >= end or data[at] == 47 or data[at] == 63 or data[at] == 35)
    fragment = False
    while good and at < end:
        at = _pass(data, at, end, classes, _PATH)
        if at < end:
            byte = _int(data[at])
            good = byte == 35 and not fragment
            fragment = fragment or byte == 35
            if byte == 37 and end - at >= 3:
                good = (classes[data[at + 1]] & classes[data[at + 2]] & _HEX) != 0
            at += 1
    return good


@kernel
def odd_iris(data: Any, rows: Any, count: int, classes: Any, out: Any) -> int:
    """Which of the first `count` rows are IRIs that have to be looked at; `out` has room for all. Returns how many.
    `classes`: of each byte (`byte_classes`)."""
    odd = 0
    for row in range(count):
        is_iri = _int(rows[row, KIND]) == _IRI
        if is_iri and not _is_plain(data, _int(rows[row, START]), _int(rows[row, END]), classes):
            out[odd] = row
            odd += 1
    return odd
