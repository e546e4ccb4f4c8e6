"""A batch of publications in the eyes of some clauses: the batch, and which of their tests its terms satisfy."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.clauses import Clauses
from triplewire.clauses.node_tests.classes import ClassFeatures
from triplewire.clauses.node_tests.ranges import places
from triplewire.clauses.node_tests.table import Tests
from triplewire.clauses.node_tests.words import gathered, words_by
from triplewire.encode.batch import Batch, Ids, Offsets
from triplewire.encode.names import Names, find_terms
from triplewire.ir.evaluation.evaluate import World
from triplewire.kernels.shared.columns import TermFeatures


@dataclass(slots=True)
class Features:
    """A batch in the eyes of one segment. A test is satisfied by a term when it is in the term's slice of `test`, or in
    the publication's slice of `node_*`, or is a range test whose interval covers it.

    Range tests: each belongs to a range group and has a rank, the place of its constant among the group's distinct
    constants in ascending order. `low` counts the constants below the term's value, `high` those below or equal;
    both are -1 where the term has no value of the group's kind. So `> c` holds for ranks < low, `>= c` for ranks <
    high, `< c` for ranks >= high, `<= c` for ranks >= low, `!= c` for all but low .. high - 1. A test for `=` is no
    range test.
    """

    term: Ids  # batch term -> the segment's term id, or -1
    offset: Offsets  # batch term -> its slice of `test`; one longer than the terms
    test: Ids  # test ids, each once in a slice (`triplewire.clauses.kernels.pairs`); neither range nor residual tests
    low: NDArray[np.int32]  # shape (groups, terms)
    high: NDArray[np.int32]
    node_offset: Offsets  # publication -> its slice of `node_term` and `node_test`; all zero where no test asks for it
    node_term: Ids  # batch terms, ascending within a slice: what holds of a node in this publication only (classes)
    node_test: Ids  # ascending for each term

    @property
    def columns(self) -> TermFeatures:
        """The features as kernels take them."""
        return TermFeatures(
            self.term, self.offset, self.test, self.node_offset, self.node_term, self.node_test, self.low, self.high
        )

    def part(self, first: int, last: int) -> Features:
        """The features of the publications first .. last - 1 of the batch alone (`Batch.part`)."""
        begin, end = self.node_offset[first], self.node_offset[last]
        return replace(
            self,
            node_offset=self.node_offset[first : last + 1] - begin,
            node_term=self.node_term[begin:end],
            node_test=self.node_test[begin:end],
        )


def features(batch: Batch, terms: Names, tests: Tests, world: World) -> Features:
    """What the batch is to a segment with these constants and tests."""
    slices = [table.slices(words_by(table.analyzer, batch.words, batch.terms), len(tests)) for table in tests.words]
    pairs = tests.pairs_of_texts(batch.terms, world.settings.max_literal_bytes)
    (low, high), points = places(batch, tests.scales, tests.groups)
    pairs += points
    node_offset, node_term, node_test = np.zeros(len(batch) + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int32)
    if tests.classes is not None:
        classes = ClassFeatures(batch, tests.classes.index(world.taxonomy))
        slices.append(classes.slices())
        node_offset, node_term, node_test = classes.stated(len(batch))
    offset, test = gathered(slices, pairs, len(batch.terms), len(tests))
    return Features(find_terms(terms, batch.terms), offset, test, low, high, node_offset, node_term, node_test)


@dataclass(eq=False, slots=True)
class View:
    """What selection and verification look at. What the terms satisfy is looked up when it is first asked for; an index
    that has found it out by itself may set `known_features`."""

    batch: Batch
    clauses: Clauses
    world: World
    known_features: Features | None = None

    @property
    def features(self) -> Features:
        """Which tests of the clauses the terms satisfy."""
        if self.known_features is None:
            clauses = self.clauses
            if columns := clauses.few_terms.look_up(self.batch, self.world):
                self.known_features = Features(*columns)
            else:
                self.known_features = features(self.batch, clauses.constants, clauses.tests, self.world)
        return self.known_features

    def __len__(self) -> int:
        """How many publications there are."""
        return len(self.batch)

    def part(self, batch: Batch, first: int, last: int) -> View:
        """The publications first .. last - 1, which are all of `batch`."""
        return View(batch, self.clauses, self.world, self.features.part(first, last))
