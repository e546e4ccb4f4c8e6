"""The solutions of clauses that match, from the sets and rows that the join network has of their components.

    for each pair, for each of its clauses, for each component with selected variables:
        no solution: the clause has none (MISS)
        rows = a direct node: the values of its ends | listed for this publication before: the same rows | walk it
        a piece (pair, clause, where its rows are), of which `triplewire.kernels.joins.unions` makes products and unions

Equal components of which the same is selected are listed once for a publication, whatever their variables are called.
How a component is walked: `triplewire.kernels.joins.network.walk`. What is not listed here (LEFT) goes to the next step
of `triplewire.verify.batch_verifier`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.joins.columns import NodeFeatures, PairColumns
from triplewire.kernels.joins.network.columns import MARK, MARKS, UNLISTED, Scratch, StepColumns
from triplewire.kernels.joins.network.decide import (
    AHEAD,
    EXACT,
    SCRATCH,
    STEPS,
    begin_publication,
    components_of,
    fetch,
    most_solutions,
    root_of,
    take_scratch,
    take_steps,
)
from triplewire.kernels.joins.network.direct import (
    NOWHERE,
    end_values,
    fitting_link,
    is_direct,
    link_of,
    linked_step,
    values_of,
)
from triplewire.kernels.joins.network.join import FIRST_ROW
from triplewire.kernels.joins.network.levels import NONE
from triplewire.kernels.joins.network.publication import FEW, OF_BATCH, STAMP, WORD, has_many_pairs, triple_words
from triplewire.kernels.joins.network.walk import (
    ASKED,
    FIRST,
    KEY,
    LISTS,
    NO_ROOM,
    NUMBER,
    OVER,
    PIECES,
    ROWS,
    SIZE,
    USED,
    WALKED,
    Lists,
    walk_component,
)
from triplewire.kernels.prefetch import prefetch
from triplewire.kernels.shared.bits import count_bits, lowest_bit
from triplewire.kernels.shared.columns import TermFeatures, Triples
from triplewire.kernels.shared.compiled import called_helper, helper, kernel
from triplewire.kernels.shared.hashing import mix_bits
from triplewire.kernels.shared.outcomes import LEFT, MATCH, MISS

OTHER, BOTH = 0b10, 0b11  # which ends of a direct node's link are asked for, as bits; its own is the first
_int: Any = np.int64
_LOW = _int(0xFFFFFFFF)


# --- a component -----------------------------------------------------------------------------------------------------


@helper
def _list(root: int, columns: int, asked: int, limit: int, most_steps: int, p: int, triples: int, steps: StepColumns,
          features: NodeFeatures, lists: Lists, work: Scratch) -> int:  # fmt: skip
    """The place in `slots` of the rows of a component, which are listed if they have not been. Or NO_ROOM, or OVER."""
    slots, key = lists.slots, (work.state[STAMP] << 32) | (_int(root) & _LOW)
    place, mask = mix_bits(mix_bits(key) + mix_bits(asked)) & (slots.shape[0] - 1), slots.shape[0] - 1
    while slots[place, KEY] >> 32 == work.state[STAMP] and (slots[place, KEY] != key or slots[place, ASKED] != asked):
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
            rows[row + v] = NONE
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
            rows[row + v] = NONE
        rows[row + variable] = work.terms[OF_BATCH, lowest_bit(bits)]
        bits &= bits - 1
    _end_piece(pair, clause, begin, count, width, lists)
    return True


@helper
def _add_link(pair: int, clause: int, width: int, root: int, at: int, limit: int, triples: int, steps: StepColumns,
              lists: Lists, work: Scratch) -> bool:  # fmt: skip
    """Make a piece of the solutions of a direct node with a link, whose ends are the two variables at `at`. False:
    there is no room."""
    (own, theirs, back, place), state, rows = link_of(root, steps, work), lists.state, lists.rows
    begin, count = state[ROWS], 0
    for w in range(triple_words(triples)):
        fit = fitting_link(w, own, theirs, back, place, work)
        while fit != 0 and count < limit:
            row, triple = begin + count * width, w * WORD + lowest_bit(fit)
            if row + width > rows.size:
                return False
            for v in range(width):
                rows[row + v] = NONE
            rows[row + steps.variable[at]] = work.terms[OF_BATCH, work.triples[2 * back, triple]]
            rows[row + steps.variable[at + 1]] = work.terms[OF_BATCH, work.triples[2 - 2 * back, triple]]
            fit, count = fit & (fit - 1), count + 1
    _end_piece(pair, clause, begin, count, width, lists)
    return True


@helper
def _add_direct(pair: int, clause: int, width: int, root: int, at: int, asked: int, limit: int, triples: int,
                steps: StepColumns, lists: Lists, work: Scratch) -> bool:  # fmt: skip
    """Make a piece of the solutions of a direct node, whose columns are the variables at `at`. False: there is no
    room."""
    if linked_step(root, steps) < 0:
        bits, is_other = values_of(root, _int(NOWHERE), steps, work), False
    elif asked == BOTH:
        return bool(_add_link(pair, clause, width, root, at, limit, triples, steps, lists, work))
    else:
        is_other = asked == OTHER
        bits = end_values(root, is_other, triples, steps, work)
    return bool(_add_values(pair, clause, width, bits, _int(steps.variable[at + is_other]), limit, lists, work))


# --- pairs -----------------------------------------------------------------------------------------------------------


@called_helper
def _clause(pair: int, clause: int, c: int, width: int, limit: int, most_steps: int, p: int, triples: int,
            steps: StepColumns, features: NodeFeatures, lists: Lists, work: Scratch) -> int:  # fmt: skip
    """Make pieces of a clause. Returns MATCH or MISS, NO_ROOM, or OVER: it is left."""
    if steps.clause[c, MARK] & EXACT == 0:
        return OVER
    at, pieces, rows = _int(steps.clause[c, MARK] >> MARKS) + 1, lists.state[PIECES], lists.state[ROWS]
    first, last = components_of(c, steps)
    for j in range(first, last):
        root, columns, asked = _int(root_of(c, j, steps)), _int(steps.variable[at]), _int(0)
        if columns == UNLISTED:
            return OVER
        count = most_solutions(root, p, triples, steps, features, work)
        if count == 0:
            lists.state[PIECES], lists.state[ROWS] = pieces, rows
            return MISS
        if count < 0:
            return OVER
        for k in range(columns):
            asked |= _int(steps.variable[at + 1 + k] < width) << k
        if asked != 0 and root >= 0 and is_direct(root, steps, work):
            if not _add_direct(pair, clause, width, root, at + 1, asked, limit, triples, steps, lists, work):
                return NO_ROOM
        elif asked != 0:
            place = _list(root, columns, asked, limit, most_steps, p, triples, steps, features, lists, work)
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
    `triplewire.kernels.joins.network.decide`. Returns the first pair for which there is no room,
    else their number."""
    of_nodes = NodeFeatures(
        features.offset, features.test, features.low, features.high, features.node_offset, node_key
    )  # fmt: skip
    steps, work = take_steps(lent, STEPS), take_scratch(lent, SCRATCH)
    (publication, clause_offset, clauses, width), state = pairs, lists.state
    work.rows[FIRST_ROW] = 1
    for i in range(done, publication.size):
        if i % AHEAD == 0 or i == done:
            fetch(clauses, clause_offset[i], steps, work)
            for j in range(clause_offset[i], min(clause_offset[i] + AHEAD, clauses.size)):
                prefetch(steps.variable, steps.clause[clauses[j], MARK] >> MARKS)
        p, pieces, rows = _int(publication[i]), state[PIECES], state[ROWS]
        triples = _int(batch.offset[p + 1] - batch.offset[p])
        if p + 1 != state[NUMBER]:
            state[NUMBER] = p + 1
            if triples <= FEW:
                begin_publication(p, batch, features.term, of_nodes, has_many_pairs(publication, i), work)
        own, state[WALKED] = _int(MATCH if width[i] == 0 else MISS), 0
        if triples > FEW:
            own = _int(OVER)
        for j in range(clause_offset[i], clause_offset[i + 1] if width[i] > 0 else clause_offset[i]):
            if own >= 0:
                told = _clause(
                    i, j, _int(clauses[j]), _int(width[i]), cap + 1, most_steps, p, triples, steps,
                    of_nodes, lists, work,
                )  # fmt: skip
                own = told if told < 0 else max(own, told)
        if own < 0:
            state[PIECES], state[ROWS] = pieces, rows
        if own == NO_ROOM:
            return i
        outcome[i] = LEFT if own == OVER else own
    return int(publication.size)
