"""Numbers of tests that stay when subscriptions are inserted: those of `Tests` may be others then."""

from __future__ import annotations

import numpy as np

from triplewire.clauses.clauses import Clauses
from triplewire.encode.batch import Ids


class TestNumbers:
    """The tests that some clauses have, numbered in the order in which they came, each known by a place where it
    stands."""

    __test__ = False  # no case for pytest

    def __init__(self) -> None:
        self._place = np.zeros(0, np.int64)  # own number -> a row of `ClauseTable.test`
        self._seen = 0  # rows

    def of(self, clauses: Clauses) -> Ids:
        """Test -> its own number, or -1 where no clause has it. The clauses are those of the last call, and more."""
        test = clauses.table.test
        number = np.full(len(clauses.tests), -1, np.int32)
        number[test[self._place]] = np.arange(len(self._place), dtype=np.int32)
        fresh, first = np.unique(test[self._seen :], return_index=True)
        is_new = number[fresh] < 0
        number[fresh[is_new]] = len(self._place) + np.arange(int(is_new.sum()), dtype=np.int32)
        self._place = np.append(self._place, self._seen + first[is_new])
        self._seen = len(test)
        return number

    def copy(self) -> TestNumbers:
        """The same numbers, to which others come."""
        other = TestNumbers()
        other._place, other._seen = self._place, self._seen
        return other
