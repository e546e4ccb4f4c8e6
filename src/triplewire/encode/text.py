"""The words of a batch's literals, and the tables of code points that they are found by.

The twin is `triplewire.ir.analysis.analyse` with the default analyser: `str.casefold`, then the maximal runs of
characters for which `str.isalnum` holds.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import LITERAL_KIND, Bytes, Ids, Offsets, Words
from triplewire.kernels import words as kernels

LAST = 0x34000
"""No code point from here on is a letter or digit, or changes when it is folded (Unicode 17; a test looks)."""


@cache
def tables() -> tuple[NDArray[np.bool_], NDArray[np.int32], NDArray[np.int32]]:
    """(is it a letter or digit, fold, folded) by code point. fold: 0 itself, n > 0 the code point n - 1, n < 0 those of
    `folded` from -n on, up to a 0."""
    everything = [chr(code) for code in range(LAST)]
    is_word = np.fromiter(map(str.isalnum, everything), np.bool_, LAST)
    fold, folded = np.zeros(LAST, np.int32), [0]
    for code, lower in enumerate(map(str.casefold, everything)):
        if len(lower) > 1:
            fold[code] = -len(folded)
            folded += [*map(ord, lower), 0]
        elif ord(lower) != code:
            fold[code] = ord(lower) + 1
    return is_word, fold, np.array(folded, np.int32)


def has_text(kind: Bytes, suffix: Ids, suffixes: tuple[str, ...]) -> NDArray[np.bool_]:
    """Which terms have text: plain, xsd:string and language-tagged literals."""
    plain = np.array([not text or text[0] == "@" for text in suffixes], np.bool_)
    found: NDArray[np.bool_] = (kind == LITERAL_KIND) & plain[suffix]
    return found


def words(text: Bytes, start: Offsets, end: Offsets, with_text: NDArray[np.bool_]) -> Words:
    """The words of the terms that have text."""
    lengths = np.where(with_text, end - start, 0)
    size, longest = int(lengths.sum()), int(lengths.max(initial=0))
    offset, ids = np.zeros(len(start) + 1, np.int64), np.empty(size + 1, np.int32)
    scratch: NDArray[Any] = np.empty(3 * longest + 16, np.uint8)
    room = 1 << 12
    while True:
        state = np.zeros(2, np.int64)
        word_text, word_end = np.empty(min(16 * room, 3 * size + 16), np.uint8), np.empty(room, np.int64)
        hashes, slots = np.empty(room, np.uint64), np.full(2 * room, -1, np.int32)
        with np.errstate(over="ignore"):
            count = kernels.words(
                text, start, end, with_text, *tables(), scratch, offset, ids, state, word_text, word_end, hashes, slots
            )
        if count != kernels.FULL:
            break
        room *= 8
    found, used = int(state[0]), int(state[1])
    ends = word_end[:found].copy()
    starts = np.concatenate((np.zeros(1, np.int64), ends[:-1])) if found else ends
    return Words(offset, ids[:count].copy(), word_text[:used].copy(), starts, ends, hashes[:found].copy())
