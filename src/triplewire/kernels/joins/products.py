"""The solutions of clauses that need no join: each component is a star, its patterns share their subject alone.

For each subject, what fits one pattern is independent of the others: a star has the product of them as solutions. For
publications of few triples, which are read from end to end. Used through `triplewire.verify.solve`, which gives all
others to `triplewire.kernels.joins.solutions`; the outcomes and the rows are the same.

First `list_stars` writes down the stars of all pairs, then `solve` solves them, and `pair_outcomes` says what that
means for the pairs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.joins.columns import NodeFeatures, PairColumns, SortedTriples, StarClauses
from triplewire.kernels.joins.node_tests import is_indexed, is_within
from triplewire.kernels.shared.columns import RANGE_TEST, TestColumns
from triplewire.kernels.shared.compiled import called_helper, kernel
from triplewire.kernels.shared.outcomes import LEFT, MATCH, MISS, TRUNCATED
from triplewire.kernels.shared.search import lower, upper

PAIR, CLAUSE, WIDTH, NEEDED, SUBJECT, FIRST, END, TEST, TEST_END, COUNT, ROW = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
STAR = 11  # columns of `star`: those above
HITS, FITS, SIZE = 0, 1, 2  # places in `used`: rows of `hit`, places of `fitting`, places of solutions
PREDICATE, OBJECT = 0, 1  # columns of `code`, by pattern; -1 - v for a variable, as predicate one that is not selected
BEGIN, AT, STOP = 0, 1, 2  # columns of `frame`, by pattern of the star at hand: its slice of `fitting`
ALIKE = -1  # as COUNT: some solutions may be the same


class Stars(NamedTuple):
    """The stars of some pairs."""

    star: Any  # shape (stars, STAR): see its columns
    code: Any  # shape (patterns, 2)
    inverse: Any  # constant -> the batch's term


class Hits(NamedTuple):
    """The subjects with solutions."""

    hit: Any  # shape (subjects, 4): star, subject, number of solutions, where it begins in `fitting`
    fitting: Any  # there, for each pattern: the number of objects that fit, and these
    used: Any


@kernel
def list_stars(pairs: PairColumns, few: Any, clauses: StarClauses, stars: Stars, outcome: Any) -> int:
    """Write down the stars of pairs of a publication and the clauses of a subscription, with the constants as the
    batch's terms. The outcome is LEFT where a clause is no product of stars, or where the publication has not `few`
    triples. Returns how many stars there are."""
    (publication, clause_offset, numbers, width), (star, code, inverse) = pairs, stars
    pattern, component_offset, component, member = (
        clauses.pattern, clauses.component_offset, clauses.component, clauses.member
    )  # fmt: skip
    count, used = 0, 0
    for i in range(publication.size):
        outcome[i] = MISS if few[publication[i]] else LEFT
        for j in range(clause_offset[i], clause_offset[i + 1]):
            if not clauses.loose[numbers[j]]:
                outcome[i] = LEFT
        if outcome[i] == LEFT:
            continue
        for j in range(clause_offset[i], clause_offset[i + 1]):
            c = numbers[j]
            first = clauses.pattern_offset[c]
            for k in range(component_offset[c], component_offset[c + 1]):
                begin = first + component[k, 0]
                star[count, PAIR], star[count, CLAUSE], star[count, WIDTH] = i, j, width[i]
                star[count, NEEDED], star[count, FIRST] = component[k, 2], used
                star[count, TEST], star[count, TEST_END] = clauses.test_offset[c], clauses.test_offset[c + 1]
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


@called_helper
def _passes(variable: int, term: int, publication: int, t0: int, t1: int, clauses: StarClauses, tests: TestColumns,
            features: NodeFeatures) -> bool:  # fmt: skip
    """Do the tests of a variable, among t0 .. t1, hold of a term?"""
    passes = True
    for t in range(t0, t1):
        number = clauses.test[t]
        if passes and clauses.test_variable[t] == variable:
            if tests.kind[number] == RANGE_TEST:
                passes = is_within(term, tests.group[number], tests.op[number], tests.rank[number], features)
            else:
                passes = is_indexed(number, term, publication, features)
    return passes


@called_helper
def _fill(i: int, a: int, end: int, limit: int, clauses: StarClauses, tests: TestColumns, batch: SortedTriples,
          features: NodeFeatures, stars: Stars, fitting: Any, fit: int, p: int) -> Any:  # fmt: skip
    """Put the objects that fit each pattern of the star i into `fitting`, from `fit` on; the triples of the subject
    begin at `a`. Returns how many solutions there are, at most `limit`, and the end in `fitting`."""
    star, code, pairs = stars.star, stars.code, batch.pairs
    w, own, f0, f1 = star[i, WIDTH], star[i, SUBJECT], star[i, FIRST], star[i, END]
    t0, t1, s = star[i, TEST], star[i, TEST_END], pairs[a] >> 32
    total: Any = np.int64(limit)
    if own != s and (own >= 0 or (t0 < t1 and not _passes(-1 - own, s, p, t0, t1, clauses, tests, features))):
        total = np.int64(0)
    for m in range(f0, f1 if total > 0 else f0):
        q, o, at, count = code[m, PREDICATE], code[m, OBJECT], a, 0
        key, last = (s << 32) | max(q, 0), (s << 32) | (q if q >= 0 else 0x7FFFFFFF)
        most = limit if 0 <= -1 - o < w else 1
        while at < end and pairs[at] < key:
            at += 1
        while at < end and pairs[at] <= last and count < most:
            z, k = batch.object[at], count
            fits = o == z or (o < 0 and (t0 == t1 or _passes(-1 - o, z, p, t0, t1, clauses, tests, features)))
            if fits and q < 0 and t0 < t1:
                fits = _passes(-1 - q, pairs[at] & 0x7FFFFFFF, p, t0, t1, clauses, tests, features)
            if fits:
                while k > 0 and q < 0 and fitting[fit + k] != z:  # the same with another predicate?
                    k -= 1
                if k == 0 or q >= 0:
                    count += 1
                    fitting[fit + count] = z
            at += 1
        fitting[fit] = count
        fit, total = fit + count + 1, min((total if m > f0 else 1) * count, limit)
        if count == 0:
            break
    return total, fit


@kernel
def solve(done: int, upto: int, cap: int, keep: bool, publication: Any, clauses: StarClauses, tests: TestColumns,
          batch: SortedTriples, features: NodeFeatures, stars: Stars, hits: Hits) -> Any:  # fmt: skip
    """How many solutions has each star from `done` up to `upto`, at most cap + 1? It is its COUNT; 0 where a star of
    the same clause before it has none. Where `keep`, each subject with solutions is a row of `hit`. Returns the first
    star for which there is no room, else `upto`."""
    star, pairs, (hit, fitting, used) = stars.star, batch.pairs, hits
    for i in range(done, upto):
        p, w, own, patterns = (
            publication[star[i, PAIR]],
            star[i, WIDTH],
            star[i, SUBJECT],
            star[i, END] - star[i, FIRST],
        )
        a, end = batch.offset[p], batch.offset[p + 1]
        if own >= 0:
            a = lower(pairs, a, end, own << 32)
            end = upper(pairs, a, end, (own << 32) | 0xFFFFFFFF)
        limit, count, rows, fits = cap + 1 if star[i, NEEDED] > 0 else 1, 0, used[HITS], used[FITS]
        if i > 0 and star[i - 1, CLAUSE] == star[i, CLAUSE] and star[i - 1, COUNT] == 0:
            a = end
        while a < end and 0 <= count < limit:
            s = pairs[a] >> 32
            if rows == hit.shape[0] or fits + patterns * (1 + end - a) > fitting.size:
                return i
            total, fit = _fill(i, a, end, limit - count, clauses, tests, batch, features, stars, fitting, fits, p)
            if total > 0 and keep:
                if count > 0 and limit > 1 and -1 - own >= w:
                    count = ALIKE - total
                hit[rows, 0], hit[rows, 1], hit[rows, 2], hit[rows, 3] = i, s, total, fits
                rows, fits = rows + 1, fit
            count += total
            while a < end and pairs[a] >> 32 == s:
                a += 1
        star[i, COUNT] = count
        if count > 0 and keep:
            used[HITS], used[FITS], used[SIZE] = rows, fits, used[SIZE] + count * w
    return upto


@kernel
def write_solutions(hits: Hits, stars: Stars, frame: Any, rows: Any) -> None:
    """Put the solutions into `rows`; those of a star begin at its ROW. `frame` is room for the patterns of a star."""
    (hit, fitting, used), star, code, at = hits, stars.star, stars.code, 0
    for h in range(used[HITS]):
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


@kernel
def pair_outcomes(count: int, cap: int, keep: bool, star: Any, outcome: Any, pieces: Any) -> int:
    """The outcome of each pair of which there are stars; where `keep`, a row of `pieces` for each star: (pair, clause,
    begin in the rows, number of rows). Returns how many pieces there are."""
    at, end = 0, 0
    while at < count:
        pair, w, pair_end, total, alike = star[at, PAIR], star[at, WIDTH], end, 0, False
        limit = cap + 1 if w > 0 else 1
        while at < count and star[at, PAIR] == pair:
            clause, clause_end, product = star[at, CLAUSE], end, 1
            while at < count and star[at, CLAUSE] == clause:
                solutions = star[at, COUNT]
                alike = alike or solutions < 0
                product = min(product * max(solutions, 0), limit)
                if keep and w > 0:
                    pieces[end, 0], pieces[end, 1], pieces[end, 2], pieces[end, 3] = (
                        pair,
                        clause,
                        star[at, ROW],
                        solutions,
                    )
                    end += 1
                at += 1
            total += product
            end = end if product > 0 else clause_end
        end = pair_end if alike else end
        outcome[pair] = LEFT if alike else MISS if total == 0 else MATCH if total <= cap else TRUNCATED
    return end
