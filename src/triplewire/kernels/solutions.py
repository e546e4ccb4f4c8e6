"""Do the patterns of a clause have a common solution in a publication, and how many? A backtracking join over ids.

Patterns that share no variable are solved apart from each other: a clause has as many solutions as the product of its
components (`triplewire.kernels.components`). Each step takes the pattern with the fewest triples left; where those left
share no variable any more, they are only counted. Once all selected variables have their values, the rest only has to
exist. Used through `triplewire.verify.solve`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from triplewire.kernels.listed import is_listed

INDEXED, RANGE = 1, 2  # kinds of tests; 0 is lazy
VARIABLE, TEST, KIND, GROUP, OP, RANK = 0, 1, 2, 3, 4, 5  # columns of `condition`: the tests of the clause at hand
HOW, NEXT, END, MASK, LEFT, OPEN = 0, 1, 2, 3, 4, 5  # columns of `frame`, by depth: where a pattern's triples are
ORDER, CODE = 6, 7  # also in `frame`: by depth, the number of the pattern; by that number, its three positions
VALUE, MARK = 0, 1  # columns of `value`, by variable
KEY, PLACE, ANSWER = 0, 1, 2  # columns of `known`: (test << 32 | term), publication or -1, answer
FALSE, TRUE, ASKED, FAILED = 0, 1, 2, 3  # answers of lazy tests
STEPS, MOST_STEPS, KNOWN, STAMP, FLAGS, ROWS, PIECES, MARKED = 0, 1, 2, 3, 4, 5, 6, 7  # places in `state`
UNSURE, FAILURE, OVER, ROOM = 1, 2, 4, 8  # in FLAGS: answers are missing, or failed; too many steps; a table is full
MISS, MATCH, MORE, UNKNOWN = 0, 1, 2, 16  # outcomes of a pair; UNKNOWN is added to its flags
MAYBE = 4096  # answers that a component waits for before they are looked for
PER_PUBLICATION = 2  # in `scope`: the lazy test has an answer for each publication


@njit(cache=True, nogil=True)
def _mixed(number: Any) -> Any:
    """Spread the bits of a number; nothing overflows."""
    number = ((number ^ (number >> 31)) & 0x7FFFFFFF) * 0x9E3779B1
    return (number ^ (number >> 20)) & 0x7FFFFFFF


@njit(cache=True, nogil=True)
def _lower(column: Any, low: Any, high: Any, wanted: Any) -> Any:
    """The first place in low .. high whose number is not below `wanted`."""
    while low < high:
        middle = (low + high) >> 1
        if column[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


# --- tests -----------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _slot(test: Any, term: Any, publication: Any, scope: Any, known: Any) -> Any:
    """Where the answer of a lazy test for a term is in the table, or would be."""
    key, place = (np.int64(test) << 32) | term, np.int64(publication if scope[test] == PER_PUBLICATION else -1)
    mask = known.shape[0] - 1
    at = _mixed(_mixed(np.int64(test) + 1) + _mixed(np.int64(term)) + _mixed(place + 1)) & mask
    while known[at, KEY] >= 0 and (known[at, KEY] != key or known[at, PLACE] != place):
        at = (at + 1) & mask
    return at


@njit(cache=True, nogil=True)
def _listed(test: Any, term: Any, publication: Any, offset: Any, tests: Any, node_offset: Any, node_key: Any) -> Any:
    """Does an indexed test hold of the term, everywhere or in this publication?"""
    if is_listed(test, tests, offset[term], offset[term + 1]):
        return True
    end, key = node_offset[publication + 1], (np.int64(term) << 32) | test
    at = _lower(node_key, node_offset[publication], end, key)
    return at < end and node_key[at] == key


@njit(cache=True, nogil=True)
def _within(term: Any, group: Any, op: Any, rank: Any, low: Any, high: Any) -> Any:
    """Does a range test hold of the term?"""
    if low[group, term] < 0:
        return False
    if op <= 2:
        return rank >= (high[group, term] if op == 1 else low[group, term])
    return rank < (low[group, term] if op == 3 else high[group, term])


@njit(cache=True, nogil=True)
def _passes(variable: Any, term: Any, publication: Any, condition: Any, offset: Any, tests: Any,
            low: Any, high: Any, node_offset: Any, node_key: Any, scope: Any, known: Any) -> int:  # fmt: skip
    """The tests of a variable that got this value. 0: one fails; 1: all hold; 2: it depends on lazy tests."""
    outcome = 1
    for j in range(condition.shape[0]):
        if condition[j, VARIABLE] != variable:
            continue
        test = condition[j, TEST]
        if condition[j, KIND] == INDEXED:
            if not _listed(test, term, publication, offset, tests, node_offset, node_key):
                return 0
        elif condition[j, KIND] == RANGE:
            if not _within(term, condition[j, GROUP], condition[j, OP], condition[j, RANK], low, high):
                return 0
        else:
            at = _slot(test, term, publication, scope, known)
            if known[at, KEY] < 0 or known[at, ANSWER] >= ASKED:
                outcome = 2
            elif known[at, ANSWER] == FALSE:
                return 0
    return outcome


@njit(cache=True, nogil=True)
def _ask(publication: Any, value: Any, condition: Any, scope: Any, known: Any, state: Any) -> None:
    """Put the lazy tests of a solution that have no answer into the table."""
    for j in range(condition.shape[0]):
        test, term = condition[j, TEST], value[condition[j, VARIABLE], VALUE]
        if term < 0 or condition[j, KIND] == INDEXED or condition[j, KIND] == RANGE:
            continue
        at = _slot(test, term, publication, scope, known)
        if known[at, KEY] < 0:
            if 2 * (state[KNOWN] + 1) > known.shape[0]:
                state[FLAGS] |= ROOM
                return
            known[at, KEY] = (np.int64(test) << 32) | term
            known[at, PLACE] = publication if scope[test] == PER_PUBLICATION else -1
            known[at, ANSWER] = ASKED
            state[KNOWN] += 1
        state[FLAGS] |= UNSURE if known[at, ANSWER] == ASKED else FAILURE if known[at, ANSWER] == FAILED else 0


# --- triples of a pattern --------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _term(a: Any, k: int, frame: Any, value: Any) -> Any:
    """The term in a position of a pattern, or -1."""
    code = frame[a, CODE + k]
    return code if code >= 0 else value[-1 - code, VALUE]


@njit(cache=True, nogil=True)
def _seek(depth: Any, a: Any, frame: Any, value: Any, pairs: Any, object_: Any, t0: Any, t1: Any, keys: Any,
          k0: Any) -> int:  # fmt: skip
    """Find the triples of a pattern: a range of the batch's, or of `keys` (HOW is then how far behind a key the number
    of its triple is). There may be others among them. Returns a cost: the smaller, the fewer there are; 0 for none."""
    s, p, o = _term(a, 0, frame, value), _term(a, 1, frame, value), _term(a, 2, frame, value)
    how, low, high = 0, t0, t1
    if k0 >= 0 and ((s < 0 and p >= 0) or (p < 0 and o >= 0)):  # by (predicate, object), by (object, subject)
        begin, first, second = (k0, p, o) if p >= 0 else (k0 + t1 - t0, o, s)
        end, wanted = begin + t1 - t0, (first << 32) | max(second, 0)
        how, low = 2 * (t1 - t0), _lower(keys, begin, end, wanted)
        high = _lower(keys, low, end, wanted + 1 if second >= 0 else (first + 1) << 32)
    elif s >= 0:
        wanted = (s << 32) | max(p, 0)
        low = _lower(pairs, t0, t1, wanted)
        high = _lower(pairs, low, t1, wanted + 1 if p >= 0 else (s + 1) << 32)
        if p >= 0 and o >= 0:
            low = _lower(object_, low, high, o)
            high = low + 1 if low < high and object_[low] == o else low
    frame[depth, HOW], frame[depth, NEXT], frame[depth, END], frame[depth, MASK] = how, low, high, 0
    return 4 * (high - low) + (s < 0) + (p < 0) + (o < 0) if low < high else 0


@njit(cache=True, nogil=True)
def _open(depth: Any, size: Any, frame: Any, value: Any, pairs: Any, object_: Any, t0: Any, t1: Any, keys: Any, k0: Any,
          state: Any) -> bool:  # fmt: skip
    """Take the pattern with the fewest triples of those from `depth` on. False: one has none."""
    best, fewest = depth, 0
    for i in range(depth, size):
        cost = _seek(depth, frame[i, ORDER], frame, value, pairs, object_, t0, t1, keys, k0)
        if cost == 0:
            return False
        if i == depth or cost < fewest:
            best, fewest = i, cost
    state[STEPS] += size - depth
    chosen = frame[best, ORDER]
    frame[best, ORDER], frame[depth, ORDER] = frame[depth, ORDER], chosen
    if best < size - 1:
        _seek(depth, chosen, frame, value, pairs, object_, t0, t1, keys, k0)
    return True


@njit(cache=True, nogil=True)
def _release(depth: Any, a: Any, frame: Any, value: Any) -> None:
    """Take back what a pattern gave values to."""
    for k in range(3):
        if frame[depth, MASK] & (1 << k):
            value[-1 - frame[a, CODE + k], VALUE] = -1
    frame[depth, MASK] = 0


@njit(cache=True, nogil=True)
def _bind(depth: Any, a: Any, x: Any, y: Any, z: Any, frame: Any, value: Any) -> Any:
    """Give the variables of a pattern the terms of a triple; False where one would have two."""
    fits = True
    for k in range(3):
        variable, term = -1 - frame[a, CODE + k], x if k == 0 else y if k == 1 else z
        if variable >= 0 and value[variable, VALUE] < 0:
            value[variable, VALUE] = term
            frame[depth, MASK] |= 1 << k
        fits = fits and (variable < 0 or value[variable, VALUE] == term)
    return fits


@njit(cache=True, nogil=True)
def _advance(depth: Any, a: Any, left: Any, opened: Any, width: Any, publication: Any, frame: Any, value: Any,
             pairs: Any, object_: Any, keys: Any, condition: Any, offset: Any, tests: Any, low: Any,
             high: Any, node_offset: Any, node_key: Any, scope: Any, known: Any, state: Any) -> bool:  # fmt: skip
    """Go to the next triple that fits pattern a and the tests of what it binds. `left`, `opened`: how many selected
    variables had no value before, and how many values waited for lazy tests."""
    _release(depth, a, frame, value)
    s, p, o = _term(a, 0, frame, value), _term(a, 1, frame, value), _term(a, 2, frame, value)
    how, end = frame[depth, HOW], frame[depth, END]
    for i in range(frame[depth, NEXT], end):
        t = i if how == 0 else keys[i + how]
        x, y, z = pairs[t] >> 32, pairs[t] & 0x7FFFFFFF, object_[t]
        if (s >= 0 and x != s) or (p >= 0 and y != p) or (o >= 0 and z != o):
            continue
        state[STEPS] += 1
        fits, now_left, now_open = _bind(depth, a, x, y, z, frame, value), left, opened
        for k in range(3):
            if fits and frame[depth, MASK] & (1 << k):
                variable = -1 - frame[a, CODE + k]
                now_left -= variable < width
                if condition.shape[0] > 0:
                    outcome = _passes(variable, value[variable, VALUE], publication, condition, offset,
                                      tests, low, high, node_offset, node_key, scope, known)  # fmt: skip
                    fits = outcome > 0
                    now_open += outcome == 2
        if fits:
            frame[depth, NEXT], frame[depth, LEFT], frame[depth, OPEN] = i + 1, now_left, now_open
            return True
        _release(depth, a, frame, value)
        if state[STEPS] > state[MOST_STEPS]:
            break
    frame[depth, NEXT] = end
    return False


# --- solutions -------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _apart(depth: Any, size: Any, frame: Any, value: Any, state: Any) -> bool:
    """Do the patterns from `depth` on share no variable that has no value?"""
    before, state[MARKED] = state[MARKED], state[MARKED] + size
    for i in range(depth, size):
        for k in range(3):
            variable = -1 - frame[frame[i, ORDER], CODE + k]
            if variable >= 0 and value[variable, VALUE] < 0:
                if value[variable, MARK] > before and value[variable, MARK] != before + 1 + i:
                    return False
                value[variable, MARK] = before + 1 + i
    return True


@njit(cache=True, nogil=True)
def _insert(value: Any, width: Any, rows: Any, count: Any, distinct: Any, slots: Any, state: Any) -> Any:
    """Add the first `width` values to the `count` rows that begin at rows[state[ROWS]]; if they are `distinct`, without
    looking for them there. Returns how many there are; where there is no room the flag is set."""
    start, at = state[ROWS], state[ROWS] + count * width
    if at + width > rows.size or (not distinct and 2 * (count + 1) > slots.shape[0]):
        state[FLAGS] |= ROOM
        return count
    h = np.int64(0)
    for k in range(width):
        rows[at + k] = value[k, VALUE]
        h = _mixed(h + value[k, VALUE] + 1)
    slot = h & (slots.shape[0] - 1)
    while not distinct and slots[slot, 0] == state[STAMP]:
        other, same = start + slots[slot, 1] * width, True
        for k in range(width):
            same = same and rows[other + k] == rows[at + k]
        if same:
            return count
        slot = (slot + 1) & (slots.shape[0] - 1)
    if not distinct:
        slots[slot, 0], slots[slot, 1] = state[STAMP], count
    return count + 1


@njit(cache=True, nogil=True)
def _search(size: Any, needed: Any, limit: Any, width: Any, distinct: Any, keep: Any, publication: Any, frame: Any,
            value: Any, pairs: Any, object_: Any, t0: Any, t1: Any, keys: Any, k0: Any, condition: Any,
            offset: Any, tests: Any, low: Any, high: Any, node_offset: Any, node_key: Any, scope: Any, known: Any,
            rows: Any, slots: Any, state: Any) -> Any:  # fmt: skip
    """How many solutions the first `size` patterns in order have, at most `limit`; they are put at the end of `rows` if
    they are to be kept. Of those that agree on the `needed` selected variables some are counted once."""
    count, maybe = 0, 0
    at, total, own = -1, 0, 0  # where those left fall apart: the one that is being counted, and the product so far
    depth = 0 if _open(0, size, frame, value, pairs, object_, t0, t1, keys, k0, state) else -1
    while depth >= 0 and state[FLAGS] & (OVER | ROOM) == 0:
        left, opened = (frame[depth - 1, LEFT], frame[depth - 1, OPEN]) if depth > 0 else (needed, 0)
        a = frame[at if at >= 0 else depth, ORDER]
        more = _advance(depth, a, left, opened, width, publication, frame, value, pairs, object_, keys, condition,
                        offset, tests, low, high, node_offset, node_key, scope, known, state)  # fmt: skip
        if state[STEPS] > state[MOST_STEPS]:
            state[FLAGS] |= OVER
        found, down = 0, False
        if at >= 0:
            own += more
            down = more and frame[depth, OPEN] > 0  # one after the other after all, as lazy tests are waited for
            if more and not down and frame[depth, LEFT] < left and own < limit:
                continue
            _release(depth, a, frame, value)
            total, own = min(total * own, limit), 0
            if not down and total > 0 and at + 1 < size:
                at += 1
                _seek(depth, frame[at, ORDER], frame, value, pairs, object_, t0, t1, keys, k0)
                continue
            at, found, depth = -1, 0 if down else total, depth - 1
            down = down or (keep and found > 0)
        elif not more:
            depth -= 1
        elif depth + 1 == size:
            found = 1
        elif frame[depth, OPEN] == 0 and _apart(depth + 1, size, frame, value, state):
            depth += 1
            at, total = depth, 1
            _seek(depth, frame[at, ORDER], frame, value, pairs, object_, t0, t1, keys, k0)
        else:
            down = True
        if down:
            depth += _open(depth + 1, size, frame, value, pairs, object_, t0, t1, keys, k0, state)
        elif found > 0 and frame[depth, OPEN] > 0:
            maybe -= state[KNOWN]
            _ask(publication, value, condition, scope, known, state)
            maybe += state[KNOWN]
            if maybe >= MAYBE:
                break
        elif found > 0:
            count = _insert(value, width, rows, count, distinct, slots, state) if keep else count + found
            if count >= limit:
                break
            while depth > 0 and frame[depth - 1, LEFT] == 0:  # what is left only had to exist
                _release(depth, frame[depth, ORDER], frame, value)
                depth -= 1
    for i in range(depth + 1):
        _release(i, frame[at if i == depth and at >= 0 else i, ORDER], frame, value)
    return min(count, limit)


@njit(cache=True, nogil=True)
def join(done: int, publication: Any, clause_offset: Any, clauses: Any, width: Any, cap: int, keep: bool, programs: Any,
         batch: Any, facts: Any, lazy: Any, scratch: Any, outcome: Any, rows: Any, pieces: Any, slots: Any,
         state: Any) -> Any:  # fmt: skip
    """The outcome of each pair from `done` on: has one of its clauses, those of its slice, a solution, or more than
    `cap`? `width` is how many variables are selected; with 0, one solution is enough.

    Where `keep`: a row of `pieces` is (pair, clause, begin in `rows`, number of rows), one for each component; its rows
    are `width` wide, distinct, and cap + 1 at the most. Without, solutions may be counted more than once.
    Returns the first pair for which a table has no room, else the number of pairs.
    """
    code_offset, code, component_offset, component, member, condition_offset, condition = programs
    triple_offset, pairs, object_, key_offset, keys = batch
    offset, tests, low, high, node_offset, node_key = facts
    (frame, value), (scope, known) = scratch, lazy
    for i in range(done, publication.size):
        rows_end, pieces_end, total, flags = state[ROWS], state[PIECES], 0, 0
        p, w, limit, keeping = publication[i], width[i], cap + 1 if width[i] > 0 else 1, keep and width[i] > 0
        state[STEPS] = 0
        for j in range(clause_offset[i], clause_offset[i + 1]):
            c = clauses[j]
            first, clause_rows, clause_pieces, waits, product = code_offset[c], state[ROWS], state[PIECES], 0, 1
            own = condition[condition_offset[c] : condition_offset[c + 1]]
            for m in range(code_offset[c + 1] - first):
                for k in range(3):
                    frame[m, CODE + k] = code[first + m, k]
            for k in range(component_offset[c], component_offset[c + 1]):
                begin, size, most = first + component[k, 0], component[k, 1], limit if component[k, 2] > 0 else 1
                for m in range(size):
                    frame[m, ORDER] = member[begin + m]
                state[FLAGS], state[STAMP] = 0, state[STAMP] + 1
                count = _search(size, component[k, 2], most, w, most == 1 or component[k, 3] > 0, keeping, p, frame,
                                value, pairs, object_, triple_offset[p], triple_offset[p + 1], keys, key_offset[p], own,
                                offset, tests, low, high, node_offset, node_key, scope, known, rows, slots,
                                state)  # fmt: skip
                if keeping and state[PIECES] == pieces.shape[0]:
                    state[FLAGS] |= ROOM
                elif keeping:
                    at = state[PIECES]
                    pieces[at, 0], pieces[at, 1], pieces[at, 2], pieces[at, 3] = i, c, state[ROWS], count
                    state[PIECES], state[ROWS] = at + 1, state[ROWS] + count * w
                product = min(product * count, limit)
                if state[FLAGS] >= OVER or (count == 0 and state[FLAGS] == 0):
                    waits, product = state[FLAGS], 0  # it surely has no solution, whatever others wait for
                    break
                waits |= state[FLAGS] if count < most else 0
            flags |= waits
            total += product
            if product == 0:
                state[ROWS], state[PIECES] = clause_rows, clause_pieces
            if flags >= OVER or (w == 0 and product > 0):
                break
        flags = 0 if w == 0 and total > 0 else flags
        if flags:
            state[ROWS], state[PIECES] = rows_end, pieces_end
        if flags & ROOM:
            return i
        outcome[i] = UNKNOWN + flags if flags else MISS if total == 0 else MATCH if total <= cap else MORE
    return publication.size
