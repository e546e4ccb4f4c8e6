"""What is known of each clause before any publication comes: its subscription, what decides it, and its bound.

A bound says how many solutions a clause that joins nothing can have (`triplewire.kernels.trie.bounds`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.node_tests.columns import Arrays
from triplewire.clauses.node_tests.table import Tests
from triplewire.clauses.table import ASK, EXACT, ClauseTable
from triplewire.encode.batch import Bytes, Ids
from triplewire.kernels.trie import bounds as bound_kernels
from triplewire.kernels.trie import stars as star_kernels


@dataclass(frozen=True, slots=True)
class Facts:
    """Columns by clause, and the distinct bounds.

    `status` is SURE where a publication with the clause's stars matches, MULTI where it does unless one of the stars'
    tests hold of different objects, and CHECK where the clause has to be verified (`triplewire.kernels.trie.stars`).
    Bound k is the slice bound_offset[k] .. bound_offset[k + 1] of `bounds`.
    """

    owner: Ids  # clause -> subscription
    status: Bytes
    bound_offset: Ids
    bounds: Ids

    def arrays(self) -> Arrays:
        """All columns, for `from_arrays`."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Facts:
        """The facts that `arrays` gave. Raises `KeyError` where a column is missing."""
        columns: dict[str, Any] = {field.name: arrays[field.name] for field in fields(cls)}
        return cls(**columns)

    @classmethod
    def of(cls, table: ClauseTable, tests: Tests) -> Facts:
        """The facts of the clauses of a table."""
        status = _status(table, tests)
        offset, bounds, _, _ = number_bounds(table, status)
        return cls(table.owners(), status, offset, bounds)


def number_bounds(table: ClauseTable, status: Bytes) -> tuple[Ids, Ids, Bytes, NDArray[np.uint32]]:
    """The distinct bounds (offsets and numbers), and of each clause its code and its need, which packs the code with
    the number of its bound (`triplewire.kernels.trie.bounds`)."""
    clauses = len(status)
    code, need = np.empty(clauses, np.uint8), np.empty(clauses, np.uint32)
    ask = (table.flags & ASK != 0)[table.owners()]
    offset, bounds = np.empty(clauses + 1, np.int32), np.empty(2 * clauses + len(table.pattern), np.int32)
    count = bound_kernels.number_bounds(table.columns, ask, status, offset, bounds, code, need)
    return offset[: count + 1].copy(), bounds[: offset[count]].copy(), code, need


def _status(table: ClauseTable, tests: Tests) -> Bytes:
    owner, flags = table.owners(), table.flags
    status = np.zeros(len(owner), np.uint8)
    star_kernels.statuses(table.columns, tests.columns, status)
    ask = (flags & ASK != 0)[owner]
    alternatives = (np.diff(table.clause_offset) > 1)[owner]
    status[(flags & EXACT == 0)[owner] | (alternatives & ~ask)] = star_kernels.CHECK  # such a clause is not all
    return status
