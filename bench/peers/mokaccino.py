"""mokaccino (PyPI), a percolator in Rust: conjunctions of field and value, without joins.

Of a conjunction it looks up the first condition, so the rarest stands first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import reduce
from itertools import chain
from operator import and_

from bench.peers.fields import given, wanted
from bench.peers.serving import Query, Statement, serve


class Percolator:
    """Queries in a percolator, numbered in their order."""

    def __init__(self, queries: Sequence[Query]) -> None:
        import mokaccino  # a package that is no dependency of the engine

        self._document = mokaccino.Document
        of, asked = mokaccino.Query, [list(chain.from_iterable(wanted(query))) for query in queries]
        often = Counter(pair for pairs in asked for pair in pairs)
        index = mokaccino.Percolator()
        self._always: list[int] = []
        for number, pairs in enumerate(asked):
            if pairs:
                ordered = sorted(set(pairs), key=lambda pair: (often[pair], pair))
                index.add_query_id(reduce(and_, (of.from_kv(*pair) for pair in ordered)), number)
            else:
                self._always.append(number)
        self._index = index.optimized()

    def matching(self, statements: Sequence[Statement]) -> list[int]:
        """The numbers of the queries whose conditions hold somewhere in a publication."""
        document = self._document()
        for field, value in set(given(statements)):
            document.add_value(field, value)
        return [*self._index.percolate_list(document), *self._always]


if __name__ == "__main__":
    serve(Percolator)
