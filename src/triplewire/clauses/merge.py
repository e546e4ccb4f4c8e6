"""Several sets of clauses as one, without the subscriptions that were removed: nothing is parsed again.

Constants and tests that no subscription uses any more are left behind, so that clauses do not grow while subscriptions
come and go. `triplewire.engine.segments.snapshot` says when segments are merged.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses import table as table_columns
from triplewire.clauses.calls import RequiredCalls
from triplewire.clauses.clauses import Clauses
from triplewire.clauses.node_tests.columns import concatenated, slices
from triplewire.clauses.node_tests.table import Tests
from triplewire.clauses.table import ClauseTable
from triplewire.encode.names import Names

Numbers = NDArray[np.int64]


def merge(parts: Sequence[tuple[Clauses, Numbers]]) -> Clauses:
    """The clauses of some subscriptions (ascending numbers) of each part, numbered on from part to part. Raises
    `LimitError` where they are too many."""
    tables = [_taken(clauses.table, numbers) for clauses, numbers in parts]
    if len(tables) > 1 and sum(part.rows for part in tables) > table_columns.MOST_ROWS:
        raise table_columns.too_many_rows()
    used = [np.unique(table.pattern[table.pattern >= 0]) for table in tables]
    constants, constant_numbers = Names.union([clauses.constants for clauses, _ in parts], used)
    used = [np.unique(table.test) for table in tables]
    tests, test_numbers = Tests.union([clauses.tests for clauses, _ in parts], used)
    for number, table in enumerate(tables):
        is_constant = table.pattern >= 0
        table.pattern[is_constant] = constant_numbers[number][table.pattern[is_constant]]
        table.test[:] = test_numbers[number][table.test]
    table = ClauseTable(
        concatenated([part.clause_offset for part in tables]),
        concatenated([part.pattern_offset for part in tables]),
        np.concatenate([part.pattern for part in tables]),
        concatenated([part.test_offset for part in tables]),
        *(
            np.concatenate([getattr(part, name) for part in tables])
            for name in ("test_variable", "test", "variables", "selected", "flags")
        ),
    )
    return Clauses.of(constants, tests, table, RequiredCalls.merged([(part.asked, numbers) for part, numbers in parts]))


def _taken(table: ClauseTable, subscriptions: Numbers) -> ClauseTable:
    """The rows of some subscriptions, copied."""
    clause_offset, clauses = slices(table.clause_offset, subscriptions)
    pattern_offset, patterns = slices(table.pattern_offset, clauses)
    test_offset, tests = slices(table.test_offset, clauses)
    return ClauseTable(
        clause_offset.astype(np.int32),
        pattern_offset.astype(np.int32),
        table.pattern[patterns],
        test_offset.astype(np.int32),
        table.test_variable[tests],
        table.test[tests],
        table.variables[clauses],
        table.selected[subscriptions],
        table.flags[subscriptions],
    )
