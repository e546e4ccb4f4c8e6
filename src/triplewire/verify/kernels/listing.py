"""The solutions of clauses that match, from the sets and rows that the join network has of their components.

    for each pair, for each of its clauses, for each component with selected variables:
        no solution: the clause has none (MISS)
        rows = a direct node: the values of its ends | listed for this publication before: the same rows | walk it
        a piece (pair, clause, where its rows are), of which `triplewire.verify.kernels.rows` makes products and unions

Equal components of which the same is selected are listed once for a publication, whatever their variables are called.
What is not listed here (LEFT) goes to the next step of `triplewire.verify.batch_verifier`.

    levels = of a tree: its root's values, then the triples of each step, from the root on | of a path: its last
        step's rows, then the triples of each leaf; without those that give no column that is asked for
    walk: depth first, each level's triples those that fit the values so far; behind the last level a row is complete
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.shared.columns import LEFT, MATCH, MISS, TermFeatures, Triples
from triplewire.kernels.shared.compiled import called_helper, helper, kernel, prefetch
from triplewire.kernels.shared.hashing import is_new_row, mix_bits
from triplewire.kernels.shared.search import count_bits, lowest_bit
from triplewire.verify.kernels import columns as net
from triplewire.verify.kernels import direct
from triplewire.verify.kernels.columns import NodeFeatures, PairColumns, Scratch, StepColumns
from triplewire.verify.kernels.decide import AHEAD, begin_publication, components_of, fetch, most_solutions, root_of
from triplewire.verify.kernels.publication import fitting, has_many_pairs, passes, triple_words, value_words
from triplewire.verify.kernels.trees import has_value, needs, of_variable, steps_of

# --- levels: each gives some of the columns their values -------------------------------------------------------------


KIND, STEP, AT, SIDE, CHILD_NODE, COLUMN, COLUMN_END = 0, 1, 2, 3, 4, 5, 8
"""Columns of `level`: what it walks; the step or node; the column that its triples have a value of, or NONE, and in
which place; the node that has the value at the other end, or NONE; by place of a triple, the column that it gives."""

VALUES, TRIPLES, ALL_ROWS, FITTING = 0, 1, 2, 3
"""Kinds: the values of a node; the triples of a step that is APART; the rows of a path's last step; the triples that
fit a step with the row's values."""

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
        level[count, COLUMN + k] = net.NONE
    return count + 1


@helper
def _add_leaves(s: int, column: int, count: int, steps: StepColumns, level: Any) -> int:
    """The level before `count` gives what is LEAF in a step. Returns how many columns there are."""
    for k in range(3):
        if steps.step[s, net.SUBJECT + k] == net.LEAF:
            level[count - 1, COLUMN + k], column = column, column + 1
    return column


@called_helper
def _tree(root: int, steps: StepColumns, levels: Levels) -> int:
    """The levels of a tree."""
    step, level, queue = steps.step, levels.level, levels.queue
    count, column, head, tail = 0, 0, 0, 1
    queue[0, 0], queue[1, 0] = root, net.NONE
    if of_variable(root, steps):
        count = _add(VALUES, root, net.NONE, 0, net.NONE, count, level)
        level[0, COLUMN], queue[1, 0], column = 0, 0, 1
    while head < tail:
        n, variable, head = queue[0, head], queue[1, head], head + 1
        for k in range(steps_of(n, steps)):
            s = needs(n, k, steps)
            if s == net.ALWAYS:
                continue
            if step[s, net.PARENT] == net.LINK:
                edge, back = step[s, net.EDGE] >> 1, step[s, net.EDGE] & 1
                count = _add(TRIPLES, edge, variable, 2 * back, step[s, net.CHILD], count, level)
                column = _add_leaves(edge, column, count, steps, level)
                queue[0, tail], queue[1, tail], tail = step[s, net.CHILD], column, tail + 1
                level[count - 1, COLUMN + 2 - 2 * back], column = column, column + 1
            else:
                count = _add(TRIPLES, s, variable, 0 if step[s, net.SUBJECT] == -1 else 2, net.NONE, count, level)
                column = _add_leaves(s, column, count, steps, level)
    return count


@called_helper
def _path(last: int, steps: StepColumns, levels: Levels) -> int:
    """The levels of a path."""
    step, level, queue = steps.step, levels.level, levels.queue
    count, column, length, s = (
        _add(ALL_ROWS, last, net.NONE, 0, net.NONE, 0, level),
        int(steps.width[last, net.AFTER]),
        0,
        last,
    )
    while s >= 0:
        queue[0, length], length, s = s, length + 1, step[s, net.PARENT]
    while length > 0:
        length -= 1
        s = queue[0, length]
        before, count = column, _add(FITTING, s, net.NONE, 0, net.NONE, count, level)
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
    count = _path(-2 - root, steps, levels) if root < net.NO_STEP else _tree(root, steps, levels)
    level_count, repeats = 0, False
    for n in range(count - 1, -1, -1):
        is_kept = level[n, KIND] == ALL_ROWS
        for k in range(3):
            is_kept = is_kept or (level[n, COLUMN + k] >= 0 and wanted[level[n, COLUMN + k]] != 0)
        if is_kept and level[n, AT] >= 0:
            wanted[level[n, AT]] = 1
        if not is_kept:
            level[n, KIND] = net.NONE
    for n in range(count):
        if level[n, KIND] == net.NONE:
            continue
        for k in range(3):
            repeats = repeats or (level[n, COLUMN + k] >= 0 and (asked >> level[n, COLUMN + k]) & 1 == 0)
        if level[n, KIND] == ALL_ROWS:
            for c in range(steps.width[level[n, STEP], net.AFTER]):
                repeats = repeats or (asked >> c) & 1 == 0
        for k in range(COLUMN_END):
            level[level_count, k] = level[n, k]
        level_count += 1
    return level_count, repeats


# --- lists -----------------------------------------------------------------------------------------------------------


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
        values, rows = net.doubled(self.values), net.doubled(self.rows)
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


# --- a component is walked, level by level ---------------------------------------------------------------------------


@called_helper
def _open(depth: int, p: int, triples: int, row: int, steps: StepColumns, features: NodeFeatures,
          lists: Lists, work: Scratch) -> None:  # fmt: skip
    """Begin a level: its values, or triples. `row`: that of a path, with whose values FITTING triples have to fit."""
    level, rest = lists.levels.level, lists.rest
    kind, s, words = level[depth, KIND], level[depth, STEP], triple_words(triples)
    if kind == VALUES:
        words = value_words(work)
        for w in range(words):
            rest[depth, w] = work.bits[work.node_memo[s, net.BEGIN] + w]
    elif kind == TRIPLES:
        begin, at, side = work.memo[s, net.BEGIN] + value_words(work), level[depth, AT], level[depth, SIDE]
        for w in range(words):
            rest[depth, w] = work.bits[begin + w]
            if at >= 0:
                rest[depth, w] &= work.sets[lists.value[at], side, w]
    elif kind == ALL_ROWS:
        words, rest[depth, 0] = _int(1), 0
    else:
        t0, t1, width = steps.test_offset[s], steps.test_offset[s + 1], _int(steps.width[s, net.AFTER])
        listed = t1 if work.state[net.LISTED] != 0 else t0
        asks = t0 < t1 and (listed == t0 or steps.tested[t1 - 1, net.POSITION] >= net.RANGED)
        for w in range(words):
            fit = left = fitting(s, w, row, width, triples, t0, listed, steps, work)
            while asks and left != 0:
                if not passes(t0, t1, w * net.WORD + lowest_bit(left), p, steps, features, work):
                    fit &= ~(left & -left)  # without the lowest bit that is left
                left &= left - 1
            rest[depth, w] = fit
    rest[depth, WORDS] = words


@called_helper
def _advance(depth: int, steps: StepColumns, lists: Lists, work: Scratch) -> bool:
    """Give the columns of a level their next values."""
    level, rest, value = lists.levels.level, lists.rest, lists.value
    kind, child, side = level[depth, KIND], level[depth, CHILD_NODE], level[depth, SIDE]
    if kind == ALL_ROWS:
        s, number = level[depth, STEP], rest[depth, 0]
        if number == work.memo[s, net.COUNT]:
            return False
        width, rest[depth, 0] = _int(steps.width[s, net.AFTER]), number + 1
        for c in range(width):
            value[c] = work.rows[work.memo[s, net.BEGIN] + number * (width + 1) + 1 + c]
        return True
    for w in range(rest[depth, WORDS]):
        while rest[depth, w] != 0:
            number = w * net.WORD + lowest_bit(rest[depth, w])  # of a value, or of a triple
            rest[depth, w] &= rest[depth, w] - 1  # without that bit
            if kind == VALUES:
                value[level[depth, COLUMN]] = number
                return True
            if child < 0 or has_value(work.node_memo[child, net.BEGIN], work.triples[2 - side, number], work.bits):
                for k in range(3):
                    if level[depth, COLUMN + k] >= 0:
                        value[level[depth, COLUMN + k]] = work.triples[k, number]
                return True
    return False


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
            if depth == 0 and root < net.NO_STEP:
                size = _int(steps.width[-2 - root, net.AFTER]) + 1
                row = work.memo[-2 - root, net.BEGIN] + (lists.rest[0, 0] - 1) * size
            depth += 1
            _open(depth, p, triples, row, steps, features, lists, work)
            continue
        if at + width > values.size or 2 * count + 2 > lists.row_slots.size:
            return NO_ROOM
        k = at
        for c in range(columns):
            if (asked >> c) & 1:
                values[k], k = work.terms[net.OF_BATCH, lists.value[c]], k + 1
        if not repeats or is_new_row(values, begin, at, width, lists.row_slots):
            at, count = k, count + 1
    return count


# --- pieces of a clause ----------------------------------------------------------------------------------------------


OTHER, BOTH = 0b10, 0b11  # which ends of a direct node's link are asked for, as bits; its own is the first


@helper
def _list(root: int, columns: int, asked: int, limit: int, most_steps: int, p: int, triples: int, steps: StepColumns,
          features: NodeFeatures, lists: Lists, work: Scratch) -> int:  # fmt: skip
    """The place in `slots` of the rows of a component, which are listed if they have not been. Or NO_ROOM, or OVER."""
    slots, key = lists.slots, (work.state[net.STAMP] << 32) | (_int(root) & _LOW)
    place, mask = mix_bits(mix_bits(key) + mix_bits(asked)) & (slots.shape[0] - 1), slots.shape[0] - 1
    stamp = work.state[net.STAMP]
    while slots[place, KEY] >> 32 == stamp and (slots[place, KEY] != key or slots[place, ASKED] != asked):
        place = (place + 1) & mask
    if slots[place, KEY] != key:
        size = walk_component(root, columns, asked, limit, most_steps, p, triples, steps, features, lists, work)
        if size < 0:
            return size
        slots[place, KEY], slots[place, ASKED], slots[place, FIRST] = key, asked, lists.state[USED]
        slots[place, SIZE] = size
        lists.state[LISTS] += 1
        for c in range(columns):
            lists.state[USED] += size * ((asked >> c) & 1)
    return int(place)


@helper
def _end_piece(pair: int, clause: int, begin: int, count: int, width: int, lists: Lists) -> None:
    """Write down a piece whose rows are there, `count` from `begin` on."""
    piece = lists.state[PIECES]
    lists.pieces[piece, 0], lists.pieces[piece, 1], lists.pieces[piece, 2] = pair, clause, begin
    lists.pieces[piece, 3], lists.state[ROWS], lists.state[PIECES] = count, begin + count * width, piece + 1


@helper
def _add_piece(pair: int, clause: int, width: int, place: int, at: int, columns: int, steps: StepColumns,
               lists: Lists) -> bool:  # fmt: skip
    """Make a piece of the rows at `place` (or, where it is NONE, of one row without values), whose columns are the
    variables at `at`. False: there is no room."""
    state, rows, variable = lists.state, lists.rows, steps.variable
    count, k = _int(lists.slots[place, SIZE] if place >= 0 else 1), _int(lists.slots[max(place, 0), FIRST])
    begin = state[ROWS]
    if begin + count * width > rows.size:
        return False
    for row in range(begin, begin + count * width, width):
        for v in range(width):
            rows[row + v] = net.NONE
        for c in range(columns if place >= 0 else 0):
            v = _int(variable[at + c])
            if v < width:
                rows[row + v], k = lists.values[k], k + 1
    _end_piece(pair, clause, begin, count, width, lists)
    return True


@helper
def _add_values(pair: int, clause: int, width: int, bits: Any, variable: int, limit: int, lists: Lists,
                work: Scratch) -> bool:  # fmt: skip
    """Make a piece of the values of a variable, which are the bits of a number. False: there is no room."""
    state, rows, count = lists.state, lists.rows, min(count_bits(bits), limit)
    begin = state[ROWS]
    if begin + count * width > rows.size:
        return False
    for row in range(begin, begin + count * width, width):
        for v in range(width):
            rows[row + v] = net.NONE
        rows[row + variable] = work.terms[net.OF_BATCH, lowest_bit(bits)]
        bits &= bits - 1
    _end_piece(pair, clause, begin, count, width, lists)
    return True


@helper
def _add_link(pair: int, clause: int, width: int, root: int, at: int, limit: int, triples: int, steps: StepColumns,
              lists: Lists, work: Scratch) -> bool:  # fmt: skip
    """Make a piece of the solutions of a direct node with a link, whose ends are the two variables at `at`. False:
    there is no room."""
    (near, far, back, place), state, rows = direct.link_of(root, steps, work), lists.state, lists.rows
    begin, count = state[ROWS], 0
    for w in range(triple_words(triples)):
        fit = direct.fitting_link(w, near, far, back, place, work)
        while fit != 0 and count < limit:
            row, triple = begin + count * width, w * net.WORD + lowest_bit(fit)
            if row + width > rows.size:
                return False
            for v in range(width):
                rows[row + v] = net.NONE
            rows[row + steps.variable[at]] = work.terms[net.OF_BATCH, work.triples[2 * back, triple]]
            rows[row + steps.variable[at + 1]] = work.terms[net.OF_BATCH, work.triples[2 - 2 * back, triple]]
            fit, count = fit & (fit - 1), count + 1
    _end_piece(pair, clause, begin, count, width, lists)
    return True


@helper
def _add_direct(pair: int, clause: int, width: int, root: int, at: int, asked: int, limit: int, triples: int,
                steps: StepColumns, lists: Lists, work: Scratch) -> bool:  # fmt: skip
    """Make a piece of the solutions of a direct node, whose columns are the variables at `at`. False: there is no
    room."""
    if direct.linked_step(root, steps) < 0:
        bits, is_other = direct.values_of(root, _int(direct.NOWHERE), steps, work), False
    elif asked == BOTH:
        return bool(_add_link(pair, clause, width, root, at, limit, triples, steps, lists, work))
    else:
        is_other = asked == OTHER
        bits = direct.end_values(root, is_other, triples, steps, work)
    return bool(_add_values(pair, clause, width, bits, _int(steps.variable[at + is_other]), limit, lists, work))


@called_helper
def _clause(pair: int, clause: int, c: int, width: int, limit: int, most_steps: int, p: int, triples: int,
            steps: StepColumns, features: NodeFeatures, lists: Lists, work: Scratch) -> int:  # fmt: skip
    """Make pieces of a clause. Returns MATCH or MISS, NO_ROOM, or OVER: it is left."""
    if steps.clause[c, net.MARK] & net.EXACT == 0:
        return OVER
    at, pieces, rows = _int(steps.clause[c, net.MARK] >> net.MARKS) + 1, lists.state[PIECES], lists.state[ROWS]
    first, last = components_of(c, steps)
    for j in range(first, last):
        root, columns, asked = _int(root_of(c, j, steps)), _int(steps.variable[at]), _int(0)
        if columns == net.UNLISTED:
            return OVER
        count = most_solutions(root, p, triples, steps, features, work)
        if count == 0:
            lists.state[PIECES], lists.state[ROWS] = pieces, rows
            return MISS
        if count < 0:
            return OVER
        for k in range(columns):
            asked |= _int(steps.variable[at + 1 + k] < width) << k
        if asked != 0 and root >= 0 and direct.is_direct(root, steps, work):
            if not _add_direct(pair, clause, width, root, at + 1, asked, limit, triples, steps, lists, work):
                return NO_ROOM
        elif asked != 0:
            place = _list(root, columns, asked, limit, most_steps, p, triples, steps, features, lists, work)
            if place < 0:
                return place
            if not _add_piece(pair, clause, width, place, at + 1, columns, steps, lists):
                return NO_ROOM
        at += columns + 1
    if lists.state[PIECES] == pieces and not _add_piece(pair, clause, width, net.NONE, at, 0, steps, lists):
        return NO_ROOM
    return MATCH


@kernel
def most_lists(pairs: PairColumns, component_offset: Any) -> tuple[int, int]:
    """How many lists the pairs of one publication, which follow each other, may have at the most, and how many pieces
    all pairs may have. component_offset: clause -> where its components begin."""
    publication, clause_offset, clauses, _ = pairs
    most, of_publication, pieces = 0, 0, clauses.size
    for i in range(publication.size):
        of_publication = of_publication if i > 0 and publication[i] == publication[i - 1] else 0
        for j in range(clause_offset[i], clause_offset[i + 1]):
            components = _int(component_offset[clauses[j] + 1]) - _int(component_offset[clauses[j]]) + 1
            of_publication, pieces = of_publication + components, pieces + components
        most = max(most, of_publication)
    return int(most), int(pieces)


@kernel
def list_pairs(done: int, pairs: PairColumns, lent: Any, batch: Triples, features: TermFeatures, node_key: Any,
               cap: int, most_steps: int, outcome: Any, lists: Lists) -> int:  # fmt: skip
    """List the solutions of pairs that match, from `done` on; outcome: LEFT where that is not done here. `lent`: as for
    `triplewire.verify.kernels.decide`. Returns the first pair for which there is no room,
    else their number."""
    of_nodes = NodeFeatures(
        features.offset, features.test, features.low, features.high, features.node_offset, node_key
    )  # fmt: skip
    steps, work = net.take_steps(lent, net.STEPS), net.take_scratch(lent, net.SCRATCH)
    (publication, clause_offset, clauses, width), state = pairs, lists.state
    work.rows[net.FIRST_ROW] = 1
    for i in range(done, publication.size):
        if i % AHEAD == 0 or i == done:
            fetch(clauses, clause_offset[i], steps, work)
            for j in range(clause_offset[i], min(clause_offset[i] + AHEAD, clauses.size)):
                prefetch(steps.variable, steps.clause[clauses[j], net.MARK] >> net.MARKS)
        p, pieces, rows = _int(publication[i]), state[PIECES], state[ROWS]
        triples = _int(batch.offset[p + 1] - batch.offset[p])
        if p + 1 != state[NUMBER]:
            state[NUMBER] = p + 1
            if triples <= net.FEW:
                begin_publication(p, batch, features.term, of_nodes, has_many_pairs(publication, i), work)
        verdict, state[WALKED] = _int(OVER if triples > net.FEW else MATCH if width[i] == 0 else MISS), 0
        for j in range(clause_offset[i], clause_offset[i + 1] if width[i] > 0 else clause_offset[i]):
            if verdict >= 0:
                c, w = _int(clauses[j]), _int(width[i])
                told = _clause(i, j, c, w, cap + 1, most_steps, p, triples, steps, of_nodes, lists, work)
                verdict = told if told < 0 else max(verdict, told)
        if verdict < 0:
            state[PIECES], state[ROWS] = pieces, rows
        if verdict == NO_ROOM:
            return i
        outcome[i] = LEFT if verdict == OVER else verdict
    return int(publication.size)
