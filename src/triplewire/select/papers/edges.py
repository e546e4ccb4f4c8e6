"""The matchers "naive", "ops" and "gtopss": all triples, labels, or edges of one graph of all subscriptions.

Paper: H. Liu, M. Petrovic, H.-A. Jacobsen, "Efficient and Scalable Filtering of Graph-based Metadata" (G-ToPSS),
sections 4 and 5; OPS: J. Wang, B. Jin, J. Li, "An Ontology-Based Publish/Subscribe System" (Middleware 2004), as
section 5 says. What terms satisfy, the taxonomy too, is looked up before, for all matchers alike.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from triplewire.clauses.clauses import mapped_zeros
from triplewire.select.papers.growing import Capacity, PaperIndex, Store, new_lists, new_table
from triplewire.select.papers.kernels import edges as kernels
from triplewire.select.papers.kernels.joins import Selection, Source


class Naive(PaperIndex):
    """One subscription after the other: each clause is joined by itself, with all triples of the publication in the
    place of each binding table. Time: O(subscriptions * triples), and more where the first pattern matches several."""

    def new_store(self, capacity: Capacity) -> Store:
        """The one table of all patterns."""
        return Store(capacity, mapped_zeros(capacity.patterns, np.int32), 1)

    def insert(self, first: int) -> None:
        """See `PaperIndex`: the clauses are all there is."""

    def match(self, done: int, most: int, source: Source, selection: Selection) -> int:
        """See `PaperIndex`."""
        return kernels.match_naive(done, most, self.store.structure, source, self.store.room, selection)


class StarEdges(PaperIndex):
    """The matcher "gtopss": the graph G_M of all subscriptions, in which each edge has a list of those that have it.

    G-ToPSS, sections 4.1 to 4.3. Space: O(edges of G_M + entries of their lists). Insertion: O(edges of the clause).
    Matching: O(m k^2) look-ups for m triples and k stars; then a join for each clause that has all its edges, and
    CheckConstraint on each row of it. It differs from the text where that is wrong: a clause is a candidate when all
    its distinct edges are there (the text counts rows, and one more than there are); tables and counts are empty for
    each publication; stars begin with 1 and end with G_M's; G'_P has loops, for (?x p ?x). Beyond it: stars on labels,
    which section 7 calls straightforward; and GREEDY, the mapping of stars that section 4.1 leaves to the future:
    patterns that can be edges that G_M has already become these, one after the other.
    """

    most_variables: ClassVar[int] = 8
    taken_out = staticmethod(kernels.delete)

    @property
    def edges(self) -> int:
        """How many edges G_M has."""
        return int(self.store.structure.edge.used[0])

    def new_store(self, capacity: Capacity) -> Store:
        """A graph without edges."""
        patterns = capacity.patterns
        structure = kernels.Edges(
            new_table(patterns), new_table(patterns), new_lists(patterns, patterns),
            np.zeros(patterns, np.int32), np.zeros(capacity.clauses, np.int32),
            np.zeros(capacity.variables, np.int32), np.zeros(StarEdges.most_variables + 2, np.uint8),
            np.zeros(2, np.int64),
        )  # fmt: skip
        return Store(capacity, structure, patterns)

    def insert(self, first: int) -> None:
        """See `PaperIndex`."""
        table, columns = self.clauses.table, self.clauses.table.columns
        about = columns.pattern_offset, columns.pattern, table.variables, self.kind
        kernels.insert(first, self.clauses.count, self.mode, *about, self.store.structure)

    @property
    def tables_of_triple(self) -> int:  # type: ignore[override]  # it depends on the stars
        """See `PaperIndex`."""
        stars, labels = map(int, self.store.structure.most)
        return (stars + 1) ** 2 * (labels + 1)

    def match(self, done: int, most: int, source: Source, selection: Selection) -> int:
        """See `PaperIndex`."""
        return kernels.match(done, most, self.mode, source, self.store.structure, self.store.room, selection)


class Ops(StarEdges):
    """The matcher "ops": all nodes of subscriptions are variables, so that edges are distinguished by their labels
    alone; what a node has to be is found out while the binding tables of labels are joined. Matching: O(m) look-ups for
    m triples, and a join for each subscription whose labels are there (G-ToPSS, section 5)."""

    most_variables: ClassVar[int] = PaperIndex.most_variables
    tables_of_triple: ClassVar[int] = 2  # that of its label, and that of any label
