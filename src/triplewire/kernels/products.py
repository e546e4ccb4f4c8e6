"""The solutions of clauses that need no join: each component is a star, its patterns share their subject alone.

For each subject, what fits one pattern is independent of the others: a star has the product of them as solutions. For
publications of few triples, which are read from end to end. Used through `triplewire.verify.solve`, which gives all
others to `triplewire.kernels.solutions`; the outcomes and the rows are the same.

First `stars` writes down the stars of all pairs, then `solve` solves them, and `outcomes` says what that means for the
pairs. Hot loops are flat, and call a function with arrays only where a variable has tests: each such call counts
references, which takes longer than most of the loops.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

RANGE = 2  # of the kinds of tests; clauses with lazy ones are left
KIND, GROUP, OP, RANK = 0, 1, 2, 3  # columns of `info`, by test
PAIR, CLAUSE, WIDTH, NEEDED, SUBJECT, FIRST, END, TEST, TEST_END, COUNT, ROW = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
STAR = 11  # columns of `star`: those above
HITS, FITS, SIZE = 0, 1, 2  # places in `used`
PREDICATE, OBJECT = 0, 1  # columns of `code`, by pattern; -1 - v for a variable, as predicate one that is not selected
BEGIN, AT, STOP = 0, 1, 2  # columns of `frame`, by pattern of the star at hand: its slice of `fitting`
MISS, MATCH, MORE, LEFT = 0, 1, 2, 255  # outcomes of a pair; LEFT: to be joined
ALIKE = -1  # as COUNT: some solutions may be the same


@njit(cache=True, nogil=True)
def stars(publication: Any, clause_offset: Any, clauses: Any, width: Any, few: Any, programs: Any, inverse: Any,
          star: Any, code: Any, outcome: Any) -> int:  # fmt: skip
    """Write down the stars of pairs of a publication and the clauses of a subscription, with the constants as the
    batch's terms (`inverse`). The outcome is LEFT where a clause is no product of stars, or where the publication has
    not `few` triples. Returns how many stars there are."""
    loose, pattern_offset, pattern, component_offset, component, member, test_offset = programs
    count, used = 0, 0
    for i in range(publication.size):
        outcome[i] = MISS if few[publication[i]] else LEFT
        for j in range(clause_offset[i], clause_offset[i + 1]):
            if not loose[clauses[j]]:
                outcome[i] = LEFT
        if outcome[i] == LEFT:
            continue
        for j in range(clause_offset[i], clause_offset[i + 1]):
            c = clauses[j]
            first = pattern_offset[c]
            for k in range(component_offset[c], component_offset[c + 1]):
                begin = first + component[k, 0]
                star[count, PAIR], star[count, CLAUSE], star[count, WIDTH] = i, j, width[i]
                star[count, NEEDED], star[count, FIRST] = component[k, 2], used
                star[count, TEST], star[count, TEST_END] = test_offset[c], test_offset[c + 1]
                for m in range(begin, begin + component[k, 1]):
                    at = first + member[m]
                    s, p, o = pattern[at, 0], pattern[at, 1], pattern[at, 2]
                    star[count, SUBJECT] = inverse[s] if s >= 0 else s
                    code[used, PREDICATE] = inverse[p] if p >= 0 else p
                    code[used, OBJECT] = inverse[o] if o >= 0 else o
                    used += 1
                star[count, END] = used
                count += 1
    return count


@njit(cache=True, nogil=True)
def _passes(variable: Any, term: Any, publication: Any, t0: Any, t1: Any, test_variable: Any, test: Any, info: Any,
            offset: Any, tests: Any, low: Any, high: Any, node_offset: Any, node_key: Any) -> bool:  # fmt: skip
    """Do the tests of a variable, among t0 .. t1, hold of a term?"""
    for t in range(t0, t1):
        number, key = test[t], (np.int64(term) << 32) | test[t]
        holds = test_variable[t] != variable
        if not holds and info[number, KIND] == RANGE:
            op, rank = info[number, OP], info[number, RANK]
            below, upto = low[info[number, GROUP], term], high[info[number, GROUP], term]
            bound = below if op == 2 or op == 3 else upto
            holds = below >= 0 and (rank >= bound if op <= 2 else rank < bound)
        elif not holds:
            for i in range(offset[term], offset[term + 1]):
                holds = holds or tests[i] == number
            at, end = node_offset[publication], node_offset[publication + 1]
            while at < end and not holds:
                middle = (at + end) >> 1
                holds = node_key[middle] == key
                at, end = (middle + 1, end) if node_key[middle] < key else (at, middle)
        if not holds:
            return False
    return True


@njit(cache=True, nogil=True)
def solve(done: int, upto: int, cap: int, keep: bool, publication: Any, star: Any, code: Any, conditions: Any,
          info: Any, batch: Any, facts: Any, hit: Any, fitting: Any, used: Any) -> Any:  # fmt: skip
    """How many solutions has each star from `done` up to `upto`, at most cap + 1? It is its COUNT; 0 where a star of
    the same clause before it has none. Where `keep`, each subject with solutions is a row of `hit`: (star, subject,
    number of solutions, begin in `fitting`); there, for each pattern, are the number of objects that fit, and these.
    used: rows of `hit`, places of `fitting` and of the solutions. Returns the first star for which there is no room,
    else `upto`."""
    (triple_offset, pairs, object_), (test_variable, test) = batch, conditions
    offset, tests, low, high, node_offset, node_key = facts
    for i in range(done, upto):
        p, w, own, f0, f1 = publication[star[i, PAIR]], star[i, WIDTH], star[i, SUBJECT], star[i, FIRST], star[i, END]
        t0, t1, a, end = star[i, TEST], star[i, TEST_END], triple_offset[p], triple_offset[p + 1]
        limit, count, hits, fits = cap + 1 if star[i, NEEDED] > 0 else 1, 0, used[HITS], used[FITS]
        if i > 0 and star[i - 1, CLAUSE] == star[i, CLAUSE] and star[i - 1, COUNT] == 0:
            a = end
        while a < end and 0 <= count < limit:
            s, fit, total = pairs[a] >> 32, fits, 0
            if hits == hit.shape[0] or fits + (f1 - f0) * (1 + end - a) > fitting.size:
                return i
            if own == s or (own < 0 and (t0 == t1 or _passes(-1 - own, s, p, t0, t1, test_variable, test, info, offset,
                                                             tests, low, high, node_offset, node_key))):  # fmt: skip
                total = limit - count
            for m in range(f0, f1 if total > 0 else f0):
                q, o, at, found = code[m, PREDICATE], code[m, OBJECT], a, 0
                key, last = (s << 32) | max(q, 0), (s << 32) | (q if q >= 0 else 0x7FFFFFFF)
                most = limit if 0 <= -1 - o < w else 1
                while at < end and pairs[at] < key:
                    at += 1
                while at < end and pairs[at] <= last and found < most:
                    z, k = object_[at], found
                    if (o == z or (o < 0 and (t0 == t1 or _passes(-1 - o, z, p, t0, t1, test_variable, test, info,
                                                                  offset, tests, low, high, node_offset, node_key)))
                        ) and (q >= 0 or t0 == t1 or _passes(-1 - q, pairs[at] & 0x7FFFFFFF, p, t0, t1, test_variable,
                                                             test, info, offset, tests, low, high, node_offset,
                                                             node_key)):  # fmt: skip
                        while k > 0 and q < 0 and fitting[fit + k] != z:  # the same with another predicate?
                            k -= 1
                        if k == 0 or q >= 0:
                            found += 1
                            fitting[fit + found] = z
                    at += 1
                fitting[fit] = found
                fit, total = fit + found + 1, min((total if m > f0 else 1) * found, limit - count)
                if found == 0:
                    break
            if total > 0 and keep:
                if count > 0 and limit > 1 and -1 - own >= w:
                    count = ALIKE - total
                hit[hits, 0], hit[hits, 1], hit[hits, 2], hit[hits, 3] = i, s, total, fits
                hits, fits = hits + 1, fit
            count += total
            while a < end and pairs[a] >> 32 == s:
                a += 1
        star[i, COUNT] = count
        if count > 0 and keep:
            used[HITS], used[FITS], used[SIZE] = hits, fits, used[SIZE] + count * w
    return upto


@njit(cache=True, nogil=True)
def write(hits: int, star: Any, code: Any, hit: Any, fitting: Any, frame: Any, rows: Any) -> None:
    """Put the solutions into `rows`; those of a star begin at its ROW. `frame` is room for the patterns of a star."""
    at = 0
    for h in range(hits):
        i, s, fit = hit[h, 0], hit[h, 1], hit[h, 3]
        w, own, f0, f1 = star[i, WIDTH], -1 - star[i, SUBJECT], star[i, FIRST], star[i, END]
        if h == 0 or hit[h - 1, 0] != i:
            star[i, ROW] = at
        for m in range(f1 - f0):
            frame[m, BEGIN], frame[m, AT], frame[m, STOP] = fit + 1, fit + 1, fit + 1 + fitting[fit]
            fit += 1 + fitting[fit]
        for _ in range(hit[h, 2]):
            for k in range(w):
                rows[at + k] = s if k == own else -1
            moved = False
            for m in range(f1 - f0 - 1, -1, -1):
                variable = -1 - code[f0 + m, OBJECT]
                if 0 <= variable < w:
                    rows[at + variable] = fitting[frame[m, AT]]
                    if not moved:  # the last pattern that has another object is the next to change
                        moved = frame[m, AT] + 1 < frame[m, STOP]
                        frame[m, AT] = frame[m, AT] + 1 if moved else frame[m, BEGIN]
            at += w


@njit(cache=True, nogil=True)
def outcomes(count: int, cap: int, keep: bool, star: Any, outcome: Any, pieces: Any) -> int:
    """The outcome of each pair of which there are stars; where `keep`, a row of `pieces` for each star: (pair, clause,
    begin in the rows, number of rows). Returns how many pieces there are."""
    at, end = 0, 0
    while at < count:
        pair, w, pair_end, total, alike = star[at, PAIR], star[at, WIDTH], end, 0, False
        limit = cap + 1 if w > 0 else 1
        while at < count and star[at, PAIR] == pair:
            clause, clause_end, product = star[at, CLAUSE], end, 1
            while at < count and star[at, CLAUSE] == clause:
                found = star[at, COUNT]
                alike = alike or found < 0
                product = min(product * max(found, 0), limit)
                if keep and w > 0:
                    pieces[end, 0], pieces[end, 1], pieces[end, 2], pieces[end, 3] = pair, clause, star[at, ROW], found
                    end += 1
                at += 1
            total += product
            end = end if product > 0 else clause_end
        end = pair_end if alike else end
        outcome[pair] = LEFT if alike else MISS if total == 0 else MATCH if total <= cap else MORE
    return end
