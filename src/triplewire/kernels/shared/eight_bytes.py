"""Eight bytes as one number, the first byte the lowest: most of a text is read so."""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.shared.compiled import helper

_wide: Any = np.uint64  # also of an index: that it is not negative
_BYTE = _wide(0xFF)


@helper
def eight(text: Any, pos: int) -> Any:
    """The eight bytes from a place on. The compiler makes one load of it."""
    return (
        _wide(text[_wide(pos)])
        | _wide(text[_wide(pos + 1)]) << _wide(8)
        | _wide(text[_wide(pos + 2)]) << _wide(16)
        | _wide(text[_wide(pos + 3)]) << _wide(24)
        | _wide(text[_wide(pos + 4)]) << _wide(32)
        | _wide(text[_wide(pos + 5)]) << _wide(40)
        | _wide(text[_wide(pos + 6)]) << _wide(48)
        | _wide(text[_wide(pos + 7)]) << _wide(56)
    )


@helper
def put_eight(out: Any, pos: int, word: Any) -> None:
    """Write eight bytes from a place on."""
    out[_wide(pos)] = word & _BYTE
    out[_wide(pos + 1)] = word >> _wide(8) & _BYTE
    out[_wide(pos + 2)] = word >> _wide(16) & _BYTE
    out[_wide(pos + 3)] = word >> _wide(24) & _BYTE
    out[_wide(pos + 4)] = word >> _wide(32) & _BYTE
    out[_wide(pos + 5)] = word >> _wide(40) & _BYTE
    out[_wide(pos + 6)] = word >> _wide(48) & _BYTE
    out[_wide(pos + 7)] = word >> _wide(56) & _BYTE


@helper
def low_bytes(count: int) -> Any:
    """A mask of the first `count` bytes of a number, at most seven."""
    return (_wide(1) << _wide(8 * count)) - _wide(1)


@helper
def rest(text: Any, pos: int, end: int) -> Any:
    """The bytes at .. end, at most seven."""
    word = _wide(0)
    if pos + 8 <= text.size:
        word = eight(text, pos) & low_bytes(end - pos)
    else:
        for i in range(end - pos):
            word |= _wide(text[_wide(pos + i)]) << _wide(8 * i)
    return word


@helper
def same_bytes(a: Any, start: int, end: int, b: Any, first: int) -> Any:
    """Is a[start:end] what stands in b from `first` on?

        different = all bits that differ, of eight bytes at a time; the last eight overlap those before them

    It goes on to the end, since nearly always they are equal.
    """
    length, different = end - start, _wide(0)
    if length >= 8:
        for i in range(length >> 3):
            different |= eight(a, start + 8 * i) ^ eight(b, first + 8 * i)
        different |= eight(a, end - 8) ^ eight(b, first + length - 8)
    else:
        for i in range(length):
            different |= _wide(a[_wide(start + i)] ^ b[_wide(first + i)])
    return different == 0


@helper
def write_utf8(out: Any, pos: int, code: int) -> Any:
    """Write a character as UTF-8; returns where it ends."""
    if code < 0x80:
        out[pos] = code
    else:
        if code < 0x800:
            out[pos] = 0xC0 | code >> 6
        else:
            if code < 0x10000:
                out[pos] = 0xE0 | code >> 12
            else:
                out[pos] = 0xF0 | code >> 18
                pos += 1
                out[pos] = 0x80 | code >> 12 & 63
            pos += 1
            out[pos] = 0x80 | code >> 6 & 63
        pos += 1
        out[pos] = 0x80 | code & 63
    return pos + 1
