"""What is known of each clause before any publication comes: its subscription, and what decides it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from triplewire.clauses.node_tests.columns import Arrays
from triplewire.clauses.node_tests.table import Tests
from triplewire.clauses.table import ASK, EXACT, ClauseTable
from triplewire.encode.batch import Bytes, Ids
from triplewire.kernels.trie import stars as star_kernels


@dataclass(frozen=True, slots=True)
class Facts:
    """Columns by clause.

    `status` is SURE where a publication with the clause's stars matches, MULTI where it does unless one of the stars'
    tests hold of different objects, and CHECK where the clause has to be verified (`triplewire.kernels.trie.stars`).
    """

    owner: Ids  # clause -> subscription
    status: Bytes

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
        owner = table.owners()
        return cls(owner, _status(table, tests, owner))


def _status(table: ClauseTable, tests: Tests, owner: Ids) -> Bytes:
    flags = table.flags
    status = np.zeros(len(owner), np.uint8)
    star_kernels.statuses(table.columns, tests.columns, status)
    ask = (flags & ASK != 0)[owner]
    alternatives = (np.diff(table.clause_offset) > 1)[owner]
    status[(flags & EXACT == 0)[owner] | (alternatives & ~ask)] = star_kernels.CHECK  # such a clause is not all
    return status
