"""N-Quads bytes to tokens: where each term stands, and what it is.

It takes the plain form only, and says STOP at anything else: malformed lines, escapes in IRIs, blank node labels beyond
ASCII, invalid UTF-8, lone carriage returns. Escapes in literals are resolved in place, language tags made lower case,
so that spans of `data` are the terms. IRIs, datatypes and tags are not judged here: `triplewire.kernels.text.intern`,
which makes ids of tokens, flags those that have to be looked at.

`data` ends with PAD bytes of value 10 (line feed) that are not part of the text, so no loop looks for the end. A token
is a row of numbers; four of them are a statement: subject, predicate, object, graph. `wide` are the same bytes, eight
from each place on as one number (`triplewire.encode.interning.wide`): most of a text is passed over so.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.shared.compiled import called_helper, helper, kernel
from triplewire.kernels.shared.eight_bytes import low_bytes, write_utf8

PAD = 8
DONE, MORE, STOP = 0, 1, 2
START, END, KIND, SUFFIX, SUFFIX_END = 0, 1, 2, 3, 4  # columns of `tokens`
COLUMNS = 5
IRI, BLANK, LITERAL = 1, 2, 3
SAME, NONE = 0, 4  # in place of a kind: the IRI that stood in this place last; no graph
AT, QUADS, LAST = 0, 1, 2  # places in `state`; LAST: start and end of the last subject, predicate, graph if an IRI
STATE = 8

_ONES, _HIGHS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_QUOTES, _BACKSLASHES, _FEEDS, _RETURNS, _CLOSING, _CONTROLS = (
    np.uint64(byte * 0x0101010101010101) for byte in (34, 92, 10, 13, 62, 33)
)
_int: Any = np.int64
_wide: Any = np.uint64


@helper
def _has(word: Any, bytes_: Any) -> Any:
    """Not 0 where one of the eight bytes is the one that `bytes_` holds eight times (H. S. Warren, "Hacker's Delight",
    section 6-1)."""
    word ^= bytes_
    return (word - _ONES) & ~word & _HIGHS


@helper
def _is_alnum(byte: int) -> bool:
    return 97 <= byte <= 122 or 48 <= byte <= 57 or 65 <= byte <= 90


@helper
def _utf8(data: Any, at: int) -> int:
    """The length of the character that begins here; 0 where it is no UTF-8 (Unicode 15, table 3-7)."""
    lead, low, high = _int(data[at]), 0x80, 0xBF
    length = 1 if lead < 0x80 else 0 if lead < 0xC2 or lead > 0xF4 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    if lead == 0xE0:
        low = 0xA0
    elif lead == 0xED:
        high = 0x9F
    elif lead == 0xF0:
        low = 0x90
    elif lead == 0xF4:
        high = 0x8F
    good = length < 2 or low <= _int(data[at + 1]) <= high
    for i in range(2, length):
        good = good and 0x80 <= _int(data[at + i]) <= 0xBF
    return length if good else 0


@helper
def _hex(byte: int) -> int:
    return byte - 48 if 48 <= byte <= 57 else (byte | 32) - 87 if 97 <= (byte | 32) <= 102 else -1


@helper
def _code_point(data: Any, at: int, digits: int) -> int:
    """The character of so many hexadecimal digits; -1 where there is none."""
    code, good = 0, True
    for i in range(digits):
        digit = _hex(_int(data[at + i])) if good else -1
        good = digit >= 0
        code = code * 16 + digit
    return -1 if not good or code > 0x10FFFF or 0xD800 <= code <= 0xDFFF else code


@helper
def _unescaped(byte: int) -> int:
    """What stands for a character after a backslash; -1 for others than those of N-Triples."""
    code = byte if byte == 34 or byte == 39 or byte == 92 else -1
    code = 10 if byte == 110 else 9 if byte == 116 else 13 if byte == 114 else code
    return 8 if byte == 98 else 12 if byte == 102 else code


# --- terms -----------------------------------------------------------------------------------------------------------


@helper
def _iri(data: Any, wide: Any, at: int) -> int:
    """From behind "<" to ">", or -1."""
    word = wide[_wide(at)]
    while (_has(word, _CLOSING) | _has(word, _BACKSLASHES) | ((word - _CONTROLS) & ~word & _HIGHS)) == 0:
        at += 8
        word = wide[_wide(at)]
    byte = _int(data[_wide(at)])
    while byte > 32 and byte != 62 and byte != 92:
        at += 1
        byte = _int(data[_wide(at)])
    return at if byte == 62 else -1


@called_helper
def _label(data: Any, at: int) -> int:
    """From behind "_:" to the blank that follows the label, or -1."""
    start, byte = at, _int(data[at])
    while _is_alnum(byte) or byte == 95 or (byte == 45 and at > start):
        at += 1
        byte = _int(data[at])
    return at if at > start and (byte == 32 or byte == 9 or byte == 10) else -1


@helper
def _quoted(data: Any, wide: Any, at: int) -> int:
    """From behind the quotation mark to what ends the plain text: the closing mark, an escape, or what is wrong."""
    plain = True
    while plain:
        word = wide[_wide(at)]
        stops = _has(word, _QUOTES) | _has(word, _BACKSLASHES) | _has(word, _FEEDS) | _has(word, _RETURNS)
        if stops | (word & _HIGHS) == 0:
            at += 8
        else:
            byte = _int(data[_wide(at)])
            while byte < 128 and byte != 34 and byte != 92 and byte != 10 and byte != 13:
                at += 1
                byte = _int(data[_wide(at)])
            plain = byte >= 128
            while plain and byte >= 128:
                length = _utf8(data, at)
                plain = length > 0
                at += length
                byte = _int(data[_wide(at)])
    return at


@called_helper
def _escaped(data: Any, at: int) -> tuple[int, int]:
    """From an escape in a literal: the end of the text, whose rest moves up, and the place behind the closing mark (-1:
    there is none)."""
    to, byte = at, _int(data[at])
    while byte != 34 and byte != 10 and byte != 13:
        if byte == 92:
            kind = _int(data[at + 1])
            digits = 4 if kind == 117 else 8 if kind == 85 else 0
            code = _code_point(data, at + 2, digits) if digits else _unescaped(kind)
            at += 2 + digits
            good = code >= 0
            if good:
                to = write_utf8(data, to, code)
        else:
            length = _utf8(data, at)
            good = length > 0
            for i in range(length):
                data[to + i] = data[at + i]
            at += length
            to += length
        byte = _int(data[at]) if good else 10
    return to, at + 1 if byte == 34 else -1


@helper
def _put(tokens: Any, row: int, start: int, end: int, kind: int) -> None:
    tokens[row, START] = start
    tokens[row, END] = end
    tokens[row, KIND] = kind
    tokens[row, SUFFIX] = 0
    tokens[row, SUFFIX_END] = 0


@helper
def _repeats(data: Any, wide: Any, at: int, start: int, end: int) -> Any:
    """Does the IRI of the span stand here, too? Compared to the end, since it mostly does."""
    length, i, different = end - start, 0, _wide(0)
    same = data[_wide(min(at + length, data.size - 1))] == 62
    upto = length if same else 0
    while i + 8 <= upto:
        different |= wide[_wide(at + i)] ^ wide[_wide(start + i)]
        i += 8
    last = wide[_wide(at + i)] ^ wide[_wide(start + i)]
    different |= last & low_bytes(upto - i)
    return same and different == 0


@helper
def _node(data: Any, wide: Any, at: int, tokens: Any, row: int, state: Any, place: int) -> Any:
    """Read an IRI or a blank node; returns the place behind it, or -1. `place` in the statement, or -1."""
    after = -1
    if data[at] == 60:
        at += 1
        start, end = (state[LAST + 2 * place], state[LAST + 2 * place + 1]) if place >= 0 else (0, 0)
        if start > 0 and _repeats(data, wide, at, start, end):
            tokens[row, KIND] = SAME
            after = at + end - start + 1
        else:
            end = _iri(data, wide, at)
            if end >= 0:
                _put(tokens, row, at, end, _int(IRI))
                if place >= 0:
                    state[LAST + 2 * place], state[LAST + 2 * place + 1] = at, end
                after = end + 1
    elif data[at] == 95 and data[at + 1] == 58:
        after = _label(data, at + 2)
        if after >= 0:
            _put(tokens, row, at + 2, after, _int(BLANK))
            if place >= 0:
                state[LAST + 2 * place] = 0
    return after


@helper
def _suffix(data: Any, wide: Any, after: int, tokens: Any, row: int) -> Any:
    """Read what may follow the closing mark of a literal; returns the place behind it, or -1."""
    start = after
    if data[after] == 64:
        after += 1
        byte = _int(data[after])
        while _is_alnum(byte) or byte == 45:
            if 65 <= byte <= 90:
                data[after] = byte | 32
            after += 1
            byte = _int(data[after])
        tokens[row, SUFFIX], tokens[row, SUFFIX_END] = start, after
        if after == start + 1:
            after = -1
    elif data[after] == 94:
        after, start = -1, start + 3
        # a datatype that begins with a letter does not look like a tag
        if data[start - 2] == 94 and data[start - 1] == 60 and 97 <= (_int(data[start]) | 32) <= 122:
            after = _iri(data, wide, start)
            if after >= 0:
                tokens[row, SUFFIX], tokens[row, SUFFIX_END] = start, after
                after += 1
    return after


@helper
def _literal(data: Any, wide: Any, at: int, tokens: Any, row: int) -> Any:
    """Read a literal, from behind its quotation mark; returns the place behind it, or -1."""
    end = _quoted(data, wide, at)
    after = end + 1 if data[end] == 34 else -1
    if data[end] == 92:
        end, after = _escaped(data, end)
    if after >= 0:
        _put(tokens, row, at, end, _int(LITERAL))
        after = _suffix(data, wide, after, tokens, row)
    return after


# --- statements ------------------------------------------------------------------------------------------------------


@helper
def _blanks(data: Any, at: int) -> int:
    while data[at] == 32 or data[at] == 9:
        at += 1
    return at


@helper
def _statement(data: Any, wide: Any, at: int, tokens: Any, row: int, state: Any) -> Any:
    """Read a statement to behind its full stop; returns that place, or -1."""
    at = _node(data, wide, at, tokens, row, state, _int(0))
    if at >= 0:
        at = _blanks(data, at)
        at = _node(data, wide, at, tokens, row + 1, state, _int(1)) if data[at] == 60 else -1
    if at >= 0:
        at = _blanks(data, at)
        if data[at] == 34:
            at = _literal(data, wide, at + 1, tokens, row + 2)
        else:
            at = _node(data, wide, at, tokens, row + 2, state, _int(-1))
    if at >= 0:
        at = _blanks(data, at)
        tokens[row + 3, KIND] = NONE
        if data[at] != 46:
            at = _node(data, wide, at, tokens, row + 3, state, _int(2))
            at = _blanks(data, at) if at >= 0 else -1
    if at >= 0:
        at = at + 1 if data[at] == 46 else -1
    return at


@helper
def _line_end(data: Any, at: int) -> Any:
    """From behind a statement, or from a line that has none, to behind the line feed; -1 where something else stands
    there."""
    at = _blanks(data, at)
    good = True
    if data[at] == 35:
        while good and data[at] != 10 and data[at] != 13:
            length = _utf8(data, at)
            good = length > 0
            at += length
    if data[at] == 13:
        at += 1
    return at + 1 if good and data[at] == 10 else -1


@kernel
def scan(data: Any, wide: Any, size: int, tokens: Any, state: Any) -> int:
    """Read statements from state[AT] on, as many as `tokens` has room for; `size`: bytes without the padding.

    Returns DONE, MORE (to be called again) or STOP; state[QUADS] says how many statements were read in this call.
    """
    at, quads, room = state[AT], 0, tokens.shape[0] // 4
    while 0 <= at < size and quads < room:
        at = _blanks(data, at)
        if data[at] == 60 or data[at] == 95:
            at = _statement(data, wide, at, tokens, 4 * quads, state)
            quads += 1
        if at >= 0:
            at = _line_end(data, at)
    state[AT] = at
    state[QUADS] = quads
    return STOP if at < 0 else DONE if at >= size else MORE


@kernel
def scan_terms(data: Any, wide: Any, offset: Any, tokens: Any, state: Any) -> int:
    """Read single terms, data[offset[i]] to the line feed before offset[i + 1]; returns DONE or STOP."""
    status = DONE
    for i in range(offset.size - 1):
        at = offset[i]
        if data[at] == 34:
            end = _literal(data, wide, at + 1, tokens, i)
        else:
            end = _node(data, wide, at, tokens, i, state, _int(-1))
        if end < 0 or end + 1 != offset[i + 1]:
            status = STOP
            break
    return status
