"""The matcher "trie" by its name. The index itself brings compiled kernels along, and comes when the first is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from triplewire.select.index import WarmUp

if TYPE_CHECKING:
    from triplewire.clauses.clauses import Clauses
    from triplewire.select.trie.index import TrieIndex


_TRIPLES = b"""<urn:s> <urn:p> "one two" <urn:g> .
<urn:s> <urn:q> "2"^^<http://www.w3.org/2001/XMLSchema#integer> <urn:g> .
"""
_WORDS = b" ".join(b"w%d" % number for number in range(5_000))  # more than there is room for where few are looked up
_MANY = b"".join(b'<urn:s> <urn:p> "one %d" <urn:g> .\n' % number for number in range(1_100))


class TrieMaker:
    """The matcher "trie"."""

    name = "trie"
    version = 15
    warm_up = WarmUp(
        (
            ("sparql", "SELECT * { ?s <urn:p> ?o ; <urn:q> ?n FILTER ftcontains(?o, 'one two') FILTER(?n > 1) }"),
            ("sparql", "SELECT * { ?s <urn:p> ?o FILTER ftcontains(?o, 'one') }"),
        ),
        (_TRIPLES, _TRIPLES + b'<urn:s> <urn:d> "%b" <urn:g> .\n' % _WORDS, _MANY),
    )

    def build(self, clauses: Clauses) -> TrieIndex:
        """The index over the clauses."""
        from triplewire.select.trie.build import build_trie
        from triplewire.select.trie.index import TrieIndex

        return TrieIndex(build_trie(clauses), clauses)

    def open(self, clauses: Clauses, arrays: Mapping[str, NDArray[Any]]) -> TrieIndex:
        """The index that `TrieIndex.arrays` saved. Raises `KeyError` or `TypeError` where something is missing."""
        from triplewire.clauses.node_tests.columns import unflat
        from triplewire.select.trie.build import SetTrie, Trie
        from triplewire.select.trie.index import TrieIndex

        return TrieIndex(unflat(arrays, (Trie, SetTrie)), clauses)


TRIE = TrieMaker()
