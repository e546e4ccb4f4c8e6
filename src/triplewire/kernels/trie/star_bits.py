"""How many solutions has a clause of one star, in a publication of few triples? Sets of triples are bits of a number.

What a publication's triples are is written down once; then each pattern of a clause is the set of triples that fit it.
Used through `triplewire.verify.counts`; what is not decided here is left to `triplewire.verify.solve`: publications of
many triples, tests of subjects, and tests that hold in some publications only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.prefetch import prefetch
from triplewire.kernels.shared.bits import count_bits
from triplewire.kernels.shared.columns import TEST_FIELDS, ClauseColumns, TermFeatures, TestColumns, Triples
from triplewire.kernels.shared.compiled import called_helper, helper, kernel
from triplewire.kernels.shared.lending import Field, borrowed, places
from triplewire.kernels.shared.outcomes import LEFT, MATCH, MISS, TRUNCATED, Verdicts, write_outcomes
from triplewire.kernels.shared.ranks import range_holds
from triplewire.kernels.trie.stars import CHECK

# Marks of a clause. Masks: its status; is it one of an ASK query; is it the only one of its subscription? WIDTH: bits
# below the number of selected variables, which come first.
STATUS, ASKS, ALONE, WIDTH = 3, 4, 8, 8
AHEAD = 64  # pairs that are fetched together
_WORD, _WORDS = 62, 4  # triples whose bits are one number; numbers of a set
_FEW = _WORD * _WORDS  # triples of a publication
_MOST = 16  # patterns of a clause
_ROOM = 1 << 12  # tests that hold of the objects of a publication's triples
# Rows of `facts`: constants, by subject, by predicate that is one, and by triple; sets of triples, by subject and by
# such a predicate, all, those that are the first of their subject with an object, and those that fit a pattern; where
# the tests of a number's triples begin. One array for all, as each that a function takes costs time.
_SUBJECT, _KEY, _OBJECT, _OWN, _RUN, _ALL, _FIRST, _FITTING, _BEGIN = 0, 1, 2, 3, 4, 5, 6, 7, 8
_ROWS = 9
_int: Any = np.int64
_ONE = _int(1)


@helper
def _key(constant: int, facts: Any, keys: int) -> Any:
    """The place of a predicate among the keys; `keys` if it is new."""
    at = keys
    for q in range(keys):
        at = q if facts[_KEY, q] == constant else at
    return at


class Scratch(NamedTuple):
    """The arrays that `decide` works with, as `scratch` makes them."""

    facts: Any
    listed: Any


@called_helper
def _read(first: int, last: int, triples: Triples, features: TermFeatures, work: Scratch) -> Any:
    """Write down the triples first .. last of a publication. `listed`: the tests of their objects, each with the bit of
    its triple. Returns how many numbers of a set, subjects, keys and tests there are (-1 of these: too many)."""
    (_, subject, predicate, obj), known, offset, held = triples, features.term, features.offset, features.test
    facts, listed = work
    words, stars, keys, tests, bit, q, begin = 0, -1, 0, 0, _ONE << _WORD, 0, first
    for a in range(first, last):
        prefetch(offset, obj[a])
        prefetch(known, obj[a])
    for a in range(first, last):
        prefetch(held, offset[obj[a]])
    for a in range(first, last):
        o, is_own = obj[a], a > first and subject[a] == subject[a - 1]
        if bit == _ONE << _WORD:
            facts[_ALL, words], facts[_FIRST, words], facts[_BEGIN, words], bit = 0, 0, tests, _ONE
            words += 1
        if not is_own:
            stars, begin = stars + 1, a
            facts[_SUBJECT, stars] = known[subject[a]]
            for w in range(_WORDS):
                facts[_OWN, stars * _WORDS + w] = 0
        if not is_own or predicate[a] != predicate[a - 1]:
            constant = known[predicate[a]]
            q = _key(constant, facts, keys)
            if q == keys:
                facts[_KEY, q], keys = constant, keys + 1
                for w in range(_WORDS):
                    facts[_RUN, q * _WORDS + w] = 0
        same = _int(0)
        for t in range(begin, a):
            same |= obj[t] == o
        facts[_OBJECT, a - first] = known[o]
        facts[_ALL, words - 1] |= bit
        facts[_FIRST, words - 1] |= bit * (1 - same)
        facts[_OWN, stars * _WORDS + words - 1] |= bit
        facts[_RUN, q * _WORDS + words - 1] |= bit
        size = offset[o + 1] - offset[o]
        if tests >= 0 and size > 0:
            fits = tests + size <= listed.shape[1]
            for j in range(size if fits else 0):
                listed[0, tests + j], listed[1, tests + j] = held[offset[o] + j], bit
            tests = tests + size if fits else -1
        bit <<= 1
    facts[_BEGIN, words] = tests
    return words, stars + 1, keys, tests


@helper
def _in_range(number: int, first: int, end: int, triples: Triples, features: TermFeatures, ranges: TestColumns) -> Any:
    """The triples first .. end, as bits, of whose objects a range test holds."""
    bits, group, op, rank = _int(0), ranges.group[number], ranges.op[number], ranges.rank[number]
    for t in range(first, end):
        term = triples.object[t]
        bits |= _int(range_holds(op, rank, features.low[group, term], features.high[group, term])) << (t - first)
    return bits


@helper
def _fit(wanted: int, value: int, t0: int, t1: int, clauses: ClauseColumns, tests: TestColumns, span: Any,
         triples: Triples, features: TermFeatures, work: Scratch, row: int) -> bool:  # fmt: skip
    """Write down the triples that fit a pattern: those with the predicate and the object wanted, and with the tests t0
    .. t1 of the object. Are there any? `span`: the triples of the publication, the numbers of a set, and the keys."""
    (first, last, words, keys), (facts, listed) = span, work
    q, there = -1, _int(0)
    if wanted >= 0:
        q = _key(wanted, facts, keys)
    for w in range(words):
        bits = facts[_ALL, w]
        begin, end = w * _WORD, min((w + 1) * _WORD, last - first)
        if wanted >= 0:
            bits = facts[_RUN, q * _WORDS + w] if q < keys else _int(0)
        if value >= 0:
            for t in range(begin, end):
                bits &= ~(_int(facts[_OBJECT, t] != value) << (t - begin))
        for t in range(t0, t1 if value < 0 and bits != 0 else t0):
            if clauses.test_variable[t] == -1 - value:
                number, hits, at = clauses.test[t], _int(0), facts[_BEGIN, w]
                if tests.op[number] != 0:
                    hits = _in_range(number, first + begin, first + end, triples, features, tests)
                elif at >= 0:
                    for m in range(facts[_BEGIN, w + 1] - at):
                        hits |= listed[1, at + m] if listed[0, at + m] == number else 0
                bits &= hits
        facts[_FITTING, row * _WORDS + w] = bits
        there |= bits
    return bool(there != 0)


@helper
def _solutions(p0: int, p1: int, pattern: Any, selected: int, words: int, stars: int, cap: int, facts: Any) -> Any:
    """How many solutions has a clause of one star? Above `cap` it may be any number. And has one subject as many?"""
    total, most, variable = _int(0), _int(0), -1 - pattern[p0, 2]
    if p1 - p0 == 1 and pattern[p0, 0] < 0 and 0 <= variable < selected:  # they are few nearly always
        alone = pattern[p0, 1] < 0 and -1 - pattern[p0, 1] >= selected
        for w in range(words):
            total += count_bits(facts[_FITTING, w] & facts[_FIRST, w] if alone else facts[_FITTING, w])
        stars, total = (0, total) if total <= cap else (stars, _int(0))
    for s in range(stars):
        product = _int(pattern[p0, 0] < 0 or facts[_SUBJECT, s] == pattern[p0, 0])
        for i in range(p0, p1 if product > 0 else p0):
            wanted, value, fitting, hit = pattern[i, 1], pattern[i, 2], _int(0), _int(0)
            of_object = value < 0 and -1 - value < selected
            alone = wanted < 0 and -1 - wanted >= selected  # then an object counts once, whatever its predicates
            for w in range(words):
                bits = facts[_FITTING, (i - p0) * _WORDS + w] & facts[_OWN, s * _WORDS + w]
                hit |= bits
                fitting += count_bits(bits & facts[_FIRST, w] if alone else bits)
            counted = of_object or (wanted < 0 and not alone)
            product = min(product * (fitting if counted else _int(hit != 0)), cap + 1)
        total, most = total + product, max(most, product)
    return total, most > cap


@helper
def _fetch(clause: Any, begin: int, end: int, owner: Any, marks: Any, clauses: ClauseColumns, op: Any) -> None:
    """Have what will be read of some clauses fetched."""
    pattern_offset, pattern, test_offset, test_variable, test = clauses
    for k in range(begin, end):
        prefetch(pattern_offset, clause[k])
        prefetch(test_offset, clause[k])
        prefetch(owner, clause[k])
        prefetch(marks, clause[k])
    for k in range(begin, end):
        prefetch(pattern, pattern_offset[clause[k]])
        prefetch(test_variable, test_offset[clause[k]])
        prefetch(test, test_offset[clause[k]])
        prefetch(pattern, pattern_offset[clause[k] + 1] - 1)
    for k in range(begin, end):
        if test_offset[clause[k]] < test_offset[clause[k] + 1]:
            prefetch(op, test[test_offset[clause[k]]])
            prefetch(op, test[test_offset[clause[k] + 1] - 1])


def scratch() -> Scratch:
    """The arrays that `decide` works with; they may be used again."""
    return Scratch(np.empty((_ROWS, _FEW * _WORDS), np.int64), np.empty((2, _ROOM), np.int64))


@called_helper
def _decide(publication: Any, clause: Any, owner: Any, marks: Any, clauses: ClauseColumns, tests: TestColumns,
            triples: Triples, features: TermFeatures, cap: int, work: Scratch, outcome: Any) -> None:  # fmt: skip
    """The outcome of pairs of a publication and a clause; LEFT where it is not decided here. It is quickest when the
    pairs of a publication follow each other. `marks`, `work`: see above."""
    pattern_offset, pattern, test_offset, test_variable, test = clauses
    now, usable, first, last, words, stars, keys, listed = -1, False, 0, 0, 0, 0, 0, 0
    for k in range(clause.size):
        if k % AHEAD == 0:
            _fetch(clause, k, min(k + AHEAD, clause.size), owner, marks, clauses, tests.op)
        p, c = publication[k], clause[k]
        if p != now:
            now, first, last = p, triples.offset[p], triples.offset[p + 1]
            usable = last - first <= _FEW and features.node_offset[p] == features.node_offset[p + 1]
            if usable:
                words, stars, keys, listed = _read(first, last, triples, features, work)
        mark, there = _int(marks[c]), True
        selected, p0, p1 = mark >> WIDTH, _int(pattern_offset[c]), _int(pattern_offset[c + 1])
        t0, t1 = _int(test_offset[c]), _int(test_offset[c + 1])
        fits = usable and mark & STATUS != CHECK and 0 < p1 - p0 <= _MOST
        for t in range(t0, t1):
            fits = fits and (tests.op[test[t]] != 0 or listed >= 0) and test_variable[t] != -1 - pattern[p0, 0]
        for i in range(p0, p1 if fits else p0):
            wanted, value = pattern[i, 1], pattern[i, 2]
            fits = fits and pattern[i, 0] == pattern[p0, 0]
            fits = fits and (wanted >= 0 or -1 - wanted >= selected or (value < 0 and -1 - value < selected))
            there = there and _fit(wanted, value, t0, t1, clauses, tests, (first, last, words, keys), triples,
                                   features, work, i - p0)  # fmt: skip
        outcome[k] = LEFT
        if fits:
            total, surely = _int(0), True
            if there:
                total, surely = _solutions(p0, p1, pattern, selected, words, stars, cap, work.facts)
            surely = surely or pattern[p0, 0] >= 0 or -1 - pattern[p0, 0] < selected
            if total <= cap or mark & ASKS > 0:
                outcome[k] = MISS if total == 0 else MATCH
            elif surely and mark & ALONE > 0:
                outcome[k] = TRUNCATED


class Marks(NamedTuple):
    """Clause -> its subscription; and what counting it needs to know (`triplewire.verify.counts`)."""

    owner: Any
    mark: Any


_ids = Field(np.int32)
LENT = (
    (Marks, (_ids, _ids)),
    (ClauseColumns, (_ids, Field(np.int32, (3,)), _ids, _ids, _ids)),
    (TestColumns, TEST_FIELDS),
    (Scratch, (Field(np.int64, (_FEW * _WORDS,)), Field(np.int64, (_ROOM,)))),
)
"""What is in the table of addresses, in its order."""

_MARKS, _CLAUSES, _TESTS, _SCRATCH = places(LENT)
_take_marks, _take_clauses, _take_tests, _take_scratch = (borrowed(kind, fields) for kind, fields in LENT)


@kernel
def decide(publication: Any, clause: Any, lent: Any, triples: Triples, features: TermFeatures, cap: int,
           verdicts: Verdicts) -> Any:  # fmt: skip
    """What becomes of pairs of a publication and a clause: how many are matches, and how many are left. `lent`: the
    addresses of `LENT`. It is quickest when the pairs of a publication follow each other."""
    (owner, marks), work = _take_marks(lent, _MARKS), _take_scratch(lent, _SCRATCH)
    clauses, tests = _take_clauses(lent, _CLAUSES), _take_tests(lent, _TESTS)
    _decide(publication, clause, owner, marks, clauses, tests, triples, features, cap, work, verdicts.outcome)
    return write_outcomes(publication, clause, owner, verdicts)
