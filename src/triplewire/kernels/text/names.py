"""Tables of byte strings: hashing, building, looking up. A hash never decides: the bytes are compared.

    find:  for TOGETHER strings at a time:
               row = the first row with the hash of each, by open addressing; what is compared is fetched meanwhile
               for each: while the bytes differ, row = the next one with this hash, or -1

Strings of different kinds begin from different seeds. The hash of a term which has a suffix is made of those of its
text and its suffix; its bytes are the text, 0xFF and the suffix. Used through `triplewire.encode.names`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.shared.columns import fixed
from triplewire.kernels.shared.compiled import called_helper, helper, kernel, prefetch
from triplewire.kernels.shared.hashing import enter, find_slot, hash_bytes, mixed, same_bytes

TOGETHER, _LINE = 64, 64  # strings that are fetched together; bytes that the processor fetches at once
_int: Any = np.int64
_wide: Any = np.uint64  # of an index: that it is not negative
_NO_KINDS, _NO_NUMBERS, _NO_OFFSETS = fixed(np.zeros(0, np.uint8), np.zeros(0, np.int32), np.zeros(0, np.int64))


class Spans(NamedTuple):
    """Strings as spans of a text. Terms have kinds and suffixes as well; other strings have none."""

    text: Any
    start: Any
    end: Any
    kind: Any
    suffix: Any  # the number of its suffix; 0 is none
    suffix_text: Any
    suffix_offset: Any

    @classmethod
    def of(cls, text: Any, start: Any, end: Any) -> Spans:
        """Strings without kinds and suffixes. The arrays cannot be written to."""
        return cls(*fixed(text, start, end, _NO_KINDS, _NO_NUMBERS, _NO_KINDS, _NO_OFFSETS))


class StringTable(NamedTuple):
    """A table of strings (`triplewire.encode.names.Names`)."""

    text: Any
    offset: Any  # string -> its slice of the text
    kind: Any  # of terms; else empty
    hash: Any
    slots: Any


@helper
def hash_with(h: Any, number: int, suffix_text: Any, suffix_offset: Any) -> Any:
    """The hash of a term whose text has the hash `h`, with the suffix of a number; 0 is none."""
    if number > 0:
        h = mixed(h ^ hash_bytes(suffix_text, suffix_offset[number], suffix_offset[number + 1], 0))
    return h


@kernel
def hash_texts(texts: Spans, seed: int, out: Any) -> None:
    """The hash of each string; `seed` is that of strings without a kind."""
    text, start, end, kind, suffix, suffix_text, suffix_offset = texts
    for i in range(start.size):
        kind_or_seed = _int(kind[i]) if kind.size > 0 else seed
        h = hash_bytes(text, start[i], end[i], kind_or_seed)
        number = suffix[i] if suffix.size > 0 else 0
        out[i] = hash_with(h, number, suffix_text, suffix_offset)


def hash_spans(text: Any, start: Any, end: Any, seed: int) -> Any:
    """The hash (uint64) of each span start .. end of `text`."""
    return _hashes(Spans.of(text, start, end), seed)


def hash_terms(text: Any, start: Any, end: Any, kind: Any, suffix: Any, suffix_text: Any, suffix_offset: Any) -> Any:
    """The hash (uint64) of each term. `suffix` is a number of the strings in `suffix_text`, 0 for none."""
    return _hashes(Spans(*fixed(text, start, end, kind, suffix, suffix_text, suffix_offset)), 0)


def _hashes(texts: Spans, seed: int) -> Any:
    out = np.empty(len(texts.start), np.uint64)
    hash_texts(texts, seed, out)
    return out


@kernel
def fill_slots(hashes: Any, slots: Any) -> None:
    """Fill `slots`, a power of two at least twice as many as the rows, with row numbers by open addressing; -1 is
    free. The rows are distinct."""
    slots[:] = -1
    for row in range(hashes.size):
        enter(slots, _int(hashes[row] & _wide(slots.size - 1)), row)


@called_helper
def _candidates(hashes: Any, table: StringTable, begin: int, end: int, out: Any) -> int:
    """The first row with the hash of each of the strings begin .. end, or -1; returns the largest.

    First all slots are asked for, then all hashes: so look-ups do not wait for each other's memory.
    """
    table_hash, slots, most = table.hash, table.slots, -1
    mask = slots.size - 1
    for i in range(begin, end):
        prefetch(slots, _int(hashes[i] & _wide(mask)))
    for i in range(begin, end):
        out[i] = slots[_int(hashes[i] & _wide(mask))]
        most = max(most, out[i])
        prefetch(table_hash, out[i])
    if most < 0:
        return most
    most = -1
    for i in range(begin, end):
        row = out[i]
        if row >= 0 and table_hash[row] != hashes[i]:
            row = slots[find_slot(slots, table_hash, _int(hashes[i] & _wide(mask)), hashes[i])]
            out[i] = row
        most = max(most, row)
    return most


@called_helper
def _fetch(texts: Spans, table: StringTable, begin: int, end: int, out: Any) -> None:
    """Have what the strings begin .. end are compared with fetched."""
    for i in range(begin, end):
        prefetch(table.offset, out[i])
        prefetch(texts.text, texts.start[i])
    for i in range(begin, end):
        first = table.offset[max(out[i], 0)]
        prefetch(table.text, first)
        prefetch(table.text, first + _LINE)


@called_helper
def _next(row: int, h: Any, table: StringTable) -> Any:
    """The row behind this one that has the hash too, or -1: two strings of one hash hardly ever are there."""
    table_hash, slots = table.hash, table.slots
    mask = slots.size - 1
    slot = _int(h & _wide(mask))
    while slots[slot] != row:
        slot = (slot + 1) & mask
    return slots[find_slot(slots, table_hash, (slot + 1) & mask, h)]


@helper
def _is_row(texts: Spans, i: int, table: StringTable, row: int) -> Any:
    """Is the string i that of a row?"""
    start, end, first = texts.start[i], texts.end[i], table.offset[row]
    length, size = end - start, table.offset[row + 1] - first
    number = _int(texts.suffix[i] if texts.suffix.size > 0 else 0)
    same = texts.kind.size == 0 or table.kind[row] == texts.kind[i]
    if same and number > 0:
        s0, s1 = texts.suffix_offset[number], texts.suffix_offset[number + 1]
        same = size == length + 1 + s1 - s0 and table.text[first + length] == 0xFF
        same = same and same_bytes(texts.suffix_text, s0, s1, table.text, first + length + 1)
        size = length
    return same and size == length and same_bytes(texts.text, start, end, table.text, first)


@called_helper
def find_rows(texts: Spans, hashes: Any, table: StringTable, out: Any) -> None:
    """See `find`."""
    for i in range(texts.start.size):
        if i % TOGETHER == 0:
            upto = min(i + TOGETHER, texts.start.size)
            if _candidates(hashes, table, i, upto, out) >= 0:
                _fetch(texts, table, i, upto, out)
        row = out[i]
        while row >= 0 and not _is_row(texts, i, table, row):
            row = _next(row, hashes[i], table)
        out[i] = row


@kernel
def find(texts: Spans, hashes: Any, table: StringTable, out: Any) -> None:
    """The row of each string in a table, or -1. Either both are of terms, or neither."""
    find_rows(texts, hashes, table, out)


@kernel
def find_one(text: Any, end: int, seed: int, table: StringTable) -> Any:
    """The row of the string that ends there in a table of strings without kinds, or -1."""
    slots, h = table.slots, hash_bytes(text, 0, end, seed)
    row, is_same = slots[find_slot(slots, table.hash, _int(h & _wide(slots.size - 1)), h)], False
    while row >= 0 and not is_same:
        first, last = table.offset[row], table.offset[row + 1]
        is_same = last - first == end and same_bytes(text, 0, end, table.text, first)
        if not is_same:
            row = _next(row, h, table)
    return row


@kernel
def copy_strings(text: Any, start: Any, offset: Any, out: Any) -> None:
    """Copy strings to where `offset` says."""
    for i in range(start.size):
        for j in range(offset[i + 1] - offset[i]):
            out[offset[i] + j] = text[start[i] + j]
