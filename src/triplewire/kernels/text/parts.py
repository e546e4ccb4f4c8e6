"""Splits texts of subscriptions at their parameters, and conjunctions into their parts.

    for each text:  in parts, where it may be: the head; then one part a triple, tuple or FILTER
                    else, or where it has anything else: the whole text as one part
    for each part:  copy its bytes to the skeletons; in place of a parameter a NUL and its first byte,
                    behind that of a variable the number of the first variable of the part with this name

A parameter is `<IRI>`, a quoted string with its tag or datatype, a blank and a number behind `<`, `>` or `=`, and, in
parts, `?name`. What is none: the namespace of a declaration, the name of a function, a string beside another quotation
mark or with an escape (in parts: but of a backslash or its quotation mark), a tag with capitals. In parts nothing of a
string or comment may be left over. Where a character beyond ASCII might belong to a token or end it, the text is
unsure. Used through `triplewire.languages.templates`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.shared.compiled import called_helper, helper, kernel
from triplewire.kernels.shared.hashing import enter, hash_bytes, same_bytes

WHOLE, SPARQL, GQL = 0, 1, 2
"""How a text is to be split: as a whole, or in parts."""
UNSURE = 3
"""What becomes of a text that cannot be split."""
PARTS, PARAMETERS, BYTES = 0, 1, 2  # places in `state`
STATE = 4
_FIRST = 3  # place in `state`: the first parameter of the part
_NO, _ODD = 0, -1  # in place of the end of a parameter
_MOST = 250  # variables of a part, whose numbers are bytes

_LETTER, _DIGIT, _UNDERLINE, _SCHEME, _IRI, _BLANK, _LEFT_OVER, _ENDS_STRING = 1, 2, 4, 8, 16, 32, 64, 128
_CLASSES = np.zeros(256, np.uint8)  # of each byte, as bits
_LETTERS, _DIGITS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", b"0123456789"
for _bit, _bytes in (
    (_LETTER, _LETTERS),
    (_DIGIT, _DIGITS),
    (_UNDERLINE, b"_"),
    (_SCHEME, _LETTERS + _DIGITS + b"+.-"),
    (_IRI, bytes(byte for byte in range(0x21, 256) if byte not in b'<>"{}|^`\\')),
    (_BLANK, b" \t\r\n"),
    (_ENDS_STRING, b"\0\n\r\\"),  # which is then no parameter
    (_LEFT_OVER, b"\0#$\\\"'?{["),  # of a string, variable or comment; a group; a blank node
):
    _CLASSES[list(_bytes)] |= np.uint8(_bit)
_WORD = _LETTER | _DIGIT | _UNDERLINE
_LT, _GT, _COLON, _QUOTE, _SINGLE, _MINUS, _DOT, _MARK = 60, 62, 58, 34, 39, 45, 46, 63
_OPEN, _CLOSE, _BEGIN, _END, _SPACE, _EQUALS, _CARET, _AT, _BACKSLASH = 40, 41, 123, 125, 32, 61, 94, 64, 92
_BEHIND_NUMBER = np.zeros(256, np.uint8)  # what may not stand behind a number
_BEHIND_NUMBER[list(_LETTERS + _DIGITS + b"_.:+%'\"-")] = 1
_XSD_STRING = np.frombuffer(b"http://www.w3.org/2001/XMLSchema#string>", np.uint8).copy()
_RESERVED = np.frombuffer(b"http://www.w3.org/1999/02/22-rdf-syntax-ns#", np.uint8).copy()
_RESERVED_TOO = np.frombuffer(b"http://www.w3.org/2000/01/rdf-schema#", np.uint8).copy()
_FILTER = np.frombuffer(b"FILTER", np.uint8).copy()
_AND = np.frombuffer(b" AND (", np.uint8).copy()
_int: Any = np.int64
_wide: Any = np.uint64


class Split(NamedTuple):
    """What `split` writes: the skeletons of parts one behind the other, and spans of parameters in the texts."""

    mode: Any  # text -> WHOLE, SPARQL, GQL; in and out
    part_offset: Any  # text -> its slice of the parts
    skeleton: Any
    skeleton_offset: Any  # part -> its slice of `skeleton`
    parameter_offset: Any  # part -> its slice of the parameters
    start: Any
    end: Any
    state: Any


@helper
def _begins(text: Any, i: int, end: int, wanted: Any) -> Any:
    return i + wanted.size <= end and same_bytes(text, i, i + wanted.size, wanted, 0)


@helper
def _pass(text: Any, i: int, end: int, allowed: int) -> Any:
    """Behind the bytes of the allowed classes."""
    while i < end and _CLASSES[text[i]] & allowed:
        i += 1
    return i


@helper
def _iri(text: Any, i: int, end: int) -> Any:
    """Behind the `>` of an IRI whose scheme begins at `i`; 0 where there is none."""
    stop = _int(0)
    if i < end and _CLASSES[text[i]] & _LETTER:
        colon = _pass(text, i, end, _SCHEME)
        if colon < end and text[colon] == _COLON:
            last = _pass(text, colon + 1, end, _IRI)
            if last < end and text[last] == _GT:
                stop = last + 1
    return stop


@called_helper
def _suffix(text: Any, i: int, end: int) -> Any:
    """Behind a language tag in lower case, or a datatype other than xsd:string, that begins at `i`; else `i`."""
    stop = _int(i)
    if i + 1 < end and text[i] == _AT and 97 <= text[i + 1] <= 122:
        j, goes_on = _int(i + 1), True
        while j < end and 97 <= text[j] <= 122:
            j += 1
        while goes_on:
            k = j + 1
            while j < end and text[j] == _MINUS and k < end and (97 <= text[k] <= 122 or 48 <= text[k] <= 57):
                k += 1
            goes_on = k > j + 1
            j = k if goes_on else j
        behind = _int(text[j]) if j < end else _SPACE
        if behind >= 128:
            stop = _int(_ODD)
        elif behind != _MINUS and not _CLASSES[behind] & _WORD:
            stop = j
    elif i + 2 < end and text[i] == _CARET and text[i + 1] == _CARET and text[i + 2] == _LT:
        j = _int(_NO) if _begins(text, i + 3, end, _XSD_STRING) else _iri(text, i + 3, end)
        stop = j if j > 0 else stop
    return stop


@called_helper
def _angled(text: Any, start: int, i: int, end: int, reserves: bool) -> Any:
    """Behind an IRI that is a parameter."""
    before = _int(text[i - 1]) if i > start else 0
    is_namespace = before == _SPACE and i - 1 > start and text[i - 2] == _COLON
    j = _NO if before in (_COLON, _CARET) or is_namespace else _iri(text, i + 1, end)
    if j > 0 and reserves and (_begins(text, i + 1, end, _RESERVED) or _begins(text, i + 1, end, _RESERVED_TOO)):
        j = _int(_NO)
    if j > 0:
        k = j
        while k < end and (_CLASSES[text[k]] & _BLANK or text[k] == 11 or text[k] == 12 or 28 <= text[k] <= 31):
            k += 1
        if k < end and text[k] == _OPEN:
            j = _int(_NO)
        elif k < end and text[k] >= 128:
            j = _int(_ODD)
    return j


@helper
def _unescaped(text: Any, i: int, end: int, quote: int) -> Any:
    """Where the quotation mark or something that ends a string comes next."""
    while i < end and text[i] != quote and not _CLASSES[text[i]] & _ENDS_STRING:
        i += 1
    return i


@called_helper
def _quoted(text: Any, start: int, i: int, end: int, escapes: bool) -> Any:
    """Behind a string that is a parameter. `escapes`: of its quotation mark and of backslashes may be in it."""
    quote, j = text[i], _unescaped(text, i + 1, end, text[i])
    while escapes and j + 1 < end and text[j] == _BACKSLASH and (text[j + 1] == quote or text[j + 1] == _BACKSLASH):
        j = _unescaped(text, j + 2, end, quote)
    good = j < end and text[j] == quote and j > i + 1 and not (i > start and text[i - 1] == quote)
    good = good and not (j + 1 < end and text[j + 1] == quote)
    return _suffix(text, j + 1, end) if good else _NO


@called_helper
def _number(text: Any, start: int, i: int, end: int) -> Any:
    """Behind a blank and a number that are a parameter."""
    before = _int(text[i - 1]) if i > start else 0
    stop = _int(_NO)
    if before in (_LT, _GT, _EQUALS):
        j = i + 1
        j += j < end and text[j] == _MINUS
        k = _pass(text, j, end, _DIGIT)
        if k > j:
            if k + 1 < end and text[k] == _DOT and _CLASSES[text[k + 1]] & _DIGIT:
                k = _pass(text, k + 1, end, _DIGIT)
            behind = _int(text[k]) if k < end else _SPACE
            stop = _ODD if behind >= 128 else _NO if _BEHIND_NUMBER[behind] else k
    return stop


@helper
def _parameter(text: Any, start: int, i: int, end: int, variables: bool, reserves: bool) -> Any:
    """Where the parameter ends that begins at `i`; `_NO` where none does, `_ODD` where that is unsure."""
    byte, stop = text[i], _int(_NO)
    if byte == _LT:
        stop = _angled(text, start, i, end, reserves)
    elif byte in (_QUOTE, _SINGLE):
        stop = _quoted(text, start, i, end, variables)
    elif byte == _SPACE:
        stop = _number(text, start, i, end)
    elif byte == _MARK and variables:
        j = _pass(text, i + 1, end, _WORD)
        if j < end and text[j] >= 128:
            stop = _int(_ODD)
        elif j > i + 1:
            stop = j
    return stop


@called_helper
def _put(text: Any, i: int, stop: int, out: Split) -> Any:
    """Write a parameter. False where a part has too many."""
    state, number = out.state, _int(out.state[PARAMETERS])
    out.start[number], out.end[number] = i, stop
    to = _int(state[BYTES])
    out.skeleton[to], out.skeleton[to + 1] = 0, text[i]
    to += 2
    first = _int(state[_FIRST])
    if text[i] == _MARK:
        same = first
        while out.end[same] - out.start[same] != stop - i or not same_bytes(text, i, stop, text, out.start[same]):
            same += 1
        out.skeleton[to] = 1 + min(same - first, _MOST)
        to += 1
    state[PARAMETERS], state[BYTES] = number + 1, to
    return number - first < _MOST


@helper
def _append(byte: Any, out: Split) -> None:
    out.skeleton[out.state[BYTES]] = byte
    out.state[BYTES] += 1


@helper
def _end_part(out: Split) -> None:
    """What was written since the last one is a part."""
    state = out.state
    state[PARTS] += 1
    out.skeleton_offset[state[PARTS]], out.parameter_offset[state[PARTS]] = state[BYTES], state[PARAMETERS]
    state[_FIRST] = state[PARAMETERS]


@called_helper
def _copied(text: Any, start: int, end: int, stop_at: int, variables: bool, reserves: bool, out: Split) -> Any:
    """Write a part that goes on to `end`, or to the first byte `stop_at` that is in no parameter; returns where it
    ends, -1 where that is unsure."""
    i, good = _int(start), True
    while good and i < end and text[i] != stop_at:
        stop = _parameter(text, start, i, end, variables, reserves)
        if stop > 0:
            good = _put(text, i, stop, out)
            i = stop
        else:
            good = stop == _NO and text[i] != 0
            _append(text[i], out)
            i += 1
    _end_part(out)
    return i if good else -1


@helper
def _is_filter(text: Any, i: int, end: int) -> Any:
    """Does the word FILTER stand here?"""
    good = i + 6 < end
    for k in range(6):
        good = good and (text[i + k] | 32) == (_FILTER[k] | 32)
    return good and not (_CLASSES[text[i + 6]] & _WORD or text[i + 6] == _COLON or text[i + 6] >= 128)


@called_helper
def _part(text: Any, start: int, i: int, end: int, mode: int, out: Split) -> Any:
    """Write a triple or FILTER (SPARQL), or a tuple (GQL), which begins at `i`; returns where it ends, -1 where it is
    none. Blanks at its end are left out."""
    is_filter = mode == SPARQL and _is_filter(text, i, end)
    first, depth, more, behind_parameter = _int(i), 0, True, _int(-1)
    solid = _int(out.state[BYTES])
    while more and i >= 0:
        stop = _parameter(text, start, i, end, True, False) if i < end else _ODD
        byte = text[min(i, end - 1)]
        is_apart = i == behind_parameter or _CLASSES[text[i - 1]] & _BLANK != 0
        if stop > 0:
            i = stop if _put(text, i, stop, out) else -1
            behind_parameter, solid = i, _int(out.state[BYTES])
        elif stop == _ODD or _CLASSES[byte] & _LEFT_OVER or (byte == 95 and i + 1 < end and text[i + 1] == _COLON):
            i = -1
        elif depth == 0 and mode == SPARQL and (byte == _END or (i > first and is_apart and _is_filter(text, i, end))):
            more = False
        elif depth == 0 and byte == _DOT and is_apart:
            more = False
            i += 1
        elif (
            (depth == 0 and ((byte == _DOT and mode == GQL) or byte == _LT))
            or (depth == 0 and byte == _DOT and not (i + 1 < end and _CLASSES[text[i + 1]] & _WORD))
            or (byte == _OPEN and mode == SPARQL and not is_filter)
        ):
            i = -1
        else:
            depth += _int(byte == _OPEN) - _int(byte == _CLOSE)
            _append(byte, out)
            i += 1
            if not _CLASSES[byte] & _BLANK:
                solid = _int(out.state[BYTES])
            if byte == _CLOSE:
                more = depth > 0
                i = i if depth >= 0 else -1
    out.state[BYTES] = solid
    _end_part(out)
    return i


@called_helper
def _in_parts(text: Any, start: int, end: int, mode: int, out: Split) -> Any:
    """Split a text in parts; the first one is its head. False where it is none that can be."""
    i = _copied(text, start, end, _BEGIN if mode == SPARQL else _OPEN, True, False, out)
    good, more, parts, is_closed = 0 <= i < end, True, 0, False
    i += mode == SPARQL  # behind the brace
    while good and more:
        if mode == SPARQL:
            i = _pass(text, i, end, _BLANK)
            if is_closed and i < end and text[i] == _DOT:
                i = _pass(text, i + 1, end, _BLANK)
        if mode == SPARQL and i < end and text[i] == _END:
            more = False
            good = parts > 0 and _pass(text, i + 1, end, _BLANK) == end
        else:
            i = _part(text, start, i, end, mode, out) if i < end else -1
            parts += 1
            good = i > 0
            is_closed = good and text[i - 1] == _CLOSE
            if good and mode == GQL:
                if _pass(text, i, end, _BLANK) == end:
                    more = False
                else:
                    good = _begins(text, i, end, _AND)
                    i += 5
    return good


@kernel
def split(text: Any, start: Any, end: Any, reserves: bool, out: Split) -> None:
    """Split the texts. `reserves`: terms of RDF and RDFS are no parameters."""
    state = out.state
    for row in range(start.size):
        parts, parameters, used = state[PARTS], state[PARAMETERS], state[BYTES]
        out.part_offset[row] = parts
        state[_FIRST] = parameters
        if out.mode[row] != WHOLE and not _in_parts(text, start[row], end[row], _int(out.mode[row]), out):
            out.mode[row] = WHOLE
            state[PARTS], state[PARAMETERS], state[BYTES], state[_FIRST] = parts, parameters, used, parameters
        if out.mode[row] == WHOLE and _copied(text, start[row], end[row], 0, False, reserves, out) != end[row]:
            out.mode[row] = UNSURE
            state[PARTS], state[PARAMETERS], state[BYTES] = parts, parameters, used
    out.part_offset[start.size] = state[PARTS]


# --- a set of byte strings that grows, without a Python object a string ----------------------------------------------


@kernel
def refill(pool: Any, ends: Any, count: int, seed: int, slots: Any) -> None:
    """Enter the first `count` strings of the pool into an empty table of a power of two at least twice as many."""
    slots[:] = -1
    for row in range(count):
        enter(slots, _int(hash_bytes(pool, ends[row], ends[row + 1], seed) & _wide(slots.size - 1)), row)


@kernel
def insert(text: Any, start: Any, end: Any, pool: Any, ends: Any, count: int, seed: int, slots: Any, out: Any) -> int:
    """The number of each span of `text`; those that are new are added. Returns how many there are now.

    The pool, its `ends` (the first is 0) and the table must have room for all of them.
    """
    mask = slots.size - 1
    for i in range(start.size):
        first, last, number = start[i], end[i], _int(-1)
        slot = _int(hash_bytes(text, first, last, seed) & _wide(mask))
        while slots[slot] >= 0 and number < 0:
            row = _int(slots[slot])
            if ends[row + 1] - ends[row] == last - first and same_bytes(text, first, last, pool, ends[row]):
                number = row
            slot = (slot + 1) & mask
        if number < 0:
            for j in range(last - first):
                pool[ends[count] + j] = text[first + j]
            ends[count + 1] = ends[count] + last - first
            slots[slot] = count
            number = count
            count += 1
        out[i] = number
    return count
