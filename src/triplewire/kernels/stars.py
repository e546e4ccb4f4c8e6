"""Programs to atom sets: the patterns of each clause, grouped by subject into stars (architecture: "Atoms", "Stars").

An atom is what a star asks of its subject, as a 64-bit key: predicate, kind, id.

    key = (predicate + 2) << 34 | kind << 32 | id       predicate: a term id; -1 any; -2 the subject itself
    kind 0: the object is this term     kind 1: the object satisfies this test
    kind 2: there is such a triple      kind 3: its value lies in a range; id = range group * 8 + operator, with a rank

What the keys become: `triplewire.select.trie`. The atoms that a publication has: `triplewire.kernels.atoms`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

TERM, TEST, ANY, RANGE = 0, 1, 2, 3
SUBJECT, WILD = -2, -1  # in place of a predicate

SURE, MULTI, CHECK = 0, 1, 2
"""What a clause whose stars are all there is: a match; a match unless a subject has several tested objects under one
predicate; a candidate."""


@njit(cache=True, nogil=True)
def _key(predicate: int, kind: int, number: int) -> Any:
    return (np.int64(predicate + 2) << 34) | (np.int64(kind) << 32) | np.int64(number)


@njit(cache=True, nogil=True)
def clause_status(
    pattern: Any, p0: int, p1: int, test_variable: Any, test: Any, t0: int, t1: int, lazy: Any, op: Any
) -> int:
    """SURE, MULTI or CHECK for the clause with the patterns p0 .. p1 and the tests t0 .. t1."""
    status = SURE
    for t in range(t0, t1):
        if lazy[test[t]]:
            return CHECK
    for i in range(p0, p1):
        for place in range(3):
            code = pattern[i, place]
            if code >= 0:
                continue
            as_subject, elsewhere = 0, 0
            for j in range(p0, p1):
                as_subject += pattern[j, 0] == code
                elsewhere += pattern[j, 1] == code
                elsewhere += pattern[j, 2] == code
            if elsewhere > 1 or (elsewhere == 1 and as_subject > 0):
                return CHECK
            tested = 0
            for t in range(t0, t1):
                if test_variable[t] == -1 - code:
                    tested += 1
                    if place == 1 or (place == 0 and op[test[t]] != 0):
                        return CHECK
            if place == 2 and tested > 1:
                status = MULTI
    return status


@njit(cache=True, nogil=True)
def _emit(out_key: Any, out_rank: Any, at: int, first: int, key: int, rank: int) -> int:
    """Add an element to the set that begins at `first`, unless it is there; returns the new end."""
    for i in range(first, at):
        if out_key[i] == key and out_rank[i] == rank:
            return at
    out_key[at] = key
    out_rank[at] = rank
    return at + 1


@njit(cache=True, nogil=True)
def _object_atoms(
    predicate: int, obj: int, t0: int, t1: int, tests: Any, out_key: Any, out_rank: Any, at: int, first: int
) -> int:
    """The atoms of one pattern's object. `tests`: (test_variable, test, lazy, group, op, rank)."""
    test_variable, test, lazy, group, op, rank = tests
    if obj >= 0:
        return _emit(out_key, out_rank, at, first, _key(predicate, TERM, obj), -1)
    found = False
    for t in range(t0, t1):
        number = test[t]
        if test_variable[t] != -1 - obj or lazy[number]:
            continue
        found = True
        if op[number]:
            key = _key(predicate, RANGE, group[number] * 8 + op[number])
            at = _emit(out_key, out_rank, at, first, key, rank[number])
        else:
            at = _emit(out_key, out_rank, at, first, _key(predicate, TEST, number), -1)
    return at if found else _emit(out_key, out_rank, at, first, _key(predicate, ANY, 0), -1)


@njit(cache=True, nogil=True)
def _star(pattern: Any, i: int, p1: int, t0: int, t1: int, tests: Any, out_key: Any, out_rank: Any, at: int) -> int:
    """The set of the star whose first pattern is `i`; returns its end."""
    test_variable, test, lazy, _, op, _ = tests
    subject, first = pattern[i, 0], at
    if subject >= 0:
        at = _emit(out_key, out_rank, at, first, _key(SUBJECT, TERM, subject), -1)
    else:
        for t in range(t0, t1):
            if test_variable[t] == -1 - subject and not lazy[test[t]] and not op[test[t]]:
                at = _emit(out_key, out_rank, at, first, _key(SUBJECT, TEST, test[t]), -1)
    for j in range(i, p1):
        if pattern[j, 0] == subject:
            predicate = pattern[j, 1] if pattern[j, 1] >= 0 else WILD
            at = _object_atoms(predicate, pattern[j, 2], t0, t1, tests, out_key, out_rank, at, first)
    return at


@njit(cache=True, nogil=True)
def count_stars(pattern_offset: Any, pattern: Any, test_offset: Any) -> tuple[int, int]:
    """(stars, an upper bound of the elements of their sets) over all clauses."""
    stars, elements = 0, 0
    for c in range(pattern_offset.size - 1):
        for i in range(pattern_offset[c], pattern_offset[c + 1]):
            first = True
            for j in range(pattern_offset[c], i):
                if pattern[j, 0] == pattern[i, 0]:
                    first = False
                    break
            tests = test_offset[c + 1] - test_offset[c]
            elements += 1 + tests
            if first:
                stars += 1
                elements += 1 + tests
    return stars, elements


@njit(cache=True, nogil=True)
def stars(
    pattern_offset: Any, pattern: Any, test_offset: Any, tests: Any, set_clause: Any, set_offset: Any, out_key: Any,
    out_rank: Any,
) -> int:  # fmt: skip
    """The atom set of each star of each clause. Returns the number of sets; set k is the slice set_offset[k] ..
    set_offset[k + 1] of `out_key` and `out_rank` (-1 but for ranges)."""
    at, count = 0, 0
    set_offset[0] = 0
    for c in range(pattern_offset.size - 1):
        p0, p1 = pattern_offset[c], pattern_offset[c + 1]
        for i in range(p0, p1):
            first = True
            for j in range(p0, i):
                if pattern[j, 0] == pattern[i, 0]:
                    first = False
                    break
            if first:
                at = _star(pattern, i, p1, test_offset[c], test_offset[c + 1], tests, out_key, out_rank, at)
                set_clause[count] = c
                count += 1
                set_offset[count] = at
    return count


@njit(cache=True, nogil=True)
def statuses(pattern_offset: Any, pattern: Any, test_offset: Any, tests: Any, status: Any) -> None:
    """Fill in the status of every clause."""
    test_variable, test, lazy, _, op, _ = tests
    for c in range(pattern_offset.size - 1):
        p0, p1 = pattern_offset[c], pattern_offset[c + 1]
        t0, t1 = test_offset[c], test_offset[c + 1]
        if p1 - p0 > 256:
            status[c] = CHECK
        else:
            status[c] = clause_status(pattern, p0, p1, test_variable, test, t0, t1, lazy, op)


@njit(cache=True, nogil=True)
def order_sets(set_offset: Any, atom: Any, rank: Any, first_range: int, out_offset: Any, out: Any) -> None:
    """Each set as a sequence of labels: its atoms ascending, and behind each range atom its rank.

    `atom` and `rank` are sorted in place within each set; `out` holds two labels an element at the most.
    """
    at = 0
    out_offset[0] = 0
    for k in range(set_offset.size - 1):
        for i in range(set_offset[k], set_offset[k + 1]):
            a, r, j = atom[i], rank[i], i
            while j > set_offset[k] and (atom[j - 1] > a or (atom[j - 1] == a and rank[j - 1] > r)):
                atom[j] = atom[j - 1]
                rank[j] = rank[j - 1]
                j -= 1
            atom[j] = a
            rank[j] = r
        for i in range(set_offset[k], set_offset[k + 1]):
            out[at] = atom[i]
            at += 1
            if atom[i] >= first_range:
                out[at] = rank[i]
                at += 1
        out_offset[k + 1] = at
