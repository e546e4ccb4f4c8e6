"""Tables of byte strings: hashing, building, looking up. A hash never decides: the bytes are compared.

The hash takes eight bytes at a time; strings of different kinds begin from different seeds. That of a term which has a
suffix is made of those of its text and its suffix; its bytes are the text, 0xFF and the suffix. Used through
`triplewire.encode.names`. `triplewire.kernels.words` hashes words in the same way, and saved engines keep hashes
(`triplewire.engine.stored.INDEX_VERSION`).

Small functions are inlined by Numba itself: the compiler behind it does not always do so, and then counts references to
arrays at each call.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numba import njit

from triplewire.kernels.prefetch import prefetch

_MIXER = np.uint64(0x9E3779B97F4A7C15)  # 2 ** 64 / phi: D. E. Knuth, "The Art of Computer Programming", section 6.4
_HALF = np.uint64(32)
TOGETHER, _LINE = 64, 64  # strings that are fetched together; bytes that the processor fetches at once
_int: Any = np.int64
_wide: Any = np.uint64  # of an index: that it is not negative


@njit(cache=True, nogil=True, inline="always")
def _mixed(h: Any) -> Any:
    h = h * _MIXER
    return h ^ (h >> _HALF)


@njit(cache=True, nogil=True, inline="always")
def _eight(text: Any, at: int) -> Any:
    """Eight bytes as one number, the first the lowest; the compiler makes one load of it."""
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


@njit(cache=True, nogil=True, inline="always")
def _hashed(text: Any, start: int, end: int, seed: int) -> Any:
    h = _mixed(_wide(seed) << _HALF | _wide(end - start))
    at = start
    while at + 8 <= end:
        h = _mixed(h ^ _eight(text, at))
        at += 8
    rest = _wide(0)
    for i in range(end - at):
        rest |= _wide(text[_wide(at + i)]) << _wide(8 * i)
    return _mixed(_mixed(h ^ rest))


@njit(cache=True, nogil=True)
def hash_spans_into(text: Any, start: Any, end: Any, seed: int, out: Any) -> None:
    """The hash of each span start .. end of `text`."""
    for i in range(start.size):
        out[i] = _hashed(text, start[i], end[i], seed)


@njit(cache=True, nogil=True)
def hash_terms_into(text: Any, start: Any, end: Any, kind: Any, suffix: Any, suffix_text: Any, suffix_offset: Any,
                    out: Any) -> None:  # fmt: skip
    """The hash of each term. `suffix` is a number of the strings in `suffix_text`, 0 for none."""
    for i in range(start.size):
        h = _hashed(text, start[i], end[i], _int(kind[i]))
        if suffix[i] > 0:
            h = _mixed(h ^ _hashed(suffix_text, suffix_offset[suffix[i]], suffix_offset[suffix[i] + 1], 0))
        out[i] = h


def hash_spans(text: Any, start: Any, end: Any, seed: int) -> Any:
    """The hash (uint64) of each span start .. end of `text`."""
    out = np.empty(len(start), np.uint64)
    with np.errstate(over="ignore"):
        run(hash_spans_into, (text, start, end), seed, out)
    return out


def run(kernel: Any, given: Iterable[Any], *others: Any) -> None:
    """Call a kernel with the arrays `given` as views that cannot be written to: whatever memory they lie in, they are
    then of one type to the compiler."""
    views = [array.view(np.ndarray) for array in given]
    for view in views:
        view.flags.writeable = False
    kernel(*views, *others)


@njit(cache=True, nogil=True)
def build(hashes: Any, slots: Any) -> None:
    """Fill `slots`, a power of two at least twice as many as the rows, with row numbers by open addressing; -1 is
    empty. The rows are distinct."""
    mask = slots.size - 1
    slots[:] = -1
    for row in range(hashes.size):
        at = _int(hashes[row] & np.uint64(mask))
        while slots[at] >= 0:
            at = (at + 1) & mask
        slots[at] = row


@njit(cache=True, nogil=True)
def _candidates(hashes: Any, own_hash: Any, slots: Any, begin: int, end: int, out: Any) -> int:
    """The first row with the hash of each of the strings begin .. end, or -1; returns the largest.

    First all slots are asked for, then all hashes: so look-ups do not wait for each other's memory.
    """
    mask, most = slots.size - 1, -1
    for i in range(begin, end):
        prefetch(slots, _int(hashes[i] & np.uint64(mask)))
    for i in range(begin, end):
        out[i] = slots[_int(hashes[i] & np.uint64(mask))]
        most = max(most, out[i])
        prefetch(own_hash, out[i])
    if most < 0:
        return most
    most = -1
    for i in range(begin, end):
        row = out[i]
        if row >= 0 and own_hash[row] != hashes[i]:
            at = _int(hashes[i] & np.uint64(mask))
            while row >= 0 and own_hash[row] != hashes[i]:
                at = (at + 1) & mask
                row = slots[at]
            out[i] = row
        most = max(most, row)
    return most


@njit(cache=True, nogil=True)
def _fetch(start: Any, text: Any, own_text: Any, own_offset: Any, begin: int, end: int, out: Any) -> None:
    """Have what the strings begin .. end are compared with fetched."""
    for i in range(begin, end):
        prefetch(own_offset, out[i])
        prefetch(text, start[i])
    for i in range(begin, end):
        first = own_offset[max(out[i], 0)]
        prefetch(own_text, first)
        prefetch(own_text, first + _LINE)


@njit(cache=True, nogil=True)
def _next(row: int, h: Any, own_hash: Any, slots: Any) -> Any:
    """The row behind this one that has the hash too, or -1: two strings of one hash hardly ever are there."""
    mask = slots.size - 1
    at = _int(h & np.uint64(mask))
    while slots[at] != row:
        at = (at + 1) & mask
    at = (at + 1) & mask
    while slots[at] >= 0 and own_hash[slots[at]] != h:
        at = (at + 1) & mask
    return slots[at]


@njit(cache=True, nogil=True, inline="always")
def _same(a: Any, start: int, end: int, b: Any, first: int) -> Any:
    """Compared to the end: nearly always they are equal. The last eight bytes overlap those before them."""
    length, different = end - start, _wide(0)
    if length >= 8:
        for i in range(length >> 3):
            different |= _eight(a, start + 8 * i) ^ _eight(b, first + 8 * i)
        different |= _eight(a, end - 8) ^ _eight(b, first + length - 8)
    else:
        for i in range(length):
            different |= _wide(a[_wide(start + i)] ^ b[_wide(first + i)])
    return different == 0


@njit(cache=True, nogil=True)
def find(text: Any, start: Any, end: Any, hashes: Any, own_text: Any, own_offset: Any, own_hash: Any, slots: Any,
         out: Any) -> None:  # fmt: skip
    """The row of each span in a table, or -1."""
    for i in range(start.size):
        if i % TOGETHER == 0:
            upto = min(i + TOGETHER, start.size)
            if _candidates(hashes, own_hash, slots, i, upto, out) >= 0:
                _fetch(start, text, own_text, own_offset, i, upto, out)
        row = out[i]
        while row >= 0:
            first = own_offset[row]
            if own_offset[row + 1] - first == end[i] - start[i] and _same(text, start[i], end[i], own_text, first):
                break
            row = _next(row, hashes[i], own_hash, slots)
        out[i] = row


@njit(cache=True, nogil=True, inline="always")
def _same_term(text: Any, start: int, end: int, suffix_text: Any, s0: int, s1: int, own_text: Any, o0: int,
               o1: int) -> Any:  # fmt: skip
    length = end - start
    if s1 == s0:
        return o1 - o0 == length and _same(text, start, end, own_text, o0)
    if o1 - o0 != length + 1 + s1 - s0 or own_text[o0 + length] != 0xFF:
        return False
    return _same(text, start, end, own_text, o0) and _same(suffix_text, s0, s1, own_text, o0 + length + 1)


@njit(cache=True, nogil=True)
def find_terms(text: Any, start: Any, end: Any, kind: Any, suffix: Any, suffix_text: Any, suffix_offset: Any,
               hashes: Any, own_text: Any, own_offset: Any, own_kind: Any, own_hash: Any, slots: Any,
               out: Any) -> None:  # fmt: skip
    """The row of each term in a table of terms, or -1."""
    for i in range(start.size):
        if i % TOGETHER == 0:
            upto = min(i + TOGETHER, start.size)
            if _candidates(hashes, own_hash, slots, i, upto, out) >= 0:
                _fetch(start, text, own_text, own_offset, i, upto, out)
        row = out[i]
        while row >= 0:
            s0, s1, o0, o1 = (
                suffix_offset[suffix[i]],
                suffix_offset[suffix[i] + 1],
                own_offset[row],
                own_offset[row + 1],
            )
            if own_kind[row] == kind[i] and _same_term(text, start[i], end[i], suffix_text, s0, s1, own_text, o0, o1):
                break
            row = _next(row, hashes[i], own_hash, slots)
        out[i] = row


@njit(cache=True, nogil=True)
def find_alike(text: Any, offset: Any, kind: Any, hashes: Any, own_text: Any, own_offset: Any, own_kind: Any,
               own_hash: Any, slots: Any, out: Any) -> None:  # fmt: skip
    """The row of each string of one table in another, or -1. Either both are of terms, or neither."""
    for i in range(hashes.size):
        if i % TOGETHER == 0:
            upto = min(i + TOGETHER, hashes.size)
            if _candidates(hashes, own_hash, slots, i, upto, out) >= 0:
                _fetch(offset, text, own_text, own_offset, i, upto, out)
        row = out[i]
        while row >= 0:
            first = own_offset[row]
            alike = own_offset[row + 1] - first == offset[i + 1] - offset[i]
            alike = alike and (kind.size == 0 or own_kind[row] == kind[i])
            if alike and _same(text, offset[i], offset[i + 1], own_text, first):
                break
            row = _next(row, hashes[i], own_hash, slots)
        out[i] = row


@njit(cache=True, nogil=True)
def gather(text: Any, start: Any, offset: Any, out: Any) -> None:
    """Copy strings to where `offset` says."""
    for i in range(start.size):
        for j in range(offset[i + 1] - offset[i]):
            out[offset[i] + j] = text[start[i] + j]
