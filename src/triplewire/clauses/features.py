"""Which tests of a segment do the terms of a batch satisfy? The bridge from strings to ids.

The tests themselves: `triplewire.clauses.node_tests.table`. What is done with the answers:
`triplewire.select.trie.build` and `triplewire.verify.columnar`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.node_tests.lookup import TEXT_SEED
from triplewire.clauses.node_tests.postings import AN_IRI, HALVED, OTHER_LITERAL, SUFFIX, TEXT_LITERAL, TOO_LONG
from triplewire.clauses.node_tests.stated import ClassFeatures
from triplewire.clauses.node_tests.substrings import Pairs, changed
from triplewire.clauses.node_tests.table import Tests
from triplewire.clauses.node_tests.values import places
from triplewire.clauses.node_tests.views import text_of
from triplewire.clauses.node_tests.words import gathered, words_by
from triplewire.encode.batch import BLANK_KIND, IRI_KIND, LITERAL_KIND, Batch, Hashes, Ids, Offsets, Terms
from triplewire.encode.names import Names, find_terms
from triplewire.encode.text import has_text
from triplewire.ir.evaluation.evaluate import World
from triplewire.kernels.shared.columns import TermFeatures
from triplewire.kernels.text.names import hash_spans


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
    test: Ids  # test ids, each once in a slice (`triplewire.kernels.pairs`); neither range nor residual tests
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
        """The same for the publications first .. last - 1 of the batch alone (`Batch.part`)."""
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
    pairs = _of_texts(batch.terms, tests, world.settings.max_literal_bytes)
    (low, high), points = places(batch, tests.scales, tests.groups)
    pairs += points
    node_offset, no_ids = np.zeros(len(batch) + 1, np.int64), np.zeros(0, np.int32)
    node_term, node_test = no_ids, no_ids
    if tests.classes is not None:
        classes = ClassFeatures(batch, tests.classes.index(world.taxonomy))
        of_terms, of_nodes = classes.known() or (classes.slices(), classes.stated(len(batch)))
        slices.append(of_terms)
        node_offset, node_term, node_test = of_nodes
    offset, test = gathered(slices, pairs, len(batch.terms), len(tests))
    return Features(find_terms(terms, batch.terms), offset, test, low, high, node_offset, node_term, node_test)


def _text_hashes(terms: Terms) -> Hashes:
    hashes: Hashes = hash_spans(terms.text, terms.start, terms.end, TEXT_SEED)
    return hashes


def _of_texts(terms: Terms, tests: Tests, longest: int) -> list[Pairs]:
    """The tests that ask for a text, a part of one, or a language."""
    pairs = [tests.languages.pairs(terms)] if tests.languages is not None else []
    if tests.literals is not None or tests.substrings:
        kind = _kinds(terms, tests.literals.suffixes if tests.literals else (), longest)
        if tests.literals is not None:
            pairs.append(tests.literals.pairs(terms.text, terms.start, terms.end, _text_hashes(terms), kind))
        for change, automaton in tests.substrings.items():
            rows = np.flatnonzero(terms.kind == LITERAL_KIND if automaton.of_literals else terms.kind != BLANK_KIND)
            row_ids: Ids = rows.astype(np.int32)
            pairs.append(automaton.pairs(*changed(change, terms, row_ids), row_ids, kind))
    return pairs


def _kinds(terms: Terms, wanted: tuple[str, ...], longest: int) -> Ids:
    """Of each term what postings tell it by: its kind, and beside it the number of its suffix among those wanted."""
    number = {suffix: at for at, suffix in enumerate(wanted, 1)}
    suffix = np.array([SUFFIX * number.get(suffix, 0) for suffix in terms.suffixes], np.int32)[terms.suffix]
    literal, texts = terms.kind == LITERAL_KIND, has_text(terms.kind, terms.suffix, terms.suffixes)
    kind = np.where(literal, np.where(texts, TEXT_LITERAL, OTHER_LITERAL) + suffix, 0)
    kind[terms.kind == IRI_KIND] = AN_IRI
    for row in np.flatnonzero((terms.end - terms.start > longest) & (kind > 0)).tolist():
        if len(text_of(terms, row)) > longest:
            kind[row] |= TOO_LONG
    halves = np.flatnonzero(terms.text[:-1] == 0xED)  # few are there, so the rest is asked of them alone
    halves = halves[terms.text[halves + 1] >= 0xA0]
    if len(halves):
        kind[np.searchsorted(halves, terms.end) > np.searchsorted(halves, terms.start)] |= HALVED
    return kind.astype(np.int32)
