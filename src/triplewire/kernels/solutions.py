"""Do the patterns of a clause have a common solution in a publication, and how many? A backtracking join over ids.

Patterns that share no variable are solved apart from each other: a clause has as many solutions as the product of its
components. Each step takes the pattern with the fewest triples left. Once all selected variables of a component have
their values, what is left only has to exist. Used through `triplewire.verify.solve`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

INDEXED, RANGE = 1, 2  # kinds of tests; 0 is lazy
VARIABLE, TEST, KIND, GROUP, OP, RANK = 0, 1, 2, 3, 4, 5  # columns of `condition`: the tests of the clause at hand
HOW, NEXT, END, MASK, LEFT, OPEN = 0, 1, 2, 3, 4, 5  # columns of `frame`: a pattern whose triples are tried
FALSE, TRUE, ASKED, FAILED = 0, 1, 2, 3  # answers of lazy tests
STEPS, MOST_STEPS, KNOWN, STAMP, FULL, FLAGS, ROWS, PIECES = 0, 1, 2, 3, 4, 5, 6, 7  # places in `state`
UNSURE, FAILURE, OVER, ROOM = 1, 2, 4, 8  # in FLAGS: answers are missing, or failed; too many steps; a table is full
FULL_KNOWN, FULL_ROWS, FULL_SLOTS = 1, 2, 3  # in FULL: which table
MISS, MATCH, MORE, UNKNOWN = 0, 1, 2, 16  # outcomes of a pair; UNKNOWN is added to its flags
MAYBE = 4096  # solutions that wait for lazy tests, before these are asked
PER_PUBLICATION = 2  # in `scope`: the lazy test has an answer for each publication


@njit(cache=True, nogil=True)
def _mixed(number: int) -> int:
    """Spread the bits of a number; nothing overflows."""
    number = ((number ^ (number >> 31)) & 0x7FFFFFFF) * 0x9E3779B1
    return (number ^ (number >> 20)) & 0x7FFFFFFF


@njit(cache=True, nogil=True)
def _lower(column: Any, low: int, high: int, wanted: int) -> int:
    """The first place in low .. high whose number is not below `wanted`."""
    while low < high:
        middle = (low + high) >> 1
        if column[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def _lower_pair(first: Any, second: Any, low: int, high: int, wanted: int) -> int:
    """The same for two columns, of which `wanted` has 32 bits each."""
    while low < high:
        middle = (low + high) >> 1
        if (np.int64(first[middle]) << 32) | second[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


# --- tests -----------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _slot(test: int, term: int, publication: int, scope: Any, known: Any) -> int:
    """Where the answer of a lazy test for a term is in the table, or would be."""
    key = (np.int64(test) << 32) | term
    place = np.int64(publication) if scope[test] == PER_PUBLICATION else np.int64(-1)
    mask = known.shape[0] - 1
    at = _mixed(_mixed(np.int64(test) + 1) + _mixed(np.int64(term)) + _mixed(place + 1)) & mask
    while known[at, 0] >= 0 and (known[at, 0] != key or known[at, 1] != place):
        at = (at + 1) & mask
    return at


@njit(cache=True, nogil=True)
def _listed(test: int, term: int, publication: int, offset: Any, tests: Any, node_offset: Any, node_term: Any,
            node_test: Any) -> bool:  # fmt: skip
    """Does an indexed test hold of the term, everywhere or in this publication?"""
    end = offset[term + 1]
    at = _lower(tests, offset[term], end, test)
    if at < end and tests[at] == test:
        return True
    end = node_offset[publication + 1]
    at = _lower_pair(node_term, node_test, node_offset[publication], end, (np.int64(term) << 32) | test)
    return at < end and node_term[at] == term and node_test[at] == test


@njit(cache=True, nogil=True)
def _within(term: int, group: int, op: int, rank: int, low: Any, high: Any) -> bool:
    """Does a range test hold of the term?"""
    if low[group, term] < 0:
        return False
    if op <= 2:
        return rank >= (high[group, term] if op == 1 else low[group, term])
    return rank < (low[group, term] if op == 3 else high[group, term])


@njit(cache=True, nogil=True)
def _passes(variable: int, term: int, condition: Any, conditions: int, publication: int, facts: Any,
            lazy: Any) -> int:  # fmt: skip
    """The tests of a variable that got this value. 0: one fails; 1: all hold; 2: it depends on lazy tests."""
    offset, tests, low, high, node_offset, node_term, node_test = facts
    scope, known, answer = lazy
    outcome = 1
    for j in range(conditions):
        if condition[j, VARIABLE] != variable:
            continue
        test = condition[j, TEST]
        if condition[j, KIND] == INDEXED:
            if not _listed(test, term, publication, offset, tests, node_offset, node_term, node_test):
                return 0
        elif condition[j, KIND] == RANGE:
            if not _within(term, condition[j, GROUP], condition[j, OP], condition[j, RANK], low, high):
                return 0
        else:
            at = _slot(test, term, publication, scope, known)
            if known[at, 0] < 0 or answer[at] >= ASKED:
                outcome = 2
            elif answer[at] == FALSE:
                return 0
    return outcome


@njit(cache=True, nogil=True)
def _ask(condition: Any, conditions: int, value: Any, publication: int, lazy: Any, state: Any) -> None:
    """Put the lazy tests of a solution that have no answer into the table."""
    scope, known, answer = lazy
    for j in range(conditions):
        test, term = condition[j, TEST], value[condition[j, VARIABLE]]
        if term < 0 or condition[j, KIND] == INDEXED or condition[j, KIND] == RANGE:
            continue
        at = _slot(test, term, publication, scope, known)
        if known[at, 0] < 0:
            if 2 * (state[KNOWN] + 1) > known.shape[0]:
                state[FLAGS] |= ROOM
                state[FULL] = FULL_KNOWN
                return
            known[at, 0] = (np.int64(test) << 32) | term
            known[at, 1] = publication if scope[test] == PER_PUBLICATION else -1
            answer[at] = ASKED
            state[KNOWN] += 1
        if answer[at] >= ASKED:
            state[FLAGS] |= UNSURE if answer[at] == ASKED else FAILURE


# --- triples of a pattern --------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _range(s: int, p: int, o: int, subject: Any, predicate: Any, object_: Any, t0: int, t1: int, keys: Any,
           k0: int) -> tuple[int, int, int]:  # fmt: skip
    """Where the triples with these terms are (-1: any): (0, begin, end) among those of the batch, (1, begin, end) among
    `keys`. There may be other triples between them."""
    n = t1 - t0
    if k0 >= 0 and ((s < 0 and p >= 0) or (p < 0 and o >= 0)):  # by (predicate, object), by (object, subject)
        begin, a, b = (k0, p, o) if p >= 0 else (k0 + n, o, s)
        wanted = (np.int64(a) << 32) | max(b, 0)
        low = _lower(keys, begin, begin + n, wanted)
        return 1, low, _lower(keys, low, begin + n, wanted + 1 if b >= 0 else (np.int64(a) + 1) << 32)
    if s < 0:
        return 0, t0, t1
    wanted = (np.int64(s) << 32) | max(p, 0)
    low = _lower_pair(subject, predicate, t0, t1, wanted)
    high = _lower_pair(subject, predicate, low, t1, wanted + 1 if p >= 0 else (np.int64(s) + 1) << 32)
    if p >= 0 and o >= 0:
        low = _lower(object_, low, high, o)
        high = low + 1 if low < high and object_[low] == o else low
    return 0, low, high


@njit(cache=True, nogil=True)
def _value(code: int, value: Any) -> int:
    return code if code >= 0 else value[-1 - code]


@njit(cache=True, nogil=True)
def _open(depth: int, size: int, order: Any, code: Any, frame: Any, value: Any, triples: Any, state: Any) -> bool:
    """Take the pattern with the fewest triples among order[depth:size]. False: one has none."""
    subject, predicate, object_, t0, t1, keys, k0, _ = triples
    best, fewest = -1, np.int64(1) << 62
    for i in range(depth, size):
        a = order[i]
        s, p, o = _value(code[a, 0], value), _value(code[a, 1], value), _value(code[a, 2], value)
        how, low, high = _range(s, p, o, subject, predicate, object_, t0, t1, keys, k0)
        if low == high:
            return False
        cost = 4 * (high - low) + (s < 0) + (p < 0) + (o < 0)
        if cost < fewest:
            best, fewest = i, cost
            frame[depth, HOW], frame[depth, NEXT], frame[depth, END] = how, low, high
    state[STEPS] += size - depth
    chosen = order[best]
    order[best] = order[depth]
    order[depth] = chosen
    frame[depth, MASK] = 0
    return True


@njit(cache=True, nogil=True)
def _release(depth: int, a: int, code: Any, frame: Any, value: Any) -> None:
    """Take back what a pattern gave values to."""
    for k in range(3):
        if frame[depth, MASK] & (1 << k):
            value[-1 - code[a, k]] = -1
    frame[depth, MASK] = 0


@njit(cache=True, nogil=True)
def _bind(depth: int, a: int, k: int, term: int, code: Any, frame: Any, value: Any) -> bool:
    """Give the variable in a position of a pattern this term; False where it has another one already."""
    if code[a, k] >= 0:
        return True
    variable = -1 - code[a, k]
    if value[variable] >= 0:
        return value[variable] == term
    value[variable] = term
    frame[depth, MASK] |= 1 << k
    return True


@njit(cache=True, nogil=True)
def _advance(depth: int, a: int, left: int, opened: int, width: int, code: Any, frame: Any, value: Any, triples: Any,
             condition: Any, conditions: int, publication: int, facts: Any, lazy: Any, state: Any) -> bool:  # fmt: skip
    """Go to the next triple that fits a pattern and the tests of what it binds. `left`, `opened`: how many selected
    variables had no value before, and how many values waited for lazy tests."""
    subject, predicate, object_, _, _, _, _, places = triples
    _release(depth, a, code, frame, value)
    s, p, o = _value(code[a, 0], value), _value(code[a, 1], value), _value(code[a, 2], value)
    how, end = frame[depth, HOW], frame[depth, END]
    for i in range(frame[depth, NEXT], end):
        t = i if how == 0 else places[i]
        if (s >= 0 and subject[t] != s) or (p >= 0 and predicate[t] != p) or (o >= 0 and object_[t] != o):
            continue
        state[STEPS] += 1
        fits = _bind(depth, a, 0, subject[t], code, frame, value)
        fits = fits and _bind(depth, a, 1, predicate[t], code, frame, value)
        fits = fits and _bind(depth, a, 2, object_[t], code, frame, value)
        now_left, now_open = left, opened
        for k in range(3):
            if fits and frame[depth, MASK] & (1 << k):
                variable = -1 - code[a, k]
                outcome = _passes(variable, value[variable], condition, conditions, publication, facts, lazy)
                fits = outcome > 0
                now_open += outcome == 2
                now_left -= variable < width
        if fits:
            frame[depth, NEXT], frame[depth, LEFT], frame[depth, OPEN] = i + 1, now_left, now_open
            return True
        _release(depth, a, code, frame, value)
        if state[STEPS] > state[MOST_STEPS]:
            break
    frame[depth, NEXT] = end
    return False


# --- solutions -------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _insert(value: Any, width: int, rows: Any, count: int, distinct: bool, slots: Any, state: Any) -> int:
    """Add value[:width] to the `count` rows that begin at rows[state[ROWS]]; if it is `distinct`, without looking for
    it there. Returns how many there are; where there is no room the flag is set."""
    start = state[ROWS]
    at = start + count * width
    if at + width > rows.size or (not distinct and 2 * (count + 1) > slots.shape[0]):
        state[FLAGS] |= ROOM
        state[FULL] = FULL_ROWS if at + width > rows.size else FULL_SLOTS
        return count
    h = np.int64(0)
    for k in range(width):
        rows[at + k] = value[k]
        h = _mixed(h + value[k] + 1)
    if distinct:
        return count + 1
    slot = h & (slots.shape[0] - 1)
    while slots[slot, 0] == state[STAMP]:
        other, same = start + slots[slot, 1] * width, True
        for k in range(width):
            same = same and rows[other + k] == rows[at + k]
        if same:
            return count
        slot = (slot + 1) & (slots.shape[0] - 1)
    slots[slot, 0], slots[slot, 1] = state[STAMP], count
    return count + 1


@njit(cache=True, nogil=True)
def _search(size: int, needed: int, limit: int, width: int, distinct: bool, keep: bool, scratch: Any, triples: Any,
            conditions: int, publication: int, facts: Any, lazy: Any, rows: Any, slots: Any,
            state: Any) -> int:  # fmt: skip
    """How many solutions the patterns order[:size] have, at most `limit`; they are put at the end of `rows` if they are
    to be kept. Of those that agree on the `needed` selected variables some are counted once."""
    order, code, frame, value, condition = scratch
    count, maybe, depth = 0, 0, -1
    depth += _open(0, size, order, code, frame, value, triples, state)
    while depth >= 0 and state[FLAGS] & (OVER | ROOM) == 0:
        left, opened = (frame[depth - 1, LEFT], frame[depth - 1, OPEN]) if depth > 0 else (needed, 0)
        if not _advance(depth, order[depth], left, opened, width, code, frame, value, triples, condition, conditions,
                        publication, facts, lazy, state):  # fmt: skip
            depth -= 1
        elif depth + 1 < size:
            depth += _open(depth + 1, size, order, code, frame, value, triples, state)
        elif frame[depth, OPEN] > 0:
            _ask(condition, conditions, value, publication, lazy, state)
            maybe += 1
            if maybe == MAYBE:
                break
        else:
            count = _insert(value, width, rows, count, distinct, slots, state) if keep else count + 1
            if count == limit:
                break
            while depth > 0 and frame[depth - 1, LEFT] == 0:  # what is left only had to exist
                _release(depth, order[depth], code, frame, value)
                depth -= 1
        if state[STEPS] > state[MOST_STEPS]:
            state[FLAGS] |= OVER
    for i in range(depth + 1):
        _release(i, order[i], code, frame, value)
    return count


@njit(cache=True, nogil=True)
def _prepare(clause: int, programs: Any, inverse: Any, code: Any, value: Any, condition: Any) -> bool:
    """The patterns and tests of a clause, with the ids of the batch; False where one of its constants is not there."""
    pattern_offset, pattern, _, _, test_offset, test_variable, test, info = programs
    first = pattern_offset[clause]
    for i in range(pattern_offset[clause + 1] - first):
        for k in range(3):
            a = pattern[first + i, k]
            if a >= 0:
                a = inverse[a]
                if a < 0:
                    return False
            else:
                value[-1 - a] = -1
            code[i, k] = a
    first = test_offset[clause]
    for j in range(test_offset[clause + 1] - first):
        condition[j, VARIABLE], condition[j, TEST] = test_variable[first + j], test[first + j]
        for k in range(4):
            condition[j, KIND + k] = info[test[first + j], k]
    return True


@njit(cache=True, nogil=True)
def _needed(size: int, width: int, order: Any, code: Any, value: Any) -> tuple[int, bool]:
    """How many selected variables the patterns order[:size] have, and whether they have no others."""
    needed, distinct = 0, True
    for i in range(size):
        for k in range(3):
            variable = -1 - code[order[i], k]
            if variable >= width:
                distinct = False
            elif variable >= 0 and value[variable] == -1:
                value[variable] = -2
                needed += 1
    value[:width] = -1
    return needed, distinct


@njit(cache=True, nogil=True)
def _piece(pair: int, clause: int, count: int, width: int, pieces: Any, state: Any) -> None:
    """Note the rows of a component that were put at the end of the rows."""
    at = state[PIECES]
    if at == pieces.shape[0]:
        state[FLAGS] |= ROOM
        state[FULL] = FULL_ROWS
        return
    pieces[at, 0], pieces[at, 1], pieces[at, 2], pieces[at, 3] = pair, clause, state[ROWS], count
    state[PIECES] += 1
    state[ROWS] += count * width


@njit(cache=True, nogil=True)
def _clause(pair: int, publication: int, clause: int, width: int, limit: int, keep: bool, programs: Any, batch: Any,
            inverse: Any, facts: Any, lazy: Any, scratch: Any, rows: Any, pieces: Any, slots: Any,
            state: Any) -> int:  # fmt: skip
    """How many solutions a clause has, at most `limit`; at least so many where flags are set."""
    pattern_offset, _, part, parts, test_offset, _, _, _ = programs
    triple_offset, subject, predicate, object_, key_offset, keys, places = batch
    order, code, _, value, condition = scratch
    state[FLAGS] = 0
    if not _prepare(clause, programs, inverse, code, value, condition):
        return 0
    p0, p1 = pattern_offset[clause], pattern_offset[clause + 1]
    triples = (subject, predicate, object_, triple_offset[publication], triple_offset[publication + 1], keys,
               key_offset[publication], places)  # fmt: skip
    total, flags, kept = 1, 0, 0
    value[:width] = -1
    for k in range(parts[clause]):
        size = 0
        for i in range(p1 - p0):
            if part[p0 + i] == k:
                order[size] = i
                size += 1
        needed, distinct = _needed(size, width, order, code, value)
        most = limit if needed > 0 else 1
        state[STAMP] += 1
        count = _search(size, needed, most, width, distinct, keep and needed > 0, scratch, triples,
                        test_offset[clause + 1] - test_offset[clause], publication, facts, lazy, rows, slots,
                        state)  # fmt: skip
        if state[FLAGS] & (OVER | ROOM) or (count == 0 and state[FLAGS] == 0):
            return 0
        flags |= state[FLAGS] if count < most else 0
        state[FLAGS] = 0
        total = min(total * count, limit)
        if keep and needed > 0:
            _piece(pair, clause, count, width, pieces, state)
            kept += 1
    if keep and kept == 0:  # none of the selected variables is bound
        _insert(value, width, rows, 0, True, slots, state)
        _piece(pair, clause, 1, width, pieces, state)
    state[FLAGS] |= flags
    return total


@njit(cache=True, nogil=True)
def join(done: int, publication: Any, clause_offset: Any, clauses: Any, width: Any, cap: int, keep: bool, programs: Any,
         batch: Any, inverse: Any, facts: Any, lazy: Any, scratch: Any, outcome: Any, rows: Any, pieces: Any,
         slots: Any, state: Any) -> int:  # fmt: skip
    """The outcome of each pair from `done` on: has one of its clauses, those of its slice, a solution, or more than
    `cap`? `width` is how many variables are selected; with 0, one solution is enough.

    Where `keep`: a row of `pieces` is (pair, clause, begin in `rows`, number of rows), one for each component that
    binds selected variables; its rows are `width` wide, distinct, and cap + 1 at the most. Without, solutions may be
    counted more than once.
    Returns the first pair that found no room (state[FULL] says in which table), else the number of pairs.
    """
    for i in range(done, publication.size):
        rows_end, pieces_end, total, flags = state[ROWS], state[PIECES], 0, 0
        limit = cap + 1 if width[i] > 0 else 1
        state[STEPS] = 0
        for j in range(clause_offset[i], clause_offset[i + 1]):
            clause_rows, clause_pieces = state[ROWS], state[PIECES]
            count = _clause(i, publication[i], clauses[j], width[i], limit, keep and width[i] > 0, programs, batch,
                            inverse, facts, lazy, scratch, rows, pieces, slots, state)  # fmt: skip
            flags |= state[FLAGS]
            total += count
            if count == 0:
                state[ROWS], state[PIECES] = clause_rows, clause_pieces
            if flags & (OVER | ROOM) or (width[i] == 0 and count > 0):
                break
        if flags & ROOM:
            state[ROWS], state[PIECES] = rows_end, pieces_end
            return i
        flags = 0 if width[i] == 0 and total > 0 else flags
        if flags:
            state[ROWS], state[PIECES] = rows_end, pieces_end
        outcome[i] = UNKNOWN + flags if flags else MISS if total == 0 else MATCH if total <= cap else MORE
    return publication.size
