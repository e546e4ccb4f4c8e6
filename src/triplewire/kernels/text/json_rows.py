"""Finds the fields of subscriptions in JSON Lines of the usual form, and writes the lines that are kept of them.

    for each line:  {"id": "...", "language": "...", "query": "..."}, behind that perhaps "prefixes": {} and "base": "",
                    in this order, with at most one blank behind a comma and around a colon; no escape in the id, and
                    in the query only those of one letter, which are decoded as it is copied

Any other line is left to Python's reader of JSON. Used through `triplewire.languages.sources.row_columns`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.shared.compiled import called_helper, helper, kernel
from triplewire.kernels.shared.hashing import same_bytes

NONE = -1  # in place of a language: the line has not the usual form
_QUOTE, _BACKSLASH, _SPACE, _COMMA, _COLON, _BEGIN, _END = 0x22, 0x5C, 0x20, 0x2C, 0x3A, 0x7B, 0x7D
_DECODED = np.zeros(256, np.uint8)  # the letter behind a backslash -> what both stand for
for _letter, _byte in zip(b'"\\nrtbf', b'"\\\n\r\t\b\f', strict=True):
    _DECODED[_letter] = _byte
_IS_BLANK = np.zeros(256, np.bool_)
_IS_BLANK[list(b" \t\r\n")] = True


def _bytes(text: bytes) -> Any:
    return np.frombuffer(text, np.uint8).copy()


_ID, _LANGUAGE, _QUERY, _PREFIXES, _BASE = map(_bytes, (b'"id"', b'"language"', b'"query"', b'"prefixes"', b'"base"'))
_KEPT = tuple(map(_bytes, (b'{"id": "', b'", "language": "', b'", "query": "', b'", "prefixes": {}, "base": ""}\n')))
_KEPT_ID, _KEPT_LANGUAGE, _KEPT_QUERY, _KEPT_END = _KEPT
KEPT_BYTES = sum(len(piece) for piece in _KEPT)
"""Of a kept line beside its id, language and query."""
_int: Any = np.int64


class JsonRows(NamedTuple):
    """What `usual_rows` writes, by line: the number of its language, where its id and its query, with escapes, stand in
    the text; and the decoded queries."""

    language: Any
    id_start: Any
    id_end: Any
    raw_start: Any
    raw_end: Any
    query_offset: Any
    query: Any


@called_helper
def _value(text: Any, i: int, end: int, before: int, key: Any) -> Any:
    """Where the value begins behind `before`, a key and a colon; `NONE` where they do not stand here."""
    at, stop = _int(i), _int(NONE)
    if at < end and text[at] == before:
        at += 1
        at += at < end and text[at] == _SPACE
        if at + key.size < end and same_bytes(text, at, at + key.size, key, 0):
            at += key.size
            at += at < end and text[at] == _SPACE
            if at < end and text[at] == _COLON:
                at += 1
                at += at < end and text[at] == _SPACE
                stop = at
    return stop


@called_helper
def _string(text: Any, i: int, end: int, before: int, key: Any) -> Any:
    """The same, behind the quotation mark of a string."""
    at = _value(text, i, end, before, key)
    return at + 1 if 0 <= at < end and text[at] == _QUOTE else _int(NONE)


@called_helper
def _plain_end(text: Any, i: int, end: int) -> Any:
    """Where a string ends that has a character and no escape; `NONE` where it has."""
    at = _int(i)
    while at < end and text[at] >= _SPACE and text[at] != _QUOTE and text[at] != _BACKSLASH:
        at += 1
    return at if i < at < end and text[at] == _QUOTE else _int(NONE)


@called_helper
def _empty(text: Any, i: int, end: int, key: Any, first: int, second: int) -> Any:
    """Behind a key and its value of these two bytes, if they stand here; else `i`."""
    at = _value(text, i, end, _COMMA, key)
    return at + 2 if at >= 0 and at + 1 < end and text[at] == first and text[at + 1] == second else _int(i)


@called_helper
def _number(text: Any, start: int, end: int, names: Any, name_offset: Any) -> Any:
    """The number of a name; `NONE` where it is none of them."""
    number = _int(NONE)
    for name in range(name_offset.size - 1):
        begin = name_offset[name]
        if name_offset[name + 1] - begin == end - start and same_bytes(text, start, end, names, begin):
            number = _int(name)
    return number


@called_helper
def _decode(text: Any, i: int, end: int, out: Any, to: int) -> Any:
    """Copy a string, decoded; returns where it ends, `NONE` where it has an odd escape or does not end, and where the
    copy ends."""
    at, written, good = _int(i), _int(to), True
    while good and at < end and text[at] != _QUOTE:
        byte = text[at]
        good = byte >= _SPACE
        if byte == _BACKSLASH:
            at += 1
            byte = _DECODED[text[at]] if at < end else np.uint8(0)
            good = byte != 0
        out[written] = byte
        written += 1
        at += 1
    return (at if good and at < end else _int(NONE)), written


@called_helper
def _row(text: Any, row: int, start: int, end: int, names: Any, name_offset: Any, out: JsonRows) -> Any:
    """Read a line. Returns the number of its language."""
    language, to, i = _int(NONE), _int(out.query_offset[row]), _string(text, start, end, _BEGIN, _ID)
    stop = _plain_end(text, i, end) if i >= 0 else i
    out.id_start[row], out.id_end[row] = i, stop
    i = _string(text, stop + 1, end, _COMMA, _LANGUAGE) if stop >= 0 else _int(NONE)
    stop = _plain_end(text, i, end) if i >= 0 else i
    number = _number(text, i, stop, names, name_offset) if stop >= 0 else _int(NONE)
    i = _string(text, stop + 1, end, _COMMA, _QUERY) if number >= 0 else _int(NONE)
    if i >= 0:
        stop, to = _decode(text, i, end, out.query, to)
        out.raw_start[row], out.raw_end[row] = i, stop
        if stop >= 0:
            i = _empty(text, stop + 1, end, _PREFIXES, _BEGIN, _END)
            i = _empty(text, i, end, _BASE, _QUOTE, _QUOTE)
            good = i < end and text[i] == _END
            i += 1
            while good and i < end:
                good = _IS_BLANK[text[i]]
                i += 1
            language = number if good else _int(NONE)
    out.query_offset[row + 1] = to if language >= 0 else out.query_offset[row]
    return language


@kernel
def usual_rows(text: Any, start: Any, end: Any, names: Any, name_offset: Any, out: JsonRows) -> None:
    """Read the lines. `names`: those of the languages, one behind the other. `out.query` must have room for `text`."""
    out.query_offset[0] = 0
    for row in range(start.size):
        out.language[row] = _row(text, row, start[row], end[row], names, name_offset, out)


@helper
def _copied(text: Any, start: int, end: int, out: Any, to: int) -> Any:
    """Copy bytes; returns where they end."""
    for i in range(end - start):
        out[to + i] = text[start + i]
    return to + end - start


@kernel
def kept_lines(
    id: Any,
    id_start: Any,
    id_end: Any,
    language: Any,
    names: Any,
    name_offset: Any,
    query: Any,
    start: Any,
    end: Any,
    offset: Any,
    out: Any,
) -> None:
    """Write rows as lines of a subscription file, each to where `offset` says. `id`, `query`: with escapes."""
    for row in range(start.size):
        name, to = _int(language[row]), _int(offset[row])
        to = _copied(_KEPT_ID, 0, _KEPT_ID.size, out, to)
        to = _copied(id, id_start[row], id_end[row], out, to)
        to = _copied(_KEPT_LANGUAGE, 0, _KEPT_LANGUAGE.size, out, to)
        to = _copied(names, name_offset[name], name_offset[name + 1], out, to)
        to = _copied(_KEPT_QUERY, 0, _KEPT_QUERY.size, out, to)
        to = _copied(query, start[row], end[row], out, to)
        _copied(_KEPT_END, 0, _KEPT_END.size, out, to)
