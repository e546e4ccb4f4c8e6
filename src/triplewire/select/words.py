"""Tests for words and prefixes of words, an analyser at a time.

What is a word: `triplewire.ir.analysis`. The words by the default analyser come with the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Ids, Offsets, Words
from triplewire.ir.analysis import analyse, words_of
from triplewire.ir.text import Analyzer
from triplewire.kernels import pairs as pair_kernels
from triplewire.kernels.names import hash_spans
from triplewire.select.columns import Arrays, Strings, prefixed, to_bytes, to_text, under
from triplewire.select.lookup import Lookup
from triplewire.select.postings import DEFAULT, Posting
from triplewire.select.substrings import START, Pairs, Substrings

WORD_SEED = 4
_NOTHING = (Strings.of([]), np.zeros(0, np.int32))


@dataclass(frozen=True, slots=True)
class WordTests:
    """The tests of one analyser."""

    analyzer: Analyzer
    words: Lookup | None
    prefixes: Substrings | None

    def meta(self) -> list[Any]:
        """What is not in `arrays`, for JSON."""
        analyzer = self.analyzer
        return [analyzer.tokenizer, analyzer.stemming, analyzer.ignore_diacritics]

    def arrays(self) -> Arrays:
        """The rest."""
        found: Arrays = {}
        if self.words is not None:
            found |= prefixed("words", self.words.arrays())
        if self.prefixes is not None:
            found |= prefixed("prefixes", self.prefixes.arrays())
        return found

    @classmethod
    def from_arrays(cls, arrays: Arrays, meta: Sequence[Any]) -> WordTests:
        """What `arrays` and `meta` gave."""
        words, prefixes = under("words", arrays), under("prefixes", arrays)
        return cls(
            Analyzer(*meta),
            Lookup.from_arrays(words) if words else None,
            Substrings.from_arrays(prefixes) if prefixes else None,
        )

    def pairs(self, words: Words) -> Pairs:
        """The tests that hold of each term, whose words these are, by this analyser."""
        row, offset, test = self._postings(words)
        room = len(words.ids)  # seldom more: a word is seldom in two tests
        while True:
            out_term, out_test = np.empty(room, np.int32), np.empty(room, np.int32)
            stamp = np.full(len(offset) - 1, -1, np.int32)
            count = pair_kernels.from_words(words.offset, words.ids, row, offset, test, stamp, out_term, out_test)
            if count <= room:
                return out_term[:count], out_test[:count]
            room = count

    def _postings(self, words: Words) -> tuple[Ids, Offsets, Ids]:
        """The tests of each distinct word: its row or -1, the slices of the rows."""
        parts: list[Pairs] = []
        if self.words is not None:
            row = self.words.rows(words.text, words.start, words.end, words.hash)
            if self.prefixes is None:
                return row, self.words.offset, self.words.test
            found = np.flatnonzero(row >= 0).astype(np.int32)
            counts = self.words.offset[row[found] + 1] - self.words.offset[row[found]]
            at = np.arange(counts.sum()) + np.repeat(self.words.offset[row[found]] - np.cumsum(counts) + counts, counts)
            parts.append((np.repeat(found, counts), self.words.test[at]))
        if self.prefixes is not None:
            rows, kind = np.arange(len(words), dtype=np.int32), np.ones(len(words), np.int32)
            parts.append(self.prefixes.pairs(words.text, words.start, words.end, rows, kind))
        offset, test = gathered(parts, len(words))
        return np.where(np.diff(offset) > 0, np.arange(len(words)), -1).astype(np.int32), offset, test


def gathered(parts: Sequence[Pairs], terms: int) -> tuple[Offsets, Ids]:
    """Pairs as slices, one a term: the tests ascending, each once."""
    pair_term = np.concatenate([np.zeros(0, np.int32), *[part[0] for part in parts]])
    pair_test = np.concatenate([np.zeros(0, np.int32), *[part[1] for part in parts]])
    offset, test = np.zeros(terms + 1, np.int64), np.empty(len(pair_test), np.int32)
    kept = pair_kernels.gather(pair_term, pair_test, offset, test)
    return offset, test[:kept]


def collect_words(single: tuple[Strings, Ids], pairs: Sequence[tuple[Posting, int]]) -> tuple[WordTests, ...]:
    """From postings "w", "p", "W" and "P" and their tests, the default analyser first. `single` are distinct words of
    the default analyser, and the test of each."""
    by_analyzer: dict[Analyzer, tuple[list[bytes], list[int], list[bytes], list[int]]] = {}
    if len(single[1]):
        by_analyzer[DEFAULT] = ([], [], [], [])
    for posting, test in pairs:
        analyzer = DEFAULT
        if len(posting) > 2:
            analyzer = Analyzer(str(posting[1]), str(posting[2]), bool(posting[3]))
        words, word_tests, prefixes, prefix_tests = by_analyzer.setdefault(analyzer, ([], [], [], []))
        if posting[0] in ("w", "W"):
            words.append(to_bytes(str(posting[-1])))
            word_tests.append(test)
        else:
            prefixes.append(START + to_bytes(str(posting[-1])))
            prefix_tests.append(test)
    tables = []
    for analyzer in sorted(by_analyzer, key=lambda a: (a != DEFAULT, str(a))):
        words, word_tests, prefixes, prefix_tests = by_analyzer[analyzer]
        some = single if analyzer == DEFAULT else _NOTHING
        lookup = Lookup.of_words(*some, words, word_tests, WORD_SEED) if words or len(some[1]) else None
        found = Substrings.build(prefixes, prefix_tests, [1] * len(prefixes)) if prefixes else None
        tables.append(WordTests(analyzer, lookup, found))
    return tuple(tables)


# --- the words of a batch by another analyser --------------------------------------------------------------------


def words_by(analyzer: Analyzer, words: Words, rows: NDArray[np.int64], text: Callable[[int], str]) -> Words:
    """The words of the terms by an analyser. `words` are those by the default one, `rows` the terms that have text,
    `text(term)` is it."""
    if analyzer == DEFAULT:
        return words
    if analyzer.tokenizer == DEFAULT.tokenizer and not analyzer.ignore_diacritics:
        return _stemmed(analyzer, words)
    numbers: dict[str, int] = {}
    ids: list[int] = []
    counts = np.zeros(len(words.offset) - 1, np.int64)
    for row in rows.tolist():
        found = words_of(text(row), analyzer).positions
        counts[row] = len(found)
        ids += [numbers.setdefault(word, len(numbers)) for word in found]
    offset = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    return _words(offset, np.array(ids, np.int32), [to_bytes(word) for word in numbers])


def _stemmed(analyzer: Analyzer, words: Words) -> Words:
    """Stemming alone makes one word of each: `analyse` of a word that is folded already is its stem."""
    texts = words.text.tobytes()
    spans = zip(words.start.tolist(), words.end.tolist(), strict=True)
    found = stems([to_text(texts[start:end]) for start, end in spans], analyzer)
    return _words(words.offset, words.ids, [to_bytes(word) for word in found])


def _words(offset: Offsets, ids: Ids, distinct: Sequence[bytes]) -> Words:
    column = Strings.of(distinct)
    start, end = column.offset[:-1], column.offset[1:]
    return Words(offset, ids, column.text, start, end, hash_spans(column.text, start, end, WORD_SEED))


def stems(words: Sequence[str], analyzer: Analyzer) -> tuple[str, ...]:
    """The stem of each word of the default analyser."""
    return analyse(" ".join(words), analyzer)
