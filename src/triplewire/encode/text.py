"""The words of a batch's literals by the default analyser: exactly `triplewire.ir.fulltext.analysis.analyse`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from triplewire.bounded_cache import cached_if_short
from triplewire.encode.batch import FEW_SUFFIXES, LITERAL_KIND, Bytes, Hashes, Ids, Offsets, Words
from triplewire.encode.strings import joined
from triplewire.ir.fulltext.analysis import analyse
from triplewire.ir.fulltext.nodes import Analyzer
from triplewire.kernels.text import words as kernels
from triplewire.kernels.text.names import hash_spans

WORD_SEED = 4
"""Of the hash of a word."""

_Item = TypeVar("_Item", bound=np.generic)

_BYTES_A_WORD, _FIRST_WORDS = 32, 1 << 15  # of text a distinct word, as a guess; and at most, until there are more
_SHORT = 512  # bytes of a text for which there is room at once
_BLOCK = 256
_LETTERS_AND_DIGITS = re.compile(r"[^\W_]+")


def has_text(kind: Bytes, suffix: Ids, suffixes: tuple[str, ...]) -> NDArray[np.bool_]:
    """Which terms have text: plain, xsd:string and language-tagged literals."""
    is_text: NDArray[np.bool_] = is_plain(suffixes)[suffix]
    is_text &= kind == LITERAL_KIND
    return is_text


@cached_if_short(256, FEW_SUFFIXES)
def is_plain(suffixes: tuple[str, ...]) -> NDArray[np.bool_]:
    """Which suffixes leave a literal its text: none, and languages."""
    plain = np.array([not suffix or suffix[0] == "@" for suffix in suffixes], np.bool_)
    plain.setflags(write=False)
    return plain


def words_of_terms(text: Bytes, start: Offsets, end: Offsets, wanted: NDArray[np.bool_], size: int) -> Words:
    """The words of the wanted terms, whose texts have `size` bytes; the others have none. `text` can be read
    `kernels.PAD` bytes behind each."""
    room = _Room(int(size))
    offset = np.zeros(len(start) + 1, np.int64)
    state = np.zeros(kernels.STATE, np.int64)
    status = kernels.MORE
    while status == kernels.MORE:
        table = kernels.WordTable(room.text, room.bounds[1:], room.hash, room.slots)
        status = kernels.cut(text, start, end, wanted, folding(), offset, room.ids, table, state)
        if status == kernels.MORE:
            term = int(state[kernels.TERM])
            room.reserve(state, int(end[term] - start[term]))
    if status == kernels.STOP:
        return _words_by_dictionary(text, start, end, wanted)
    _, ids, count, used = state.tolist()
    bounds = room.bounds[: count + 1]  # no copies, since room that is not used costs nothing
    return Words(offset, room.ids[:ids], room.text[:used], bounds[:-1], bounds[1:], room.hash[:count])


class _Room:
    """The arrays that a kernel fills; they grow when it asks."""

    def __init__(self, size: int) -> None:
        words = min(size // _BYTES_A_WORD, _FIRST_WORDS) + min(size, _SHORT)
        self.ids: Ids = np.empty(size // 4 + _SHORT, np.int32)
        self.text: Bytes = np.empty(size // 4 + kernels.GROWTH * _SHORT + kernels.PAD, np.uint8)
        self.bounds: Offsets = np.empty(words + 1, np.int64)  # where words begin and end
        self.bounds[0] = 0
        self.hash: Hashes = np.empty(words, np.uint64)
        self.slots: Hashes = _slots(2 * words)

    def reserve(self, state: NDArray[np.int64], length: int) -> None:
        """Make room for a text of so many bytes, and some more."""
        ids, words, used = (int(state[i]) for i in (kernels.IDS, kernels.WORDS, kernels.BYTES))
        self.ids = _grown(self.ids, ids, length)
        self.text = _grown(self.text, used, kernels.GROWTH * length + kernels.PAD)
        self.bounds = _grown(self.bounds, words + 1, length)
        self.hash = _grown(self.hash, words, length)
        if 2 * words + length >= len(self.slots):
            self.slots = _slots(max(len(self.slots), 2 * words + length))
            kernels.refill(self.text, self.bounds[1:], words, self.slots)


def _slots(count: int) -> Hashes:
    """So many empty slots, or some more."""
    slots = np.empty((1 << count.bit_length(), 2), np.uint64)  # not `zeros`, whose memory is never what was freed
    slots[:] = 0
    return slots


def _grown(array: NDArray[_Item], used: int, more: int) -> NDArray[_Item]:
    """The array, or a longer copy of what is used of it."""
    if used + more <= len(array):
        return array
    longer = np.empty(max(2 * len(array), used + more, 1_024), array.dtype)
    longer[:used] = array[:used]
    return longer


def _words_by_dictionary(text: Bytes, start: Offsets, end: Offsets, wanted: NDArray[np.bool_]) -> Words:
    """The same, slower: for texts that were made to collide."""
    numbers: dict[str, int] = {}
    ids: list[int] = []
    counts = np.zeros(len(start) + 1, np.int64)
    for term in np.flatnonzero(wanted).tolist():
        words = analyse(text[start[term] : end[term]].tobytes().decode("utf-8", "surrogatepass"), Analyzer())
        ids += [numbers.setdefault(word, len(numbers)) for word in words]
        counts[term + 1] = len(words)
    distinct, bounds = joined([word.encode("utf-8", "surrogatepass") for word in numbers])
    starts, ends = bounds[:-1], bounds[1:]
    hashes = hash_spans(distinct, starts, ends, WORD_SEED)
    return Words(np.cumsum(counts), np.array(ids, np.int32), distinct, starts, ends, hashes)


# --- characters ------------------------------------------------------------------------------------------------------


@cache
def folding() -> kernels.Folding:
    """`fold` and `expansion` for the kernel: what each code point is folded to, if that is a letter or digit."""
    codes = np.arange(sys.maxunicode + 1, dtype="<u4")
    every = codes.tobytes().decode("utf-32-le", "surrogatepass")
    fold = np.full(len(every), kernels.BREAK, np.int32)
    for run in _LETTERS_AND_DIGITS.finditer(every):
        fold[run.start() : run.end()] = codes[run.start() : run.end()]
    expansion: list[int] = []
    for code, folded in _changed(every):
        points = [ord(c) if c.isalnum() else kernels.BREAK for c in folded]
        if len(points) == 1:
            fold[code] = points[0]
        else:
            fold[code] = -2 - len(expansion)
            expansion += [*points, kernels.END]
    fold[fold == codes] = kernels.SAME
    pages, page = np.unique(fold.reshape(-1, 1 << kernels.PAGE_BITS), axis=0, return_inverse=True)
    begin = (len(page) + (page.reshape(-1) << kernels.PAGE_BITS)).astype(np.int32)
    return kernels.Folding(np.concatenate((begin, pages.reshape(-1))), np.array(expansion, np.int32))


def _changed(every: str) -> Iterator[tuple[int, str]]:
    """The code points that case folding changes, and what becomes of them."""
    for first in range(0, len(every), _BLOCK):
        block = every[first : first + _BLOCK]
        if block.casefold() != block:
            yield from ((ord(c), c.casefold()) for c in block if c.casefold() != c)
