"""What the terms of a few publications are to clauses that ask for nothing but terms and words.

It is what `triplewire.clauses.features` says of any number of publications, and any tests: in one call, in work areas
that stay, since for a publication alone the calls take longer than the work.
"""

from __future__ import annotations

import numpy as np

from triplewire.clauses.node_tests.lookup import Lookup
from triplewire.clauses.node_tests.postings import DEFAULT
from triplewire.clauses.node_tests.table import Tests
from triplewire.encode.batch import Batch, Ids, Offsets
from triplewire.encode.columns import table_of
from triplewire.encode.names import Names
from triplewire.kernels.pool import Pool
from triplewire.kernels.shared.columns import fixed
from triplewire.kernels.shared.lending import Lent
from triplewire.kernels.text import asked as kernels

MOST_TERMS, MOST_WORDS = 1 << 10, 1 << 12
"""Of a batch for which there is room; `MOST_WORDS` are distinct ones."""

_NOTHING = fixed(np.zeros(0, np.uint8), np.zeros(0, np.int32), np.zeros(0, np.int64))


class FewTerms:
    """The constants and the words of some clauses, ready to be looked up. Any thread may ask it."""

    def __init__(self, constants: Names, words: Lookup, tests: int) -> None:
        self._constants, self._words, self._tests = constants, words, tests
        self._areas: Pool[Lent] = Pool()

    @classmethod
    def of(cls, constants: Names, tests: Tests) -> FewTerms | None:
        """None where tests ask for more than words by the default analyser."""
        others = tests.substrings, tests.literals, tests.languages, tests.classes
        if tests.scales or len(tests.words) != 1 or any(other is not None for other in others):
            return None
        words = tests.words[0]
        if words.analyzer != DEFAULT or words.prefixes is not None or words.words is None:
            return None
        return cls(constants, words.words, len(tests))

    def look_up(self, batch: Batch) -> tuple[Ids, Offsets, Ids] | None:
        """`term`, `offset` and `test` of Features; None where the batch is too large."""
        _, terms, words, word_ids = batch.sizes
        if terms > MOST_TERMS or words > MOST_WORDS:
            return None
        term, offset = np.empty(terms, np.int32), np.empty(terms + 1, np.int64)
        test = np.empty(word_ids + 1, np.int32)  # seldom more: a word is seldom in two tests
        areas = self._areas.take(self._new_areas)
        count = kernels.look_up(areas.table, table_of(batch), term, offset, test)
        self._areas.give(areas)
        return (term, offset, test[:count]) if count < len(test) else None

    def _new_areas(self) -> Lent:
        words, seen = self._words, np.zeros(self._tests + 1, np.int32)
        areas = kernels.Areas(np.empty(MOST_WORDS, np.int32), np.empty(MOST_WORDS, np.int32), seen, *_NOTHING)
        postings = kernels.WordPostings(*fixed(words.offset, words.test))
        return Lent(kernels.LENT, self._constants.table, words.names.table, postings, areas)
