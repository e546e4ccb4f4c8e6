"""The matcher "trie": the tries over the atoms and stars of clauses, with the memory that a walk through them needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.clauses import Clauses
from triplewire.clauses.node_tests.columns import prefixed, under
from triplewire.clauses.view import View
from triplewire.kernels.pool import Pool
from triplewire.select.index import Selected, Space
from triplewire.select.trie.build import SetTrie, Trie
from triplewire.select.trie.walk import SubjectAtoms, Workspace, subject_atoms, walk

_LARGEST = 1 << 24  # atoms, or clauses, for which a workspace that is kept has room; a larger one is let go


class TrieIndex:
    """Finds the clauses whose stars a publication has."""

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
        parts = {"trie": self.trie, "atoms": self.trie.atoms, "stars": self.trie.stars}
        return {
            name: column for part, value in parts.items() for name, column in prefixed(part, _columns(value)).items()
        }


def opened(clauses: Clauses, arrays: Mapping[str, NDArray[Any]]) -> TrieIndex:
    """The index that `TrieIndex.arrays` saved. Raises `KeyError` or `TypeError` where something is missing."""
    columns = _fields(Trie, under("trie", arrays))
    columns |= {name: SetTrie(**_fields(SetTrie, under(name, arrays))) for name in ("atoms", "stars")}
    return TrieIndex(Trie(**columns), clauses)


def _columns(value: Any) -> dict[str, NDArray[Any]]:
    """The columns of a dataclass; numbers as arrays of one."""
    columns = ((f.name, getattr(value, f.name)) for f in fields(value))
    return {name: np.atleast_1d(column) for name, column in columns if isinstance(column, np.ndarray | int)}


def _fields(kind: type, columns: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """The fields of a dataclass from what `_columns` gave."""
    scalars = {f.name: f.type for f in fields(kind) if f.type in ("int", "bool")}
    return {
        name: (bool if scalars[name] == "bool" else int)(column[0]) if name in scalars else column
        for name, column in columns.items()
    }
