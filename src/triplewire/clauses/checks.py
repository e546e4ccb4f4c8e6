"""The arrays of clauses (`triplewire.clauses.clauses.Clauses`), checked before anything trusts them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.calls import check_required_calls
from triplewire.clauses.facts import components_of
from triplewire.clauses.node_tests.checks import check_tests
from triplewire.clauses.node_tests.columns import under
from triplewire.clauses.schema import Column, Schema, blocks, check, check_names, require
from triplewire.clauses.table import ASK, CALLS, DISTINCT, EXACT, ClauseTable
from triplewire.kernels.trie.stars import CHECK

_ANY = np.iinfo(np.int32).min

_TABLE: Schema = {
    "clause_offset": Column("i4", ("subscriptions+1",), offsets="clauses"),
    "pattern_offset": Column("i4", ("clauses+1",), offsets="patterns"),
    "pattern": Column("i4", ("patterns", 3), below="constants", least=_ANY),
    "test_offset": Column("i4", ("clauses+1",), offsets="tested"),
    "test_variable": Column("i4", ("tested",)),
    "test": Column("i4", ("tested",), below="tests"),
    "variables": Column("i4", ("clauses",)),
    "selected": Column("i4", ("subscriptions",)),
    "flags": Column("u1", ("subscriptions",), below=(EXACT | ASK | DISTINCT | CALLS) + 1),
}
_FACTS: Schema = {
    "owner": Column("i4", ("clauses",), below="subscriptions"),
    "status": Column("u1", ("clauses",), below=CHECK + 1),
    "component_offset": Column("i4", ("clauses+1",), offsets="components"),
    "component": Column("u1|i4", ("components", 4)),
    "member": Column("u1|i4", ("patterns",)),
}


def check_clauses(arrays: Mapping[str, NDArray[Any]], part: str, subscriptions: int) -> None:
    """Check what `Clauses.arrays` gave for so many subscriptions. Raises `ValueError`, or another error of Python where
    something is missing or another thing."""
    constants = check_names(under("constants", arrays), f"{part}.constants", terms=True)
    tests = check_tests(under("tests", arrays), f"{part}.tests")
    table = under("table", arrays)
    sizes = {"subscriptions": subscriptions, "constants": constants, "tests": tests}
    sizes = check(_TABLE, table, f"{part}.table", sizes)
    facts = under("facts", arrays)
    check(_FACTS, facts, f"{part}.facts", sizes)
    check_required_calls(under("asked", arrays), f"{part}.asked", subscriptions)
    for begin, end in blocks(subscriptions):
        _check_owners(table, facts["owner"], begin, end, part)
    for begin, end in blocks(sizes["clauses"]):
        _check_variables(table, facts["owner"], begin, end, part)
    columns: dict[str, Any] = dict(table)
    for name, column in components_of(ClauseTable(**columns), np.asarray(facts["owner"])).items():
        same = facts[name].dtype == column.dtype and np.array_equal(facts[name], column)
        require(same, f"{part}.facts.{name} is not that of the clauses")


def _check_owners(table: Mapping[str, NDArray[Any]], owner: NDArray[Any], begin: int, end: int, part: str) -> None:
    """The clauses of the subscriptions begin .. end have them as owners, and all of what they select as variables."""
    offset, selected = table["clause_offset"][begin : end + 1], table["selected"][begin:end]
    counts = np.diff(offset)
    own = np.arange(begin, end, dtype=np.int32).repeat(counts)
    require(np.array_equal(owner[offset[0] : offset[-1]], own), f"{part}.facts.owner is not that of the clauses")
    enough = table["variables"][offset[0] : offset[-1]] >= selected.repeat(counts)
    require(enough.all(), f"a clause in {part}.table.variables has less than what its subscription selects")


def _check_variables(table: Mapping[str, NDArray[Any]], owner: NDArray[Any], begin: int, end: int, part: str) -> None:
    """The patterns and tests of the clauses begin .. end have no other variables than these have, which are no more
    than there are places for."""
    variables = table["variables"][begin:end]
    offset = table["pattern_offset"][begin : end + 1]
    places = 3 * np.diff(offset).astype(np.int64) + table["selected"][owner[begin:end]]
    require((variables <= places).all(), f"a clause in {part}.table.variables has more than its patterns have places")
    least = (-variables).repeat(np.diff(offset))
    pattern = table["pattern"][offset[0] : offset[-1]]
    has_all = all((pattern[:, place] >= least).all() for place in range(3))
    require(has_all, f"a pattern in {part}.table.pattern has a variable that its clause lacks")
    offset = table["test_offset"][begin : end + 1]
    below = variables.repeat(np.diff(offset))
    is_there = (table["test_variable"][offset[0] : offset[-1]] < below).all()
    require(is_there, f"a test in {part}.table.test_variable is of a variable that its clause lacks")
