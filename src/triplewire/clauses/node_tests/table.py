"""The tests of a segment: numbered conditions on one node, behind look-ups of the nodes of which they hold.

Also: the terms of a batch that satisfy those of a text, a part of it, or its language. `TestTable` collects tests,
`build` makes `Tests` of them: flat arrays. A test is indexed by its postings
(`triplewire.clauses.node_tests.postings`), or it is residual: then nothing is known of it but its number. Which tests
the terms of a batch satisfy: `triplewire.clauses.view`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from triplewire.bounded_cache import cached_if_short
from triplewire.clauses.node_tests.classes import Classes
from triplewire.clauses.node_tests.columns import Strings, text_of, to_bytes
from triplewire.clauses.node_tests.lookup import (
    TEXT_SEED,
    Literals,
    Pairs,
    Substrings,
    changed,
    collect_literals,
    collect_substrings,
)
from triplewire.clauses.node_tests.postings import (
    AN_IRI,
    DEFAULT,
    HALVED,
    OTHER_LITERAL,
    RANKED,
    SUFFIX,
    TEXT_LITERAL,
    TOO_LONG,
    Posting,
    postings,
)
from triplewire.clauses.node_tests.ranges import ScaleTests, collect_scales
from triplewire.clauses.node_tests.words import Languages, WordTests, collect_words
from triplewire.encode.batch import BLANK_KIND, FEW_SUFFIXES, IRI_KIND, LITERAL_KIND, Bytes, Ids, Terms
from triplewire.encode.names import Names, is_plain
from triplewire.ir.nodes import FullText, Word
from triplewire.ir.normal_form import Test
from triplewire.kernels.shared.columns import TestColumns, fixed
from triplewire.kernels.text.names import hash_spans

T = TypeVar("T")

RESIDUAL, INDEXED, RANGE = 0, 1, 2
"""Kinds of tests: only evaluated; found in the slices of Features; compared by rank."""

_WORD = ord("w")

OPS = ("", *RANKED)
"""By the number in `Tests.op`."""


@dataclass(frozen=True)
class Tests:
    """The tests 0 .. n-1. Never changed; the parts beside the columns keep what they have worked out.

    `kind`: RESIDUAL, INDEXED or RANGE. `group`, `op` and `rank` are those of range tests (see Features), else -1, 0,
    -1.
    """

    kind: Bytes
    group: Ids
    op: Bytes
    rank: Ids
    groups: int
    specs: Strings  # what each was made of: "" a residual test, "w" and a word, else postings in JSON
    words: tuple[WordTests, ...]
    substrings: dict[str, Substrings]  # by how a text is changed first, "" for not at all
    literals: Literals | None
    languages: Languages | None
    scales: tuple[ScaleTests, ...]
    classes: Classes | None

    def __len__(self) -> int:
        return len(self.kind)

    __test__: ClassVar[bool] = False  # no case for pytest

    @cached_property
    def columns(self) -> TestColumns:
        """The tests as kernels take them."""
        return TestColumns(*fixed(self.kind, self.group, self.op, self.rank))

    @property
    def is_residual(self) -> NDArray[np.bool_]:
        """Which tests can only be evaluated?"""
        residual: NDArray[np.bool_] = self.kind == RESIDUAL
        return residual

    def pairs_of_texts(self, terms: Terms, longest: int) -> list[Pairs]:
        """The terms that satisfy the tests that ask for a text, a part of one, or a language. `longest`: how long a
        text may be that SPARQL's STR gives, in characters."""
        pairs = [self.languages.pairs(terms)] if self.languages is not None else []
        if self.literals is None and not self.substrings:
            return pairs
        kind = _kinds(terms, self.literals.suffixes if self.literals else (), longest)
        if self.literals is not None:
            hashes = hash_spans(terms.text, terms.start, terms.end, TEXT_SEED)
            pairs.append(self.literals.pairs(terms.text, terms.start, terms.end, hashes, kind))
        for change, automaton in self.substrings.items():
            is_asked = terms.kind == LITERAL_KIND if automaton.of_literals else terms.kind != BLANK_KIND
            rows: Ids = np.flatnonzero(is_asked).astype(np.int32)
            pairs.append(automaton.pairs(*changed(change, terms, rows), rows, kind))
        return pairs

    @classmethod
    def union(
        cls, tables: Sequence[Tests], used: Sequence[NDArray[np.integer[Any]]] | None = None
    ) -> tuple[Tests, list[Ids]]:
        """One table for several, and for each of them the new number of each test. Equal tests become one; a residual
        test stays one of its own. Of each table only the tests `used` are taken; the others have the number -1."""
        taken: Sequence[NDArray[np.integer[Any]]]
        taken = [np.arange(len(table)) for table in tables] if used is None else used
        indexed = [chosen[table.kind[chosen] != RESIDUAL] for table, chosen in zip(tables, taken, strict=True)]
        specs = [table.specs.take(chosen).names(_SEED) for table, chosen in zip(tables, indexed, strict=True)]
        whole, new = Names.union(specs, [np.arange(len(chosen)) for chosen in indexed])
        numbers = [np.full(len(table), -1, np.int32) for table in tables]
        for number, chosen, new_numbers in zip(numbers, indexed, new, strict=True):
            number[chosen] = new_numbers
        count = len(whole)
        for table, chosen, number in zip(tables, taken, numbers, strict=True):
            residual = chosen[table.kind[chosen] == RESIDUAL]
            number[residual] = count + np.arange(len(residual))
            count += len(residual)
        residual_ends = np.full(count - len(whole), whole.offset[-1])
        return build(Strings(whole.text, np.concatenate((whole.offset, residual_ends)))), numbers


_SEED = 0  # of the hashes of specs, which are not kept


class TestTable:
    """Collects the tests of a segment. The same test has one number."""

    __test__ = False  # no case for pytest

    def __init__(self) -> None:
        self._specs: list[bytes] = []
        self._words: dict[str, int] = {}
        self._known: dict[Test, int] = {}
        self._indexed: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._specs)

    def add(self, test: Test) -> int:
        """The number of the test."""
        if type(test) is FullText:
            expression = test.expression
            if type(expression) is Word and expression.analyzer == DEFAULT:
                return self.word(expression.word)
        number = self._known.get(test)
        if number is None:
            test_postings = postings(test)
            if test_postings is None:
                self._specs.append(b"")
                number = len(self._specs) - 1
            elif len(test_postings) == 1 and test_postings[0][0] == "w":
                number = self.word(str(test_postings[0][1]))
            else:
                number = self.add_spec(spec_of(test_postings))
            self._known[test] = number
        return number

    def add_spec(self, spec: bytes) -> int:
        """The number of the test of these postings, which are not those of a word alone."""
        return self._number(spec, self._indexed, spec)

    def word(self, word: str) -> int:
        """The number of the test for a word of the default analyser."""
        number = self._words.get(word)
        return self._number(word, self._words, b"w" + to_bytes(word)) if number is None else number

    def _number(self, key: T, numbers: dict[T, int], spec: bytes) -> int:
        """The number of a test by its key; a new one where it is not known."""
        number = numbers.setdefault(key, len(self._specs))
        if number == len(self._specs):
            self._specs.append(spec)
        return number

    def specs(self) -> Strings:
        """What `build` makes the table of, as it is now."""
        return Strings.of(self._specs)


def spec_of(test_postings: Sequence[Posting]) -> bytes:
    """Postings in JSON."""
    return json.dumps(test_postings, separators=(",", ":")).encode("ascii")


def build(specs: Strings) -> Tests:
    """The table of tests that were made of these."""
    length = np.diff(specs.offset)
    kind = np.where(length > 0, INDEXED, RESIDUAL).astype(np.uint8)
    first = np.zeros(len(specs), np.uint8)
    first[length > 0] = specs.text[specs.offset[:-1][length > 0]]
    by_kind: dict[str, list[tuple[Posting, int]]] = {}
    for test in np.flatnonzero((length > 0) & (first != _WORD)).tolist():
        for posting in json.loads(specs[test]):
            by_kind.setdefault(posting[0], []).append((tuple(posting), test))

    def of(*names: str) -> list[tuple[Posting, int]]:
        return [pair for name in names for pair in by_kind.get(name, ())]

    group, rank = np.full(len(specs), -1, np.int32), np.full(len(specs), -1, np.int32)
    op = np.zeros(len(specs), np.uint8)
    scales, range_tests = collect_scales(of("n", "i", "N", "M"))
    for test, its_group, its_op, its_rank in range_tests:
        kind[test], group[test], op[test], rank[test] = RANGE, its_group, OPS.index(its_op), its_rank
    rows = np.flatnonzero(first == _WORD)
    of_words = specs.take(rows)
    is_word = np.ones(len(of_words.text), np.bool_)  # all bytes but the first of each
    is_word[of_words.offset[:-1]] = False
    words = Strings(of_words.text[is_word], of_words.offset - np.arange(len(of_words.offset)))
    return Tests(
        kind,
        group,
        op,
        rank,
        1 + max((max(scale.earlier, scale.unequal) for scale in scales), default=-1),
        specs,
        collect_words((words, rows.astype(np.int32)), of("w", "p", "W", "P")),
        collect_substrings(of("s")),
        collect_literals(of("t", "e")),
        Languages.collect(of("l")),
        scales,
        Classes.collect(of("c")),
    )


def _kinds(terms: Terms, wanted: tuple[str, ...], longest: int) -> Ids:
    """Of each term what postings tell it by: its kind, and beside it the number of its suffix among those wanted."""
    of_literals = _kinds_of_literals(terms.suffixes, wanted)
    kind: Ids = np.where(
        terms.kind == LITERAL_KIND, of_literals[terms.suffix], np.int32(AN_IRI) * (terms.kind == IRI_KIND)
    )
    if len(terms.text) > longest:
        for row in np.flatnonzero((terms.end - terms.start > longest) & (kind > 0)).tolist():
            if len(text_of(terms, row)) > longest:
                kind[row] |= TOO_LONG
    if terms.text.tobytes().find(b"\xed") >= 0:  # half a surrogate pair is 0xED and a byte from 0xA0 on
        halves = np.flatnonzero(terms.text[:-1] == 0xED)
        halves = halves[terms.text[halves + 1] >= 0xA0]
        kind[np.searchsorted(halves, terms.end) > np.searchsorted(halves, terms.start)] |= HALVED
    return kind


@cached_if_short(256, FEW_SUFFIXES)
def _kinds_of_literals(suffixes: tuple[str, ...], wanted: tuple[str, ...]) -> Ids:
    """The kinds of literals by their suffix."""
    number = {suffix: place for place, suffix in enumerate(wanted, 1)}
    kinds = np.where(is_plain(suffixes), TEXT_LITERAL, OTHER_LITERAL).astype(np.int32)
    kinds += np.array([SUFFIX * number.get(suffix, 0) for suffix in suffixes], np.int32)
    return kinds
