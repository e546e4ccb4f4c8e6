"""N-Quads bytes to tokens: where each term stands, and what it is.

    for each line:  skip blanks; read subject, predicate, object, graph: "<" to ">", "_:" to a blank, quotation mark to
                        quotation mark and what follows it; then ".", a comment, the line feed
                    write a token for each: where it begins and ends, its kind, where its suffix begins and ends; SAME
                        for the IRI that stood in the same place of the statement before

It takes the plain form only, and says STOP at anything else: malformed lines, escapes in IRIs, blank node labels beyond
ASCII, invalid UTF-8, lone carriage returns. Escapes in literals are resolved in place, language tags made lower case,
so that spans of `data` are the terms. IRIs, datatypes and tags are not judged here: `triplewire.kernels.text.intern`,
which makes ids of tokens, flags those that have to be looked at.

`data` ends with PAD bytes of value 10 (line feed) that are not part of the text, so no loop looks for the end. A token
is a row of numbers (`triplewire.kernels.text.intern`); four of them are a statement: subject, predicate, object, graph.
Most of a text is passed over eight bytes at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.shared.compiled import called_helper, helper, kernel
from triplewire.kernels.shared.hashing import eight, same_bytes, write_utf8
from triplewire.kernels.text.intern import BLANK, END, IRI, KIND, LITERAL, NONE, SAME, START, SUFFIX, SUFFIX_END

PAD = 8
DONE, MORE, STOP = 0, 1, 2
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
    word ^= bytes_  # a byte is 0 where it was that one
    return (word - _ONES) & ~word & _HIGHS  # the highest bit of a byte that was 0 is borrowed from; the first is right


@helper
def _is_alnum(byte: int) -> bool:
    return 97 <= byte <= 122 or 48 <= byte <= 57 or 65 <= byte <= 90


@helper
def _utf8(data: Any, pos: int) -> int:
    """The length of the character that begins here; 0 where it is no UTF-8 (Unicode 15, table 3-7)."""
    lead, low, high = _int(data[pos]), 0x80, 0xBF
    length = 1 if lead < 0x80 else 0 if lead < 0xC2 or lead > 0xF4 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    if lead == 0xE0:
        low = 0xA0
    elif lead == 0xED:
        high = 0x9F
    elif lead == 0xF0:
        low = 0x90
    elif lead == 0xF4:
        high = 0x8F
    good = length < 2 or low <= _int(data[pos + 1]) <= high
    for i in range(2, length):
        good = good and 0x80 <= _int(data[pos + i]) <= 0xBF
    return length if good else 0


@helper
def _code_point(data: Any, pos: int, digits: int) -> int:
    """The character of so many hexadecimal digits; -1 where there is none."""
    code, good = 0, True
    for i in range(digits):
        byte = _int(data[pos + i]) if good else 0
        digit = byte - 48 if 48 <= byte <= 57 else (byte | 32) - 87 if 97 <= (byte | 32) <= 102 else -1
        good = digit >= 0
        code = code * 16 + digit
    return -1 if not good or code > 0x10FFFF or 0xD800 <= code <= 0xDFFF else code


@helper
def _unescaped(byte: int) -> int:
    """What stands for a character after a backslash; -1 for others than those of N-Triples."""
    code = byte if byte == 34 or byte == 39 or byte == 92 else -1
    code = 10 if byte == 110 else 9 if byte == 116 else 13 if byte == 114 else code
    return 8 if byte == 98 else 12 if byte == 102 else code


@helper
def _iri(data: Any, pos: int) -> int:
    """From behind "<" to ">", or -1."""
    word = eight(data, pos)
    # the last term: a byte below 33, a blank or a control character, borrows the highest bit when 33 is taken from it
    while (_has(word, _CLOSING) | _has(word, _BACKSLASHES) | ((word - _CONTROLS) & ~word & _HIGHS)) == 0:
        pos += 8
        word = eight(data, pos)
    byte = _int(data[_wide(pos)])
    while byte > 32 and byte != 62 and byte != 92:
        pos += 1
        byte = _int(data[_wide(pos)])
    return pos if byte == 62 else -1


@called_helper
def _label(data: Any, pos: int) -> int:
    """From behind "_:" to the blank that follows the label, or -1."""
    start, byte = pos, _int(data[pos])
    while _is_alnum(byte) or byte == 95 or (byte == 45 and pos > start):
        pos += 1
        byte = _int(data[pos])
    return pos if pos > start and (byte == 32 or byte == 9 or byte == 10) else -1


@helper
def _quoted(data: Any, pos: int) -> int:
    """From behind the quotation mark to what ends the plain text: the closing mark, an escape, or what is wrong."""
    plain = True
    while plain:
        word = eight(data, pos)
        stops = _has(word, _QUOTES) | _has(word, _BACKSLASHES) | _has(word, _FEEDS) | _has(word, _RETURNS)
        if stops | (word & _HIGHS) == 0:
            pos += 8
        else:
            byte = _int(data[_wide(pos)])
            while byte < 128 and byte != 34 and byte != 92 and byte != 10 and byte != 13:
                pos += 1
                byte = _int(data[_wide(pos)])
            plain = byte >= 128
            while plain and byte >= 128:
                length = _utf8(data, pos)
                plain = length > 0
                pos += length
                byte = _int(data[_wide(pos)])
    return pos


@called_helper
def _escaped(data: Any, pos: int) -> tuple[int, int]:
    """From an escape in a literal: the end of the text, whose rest moves up, and the place behind the closing mark (-1:
    there is none)."""
    to, byte = pos, _int(data[pos])
    while byte != 34 and byte != 10 and byte != 13:
        if byte == 92:
            kind = _int(data[pos + 1])
            digits = 4 if kind == 117 else 8 if kind == 85 else 0
            code = _code_point(data, pos + 2, digits) if digits else _unescaped(kind)
            pos += 2 + digits
            good = code >= 0
            if good:
                to = write_utf8(data, to, code)
        else:
            length = _utf8(data, pos)
            good = length > 0
            for i in range(length):
                data[to + i] = data[pos + i]
            pos += length
            to += length
        byte = _int(data[pos]) if good else 10
    return to, pos + 1 if byte == 34 else -1


@helper
def _put(tokens: Any, row: int, start: int, end: int, kind: int) -> None:
    tokens[row, START], tokens[row, END], tokens[row, KIND] = start, end, kind
    tokens[row, SUFFIX] = tokens[row, SUFFIX_END] = 0


@helper
def _repeats(data: Any, pos: int, start: int, end: int) -> Any:
    """Does the IRI of the span stand here, too?"""
    behind = min(pos + end - start, data.size - 1)
    return data[_wide(behind)] == 62 and same_bytes(data, start, end, data, pos)


@helper
def _node(data: Any, pos: int, tokens: Any, row: int, state: Any, place: int) -> Any:
    """Read an IRI or a blank node; returns the place behind it, or -1. `place` in the statement, or -1."""
    after = -1
    if data[pos] == 60:
        pos += 1
        start, end = (state[LAST + 2 * place], state[LAST + 2 * place + 1]) if place >= 0 else (0, 0)
        if start > 0 and _repeats(data, pos, start, end):
            tokens[row, KIND] = SAME
            after = pos + end - start + 1
        else:
            end = _iri(data, pos)
            if end >= 0:
                _put(tokens, row, pos, end, _int(IRI))
                if place >= 0:
                    state[LAST + 2 * place], state[LAST + 2 * place + 1] = pos, end
                after = end + 1
    elif data[pos] == 95 and data[pos + 1] == 58:
        after = _label(data, pos + 2)
        if after >= 0:
            _put(tokens, row, pos + 2, after, _int(BLANK))
            if place >= 0:
                state[LAST + 2 * place] = 0
    return after


@helper
def _suffix(data: Any, after: int, tokens: Any, row: int) -> Any:
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
            after = _iri(data, start)
            if after >= 0:
                tokens[row, SUFFIX], tokens[row, SUFFIX_END] = start, after
                after += 1
    return after


@helper
def _literal(data: Any, pos: int, tokens: Any, row: int) -> Any:
    """Read a literal, from behind its quotation mark; returns the place behind it, or -1."""
    end = _quoted(data, pos)
    after = end + 1 if data[end] == 34 else -1
    if data[end] == 92:
        end, after = _escaped(data, end)
    if after >= 0:
        _put(tokens, row, pos, end, _int(LITERAL))
        after = _suffix(data, after, tokens, row)
    return after


@helper
def _blanks(data: Any, pos: int) -> int:
    while data[pos] == 32 or data[pos] == 9:
        pos += 1
    return pos


@helper
def _statement(data: Any, pos: int, tokens: Any, row: int, state: Any) -> Any:
    """Read a statement to behind its full stop; returns that place, or -1."""
    pos = _node(data, pos, tokens, row, state, _int(0))
    if pos >= 0:
        pos = _blanks(data, pos)
        pos = _node(data, pos, tokens, row + 1, state, _int(1)) if data[pos] == 60 else -1
    if pos >= 0:
        pos = _blanks(data, pos)
        if data[pos] == 34:
            pos = _literal(data, pos + 1, tokens, row + 2)
        else:
            pos = _node(data, pos, tokens, row + 2, state, _int(-1))
    if pos >= 0:
        pos = _blanks(data, pos)
        tokens[row + 3, KIND] = NONE
        if data[pos] != 46:
            pos = _node(data, pos, tokens, row + 3, state, _int(2))
            pos = _blanks(data, pos) if pos >= 0 else -1
    if pos >= 0:
        pos = pos + 1 if data[pos] == 46 else -1
    return pos


@helper
def _line_end(data: Any, pos: int) -> Any:
    """From behind a statement, or from a line that has none, to behind the line feed; -1 where something else stands
    there."""
    pos = _blanks(data, pos)
    good = True
    if data[pos] == 35:
        while good and data[pos] != 10 and data[pos] != 13:
            length = _utf8(data, pos)
            good = length > 0
            pos += length
    if data[pos] == 13:
        pos += 1
    return pos + 1 if good and data[pos] == 10 else -1


@kernel
def scan(data: Any, size: int, tokens: Any, state: Any) -> int:
    """Read statements from state[AT] on, as many as `tokens` has room for; `size`: bytes without the padding.

    Returns DONE, MORE (to be called again) or STOP; state[QUADS] says how many statements were read in this call.
    """
    pos, quads, room = state[AT], 0, tokens.shape[0] // 4
    while 0 <= pos < size and quads < room:
        pos = _blanks(data, pos)
        if data[pos] == 60 or data[pos] == 95:
            pos = _statement(data, pos, tokens, 4 * quads, state)
            quads += 1
        if pos >= 0:
            pos = _line_end(data, pos)
    state[AT] = pos
    state[QUADS] = quads
    return STOP if pos < 0 else DONE if pos >= size else MORE


@kernel
def scan_terms(data: Any, offset: Any, tokens: Any, state: Any) -> int:
    """Read single terms, data[offset[i]] to the line feed before offset[i + 1]; returns DONE or STOP."""
    status = DONE
    for i in range(offset.size - 1):
        pos = offset[i]
        is_literal = data[pos] == 34
        end = _literal(data, pos + 1, tokens, i) if is_literal else _node(data, pos, tokens, i, state, _int(-1))
        if end < 0 or end + 1 != offset[i + 1]:
            status = STOP
            break
    return status
