"""Hashes of bytes and of numbers, and tables with open addressing.

A table is an array of a power of two places, at least twice as many as there are entries. The search for an entry
begins at a place that its hash gives, and goes on to the next place, behind the last one to the first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.shared.compiled import helper
from triplewire.kernels.shared.eight_bytes import eight, rest
from triplewire.kernels.shared.search import same_numbers

_int: Any = np.int64
_wide: Any = np.uint64  # also of an index: that it is not negative
MIXER = _wide(0x9E3779B97F4A7C15)  # 2 ** 64 / phi: D. E. Knuth, "The Art of Computer Programming", section 6.4
_HALF = _wide(32)


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
    """Is the row of `width` numbers at rows[at] different from those between `begin` and it? Then it is entered.

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
