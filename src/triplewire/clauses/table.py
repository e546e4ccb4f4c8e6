"""The clauses of subscriptions as flat columns: what indexes are built from, and what verification joins.

A term id is a position in the table of constants, a test id in the table of tests (`triplewire.clauses.clauses`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from triplewire.clauses.mapped_zeros import compact_zeros
from triplewire.encode.batch import Bytes, Ids
from triplewire.errors import LimitError
from triplewire.kernels.shared.columns import ClauseColumns, fixed

EXACT = 1  # flag of a subscription: its clauses are equivalent to it (`triplewire.ir.normal_form.clauses`)
ASK = 2  # flag: one empty binding
DISTINCT = 4  # flag: two different solutions of a clause are two different bindings (all its variables are selected)
CALLS = 8  # flag: operators decide in the end (`triplewire.verify.operators`)

MOST_ROWS = 1 << 27
"""Clauses, patterns and tests that a table may have, of each so many. An index has up to twelve times as many places,
which have numbers of 32 bits."""


def too_many_rows() -> LimitError:
    """The error of a table that would have more rows than it may have."""
    return LimitError(
        f"an index would have more than {MOST_ROWS:,} clauses, patterns or tests",
        remedy="divide the subscriptions between several engines; save without the index (index=False)",
    )


@dataclass(frozen=True)
class ClauseTable:
    """The clauses of the subscriptions 0 .. n-1, with their patterns and tests.

    A position of a pattern is a term id >= 0, or -1 - v for the variable v of the clause. In every clause the selected
    variables come first, in the order of the selection: v < selected[subscription]; one that stands in no pattern of a
    clause is unbound there.
    """

    clause_offset: Ids  # subscription -> its slice of the clauses
    pattern_offset: Ids  # clause -> its slice of the patterns
    pattern: Ids  # shape (patterns, 3)
    test_offset: Ids  # clause -> its slice of the tests
    test_variable: Ids
    test: Ids  # test ids
    variables: Ids  # clause -> how many variables it has, the selected ones counted
    selected: Ids  # subscription -> how many variables it selects; 0 for ASK
    flags: Bytes  # subscription -> EXACT | ASK | DISTINCT | CALLS

    def __len__(self) -> int:
        return len(self.flags)

    @cached_property
    def columns(self) -> ClauseColumns:
        """The clauses as kernels take them."""
        return ClauseColumns(*fixed(self.pattern_offset, self.pattern, self.test_offset, self.test_variable, self.test))

    @cached_property
    def width(self) -> Ids:
        """Subscription -> how many of its variables bindings have; 0 where one solution is enough, as evaluation goes
        on from there."""
        exact = (self.flags & EXACT) != 0
        width = self.selected if exact.all() else np.where(exact, self.selected, 0)
        return width.astype(np.int32, copy=False)  # that of the file, where it can be

    @property
    def rows(self) -> int:
        """How many clauses, patterns or tests there are, whatever are most."""
        return max(len(self.variables), len(self.pattern), len(self.test))

    def owners(self) -> Ids:
        """The subscription of each clause: where each has one clause, a part of `clause_offset`."""
        own = np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.clause_offset))
        return self.clause_offset[:-1] if np.array_equal(own, self.clause_offset[:-1]) else own

    def compact(self) -> ClauseTable:
        """The table with one array for columns that are equal, and without memory for columns of zeros."""
        same = np.array_equal(self.variables, self.selected)
        return replace(
            self,
            test_offset=compact_zeros(self.test_offset),
            variables=self.selected if same else self.variables,
            selected=compact_zeros(self.selected),
        )
