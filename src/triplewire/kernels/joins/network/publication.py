"""The publication at hand, as join steps take it: its terms by numbers of their own, its triples as sets of bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.joins.columns import NodeFeatures
from triplewire.kernels.joins.network.columns import (
    LEAF,
    NUMBER,
    OPS,
    PLACES,
    POSITION,
    RANGED,
    SUBJECT,
    Scratch,
    StepColumns,
)
from triplewire.kernels.joins.node_tests import is_indexed, is_within
from triplewire.kernels.shared.columns import Triples
from triplewire.kernels.shared.compiled import called_helper, helper
from triplewire.kernels.shared.hashing import mix_bits

WORD, WORDS = 62, 4  # triples or terms whose bits are one number; numbers of a set of triples
FEW = WORD * WORDS  # triples of a publication
MOST_TERMS = 3 * FEW
MOST_TESTS = 1024  # that hold of the terms of a publication; where there are more, each is asked of each term
LISTING = 16  # pairs of a publication for which its tests are listed; for fewer, to ask takes less time
SLOTS = 2048  # a power of two, at least twice as many as a publication has terms
MOST_SOLUTIONS = 1 << 30  # counts stay there
STAMP, USED, LISTED, VISITED, ENDS, BITS_USED, FULL, PLAIN_STAMP, PLAIN_MASK = 0, 1, 2, 3, 4, 5, 6, 7, 8
"""Places in `state`: the stamp of the publication at hand; how much of `rows` is used; is `tests` complete; steps and
nodes solved; terms that are subjects or objects, which have the first numbers; how much of `bits` is used; was that too
small; the stamp of the publication whose plain steps are in `plain`, and the number of places there, less one."""
SOLVED, BEGIN, COUNT, TOTAL = 0, 1, 2, 3  # columns of `memo`
TOO_MANY = -1  # as COUNT or TOTAL: nothing is known
BY_SLOT, OF_BATCH, CONSTANT = 0, 1, 2  # rows of `terms`
_int: Any = np.int64
_ONE = _int(1)
_LOW = _int(0xFFFFFFFF)


@helper
def triple_words(triples: int) -> Any:
    """Numbers of a set of triples of the publication."""
    return (triples + WORD - 1) // WORD


@helper
def value_words(work: Scratch) -> Any:
    """Numbers of a set of values of a variable: subjects and objects of the publication."""
    return work.state[ENDS] // WORD + 1


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


@helper
def has_many_pairs(publication: Any, at: int) -> Any:
    """Has the publication whose pairs begin at a place so many that its tests are listed?"""
    last = at + LISTING - 1
    return last < publication.size and publication[last] == publication[at]


@called_helper
def prepare(p: int, batch: Triples, known: Any, features: NodeFeatures, has_many: bool, work: Scratch) -> None:
    """Write down the triples of a publication: which of them have which term where, and, if it `has_many` pairs, a
    term of which test. Subjects and objects get the first numbers."""
    first, last = batch.offset[p], batch.offset[p + 1]
    stamp, count, words = work.state[STAMP], 0, triple_words(last - first)
    for k in (0, 2, 1):
        for a in range(first, last):
            term = batch.subject[a] if k == 0 else batch.predicate[a] if k == 1 else batch.object[a]
            own, count = _term(term, stamp, count, known, work)
            work.sets[own, k, (a - first) // WORD] |= _ONE << ((a - first) % WORD)
            work.triples[k, a - first] = own
        if k == 2:
            work.state[ENDS] = count
    end, most = count, count + MOST_TESTS
    for own in range(count if has_many else 0):
        term = work.terms[OF_BATCH, own]
        for t in range(features.offset[term], features.offset[term + 1]):
            if end <= most:
                end = _list_test(features.test[t], own, words, end, most, work)
    for t in range(features.node_offset[p], features.node_offset[p + 1]):
        if has_many and end <= most:
            own, count = _term(features.node_key[t] >> 32, stamp, count, known, work)
            end = _list_test(features.node_key[t] & _LOW, own, words, end, most, work)
    work.state[LISTED] = has_many and end <= most


@helper
def passes(t0: int, t1: int, triple: int, publication: int, steps: StepColumns,
            features: NodeFeatures, work: Scratch) -> Any:  # fmt: skip
    """Do the tests t0 .. t1 of a step hold of a triple?"""
    holds = True
    for t in range(t0, t1):
        number, position = steps.tested[t, NUMBER], steps.tested[t, POSITION]
        term = work.terms[OF_BATCH, work.triples[position & (RANGED - 1), triple]]
        if holds and position >= RANGED:
            ask = position >> PLACES
            holds = is_within(term, ask >> OPS, ask & ((1 << OPS) - 1), number, features)
        elif holds and work.state[LISTED] == 0:
            holds = is_indexed(number, term, publication, features)
    return holds


@helper
def fitting(n: int, w: int, row: int, width: int, triples: int, t0: int, t1: int, steps: StepColumns,
            work: Scratch) -> Any:  # fmt: skip
    """The triples, of those with the bits of number w, that fit the pattern of a step with the first `width` values of
    a row, and the tests t0 .. t1, as far as those are listed."""
    step, bits, stamp = steps.step, (_ONE << min(max(triples - w * WORD, 0), WORD)) - 1, work.state[STAMP]
    for k in range(3):
        code = step[n, SUBJECT + k]
        if code >= 0:
            place = work.constants[code]
            bits &= work.sets[place & _LOW, k, w] if place >> 32 == stamp else 0
        elif code != LEAF and -1 - code < width:
            bits &= work.sets[work.rows[row + 1 + (-1 - code)], k, w]
    for t in range(t0, t1):
        position = steps.tested[t, POSITION]
        if position < RANGED:
            place = work.tests[steps.tested[t, NUMBER]]
            bits &= work.sets[place & _LOW, position, w] if place >> 32 == stamp else 0
    return bits
