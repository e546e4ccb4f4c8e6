"""The matcher "ibroker": an inverted index of chained attributes.

iBroker, as the RTF paper describes and extends it in section 3.3.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from triplewire.select.papers.growing import Capacity, PaperIndex, Store, new_lists, new_table
from triplewire.select.papers.kernels import buckets as kernels
from triplewire.select.papers.kernels.joins import Selection, Source


class ChainIndex(PaperIndex):
    """Buckets by predicate, each with the patterns that have it; a clause is the chain of its patterns.

    Space: O(patterns). Insertion: O(patterns of the clause). Matching: all patterns in the buckets of the publication's
    predicates are looked at, and from each that begins a clause the chain is followed, as far as its patterns have
    triples. Extended, as the text does, with words of an object in the place of its value, and with wildcards, which
    have a bucket of their own. It differs from the text in this: attributes are predicates, and "word" is whatever is
    looked up of an object before selection. It joins nothing: what it names is left to verification.
    """

    names_clauses: ClassVar[bool] = True
    tables_of_triple: ClassVar[int] = 2  # the bucket of its predicate, and that of any
    taken_out = staticmethod(kernels.delete)

    def new_store(self, capacity: Capacity) -> Store:
        """An index without buckets."""
        patterns = capacity.patterns
        columns = (np.zeros(patterns, np.int32) for _ in range(3))
        structure = kernels.Chains(new_table(patterns), new_lists(patterns, patterns), *columns)
        return Store(capacity, structure, patterns)

    def insert(self, first: int) -> None:
        """See `PaperIndex`."""
        columns = self.clauses.table.columns
        about = columns.pattern_offset, columns.pattern, self.kind
        kernels.insert(first, self.clauses.count, *about, self.store.structure)

    def match(self, done: int, most: int, source: Source, selection: Selection) -> int:
        """See `PaperIndex`."""
        return kernels.match(done, source, self.store.structure, self.store.room, selection)
