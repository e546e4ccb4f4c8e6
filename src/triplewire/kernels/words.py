"""Texts to words by the default analyser (semantics, section 5): case folding, then the maximal runs of letters and
digits. Words are interned.

The tables of characters, and the words of the batch: `triplewire.encode.text`. A word is found among those of the batch
by its last eight bytes, its length and, where it is longer, all of it; `hashes`, by which tables of words are asked
later, are those of `triplewire.kernels.names`, and worked out for each distinct word once.

Functions that loops call are inlined by the compiler (`forceinline`): a call would count references to arrays, and so
would Numba's own inlining wherever such a function has a loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

DONE, MORE, STOP = 0, 1, 2
TERM, IDS, WORDS, BYTES = 0, 1, 2, 3  # places in `state`: the next term; what is used of `ids`, `end` and `out`
STATE = 4
BREAK = -1  # in `fold`: no letter or digit; other negative numbers: -2 - a place in `expansion`, which BREAK ends
GROWTH = 3  # a text has at most so many bytes for each one when it is folded; and not more words than bytes
END = -2  # of an expansion
KEY, ENTRY = 0, 1  # columns of `slots`: the last eight bytes of a word; its length << 32 | its number + 1, or 0

_SEED = 4  # of the hash of a word among names
_PROBES = 2_000
_MIXER = np.uint64(0x9E3779B97F4A7C15)  # D. E. Knuth, "The Art of Computer Programming", section 6.4: 2 ** 64 / phi
_int: Any = np.int64
_unsigned: Any = np.uint64  # of an index: that it is not negative


@njit(cache=True, nogil=True, inline="always")
def _decode(text: Any, at: int) -> tuple[int, int]:
    """The code point of a character of two bytes or more, and its length."""
    lead = _int(text[at])
    second = _int(text[at + 1]) & 63
    if lead < 0xE0:
        return (lead & 31) << 6 | second, 2
    third = _int(text[at + 2]) & 63
    if lead < 0xF0:
        return (lead & 15) << 12 | second << 6 | third, 3
    return (lead & 7) << 18 | second << 12 | third << 6 | (_int(text[at + 3]) & 63), 4


@njit(cache=True, nogil=True, inline="always")
def _encode(out: Any, at: int, code: int) -> int:
    """Write a code point as UTF-8; returns where it ends."""
    if code < 0x80:
        out[at] = code
        return at + 1
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
    out[at + 1] = 0x80 | code & 63
    return at + 2


@njit(cache=True, nogil=True, forceinline=True)
def _is_equal(out: Any, a: int, b: int, length: int) -> bool:
    different = np.uint8(0)
    for i in range(length):
        different |= out[a + i] ^ out[b + i]
    return bool(different == 0)


@njit(cache=True, nogil=True, forceinline=True)
def _mixed(h: Any) -> Any:
    h = h * _MIXER
    return h ^ (h >> np.uint64(32))


@njit(cache=True, nogil=True, forceinline=True)
def _some(out: Any, at: int, count: int) -> Any:
    """So many bytes as one number, at most eight, the first the lowest."""
    word = np.uint64(0)
    for i in range(count):
        word |= np.uint64(out[_unsigned(at + i)]) << np.uint64(8 * i)
    return word


@njit(cache=True, nogil=True, forceinline=True)
def _name_hash(out: Any, begin: int, stop: int) -> Any:
    """The hash of a word, as `triplewire.kernels.names` has it."""
    h = _mixed(np.uint64(_SEED) << np.uint64(32) | np.uint64(stop - begin))
    while begin + 8 <= stop:
        h = _mixed(h ^ _some(out, begin, 8))
        begin += 8
    return _mixed(_mixed(h ^ _some(out, begin, stop - begin)))


@njit(cache=True, nogil=True, forceinline=True)
def _place(out: Any, begin: int, stop: int, key: int, mask: int) -> Any:
    """Where to look for a word first. Not by the hash of names: `key` is most of most words, and at hand."""
    h = np.uint64(key)
    while begin + 8 < stop:
        h = _mixed(h ^ _some(out, begin, min(8, stop - 8 - begin)))
        begin += 8
    return _int((_mixed(h) * _MIXER) >> np.uint64(32)) & mask


@njit(cache=True, nogil=True, forceinline=True)
def _find(out: Any, begin: int, stop: int, key: int, end: Any, slots: Any, words: int) -> int:
    """The number of the word out[begin:stop]; it is `words` for a new one, and -1 where too many collide."""
    mask, length = slots.shape[0] - 1, stop - begin
    at = _place(out, begin, stop, key, mask)
    word, probes = -1, 0
    while word < 0 and probes < _PROBES:
        entry = slots[at, ENTRY]
        if entry == 0:
            slots[at, KEY] = key
            slots[at, ENTRY] = length << 32 | (words + 1)
            word = words
        elif slots[at, KEY] == key and entry >> 32 == length:
            other = (entry & 0xFFFFFFFF) - 1
            if length <= 8 or _is_equal(out, end[other] - length, begin, length):
                word = other
        at = (at + 1) & mask
        probes += 1
    return word


@njit(cache=True, nogil=True)
def _cut(
    text: Any, at: int, stop: int, fold: Any, expansion: Any, out: Any, ids: Any, end: Any, hashes: Any, slots: Any,
    state: Any,
) -> bool:  # fmt: skip
    """The words of one text. False where too many collide."""
    begin, words, used = state[BYTES], state[WORDS], state[IDS]
    to, key = begin, _int(0)
    more, good = -1, True  # a place in `expansion`
    while good and (at < stop or more >= 0 or to > begin):
        point, code = 0, BREAK
        if more >= 0:
            code = _int(expansion[more])
            more = more + 1 if expansion[more + 1] != END else -1
        else:
            while at < stop:
                point = _int(text[_unsigned(at)])
                code = _int(fold[point]) if point < 128 else BREAK
                if code < 0:
                    break
                out[_unsigned(to)] = code
                key = key << 8 | code
                to += 1
                at += 1
            code = BREAK
            if at < stop:
                length = 1
                if point >= 128:
                    point, length = _decode(text, at)
                    code = _int(fold[point])
                at += length
                if code < BREAK:
                    more = -2 - code
                    continue
        if code >= 0:
            last = _encode(out, to, code)
            for i in range(to, last):
                key = key << 8 | _int(out[i])
            to = last
        elif to > begin:
            word = _find(out, begin, to, key, end, slots, words)
            good = word >= 0
            ids[used] = word
            used += 1
            if word == words:
                end[word], hashes[word] = to, _name_hash(out, begin, to)
                words += 1
                begin = to
            to, key = begin, _int(0)
    state[BYTES], state[WORDS], state[IDS] = begin, words, used
    return good


@njit(cache=True, nogil=True)
def refill(out: Any, end: Any, count: int, slots: Any) -> None:
    """Enter the first `count` words into `slots`, which are empty, a power of two at least twice as many."""
    begin, mask = 0, slots.shape[0] - 1
    for word in range(count):
        key, stop = _int(0), end[word]
        for i in range(max(begin, stop - 8), stop):
            key = key << 8 | _int(out[i])
        at = _place(out, begin, stop, key, mask)
        while slots[at, ENTRY] != 0:
            at = (at + 1) & mask
        slots[at, KEY], slots[at, ENTRY] = key, (stop - begin) << 32 | (word + 1)
        begin = stop


@njit(cache=True, nogil=True)
def cut(
    text: Any, start: Any, stop: Any, wanted: Any, fold: Any, expansion: Any, offset: Any, ids: Any, out: Any, end: Any,
    hashes: Any, slots: Any, state: Any,
) -> int:  # fmt: skip
    """The words of the wanted terms from state[TERM] on. Returns DONE; MORE where the next term needs more room; STOP
    where too many words collide.

    `out`: the distinct words, one behind the other; `end`: where each ends.
    """
    for term in range(state[TERM], start.size):
        state[TERM] = term
        offset[term] = state[IDS]
        if wanted[term]:
            length = stop[term] - start[term]
            if state[IDS] + length > ids.size or state[WORDS] + length > end.size:
                return MORE
            if state[BYTES] + GROWTH * length > out.size:
                return MORE
            if not _cut(text, start[term], stop[term], fold, expansion, out, ids, end, hashes, slots, state):
                return STOP
    offset[start.size] = state[IDS]
    return DONE
