"""Texts to words by the default analyser (semantics, section 5): case folding, then the maximal runs of letters and
digits. Words are interned.

The tables of characters, and the words of the batch: `triplewire.encode.text`. The hash: `triplewire.kernels.names`.

Small functions are inlined by Numba itself: the compiler behind it does not always do so, and then counts references to
arrays at each call.
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

_START, _PRIME = np.uint64(14695981039346656037 ^ 4), np.uint64(1099511628211)
_PROBES = 2_000
_int: Any = np.int64


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


@njit(cache=True, nogil=True, inline="always")
def _find(out: Any, begin: int, stop: int, h: Any, end: Any, hashes: Any, slots: Any, words: int) -> Any:
    """The number of the word out[begin:stop]; it is `words` for a new one, and -1 where too many collide."""
    mask = slots.size - 1
    at = _int(h & np.uint64(mask))
    length = stop - begin
    for _ in range(_PROBES):
        word = _int(slots[at])
        if word < 0:
            slots[at] = words
            end[words] = stop
            hashes[words] = h
            return words
        if hashes[word] == h:
            first = end[word - 1] if word else 0
            if end[word] - first == length:
                different = np.uint8(0)
                for i in range(length):
                    different |= out[first + i] ^ out[begin + i]
                if different == 0:
                    return word
        at = (at + 1) & mask
    return -1


@njit(cache=True, nogil=True, inline="always")
def _close(out: Any, at: int, h: Any, ids: Any, end: Any, hashes: Any, slots: Any, state: Any) -> Any:
    """A word ends at `at`. Returns where the next may begin: there, if the word is new; -1 where too many collide."""
    begin, words = state[BYTES], state[WORDS]
    word = _find(out, begin, at, h ^ (h >> np.uint64(32)), end, hashes, slots, words)
    if word < 0:
        return -1
    ids[state[IDS]] = word
    state[IDS] += 1
    if word < words:
        return begin
    state[WORDS] = words + 1
    state[BYTES] = at
    return at


@njit(cache=True, nogil=True)
def _cut(
    text: Any, at: int, stop: int, fold: Any, expansion: Any, out: Any, ids: Any, end: Any, hashes: Any, slots: Any,
    state: Any,
) -> bool:  # fmt: skip
    """The words of one text. False where too many collide."""
    begin = state[BYTES]
    to, h = begin, _START
    more = -1  # a place in `expansion`
    while at < stop or more >= 0 or to > begin:
        code = BREAK
        if more >= 0:
            code = _int(expansion[more])
            more = more + 1 if expansion[more + 1] != END else -1
        elif at < stop:
            point = _int(text[at])
            if point < 128:
                at += 1
            else:
                point, length = _decode(text, at)
                at += length
            code = _int(fold[point])
            if code < BREAK:
                more = -2 - code
                continue
        if code < 0:
            if to > begin:
                begin = _close(out, to, h, ids, end, hashes, slots, state)
                if begin < 0:
                    return False
                to, h = begin, _START
        elif code < 128:
            out[to] = code
            to += 1
            h = (h ^ np.uint64(code)) * _PRIME
        else:
            last = _encode(out, to, code)
            for i in range(to, last):
                h = (h ^ np.uint64(out[i])) * _PRIME
            to = last
    return True


@njit(cache=True, nogil=True)
def refill(hashes: Any, count: int, slots: Any) -> None:
    """Enter the first `count` words into `slots`, a power of two at least twice as many."""
    slots[:] = -1
    mask = slots.size - 1
    for word in range(count):
        at = _int(hashes[word] & np.uint64(mask))
        while slots[at] >= 0:
            at = (at + 1) & mask
        slots[at] = word


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
