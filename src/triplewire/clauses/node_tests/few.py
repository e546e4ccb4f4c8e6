"""The terms of a few publications, looked up in one call and in work areas that stay.

For a publication alone, the calls take longer than the work. It is what `triplewire.clauses.view` says of any number of
publications. Constants, words and their prefixes by the default analyser, classes and lenient numbers are looked up by
the call itself. Other tests are looked up before, as for many publications, and handed to it.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from triplewire.clauses.kernels import few_terms as kernels
from triplewire.clauses.kernels.classes import KnownSets
from triplewire.clauses.kernels.few_terms import MOST_TERMS, MOST_TRIPLES
from triplewire.clauses.node_tests.classes import TYPE_NAME, ClassIndex
from triplewire.clauses.node_tests.lookup import TEXT_SEED
from triplewire.clauses.node_tests.postings import DEFAULT
from triplewire.clauses.node_tests.ranges import places
from triplewire.clauses.node_tests.table import Tests
from triplewire.clauses.node_tests.words import words_by
from triplewire.encode.batch import Batch, Ids, Offsets
from triplewire.encode.names import Names, suffix_columns
from triplewire.ir.evaluation.evaluate import World
from triplewire.kernels.shared.columns import BatchColumns, Lent, fixed
from triplewire.memory import Pool

MOST_WORDS, MOST_PUBLICATIONS = 1 << 12, 1 << 10
"""Distinct words, and publications, of a batch for which there is room."""

_ROOM = 1 << 16  # tests, and numbers of nodes, for which there is room
_BYTES, _IDS, _LONGS = np.zeros(0, np.uint8), np.zeros(0, np.int32), np.zeros(0, np.int64)
_NO_STRINGS = Names.build([], TEXT_SEED).table
_NO_SETS = KnownSets(_IDS, _IDS, _IDS, _BYTES, _LONGS, _IDS)

FeatureColumns: TypeAlias = tuple[Ids, Offsets, Ids, Ids, Ids, Offsets, Ids, Ids]
"""The fields of `triplewire.clauses.view.Features`, in their order."""


class _Work(NamedTuple):
    """What a call needs: the table of all that it takes, its work areas, and what is known of classes."""

    lent: Lent
    areas: kernels.Areas
    known: KnownSets

    def copied(self, batch: Batch, tests: int, nodes: int) -> FeatureColumns:
        """What the call found of a batch, so many tests of terms and of nodes, in memory of its own."""
        areas, terms = self.areas, len(batch.terms)
        return (
            areas.term[:terms].copy(),
            areas.offset[: terms + 1].copy(),
            areas.test[:tests].copy(),
            areas.low[:, :terms].copy(),
            areas.high[:, :terms].copy(),
            areas.node_offset[: len(batch) + 1].copy(),
            areas.node_term[:nodes].copy(),
            areas.node_test[:nodes].copy(),
        )


class FewTerms:
    """The constants and tests of some clauses, ready to be looked up. Any thread may ask it."""

    def __init__(self, constants: Names, tests: Tests) -> None:
        self._constants, self._tests = constants, tests
        self._words = next((table for table in tests.words if table.analyzer == DEFAULT), None)
        self._numbers = next((scale for scale in tests.scales if scale.scale.key[0] == "n"), None)
        self._other_words = [table for table in tests.words if table is not self._words]
        self._other_scales = [scale for scale in tests.scales if scale is not self._numbers]
        groups = [group for scale in self._other_scales for group in (scale.later, scale.earlier, scale.unequal)]
        self._other_groups = [group for group in dict.fromkeys(groups) if group >= 0]
        asks_for_texts = tests.substrings or tests.literals is not None or tests.languages is not None
        self._has_others = bool(asks_for_texts or self._other_words or self._other_scales)
        self._pool: Pool[_Work] = Pool()

    def look_up(self, batch: Batch, world: World) -> FeatureColumns | None:
        """What the batch is to the clauses; None where it is too large, or something has to be found out first."""
        terms, words = len(batch.terms), len(batch.words)
        too_many = terms > MOST_TERMS or words > MOST_WORDS or len(batch.subject) > MOST_TRIPLES
        if too_many or len(batch) > MOST_PUBLICATIONS:
            return None
        classes = self._tests.classes.index(world.taxonomy) if self._tests.classes is not None else None
        known = classes.known_sets() if classes is not None else _NO_SETS
        if known is None:
            return None
        work = self._pool.take(lambda: self._new_work(classes, known))
        if work.known.flat is not known.flat:  # more has been found out since, or the taxonomy is another one
            work = self._new_work(classes, known)
        columns = None
        if not self._has_others or self._find_others(batch, world, work.areas):
            tests, nodes = kernels.look_up(work.lent.table, _columns(batch))
            columns = work.copied(batch, tests, nodes) if tests >= 0 else None
        self._pool.give(work)
        return columns

    def _find_others(self, batch: Batch, world: World, areas: kernels.Areas) -> bool:
        """Put what the call does not look up into the work areas. False where there is no room."""
        tests, terms = self._tests, batch.terms
        pairs = tests.pairs_of_texts(terms, world.settings.max_literal_bytes)
        if self._other_scales:
            (low, high), points = places(batch, self._other_scales, tests.groups)
            pairs += points
            for group in self._other_groups:
                areas.low[group, : len(terms)], areas.high[group, : len(terms)] = low[group], high[group]
        for table in self._other_words:
            offset, test = table.slices(words_by(table.analyzer, batch.words, terms), len(tests))
            pairs.append((np.repeat(np.arange(len(terms), dtype=np.int32), np.diff(offset)), test))
        areas.others[0] = count = sum(len(test) for _, test in pairs)
        if 0 < count <= len(areas.other_test):
            term = np.concatenate([term for term, _ in pairs])
            order = np.argsort(term, kind="stable")
            areas.other_term[:count] = term[order]
            areas.other_test[:count] = np.concatenate([test for _, test in pairs])[order]
        return count <= len(areas.other_test)

    def _new_work(self, classes: ClassIndex | None, known: KnownSets) -> _Work:
        words, postings = _NO_STRINGS, kernels.WordPostings(_LONGS, _IDS)
        prefixes = kernels.PrefixPostings(_IDS, _BYTES, _IDS, _LONGS, _IDS)
        columns = np.zeros(0), _LONGS, _LONGS, _IDS
        orders = unequal = -1
        if self._words is not None and (table := self._words.words) is not None:
            words, postings = table.names.table, kernels.WordPostings(*fixed(table.offset, table.test))
        if self._words is not None and (trie := self._words.prefixes) is not None:
            prefixes = kernels.PrefixPostings(*fixed(trie.first, trie.label, trie.end, trie.offset, trie.test))
        if (numbers := self._numbers) is not None:
            scale, orders, unequal = numbers.scale, numbers.later, numbers.unequal
            columns = fixed(scale.keys, scale.inexact, numbers.point_offset, numbers.point_test)
        names = classes.names[0].table if classes is not None else _NO_STRINGS
        areas = _new_areas(len(self._tests), self._tests.groups)
        asked = kernels.Asked(TEXT_SEED, TYPE_NAME, orders, unequal)
        tables = words, postings, prefixes, names, known, kernels.NumberScale(*columns)
        parts = asked, self._constants.table, *tables, areas
        return _Work(Lent(kernels.LENT, *parts), areas, known)


def _columns(batch: Batch) -> BatchColumns:
    terms, words = batch.terms, batch.words
    return BatchColumns(
        batch.offset, batch.subject, batch.predicate, batch.object, terms.text, terms.start, terms.end, terms.kind,
        terms.suffix, *suffix_columns(terms.suffixes), terms.hash, terms.number, terms.number_state, words.offset,
        words.ids, words.text, words.start, words.end, words.hash,
    )  # fmt: skip


def _new_areas(tests: int, groups: int) -> kernels.Areas:
    def ids(size: int) -> Ids:
        return np.empty(size, np.int32)

    return kernels.Areas(
        ids(MOST_WORDS), ids(MOST_WORDS), np.zeros(tests + 1, np.int32), np.empty(MOST_TERMS, np.uint64),
        np.empty((3, MOST_TERMS), np.int32), np.empty((4, MOST_TRIPLES), np.int32),
        np.zeros(4 * MOST_TRIPLES, np.uint64), np.empty(MOST_TERMS + 1, np.int64), ids(_ROOM), ids(MOST_TERMS),
        ids(MOST_TERMS), ids(MOST_TERMS), ids(_ROOM), ids(_ROOM), np.zeros(1, np.int64),
        ids(MOST_TERMS), np.empty(MOST_TERMS + 1, np.int64), ids(_ROOM), np.empty(MOST_PUBLICATIONS + 1, np.int64),
        ids(_ROOM), ids(_ROOM), *np.empty((2, groups, MOST_TERMS), np.int32),
    )  # fmt: skip
