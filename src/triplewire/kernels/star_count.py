"""How many solutions has a clause of one star that joins nothing? A product of counts, without a join.

For each subject: how many of its triples fit each pattern, the tests of the pattern's object included. Used through
`triplewire.select.settle`, for what `triplewire.kernels.star_bits` leaves open: publications of many triples, tests of
ranges, of subjects, and of some publications only. What joins is left to `triplewire.verify`. Numba's cache does not
see a change of `star_bits` here.

Functions take few arrays, and loops stand in functions of their own: Numba counts references to arrays at each call and
wherever it inlines a loop, which would take longer than the loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from triplewire.kernels.listed import is_listed
from triplewire.kernels.star_bits import ALONE, ASKS, CHECK, CUT, LEFT, MATCH, MISS, OPEN, STATUS, WIDTH

BEGIN, KEY = 0, 1  # columns of `star`
_FEW = 24  # predicates of a subject that are looked through one by one; more are sorted
_PLACES = 1 << 11  # of what is remembered of tests
_int: Any = np.int64


@njit(cache=True, nogil=True)
def _sort(key: Any, first: int, last: int) -> None:
    some = key[first:last].copy()
    key[first:last] = some[np.argsort(some, kind="mergesort")]


@njit(cache=True, nogil=True)
def _stars(first: int, last: int, subject: Any, predicate: Any, known: Any, star: Any, key: Any, end: Any) -> Any:
    """The subjects of a publication, whose triples are first .. last; returns how many there are, and the most triples
    of one predicate that a subject has. `star` says where the triples and the keys of each begin. A key is a constant
    that is a predicate there << 32 | where its triples begin, counted from `first`; `end` at that place says where they
    end."""
    stars, keys, a, most = 0, 0, first, 0
    while a < last:
        star[stars, BEGIN], star[stars, KEY] = a, keys
        lowest, begin = keys, a
        stars += 1
        while a < last and subject[a] == subject[begin]:
            run, constant = a, _int(known[predicate[a]])
            a += 1
            while a < last and predicate[a] == predicate[run] and subject[a] == subject[begin]:
                a += 1
            most = max(most, a - run)
            if constant >= 0:
                key[keys] = constant << 32 | (run - first)
                end[run - first] = a
                keys += 1
        if keys - lowest > _FEW:
            _sort(key, lowest, keys)
    star[stars, BEGIN], star[stars, KEY] = last, keys
    return stars, most


@njit(cache=True, nogil=True)
def _find(key: Any, first: int, last: int, constant: int) -> Any:
    """Where the triples of a predicate begin, counted as in `_stars`; -1 if it is not among the keys first .. last."""
    if last - first > _FEW:
        upto, wanted = last, _int(constant) << 32
        while first < upto:
            middle = (first + upto) >> 1
            if key[middle] < wanted:
                first = middle + 1
            else:
                upto = middle
        last = min(last, first + 1)
    for k in range(first, last):
        if key[k] >> 32 == constant:
            return _int(key[k] & 0xFFFFFFFF)
    return -1


@njit(cache=True, nogil=True)
def _is_here(number: int, term: int, n0: int, n1: int, node_term: Any, node_test: Any) -> bool:
    """Does a test hold of a term in this publication only, whose slice is n0 .. n1?"""
    for i in range(n0, n1):  # noqa: SIM110  # compiled, a loop is quicker than a generator
        if node_term[i] == term and node_test[i] == number:
            return True
    return False


@njit(cache=True, nogil=True)
def _in_range(op: int, rank: int, below: int, upto: int) -> bool:
    """Does a range test hold of a value that so many constants are below, and so many not above? -1: of no value."""
    if op == 1:
        return below >= 0 and rank >= upto
    if op == 2:
        return below >= 0 and rank >= below
    return rank < below if op == 3 else rank < upto


@njit(cache=True, nogil=True)
def _has(a: int, b: int, obj: Any, known: Any, constant: int) -> int:
    """Is a constant among the objects of the triples a .. b?"""
    for i in range(a, b):
        if known[obj[i]] == constant:
            return 1
    return 0


@njit(cache=True, nogil=True)
def _is_fresh(value: int, different: Any, count: int) -> bool:
    """Is a value not among the first `count`?"""
    for i in range(count):  # noqa: SIM110
        if different[i] == value:
            return False
    return True


@njit(cache=True, nogil=True)
def _count(a: int, b: int, wild: int, code: int, width: int, predicate: Any, obj: Any, t0: int, t1: int, n0: int,
           n1: int, known: Any, test_variable: Any, test: Any, offset: Any, held: Any, node_term: Any, node_test: Any,
           low: Any, high: Any, group: Any, op: Any, rank: Any, different: Any, cap: int) -> int:  # fmt: skip
    """How many different values do the triples a .. b, of one subject and of the predicate if that is constant, give
    the selected variables of a pattern? 1 where none is selected, 0 where no triple fits; above `cap` it stops. `wild`,
    `code`: the predicate and the object of the pattern. `different`: room for `cap` objects, if there are as many."""
    of_predicate, of_object = wild < 0 and -1 - wild < width, code < 0 and -1 - code < width
    found, last, upto, done = 0, -1, t0 if code >= 0 else t1, False
    for i in range(a, b):  # it has no other end, so that the compiler sees that references need not be counted
        if not done:
            term = obj[i]
            fits = code < 0 or known[term] == code
            for t in range(t0, upto):
                if fits and test_variable[t] == -1 - code:
                    number = test[t]
                    if op[number] != 0:
                        g = group[number]
                        fits = _in_range(op[number], rank[number], low[g, term], high[g, term])
                    elif not is_listed(number, held, offset[term], offset[term + 1]):
                        fits = n0 < n1 and _is_here(number, term, n0, n1, node_term, node_test)
            if of_predicate and not of_object:
                fits = fits and predicate[i] != last
                last = predicate[i] if fits else last
            elif of_object and wild < 0 and not of_predicate and fits:
                fits = _is_fresh(term, different, min(found, different.size))
                if fits and found < different.size:
                    different[found] = term
            found += fits
            done = found > cap or (found > 0 and not (of_predicate or of_object))
    return found


@njit(cache=True, nogil=True)
def _of_object(a: int, b: int, is_wild: bool, enough: int, variable: int, t0: int, t1: int, obj: Any,
               test_variable: Any, test: Any, offset: Any, held: Any, known_test: Any, known_bits: Any,
               ) -> Any:  # fmt: skip
    """How many objects of the triples a .. b, those of one predicate or all of a subject, fit the tests of a variable,
    which are about texts? At most `enough`. Subscriptions ask for the same words, so what holds of the next 62 objects
    is remembered, a bit each, in a table with one place for a test."""
    count, w = _int(0), _int(a)
    while w < b and count < enough:
        upto = min(w + 62, b)
        bits = (_int(1) << (upto - w)) - 1
        for t in range(t0, t1):
            if test_variable[t] == variable and bits > 0:
                number, found = _int(test[t]) | _int(is_wild) << 31, _int(0)
                at = (((number ^ (w * 31)) & 0x3FFFFFFF) * 0x9E3779B1 >> 15) & (known_test.size - 1)
                if known_test[at] != (w << 32) | number:
                    known_test[at] = (w << 32) | number
                    if w >= 0:
                        for i in range(upto - w):
                            begin, hit = offset[obj[w + i]], _int(0)
                            if begin >= 0:
                                for j in range(offset[obj[w + i] + 1] - begin):
                                    hit |= held[begin + j] == test[t]
                            found |= hit << i
                    known_bits[at] = found
                bits &= known_bits[at]
        while bits != 0:
            bits &= bits - 1
            count += 1
        w = upto
    return min(count, _int(enough))


@njit(forceinline=True)
def _tests(code: int, t0: int, t1: int, test_variable: Any, test: Any, op: Any) -> tuple[bool, bool]:
    """Is any of the tests t0 .. t1 about the variable `code`? Is none of them a range test?"""
    found, plain = False, True
    for t in range(t0, t1):
        found = found or test_variable[t] == -1 - code
        plain = plain and op[test[t]] == 0
    return found, plain


@njit(forceinline=True)
def _asked(wanted: int, value: int, selected: int, upto: int) -> tuple[int, bool]:
    """How many triples that fit a pattern are asked for at the most? And do only those count that differ in what is
    selected, its predicate or its object?"""
    of_predicate, of_object = wanted < 0 and -1 - wanted < selected, value < 0 and -1 - value < selected
    return upto + 1 if of_predicate or of_object else 1, wanted < 0 and of_predicate != of_object


@njit(forceinline=True)
def _bound(p0: int, p1: int, pattern: Any, stars: int, most: int, triples: int, cap: int) -> int:
    """At most so many solutions has a clause of one star: no subject has more than `most` triples of a predicate."""
    bound = stars
    for i in range(p0, p1):
        bound = min(bound * (most if pattern[i, 1] >= 0 else triples), cap + 1)
    return bound


@njit(cache=True, nogil=True)
def _longest(publication: Any, triples: Any, verdict: Any) -> int:
    """The most triples of a publication of which a pair is open."""
    most = 0
    for k in range(publication.size):
        p = publication[k]
        most = max(most, triples[p + 1] - triples[p]) if verdict[k] == OPEN else most
    return most


@njit(cache=True, nogil=True)
def _scratch(triples: int, cap: int) -> Any:
    """Room for the stars, keys and objects of a publication, and for what is remembered of tests."""
    star, key, end = np.empty((triples + 1, 2), np.int64), np.empty(triples, np.int64), np.empty(triples, np.int64)
    return (star, key, end, np.empty(min(cap, triples), np.int32), np.full(_PLACES, -1, np.int64),
            np.empty(_PLACES, np.int64))  # fmt: skip


@njit(cache=True, nogil=True)
def _is_star(pattern: Any, p0: int, p1: int) -> bool:
    """Have the patterns p0 .. p1 one subject?"""
    for i in range(p0 + 1, p1):
        if pattern[i, 0] != pattern[p0, 0]:
            return False
    return p0 < p1


@njit(cache=True, nogil=True)
def settle(publication: Any, clause: Any, marks: Any, triples: Any, subject: Any, predicate: Any, obj: Any, known: Any,
           offset: Any, held: Any, node_offset: Any, node_term: Any, node_test: Any, low: Any, high: Any,
           pattern_offset: Any, pattern: Any, test_offset: Any, test_variable: Any, test: Any, group: Any, op: Any,
           rank: Any, cap: int, verdict: Any) -> None:  # fmt: skip
    """The verdict on the pairs that are OPEN. It is quickest when the pairs of a publication follow each other.
    `known`: batch term -> constant, or -1; `marks`: as in `star_bits`."""
    star, key, end, different, known_test, known_bits = _scratch(_longest(publication, triples, verdict), cap)
    now, stars, first, most = -1, 0, 0, 0
    for k in range(clause.size):
        p, c = publication[k], clause[k]
        if verdict[k] != OPEN:
            continue
        p0, p1, t0, t1 = pattern_offset[c], pattern_offset[c + 1], test_offset[c], test_offset[c + 1]
        n0, n1, code, mark = node_offset[p], node_offset[p + 1], -1, _int(marks[c])
        selected, asks, alike = mark >> WIDTH, mark & ASKS > 0, mark & STATUS != CHECK and _is_star(pattern, p0, p1)
        if alike:
            code = pattern[p0, 0]
            if p != now:
                now, first = p, triples[p]
                stars, most = _stars(first, triples[p + 1], subject, predicate, known, star, key, end)
        total, surely, s = 0, code >= 0 or -1 - code < selected, 0 if alike else stars
        bound = _bound(p0, p1, pattern, stars, most, triples[p + 1] - triples[p], cap)
        upto = 0 if asks or bound <= cap else cap  # where it cannot be cut, one is enough
        about, plain = _tests(code, t0, t1, test_variable, test, op)
        while s < stars and total <= upto:
            begin, last = star[s, BEGIN], star[s + 1, BEGIN]
            product = _int(code < 0 or known[subject[begin]] == code)
            if code < 0 and about:
                product = _count(begin, begin + 1, _int(0), code, _int(0), predicate, subject, t0, t1, n0, n1, known,
                                 test_variable, test, offset, held, node_term, node_test, low, high, group, op, rank,
                                 different, _int(0))  # fmt: skip
            for i in range(p0, p1):
                wanted, value, a, b = _int(pattern[i, 1]), _int(pattern[i, 2]), begin, last
                if wanted >= 0:
                    at = _find(key, star[s, KEY], star[s + 1, KEY], wanted) if product > 0 else -1
                    a, b = (first + at, end[at]) if at >= 0 else (begin, begin)
                found, (enough, apart) = _int(-1), _asked(wanted, value, selected, upto)
                if wanted >= 0 and value < 0 and t0 == t1:
                    found = b - a if -1 - value < selected else _int(b > a)
                elif wanted >= 0 and value >= 0:
                    found = _has(a, b, obj, known, value)
                elif product > 0 and value < 0 and plain and n0 == n1:
                    found = _of_object(a, b, wanted < 0, min(enough, 2) if apart else enough, -1 - value, t0, t1, obj,
                                       test_variable, test, offset, held, known_test, known_bits)  # fmt: skip
                if product > 0 and (found < 0 or (apart and found > 1)):
                    found = _count(a, b, wanted, value, _int(selected), predicate, obj, t0, t1, n0, n1, known,
                                   test_variable, test, offset, held, node_term, node_test, low, high, group, op, rank,
                                   different, _int(upto))  # fmt: skip
                product = min(product * found, upto + 1)
            surely = surely or product > upto  # those of one subject are
            total, s = total + product, s + 1
        is_cut = total > cap and not asks
        if not alike or (is_cut and not (surely and mark & ALONE > 0)):
            verdict[k] = LEFT
        else:
            verdict[k] = MISS if total == 0 else CUT if is_cut else MATCH
