"""The matcher "constraint-tables": constraints before joins.

Paper: M. Petrovic, H. Liu, H.-A. Jacobsen, on filtering RDF metadata on a cluster (`docs/matching.md`), sections 4.1
and 4.5.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from triplewire.kernels.shared.columns import AT_MOST
from triplewire.select.papers.growing import Capacity, PaperIndex, Store, new_lists, new_table
from triplewire.select.papers.kernels import constraints as kernels
from triplewire.select.papers.kernels.joins import Selection, Source


class ConstraintIndex(PaperIndex):
    """The graph of all subscriptions by label and then by nodes, in which patterns hang on lists by their constraints.

    Space: O(edges + patterns). Insertion: O(patterns of the clause), and the entries of an ordered list before its own.
    Matching: O(m) look-ups for m triples, the entries of lists that hold and one more each; then a join for each clause
    all of whose patterns in lists are there. It differs from the text where that is wrong: a row is in
    the table of its edge for all subscriptions, so the join asks the constraints again (the text joins rows on which
    the constraint of another one held), and where both ends have constraints, both have to hold (the text unites them).
    A clause that has constraints is found by its patterns with constraints alone: the text (lines 5 to 8 of `match`)
    also goes through it at each edge without one, so that of many subscriptions of one structure all would be visited,
    where its section 5.1 says that the time depends on those that match.
    What has no order, classes and words, is in = lists, one for each test; <= and >= have lists of their own; and a
    pattern hangs on one list, that of its best constraint, so its others are asked when it is reached. An unequal value
    of another kind is no match, though section 4.5 says so: the common meaning of != holds.
    """

    tables_of_triple: ClassVar[int] = 8  # with its label or any, its subject or any, its object or any
    taken_out = staticmethod(kernels.delete)

    def new_store(self, capacity: Capacity) -> Store:
        """Empty tables."""
        patterns, zeros = capacity.patterns, np.zeros
        structure = kernels.ConstraintTables(
            new_table(patterns), new_table(patterns), new_table(patterns),
            new_lists(2 * patterns, patterns), new_lists(2 * patterns, patterns),
            zeros(patterns, np.int32), zeros(patterns, np.int32), zeros(patterns, np.int32),
            zeros(patterns, np.int32), zeros(patterns, np.int32), zeros(patterns, np.int32),
            zeros(2 * patterns, np.uint8), zeros(patterns, np.int64),
            zeros(capacity.clauses, np.int32), zeros(1, np.int64),
        )  # fmt: skip
        return Store(capacity, structure, patterns)

    def insert(self, first: int) -> None:
        """See `PaperIndex`."""
        clauses, tables = self.clauses, self.store.structure
        table, tests = clauses.table, clauses.tests
        self.number = self.store.numbers.of(clauses)
        kernels.insert(first, clauses.count, self.number, self.kind, table.columns, tests.columns, tables)
        begin = int(table.pattern_offset[first])
        lead = tables.lead[begin : len(table.pattern)]
        patterns = begin + np.flatnonzero(lead >= 0)
        test = table.test[tables.lead[patterns]]
        patterns, test = patterns[tests.op[test] > 0], test[tests.op[test] > 0]
        rank = tests.rank[test]
        # the last comes first in its list
        order = np.lexsort((-patterns, np.where(tests.op[test] <= AT_MOST, rank, -rank)))
        kernels.insert_ordered(patterns[order], table.columns, tests.columns, tables)

    def match(self, done: int, most: int, source: Source, selection: Selection) -> int:
        """See `PaperIndex`."""
        return kernels.match(done, most, self.number, source, self.store.structure, self.store.room, selection)
