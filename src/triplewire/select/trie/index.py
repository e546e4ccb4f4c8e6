"""The matcher "trie": the tries over the atoms and stars of clauses, with the memory that a walk through them needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from triplewire.clauses.clauses import Clauses
from triplewire.clauses.node_tests.columns import flat, unflat
from triplewire.clauses.view import View
from triplewire.kernels.pool import Pool
from triplewire.select.index import Selected, Space
from triplewire.select.trie.build import SetTrie, Trie
from triplewire.select.trie.walk import SubjectAtoms, Workspace, subject_atoms, walk

_LARGEST = 1 << 24  # atoms, or clauses, for which a workspace that is kept has room; a larger one is let go


class TrieIndex:
    """Finds the clauses whose stars a publication has."""

    names_clauses = True
    proves_constants = True  # a star has all patterns of its subject

    def __init__(self, trie: Trie, clauses: Clauses) -> None:
        self.trie = trie
        self.order = trie.order
        self._clauses = clauses
        self._workspaces: Pool[Workspace] = Pool()

    def prepare(self, view: View) -> SubjectAtoms:
        """The atoms that the subjects of the publications satisfy."""
        workspace = self._workspaces.take(self._new_workspace)
        atoms = subject_atoms(self.trie, view.batch, view.features, workspace).copied()
        self._give(workspace)
        return atoms

    def select(self, view: View, prepared: SubjectAtoms | None, most: int, space: Space) -> Selected:
        """See `triplewire.select.index.Index`. What is accepted lies in the space."""
        workspace = self._workspaces.take(self._new_workspace)
        atoms = prepared
        if atoms is None:
            atoms = subject_atoms(self.trie, view.batch, view.features, workspace)
        selected = walk(self.trie, atoms, most, workspace, space)
        self._give(workspace)
        return selected

    def _new_workspace(self) -> Workspace:
        return Workspace(self.trie, self._clauses)

    def _give(self, workspace: Workspace) -> None:
        """Keep a workspace for the next call, unless it has grown out of measure."""
        if len(workspace.checks) <= _LARGEST and len(workspace.atoms) <= _LARGEST:
            self._workspaces.give(workspace)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The tries as flat arrays."""
        return flat(self.trie)


def opened(clauses: Clauses, arrays: Mapping[str, NDArray[Any]]) -> TrieIndex:
    """The index that `TrieIndex.arrays` saved. Raises `KeyError` or `TypeError` where something is missing."""
    return TrieIndex(unflat(arrays, (Trie, SetTrie)), clauses)
