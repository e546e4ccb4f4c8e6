"""A component as levels that are walked to list its solutions: each gives some of the columns their values.

The first level of a tree is the variable of its root, that of a path its rows. Any other level is a pattern, whose
triples have the value of a column before it at one end, or (below a path) those of all. The order of columns is that of
`triplewire.kernels.joins.network.making.order`. What is not asked for, nor leads to it, has no level.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from triplewire.kernels.joins.network.columns import (
    AFTER,
    ALWAYS,
    CHILD,
    EDGE,
    LEAF,
    LINK,
    NO_STEP,
    PARENT,
    SUBJECT,
    StepColumns,
)
from triplewire.kernels.joins.network.semijoin import needs, steps_of
from triplewire.kernels.shared.compiled import called_helper, helper

KIND, STEP, AT, SIDE, CHILD_NODE, COLUMN, COLUMN_END = 0, 1, 2, 3, 4, 5, 8
"""Columns of `level`: what it walks; the step or node; the column that its triples have a value of, or NONE, and in
which place; the node that has the value at the other end, or NONE; by place of a triple, the column that it gives."""

VALUES, TRIPLES, ROWS, FITTING = 0, 1, 2, 3
"""Kinds: the values of a node; the triples of a step that is APART; the rows of a path's last step; the triples that
fit a step with the row's values."""

NONE = -1
MOST_LEVELS = 72  # a component has at most 32 patterns, and there is one for the root


class Levels(NamedTuple):
    """The levels of the component at hand."""

    level: Any  # shape (MOST_LEVELS, COLUMN_END)
    queue: Any  # shape (2, MOST_LEVELS): nodes whose steps come next, and the columns of their variables
    wanted: Any  # column -> is it asked for, or does it lead there?


@helper
def _add(kind: int, step: int, at: int, side: int, child: int, count: int, level: Any) -> int:
    """Put a level behind others; it gives nothing yet. Returns how many there are."""
    level[count, KIND], level[count, STEP], level[count, AT], level[count, SIDE] = kind, step, at, side
    level[count, CHILD_NODE] = child
    for k in range(3):
        level[count, COLUMN + k] = NONE
    return count + 1


@helper
def _add_leaves(s: int, column: int, count: int, steps: StepColumns, level: Any) -> int:
    """The level before `count` gives what is LEAF in a step. Returns how many columns there are."""
    for k in range(3):
        if steps.step[s, SUBJECT + k] == LEAF:
            level[count - 1, COLUMN + k], column = column, column + 1
    return column


@helper
def of_variable(n: int, steps: StepColumns) -> Any:
    """Has a node a variable, or just one pattern whose variables are LEAF?"""
    has_variable = False
    for k in range(steps_of(n, steps)):
        s = needs(n, k, steps)
        if s != ALWAYS:
            s = steps.step[s, EDGE] >> 1 if steps.step[s, PARENT] == LINK else s
            has_variable = has_variable or steps.step[s, SUBJECT] == -1 or steps.step[s, SUBJECT + 2] == -1
    return has_variable


@called_helper
def _tree(root: int, steps: StepColumns, levels: Levels) -> int:
    """The levels of a tree."""
    step, level, queue = steps.step, levels.level, levels.queue
    count, column, head, tail = 0, 0, 0, 1
    queue[0, 0], queue[1, 0] = root, NONE
    if of_variable(root, steps):
        count = _add(VALUES, root, NONE, 0, NONE, count, level)
        level[0, COLUMN], queue[1, 0], column = 0, 0, 1
    while head < tail:
        n, own, head = queue[0, head], queue[1, head], head + 1
        for k in range(steps_of(n, steps)):
            s = needs(n, k, steps)
            if s == ALWAYS:
                continue
            if step[s, PARENT] == LINK:
                edge, back = step[s, EDGE] >> 1, step[s, EDGE] & 1
                count = _add(TRIPLES, edge, own, 2 * back, step[s, CHILD], count, level)
                column = _add_leaves(edge, column, count, steps, level)
                queue[0, tail], queue[1, tail], tail = step[s, CHILD], column, tail + 1
                level[count - 1, COLUMN + 2 - 2 * back], column = column, column + 1
            else:
                count = _add(TRIPLES, s, own, 0 if step[s, SUBJECT] == -1 else 2, NONE, count, level)
                column = _add_leaves(s, column, count, steps, level)
    return count


@called_helper
def _path(last: int, steps: StepColumns, levels: Levels) -> int:
    """The levels of a path."""
    step, level, queue = steps.step, levels.level, levels.queue
    count, column, length, s = _add(ROWS, last, NONE, 0, NONE, 0, level), int(steps.width[last, AFTER]), 0, last
    while s >= 0:
        queue[0, length], length, s = s, length + 1, step[s, PARENT]
    while length > 0:
        length -= 1
        s = queue[0, length]
        before, count = column, _add(FITTING, s, NONE, 0, NONE, count, level)
        column = _add_leaves(s, column, count, steps, level)
        count -= column == before
    return count


@called_helper
def plan(root: int, columns: int, asked: int, steps: StepColumns, levels: Levels) -> Any:
    """Write down the levels of a component, of those of its columns that are `asked` for, as bits. Returns how many
    levels there are, and whether two walks through them may give these columns the same values."""
    level, wanted = levels.level, levels.wanted
    for c in range(columns):
        wanted[c] = (asked >> c) & 1
    count = _path(-2 - root, steps, levels) if root < NO_STEP else _tree(root, steps, levels)
    level_count, repeats = 0, False
    for n in range(count - 1, -1, -1):
        is_kept = level[n, KIND] == ROWS
        for k in range(3):
            is_kept = is_kept or (level[n, COLUMN + k] >= 0 and wanted[level[n, COLUMN + k]] != 0)
        if is_kept and level[n, AT] >= 0:
            wanted[level[n, AT]] = 1
        if not is_kept:
            level[n, KIND] = NONE
    for n in range(count):
        if level[n, KIND] == NONE:
            continue
        for k in range(3):
            repeats = repeats or (level[n, COLUMN + k] >= 0 and (asked >> level[n, COLUMN + k]) & 1 == 0)
        if level[n, KIND] == ROWS:
            for c in range(steps.width[level[n, STEP], AFTER]):
                repeats = repeats or (asked >> c) & 1 == 0
        for k in range(COLUMN_END):
            level[level_count, k] = level[n, k]
        level_count += 1
    return level_count, repeats
