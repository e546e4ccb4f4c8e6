"""N-Quads bytes to tokens: where each term stands, what it is, and its hash.

It takes the plain form only, and says STOP at anything else: malformed lines, escapes in IRIs, blank node labels beyond
ASCII, invalid UTF-8, lone carriage returns. Escapes in literals are resolved in place, language tags made lower case,
so that spans of `data` are the terms. IRIs, datatypes and tags are not judged here: `triplewire.kernels.intern`, which
makes ids of tokens, flags those that have to be looked at. What the hash is: `triplewire.kernels.names`.

`data` ends with PAD bytes of value 10 (line feed) that are not part of the text, so no loop looks for the end. A token
is a row of numbers; four of them are a statement: subject, predicate, object, graph.

Small functions are inlined by Numba itself: the compiler behind it does not always do so, and then counts references to
arrays at each call.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

PAD = 8
DONE, MORE, STOP = 0, 1, 2
START, END, KIND, HASH, SUFFIX, SUFFIX_END = 0, 1, 2, 3, 4, 5  # columns of `tokens`; HASH is not folded yet, and
COLUMNS = 6  # without the suffix
IRI, BLANK, LITERAL = 1, 2, 3
SAME, NONE = 0, 4  # in place of a kind: the IRI that stood in this place last; no graph
AT, QUADS, LAST = 0, 1, 2  # places in `state`; LAST: start and end of the last subject, predicate, graph if an IRI
STATE = 8

_OFFSET, _PRIME = np.uint64(14695981039346656037), np.uint64(1099511628211)
_int: Any = np.int64


@njit(cache=True, nogil=True)
def _step(h: Any, byte: int) -> Any:
    return (h ^ np.uint64(byte)) * _PRIME


@njit(cache=True, nogil=True)
def _span(data: Any, start: int, end: int, h: Any) -> Any:
    for i in range(start, end):
        h = (h ^ np.uint64(data[i])) * _PRIME
    return h


# --- characters ------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _is_alnum(byte: int) -> bool:
    return 97 <= byte <= 122 or 48 <= byte <= 57 or 65 <= byte <= 90


@njit(cache=True, nogil=True)
def _utf8(data: Any, at: int) -> int:
    """The length of the character that begins here; 0 where it is no UTF-8 (Unicode 15, table 3-7)."""
    lead, low, high = _int(data[at]), 0x80, 0xBF
    if lead < 0x80:
        return 1
    if lead < 0xC2 or lead > 0xF4:
        return 0
    length = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    if lead == 0xE0:
        low = 0xA0
    elif lead == 0xED:
        high = 0x9F
    elif lead == 0xF0:
        low = 0x90
    elif lead == 0xF4:
        high = 0x8F
    if not low <= _int(data[at + 1]) <= high:
        return 0
    for i in range(2, length):
        if not 0x80 <= _int(data[at + i]) <= 0xBF:
            return 0
    return length


@njit(cache=True, nogil=True)
def _hex(byte: int) -> int:
    if 48 <= byte <= 57:
        return byte - 48
    if 97 <= (byte | 32) <= 102:
        return (byte | 32) - 87
    return -1


@njit(cache=True, nogil=True)
def _code_point(data: Any, at: int, digits: int) -> int:
    """The character of so many hexadecimal digits; -1 where there is none."""
    code = 0
    for i in range(digits):
        digit = _hex(_int(data[at + i]))
        if digit < 0:
            return -1
        code = code * 16 + digit
    return -1 if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF else code


@njit(cache=True, nogil=True)
def _write(data: Any, at: int, code: int) -> int:
    """Write a character as UTF-8; returns where it ends."""
    if code < 0x80:
        data[at] = code
        return at + 1
    if code < 0x800:
        data[at] = 0xC0 | code >> 6
    else:
        if code < 0x10000:
            data[at] = 0xE0 | code >> 12
        else:
            data[at] = 0xF0 | code >> 18
            at += 1
            data[at] = 0x80 | code >> 12 & 63
        at += 1
        data[at] = 0x80 | code >> 6 & 63
    data[at + 1] = 0x80 | code & 63
    return at + 2


@njit(cache=True, nogil=True)
def _unescaped(byte: int) -> int:
    """What stands for a character after a backslash; -1 for others than those of N-Triples."""
    if byte == 34 or byte == 39 or byte == 92:
        return byte
    if byte == 110:
        return 10
    if byte == 116:
        return 9
    if byte == 114:
        return 13
    return 8 if byte == 98 else 12 if byte == 102 else -1


# --- terms -----------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, inline="always")
def _iri(data: Any, at: int, h: Any) -> tuple[int, Any]:
    """From behind "<" to ">", or -1."""
    while True:
        byte = _int(data[at])
        if byte == 62:
            return at, h
        if byte <= 32 or byte == 92:
            return -1, h
        h = _step(h, byte)
        at += 1


@njit(cache=True, nogil=True, inline="always")
def _label(data: Any, at: int, h: Any) -> tuple[int, Any]:
    """From behind "_:" to the blank that follows the label, or -1."""
    start = at
    while True:
        byte = _int(data[at])
        if not (_is_alnum(byte) or byte == 95 or (byte == 45 and at > start)):
            break
        h = _step(h, byte)
        at += 1
    return (at if at > start and (byte == 32 or byte == 9 or byte == 10) else -1), h


@njit(cache=True, nogil=True)
def _quoted(data: Any, at: int, h: Any) -> tuple[int, int, Any]:
    """From behind the quotation mark: the end of the text, the place behind the closing mark (-1: none), the hash."""
    while True:
        byte = _int(data[at])
        if byte < 128:
            if byte == 34:
                return at, at + 1, h
            if byte == 92:
                return _escaped(data, at, h)
            if byte == 10 or byte == 13:
                return at, -1, h
            h = _step(h, byte)
            at += 1
        else:
            length = _utf8(data, at)
            if length == 0:
                return at, -1, h
            h = _span(data, at, at + length, h)
            at += length


@njit(cache=True, nogil=True)
def _escaped(data: Any, at: int, h: Any) -> tuple[int, int, Any]:
    """As `_quoted`, from the first escape on: the rest of the text moves up."""
    to = at
    while True:
        byte = _int(data[at])
        if byte == 34:
            return to, at + 1, h
        if byte == 10 or byte == 13:
            return to, -1, h
        if byte == 92:
            kind = _int(data[at + 1])
            if kind == 117 or kind == 85:
                digits = 4 if kind == 117 else 8
                code = _code_point(data, at + 2, digits)
                at += 2 + digits
            else:
                code = _unescaped(kind)
                at += 2
            if code < 0:
                return to, -1, h
            end = _write(data, to, code)
        else:
            length = _utf8(data, at)
            if length == 0:
                return to, -1, h
            for i in range(length):
                data[to + i] = data[at + i]
            at += length
            end = to + length
        h = _span(data, to, end, h)
        to = end


@njit(cache=True, nogil=True, inline="always")
def _put(tokens: Any, row: int, start: int, end: int, kind: int, h: Any) -> None:
    tokens[row, START] = start
    tokens[row, END] = end
    tokens[row, KIND] = kind
    tokens[row, HASH] = h
    tokens[row, SUFFIX] = 0
    tokens[row, SUFFIX_END] = 0


@njit(cache=True, nogil=True, inline="always")
def _repeats(data: Any, at: int, start: int, end: int) -> Any:
    """Does the IRI of the span stand here, too? Compared to the end, since it mostly does: so the loop is one of
    vectors."""
    if at + end - start >= data.size or data[at + end - start] != 62:
        return False
    different = np.uint8(0)
    for i in range(end - start):
        different |= data[at + i] ^ data[start + i]
    return different == 0


@njit(cache=True, nogil=True)
def _node(data: Any, at: int, tokens: Any, row: int, state: Any, place: int) -> Any:
    """Read an IRI or a blank node; returns the place behind it, or -1. `place` in the statement, or -1."""
    if data[at] == 60:
        at += 1
        if place >= 0 and state[LAST + 2 * place] > 0:
            start, end = state[LAST + 2 * place], state[LAST + 2 * place + 1]
            if _repeats(data, at, start, end):
                tokens[row, KIND] = SAME
                return at + end - start + 1
        end, h = _iri(data, at, _OFFSET ^ np.uint64(IRI))
        if end < 0:
            return -1
        _put(tokens, row, at, end, _int(IRI), h)
        if place >= 0:
            state[LAST + 2 * place] = at
            state[LAST + 2 * place + 1] = end
        return end + 1
    if data[at] == 95 and data[at + 1] == 58:
        end, h = _label(data, at + 2, _OFFSET ^ np.uint64(BLANK))
        if end < 0:
            return -1
        _put(tokens, row, at + 2, end, _int(BLANK), h)
        if place >= 0:
            state[LAST + 2 * place] = 0
        return end
    return -1


@njit(cache=True, nogil=True)
def _literal(data: Any, at: int, tokens: Any, row: int) -> int:
    """Read a literal, from behind its quotation mark; returns the place behind it, or -1."""
    end, after, h = _quoted(data, at, _OFFSET ^ np.uint64(LITERAL))
    if after < 0:
        return -1
    _put(tokens, row, at, end, _int(LITERAL), h)
    if data[after] == 64:
        start = after
        after += 1
        while _is_alnum(_int(data[after])) or data[after] == 45:
            if 65 <= _int(data[after]) <= 90:
                data[after] |= 32
            after += 1
        if after == start + 1:
            return -1
        end = after
    elif data[after] == 94:
        if data[after + 1] != 94 or data[after + 2] != 60:
            return -1
        start = after + 3
        if not 97 <= (_int(data[start]) | 32) <= 122:  # so that no datatype looks like a tag
            return -1
        end, _ = _iri(data, start, h)
        if end < 0:
            return -1
        after = end + 1
    else:
        return after
    tokens[row, SUFFIX] = start
    tokens[row, SUFFIX_END] = end
    return after


# --- statements ------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, inline="always")
def _blanks(data: Any, at: int) -> int:
    while data[at] == 32 or data[at] == 9:
        at += 1
    return at


@njit(cache=True, nogil=True, inline="always")
def _statement(data: Any, at: int, tokens: Any, row: int, state: Any) -> int:
    """Read a statement to behind its full stop; returns that place, or -1."""
    at = _node(data, at, tokens, row, state, _int(0))
    if at < 0:
        return -1
    at = _blanks(data, at)
    if data[at] != 60:
        return -1
    at = _node(data, at, tokens, row + 1, state, _int(1))
    if at < 0:
        return -1
    at = _blanks(data, at)
    at = (
        _literal(data, at + 1, tokens, row + 2) if data[at] == 34 else _node(data, at, tokens, row + 2, state, _int(-1))
    )
    if at < 0:
        return -1
    at = _blanks(data, at)
    tokens[row + 3, KIND] = NONE
    if data[at] != 46:
        at = _node(data, at, tokens, row + 3, state, _int(2))
        if at < 0:
            return -1
        at = _blanks(data, at)
    return at + 1 if data[at] == 46 else -1


@njit(cache=True, nogil=True, inline="always")
def _line_end(data: Any, at: int) -> int:
    """From behind a statement, or from a line that has none, to behind the line feed; -1 where something else stands
    there."""
    at = _blanks(data, at)
    if data[at] == 35:
        while data[at] != 10 and data[at] != 13:
            length = _utf8(data, at)
            if length == 0:
                return -1
            at += length
    if data[at] == 13:
        at += 1
    return at + 1 if data[at] == 10 else -1


@njit(cache=True, nogil=True)
def scan(data: Any, size: int, tokens: Any, state: Any) -> int:
    """Read statements from state[AT] on, as many as `tokens` has room for; `size`: bytes without the padding.

    Returns DONE, MORE (to be called again) or STOP; state[QUADS] says how many statements were read in this call.
    """
    at, quads, room = state[AT], 0, tokens.shape[0] // 4
    while at < size and quads < room:
        at = _blanks(data, at)
        if data[at] == 60 or data[at] == 95:
            at = _statement(data, at, tokens, 4 * quads, state)
            if at < 0:
                return STOP
            quads += 1
        at = _line_end(data, at)
        if at < 0:
            return STOP
    state[AT] = at
    state[QUADS] = quads
    return DONE if at >= size else MORE


@njit(cache=True, nogil=True)
def scan_terms(data: Any, offset: Any, tokens: Any, state: Any) -> int:
    """Read single terms, data[offset[i]] to the line feed before offset[i + 1]; returns DONE or STOP."""
    for i in range(offset.size - 1):
        at = offset[i]
        end = _literal(data, at + 1, tokens, i) if data[at] == 34 else _node(data, at, tokens, i, state, _int(-1))
        if end < 0 or end + 1 != offset[i + 1]:
            return STOP
    return DONE
