"""How many solutions has a clause of one star that joins nothing? A product of counts, without a join.

For each subject: how many of its triples fit each pattern, the tests of the pattern's object included. Used through
`triplewire.select.settle`; what joins is left to `triplewire.verify`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

RANGE = 2  # of the kinds of tests
DROP, ACCEPT, CUT, LEAVE = 0, 1, 2, 3


@njit(cache=True, nogil=True, inline="always")
def _holds(number: int, term: int, n0: int, n1: int, features: Any, tests: Any) -> bool:
    """Does a test hold of a term? n0 .. n1 is the publication's slice of what holds there only."""
    offset, test, node_term, node_test, low, high = features
    kind, group, op, rank = tests
    if kind[number] == RANGE:
        below, upto = low[group[number], term], high[group[number], term]
        if below < 0:
            return False
        if op[number] == 1:
            return bool(rank[number] >= upto)
        if op[number] == 2:
            return bool(rank[number] >= below)
        if op[number] == 3:
            return bool(rank[number] < below)
        return bool(rank[number] < upto)
    first, last = offset[term], offset[term + 1]
    while first < last:
        middle = (first + last) >> 1
        if test[middle] < number:
            first = middle + 1
        else:
            last = middle
    if first < offset[term + 1] and test[first] == number:
        return True
    for i in range(n0, n1):  # noqa: SIM110  # compiled, a loop is quicker than a generator
        if node_term[i] == term and node_test[i] == number:
            return True
    return False


@njit(cache=True, nogil=True, inline="always")
def _fits(code: int, term: int, t0: int, t1: int, n0: int, n1: int, known: Any, test_variable: Any, test: Any,
          features: Any, tests: Any) -> bool:  # fmt: skip
    """Does a term fit a position: the constant itself, or a variable whose tests (among t0 .. t1) hold of it?"""
    if code >= 0:
        return bool(known[term] == code)
    for t in range(t0, t1):
        if test_variable[t] == -1 - code and not _holds(test[t], term, n0, n1, features, tests):
            return False
    return True


@njit(cache=True, nogil=True, inline="always")
def _first(a: int, b: int, predicate: Any, wanted: int) -> int:
    """The first of the triples a .. b of a subject whose predicate is not below `wanted`."""
    while a < b:
        middle = (a + b) >> 1
        if predicate[middle] < wanted:
            a = middle + 1
        else:
            b = middle
    return a


@njit(cache=True, nogil=True)
def _count(a: int, b: int, row: Any, width: int, predicate: Any, obj: Any, t0: int, t1: int, n0: int, n1: int,
           known: Any, local: Any, test_variable: Any, test: Any, features: Any, tests: Any, fitting: Any,
           cap: int) -> int:  # fmt: skip
    """How many different values do the triples a .. b of a subject give the selected variables of a pattern? 1 where
    none is selected, 0 where no triple fits; above `cap` it stops. `fitting`: room for the triples that fit."""
    if row[1] >= 0:
        wanted = local[row[1]]
        if wanted < 0:
            return 0
        a = _first(a, b, predicate, wanted)
        b = _first(a, b, predicate, wanted + 1)
    of_predicate, of_object = row[1] < 0 and -1 - row[1] < width, row[2] < 0 and -1 - row[2] < width
    found = 0
    for i in range(a, b):
        if not _fits(row[2], obj[i], t0, t1, n0, n1, known, test_variable, test, features, tests):
            continue
        fresh = True
        if not of_predicate and (row[1] < 0 or not of_object):
            for j in range(found):
                fresh = fresh and of_object and obj[fitting[j]] != obj[i]
        elif of_predicate and not of_object:
            fresh = found == 0 or predicate[fitting[found - 1]] != predicate[i]
        if fresh and found <= cap and found < fitting.size:
            fitting[found] = i
            found += 1
    return found


@njit(cache=True, nogil=True)
def _solutions(p: int, clause: int, batch: Any, known: Any, local: Any, node_offset: Any, features: Any, programs: Any,
               tests: Any, width: int, fitting: Any, cap: int) -> tuple[int, bool]:  # fmt: skip
    """(the bindings of a clause in a publication, at least as many as are different; are they surely different, as far
    as that matters?). Above `cap` it stops counting."""
    offset, subject, predicate, obj = batch
    pattern_offset, pattern, test_offset, test_variable, test = programs
    p0, p1 = pattern_offset[clause], pattern_offset[clause + 1]
    t0, t1 = test_offset[clause], test_offset[clause + 1]
    n0, n1 = node_offset[p], node_offset[p + 1]
    code = pattern[p0, 0]
    total, a, different = 0, offset[p], code >= 0 or -1 - code < width
    while a < offset[p + 1] and total <= cap:
        b = a + 1
        while b < offset[p + 1] and subject[b] == subject[a]:
            b += 1
        product = 0
        if _fits(code, subject[a], t0, t1, n0, n1, known, test_variable, test, features, tests):
            product = 1
            for i in range(p0, p1):
                count = _count(a, b, pattern[i], width, predicate, obj, t0, t1, n0, n1, known, local, test_variable,
                               test, features, tests, fitting, cap)  # fmt: skip
                product = min(product * count, cap + 1)
                if product == 0:
                    break
        different = different or product > cap  # those of one subject are
        total += product
        a = b
    return total, different


@njit(cache=True, nogil=True)
def settle(publication: Any, clause: Any, status: Any, asks: Any, alone: Any, width: Any, batch: Any, known: Any,
           local: Any, node_offset: Any, features: Any, programs: Any, tests: Any, cap: int,
           out: Any) -> None:  # fmt: skip
    """DROP, ACCEPT (a match that is not cut), CUT (a match that is) or LEAVE for each pair. asks[c]: is it a clause of
    an ASK query? alone[c]: is it the only one of its subscription? width[c]: its selected variables come first.
    `known`: batch term -> constant, or -1; `local` is the way back."""
    pattern_offset, pattern = programs[0], programs[1]
    fitting = np.empty(cap + 1, np.int64)
    for k in range(clause.size):
        c = clause[k]
        alike = status[c] < 2 and pattern_offset[c] < pattern_offset[c + 1]
        for i in range(pattern_offset[c] + 1, pattern_offset[c + 1]):
            alike = alike and pattern[i, 0] == pattern[i - 1, 0]
        out[k] = LEAVE
        if alike:
            most = 0 if asks[c] else cap
            count, different = _solutions(publication[k], c, batch, known, local, node_offset, features, programs,
                                          tests, width[c], fitting, most)  # fmt: skip
            if count == 0:
                out[k] = DROP
            elif asks[c] or count <= cap:
                out[k] = ACCEPT
            elif different and alone[c]:
                out[k] = CUT
