"""Texts to words by the default analyser: case folding, then the maximal runs of letters and digits (semantics,
section 5). Words are interned. The tables of code points come from `triplewire.encode.text`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

OFFSET, PRIME = np.uint64(14695981039346656037), np.uint64(1099511628211)
SEED = 4  # of the hash of a word
FULL = -1


@njit(cache=True, nogil=True)
def _decode(text: Any, at: int) -> tuple[int, int]:
    """The code point at `at`, of well-formed UTF-8, and the end of it."""
    c = np.int64(text[at])
    if c < 0x80:
        return c, at + 1
    if c < 0xE0:
        return (c & 31) << 6 | (text[at + 1] & 63), at + 2
    if c < 0xF0:
        return (c & 15) << 12 | np.int64(text[at + 1] & 63) << 6 | (text[at + 2] & 63), at + 3
    high = (c & 7) << 18 | np.int64(text[at + 1] & 63) << 12
    return high | np.int64(text[at + 2] & 63) << 6 | (text[at + 3] & 63), at + 4


@njit(cache=True, nogil=True)
def _put(out: Any, at: int, code: int) -> int:
    """Write a code point as UTF-8; returns the end."""
    if code < 0x80:
        out[at] = code
        return at + 1
    if code < 0x800:
        out[at] = 0xC0 | code >> 6
        out[at + 1] = 0x80 | code & 63
        return at + 2
    if code < 0x10000:
        out[at] = 0xE0 | code >> 12
        out[at + 1] = 0x80 | code >> 6 & 63
        out[at + 2] = 0x80 | code & 63
        return at + 3
    out[at] = 0xF0 | code >> 18
    out[at + 1] = 0x80 | code >> 12 & 63
    out[at + 2] = 0x80 | code >> 6 & 63
    out[at + 3] = 0x80 | code & 63
    return at + 4


@njit(cache=True, nogil=True)
def _intern(word: Any, length: int, h: Any, state: Any, word_text: Any, word_end: Any, hashes: Any, slots: Any) -> Any:
    """The number of the word, or FULL. state: [words so far, bytes so far]. Word k is word_text[word_end[k - 1] ..
    word_end[k]]."""
    mask = slots.size - 1
    at = np.int64(h & np.uint64(mask))
    while slots[at] >= 0:
        row = slots[at]
        start = word_end[row - 1] if row > 0 else 0
        if hashes[row] == h and word_end[row] - start == length:
            same = True
            for i in range(length):
                if word_text[start + i] != word[i]:
                    same = False
                    break
            if same:
                return row
        at = (at + 1) & mask
    row, end = state[0], state[1] + length
    if 2 * (row + 1) > slots.size or row >= hashes.size or end > word_text.size:
        return FULL
    slots[at] = row
    hashes[row] = h
    for i in range(length):
        word_text[state[1] + i] = word[i]
    word_end[row] = end
    state[0], state[1] = row + 1, end
    return row


@njit(cache=True, nogil=True)
def _folded(code: int, fold: Any, folded: Any, out: Any) -> Any:
    """The code points that a code point folds to, in `out`; returns their number."""
    if code >= fold.size or fold[code] == 0:
        out[0] = code
        return 1
    first = -fold[code]
    if first < 0:  # one code point
        out[0] = fold[code] - 1
        return 1
    count = 0
    while folded[first + count] > 0:
        out[count] = folded[first + count]
        count += 1
    return count


@njit(cache=True, nogil=True)
def _text_words(text: Any, start: int, end: int, is_word: Any, fold: Any, folded: Any, scratch: Any, codes: Any,
                ids: Any, at: int, state: Any, word_text: Any, word_end: Any, hashes: Any,
                slots: Any) -> int:  # fmt: skip
    """Append the words of one text to `ids`; returns their end, or FULL."""
    first = OFFSET ^ np.uint64(SEED)
    length, h, place = 0, first, start
    while place <= end:
        count = 1
        if place == end:
            codes[0] = 32  # ends the last word
            place += 1
        else:
            code, place = _decode(text, place)
            count = _folded(code, fold, folded, codes)
        for i in range(count):
            code = codes[i]
            if code < is_word.size and is_word[code]:
                new = _put(scratch, length, code)
                while length < new:
                    h = (h ^ np.uint64(scratch[length])) * PRIME
                    length += 1
            elif length > 0:
                h = h ^ (h >> np.uint64(32))
                number = _intern(scratch, length, h, state, word_text, word_end, hashes, slots)
                if number == FULL or at >= ids.size:
                    return FULL
                ids[at] = number
                at += 1
                length, h = 0, first
    return at


@njit(cache=True, nogil=True)
def words(text: Any, start: Any, end: Any, has_text: Any, is_word: Any, fold: Any, folded: Any, scratch: Any,
          offset: Any, ids: Any, state: Any, word_text: Any, word_end: Any, hashes: Any,
          slots: Any) -> int:  # fmt: skip
    """The words of all terms that have text, as slices of `ids`; returns their number, or FULL where there was no room
    for all. `scratch` holds three bytes for each byte of the longest text."""
    codes = np.empty(4, np.int64)
    at = 0
    offset[0] = 0
    for term in range(start.size):
        if has_text[term]:
            at = _text_words(text, start[term], end[term], is_word, fold, folded, scratch, codes, ids, at, state,
                             word_text, word_end, hashes, slots)  # fmt: skip
            if at == FULL:
                return FULL
        offset[term + 1] = at
    return at
