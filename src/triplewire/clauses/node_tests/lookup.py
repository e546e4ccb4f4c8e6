"""Tests under keys. `Lookup`: those that ask for a whole text or a whole word, as rows of a table of byte strings
(`triplewire.encode.names`). `KeyedTests`: those that ask for a few strings, such as a relation and a class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from triplewire.clauses.node_tests.columns import Strings, grouped, to_bytes
from triplewire.clauses.node_tests.postings import SUFFIX, Posting
from triplewire.clauses.node_tests.substrings import Pairs, spread
from triplewire.encode.batch import Bytes, Hashes, Ids, Offsets
from triplewire.encode.names import Names

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

    def rows(self, text: Bytes, start: Offsets, end: Offsets, hashes: Hashes) -> Ids:
        """The row of each text, or -1."""
        return self.names.find_all(text, start, end, hashes)


@dataclass(frozen=True, slots=True)
class Literals:
    """Tests for a node's whole text. `suffixes` are those that tests ask for: 1 is the first."""

    lookup: Lookup
    suffixes: tuple[str, ...]

    def pairs(self, text: Bytes, start: Offsets, end: Offsets, hashes: Hashes, kind: Ids) -> Pairs:
        """The tests that hold of each term. `hashes` are those of the texts; `kind`: see `spread`."""
        rows = self.lookup.rows(text, start, end, hashes)
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
