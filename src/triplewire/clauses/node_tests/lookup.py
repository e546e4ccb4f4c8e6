"""Look-ups of tests by texts.

Which texts hold which of many strings, anywhere, at the start or at the end (`Substrings`, an automaton:
`triplewire.kernels.text.substring`)? Which are a whole text or word (`Lookup`, rows of a table of byte strings:
`triplewire.encode.names`)? Also tests under keys of a few strings, such as a relation and a class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from triplewire.clauses.kernels import pairs as pair_kernels
from triplewire.clauses.node_tests.columns import Strings, grouped, text_of, to_bytes
from triplewire.clauses.node_tests.postings import AN_IRI, CASELESS, LOWER, SUFFIX, UPPER, Posting
from triplewire.encode.batch import Bytes, Hashes, Ids, Offsets, Terms
from triplewire.encode.names import Names
from triplewire.kernels.text import substring as kernels

Pairs = tuple[Ids, Ids]
"""Terms, and tests that hold of them."""

START, END = bytes([kernels.START]), bytes([kernels.END])
_FIRST_ROOM = 4_096


@dataclass(frozen=True)
class Substrings:
    """Patterns and their postings. A pattern begins with `START` or ends with `END` where it is anchored."""

    first: Ids
    label: Bytes
    end: Ids
    root: Ids
    fail: Ids
    report: Ids
    offset: Offsets  # pattern -> its slice of the postings
    test: Ids
    kinds: Ids  # of nodes, as in `triplewire.clauses.node_tests.postings`

    @classmethod
    def build(cls, patterns: Sequence[bytes], tests: Sequence[int], kinds: Sequence[int]) -> Substrings:
        """From postings: a pattern, a test, and the kinds of nodes that it is meant for."""
        distinct = sorted(set(patterns))
        number = {pattern: place for place, pattern in enumerate(distinct)}
        order, offset = grouped((number[pattern] for pattern in patterns), len(distinct))
        column = Strings.of(distinct)
        room = len(column.text) + 1
        first, parent, end, low, high = (np.empty(room + (i == 0), np.int32) for i in range(5))
        label = np.empty(room, np.uint8)
        nodes = kernels.build_nodes(column.text, column.offset, low, high, first, label, parent, end)
        root, fail, report = np.empty(256, np.int32), np.empty(nodes, np.int32), np.empty(nodes, np.int32)
        first, label, end = first[: nodes + 1].copy(), label[:nodes].copy(), end[:nodes].copy()
        kernels.build_links(first, label, parent, end, root, fail, report)
        test, kind = np.asarray(tests, np.int32)[order], np.asarray(kinds, np.int32)[order]
        return cls(first, label, end, root, fail, report, offset, test, kind)

    @cached_property
    def of_literals(self) -> bool:
        """Are they asked of literals only?"""
        return not (self.kinds & AN_IRI).any()

    def pairs(self, text: Bytes, start: Offsets, stop: Offsets, rows: Ids, kind: Ids) -> Pairs:
        """The tests that hold of the terms `rows`; `kind` is of what kind each term is."""
        automaton = (self.first, self.label, self.end, self.root, self.fail, self.report)
        room = _FIRST_ROOM
        while True:
            row, pattern = np.empty(room, np.int32), np.empty(room, np.int32)
            stamp = np.full(len(self.offset) - 1, -1, np.int32)
            count = kernels.find_patterns(text, start, stop, rows, automaton, stamp, row, pattern)
            if count <= room:
                return spread((row[:count], pattern[:count]), self.offset, self.test, self.kinds, kind)
            room = count


_ANCHORS = {"c": (b"", b""), "s": (START, b""), "e": (b"", END), "b": (START, END)}


def collect_substrings(pairs: Sequence[tuple[Posting, int]]) -> dict[str, Substrings]:
    """From postings "s" and their tests, by how a text is changed first (`CHANGES`, or "")."""
    by_change: dict[str, list[tuple[bytes, int, int]]] = {}
    for (_, kinds, where, text), test in pairs:
        change, (before, behind) = str(where)[:-1], _ANCHORS[str(where)[-1]]
        pattern = before + to_bytes(str(text)) + behind
        by_change.setdefault(change, []).append((pattern, test, int(kinds)))
    return {change: Substrings.build(*zip(*rows, strict=True)) for change, rows in by_change.items()}


_CAPITALS = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_TO_LOWER = {**_CAPITALS, 0x131: ord("i"), 0x17F: ord("s"), 0x212A: ord("k")}
CHANGES: dict[str, Callable[[str], str]] = {
    LOWER: str.lower,
    UPPER: str.upper,
    CASELESS: lambda text: text.translate(_TO_LOWER),  # dotless i, long s and Kelvin are case variants of ASCII letters
}
"""How a text is changed, by the letter in postings "s"."""

_ASCII = {
    change: np.array([ord(make(chr(b))) if b < 128 else b for b in range(256)], np.uint8)
    for change, make in CHANGES.items()
}


def changed(change: str, terms: Terms, rows: Ids) -> tuple[Bytes, Offsets, Offsets]:
    """The texts of these rows after a change, as bytes and where the text of each term starts and ends in them."""
    if not change:
        return terms.text, terms.start, terms.end
    if terms.text.tobytes().isascii():
        return _ASCII[change][terms.text], terms.start, terms.end
    beyond = np.flatnonzero(terms.text >= 128)
    others = rows[np.searchsorted(beyond, terms.end[rows]) > np.searchsorted(beyond, terms.start[rows])].tolist()
    texts = [to_bytes(CHANGES[change](text_of(terms, row))) for row in others]
    start, end = terms.start.copy(), terms.end.copy()
    end[others] = len(terms.text) + np.cumsum([len(text) for text in texts])
    start[others] = end[others] - [len(text) for text in texts]
    return np.concatenate((_ASCII[change][terms.text], np.frombuffer(b"".join(texts), np.uint8))), start, end


def spread(pairs: Pairs, offset: Offsets, test: Ids, kinds: Ids, kind: Ids) -> Pairs:
    """From pairs (term, row of postings) to pairs (term, test)."""
    terms, rows = pairs
    room = int((offset[rows + 1] - offset[rows]).sum())
    out_term, out_test = np.empty(room, np.int32), np.empty(room, np.int32)
    count = pair_kernels.spread(terms, rows, offset, test, kinds, kind, out_term, out_test)
    return out_term[:count], out_test[:count]


# --- whole texts and words, and other keys ---------------------------------------------------------------------------

TEXT_SEED = 1
"""Texts are hashed as if they were IRIs, whatever they are."""


@dataclass(frozen=True, eq=False)
class KeyedTests:
    """Distinct keys of a few strings, each with a slice of tests."""

    asked: tuple[tuple[str, ...], ...]
    offset: Offsets
    test: Ids

    @classmethod
    def collect(cls, pairs: Sequence[tuple[Posting, int]]) -> Self | None:
        """From postings and their tests; None without any."""
        if not pairs:
            return None
        keys = [tuple(map(str, posting[1:])) for posting, _ in pairs]
        number = {key: place for place, key in enumerate(dict.fromkeys(keys))}
        order, offset = grouped((number[key] for key in keys), len(number))
        return cls(tuple(number), offset, np.array([test for _, test in pairs], np.int32)[order])


@dataclass(frozen=True, slots=True)
class Lookup:
    """Distinct byte strings, each with a slice of tests."""

    names: Names
    offset: Offsets
    test: Ids
    wanted: Ids  # beside each test: kinds of nodes, or a suffix (`triplewire.clauses.kernels.pairs`)

    @classmethod
    def build(cls, keys: Sequence[bytes], tests: Sequence[int], wanted: Sequence[int], seed: int) -> Lookup:
        """From postings: a byte string, a test, and the nodes that are meant."""
        number = {key: place for place, key in enumerate(dict.fromkeys(keys))}
        order, offset = grouped((number[key] for key in keys), len(number))
        test, codes = np.asarray(tests, np.int32)[order], np.asarray(wanted, np.int32)[order]
        return cls(Names.build(list(number), seed), offset, test, codes)

    @classmethod
    def of_words(
        cls, words: Strings, tests: Ids, more: Sequence[bytes], more_tests: Sequence[int], seed: int
    ) -> Lookup:
        """From distinct words with a test each, and postings that may be of any word; kinds of nodes do not matter."""
        names, rows = words.names(seed), np.arange(len(words), dtype=np.int64)
        if more:
            distinct = {word: place for place, word in enumerate(dict.fromkeys(more))}
            names, number_of = names.extended(Names.build(list(distinct), seed), np.arange(len(distinct)))
            rows = np.concatenate((rows, number_of[[distinct[word] for word in more]]))
        order, offset = grouped(rows, len(names))
        test = np.concatenate((tests, np.asarray(more_tests, np.int32)))[order]
        return cls(names, offset, test, np.zeros(0, np.int32))


@dataclass(frozen=True, slots=True)
class Literals:
    """Tests for a node's whole text. `suffixes` are those that tests ask for: 1 is the first."""

    lookup: Lookup
    suffixes: tuple[str, ...]

    def pairs(self, text: Bytes, start: Offsets, end: Offsets, hashes: Hashes, kind: Ids) -> Pairs:
        """The tests that hold of each term. `hashes` are those of the texts; `kind`: see `spread`."""
        rows = self.lookup.names.find_all(text, start, end, hashes)
        terms = np.flatnonzero(rows >= 0).astype(np.int32)
        return spread((terms, rows[terms]), self.lookup.offset, self.lookup.test, self.lookup.wanted, kind)


def collect_literals(pairs: Sequence[tuple[Posting, int]]) -> Literals | None:
    """From postings "t" and "e" and their tests; None without any."""
    if not pairs:
        return None
    suffixes = {str(posting[1]): 0 for posting, _ in pairs if posting[0] == "e"}
    number = {suffix: SUFFIX * place for place, suffix in enumerate(sorted(suffixes), 1)}
    wanted = [int(p[1]) if p[0] == "t" else number[str(p[1])] for p, _ in pairs]
    keys = [to_bytes(str(posting[2])) for posting, _ in pairs]
    return Literals(Lookup.build(keys, [test for _, test in pairs], wanted, TEXT_SEED), tuple(number))
