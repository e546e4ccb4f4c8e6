"""The matchers "rtf-m" and "rtf-s": a forest of tries, with words below each structure, or in one trie for all.

Paper: C. Tryfonopoulos and others, on full-text support for publish/subscribe ontology systems (RTF), sections 3.1 and
3.2.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from triplewire.select.papers.growing import Capacity, PaperIndex, Store, new_lists, new_table
from triplewire.select.papers.kernels import forest as kernels
from triplewire.select.papers.kernels.joins import Selection, Source


class ForestIndex(PaperIndex):
    """The trie forest and the query table, by mode: PER_STRUCTURE is RTFm, SHARED is RTFs.

    Space: O(nodes + tuples). Insertion: O(3 + w^2) look-ups for a tuple of w words, since the ways that are there are
    preferred. Matching: at most 14 look-ups a triple for structure; of each node of words that is reached, its children
    or the words of the object, whichever are fewer; and the tuples of all these nodes. It differs from the text in
    this: "word" is whatever is looked up of an object before selection (words, their prefixes, whole texts, classes);
    the query table is counted while tuples are marked, not scanned afterwards; a wildcard is a variable. It joins
    nothing and asks for no distance of words: it marks tuples, and clauses whose tuples are all marked are left to
    verification.
    """

    names_clauses: ClassVar[bool] = True
    taken_out = staticmethod(kernels.delete)

    @property
    def nodes(self) -> int:
        """How many nodes the forest has."""
        return int(self.store.structure.nodes.used[0])

    def new_store(self, capacity: Capacity) -> Store:
        """An empty forest."""
        patterns, zeros = capacity.patterns, np.zeros
        nodes = 3 * patterns + capacity.words + 1
        structure = kernels.Forest(
            new_table(nodes), new_lists(nodes, patterns), new_lists(nodes, capacity.words), zeros(nodes, np.int32),
            zeros(patterns, np.int32), zeros(patterns, np.int32), zeros(patterns, np.int32),
            zeros(capacity.clauses, np.int32),
            zeros(patterns, np.int64), zeros(nodes, np.int64), zeros(capacity.tests + 1, np.int64),
            zeros(nodes, np.int32), zeros(capacity.tests + 1, np.int32), zeros(1, np.int64),
        )  # fmt: skip
        return Store(capacity, structure, 0)

    def insert(self, first: int) -> None:
        """See `PaperIndex`."""
        clauses = self.clauses
        self.number = self.store.numbers.of(clauses)
        columns = clauses.table.columns, clauses.tests.columns
        kernels.insert(first, clauses.count, self.mode, self.number, self.kind, *columns, self.store.structure)

    def match(self, done: int, most: int, source: Source, selection: Selection) -> int:
        """See `PaperIndex`."""
        return kernels.match(done, self.mode, self.number, source, self.store.structure, self.store.room, selection)
