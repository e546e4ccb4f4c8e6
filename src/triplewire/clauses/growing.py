"""A clause table that grows: the columns of `triplewire.clauses.table`, subscription by subscription."""

from __future__ import annotations

from array import array
from dataclasses import fields
from typing import Any

import numpy as np

from triplewire.clauses import table
from triplewire.clauses.table import ClauseTable


class GrowingTable:
    """The columns of `ClauseTable` as arrays that are extended. Offsets begin with 0."""

    def __init__(self) -> None:
        self.clause_offset = array("i", [0])
        self.pattern_offset = array("i", [0])
        self.pattern = array("i")  # flat
        self.test_offset = array("i", [0])
        self.test_variable = array("i")
        self.test = array("i")
        self.variables = array("i")
        self.selected = array("i")
        self.flags = array("B")

    def __len__(self) -> int:
        return len(self.flags)

    @property
    def is_full(self) -> bool:
        """Has it as many rows as it may have? What one subscription adds is little against what is left then."""
        return max(len(self.variables), len(self.pattern) // 3, len(self.test)) >= table.MOST_ROWS

    def end_clause(self, variables: int) -> None:
        """The patterns and tests that were added last are a clause with so many variables."""
        self.pattern_offset.append(len(self.pattern) // 3)
        self.test_offset.append(len(self.test))
        self.variables.append(variables)

    def end(self, selected: int, flags: int) -> None:
        """The clauses that were added last are a subscription."""
        self.clause_offset.append(len(self.variables))
        self.selected.append(selected)
        self.flags.append(flags)

    def table(self) -> ClauseTable:
        """All of it."""
        columns: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(ClauseTable)}
        columns = {name: np.array(values, values.typecode) for name, values in columns.items()}
        return ClauseTable(**{**columns, "pattern": columns["pattern"].reshape(-1, 3)})
