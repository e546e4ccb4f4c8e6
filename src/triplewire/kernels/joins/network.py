"""Which clauses have a solution in a publication, and how many? Each join step is solved once for all clauses.

The steps of `triplewire.kernels.joins.network_build` are solved from the root, and only those that some clause needs:
the rows of a step are those of its parent, joined with the triples that fit its pattern. They stay until the next
publication. A clause has as many solutions as the product of its components says. For publications of few triples,
whose sets are the bits of a few numbers. What is not decided here (`LEFT`) goes to `triplewire.verify.solve`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.joins.columns import NodeFeatures
from triplewire.kernels.joins.network_columns import (
    LEAF,
    NEW_WIDTH,
    NUMBER,
    OBJECT,
    PARENT,
    POSITION,
    PREDICATE,
    RANGED,
    SUBJECT,
    TEST,
    TEST_END,
    WIDTH,
    Scratch,
    StepColumns,
)
from triplewire.kernels.joins.node_tests import is_indexed, is_within
from triplewire.kernels.prefetch import prefetch
from triplewire.kernels.shared.bits import count_bits
from triplewire.kernels.shared.columns import TestColumns, Triples
from triplewire.kernels.shared.compiled import called_helper, helper, kernel
from triplewire.kernels.shared.hashing import mix_bits
from triplewire.kernels.shared.outcomes import LEFT, MATCH, MISS, TRUNCATED

EXACT, ALONE, ASK, DISTINCT, PRESENT = 1, 2, 4, 8, 16
"""Bits of a clause's mark. EXACT: its subscription is equivalent to its clauses, and it has no residual predicate. Its
subscription has no other clause; is an ASK query; has a binding for each solution. PRESENT: it is in the network."""

WORD, WORDS = 62, 4  # triples whose bits are one number; numbers of a set
FEW = WORD * WORDS  # triples of a publication
MOST_TERMS = 3 * FEW
MOST_TESTS = 1024  # that hold of the terms of a publication; where there are more, each is asked of each term
SLOTS = 2048  # a power of two, at least twice as many as a publication has terms
MOST_ROWS = 1024  # of a step
MOST_SOLUTIONS = 1 << 30  # counts stay there
STAMP, USED, LISTED, VISITED = 0, 1, 2, 3  # places in `state`
SOLVED, BEGIN, COUNT, TOTAL = 0, 1, 2, 3  # columns of `memo`
TOO_MANY = -1  # as COUNT: nothing is known
AHEAD = 32  # pairs whose steps are fetched together
_ROOT = 0  # the row that first steps are joined to; it has no variables
BY_SLOT, OF_BATCH, CONSTANT = 0, 1, 2  # rows of `terms`
_int: Any = np.int64
_ONE = _int(1)
_LOW = _int(0xFFFFFFFF)


def scratch(constants: int, tests: int, steps: int, room: int) -> Scratch:
    """What `decide` works with, for so many constants, tests and steps. `room`: numbers in rows of solutions."""
    return Scratch(
        np.zeros(constants, np.int64),
        np.zeros(tests, np.int64),
        np.zeros(SLOTS, np.int64),
        np.zeros((3, SLOTS), np.int32),
        np.zeros((MOST_TERMS + MOST_TESTS, 3, WORDS), np.int64),
        np.zeros((3, FEW), np.int32),
        np.zeros((steps, 4), np.int32),
        np.empty(room, np.int32),
        np.empty(64, np.int32),
        np.zeros(4, np.int64),
    )


@helper
def _term(term: int, stamp: int, count: int, known: Any, work: Scratch) -> Any:
    """The number of a batch's term among those of the publication, which are `count` so far; and how many then."""
    at, key = mix_bits(term) & (SLOTS - 1), (stamp << 32) | term
    while work.slots[at] >> 32 == stamp and work.slots[at] != key:
        at = (at + 1) & (SLOTS - 1)
    if work.slots[at] != key:
        work.slots[at], work.terms[BY_SLOT, at] = key, count
        work.terms[OF_BATCH, count], work.terms[CONSTANT, count] = term, known[term]
        if known[term] >= 0:
            work.constants[known[term]] = (stamp << 32) | count
        for k in range(3):
            for w in range(WORDS):
                work.sets[count, k, w] = 0
        count += 1
    return work.terms[BY_SLOT, at], count


@helper
def _list_test(test: int, own: int, words: int, end: int, most: int, work: Scratch) -> Any:
    """A test holds of the publication's term `own`, and so of its triples. `end`: how many sets there are; how many
    there are then, one more than `most` where there is no room."""
    stamp, place = work.state[STAMP], work.tests[test]
    if place >> 32 == stamp:
        for k in range(3):
            for w in range(words):
                work.sets[place & _LOW, k, w] |= work.sets[own, k, w]
    elif end < most:
        work.tests[test] = (stamp << 32) | end
        for k in range(3):
            for w in range(words):
                work.sets[end, k, w] = work.sets[own, k, w]
    return end + (place >> 32 != stamp)


@called_helper
def _prepare(p: int, batch: Triples, known: Any, features: NodeFeatures, work: Scratch) -> None:
    """Write down the triples of a publication: which of them have which term where, and a term of which test."""
    first, last = batch.offset[p], batch.offset[p + 1]
    stamp, count, words = work.state[STAMP], 0, (last - first + WORD - 1) // WORD
    for a in range(first, last):
        word, bit = (a - first) // WORD, _ONE << ((a - first) % WORD)
        for k in range(3):
            term = batch.subject[a] if k == 0 else batch.predicate[a] if k == 1 else batch.object[a]
            own, count = _term(term, stamp, count, known, work)
            work.sets[own, k, word] |= bit
            work.triples[k, a - first] = own
    end, most = count, count + MOST_TESTS
    for own in range(count):
        term = work.terms[OF_BATCH, own]
        for t in range(features.offset[term], features.offset[term + 1]):
            if end <= most:
                end = _list_test(features.test[t], own, words, end, most, work)
    for t in range(features.node_offset[p], features.node_offset[p + 1]):
        if end <= most:
            own, count = _term(features.node_key[t] >> 32, stamp, count, known, work)
            end = _list_test(features.node_key[t] & _LOW, own, words, end, most, work)
    work.state[LISTED] = end <= most


@helper
def _passes(t0: int, t1: int, triple: int, publication: int, steps: StepColumns, tests: TestColumns,
            features: NodeFeatures, work: Scratch) -> Any:  # fmt: skip
    """Do the tests t0 .. t1 of a step hold of a triple?"""
    passes = True
    for t in range(t0, t1):
        number, position = steps.tested[t, NUMBER], steps.tested[t, POSITION]
        term = work.terms[OF_BATCH, work.triples[position % RANGED, triple]]
        if passes and position >= RANGED:
            passes = is_within(term, tests.group[number], tests.op[number], tests.rank[number], features)
        elif passes and work.state[LISTED] == 0:
            passes = is_indexed(number, term, publication, features)
    return passes


@helper
def _fitting(n: int, w: int, row: int, triples: int, t0: int, t1: int, steps: StepColumns, work: Scratch) -> Any:
    """The triples, of those with the bits of number w, that fit the pattern of a step with the values of a row, and the
    tests t0 .. t1, as far as those are listed."""
    step, bits, stamp = steps.step, (_ONE << min(max(triples - w * WORD, 0), WORD)) - 1, work.state[STAMP]
    for k in range(3):
        code = step[n, SUBJECT + k]
        if code >= 0:
            place = work.constants[code]
            bits &= work.sets[place & _LOW, k, w] if place >> 32 == stamp else 0
        elif code != LEAF and -1 - code < step[n, WIDTH]:
            bits &= work.sets[work.rows[row + 1 + (-1 - code)], k, w]
    for t in range(t0, t1):
        position = steps.tested[t, POSITION]
        if position < RANGED:
            place = work.tests[steps.tested[t, NUMBER]]
            bits &= work.sets[place & _LOW, position, w] if place >> 32 == stamp else 0
    return bits


@helper
def _bind(n: int, triple: int, row: int, at: int, steps: StepColumns, work: Scratch) -> Any:
    """Write the row `at`: that of the parent, and the values that a triple gives. False: a variable has two."""
    step, rows, width = steps.step, work.rows, steps.step[n, WIDTH]
    for v in range(width):
        rows[at + 1 + v] = rows[row + 1 + v]
    fits = True
    for k in range(3):
        code, value = step[n, SUBJECT + k], work.triples[k, triple]
        if code < 0 and code != LEAF and -1 - code >= step[n, WIDTH]:
            if -1 - code >= width:
                rows[at + 1 + (-1 - code)], width = value, -code
            fits = fits and rows[at + 1 + (-1 - code)] == value
    return fits


@helper
def _join(n: int, row: int, weight: int, publication: int, triples: int, out: int, steps: StepColumns,
          tests: TestColumns, features: NodeFeatures, work: Scratch) -> int:  # fmt: skip
    """Put the rows that a row of the parent has in a step behind those that end at `out`. Returns the end, or
    TOO_MANY."""
    step, rows = steps.step, work.rows
    t0, t1, width, new_width = step[n, TEST], step[n, TEST_END], step[n, WIDTH], step[n, NEW_WIDTH]
    size, begin, count = new_width + 1, out, _int(0)
    has_leaf = step[n, SUBJECT] == LEAF or step[n, PREDICATE] == LEAF or step[n, OBJECT] == LEAF
    listed = t1 if work.state[LISTED] != 0 else t0
    asks = t0 < t1 and (listed == t0 or steps.tested[t1 - 1, POSITION] >= RANGED)
    for w in range((triples + WORD - 1) // WORD):
        bits = _fitting(n, w, row, triples, t0, listed, steps, work)
        if not asks and new_width == width:
            count += count_bits(bits)
            bits = _int(0)
        while bits != 0:
            triple = w * WORD + count_bits((bits & -bits) - 1)
            bits &= bits - 1
            if asks and not _passes(t0, t1, triple, publication, steps, tests, features, work):
                continue
            if new_width == width:
                count += 1
                continue
            if out + size > rows.size:
                return TOO_MANY
            if not _bind(n, triple, row, out, steps, work):
                continue
            at, same = begin if has_leaf else out, False
            while at < out and not same:  # another value of a leaf gives the same row
                same = True
                for v in range(width + 1, size):
                    same = same and rows[at + v] == rows[out + v]
                at = at if same else at + size
            if same:
                rows[at] = min(_int(rows[at]) + weight, MOST_SOLUTIONS)
            else:
                rows[out] = weight
                out += size
    if count > 0:
        if out + size > rows.size:
            return TOO_MANY
        rows[out] = min(weight * count, MOST_SOLUTIONS)
        for v in range(1, size):
            rows[out + v] = rows[row + v]
        out += size
    return out


@helper
def _solve(n: int, publication: int, triples: int, steps: StepColumns, tests: TestColumns, features: NodeFeatures,
           work: Scratch) -> None:  # fmt: skip
    """Solve a step whose parent is solved. Inlined where it is called, with all that it calls: the arrays would take
    longer to hand over than most steps take."""
    step, memo, rows, parent = steps.step, work.memo, work.rows, steps.step[n, PARENT]
    begin = _int(work.state[USED])
    out, parents, row, total = begin, _int(1), _int(_ROOT), _int(0)
    if parent >= 0:
        parents, row = _int(memo[parent, COUNT]), _int(memo[parent, BEGIN])
    for _ in range(max(parents, 0)):
        if out >= 0:
            out = _join(n, row, rows[row], publication, triples, out, steps, tests, features, work)
        row += step[n, WIDTH] + 1
    size = step[n, NEW_WIDTH] + 1
    if parents < 0 or out < 0 or out - begin > MOST_ROWS * size:
        memo[n, COUNT] = TOO_MANY
    else:
        for at in range(begin, out, size):
            total += rows[at]
        memo[n, BEGIN], memo[n, COUNT], memo[n, TOTAL] = begin, (out - begin) // size, min(total, MOST_SOLUTIONS)
        work.state[USED] = out
    memo[n, SOLVED] = work.state[STAMP]
    work.state[VISITED] += 1


@helper
def _solve_path(n: int, publication: int, triples: int, steps: StepColumns, tests: TestColumns, features: NodeFeatures,
                work: Scratch) -> None:  # fmt: skip
    """Solve a step and those before it, as far as that has not been done."""
    depth, stamp = 0, work.state[STAMP]
    while n >= 0 and work.memo[n, SOLVED] != stamp:
        work.path[depth], depth, n = n, depth + 1, steps.step[n, PARENT]
    while depth > 0:
        depth -= 1
        _solve(work.path[depth], publication, triples, steps, tests, features, work)


@helper
def _fetch(clause: Any, begin: int, end: int, steps: StepColumns, memo: Any) -> None:
    """Have what will be read of the steps of some clauses fetched."""
    offset, last, step = steps.component_offset, steps.last, steps.step
    for k in range(begin, end):
        prefetch(steps.mark, clause[k])
        prefetch(offset, clause[k])
    for k in range(begin, end):
        prefetch(last, offset[clause[k]])
    for k in range(begin, end):
        for j in range(offset[clause[k]], offset[clause[k] + 1]):
            prefetch(step, last[j])
            prefetch(memo, last[j])
    for k in range(begin, end):
        for j in range(offset[clause[k]], offset[clause[k] + 1]):
            if last[j] >= 0:
                prefetch(step, step[last[j], PARENT])
                prefetch(memo, step[last[j], PARENT])
                prefetch(steps.tested, step[last[j], TEST])


@kernel
def decide(publication: Any, clause: Any, steps: StepColumns, tests: TestColumns, batch: Triples, known: Any,
           features: NodeFeatures, cap: int, work: Scratch, outcome: Any) -> None:  # fmt: skip
    """The outcome of pairs of a publication and a clause; LEFT where it is not decided here. The pairs of a
    publication follow each other. known[term of the batch]: the segment's constant, or -1."""
    now, triples, usable, offset = -1, 0, False, steps.component_offset
    work.rows[_ROOT] = 1
    for k in range(clause.size):
        if k % AHEAD == 0:
            _fetch(clause, k, min(k + AHEAD, clause.size), steps, work.memo)
        p, c = publication[k], clause[k]
        if p != now:
            now, triples = p, batch.offset[p + 1] - batch.offset[p]
            usable = triples <= FEW
            work.state[STAMP], work.state[USED] = work.state[STAMP] + 1, _ROOT + 1
            if usable:
                _prepare(p, batch, known, features, work)
        outcome[k] = LEFT
        mark, total, is_known = steps.mark[c], _int(1), True
        if not usable or mark & PRESENT == 0:
            continue
        for j in range(offset[c], offset[c + 1]):
            n = steps.last[j]
            if n >= 0 and total > 0:
                if work.memo[n, SOLVED] != work.state[STAMP]:
                    _solve_path(n, p, triples, steps, tests, features, work)
                if work.memo[n, COUNT] == 0:
                    total = _int(0)
                elif work.memo[n, COUNT] > 0:
                    total = min(total * work.memo[n, TOTAL], MOST_SOLUTIONS)
            is_known = is_known and n >= 0 and work.memo[n, COUNT] >= 0
        if total == 0:
            outcome[k] = MISS
        elif is_known and mark & EXACT > 0:
            if mark & ASK > 0 or (mark & ALONE > 0 and total <= cap):
                outcome[k] = MATCH
            elif mark & ALONE > 0 and mark & DISTINCT > 0 and cap < MOST_SOLUTIONS:
                outcome[k] = TRUNCATED
