"""The join network of a segment: made from its clauses, and saved with them.

What it consists of: `triplewire.kernels.joins.network.columns`. Who asks it: `triplewire.verify.shared_joins`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.clauses import Clauses
from triplewire.clauses.facts import residual_clauses
from triplewire.clauses.mapped_zeros import compact_zeros, mapped_zeros
from triplewire.clauses.node_tests.columns import slices
from triplewire.clauses.table import ASK, DISTINCT, EXACT
from triplewire.encode.batch import Bytes, Ids
from triplewire.kernels.joins.columns import StatedClauses
from triplewire.kernels.joins.network import decide, direct
from triplewire.kernels.joins.network.columns import (
    ABSENT,
    APART,
    COLUMNS,
    KEPT,
    MARKS,
    NEW_WIDTH,
    PARENT,
    ROW,
    SEVERAL,
    TEST,
    WIDTH,
    StepColumns,
)
from triplewire.kernels.joins.network.making.build import build, count_rows, pack
from triplewire.kernels.joins.network.making.steps import Frequency
from triplewire.kernels.shared.columns import fixed
from triplewire.memory import give_back
from triplewire.verify.solve import with_variables

VERSION = 5
"""The version of the saved arrays. It changes when the same clauses give another network."""

_MANY = 1 << 16  # patterns: while their network is made, much more memory is needed than it keeps
_PLACE_BITS = 31 - MARKS  # of a place in the order of columns: where there are more, no solutions are listed


def opened_network(arrays: Mapping[str, NDArray[Any]]) -> StepColumns:
    """The network that `made_network` gave, from its saved columns. Raises `KeyError` where one is missing."""
    return StepColumns(*fixed(*(arrays[name] for name in StepColumns._fields)))


def made_network(clauses: Clauses, stated: StatedClauses, proven: bool, order: Ids | None = None) -> StepColumns:
    """The network of clauses. `stated` are their patterns and components, `proven` and `order` are as in
    `triplewire.verify.shared_joins.SharedJoins`."""
    # bindings are asked of all clauses of a subscription, of which the index may have named one
    is_alone = ~clauses.has_alternatives[clauses.facts.owner]
    network = _made(clauses, with_variables(stated, is_alone) if proven else stated, order)
    if len(stated.pattern) > _MANY:
        give_back()  # here, where what it was made with is gone
    return network


def _ordered(order: Ids | None, *columns: Any) -> tuple[Any, ...]:
    """Columns with an entry for each clause, their entries in this order; None: that of the clauses' numbers."""
    return columns if order is None else tuple(column[order] for column in columns)


def _made(clauses: Clauses, components: StatedClauses, order: Ids | None) -> StepColumns:
    """The network of these components of the clauses."""
    tests = clauses.tests.columns
    patterns = len(components.pattern)
    variables = clauses.table.variables
    step = mapped_zeros((2 * patterns + 2, COLUMNS), np.int32)
    tested = mapped_zeros((_most_tested(clauses, components) + 1, 2), np.int32)
    node_offset, node = mapped_zeros(2 * patterns + 2, np.int32), mapped_zeros(5 * patterns, np.int32)
    last = mapped_zeros(len(components.component), np.int32)
    often = Frequency(
        np.bincount(components.pattern[components.pattern >= 0], minlength=len(clauses.constants) + 1),
        np.bincount(components.test, minlength=len(clauses.tests)),
    )
    work_area = np.zeros((5, int(variables.max(initial=0)) + 1), np.int64)
    own_order = components._replace(member=components.member.copy())
    columns, begins = _room_for_order(clauses, components), np.zeros(clauses.count, np.int32)
    selected = clauses.table.selected[clauses.facts.owner]
    in_order = np.column_stack(_ordered(order, np.arange(clauses.count, dtype=np.int32), selected))
    steps, used, nodes, ordered = build(
        own_order,
        in_order,
        tests,
        work_area,
        often,
        step,
        tested,
        node_offset,
        node,
        last,
        columns,
        begins,
    )
    if ordered >> _PLACE_BITS:
        ordered, begins = 2, np.zeros(clauses.count, np.int32)
    place = np.empty(nodes, np.int32)
    size = max(count_rows(node_offset, nodes, place), 1)  # a row is fetched without a look, even of no node
    rows, step = np.zeros(ROW * size, np.int32), step[:steps]
    pack(node_offset, node, nodes, place, step, last, rows)
    direct.mark_direct(step, place, rows)
    width = step[:, [WIDTH, NEW_WIDTH]].astype(np.uint8)
    width[step[:, PARENT] <= APART] = 0
    of_steps = (
        compact_zeros(width),
        compact_zeros(np.append(step[:, TEST], used).astype(np.int32)),
        tested[:used].copy(),
        rows,
    )
    of_clauses = _clause_rows(clauses, components, order, last, begins)
    return StepColumns(*fixed(step[:, :KEPT].copy(), *of_steps, *of_clauses, columns[:ordered].copy()))


def _room_for_order(clauses: Clauses, components: StatedClauses) -> Bytes:
    """Room for a number of each clause, of each component and each of its variables, and two more."""
    variables = clauses.table.variables.sum(dtype=np.int64)
    return mapped_zeros(clauses.count + len(components.component) + int(variables) + 2, np.uint8)


def _clause_rows(
    clauses: Clauses, components: StatedClauses, order: Ids | None, last: Ids, begins: Ids
) -> tuple[Ids, Ids]:
    """The columns `clause` and `roots`. `last`: of each component, what stands in `roots`."""
    offset = components.component_offset
    of_clauses = offset[:-1], np.diff(offset), clauses.facts.owner, _marks(clauses), np.arange(clauses.count)
    begin, size, owner, marks, clause = _ordered(order, *of_clauses)
    root, second = np.full(len(owner), SEVERAL, np.int32), np.full(len(owner), ABSENT, np.int32)
    few, two = (size == 1) | (size == 2), size == 2
    root[few], second[two] = last[begin[few]], last[begin[two] + 1]
    own, places = slices(offset, clause[~few])
    roots = np.insert(last[places], own[:-1], size[~few])
    second[~few] = own[:-1] + np.arange(len(own) - 1)
    return np.column_stack([marks | begins << MARKS, root, second, owner]), roots


def _most_tested(clauses: Clauses, components: StatedClauses) -> int:
    """In how many places of patterns do tested variables stand, each as often as it has tests?"""
    variables = clauses.table.variables.astype(np.int64)
    begin = np.cumsum(variables) - variables
    clause, position = np.repeat(begin, np.diff(components.pattern_offset)), components.pattern
    is_variable = position < 0
    places = np.bincount((clause[:, None] - 1 - position)[is_variable], minlength=int(variables.sum()))
    tested = np.repeat(begin, np.diff(components.test_offset)) + components.test_variable
    return int(places[tested].sum())


def _marks(clauses: Clauses) -> Bytes:
    """Clause -> what its solutions say of its subscription."""
    table, owner = clauses.table, clauses.facts.owner
    of_subscription = np.zeros(len(table), np.uint8)
    of_subscription |= np.where(table.flags & EXACT != 0, np.uint8(decide.EXACT), np.uint8(0))
    of_subscription |= np.where(table.flags & ASK != 0, np.uint8(decide.ASK), np.uint8(0))
    of_subscription |= np.where(table.flags & DISTINCT != 0, np.uint8(decide.DISTINCT), np.uint8(0))
    of_subscription |= np.where(clauses.has_alternatives, np.uint8(0), np.uint8(decide.ALONE))
    marks: Bytes = of_subscription[owner]
    marks[residual_clauses(table, clauses.tests.is_residual)] &= ~np.uint8(decide.EXACT)
    return marks
