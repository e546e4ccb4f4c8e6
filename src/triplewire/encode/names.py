"""A table of distinct byte strings, numbered, as flat arrays: constants of queries, words, ids of subscriptions.

It is never changed, holds no Python object a string, and may lie in memory maps. Look-ups compare the bytes; the hash
(`triplewire.kernels.text.names`) only tells where to look.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triplewire.bounded_cache import cached_if_short
from triplewire.encode.batch import BLANK_KIND, FEW_SUFFIXES, IRI_KIND, LITERAL_KIND, Bytes, Hashes, Ids, Offsets, Terms
from triplewire.encode.strings import joined
from triplewire.kernels.shared.columns import fixed, fixed_array
from triplewire.kernels.text import names as kernels
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
        text, span = np.frombuffer(string or b"\0", np.uint8), np.array([0, len(string)])
        hashes = kernels.hash_spans(text, span[:1], span[1:], int(self.seed[0]))
        return int(self.find_all(text, span[:1], span[1:], hashes)[0])

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


# --- terms -----------------------------------------------------------------------------------------------------------


def _key(term: Term) -> tuple[int, str, str]:
    if isinstance(term, IRI):
        return IRI_KIND, term.value, ""
    if isinstance(term, Literal):
        return LITERAL_KIND, term.lexical, suffix_of(term)
    return BLANK_KIND, term.label, ""


def term_names(terms: Sequence[Term]) -> Names:
    """The table of these terms, which are distinct."""
    keys = [_key(term) for term in terms]
    kind = np.array([kind for kind, _, _ in keys], np.uint8)
    suffixes = {"": 0}
    suffix = np.array([suffixes.setdefault(suffix, len(suffixes)) for _, _, suffix in keys], np.int32)
    text, offset = joined([_encoded(text) for _, text, _ in keys])
    hashes = kernels.hash_terms(text, offset[:-1], offset[1:], kind, suffix, *suffix_columns(tuple(suffixes)))
    whole = [_encoded(text) + (b"\xff" + _encoded(suffix) if suffix else b"") for _, text, suffix in keys]
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
