"""What is known of each clause before any publication comes: its subscription and its components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.mapped_zeros import mapped_zeros
from triplewire.clauses.table import ClauseTable
from triplewire.encode.batch import Ids
from triplewire.kernels.joins import components as component_kernels
from triplewire.kernels.shared.columns import fixed

_MOST_IN_BYTES = 255

Counts: TypeAlias = "NDArray[np.uint8] | Ids"
"""Numbers of one clause, such as its patterns: bytes, unless some clause has too many of what is counted."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Columns by clause, and by component: the patterns of a clause that share variables, directly or by others
    (`triplewire.kernels.joins.components`).
    """

    owner: Ids  # clause -> subscription
    component_offset: Ids  # clause -> its slice of `component`
    component: Counts  # shape (components, 4): a slice of the clause's members, selected variables, has it no others?
    member: Counts  # the patterns of each clause, by component

    @classmethod
    def of(cls, table: ClauseTable) -> Facts:
        """The facts of the clauses of a table."""
        owner = table.owners()
        return cls(owner, **_components(table, owner))


def _components(table: ClauseTable, owner: Ids) -> dict[str, Any]:
    """The columns of `Facts` from `component_offset` on, by name."""
    patterns, offset = len(table.pattern), np.zeros(len(table.variables) + 1, np.int32)
    pattern_offset, pattern, width = fixed(table.pattern_offset, table.pattern, table.width[owner])
    largest = max(int(np.diff(pattern_offset).max(initial=0)), int(width.max(initial=0)))
    kind = np.uint8 if largest <= _MOST_IN_BYTES else np.int32
    component, member = mapped_zeros((patterns, 4), kind), mapped_zeros(patterns, kind)
    most = int(table.variables.max(initial=0)) + 1
    component_kernels.components(pattern_offset, pattern, width, most, offset, component, member)
    component = component[: offset[-1]]
    return {"component_offset": offset, "component": component, "member": member}


def residual_clauses(table: ClauseTable, is_residual: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The clauses that have residual predicates."""
    if not is_residual.any():
        return np.zeros(0, np.int64)
    return np.searchsorted(table.test_offset, np.flatnonzero(is_residual[table.test]), side="right") - 1
