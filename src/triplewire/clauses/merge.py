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
from triplewire.clauses.node_tests.columns import slices
from triplewire.clauses.node_tests.table import Tests
from triplewire.clauses.table import ClauseTable
from triplewire.encode.batch import Ids
from triplewire.encode.names import Names

Numbers = NDArray[np.int64]


def merge(parts: Sequence[tuple[Clauses, Numbers]]) -> Clauses:
    """The clauses of some subscriptions (ascending numbers) of each part, numbered on from part to part. Raises
    `LimitError` where they are too many."""
    tables = [_taken(clauses.table, numbers) for clauses, numbers in parts]
    if len(tables) > 1 and sum(part.rows for part in tables) > table_columns.MOST_ROWS:
        raise table_columns.too_many_rows()
    constants, constant_numbers = _joined_constants([clauses.constants for clauses, _ in parts], tables)
    used = [np.unique(table.test) for table in tables]
    tests, test_numbers = Tests.union([clauses.tests for clauses, _ in parts], used)
    for number, table in enumerate(tables):
        is_constant = table.pattern >= 0
        table.pattern[is_constant] = constant_numbers[number][table.pattern[is_constant]]
        table.test[:] = test_numbers[number][table.test]
    table = ClauseTable(
        _offsets([part.clause_offset for part in tables]),
        _offsets([part.pattern_offset for part in tables]),
        np.concatenate([part.pattern for part in tables]),
        _offsets([part.test_offset for part in tables]),
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


def _offsets(parts: Sequence[Ids]) -> Ids:
    """The offsets of several tables that are put one behind the other."""
    ends = np.concatenate(([0], np.cumsum([part[-1] for part in parts])))
    shifted = [part[1:] + shift for part, shift in zip(parts, ends[:-1].tolist(), strict=True)]
    return np.concatenate([np.zeros(1, np.int32), *shifted])


def _joined_constants(tables: Sequence[Names], clauses: Sequence[ClauseTable]) -> tuple[Names, list[Ids]]:
    """One table of the constants that are used, and the new number of each of them."""
    joined, numbers = tables[0], []
    for place, (own, table) in enumerate(zip(tables, clauses, strict=True)):
        used = np.unique(table.pattern[table.pattern >= 0])
        new = np.full(len(own), -1, np.int32)
        if place == 0:
            joined = own.take(used)
            new[used] = np.arange(len(used))
        else:
            joined, new[used] = joined.extended(own, used)
        numbers.append(new)
    return joined, numbers
