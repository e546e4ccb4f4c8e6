"""Do the patterns of a clause have a common solution in a publication, and how many? A backtracking join over ids.

    search(patterns of a component):
        take the pattern with the fewest triples that agree with the values so far; one has none: go back
        for each of its triples whose terms pass the tests of their variables: its variables have these values
            the patterns left share no open variable: multiply how many triples each has; do not list them
            no pattern is left: a solution. All selected variables have values: what is left only has to exist
    join(pairs): of each clause the product over its components, of each pair the sum over its clauses

Where a pair is asked for alone, the order in which solutions are found depends on the order of the publication's
triples and on the clauses alone (`triplewire.verify.batch_verifier`). Components: `triplewire.kernels.components`.
Used through `triplewire.verify.solve`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.shared.columns import INDEXED, MATCH, MISS, RANGE_TEST, TRUNCATED, UNKNOWN
from triplewire.kernels.shared.compiled import called_helper, helper, kernel
from triplewire.kernels.shared.hashing import hash_numbers, mix_bits
from triplewire.kernels.shared.search import lower, same_numbers
from triplewire.verify.kernels.columns import (
    ClauseConditions,
    JoinedClauses,
    NodeFeatures,
    PairColumns,
    PublicationSlice,
    ResidualAnswers,
    SearchState,
    SolutionRows,
    SortedTriples,
    is_indexed,
    is_within,
)

VARIABLE, TEST, KIND, GROUP, OP, RANK = 0, 1, 2, 3, 4, 5  # columns of `condition`: the tests of the clause at hand
HOW, NEXT, END, MASK, LEFT, OPEN = 0, 1, 2, 3, 4, 5
"""Columns of `frame`, by depth: where a pattern's triples are; MASK: bit k is set where position k gave its variable a
value."""

ORDER, CODE = 6, 7  # also in `frame`: by depth, the number of the pattern; by that number, its three positions
VALUE, MARK = 0, 1  # columns of `value`, by variable
KEY, PLACE, ANSWER = 0, 1, 2  # columns of `known`: (test << 32 | term), publication or -1, answer
FALSE, TRUE, ASKED, FAILED = 0, 1, 2, 3  # answers of residual predicates
STEPS, MOST_STEPS, KNOWN, STAMP, FLAGS, ROWS, PIECES, MARKED = 0, 1, 2, 3, 4, 5, 6, 7  # places in `state`
UNSURE, FAILURE, OVER, ROOM = 1, 2, 4, 8  # in FLAGS: answers are missing, or failed; too many steps; a table is full
_int: Any = np.int64
MAYBE = 4096  # answers that a component waits for before they are looked for
PER_PUBLICATION = 2  # in `scope`: the residual predicate has an answer for each publication


# --- tests -----------------------------------------------------------------------------------------------------------


@helper
def _slot(test: int, term: int, publication: int, residual: ResidualAnswers) -> Any:
    """Where the answer of a residual predicate for a term is in the table, or would be."""
    known, key = residual.known, (np.int64(test) << 32) | term
    place = np.int64(publication if residual.scope[test] == PER_PUBLICATION else -1)
    mask = known.shape[0] - 1
    at = mix_bits(mix_bits(np.int64(test) + 1) + mix_bits(np.int64(term)) + mix_bits(place + 1)) & mask
    while known[at, KEY] >= 0 and (known[at, KEY] != key or known[at, PLACE] != place):
        at = (at + 1) & mask
    return at


@called_helper
def _passes(variable: int, term: int, publication: int, tests: ClauseConditions) -> int:
    """The tests of a variable that got this value. 0: one fails; 1: all hold; 2: it depends on residual predicates."""
    condition, features, residual = tests
    outcome = 1
    for j in range(condition.shape[0]):
        if condition[j, VARIABLE] != variable or outcome == 0:
            continue
        test = condition[j, TEST]
        if condition[j, KIND] == INDEXED:
            outcome *= is_indexed(test, term, publication, features)
        elif condition[j, KIND] == RANGE_TEST:
            outcome *= is_within(term, condition[j, GROUP], condition[j, OP], condition[j, RANK], features)
        else:
            at = _slot(test, term, publication, residual)
            if residual.known[at, KEY] < 0 or residual.known[at, ANSWER] >= ASKED:
                outcome = 2
            elif residual.known[at, ANSWER] == FALSE:
                outcome = 0
    return outcome


@called_helper
def _ask(publication: int, value: Any, tests: ClauseConditions, state: Any) -> None:
    """Put the residual predicates of a solution that have no answer into the table."""
    condition, (scope, known) = tests.condition, tests.residual
    for j in range(condition.shape[0]):
        test, term = condition[j, TEST], value[condition[j, VARIABLE], VALUE]
        if term < 0 or condition[j, KIND] == INDEXED or condition[j, KIND] == RANGE_TEST:
            continue
        at = _slot(test, term, publication, tests.residual)
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


@helper
def _term(a: int, k: int, frame: Any, value: Any) -> Any:
    """The term in a position of a pattern, or -1."""
    code = frame[a, CODE + k]
    return code if code >= 0 else value[-1 - code, VALUE]


@called_helper
def _seek(depth: int, a: int, search: SearchState, batch: SortedTriples, graph: PublicationSlice) -> int:
    """Find the triples of a pattern: a range of the batch's, or of `keys` (HOW is then how far behind a key the number
    of its triple is). There may be others among them. Returns a cost: the smaller, the fewer there are; 0 for none."""
    frame, value, (_, t0, t1, k0), pairs, keys = search.frame, search.value, graph, batch.pairs, batch.keys
    s, p, o = _term(a, 0, frame, value), _term(a, 1, frame, value), _term(a, 2, frame, value)
    how, low, high = 0, t0, t1
    by_keys = k0 >= 0 and ((s < 0 and p >= 0) or (p < 0 and o >= 0))
    if by_keys or s >= 0:
        # by (predicate, object), by (object, subject), or by (subject, predicate)
        first, second = (p, o) if by_keys and p >= 0 else (o, s) if by_keys else (s, p)
        begin = t0 if not by_keys else k0 if p >= 0 else k0 + t1 - t0
        end, wanted = begin + t1 - t0, (first << 32) | max(second, 0)
        column = keys if by_keys else pairs
        how, low = 2 * (t1 - t0) if by_keys else 0, lower(column, begin, end, wanted)
        high = lower(column, low, end, wanted + 1 if second >= 0 else (first + 1) << 32)
        if not by_keys and p >= 0 and o >= 0:
            low = lower(batch.object, low, high, o)
            high = low + 1 if low < high and batch.object[low] == o else low
    frame[depth, HOW], frame[depth, NEXT], frame[depth, END], frame[depth, MASK] = how, low, high, 0
    return 4 * (high - low) + (s < 0) + (p < 0) + (o < 0) if low < high else 0


@called_helper
def _open(depth: int, size: int, search: SearchState, batch: SortedTriples, graph: PublicationSlice) -> bool:
    """Take the pattern with the fewest triples of those from `depth` on. False: one has none."""
    frame, best, fewest = search.frame, depth, 0
    for i in range(depth, size):
        cost = _seek(depth, frame[i, ORDER], search, batch, graph)
        if cost == 0:
            return False
        if i == depth or cost < fewest:
            best, fewest = i, cost
    search.state[STEPS] += size - depth
    chosen = frame[best, ORDER]
    frame[best, ORDER], frame[depth, ORDER] = frame[depth, ORDER], chosen
    if best < size - 1:
        _seek(depth, chosen, search, batch, graph)
    return True


@called_helper
def _release(depth: int, a: int, frame: Any, value: Any) -> None:
    """Take back what a pattern gave values to."""
    for k in range(3):
        if frame[depth, MASK] & (1 << k):
            value[-1 - frame[a, CODE + k], VALUE] = -1
    frame[depth, MASK] = 0


@helper
def _bind(depth: int, a: int, x: int, y: int, z: int, frame: Any, value: Any) -> Any:
    """Give the variables of a pattern the terms of a triple; False where one would have two."""
    fits = True
    for k in range(3):
        variable, term = -1 - frame[a, CODE + k], x if k == 0 else y if k == 1 else z
        if variable >= 0 and value[variable, VALUE] < 0:
            value[variable, VALUE] = term
            frame[depth, MASK] |= 1 << k
        fits = fits and (variable < 0 or value[variable, VALUE] == term)
    return fits


@called_helper
def _advance(depth: int, a: int, left: int, opened: int, width: int, search: SearchState, batch: SortedTriples,
             graph: PublicationSlice, tests: ClauseConditions) -> bool:  # fmt: skip
    """Go to the next triple that fits pattern a and the tests of what it binds. `left`, `opened`: how many selected
    variables had no value before, and how many values waited for residual predicates."""
    frame, value, state = search
    _release(depth, a, frame, value)
    s, p, o = _term(a, 0, frame, value), _term(a, 1, frame, value), _term(a, 2, frame, value)
    how, end = frame[depth, HOW], frame[depth, END]
    for i in range(frame[depth, NEXT], end):
        t = i if how == 0 else batch.keys[i + how]
        x, y, z = batch.pairs[t] >> 32, batch.pairs[t] & 0x7FFFFFFF, batch.object[t]
        if (s >= 0 and x != s) or (p >= 0 and y != p) or (o >= 0 and z != o):
            continue
        state[STEPS] += 1
        fits, now_left, now_open = _bind(depth, a, x, y, z, frame, value), left, opened
        for k in range(3):
            if fits and frame[depth, MASK] & (1 << k):
                variable = -1 - frame[a, CODE + k]
                now_left -= variable < width
                if tests.condition.shape[0] > 0:
                    outcome = _passes(variable, value[variable, VALUE], graph.number, tests)
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


@called_helper
def _apart(depth: int, size: int, search: SearchState) -> bool:
    """Do the patterns from `depth` on share no variable that has no value?"""
    frame, value, state = search
    before, state[MARKED] = state[MARKED], state[MARKED] + size
    for i in range(depth, size):
        for k in range(3):
            variable = -1 - frame[frame[i, ORDER], CODE + k]
            if variable >= 0 and value[variable, VALUE] < 0:
                if value[variable, MARK] > before and value[variable, MARK] != before + 1 + i:
                    return False
                value[variable, MARK] = before + 1 + i
    return True


@called_helper
def _insert(value: Any, width: int, out: SolutionRows, count: int, distinct: bool, state: Any) -> Any:
    """Add the first `width` values to the `count` rows that begin at rows[state[ROWS]]; if they are `distinct`, without
    looking for them there. Returns how many there are; where there is no room the flag is set."""
    rows, slots = out.rows, out.slots
    start, at = state[ROWS], state[ROWS] + count * width
    if at + width > rows.size or (not distinct and 2 * (count + 1) > slots.shape[0]):
        state[FLAGS] |= ROOM
        return count
    for k in range(width):
        rows[at + k] = value[k, VALUE]
    if not distinct:
        slot, same = hash_numbers(np.int64(0), rows, at, at + width) & (slots.shape[0] - 1), False
        while slots[slot, 0] == state[STAMP] and not same:
            same = same_numbers(rows, start + slots[slot, 1] * width, rows, at, width)
            slot = (slot + 1) & (slots.shape[0] - 1)
        if same:
            return count
        slots[slot, 0], slots[slot, 1] = state[STAMP], count
    return count + 1


@called_helper
def _search(size: int, needed: int, limit: int, width: int, distinct: bool, keep: bool, search: SearchState,
            batch: SortedTriples, graph: PublicationSlice, tests: ClauseConditions,
            out: SolutionRows) -> Any:  # fmt: skip
    """How many solutions the first `size` patterns in order have, at most `limit`; they are put at the end of `rows` if
    they are to be kept. Of those that agree on the `needed` selected variables some are counted once."""
    frame, value, state = search
    count, maybe = 0, 0
    at, total, number = -1, 0, 0  # where those left fall apart: the one that is being counted, and the product so far
    depth = 0 if _open(0, size, search, batch, graph) else -1
    while depth >= 0 and state[FLAGS] & (OVER | ROOM) == 0:
        left, opened = (frame[depth - 1, LEFT], frame[depth - 1, OPEN]) if depth > 0 else (needed, 0)
        a = frame[at if at >= 0 else depth, ORDER]
        has_next = _advance(depth, a, left, opened, width, search, batch, graph, tests)
        if state[STEPS] > state[MOST_STEPS]:
            state[FLAGS] |= OVER
        solutions, down = 0, False
        if at >= 0:
            number += has_next
            down = has_next and frame[depth, OPEN] > 0  # not counted by itself: residual predicates are waited for
            if has_next and not down and frame[depth, LEFT] < left and number < limit:
                continue
            _release(depth, a, frame, value)
            total, number = min(total * number, limit), 0
            if not down and total > 0 and at + 1 < size:
                at += 1
                _seek(depth, frame[at, ORDER], search, batch, graph)
                continue
            at, solutions, depth = -1, 0 if down else total, depth - 1
            down = down or (keep and solutions > 0)
        elif not has_next:
            depth -= 1
        elif depth + 1 == size:
            solutions = 1
        elif frame[depth, OPEN] == 0 and _apart(depth + 1, size, search):
            depth += 1
            at, total = depth, 1
            _seek(depth, frame[at, ORDER], search, batch, graph)
        else:
            down = True
        if down:
            depth += _open(depth + 1, size, search, batch, graph)
        elif solutions > 0 and frame[depth, OPEN] > 0:
            maybe -= state[KNOWN]
            _ask(graph.number, value, tests, state)
            maybe += state[KNOWN]
            if maybe >= MAYBE:
                break
        elif solutions > 0:
            count = _insert(value, width, out, count, distinct, state) if keep else count + solutions
            if count >= limit:
                break
            while depth > 0 and frame[depth - 1, LEFT] == 0:  # what is left only had to exist
                _release(depth, frame[depth, ORDER], frame, value)
                depth -= 1
    for i in range(depth + 1):
        _release(i, frame[at if i == depth and at >= 0 else i, ORDER], frame, value)
    return min(count, limit)


@kernel
def join(done: int, pairs: PairColumns, cap: int, keep: bool, joined: JoinedClauses, batch: SortedTriples,
         features: NodeFeatures, residual: ResidualAnswers, search: SearchState, outcome: Any,
         out: SolutionRows) -> Any:  # fmt: skip
    """The outcome of each pair from `done` on: has one of its clauses, those of its slice, a solution, or more than
    `cap`? `width` is how many variables are selected; with 0, one solution is enough.

    Where `keep`: a row of `pieces` is (pair, clause, begin in `rows`, number of rows), one for each component; its rows
    are `width` wide, distinct, and cap + 1 at the most. Without, solutions may be counted more than once.
    Returns the first pair for which a table has no room, else the number of pairs.
    """
    code_offset, code, component_offset, component, member, condition_offset, condition = joined
    (publication, clause_offset, clauses, width), (frame, _, state), pieces = pairs, search, out.pieces
    for i in range(done, publication.size):
        rows_end, pieces_end, total, flags = state[ROWS], state[PIECES], 0, 0
        p, w, limit, keeping = publication[i], width[i], cap + 1 if width[i] > 0 else 1, keep and width[i] > 0
        graph = PublicationSlice(_int(p), batch.offset[p], batch.offset[p + 1], batch.key_offset[p])
        state[STEPS] = 0
        for j in range(clause_offset[i], clause_offset[i + 1]):
            c = clauses[j]
            first, clause_rows, clause_pieces, waits, product = code_offset[c], state[ROWS], state[PIECES], 0, 1
            tests = ClauseConditions(condition[condition_offset[c] : condition_offset[c + 1]], features, residual)
            for m in range(code_offset[c + 1] - first):
                for k in range(3):
                    frame[m, CODE + k] = code[first + m, k]
            for k in range(component_offset[c], component_offset[c + 1]):
                begin, size, most = first + component[k, 0], component[k, 1], limit if component[k, 2] > 0 else 1
                for m in range(size):
                    frame[m, ORDER] = member[begin + m]
                state[FLAGS], state[STAMP] = 0, state[STAMP] + 1
                distinct = most == 1 or component[k, 3] > 0
                count = _search(size, component[k, 2], most, w, distinct, keeping, search, batch, graph, tests, out)
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
                # where there are enough rows, which ones does not depend on the answers that happened to be known
                waits |= state[FLAGS] if count < most else state[FLAGS] & UNSURE if keeping and most > 1 else 0
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
        outcome[i] = UNKNOWN + flags if flags else MISS if total == 0 else MATCH if total <= cap else TRUNCATED
    return publication.size
