"""Eight bytes as one number, the first byte the lowest: most of a text is read so."""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.shared.compiled import helper

_wide: Any = np.uint64  # also of an index: that it is not negative
_BYTE = _wide(0xFF)


@helper
def eight(text: Any, at: int) -> Any:
    """The eight bytes from a place on. The compiler makes one load of it."""
    return (
        _wide(text[_wide(at)])
        | _wide(text[_wide(at + 1)]) << _wide(8)
        | _wide(text[_wide(at + 2)]) << _wide(16)
        | _wide(text[_wide(at + 3)]) << _wide(24)
        | _wide(text[_wide(at + 4)]) << _wide(32)
        | _wide(text[_wide(at + 5)]) << _wide(40)
        | _wide(text[_wide(at + 6)]) << _wide(48)
        | _wide(text[_wide(at + 7)]) << _wide(56)
    )


@helper
def put_eight(out: Any, at: int, word: Any) -> None:
    """Write eight bytes from a place on."""
    out[_wide(at)] = word & _BYTE
    out[_wide(at + 1)] = word >> _wide(8) & _BYTE
    out[_wide(at + 2)] = word >> _wide(16) & _BYTE
    out[_wide(at + 3)] = word >> _wide(24) & _BYTE
    out[_wide(at + 4)] = word >> _wide(32) & _BYTE
    out[_wide(at + 5)] = word >> _wide(40) & _BYTE
    out[_wide(at + 6)] = word >> _wide(48) & _BYTE
    out[_wide(at + 7)] = word >> _wide(56) & _BYTE


@helper
def low_bytes(count: int) -> Any:
    """A mask of the first `count` bytes of a number, at most seven."""
    return (_wide(1) << _wide(8 * count)) - _wide(1)


@helper
def rest(text: Any, at: int, end: int) -> Any:
    """The bytes at .. end, at most seven."""
    word = _wide(0)
    if at + 8 <= text.size:
        word = eight(text, at) & low_bytes(end - at)
    else:
        for i in range(end - at):
            word |= _wide(text[_wide(at + i)]) << _wide(8 * i)
    return word


@helper
def write_utf8(out: Any, at: int, code: int) -> Any:
    """Write a character as UTF-8; returns where it ends."""
    if code < 0x80:
        out[at] = code
    else:
        if code < 0x800:
            out[at] = 0xC0 | code >> 6
        else:
            if code < 0x10000:
                out[at] = 0xE0 | code >> 12
            else:
                out[at] = 0xF0 | code >> 18
                at += 1
                out[at] = 0x80 | code >> 12 & 63
            at += 1
            out[at] = 0x80 | code >> 6 & 63
        at += 1
        out[at] = 0x80 | code & 63
    return at + 1
