"""Subscriptions in disjunctive normal form as flat arrays, independent of any matcher. Never changed once made.

`triplewire.clauses.builder` makes them of subscriptions, `triplewire.clauses.merge` of other clauses. An index over
them is in `triplewire.select`; `triplewire.verify` decides what an index leaves open.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.calls import RequiredCalls
from triplewire.clauses.facts import Facts
from triplewire.clauses.mapped_zeros import compact_zeros
from triplewire.clauses.node_tests.classes import Classes
from triplewire.clauses.node_tests.columns import Arrays, Strings, flat, unflat
from triplewire.clauses.node_tests.few import FewTerms
from triplewire.clauses.node_tests.languages import Languages
from triplewire.clauses.node_tests.lookup import Literals, Lookup
from triplewire.clauses.node_tests.ranges import Scale, ScaleTests
from triplewire.clauses.node_tests.substrings import Substrings
from triplewire.clauses.node_tests.table import Tests
from triplewire.clauses.node_tests.words import WordTests
from triplewire.clauses.table import ClauseTable
from triplewire.encode.names import Names
from triplewire.ir.fulltext.nodes import Analyzer

VERSION = 17  # of what is saved: the arrays, and the names of the classes and fields that hold them
CLASSES = (
    *(ClauseTable, Facts, RequiredCalls, Names, Strings, Tests, Lookup, Literals, Substrings, Languages, Classes),
    *(WordTests, Analyzer, ScaleTests, Scale),
)


@dataclass(frozen=True)
class Clauses:
    """The subscriptions 0 .. n-1. `constants` are the terms in patterns, `tests` the conditions on single nodes,
    `asked` the operator calls that have to hold."""

    constants: Names
    tests: Tests
    table: ClauseTable
    facts: Facts
    asked: RequiredCalls

    def __len__(self) -> int:
        return len(self.table)

    @classmethod
    def of(cls, constants: Names, tests: Tests, table: ClauseTable, asked: RequiredCalls) -> Clauses:
        """The clauses of a table, with the facts worked out."""
        table = table.compact()
        return cls(constants, tests, table, Facts.of(table), asked)

    @property
    def count(self) -> int:
        """How many clauses there are."""
        return len(self.facts.owner)

    @cached_property
    def few_terms(self) -> FewTerms:
        """What looks up the terms of a few publications."""
        return FewTerms(self.constants, self.tests)

    @cached_property
    def have_alternatives(self) -> bool:
        """Has some subscription several clauses?"""
        return bool(self.has_alternatives.any())

    @cached_property
    def has_alternatives(self) -> NDArray[np.bool_]:
        """Subscription -> has it several clauses?"""
        several: NDArray[np.bool_] = np.diff(self.table.clause_offset) > 1
        return compact_zeros(several)

    @cached_property
    def _residual_places(self) -> dict[int, int]:
        """Residual test -> a place in `table.test` where it stands."""
        where = np.flatnonzero(np.asarray(self.tests.is_residual)[self.table.test])
        test, first = np.unique(self.table.test[where], return_index=True)
        return dict(zip(test.tolist(), where[first].tolist(), strict=True))

    def place(self, test: int) -> tuple[int, int, int]:
        """Where a residual test is stated: (subscription, its clause from 0, the clause's test from 0)."""
        table, at = self.table, self._residual_places[test]
        clause = int(np.searchsorted(table.test_offset, at, side="right")) - 1
        subscription = int(np.searchsorted(table.clause_offset, clause, side="right")) - 1
        first = int(table.clause_offset[subscription])
        return subscription, clause - first, at - int(table.test_offset[clause])

    def arrays(self) -> Arrays:
        """All of it as flat arrays, for `from_arrays`."""
        return flat(self)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Clauses:
        """What `arrays` gave, without a copy: they may be memory maps. Raises `KeyError` or `ValueError`."""
        clauses: Clauses = unflat(arrays, (cls, *CLASSES))
        return clauses

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(column.nbytes for column in self.arrays().values())
