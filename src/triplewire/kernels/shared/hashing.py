"""Hashes of bytes and of numbers, and tables with open addressing.

A table is an array of a power of two places, at least twice as many as there are entries. The search for an entry
begins at a place that its hash gives, and goes on to the next place, behind the last one to the first. Bytes are read
eight at a time, as one number, the first byte the lowest.

    hash:  h = mixed(seed, length);  for each eight bytes, and for the rest: h = mixed(h ^ these bytes)
    find:  slot = hash & mask;  while the slot is taken by another key: slot = the next one
"""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.shared.compiled import helper
from triplewire.kernels.shared.search import same_numbers

_wide: Any = np.uint64  # also of an index: that it is not negative
_int: Any = np.int64
_BYTE, _HALF = _wide(0xFF), _wide(32)
MIXER = _wide(0x9E3779B97F4A7C15)  # 2 ** 64 / phi: D. E. Knuth, "The Art of Computer Programming", section 6.4


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
    """The bytes pos .. end, at most seven."""
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


@helper
def mixed(h: Any) -> Any:
    """A hash of 64 bits with its bits spread; it wraps around."""
    h = h * MIXER
    return h ^ (h >> _HALF)


@helper
def seeded(seed: int, length: int) -> Any:
    """The hash of some bytes before the first of them is read."""
    return mixed(_wide(seed) << _HALF | _wide(length))


@helper
def hash_bytes(text: Any, start: int, end: int, seed: int) -> Any:
    """The hash of text[start:end]. Saved engines keep such hashes (`triplewire.engine.store.segment_files`)."""
    h, pos = seeded(seed, end - start), start
    while pos + 8 <= end:
        h = mixed(h ^ eight(text, pos))
        pos += 8
    return mixed(mixed(h ^ rest(text, pos, end)))


@helper
def mix_bits(number: Any) -> Any:
    """31 bits that depend on all of the lower 62 bits of a number. Nothing overflows."""
    number = _int(number)
    number = ((number ^ (number >> 31)) & 0x7FFFFFFF) * 0x9E3779B1
    return (number ^ (number >> 20)) & 0x7FFFFFFF


@helper
def hash_numbers(h: Any, numbers: Any, begin: int, end: int) -> Any:
    """The hash of numbers[begin:end], on top of the hash of what comes before them."""
    for k in range(begin, end):
        h = mix_bits(h + _int(numbers[k]) + 2)
    return h


@helper
def enter(slots: Any, slot: int, row: int) -> None:
    """Put a row into the first free place of a table from a place on; -1 is free."""
    mask = slots.size - 1
    while slots[_wide(slot)] >= 0:
        slot = (slot + 1) & mask
    slots[_wide(slot)] = row


@helper
def find_slot(slots: Any, keys: Any, slot: int, key: Any) -> Any:
    """The slot of the row with this key, keys[row], or the free one where it belongs: from a slot on."""
    mask = slots.size - 1
    while slots[_wide(slot)] >= 0 and keys[_wide(slots[_wide(slot)])] != key:
        slot = (slot + 1) & mask
    return slot


@helper
def is_new_row(rows: Any, begin: int, place: int, width: int, slots: Any) -> Any:
    """Is the row of `width` numbers at rows[place] different from those between `begin` and it? Then it is entered.

    `slots` has 1 + the place of each row, and 0 or the place of an earlier row than `begin` where it is free.
    """
    mask, same = slots.size - 1, False
    slot = hash_numbers(_int(0), rows, place, place + width) & mask
    while slots[slot] > begin and not same:
        same = same_numbers(rows, slots[slot] - 1, rows, place, width)
        slot = slot if same else (slot + 1) & mask
    if not same:
        slots[slot] = place + 1
    return not same
