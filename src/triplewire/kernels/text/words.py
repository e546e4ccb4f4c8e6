"""Texts to words by the default analyser (semantics, section 5). Words are interned.

It folds case, then takes the maximal runs of letters and digits.

    for each character of a text:  folded = what case folding makes of it: itself, other characters, or a BREAK
                                   append what is a letter or digit to `out`
    at each BREAK, and at the end: if something was appended since the last one, it is a word: its number is that of the
                                   same word in the table, whose bytes are taken back from `out`, or a new one

ASCII is read eight bytes at a time. In such a number, a byte is marked by its highest bit.

The tables of characters, and the words of the batch: `triplewire.encode.names`. A word is found among those of the
batch by its last eight bytes, its length and, where it is longer, all of it; `hashes`, by which tables of words are
asked later, are those of `triplewire.kernels.text.names`, and worked out for each distinct word once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.shared.compiled import called_helper, helper, kernel
from triplewire.kernels.shared.hashing import (
    MIXER,
    eight,
    hash_bytes,
    low_bytes,
    mixed,
    put_eight,
    same_bytes,
    write_utf8,
)

DONE, MORE, STOP = 0, 1, 2
TERM, IDS, WORDS, BYTES = 0, 1, 2, 3  # places in `state`: the next term; what is used of `ids`, `end` and `out`
STATE = 4
SAME, BREAK = 0, -1  # in `fold`: the character itself; no letter or digit; below: -2 - a place in `expansion`
PAGE_BITS = 8  # of a code point, within its page
GROWTH = 3  # a text has at most so many bytes for each one when it is folded; and not more words than bytes
END = -2  # of an expansion
KEY, ENTRY = 0, 1  # columns of `slots`: the last eight bytes of a word; its length << 32 | its number + 1, or 0

PAD = 8  # bytes of `text` and `out` that can be read, or written, behind what is used of them

_int: Any = np.int64
_wide: Any = np.uint64  # also of an index: that it is not negative
_SEED = 4  # of the hash of a word among names
_PROBES = 2_000
_ONES, _HIGHS, _CASE = (_wide(byte * 0x0101010101010101) for byte in (0x01, 0x80, 0x20))
_FROM_A, _BEHIND_Z, _FROM_0, _BEHIND_9 = (
    _wide((0x80 - byte) * 0x0101010101010101) for byte in (97, 123, 48, 58)
)  # added to seven bits: sets the eighth of what is not less


@helper
def _decode(text: Any, pos: int) -> tuple[int, int]:
    """The code point of a character of two bytes or more, and its length."""
    lead = _int(text[pos])
    second = _int(text[pos + 1]) & 63
    if lead < 0xE0:
        return (lead & 31) << 6 | second, 2
    third = _int(text[pos + 2]) & 63
    if lead < 0xF0:
        return (lead & 15) << 12 | second << 6 | third, 3
    return (lead & 7) << 18 | second << 12 | third << 6 | (_int(text[pos + 3]) & 63), 4


@helper
def _before(marks: Any) -> Any:
    """The bits of the bytes before the first that is marked by its highest bit; all where none is."""
    return ((marks & (~marks + _wide(1))) >> _wide(7)) - _wide(1)  # x & -x is the lowest bit; less 1, all bits below


@helper
def _length(bits: Any) -> Any:
    """How many bytes `_before` gave."""
    return _int(((bits & _ONES) * _ONES) >> _wide(56))  # the product adds up all bytes in the highest one


@helper
def _key(out: Any, begin: int, stop: int) -> Any:
    """The last eight bytes of a word, or all of it."""
    length = stop - begin
    return eight(out, stop - 8) if length >= 8 else eight(out, begin) & low_bytes(length)


@helper
def _place(out: Any, begin: int, stop: int, key: Any, mask: int) -> Any:
    """Where to look for a word first. Not by the hash of names: `key` is most of most words, and at hand."""
    h = key
    while begin + 8 < stop:
        h = mixed(h ^ eight(out, begin))
        begin += 8
    return _int((mixed(h) * MIXER) >> _wide(32)) & mask


class WordTable(NamedTuple):
    """The distinct words of a batch: see `cut`."""

    out: Any
    end: Any
    hashes: Any
    slots: Any


class Folding(NamedTuple):
    """How characters are folded (`triplewire.encode.names`)."""

    fold: Any  # where each page of characters begins in it; then the pages, each that differs once
    expansion: Any


@helper
def _find(begin: int, stop: int, table: WordTable, words: int) -> int:
    """The number of the word out[begin:stop]; it is `words` for a new one, and -1 where too many collide."""
    out, end, _, slots = table
    mask, length, key = slots.shape[0] - 1, stop - begin, _key(out, begin, stop)
    slot = _place(out, begin, stop, key, mask)
    word, probes = -1, 0
    while word < 0 and probes < _PROBES:
        entry = _int(slots[_wide(slot), ENTRY])
        if entry == 0:
            slots[slot, KEY] = key
            slots[slot, ENTRY] = length << 32 | (words + 1)
            word = words
        elif slots[_wide(slot), KEY] == key and entry >> 32 == length:
            other = (entry & 0xFFFFFFFF) - 1
            if length <= 8 or same_bytes(out, begin, stop, out, end[other] - length):
                word = other
        slot = (slot + 1) & mask
        probes += 1
    return word


@helper
def _plain(text: Any, pos: int, stop: int, out: Any, to: int) -> tuple[int, int]:
    """Fold the ASCII letters and digits that stand from `pos` on, at most eight, to `out`. How many they are; and how
    many other characters of ASCII follow within the eight bytes, or after the end."""
    word = eight(text, pos)
    low = word & ~_HIGHS  # seven bits a byte, so that sums stay within their bytes
    small = low | _CASE  # letters as small ones
    letters = (small + _FROM_A) & ~(small + _BEHIND_Z) & ~word & _HIGHS  # marks: "a" to "z", and ASCII
    known = letters | ((low + _FROM_0) & ~(low + _BEHIND_9) & ~word & _HIGHS)  # and "0" to "9"
    wide = word & _HIGHS  # marks of what is not ASCII
    if stop - pos < 8:
        known &= low_bytes(stop - pos)
        wide &= low_bytes(stop - pos)
    put_eight(out, to, word | letters >> _wide(2))  # the mark of a letter, two bits lower, is the bit of small ones
    taken = _before(known ^ _HIGHS)  # the bytes before the first that is neither letter nor digit
    return _length(taken), _length(_before((known | wide) & ~taken)) - _length(taken)


@helper
def _cut(text: Any, pos: int, stop: int, folding: Folding, table: WordTable, ids: Any, state: Any) -> bool:
    """The words of one text. False where too many collide."""
    (fold, expansion), (out, end, hashes, _) = folding, table
    begin, words, used = state[BYTES], state[WORDS], state[IDS]
    to, rest_of_expansion, good = begin, -1, True
    while good and (pos < stop or rest_of_expansion >= 0 or to > begin):
        code = BREAK
        if rest_of_expansion >= 0:
            code = _int(expansion[rest_of_expansion])
            rest_of_expansion = rest_of_expansion + 1 if expansion[rest_of_expansion + 1] != END else -1
        elif pos < stop:
            count, others = _plain(text, pos, stop, out, to)
            pos += count + others
            to += count
            if others == 0 and pos < stop:
                if count == 8:
                    continue
                point, length = _decode(text, pos)
                code = _int(fold[_int(fold[point >> PAGE_BITS]) + (point & ((1 << PAGE_BITS) - 1))])
                code = point if code == SAME else code
                pos += length
                if code < BREAK:
                    rest_of_expansion = -2 - code
                    continue
        if code >= 0:
            to = write_utf8(out, to, code)
        elif to > begin:
            word = _find(begin, to, table, words)
            good = word >= 0
            ids[used] = word
            used += 1
            if word == words:
                end[word], hashes[word] = to, hash_bytes(out, begin, to, _SEED)
                words += 1
                begin = to
            to = begin
    state[BYTES], state[WORDS], state[IDS] = begin, words, used
    return good


@kernel
def refill(out: Any, end: Any, count: int, slots: Any) -> None:
    """Enter the first `count` words into `slots`, which are empty, a power of two, more than twice as many."""
    begin, mask = 0, slots.shape[0] - 1
    for word in range(count):
        stop = end[word]
        key = _key(out, begin, stop)
        slot = _place(out, begin, stop, key, mask)
        while slots[slot, ENTRY] != 0:
            slot = (slot + 1) & mask
        slots[slot, KEY], slots[slot, ENTRY] = key, (stop - begin) << 32 | (word + 1)
        begin = stop


@called_helper
def cut_texts(text: Any, start: Any, stop: Any, wanted: Any, folding: Folding, offset: Any, ids: Any, table: WordTable,
              state: Any) -> int:  # fmt: skip
    """See `cut`."""
    out, end, hashes, slots = table
    for term in range(state[TERM], start.size):
        state[TERM] = term
        offset[term] = state[IDS]
        if wanted[term]:
            length = stop[term] - start[term]
            has_room = state[IDS] + length <= ids.size and state[WORDS] + length <= min(end.size, hashes.size)
            has_room = has_room and 2 * state[WORDS] + length < slots.shape[0]
            if not has_room or state[BYTES] + GROWTH * length + PAD > out.size:
                return MORE
            if not _cut(text, start[term], stop[term], folding, table, ids, state):
                return STOP
    offset[start.size] = state[IDS]
    return DONE


@kernel
def cut(text: Any, start: Any, stop: Any, wanted: Any, folding: Folding, offset: Any, ids: Any, table: WordTable,
        state: Any) -> int:  # fmt: skip
    """The words of the wanted terms from state[TERM] on. Returns DONE; MORE where the next term needs more room; STOP
    where too many words collide.

    `out`: the distinct words, one behind the other; `end`: where each ends. `slots`, a power of two, are half full at
    most when a text begins, and never full.
    """
    return cut_texts(text, start, stop, wanted, folding, offset, ids, table, state)
