"""The publication at hand, as join steps take it: its terms by numbers of their own, its triples as sets of bits.

prepare: each term gets a number; bit t of sets[term, k] says: triple t has the term in position k
    a test's sets are the unions of those of the terms that it holds of
fitting(step, values) = AND over the positions of the pattern: sets[its constant or its variable's value, k]
solve_path(step): its parent first; then for each row of the parent, for each triple that fits:
    the row and the new values; rows that differ in a leaf only are one, with the number of solutions
"""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.shared.columns import Triples
from triplewire.kernels.shared.compiled import called_helper, helper
from triplewire.kernels.shared.hashing import mix_bits
from triplewire.kernels.shared.search import count_bits
from triplewire.verify.kernels import columns as net
from triplewire.verify.kernels.columns import NodeFeatures, Scratch, StepColumns, is_indexed, is_within

_int: Any = np.int64
_ONE = _int(1)
_LOW = _int(0xFFFFFFFF)


@helper
def triple_words(triples: int) -> Any:
    """Numbers of a set of triples of the publication."""
    return (triples + net.WORD - 1) // net.WORD


@helper
def value_words(work: Scratch) -> Any:
    """Numbers of a set of values of a variable: subjects and objects of the publication."""
    return work.state[net.ENDS] // net.WORD + 1


@helper
def _term(term: int, stamp: int, count: int, known: Any, work: Scratch) -> Any:
    """The number of a batch's term among those of the publication, which are `count` so far; and how many then."""
    at, key = mix_bits(term) & (net.SLOTS - 1), (stamp << 32) | term
    while work.slots[at] >> 32 == stamp and work.slots[at] != key:
        at = (at + 1) & (net.SLOTS - 1)
    if work.slots[at] != key:
        work.slots[at], work.terms[net.BY_SLOT, at] = key, count
        work.terms[net.OF_BATCH, count], work.terms[net.CONSTANT, count] = term, known[term]
        if known[term] >= 0:
            work.constants[known[term]] = (stamp << 32) | count
        for k in range(3):
            for w in range(net.WORDS):
                work.sets[count, k, w] = 0
        count += 1
    return work.terms[net.BY_SLOT, at], count


@helper
def _list_test(test: int, number: int, words: int, end: int, most: int, work: Scratch) -> Any:
    """A test holds of the publication's term `number`, and so of its triples. `end`: how many sets there are; how many
    there are then, one more than `most` where there is no room."""
    stamp, place = work.state[net.STAMP], work.tests[test]
    if place >> 32 == stamp:
        for k in range(3):
            for w in range(words):
                work.sets[place & _LOW, k, w] |= work.sets[number, k, w]
    elif end < most:
        work.tests[test] = (stamp << 32) | end
        for k in range(3):
            for w in range(words):
                work.sets[end, k, w] = work.sets[number, k, w]
    return end + (place >> 32 != stamp)


@helper
def has_many_pairs(publication: Any, at: int) -> Any:
    """Has the publication whose pairs begin at a place so many that its tests are listed?"""
    last = at + net.LISTING - 1
    return last < publication.size and publication[last] == publication[at]


@called_helper
def prepare(p: int, batch: Triples, known: Any, features: NodeFeatures, has_many: bool, work: Scratch) -> None:
    """Write down the triples of a publication: which of them have which term where, and, if it `has_many` pairs, a
    term of which test. Subjects and objects get the first numbers."""
    first, last = batch.offset[p], batch.offset[p + 1]
    stamp, count, words = work.state[net.STAMP], 0, triple_words(last - first)
    for k in (0, 2, 1):
        for a in range(first, last):
            term = batch.subject[a] if k == 0 else batch.predicate[a] if k == 1 else batch.object[a]
            number, count = _term(term, stamp, count, known, work)
            work.sets[number, k, (a - first) // net.WORD] |= _ONE << ((a - first) % net.WORD)
            work.triples[k, a - first] = number
        if k == 2:
            work.state[net.ENDS] = count
    end, most = count, count + net.MOST_TESTS
    for number in range(count if has_many else 0):
        term = work.terms[net.OF_BATCH, number]
        for t in range(features.offset[term], features.offset[term + 1]):
            if end <= most:
                end = _list_test(features.test[t], number, words, end, most, work)
    for t in range(features.node_offset[p], features.node_offset[p + 1]):
        if has_many and end <= most:
            number, count = _term(features.node_key[t] >> 32, stamp, count, known, work)
            end = _list_test(features.node_key[t] & _LOW, number, words, end, most, work)
    work.state[net.LISTED] = has_many and end <= most


@helper
def passes(t0: int, t1: int, triple: int, publication: int, steps: StepColumns,
            features: NodeFeatures, work: Scratch) -> Any:  # fmt: skip
    """Do the tests t0 .. t1 of a step hold of a triple?"""
    holds = True
    for t in range(t0, t1):
        number, position = steps.tested[t, net.NUMBER], steps.tested[t, net.POSITION]
        term = work.terms[net.OF_BATCH, work.triples[position & (net.RANGED - 1), triple]]
        if holds and position >= net.RANGED:
            ask = position >> net.PLACES
            holds = is_within(term, ask >> net.OPS, ask & ((1 << net.OPS) - 1), number, features)
        elif holds and work.state[net.LISTED] == 0:
            holds = is_indexed(number, term, publication, features)
    return holds


@helper
def fitting(n: int, w: int, row: int, width: int, triples: int, t0: int, t1: int, steps: StepColumns,
            work: Scratch) -> Any:  # fmt: skip
    """The triples, of those with the bits of number w, that fit the pattern of a step with the first `width` values of
    a row, and the tests t0 .. t1, as far as those are listed."""
    step, bits, stamp = steps.step, (_ONE << min(max(triples - w * net.WORD, 0), net.WORD)) - 1, work.state[net.STAMP]
    for k in range(3):
        code = step[n, net.SUBJECT + k]
        if code >= 0:
            place = work.constants[code]
            bits &= work.sets[place & _LOW, k, w] if place >> 32 == stamp else 0
        elif code != net.LEAF and -1 - code < width:
            bits &= work.sets[work.rows[row + 1 + (-1 - code)], k, w]
    for t in range(t0, t1):
        position = steps.tested[t, net.POSITION]
        if position < net.RANGED:
            place = work.tests[steps.tested[t, net.NUMBER]]
            bits &= work.sets[place & _LOW, position, w] if place >> 32 == stamp else 0
    return bits


# --- paths -----------------------------------------------------------------------------------------------------------


MOST_ROWS = 1024  # of a step


@helper
def _bind(n: int, triple: int, row: int, at: int, steps: StepColumns, work: Scratch) -> Any:
    """Write the row `at`: that of the parent, and the values that a triple gives. False: a variable has two."""
    step, rows, width = steps.step, work.rows, _int(steps.width[n, net.BEFORE])
    for v in range(width):
        rows[at + 1 + v] = rows[row + 1 + v]
    fits = True
    for k in range(3):
        code, value = step[n, net.SUBJECT + k], work.triples[k, triple]
        if code < 0 and code != net.LEAF and -1 - code >= _int(steps.width[n, net.BEFORE]):
            if -1 - code >= width:
                rows[at + 1 + (-1 - code)], width = value, -code
            fits = fits and rows[at + 1 + (-1 - code)] == value
    return fits


@helper
def _join(n: int, row: int, weight: int, publication: int, triples: int, out: int, steps: StepColumns,
          features: NodeFeatures, work: Scratch) -> int:  # fmt: skip
    """Put the rows that a row of the parent has in a step behind those that end at `out`. Returns the end, or
    TOO_MANY."""
    step, rows = steps.step, work.rows
    t0, t1 = steps.test_offset[n], steps.test_offset[n + 1]
    width, new_width = _int(steps.width[n, net.BEFORE]), _int(steps.width[n, net.AFTER])
    size, begin, count = new_width + 1, out, _int(0)
    has_leaf = step[n, net.SUBJECT] == net.LEAF or step[n, net.PREDICATE] == net.LEAF or step[n, net.OBJECT] == net.LEAF
    listed = t1 if work.state[net.LISTED] != 0 else t0
    asks = t0 < t1 and (listed == t0 or steps.tested[t1 - 1, net.POSITION] >= net.RANGED)
    for w in range(triple_words(triples)):
        bits = fitting(n, w, row, width, triples, t0, listed, steps, work)
        if not asks and new_width == width:
            count += count_bits(bits)
            bits = _int(0)
        while bits != 0:
            triple = w * net.WORD + count_bits((bits & -bits) - 1)
            bits &= bits - 1
            if asks and not passes(t0, t1, triple, publication, steps, features, work):
                continue
            if new_width == width:
                count += 1
                continue
            if out + size > rows.size:
                return net.TOO_MANY
            if not _bind(n, triple, row, out, steps, work):
                continue
            at, same = begin if has_leaf else out, False
            while at < out and not same:  # another value of a leaf gives the same row
                same = True
                for v in range(width + 1, size):
                    same = same and rows[at + v] == rows[out + v]
                at = at if same else at + size
            if same:
                rows[at] = min(_int(rows[at]) + weight, net.MOST_SOLUTIONS)
            else:
                rows[out] = weight
                out += size
    if count > 0:
        if out + size > rows.size:
            return net.TOO_MANY
        rows[out] = min(weight * count, net.MOST_SOLUTIONS)
        for v in range(1, size):
            rows[out + v] = rows[row + v]
        out += size
    return out


@helper
def _solve(n: int, publication: int, triples: int, steps: StepColumns, features: NodeFeatures,
           work: Scratch) -> None:  # fmt: skip
    """Solve a step whose parent is solved. Inlined where it is called, with all that it calls: the arrays would take
    longer to hand over than most steps take."""
    memo, rows, parent = work.memo, work.rows, steps.step[n, net.PARENT]
    begin = _int(work.state[net.USED])
    out, parents, row, total = begin, _int(1), _int(net.FIRST_ROW), _int(0)
    if parent >= 0:
        parents, row = _int(memo[parent, net.COUNT]), _int(memo[parent, net.BEGIN])
    for _ in range(max(parents, 0)):
        if out >= 0:
            out = _join(n, row, rows[row], publication, triples, out, steps, features, work)
        row += _int(steps.width[n, net.BEFORE]) + 1
    size = _int(steps.width[n, net.AFTER]) + 1
    if parents < 0 or out < 0 or out - begin > MOST_ROWS * size:
        memo[n, net.COUNT] = net.TOO_MANY
    else:
        for at in range(begin, out, size):
            total += rows[at]
        memo[n, net.BEGIN], memo[n, net.COUNT], work.state[net.USED] = begin, (out - begin) // size, out
        memo[n, net.TOTAL] = min(total, net.MOST_SOLUTIONS)
    memo[n, net.SOLVED] = work.state[net.STAMP]
    work.state[net.VISITED] += 1


@helper
def solve_path(n: int, publication: int, triples: int, steps: StepColumns, features: NodeFeatures,
                work: Scratch) -> None:  # fmt: skip
    """Solve a step and those before it, as far as that has not been done."""
    depth, stamp = 0, work.state[net.STAMP]
    while n >= 0 and work.memo[n, net.SOLVED] != stamp:
        work.path[depth], depth, n = n, depth + 1, steps.step[n, net.PARENT]
    while depth > 0:
        depth -= 1
        _solve(work.path[depth], publication, triples, steps, features, work)
