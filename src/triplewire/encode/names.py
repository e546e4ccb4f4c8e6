"""Tables of distinct byte strings, numbered, as flat arrays; and the words of a batch's literals.

Such are constants of queries, words, ids of subscriptions. The words are those of the default analyser, exactly
`triplewire.ir.fulltext.analyse`. A table is never changed, holds no Python object a string, and may lie in memory maps.
Look-ups compare the bytes; the hash (`triplewire.kernels.text.names`) only tells where to look.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from triplewire.bounded_cache import cached_if_short
from triplewire.encode.batch import (
    BLANK_KIND,
    FEW_SUFFIXES,
    IRI_KIND,
    LITERAL_KIND,
    Bytes,
    Hashes,
    Ids,
    Offsets,
    Terms,
    Words,
)
from triplewire.encode.strings import joined
from triplewire.ir.fulltext import analyse
from triplewire.ir.nodes import Analyzer
from triplewire.kernels.shared.columns import fixed, fixed_array
from triplewire.kernels.text import names as kernels
from triplewire.kernels.text import words as word_kernels
from triplewire.model.packed import suffix_of
from triplewire.model.terms import IRI, Literal, Term

_NO_SUFFIXES = np.zeros(0, np.int32), np.zeros(0, np.uint8), np.zeros(0, np.int64)
_SMALL = 1 << 12  # strings: a table of fewer has much room


def strings_at(text: Bytes, start: Offsets, end: Offsets) -> tuple[Bytes, Offsets]:
    """Strings of a text, each from `start` to `end`, one behind the other in a text of their own, and where each begins
    there and the last one ends."""
    offset = np.zeros(len(start) + 1, np.int64)
    np.cumsum(end - start, out=offset[1:])
    copied = np.empty(offset[-1], np.uint8)
    kernels.copy_strings(fixed_array(text), fixed_array(start), fixed_array(offset), copied)
    return copied, offset


@dataclass(frozen=True)
class Names:
    """The strings 0 .. n-1. `kind` is that of terms (their key is text, then 0xFF and the suffix where there is one),
    and empty for other strings."""

    text: Bytes
    offset: Offsets  # one longer than there are strings
    hash: Hashes
    slots: Ids
    seed: NDArray[np.int64]  # of the hash, one number; unused for terms
    kind: Bytes

    def __len__(self) -> int:
        return len(self.hash)

    def __getitem__(self, number: int) -> bytes:
        return self.text[self.offset[number] : self.offset[number + 1]].tobytes()

    @classmethod
    def build(cls, strings: Sequence[bytes], seed: int) -> Names:
        """The table of these strings, which are distinct."""
        return cls.of(*joined(strings), seed)

    @classmethod
    def of(cls, text: Bytes, offset: Offsets, seed: int) -> Names:
        """The table of the strings in one text, which are distinct and no terms."""
        hashes = kernels.hash_spans(text, offset[:-1], offset[1:], seed)
        return cls(text, offset, hashes, _slots(hashes), np.array([seed]), np.zeros(0, np.uint8))

    def take(self, numbers: NDArray[np.integer[Any]]) -> Names:
        """The table of some of the strings, numbered in that order."""
        text, offset = self.texts(numbers)
        hashes = self.hash[numbers]
        kind = self.kind[numbers] if len(self.kind) else self.kind
        return Names(text, offset, hashes, _slots(hashes), self.seed, kind)

    def texts(self, numbers: NDArray[np.integer[Any]]) -> tuple[Bytes, Offsets]:
        """Some of the strings in one text, and where each begins and the last one ends."""
        return strings_at(self.text, self.offset[numbers], self.offset[numbers + 1])

    def extended(self, other: Names, numbers: NDArray[np.integer[Any]]) -> tuple[Names, Ids]:
        """This table with some strings of another one of its sort behind its own, as far as they are new; and the
        number of each of those strings here."""
        others, number_here = other.take(numbers), np.empty(len(numbers), np.int32)
        theirs = kernels.Spans(*fixed(others.text, others.offset[:-1], others.offset[1:], others.kind, *_NO_SUFFIXES))
        kernels.find(theirs, fixed_array(others.hash), self.table, number_here)
        fresh = np.flatnonzero(number_here < 0)
        number_here[fresh] = len(self) + np.arange(len(fresh), dtype=np.int32)
        added = others.take(fresh)
        hashes = np.concatenate((self.hash, added.hash))
        return Names(
            np.concatenate((self.text, added.text)),
            np.concatenate((self.offset, added.offset[1:] + self.offset[-1])),
            hashes,
            _slots(hashes),
            self.seed,
            np.concatenate((self.kind, added.kind)),
        ), number_here

    @classmethod
    def union(cls, tables: Sequence[Names], used: Sequence[NDArray[np.integer[Any]]]) -> tuple[Names, list[Ids]]:
        """One table of some strings of several tables of one sort (ascending numbers), and for each of these the number
        there of each of its strings; -1 for a string that was not taken."""
        whole, numbers = tables[0].take(used[0]), []
        for place, (table, taken) in enumerate(zip(tables, used, strict=True)):
            number = np.full(len(table), -1, np.int32)
            if place == 0:
                number[taken] = np.arange(len(taken), dtype=np.int32)
            else:
                whole, number[taken] = whole.extended(table, taken)
            numbers.append(number)
        return whole, numbers

    def find(self, string: bytes) -> int:
        """The number of a string, or -1."""
        text = np.frombuffer(string or b"\0", np.uint8)
        return int(kernels.find_one(text, len(string), int(self.seed[0]), self.table))

    def order(self) -> NDArray[np.int64]:
        """The numbers in the order of their strings, by bytes."""
        return np.array(sorted(range(len(self)), key=self.__getitem__), np.int64)

    def find_all(self, text: Bytes, start: Offsets, end: Offsets, hashes: Hashes) -> Ids:
        """The number of each span of `text`, or -1. The hashes are those of this table's seed."""
        numbers = np.empty(len(start), np.int32)
        kernels.find(kernels.Spans.of(text, start, end), fixed_array(hashes), self.table, numbers)
        return numbers

    @cached_property
    def table(self) -> kernels.StringTable:
        """The table as kernels take it."""
        return kernels.StringTable(*fixed(self.text, self.offset, self.kind, self.hash, self.slots))


def _slots(hashes: Hashes) -> Ids:
    """The table by hash of strings with these. A small one has much room: most of what is looked for in it is not
    there, and seldom meets another then."""
    room = 16 if len(hashes) < _SMALL else 2
    slots = np.empty(1 << max((room * len(hashes)).bit_length(), 1), np.int32)
    kernels.fill_slots(hashes, slots)
    return slots


# --- Terms -----------------------------------------------------------------------------------------------------------


TermKey: TypeAlias = tuple[int, str, str]
"""Kind, text and suffix of a term."""


def key_of(term: Term) -> TermKey:
    """The key of a term."""
    if isinstance(term, IRI):
        return IRI_KIND, term.value, ""
    if isinstance(term, Literal):
        return LITERAL_KIND, term.lexical, suffix_of(term)
    return BLANK_KIND, term.label, ""


def term_names(terms: Sequence[Term]) -> Names:
    """The table of these terms, which are distinct."""
    return names_of_keys(list(map(key_of, terms)))


def names_of_keys(keys: Sequence[TermKey]) -> Names:
    """The table of the terms with these keys, which are distinct."""
    kind = np.array([kind for kind, _, _ in keys], np.uint8)
    suffixes = {"": 0}
    suffix = np.array([suffixes.setdefault(suffix, len(suffixes)) for _, _, suffix in keys], np.int32)
    texts = [_encoded(text) for _, text, _ in keys]
    text, offset = joined(texts)
    hashes = kernels.hash_terms(text, offset[:-1], offset[1:], kind, suffix, *suffix_columns(tuple(suffixes)))
    behind = [b"\xff" + _encoded(suffix) if suffix else b"" for suffix in suffixes]
    whole = [text + behind[number] for text, number in zip(texts, suffix.tolist(), strict=True)]
    return Names(*joined(whole), hashes, _slots(hashes), np.array([0]), kind)


def find_terms(names: Names, terms: Terms) -> Ids:
    """The number that each term of a batch has in a table of terms, or -1."""
    numbers = np.empty(len(terms), np.int32)
    theirs = terms.text, terms.start, terms.end, terms.kind, terms.suffix, *suffix_columns(terms.suffixes)
    kernels.find(kernels.Spans(*fixed(*theirs)), fixed_array(terms.hash), names.table, numbers)
    return numbers


@cached_if_short(256, FEW_SUFFIXES)
def suffix_columns(suffixes: tuple[str, ...]) -> tuple[Bytes, Offsets]:
    """Suffixes one behind the other, and where each begins and the last one ends; both cannot be written to."""
    text, offset = joined([_encoded(suffix) for suffix in suffixes])
    padded = np.append(text, np.zeros(8, np.uint8))
    columns: tuple[Bytes, Offsets] = fixed(padded, offset)
    return columns


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


# --- Words -----------------------------------------------------------------------------------------------------------

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
    state = np.zeros(word_kernels.STATE, np.int64)
    status = word_kernels.MORE
    while status == word_kernels.MORE:
        table = word_kernels.WordTable(room.text, room.bounds[1:], room.hash, room.slots)
        status = word_kernels.cut(text, start, end, wanted, folding(), offset, room.ids, table, state)
        if status == word_kernels.MORE:
            term = int(state[word_kernels.TERM])
            room.reserve(state, int(end[term] - start[term]))
    if status == word_kernels.STOP:
        return _words_by_dictionary(text, start, end, wanted)
    _, ids, count, used = state.tolist()
    bounds = room.bounds[: count + 1]  # no copies, since room that is not used costs nothing
    return Words(offset, room.ids[:ids], room.text[:used], bounds[:-1], bounds[1:], room.hash[:count])


class _Room:
    """The arrays that a kernel fills; they grow when it asks."""

    def __init__(self, size: int) -> None:
        words = min(size // _BYTES_A_WORD, _FIRST_WORDS) + min(size, _SHORT)
        self.ids: Ids = np.empty(size // 4 + _SHORT, np.int32)
        self.text: Bytes = np.empty(size // 4 + word_kernels.GROWTH * _SHORT + word_kernels.PAD, np.uint8)
        self.bounds: Offsets = np.empty(words + 1, np.int64)  # where words begin and end
        self.bounds[0] = 0
        self.hash: Hashes = np.empty(words, np.uint64)
        self.slots: Hashes = _slots_of_words(2 * words)

    def reserve(self, state: NDArray[np.int64], length: int) -> None:
        """Make room for a text of so many bytes, and some more."""
        ids, words, used = (int(state[i]) for i in (word_kernels.IDS, word_kernels.WORDS, word_kernels.BYTES))
        self.ids = _grown(self.ids, ids, length)
        self.text = _grown(self.text, used, word_kernels.GROWTH * length + word_kernels.PAD)
        self.bounds = _grown(self.bounds, words + 1, length)
        self.hash = _grown(self.hash, words, length)
        if 2 * words + length >= len(self.slots):
            self.slots = _slots_of_words(max(len(self.slots), 2 * words + length))
            word_kernels.refill(self.text, self.bounds[1:], words, self.slots)


def _slots_of_words(count: int) -> Hashes:
    """So many empty slots, or some more."""
    slots = np.empty((1 << count.bit_length(), 2), np.uint64)  # not `zeros`, whose memory is never what was freed
    slots[:] = 0
    return slots


def _grown(array: NDArray[_Item], used: int, added: int) -> NDArray[_Item]:
    """The array, or a longer copy of what is used of it."""
    if used + added <= len(array):
        return array
    longer = np.empty(max(2 * len(array), used + added, 1_024), array.dtype)
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
    hashes = kernels.hash_spans(distinct, starts, ends, WORD_SEED)
    return Words(np.cumsum(counts), np.array(ids, np.int32), distinct, starts, ends, hashes)


@cache
def folding() -> word_kernels.Folding:
    """`fold` and `expansion` for the kernel: what each code point is folded to, if that is a letter or digit."""
    codes = np.arange(sys.maxunicode + 1, dtype="<u4")
    every = codes.tobytes().decode("utf-32-le", "surrogatepass")
    fold = np.full(len(every), word_kernels.BREAK, np.int32)
    for run in _LETTERS_AND_DIGITS.finditer(every):
        fold[run.start() : run.end()] = codes[run.start() : run.end()]
    expansion: list[int] = []
    for code, folded in _changed(every):
        points = [ord(c) if c.isalnum() else word_kernels.BREAK for c in folded]
        if len(points) == 1:
            fold[code] = points[0]
        else:
            fold[code] = -2 - len(expansion)
            expansion += [*points, word_kernels.END]
    fold[fold == codes] = word_kernels.SAME
    data, size = fold.tobytes(), fold.itemsize << word_kernels.PAGE_BITS
    number: dict[bytes, int] = {}  # of each page that differs from those before it
    page = [number.setdefault(data[n : n + size], len(number)) for n in range(0, len(data), size)]
    begin = (len(page) + (np.array(page, np.int32) << word_kernels.PAGE_BITS)).astype(np.int32)
    pages = np.frombuffer(b"".join(number), np.int32)
    return word_kernels.Folding(np.concatenate((begin, pages)), np.array(expansion, np.int32))


def _changed(every: str) -> Iterator[tuple[int, str]]:
    """The code points that case folding changes, and what becomes of them."""
    for first in range(0, len(every), _BLOCK):
        block = every[first : first + _BLOCK]
        if block.casefold() != block:
            yield from ((ord(c), c.casefold()) for c in block if c.casefold() != c)
