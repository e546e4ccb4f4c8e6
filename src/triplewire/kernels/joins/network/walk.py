"""A component is walked, level by level, to list its solutions: `triplewire.kernels.joins.network.levels`.

    walk(component, selected columns):
        open the first level; while there is one:
            give the level's columns its next values: a term of a set, a triple that fits, or a row of a path
            none is left: back to the level before. There is a next level: open it
            else: a row of the selected columns; it counts if it is no row so far. Stop at `limit`

In a tree each value leads to a solution, as its sets are solved, so that what is walked is no more than what is listed,
but for rows that repeat others where variables are not selected.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.joins.columns import NodeFeatures
from triplewire.kernels.joins.network.columns import (
    AFTER,
    NO_STEP,
    POSITION,
    RANGED,
    Scratch,
    StepColumns,
)
from triplewire.kernels.joins.network.levels import (
    AT,
    CHILD_NODE,
    COLUMN,
    COLUMN_END,
    KIND,
    MOST_LEVELS,
    SIDE,
    STEP,
    TRIPLES,
    VALUES,
    Levels,
    plan,
)
from triplewire.kernels.joins.network.levels import (
    ROWS as ALL_ROWS,
)
from triplewire.kernels.joins.network.publication import (
    BEGIN,
    COUNT,
    LISTED,
    OF_BATCH,
    WORD,
    fitting,
    passes,
    triple_words,
    value_words,
)
from triplewire.kernels.joins.network.semijoin import has_value
from triplewire.kernels.shared.bits import lowest_bit
from triplewire.kernels.shared.compiled import called_helper
from triplewire.kernels.shared.hashing import is_new_row

KEY, ASKED, FIRST, SIZE = 0, 1, 2, 3
"""Columns of `slots`: stamp and root, the columns that are asked for, where their rows begin, and how many they are."""

USED, ROWS, PIECES, LISTS, WALKED, NUMBER = 0, 1, 2, 3, 4, 5
"""Places in `state`: how much of `values`, `rows` and `pieces` is used; lists that were made; steps of the pair; 1
more than the number of the publication that is begun."""

NO_ROOM, OVER = -1, -2
"""In place of a number of rows: a table is too small; it takes too many steps."""

WORDS = 9  # of a set of values; behind them, how many there are
_FIRST_ROOM = 1 << 12  # numbers
_int: Any = np.int64
_LOW = _int(0xFFFFFFFF)


class Lists(NamedTuple):
    """What is listed, and what the kernel works with."""

    slots: Any  # hash table of lists, at least twice as many places as a publication has
    values: Any  # of lists, row by row
    row_slots: Any  # hash table of the rows of a list
    levels: Levels
    rest: Any  # level -> what it has not come to, as bits
    value: Any  # column -> its value, as a term of the publication
    rows: Any  # of all pieces, as wide as what is selected; -1 where another piece has the value
    pieces: Any  # shape (components, 4): pair, clause, begin in `rows`, number of rows
    state: Any

    def grown(self) -> Lists:
        """These lists with twice the room."""
        values, rows = _doubled(self.values), _doubled(self.rows)
        return self._replace(values=values, rows=rows, row_slots=np.zeros(2 * len(self.row_slots), np.int64))


def lists(of_publication: int, pieces: int) -> Lists:
    """Room for so many lists of one publication, and so many pieces."""
    levels = Levels(
        np.empty((MOST_LEVELS, COLUMN_END), np.int64), np.empty((2, MOST_LEVELS), np.int64), np.empty(128, np.int64)
    )
    return Lists(
        np.zeros((1 << (2 * of_publication + 2).bit_length(), 4), np.int64), np.empty(_FIRST_ROOM, np.int32),
        np.zeros(_FIRST_ROOM, np.int64), levels, np.zeros((MOST_LEVELS, WORDS + 1), np.int64), np.empty(128, np.int64),
        np.empty(max(_FIRST_ROOM, 4 * pieces), np.int32), np.empty((pieces, 4), np.int64), np.zeros(8, np.int64),
    )  # fmt: skip


def _doubled(array: Any) -> Any:
    grown = np.empty(2 * len(array), array.dtype)
    grown[: len(array)] = array
    return grown


# --- one level -------------------------------------------------------------------------------------------------------


@called_helper
def _open_fitting(depth: int, n: int, p: int, triples: int, row: int, steps: StepColumns,
                  features: NodeFeatures, lists: Lists, work: Scratch) -> None:  # fmt: skip
    """The triples that fit a step with all values of a row."""
    t0, t1 = steps.test_offset[n], steps.test_offset[n + 1]
    listed = t1 if work.state[LISTED] != 0 else t0
    asks = t0 < t1 and (listed == t0 or steps.tested[t1 - 1, POSITION] >= RANGED)
    for w in range(triple_words(triples)):
        fit = rest = fitting(n, w, row, _int(steps.width[n, AFTER]), triples, t0, listed, steps, work)
        while asks and rest != 0:
            if not passes(t0, t1, w * WORD + lowest_bit(rest), p, steps, features, work):
                fit &= ~(rest & -rest)
            rest &= rest - 1
        lists.rest[depth, w] = fit


@called_helper
def _open(depth: int, p: int, triples: int, row: int, steps: StepColumns, features: NodeFeatures,
          lists: Lists, work: Scratch) -> None:  # fmt: skip
    """Begin a level. `row`: that of a path."""
    level, rest = lists.levels.level, lists.rest
    kind, s, words = level[depth, KIND], level[depth, STEP], triple_words(triples)
    if kind == VALUES:
        words = value_words(work)
        for w in range(words):
            rest[depth, w] = work.bits[work.node_memo[s, BEGIN] + w]
    elif kind == TRIPLES:
        begin, at, side = work.memo[s, BEGIN] + value_words(work), level[depth, AT], level[depth, SIDE]
        for w in range(words):
            rest[depth, w] = work.bits[begin + w]
            if at >= 0:
                rest[depth, w] &= work.sets[lists.value[at], side, w]
    elif kind == ALL_ROWS:
        words, rest[depth, 0] = _int(1), 0
    else:
        _open_fitting(depth, s, p, triples, row, steps, features, lists, work)
    rest[depth, WORDS] = words


@called_helper
def _advance(depth: int, steps: StepColumns, lists: Lists, work: Scratch) -> bool:
    """Give the columns of a level their next values."""
    level, rest, value = lists.levels.level, lists.rest, lists.value
    kind, child, side = level[depth, KIND], level[depth, CHILD_NODE], level[depth, SIDE]
    if kind == ALL_ROWS:
        s, number = level[depth, STEP], rest[depth, 0]
        if number == work.memo[s, COUNT]:
            return False
        width, rest[depth, 0] = _int(steps.width[s, AFTER]), number + 1
        for c in range(width):
            value[c] = work.rows[work.memo[s, BEGIN] + number * (width + 1) + 1 + c]
        return True
    for w in range(rest[depth, WORDS]):
        while rest[depth, w] != 0:
            own = w * WORD + lowest_bit(rest[depth, w])
            rest[depth, w] &= rest[depth, w] - 1  # without that bit
            if kind == VALUES:
                value[level[depth, COLUMN]] = own
                return True
            if child < 0 or has_value(work.node_memo[child, BEGIN], work.triples[2 - side, own], work.bits):
                for k in range(3):
                    if level[depth, COLUMN + k] >= 0:
                        value[level[depth, COLUMN + k]] = work.triples[k, own]
                return True
    return False


# --- a component -----------------------------------------------------------------------------------------------------


@called_helper
def walk_component(root: int, columns: int, asked: int, limit: int, most_steps: int, p: int, triples: int,
                   steps: StepColumns, features: NodeFeatures, lists: Lists,
                   work: Scratch) -> int:  # fmt: skip
    """Put the distinct rows of a component behind `values`, `limit` at the most. Returns how many they are."""
    last, repeats = plan(root, columns, asked, steps, lists.levels)
    values, begin, count, width, depth, row = lists.values, lists.state[USED], 0, 0, 0, _int(0)
    for c in range(columns):
        width += (asked >> c) & 1
    at = begin
    _open(0, p, triples, row, steps, features, lists, work)
    while depth >= 0 and count < limit:
        lists.state[WALKED] += 1
        if lists.state[WALKED] > most_steps:
            lists.state[USED] = at  # behind rows that `row_slots` knows, so that no other list takes them for its own
            return OVER
        if not _advance(depth, steps, lists, work):
            depth -= 1
            continue
        if depth + 1 < last:
            if depth == 0 and root < NO_STEP:
                size = _int(steps.width[-2 - root, AFTER]) + 1
                row = work.memo[-2 - root, BEGIN] + (lists.rest[0, 0] - 1) * size
            depth += 1
            _open(depth, p, triples, row, steps, features, lists, work)
            continue
        if at + width > values.size or 2 * count + 2 > lists.row_slots.size:
            return NO_ROOM
        k = at
        for c in range(columns):
            if (asked >> c) & 1:
                values[k], k = work.terms[OF_BATCH, lists.value[c]], k + 1
        if not repeats or is_new_row(values, begin, at, width, lists.row_slots):
            at, count = k, count + 1
    return count
