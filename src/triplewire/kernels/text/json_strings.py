"""Strings as JSON writes them (RFC 8259, section 7), with the escapes of Python's `json.dumps(ensure_ascii=False)`.

    for each byte:  its letter behind a backslash, if it has one; else six characters, as \\u001f, for a control
                    character, and for the three bytes of a lone surrogate; else itself

Texts are UTF-8 in which lone surrogates may stand as three bytes; these become escapes too. Used through
`triplewire.verify.bindings`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.shared.compiled import helper, kernel

_QUOTE, _BACKSLASH, _SPACE, _SURROGATE, _SECOND = 0x22, 0x5C, 0x20, 0xED, 0xA0
_LETTERS = {0x08: "b", 0x09: "t", 0x0A: "n", 0x0C: "f", 0x0D: "r", _QUOTE: '"', _BACKSLASH: "\\"}
_LETTER = np.zeros(256, np.uint8)  # byte -> what follows the backslash in its escape of two characters; 0 for none
for _byte, _letter in _LETTERS.items():
    _LETTER[_byte] = ord(_letter)
_SIZE = np.array([2 if _LETTER[byte] else 6 if byte < _SPACE else 1 for byte in range(256)], np.uint8)
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8).copy()


@kernel
def escaped_offsets(text: Any, start: Any, end: Any, offset: Any) -> None:
    """Where the escaped form of each span start .. end of `text` begins, and the last one ends."""
    offset[0] = 0
    for i in range(start.size):
        size = np.int64(0)  # as plain Python, sizes of 8 bits would wrap around
        for pos in range(start[i], end[i]):
            size += _SIZE[text[pos]]
        for pos in range(start[i], end[i] - 2):
            if text[pos] == _SURROGATE and text[pos + 1] >= _SECOND:
                size += 3  # of three bytes, six
        offset[i + 1] = offset[i] + size


@helper
def _escaped(text: Any, begin: int, end: int, out: Any, to: int) -> None:
    pos = begin
    while pos < end:
        byte = text[pos]
        code, is_surrogate = np.int64(byte), False
        if byte == _SURROGATE and pos + 2 < end and text[pos + 1] >= _SECOND:
            is_surrogate = True
            code = 0xD000 | (np.int64(text[pos + 1]) & 0x3F) << 6 | np.int64(text[pos + 2]) & 0x3F
            pos += 2
        if is_surrogate or (byte < _SPACE and _LETTER[byte] == 0):
            out[to], out[to + 1] = _BACKSLASH, 0x75
            for digit in range(4):
                out[to + 2 + digit] = _HEX[(code >> (12 - 4 * digit)) & 15]
            to += 6
        elif _LETTER[byte]:
            out[to], out[to + 1] = _BACKSLASH, _LETTER[byte]
            to += 2
        else:
            out[to] = byte
            to += 1
        pos += 1


@kernel
def escape(text: Any, start: Any, end: Any, offset: Any, out: Any) -> None:
    """Write the escaped form of each span to where `offset` says (`escaped_offsets`)."""
    for i in range(start.size):
        begin, to = start[i], offset[i]
        length = end[i] - begin
        if offset[i + 1] - to == length:  # nothing to escape
            for k in range(length):
                out[to + k] = text[begin + k]
        else:
            _escaped(text, begin, end[i], out, to)
