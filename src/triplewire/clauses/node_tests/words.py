"""Tests for words and prefixes of words, an analyser at a time; and tests of a literal's language.

What is a word: `triplewire.ir.fulltext`. The words by the default analyser come with the batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from triplewire.clauses.kernels import pairs as pair_kernels
from triplewire.clauses.node_tests.columns import Strings, slices, text_of, to_bytes, to_text
from triplewire.clauses.node_tests.lookup import START, KeyedTests, Lookup, Pairs, Substrings
from triplewire.clauses.node_tests.postings import DEFAULT, Posting
from triplewire.encode.batch import LITERAL_KIND, Ids, Offsets, Terms, Words
from triplewire.encode.names import has_text
from triplewire.ir.fulltext import analyse, words_of
from triplewire.ir.nodes import Analyzer
from triplewire.ir.values.functions import language_matches
from triplewire.kernels.text.names import hash_spans

WORD_SEED = 4
_FEW = 8  # of so many words less than one is asked for
Slices: TypeAlias = "tuple[Offsets, Ids]"
"""Tests by term, as `triplewire.clauses.kernels.pairs` makes them: term -> its slice; the tests."""

_NOTHING = (Strings.of([]), np.zeros(0, np.int32))


@dataclass(frozen=True, slots=True)
class WordTests:
    """The tests of one analyser."""

    analyzer: Analyzer
    words: Lookup | None
    prefixes: Substrings | None

    def slices(self, words: Words, tests: int) -> Slices:
        """The tests that hold of each term, whose words these are, by this analyser; `tests`: how many there are."""
        row, test_offset, test = self._postings(words, tests)
        code, offset = np.empty(len(row), np.int32), np.empty(len(words.offset), np.int64)
        asking = pair_kernels.word_codes(row, test_offset, test, tests, code)
        room, columns = len(words.ids) + 1, (words.offset, words.ids, code, test_offset, test)
        while True:  # seldom more than once: a word is seldom in two tests
            seen, out = np.zeros(tests + 1, np.int32), np.empty(room, np.int32)
            if _FEW * asking < len(row):
                scratch = np.empty(len(words.ids) + 1, np.int32)
                count = pair_kernels.from_few_words(*columns, seen, offset, out, scratch)
            else:
                count = pair_kernels.from_words(*columns, seen, offset, out)
            if count < room:
                return offset, out[:count]
            room = count + 1

    def _postings(self, words: Words, tests: int) -> tuple[Ids, Offsets, Ids]:
        """The tests of each distinct word: its row or -1, the slices of the rows."""
        parts: list[Pairs] = []
        if self.words is not None:
            row = self.words.names.find_all(words.text, words.start, words.end, words.hash)
            if self.prefixes is None:
                return row, self.words.offset, self.words.test
            asking = np.flatnonzero(row >= 0).astype(np.int32)
            offset, places = slices(self.words.offset, row[asking])
            parts.append((np.repeat(asking, np.diff(offset)), self.words.test[places]))
        if self.prefixes is not None:
            rows, kind = np.arange(len(words), dtype=np.int32), np.ones(len(words), np.int32)
            parts.append(self.prefixes.pairs(words.text, words.start, words.end, rows, kind))
        offset, test = gathered([], parts, len(words), tests)
        return np.where(np.diff(offset) > 0, np.arange(len(words)), -1).astype(np.int32), offset, test


def gathered(slices: Sequence[Slices], pairs: Sequence[Pairs], terms: int, tests: int) -> Slices:
    """Slices and pairs as slices, one a term, each test once; `terms`, `tests`: how many there are."""
    parts, pairs = [part for part in slices if len(part[1])], [part for part in pairs if len(part[0])]
    if len(pairs) > 1:
        pairs = [(np.concatenate([term for term, _ in pairs]), np.concatenate([test for _, test in pairs]))]
    for pair_term, pair_test in pairs:
        offset, test = np.zeros(terms + 1, np.int64), np.empty(len(pair_test), np.int32)
        count = pair_kernels.gather(pair_term, pair_test, np.zeros(tests, np.int32), offset, test)
        parts.append((offset, test[:count]))
    if not parts:
        return np.zeros(terms + 1, np.int64), np.zeros(0, np.int32)
    joined = parts[0]
    for part in parts[1:]:
        offset, test = np.empty(terms + 1, np.int64), np.empty(len(joined[1]) + len(part[1]), np.int32)
        count = pair_kernels.join_slices(*joined, *part, np.zeros(tests, np.int32), offset, test)
        joined = offset, test[:count]
    return joined


def collect_words(single: tuple[Strings, Ids], pairs: Sequence[tuple[Posting, int]]) -> tuple[WordTests, ...]:
    """From postings "w", "p", "W" and "P" and their tests, the default analyser first. `single` are distinct words of
    the default analyser, and the test of each."""
    by_analyzer: dict[Analyzer, tuple[list[bytes], list[int], list[bytes], list[int]]] = {}
    if len(single[1]):
        by_analyzer[DEFAULT] = ([], [], [], [])
    for posting, test in pairs:
        analyzer = Analyzer(str(posting[1]), str(posting[2]), bool(posting[3])) if len(posting) > 2 else DEFAULT
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
        distinct = single if analyzer == DEFAULT else _NOTHING
        lookup = Lookup.of_words(*distinct, words, word_tests, WORD_SEED) if words or len(distinct[1]) else None
        prefix_table = Substrings.build(prefixes, prefix_tests, [1] * len(prefixes)) if prefixes else None
        tables.append(WordTests(analyzer, lookup, prefix_table))
    return tuple(tables)


def words_by(analyzer: Analyzer, words: Words, terms: Terms) -> Words:
    """The words of the terms by an analyser; `words` are those by the default one."""
    if analyzer == DEFAULT:
        return words
    if analyzer.tokenizer == DEFAULT.tokenizer and not analyzer.ignore_diacritics:
        return _stemmed(analyzer, words)
    numbers: dict[str, int] = {}
    ids: list[int] = []
    counts = np.zeros(len(words.offset) - 1, np.int64)
    for row in np.flatnonzero(has_text(terms.kind, terms.suffix, terms.suffixes)).tolist():
        positions = words_of(text_of(terms, row), analyzer).positions
        counts[row] = len(positions)
        ids += [numbers.setdefault(word, len(numbers)) for word in positions]
    offset = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    return _words(offset, np.array(ids, np.int32), numbers)


def _stemmed(analyzer: Analyzer, words: Words) -> Words:
    """Stemming alone makes one word of each: `analyse` of a word that is folded already is its stem."""
    texts = words.text.tobytes()
    spans = zip(words.start.tolist(), words.end.tolist(), strict=True)
    return _words(words.offset, words.ids, stems([to_text(texts[start:end]) for start, end in spans], analyzer))


def _words(offset: Offsets, ids: Ids, distinct: Iterable[str]) -> Words:
    column = Strings.of([to_bytes(word) for word in distinct])
    start, end = column.offset[:-1], column.offset[1:]
    return Words(offset, ids, column.text, start, end, hash_spans(column.text, start, end, WORD_SEED))


def stems(words: Sequence[str], analyzer: Analyzer) -> tuple[str, ...]:
    """The stem of each word of the default analyser."""
    return analyse(" ".join(words), analyzer)


@dataclass(frozen=True)
class Languages(KeyedTests):
    """What LANG and LANGMATCHES of SPARQL ask: "=" and a language ("" for none), or "~" and a language range."""

    def pairs(self, terms: Terms) -> Pairs:
        """The tests that hold of each term."""
        languages = [suffix[1:] if suffix[:1] == "@" else "" for suffix in terms.suffixes]
        parts: list[Pairs] = [(np.zeros(0, np.int32), np.zeros(0, np.int32))]
        for number, (op, text) in enumerate(self.asked):
            holds = [tag == text if op == "=" else language_matches(tag, text) for tag in languages]
            is_held = np.array(holds, np.bool_)[terms.suffix] & (terms.kind == LITERAL_KIND)
            rows: Ids = np.flatnonzero(is_held).astype(np.int32)
            tests = self.test[self.offset[number] : self.offset[number + 1]]
            parts.append((np.tile(rows, len(tests)), np.repeat(tests, len(rows))))
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
