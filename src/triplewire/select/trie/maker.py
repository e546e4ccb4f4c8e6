"""The matcher "trie" by its name. The index itself brings compiled kernels along, and comes when the first is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

if TYPE_CHECKING:
    from triplewire.clauses.clauses import Clauses
    from triplewire.select.trie.index import TrieIndex


class TrieMaker:
    """The matcher "trie"."""

    name = "trie"
    version = 15

    def build(self, clauses: Clauses) -> TrieIndex:
        """The index over the clauses."""
        from triplewire.select.trie.build import build_trie
        from triplewire.select.trie.index import TrieIndex

        return TrieIndex(build_trie(clauses), clauses)

    def open(self, clauses: Clauses, arrays: Mapping[str, NDArray[Any]]) -> TrieIndex:
        """The index that `TrieIndex.arrays` saved. Raises `KeyError` or `TypeError` where something is missing."""
        from triplewire.select.trie.index import opened

        return opened(clauses, arrays)


TRIE = TrieMaker()
