"""The solutions of clauses that are stars and not in the join network: their patterns share the subject alone.

For each subject, what fits one pattern is independent of the others: a star has the product of them as solutions. What
fits is a set of triples of the publication, as the bits of a few numbers. Used by
`triplewire.kernels.joins.network.listing`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.joins.columns import NodeFeatures, StarClauses
from triplewire.kernels.joins.network.columns import Scratch
from triplewire.kernels.joins.network.publication import LISTED, OF_BATCH, STAMP, WORD, triple_words
from triplewire.kernels.joins.node_tests import is_indexed, is_within
from triplewire.kernels.shared.bits import lowest_bit
from triplewire.kernels.shared.columns import RANGE_TEST, TestColumns
from triplewire.kernels.shared.compiled import called_helper, helper
from triplewire.kernels.shared.hashing import is_new_row

MOST_PATTERNS = 32
NO_ROOM, OVER = -1, -2  # in place of a number of rows: a table is too small; it takes too many steps
_int: Any = np.int64
_ONE = _int(1)
_LOW = _int(0xFFFFFFFF)


class StarSets(NamedTuple):
    """What fits the patterns of the star at hand. It may be used again."""

    fit: Any  # shape (MOST_PATTERNS, WORDS): the triples of the publication that fit, as bits
    rest: Any  # the same, of the subject at hand: those that have not had their turn
    column: Any  # pattern -> the selected variable of its object, or -1


@helper
def _having(bits: Any, w: int, k: int, number: int, p: int, tests: TestColumns, features: NodeFeatures,
            work: Scratch) -> Any:  # fmt: skip
    """The triples, of those with the bits of number w, of whose term in a place a test holds."""
    kind, place = tests.kind[number], work.tests[number]
    if kind != RANGE_TEST and work.state[LISTED] != 0:
        return bits & work.sets[place & _LOW, k, w] if place >> 32 == work.state[STAMP] else _int(0)
    rest = bits
    while rest != 0:
        term = work.terms[OF_BATCH, work.triples[k, w * WORD + lowest_bit(rest)]]
        if kind == RANGE_TEST:
            holds = is_within(term, tests.group[number], tests.op[number], tests.rank[number], features)
        else:
            holds = is_indexed(number, term, p, features)
        bits = bits if holds else bits & ~(rest & -rest)
        rest &= rest - 1
    return bits


@called_helper
def _fit(row: int, m: int, t0: int, t1: int, p: int, triples: int, clauses: StarClauses, tests: TestColumns,
         features: NodeFeatures, sets: StarSets, work: Scratch) -> bool:  # fmt: skip
    """Write down the triples that fit a pattern, with the tests of its variables. Are there any?"""
    there = _int(0)
    for w in range(triple_words(triples)):
        bits = (_ONE << min(triples - w * WORD, _int(WORD))) - 1
        for k in range(3):
            code = _int(clauses.pattern[row, k])
            if code >= 0:
                place = work.constants[code]
                bits &= work.sets[place & _LOW, k, w] if place >> 32 == work.state[STAMP] else _int(0)
            for t in range(t0, t1 if code < 0 and bits != 0 else t0):
                if clauses.test_variable[t] == -1 - code:
                    bits = _having(bits, w, k, clauses.test[t], p, tests, features, work)
        sets.fit[m, w] = bits
        there |= bits
    return bool(there != 0)


@helper
def _next(m: int, w: int, words: int, sets: StarSets) -> Any:
    """The first triple of a pattern that has not had its turn, from number w on; -1 if there is none."""
    while w < words and sets.rest[m, w] == 0:
        w += 1
    return w * WORD + lowest_bit(sets.rest[m, w]) if w < words else _int(-1)


@helper
def _begin(m: int, subject: int, words: int, sets: StarSets, work: Scratch) -> Any:
    """Begin anew with a pattern's triples of a subject. Are there any?"""
    there = _int(0)
    for w in range(words):
        sets.rest[m, w] = sets.fit[m, w] & work.sets[subject, 0, w]
        there |= sets.rest[m, w]
    return there != 0


@helper
def _step(patterns: int, subject: int, words: int, sets: StarSets, work: Scratch) -> bool:
    """Go on to the next solution of a subject: the last pattern that has another object changes."""
    for m in range(patterns - 1, -1, -1):
        if sets.column[m] >= 0:
            triple = _next(m, _int(0), words, sets)
            sets.rest[m, triple // WORD] &= sets.rest[m, triple // WORD] - 1
            if _next(m, _int(0), words, sets) >= 0:
                return True
            _begin(m, subject, words, sets, work)
    return False


@called_helper
def list_star(c: int, width: int, limit: int, p: int, triples: int, clauses: StarClauses, tests: TestColumns,
              features: NodeFeatures, sets: StarSets, room: Any, work: Scratch) -> int:  # fmt: skip
    """Put the distinct solutions of a clause into rows, from a place on: `room` is (rows, place, hash table as for
    `is_new_row`, most steps). Returns how many there are, at most `limit`; NO_ROOM where there is none, OVER where it
    takes too many steps."""
    (rows, begin, slots, most_steps), first, words = room, clauses.pattern_offset[c], triple_words(triples)
    patterns, t0, t1 = clauses.pattern_offset[c + 1] - first, clauses.test_offset[c], clauses.test_offset[c + 1]
    own, at, count, tried, repeats = -1 - _int(clauses.pattern[first, 0]), begin, 0, 0, False
    for m in range(patterns):
        if not _fit(first + m, m, t0, t1, p, triples, clauses, tests, features, sets, work):
            return 0
        variable = -1 - _int(clauses.pattern[first + m, 2])
        sets.column[m] = variable if variable < width else -1
        repeats = repeats or (clauses.pattern[first + m, 1] < 0 and sets.column[m] >= 0)
    repeats = repeats or own >= width
    for w in range(words):
        subjects = sets.fit[0, w]
        while subjects != 0 and count < limit:
            subject, more = work.triples[0, w * WORD + lowest_bit(subjects)], True
            subjects &= ~work.sets[subject, 0, w]
            for m in range(patterns):
                more = _begin(m, subject, words, sets, work) and more
            for before in range(w):  # it has had its turn
                more = more and sets.fit[0, before] & work.sets[subject, 0, before] == 0
            while more and count < limit:
                tried += 1
                if tried > most_steps:
                    return OVER
                if at + width > rows.size or 2 * count + 2 > slots.size:
                    return NO_ROOM
                for v in range(width):
                    rows[at + v] = -1
                if 0 <= own < width:
                    rows[at + own] = work.terms[OF_BATCH, subject]
                for m in range(patterns):
                    if sets.column[m] >= 0:
                        triple = _next(m, _int(0), words, sets)
                        rows[at + sets.column[m]] = work.terms[OF_BATCH, work.triples[2, triple]]
                if not repeats or is_new_row(rows, begin, at, width, slots):
                    at, count = at + width, count + 1
                more = _step(patterns, subject, words, sets, work)
    return count
