"""The solutions of clauses that match, from the sets and rows that the join network has of their components.

Equal components of which the same is selected are listed once for a publication, whatever their variables are called.
In a tree each value leads to a solution, as its sets are solved, so that what is walked is no more than what is listed,
but for rows that repeat others where variables are not selected. What is not listed here (LEFT) is left to
`triplewire.verify.solve`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.joins.columns import NodeFeatures, PairColumns
from triplewire.kernels.joins.network.columns import (
    CHILD,
    EDGE,
    LINK,
    MARK,
    MARKS,
    MORE,
    NEW_WIDTH,
    NO_STEP,
    PARENT,
    POSITION,
    PREDICATE,
    RANGED,
    TEST,
    TEST_END,
    UNLISTED,
    Scratch,
    StepColumns,
)
from triplewire.kernels.joins.network.decide import (
    AHEAD,
    EXACT,
    PRESENT,
    SCRATCH,
    STEPS,
    TESTS,
    begin_publication,
    fetch,
    most_solutions,
    take_scratch,
    take_steps,
    take_tests,
)
from triplewire.kernels.joins.network.direct import LINKED, NOWHERE, is_direct, values_of
from triplewire.kernels.joins.network.join import FIRST_ROW
from triplewire.kernels.joins.network.levels import (
    AT,
    CHILD_NODE,
    COLUMN,
    COLUMN_END,
    KIND,
    MOST_LEVELS,
    NONE,
    PAIRS,
    ROWS as ALL_ROWS,
    SIDE,
    STEP,
    TRIPLES,
    VALUES,
    Levels,
    plan,
)
from triplewire.kernels.joins.network.publication import (
    BEGIN,
    COUNT,
    FEW,
    LISTED,
    OF_BATCH,
    STAMP,
    WORD,
    fitting,
    passes,
    triple_words,
    value_words,
)
from triplewire.kernels.joins.network.semijoin import has_value, lowest_bit
from triplewire.kernels.prefetch import prefetch
from triplewire.kernels.shared.bits import count_bits
from triplewire.kernels.shared.columns import TermFeatures, TestColumns, Triples
from triplewire.kernels.shared.compiled import called_helper, helper, kernel
from triplewire.kernels.shared.hashing import is_new_row, mix_bits
from triplewire.kernels.shared.outcomes import LEFT, MATCH, MISS

KEY, ASKED, FIRST, SIZE = 0, 1, 2, 3
"""Columns of `slots`: stamp and root, the columns that are asked for, where their rows begin, how many rows there are."""

USED, ROWS, PIECES, LISTS, WALKED = 0, 1, 2, 3, 4
"""Places in `state`: how much of `values`, `rows` and `pieces` is used; lists that were made; steps of the pair."""

NO_ROOM, OVER = -1, -2  # in place of a number of rows: a table is too small; it takes too many steps
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
        """The same with twice the room."""
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


@helper
def _open_link(depth: int, n: int, triples: int, steps: StepColumns, lists: Lists, work: Scratch) -> None:
    """The triples of the link of a direct node whose ends have values."""
    step, linked = steps.step, LINKED - steps.node[n, MORE]
    s, back, own, theirs = steps.node[n, linked], _int(0), values_of(n, linked, steps, work), ~_int(0)
    if step[s, PARENT] == LINK:
        back, theirs = _int(step[s, EDGE] & 1), values_of(step[s, CHILD], _int(NOWHERE), steps, work)
        s = step[s, EDGE] >> 1
    elif lists.levels.level[depth, COLUMN] != 0:
        back = _int(1)
    place = work.constants[step[s, PREDICATE]] & _LOW
    for w in range(triple_words(triples)):
        rest = fit = work.sets[place, 1, w]
        while rest != 0:
            triple = w * WORD + lowest_bit(rest)
            if own >> work.triples[2 * back, triple] & theirs >> work.triples[2 - 2 * back, triple] & 1 == 0:
                fit &= ~(rest & -rest)
            rest &= rest - 1
        lists.rest[depth, w] = fit


@called_helper
def _open_fitting(depth: int, n: int, p: int, triples: int, row: int, steps: StepColumns, tests: TestColumns,
                  features: NodeFeatures, lists: Lists, work: Scratch) -> None:  # fmt: skip
    """The triples that fit a step with all values of a row."""
    t0, t1 = steps.step[n, TEST], steps.step[n, TEST_END]
    listed = t1 if work.state[LISTED] != 0 else t0
    asks = t0 < t1 and (listed == t0 or steps.tested[t1 - 1, POSITION] >= RANGED)
    for w in range(triple_words(triples)):
        fit = rest = fitting(n, w, row, steps.step[n, NEW_WIDTH], triples, t0, listed, steps, work)
        while asks and rest != 0:
            if not passes(t0, t1, w * WORD + lowest_bit(rest), p, steps, tests, features, work):
                fit &= ~(rest & -rest)
            rest &= rest - 1
        lists.rest[depth, w] = fit


@called_helper
def _open(depth: int, p: int, triples: int, row: int, steps: StepColumns, tests: TestColumns, features: NodeFeatures,
          lists: Lists, work: Scratch) -> None:  # fmt: skip
    """Begin a level. `row`: that of a path."""
    level, rest = lists.levels.level, lists.rest
    kind, s, words = level[depth, KIND], level[depth, STEP], triple_words(triples)
    if kind == VALUES:
        words = value_words(work)
        if is_direct(s, steps, work):
            words, rest[depth, 0] = _int(1), values_of(s, _int(NOWHERE), steps, work)
        else:
            for w in range(words):
                rest[depth, w] = work.bits[work.node_memo[s, BEGIN] + w]
    elif kind == TRIPLES:
        begin, at, side = work.memo[s, BEGIN] + value_words(work), level[depth, AT], level[depth, SIDE]
        for w in range(words):
            rest[depth, w] = work.bits[begin + w]
            if at >= 0:
                rest[depth, w] &= work.sets[lists.value[at], side, w]
    elif kind == PAIRS:
        _open_link(depth, s, triples, steps, lists, work)
    elif kind == ALL_ROWS:
        words, rest[depth, 0] = _int(1), 0
    else:
        _open_fitting(depth, s, p, triples, row, steps, tests, features, lists, work)
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
        width, rest[depth, 0] = steps.step[s, NEW_WIDTH], number + 1
        for c in range(width):
            value[c] = work.rows[work.memo[s, BEGIN] + number * (width + 1) + 1 + c]
        return True
    for w in range(rest[depth, WORDS]):
        while rest[depth, w] != 0:
            own = w * WORD + lowest_bit(rest[depth, w])
            rest[depth, w] &= rest[depth, w] - 1
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
def _walk(root: int, columns: int, asked: int, limit: int, most_steps: int, p: int, triples: int, steps: StepColumns,
          tests: TestColumns, features: NodeFeatures, lists: Lists, work: Scratch) -> int:  # fmt: skip
    """Put the distinct rows of a component behind `values`, `limit` at the most. Returns how many they are."""
    last, repeats = plan(root, root >= 0 and is_direct(root, steps, work), columns, asked, steps, lists.levels)
    values, begin, count, width, depth, row = lists.values, lists.state[USED], 0, 0, 0, _int(0)
    for c in range(columns):
        width += (asked >> c) & 1
    at = begin
    _open(0, p, triples, row, steps, tests, features, lists, work)
    while depth >= 0 and count < limit:
        lists.state[WALKED] += 1
        if lists.state[WALKED] > most_steps:
            return OVER
        if not _advance(depth, steps, lists, work):
            depth -= 1
            continue
        if depth + 1 < last:
            if depth == 0 and root < NO_STEP:
                size = steps.step[-2 - root, NEW_WIDTH] + 1
                row = work.memo[-2 - root, BEGIN] + (lists.rest[0, 0] - 1) * size
            depth += 1
            _open(depth, p, triples, row, steps, tests, features, lists, work)
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


@helper
def _list(root: int, columns: int, asked: int, limit: int, most_steps: int, p: int, triples: int, steps: StepColumns,
          tests: TestColumns, features: NodeFeatures, lists: Lists, work: Scratch) -> int:  # fmt: skip
    """The place in `slots` of the rows of a component, which are listed if they have not been. Or NO_ROOM, or OVER."""
    slots, key = lists.slots, (work.state[STAMP] << 32) | (_int(root) & _LOW)
    place, mask = mix_bits(mix_bits(key) + mix_bits(asked)) & (slots.shape[0] - 1), slots.shape[0] - 1
    while slots[place, KEY] >> 32 == work.state[STAMP] and (slots[place, KEY] != key or slots[place, ASKED] != asked):
        place = (place + 1) & mask
    if slots[place, KEY] != key:
        size = _walk(root, columns, asked, limit, most_steps, p, triples, steps, tests, features, lists, work)
        if size < 0:
            return size
        slots[place, KEY], slots[place, ASKED], slots[place, FIRST] = key, asked, lists.state[USED]
        slots[place, SIZE] = size
        lists.state[LISTS] += 1
        for c in range(columns):
            lists.state[USED] += size * ((asked >> c) & 1)
    return int(place)


@helper
def _add_piece(pair: int, clause: int, width: int, place: int, at: int, columns: int, steps: StepColumns,
               lists: Lists) -> bool:  # fmt: skip
    """Make a piece of the rows at `place` (or, where it is NONE, of one row without values), whose columns are the
    variables at `at`. False: there is no room."""
    state, rows, variable = lists.state, lists.rows, steps.variable
    count, k = _int(lists.slots[place, SIZE] if place >= 0 else 1), _int(lists.slots[max(place, 0), FIRST])
    begin, piece = state[ROWS], state[PIECES]
    if begin + count * width > rows.size:
        return False
    for row in range(begin, begin + count * width, width):
        for v in range(width):
            rows[row + v] = NONE
        for c in range(columns if place >= 0 else 0):
            if variable[at + c] < width:
                rows[row + variable[at + c]], k = lists.values[k], k + 1
    lists.pieces[piece, 0], lists.pieces[piece, 1], lists.pieces[piece, 2] = pair, clause, begin
    lists.pieces[piece, 3], state[ROWS], state[PIECES] = count, begin + count * width, piece + 1
    return True


@helper
def _add_values(pair: int, clause: int, width: int, bits: Any, variable: int, limit: int, lists: Lists,
                work: Scratch) -> bool:  # fmt: skip
    """Make a piece of the values of a variable, which are the bits of a number. False: there is no room."""
    state, rows, count = lists.state, lists.rows, min(count_bits(bits), limit)
    begin, piece = state[ROWS], state[PIECES]
    if begin + count * width > rows.size:
        return False
    for row in range(begin, begin + count * width, width):
        for v in range(width):
            rows[row + v] = NONE
        rows[row + variable] = work.terms[OF_BATCH, lowest_bit(bits)]
        bits &= bits - 1
    lists.pieces[piece, 0], lists.pieces[piece, 1], lists.pieces[piece, 2] = pair, clause, begin
    lists.pieces[piece, 3], state[ROWS], state[PIECES] = count, begin + count * width, piece + 1
    return True


# --- pairs -----------------------------------------------------------------------------------------------------------


@called_helper
def _clause(pair: int, clause: int, c: int, width: int, limit: int, most_steps: int, p: int, triples: int,
            network: Any, features: NodeFeatures, lists: Lists, work: Scratch) -> int:  # fmt: skip
    """Make pieces of a clause. Returns MATCH or MISS, NO_ROOM, or OVER: it is left."""
    steps, tests = network
    if steps.clause[c, MARK] & (PRESENT | EXACT) != PRESENT | EXACT:
        return OVER
    at, pieces, rows = _int(steps.clause[c, MARK] >> MARKS), lists.state[PIECES], lists.state[ROWS]
    for j in range(steps.component_offset[c], steps.component_offset[c + 1]):
        root, columns, asked = _int(steps.last[j]), _int(steps.variable[at]), _int(0)
        if columns == UNLISTED:
            return OVER
        count = most_solutions(root, p, triples, steps, tests, features, work)
        if count == 0:
            lists.state[PIECES], lists.state[ROWS] = pieces, rows
            return MISS
        if count < 0:
            return OVER
        for k in range(columns):
            asked |= _int(steps.variable[at + 1 + k] < width) << k
        if asked != 0 and columns == 1 and root >= 0 and is_direct(root, steps, work):
            bits = values_of(root, _int(NOWHERE), steps, work)
            if not _add_values(pair, clause, width, bits, _int(steps.variable[at + 1]), limit, lists, work):
                return NO_ROOM
        elif asked != 0:
            place = _list(root, columns, asked, limit, most_steps, p, triples, steps, tests, features, lists, work)
            if place < 0:
                return place
            if not _add_piece(pair, clause, width, place, at + 1, columns, steps, lists):
                return NO_ROOM
        at += columns + 1
    if lists.state[PIECES] == pieces and not _add_piece(pair, clause, width, NONE, at, 0, steps, lists):
        return NO_ROOM
    return MATCH


@kernel
def list_pairs(done: int, pairs: PairColumns, lent: Any, batch: Triples, features: TermFeatures, node_key: Any,
               cap: int, most_steps: int, outcome: Any, lists: Lists) -> int:  # fmt: skip
    """List the solutions of pairs that match, from `done` on; outcome: LEFT where that is not done here. `lent`: as for
    `triplewire.kernels.joins.network.decide`. Returns the first pair for which there is no room, else their number."""
    of_nodes = NodeFeatures(
        features.offset, features.test, features.low, features.high, features.node_offset, node_key
    )  # fmt: skip
    steps, tests, work = take_steps(lent, STEPS), take_tests(lent, TESTS), take_scratch(lent, SCRATCH)
    (publication, clause_offset, clauses, width), state, now, triples = pairs, lists.state, _int(-1), _int(0)
    work.rows[FIRST_ROW] = 1
    for i in range(done, publication.size):
        if i % AHEAD == 0 or i == done:
            fetch(clauses, clause_offset[i], steps, work)
            for j in range(i, min(i + AHEAD, publication.size)):
                prefetch(steps.variable, steps.clause[clauses[clause_offset[j]], MARK] >> MARKS)
        p, pieces, rows = _int(publication[i]), state[PIECES], state[ROWS]
        if p != now:
            now, triples = p, _int(batch.offset[p + 1] - batch.offset[p])
            if triples <= FEW:
                begin_publication(p, batch, features.term, of_nodes, work)
        own, state[WALKED] = _int(MATCH if width[i] == 0 else MISS), 0
        if triples > FEW:
            own = _int(OVER)
        for j in range(clause_offset[i], clause_offset[i + 1] if width[i] > 0 else clause_offset[i]):
            if own >= 0:
                told = _clause(
                    i, j, _int(clauses[j]), _int(width[i]), cap + 1, most_steps, p, triples, (steps, tests), of_nodes,
                    lists, work,
                )  # fmt: skip
                own = told if told < 0 else max(own, told)
        if own < 0:
            state[PIECES], state[ROWS] = pieces, rows
        if own == NO_ROOM:
            return i
        outcome[i] = LEFT if own == OVER else own
    return publication.size
