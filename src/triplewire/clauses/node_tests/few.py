"""The terms of a few publications, looked up in one call and in work areas that stay: for a publication alone, the
calls take longer than the work.

It is what `triplewire.clauses.features` says of any number of publications. Constants, words and their prefixes by the
default analyser, classes and lenient numbers are looked up by the call itself. Other tests are looked up before, as for
many publications, and given to it.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from triplewire.clauses.node_tests.class_features import TYPE_NAME
from triplewire.clauses.node_tests.classes import ClassIndex
from triplewire.clauses.node_tests.lookup import TEXT_SEED, Lookup
from triplewire.clauses.node_tests.postings import DEFAULT
from triplewire.clauses.node_tests.ranges import ScaleTests
from triplewire.clauses.node_tests.substrings import Substrings
from triplewire.clauses.node_tests.table import Tests
from triplewire.clauses.node_tests.texts import tests_of_texts
from triplewire.clauses.node_tests.values import places
from triplewire.clauses.node_tests.words import WordTests, words_by
from triplewire.encode.batch import Batch, Ids, Offsets
from triplewire.encode.columns import table_of
from triplewire.encode.names import Names
from triplewire.ir.evaluation.evaluate import World
from triplewire.kernels import few_terms as kernels
from triplewire.kernels.classes import KnownSets
from triplewire.kernels.few_terms import MOST_TERMS, MOST_TRIPLES
from triplewire.kernels.pool import Pool
from triplewire.kernels.shared.columns import fixed
from triplewire.kernels.shared.lending import Lent

MOST_WORDS, MOST_PUBLICATIONS = 1 << 12, 1 << 10
"""Distinct words, and publications, of a batch for which there is room."""

_ROOM = 1 << 16  # tests, and numbers of nodes, for which there is room
_BYTES, _IDS, _LONGS = np.zeros(0, np.uint8), np.zeros(0, np.int32), np.zeros(0, np.int64)
_NO_STRINGS = Names.build([], TEXT_SEED)
_NO_SETS = KnownSets(_IDS, _IDS, _IDS, _BYTES, _LONGS, _IDS)
_NO_PREFIXES = kernels.PrefixPostings(_IDS, _BYTES, _IDS, _LONGS, _IDS)
_NO_SCALE = kernels.NumberScale(np.zeros(0), _LONGS, _LONGS, _IDS)


FeatureColumns: TypeAlias = tuple[Ids, Offsets, Ids, Ids, Ids, Offsets, Ids, Ids]
"""The fields of `triplewire.clauses.features.Features`, in their order."""


class Work(NamedTuple):
    """What a call needs: the table of all that it takes (`triplewire.kernels.few_terms.look_up`), its work areas, and
    what is known of classes."""

    lent: Lent
    areas: kernels.Areas
    known: KnownSets

    def copied(self, batch: Batch, tests: int, nodes: int) -> FeatureColumns:
        """What the call found of a batch, so many tests of terms and of nodes, in memory of its own."""
        areas, terms, publications = self.areas, batch.sizes.terms, len(batch)
        return (
            areas.term[:terms].copy(),
            areas.offset[: terms + 1].copy(),
            areas.test[:tests].copy(),
            areas.low[:, :terms].copy(),
            areas.high[:, :terms].copy(),
            areas.node_offset[: publications + 1].copy(),
            areas.node_term[:nodes].copy(),
            areas.node_test[:nodes].copy(),
        )


class FewTerms:
    """The constants and tests of some clauses, ready to be looked up. Any thread may ask it."""

    def __init__(self, constants: Names, tests: Tests) -> None:
        self._constants, self._tests = constants, tests
        self._words: Lookup | None = None
        self._prefixes: Substrings | None = None
        self._numbers: ScaleTests | None = None
        self._other_words: list[WordTests] = []
        self._other_scales: list[ScaleTests] = []
        for words in tests.words:
            if words.analyzer == DEFAULT:
                self._words, self._prefixes = words.words, words.prefixes
            else:
                self._other_words.append(words)
        for scale in tests.scales:
            if scale.scale.key[0] == "n":
                self._numbers = scale
            else:
                self._other_scales.append(scale)
        groups = [group for scale in self._other_scales for group in (scale.later, scale.earlier, scale.unequal)]
        self._other_groups = [group for group in dict.fromkeys(groups) if group >= 0]
        asks_for_texts = tests.substrings or tests.literals is not None or tests.languages is not None
        self._has_others = bool(asks_for_texts or self._other_words or self._other_scales)
        self._pool: Pool[Work] = Pool()
        self.give = self._pool.give

    def look_up(self, batch: Batch, world: World) -> FeatureColumns | None:
        """What the batch is to the clauses; None where it is too large, or something has to be found out first."""
        work = self.work_for(batch, world)
        if work is None:
            return None
        tests, nodes = kernels.look_up(work.lent.table, table_of(batch))
        columns = work.copied(batch, tests, nodes) if tests >= 0 else None
        self.give(work)
        return columns

    def work_for(self, batch: Batch, world: World) -> Work | None:
        """What a call that looks up this batch needs, to be given back after it; None as for `look_up`."""
        triples, terms, words, _ = batch.sizes
        if terms > MOST_TERMS or words > MOST_WORDS or triples > MOST_TRIPLES or len(batch) > MOST_PUBLICATIONS:
            return None
        classes = self._tests.classes.index(world.taxonomy) if self._tests.classes is not None else None
        known = classes.known_sets() if classes is not None else _NO_SETS
        if known is None:
            return None
        work = self._pool.take(lambda: self._new_work(classes, known))
        if work.known.flat is not known.flat:  # more has been found out since, or the taxonomy is another one
            work = self._new_work(classes, known)
        if self._has_others and not self._look_up_others(batch, world, work.areas):
            self.give(work)
            return None
        return work

    def _look_up_others(self, batch: Batch, world: World, areas: kernels.Areas) -> bool:
        """Put what the call does not look up into the work areas. False where there is no room."""
        tests, terms = self._tests, batch.terms
        pairs = tests_of_texts(terms, tests, world.settings.max_literal_bytes)
        if self._other_scales:
            (low, high), points = places(batch, self._other_scales, tests.groups)
            pairs += points
            for group in self._other_groups:
                areas.low[group, : len(terms)], areas.high[group, : len(terms)] = low[group], high[group]
        for table in self._other_words:
            offset, test = table.slices(words_by(table.analyzer, batch.words, terms), len(tests))
            pairs.append((np.repeat(np.arange(len(terms), dtype=np.int32), np.diff(offset)), test))
        pairs = [pair for pair in pairs if len(pair[0])]
        areas.others[0] = count = sum(len(test) for _, test in pairs)
        if 0 < count <= len(areas.other_test):
            term = np.concatenate([term for term, _ in pairs])
            order = np.argsort(term, kind="stable")
            areas.other_term[:count] = term[order]
            areas.other_test[:count] = np.concatenate([test for _, test in pairs])[order]
        return count <= len(areas.other_test)

    def _new_work(self, classes: ClassIndex | None, known: KnownSets) -> Work:
        kinds, none = 0, _NO_STRINGS.table
        words, postings, names = none, kernels.WordPostings(_LONGS, _IDS), none
        prefixes, scale, groups = _NO_PREFIXES, _NO_SCALE, (-1, -1)
        if self._words is not None:
            kinds |= kernels.WORDS
            words = self._words.names.table
            postings = kernels.WordPostings(*fixed(self._words.offset, self._words.test))
        if (trie := self._prefixes) is not None:
            kinds |= kernels.PREFIXES
            prefixes = kernels.PrefixPostings(*fixed(trie.first, trie.label, trie.end, trie.offset, trie.test))
        if classes is not None:
            kinds |= kernels.CLASSES
            names = classes.names[0].table
        if self._numbers is not None:
            kinds |= kernels.NUMBERS
            scale, groups = _scale_of(self._numbers), (self._numbers.later, self._numbers.unequal)
        areas = _new_areas(len(self._tests), self._tests.groups)
        asked = kernels.LookUpQuery(kinds, TEXT_SEED, TYPE_NAME, *groups)
        parts = asked, self._constants.table, words, postings, prefixes, names, known, scale, areas
        return Work(Lent(kernels.LENT, *parts), areas, known)


def _scale_of(numbers: ScaleTests) -> kernels.NumberScale:
    scale = numbers.scale
    return kernels.NumberScale(*fixed(scale.keys, scale.inexact, numbers.point_offset, numbers.point_test))


def _new_areas(tests: int, groups: int) -> kernels.Areas:
    def ids(size: int) -> Ids:
        return np.empty(size, np.int32)

    return kernels.Areas(
        ids(MOST_WORDS), ids(MOST_WORDS), np.zeros(tests + 1, np.int32), _BYTES, _IDS, _LONGS,
        np.empty(MOST_TERMS + 1, np.int64), ids(_ROOM), np.empty(MOST_TERMS, np.uint64),
        np.empty((3, MOST_TERMS), np.int32), np.empty((4, MOST_TRIPLES), np.int32),
        np.zeros(4 * MOST_TRIPLES, np.uint64), np.empty(MOST_TERMS + 1, np.int64), ids(_ROOM), ids(MOST_TERMS),
        ids(MOST_TERMS), ids(MOST_TERMS), ids(_ROOM), ids(_ROOM), np.zeros(1, np.int64),
        ids(MOST_TERMS), np.empty(MOST_TERMS + 1, np.int64), ids(_ROOM), np.empty(MOST_PUBLICATIONS + 1, np.int64),
        ids(_ROOM), ids(_ROOM), *np.empty((2, groups, MOST_TERMS), np.int32),
    )  # fmt: skip
