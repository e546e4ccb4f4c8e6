"""The subscriptions of each publication: a walk through the tries, and what hangs on the nodes that are reached.

How a trie lies in memory and which of its nodes are reached: `triplewire.kernels.subsets`. The first trie has the sets
of atoms, its nodes with STAR are the labels of the second, whose sets are stars. Who calls: `triplewire.select.walk`.
Numba's cache does not see a change of `subsets` here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from triplewire.kernels.prefetch import prefetch
from triplewire.kernels.subsets import ALONE, AT, CODE, ENDS, HALF, STAR, fresh, subsets

NUMBER, STATUS, LOOSE, GENERAL = 23, 6, 32, 31  # of needs and codes: `triplewire.kernels.bounds`
WITHIN, SINGLE = 1, 2  # verdicts
BLOCK = 6  # so many rows, as a power of two, have one place from which their stars are looked for

_int: Any = np.int64
_wide: Any = np.uint64  # also of an index: that it is not negative


@njit(forceinline=True)
def _lower(values: Any, low: int, high: int, wanted: Any) -> int:
    """The first of the values low .. high, which are ascending, that is not below `wanted`."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def _count_objects(t0: int, t1: int, subject: Any, predicate: Any, term: Any, most: Any, stamp: Any, now: int) -> None:
    """For each known predicate of the triples t0 .. t1: the most objects that a subject has. Once a publication: the
    last stamp, which is no predicate's, tells."""
    if stamp[stamp.size - 1] == now:
        return
    stamp[stamp.size - 1] = now
    a = t0
    while a < t1:
        b = a + 1
        while b < t1 and predicate[b] == predicate[a] and subject[b] == subject[a]:
            b += 1
        known = term[predicate[a]]
        if known >= 0:
            if stamp[known] != now:
                stamp[known] = now
                most[known] = 0
            most[known] = max(most[known], b - a)
        a = b


@njit(forceinline=True)
def _verdict(first: int, end: int, bounds: Any, most: Any, stamp: Any, now: int, subjects: int, degree: int,
             cap: int) -> int:  # fmt: skip
    """What the bound in bounds[first:end] (`triplewire.kernels.bounds`) says of a publication: WITHIN, at most `cap`
    solutions, by the number of objects that a subject has under each predicate; SINGLE, all those numbers are 1."""
    bound, single = 1, degree == 1 or bounds[first + 1] == 0
    for _ in range(bounds[first]):
        bound = min(bound * subjects, cap + 1)
    for _ in range(bounds[first + 1]):
        bound = min(bound * degree, cap + 1)
    for i in range(first + 2, end):
        objects = most[bounds[i]] if stamp[bounds[i]] == now else 1
        single = single and objects == 1
        bound = min(bound * objects, cap + 1)
    within = bound <= cap or bounds[first] < 0
    return WITHIN * within + SINGLE * single


@njit(forceinline=True)
def _copy_each(begin: int, end: int, source: Any, out: Any, at: int) -> None:
    """Copy source[begin:end] if there is room."""
    if at + end - begin <= out.size and at >= 0 and begin >= 0:
        for i in range(end - begin):
            out[at + i] = source[begin + i]


@njit(forceinline=True)
def _copy(begin: int, end: int, source: Any, out: Any, at: int) -> Any:
    """Append source[begin:end] if there is room; returns the end with all of them. Eight at a time, all read before
    they are written: mostly there are so few that once is enough."""
    left = end - begin
    if at + left + 8 <= out.size and begin + left + 8 <= source.size:
        i, j = begin, at
        while left > 0:
            a, b, c, d = source[_wide(i)], source[_wide(i + 1)], source[_wide(i + 2)], source[_wide(i + 3)]
            e, f, g, h = source[_wide(i + 4)], source[_wide(i + 5)], source[_wide(i + 6)], source[_wide(i + 7)]
            out[_wide(j)], out[_wide(j + 1)], out[_wide(j + 2)], out[_wide(j + 3)] = a, b, c, d
            out[_wide(j + 4)], out[_wide(j + 5)], out[_wide(j + 6)], out[_wide(j + 7)] = e, f, g, h
            left -= 8
            i += 8
            j += 8
    else:
        _copy_each(begin, end, source, out, at)
    return at + end - begin


@njit(forceinline=True)
def _fill_sure(safe: int, loose: int, sure: Any) -> None:
    """Fill `sure`, shape (2, 256) and 0 before: (is a run multi?, code) -> is such an item a match at once?"""
    multi = 1 << STATUS
    for free in range(LOOSE):
        sure[0, free] = sure[1, free] = sure[0, multi + free] = free <= safe
        sure[0, LOOSE + free] = sure[1, LOOSE + free] = sure[0, multi + LOOSE + free] = free <= loose


@njit(forceinline=True)
def _hand_out(nodes: Any, need: Any, subscription: Any, hits: Any, hit: int, safe: int, sure: Any, out: Any, subs: int,
              rest: Any) -> Any:  # fmt: skip
    """Hand out the items that are alone and matches at a glance; the other nodes with items go to `rest`. Returns the
    new ends, and whether there are others that may have to be asked for their bounds."""
    others, unsure, fits = _int(0), _int(0), subs + hit < out.size
    for i in range(hit if fits else 0):
        node = _int(hits[_wide(i)])
        item, marks = nodes[_wide(2 * node)] >> AT, nodes[_wide(2 * node + 1)]
        code = marks >> CODE & 255
        good = marks >> ALONE & sure[_wide(code)]
        out[_wide(subs)] = marks & HALF
        subs += good
        more = marks >> ENDS & (1 - good)
        rest[_wide(others)] = node
        others += more
        doubt = more & _int(code > safe)
        unsure |= doubt
        prefetch(subscription, item & -more)
        prefetch(need, item & -doubt)
    return subs if fits else subs + hit, others, unsure


@njit(forceinline=True)
def _emit(nodes: Any, item: Any, need: Any, subscription: Any, rest: Any, others: int, safe: int, sure: Any, multi: int,
          bound_offset: Any, bounds: Any, verdict: Any, most: Any, stamp: Any, now: int, subjects: int, degree: int,
          cap: int, out_sub: Any, out_check: Any, subs: int, checks: int) -> Any:  # fmt: skip
    """Hand out the items of the nodes in `rest`; returns the new ends. What is not sure at a glance is asked for its
    bound, once a publication; items of the same need lie together."""
    for i in range(others):
        node = _int(rest[_wide(i)])
        begin, end = nodes[_wide(2 * node)] >> AT, nodes[_wide(2 * node + 2)] >> AT
        glance = nodes[_wide(2 * node + 1)] >> CODE & 255
        if (glance <= safe) | ((end - begin == 1) & (sure[_wide(glance)] > 0)):
            subs = _copy(begin, end, subscription, out_sub, subs)
            begin = end
        while begin < end:
            wanted, upto = _int(need[begin]), end
            code, number = wanted >> NUMBER, wanted & ((1 << NUMBER) - 1)
            good = sure[code] > 0
            if code <= safe:
                upto = _lower(need, begin + 1, end, (safe + 1) << NUMBER)
            elif need[end - 1] != wanted:
                upto = _lower(need, begin + 1, end, wanted + 1)
            if not good and code >> STATUS < 2:
                if verdict[number] >> 2 != now:
                    verdict[number] = now << 2 | _verdict(bound_offset[number], bound_offset[number + 1], bounds, most,
                                                          stamp, now, subjects, degree, cap)  # fmt: skip
                said = verdict[number]
                good = said & WITHIN > 0 and (code >> STATUS == 0 or multi == 0 or said & SINGLE > 0)
            if good:
                subs = _copy(begin, upto, subscription, out_sub, subs)
            else:
                _copy_each(begin, upto, item, out_check, checks)
                checks += upto - begin
            begin = upto
    return subs, checks


@njit(cache=True, nogil=True)
def _emit_aside(nodes: Any, item: Any, need: Any, subscription: Any, rest: Any, others: int, safe: int, sure: Any,
                multi: int, limits: Any, now: int, subjects: int, degree: int, cap: int, out_sub: Any, out_check: Any,
                subs: int, checks: int) -> Any:  # fmt: skip
    """The same where it is seldom called for."""
    bound_offset, bounds, verdict, most, stamp = limits
    return _emit(nodes, item, need, subscription, rest, others, safe, sure, multi, bound_offset, bounds, verdict, most,
                 stamp, now, subjects, degree, cap, out_sub, out_check, subs, checks)  # fmt: skip


@njit(forceinline=True)
def _stars(nodes: Any, row: Any, number: Any, block: Any, hits: Any, hit: int, star_list: Any, star_stamp: Any,
           now: int, count: int) -> Any:  # fmt: skip
    """Add the stars of the nodes reached to those of the publication; returns how many there are. row, number: where
    stars end, ascending, and which; block[n >> BLOCK]: where to look for row n."""
    for i in range(hit):
        node = _int(hits[_wide(i)])
        if nodes[_wide(2 * node + 1)] >> STAR & 1:
            at = _int(block[node >> BLOCK])
            while row[at] != node:
                at += 1
            star = number[at]
            star_list[count] = star
            count += star_stamp[star] != now
            star_stamp[star] = now
    return count


@njit(cache=True, nogil=True)
def _distinct(out: Any, begin: int, end: int, bits: Any) -> int:
    """Drop repetitions among out[begin:end]; returns the new end. `bits` has a bit for each number, all clear before
    and after: so small that it stays near the processor."""
    at = begin
    for i in range(begin, end):
        number = out[i]
        mark = np.uint8(1 << (number & 7))
        out[at] = number
        at += bits[number >> 3] & mark == 0
        bits[number >> 3] |= mark
    for i in range(begin, at):
        bits[out[i] >> 3] = 0
    return at


@njit(cache=True, nogil=True)
def _safe_freedom(r0: int, r1: int, run_most: Any, cap: int) -> int:
    """The largest k such that a clause of one star, with variable objects under k different predicates, has at most
    `cap` solutions; -1 where there is none. run_most[r]: the largest numbers of objects of one predicate."""
    bound, k, columns = r1 - r0, -1, run_most.shape[1]
    while bound <= cap and k < GENERAL - 1:
        k += 1
        most = 1
        for r in range(r0, r1):
            most = max(most, run_most[r, min(k, columns - 1)])
        if most == 1:
            return GENERAL - 1
        bound *= most
    return k


@njit(cache=True, nogil=True)
def _safe_loose(r0: int, r1: int, run_most: Any, degree: int, cap: int) -> int:
    """The same where the predicates may be the same, and one may be variable. degree: most triples of a subject."""
    most = 1
    for r in range(r0, r1):
        most = max(most, run_most[r, 0])
    bound, k = (r1 - r0) * degree, 0
    while bound <= cap and k < GENERAL - 1:
        bound, k = bound * most, k + 1
    return k


@njit(cache=True, nogil=True)
def _degree(r0: int, r1: int, run_first: Any) -> int:
    """The most triples of a subject."""
    degree = 1
    for r in range(r0, r1):
        degree = max(degree, run_first[r + 1] - run_first[r])
    return degree


@njit(forceinline=True)
def _reaches(nodes: Any, root: Any, atoms: Any, begin: int, end: int, spans: int) -> Any:
    """Is there anything to walk for the atoms of a publication? Of few subscriptions there seldom is."""
    found = nodes[2] >> AT > 0 or spans > 0
    while begin < end and not found:
        found = root[atoms[begin]] >= 0
        begin += 1
    return found


@njit(cache=True, nogil=True)
def _walk_stars(second: Any, stars: int, run_atoms: Any, limits: Any, safe: int, sure: Any, multi: int, now: int,
                subjects: int, degree: int, cap: int, work: Any, outs: Any, subs: int, checks: int) -> Any:  # fmt: skip
    """Hand out what the second trie has for the stars of a publication; returns its nodes reached, and the new ends."""
    nodes, root, item, need, subscription, _, no_range = second
    _, _, _, span_atom, span_ends = run_atoms
    _, bits, span_of, queue, hits, odd, rest, _, _ = work
    out_sub, out_check, star_list, _ = outs
    hit = subsets(nodes, root, star_list, 0, stars, span_atom, 0, 0, span_ends, span_of, no_range, bits, queue, hits,
                  odd)  # fmt: skip
    subs, others, _ = _hand_out(nodes, need, subscription, hits, hit, safe, sure, out_sub, subs, rest)
    subs, checks = _emit_aside(nodes, item, need, subscription, rest, others, safe, sure, multi, limits, now, subjects,
                               degree, cap, out_sub, out_check, subs, checks)  # fmt: skip
    return hit, subs, checks


@njit(cache=True, nogil=True)
def match(p0: int, p1: int, mark: int, publication_run: Any, run_atoms: Any, facts: Any, first: Any, second: Any,
          limits: Any, may_repeat: bool, cap: int, work: Any, seen: Any, outs: Any, sub_offset: Any,
          check_offset: Any, visited: Any) -> int:  # fmt: skip
    """The subscriptions and the clauses to check of the publications p0 .. p1, as slices of outs[0] and outs[1].

    No stamp in `limits` and `outs` is above `mark`. visited: nodes, and the ends that the last publication had, or
    would have had. Returns the first publication that found no room, else p1.
    """
    (out_sub, out_check, star_list, star_stamp), (seen_sub, seen_clause) = outs, seen
    run_first, run_most, run_multi, subject, predicate, term = facts
    atom_offset, atoms, span_offset, span_atom, span_ends = run_atoms
    nodes, root, item, need, subscription, (star_row, star_number, star_block), first_range = first
    bound_offset, bounds, verdict, most, stamp = limits
    atom_bits, _, span_of, queue, hits, odd, rest, bits, reached = work
    both = np.zeros((2, 256), np.uint8)
    plain, several = both[0], both[1]
    for p in range(p0, p1):
        r0, r1 = publication_run[p], publication_run[p + 1]
        sub_offset[p + 1], check_offset[p + 1], any_multi = sub_offset[p], check_offset[p], 0
        if not _reaches(nodes, root, atoms, atom_offset[r0], atom_offset[r1], span_offset[r1] - span_offset[r0]):
            continue
        now, safe, degree = mark + p + 1, _safe_freedom(r0, r1, run_most, cap), _degree(r0, r1, run_first)
        _fill_sure(safe, _safe_loose(r0, r1, run_most, degree, cap), both)
        subs, checks, count, stars, nodes_seen = _int(sub_offset[p]), _int(check_offset[p]), _int(0), _int(0), _int(0)
        if nodes[2] >> AT > 0:  # what the root has, nothing narrows
            rest[0] = 0
            _count_objects(run_first[r0], run_first[r1], subject, predicate, term, most, stamp, now)
            subs, checks = _emit_aside(nodes, item, need, subscription, rest, 1, safe, several, 1, limits, now, r1 - r0,
                                       degree, cap, out_sub, out_check, subs, checks)  # fmt: skip
        for r in range(r0, r1):
            hit = subsets(nodes, root, atoms, atom_offset[r], atom_offset[r + 1], span_atom, span_offset[r],
                          span_offset[r + 1], span_ends, span_of, first_range, atom_bits, queue, hits, odd)  # fmt: skip
            nodes_seen += hit
            if r1 - r0 > 1:
                hit, count = fresh(nodes, hits, hit, bits, reached, count)
            multi = 1 if run_multi[r] else 0
            any_multi, sure = max(any_multi, multi), several if run_multi[r] else plain
            if star_row.size > 0:
                stars = _stars(nodes, star_row, star_number, star_block, hits, hit, star_list, star_stamp, now, stars)
            subs, others, unsure = _hand_out(nodes, need, subscription, hits, hit, safe, sure, out_sub, subs, rest)
            if unsure > 0:
                _count_objects(run_first[r0], run_first[r1], subject, predicate, term, most, stamp, now)
            if others > 0:
                subs, checks = _emit(nodes, item, need, subscription, rest, others, safe, sure, multi, bound_offset,
                                     bounds, verdict, most, stamp, now, r1 - r0, degree, cap, out_sub, out_check, subs,
                                     checks)  # fmt: skip
        for i in range(count):
            bits[reached[i] >> 3] = 0
        if stars > 0:
            _count_objects(run_first[r0], run_first[r1], subject, predicate, term, most, stamp, now)
            hit, subs, checks = _walk_stars(second, stars, run_atoms, limits, safe, several if any_multi > 0 else plain,
                                            any_multi, now, r1 - r0, degree, cap, work, outs, subs, checks)  # fmt: skip
            nodes_seen += hit
        visited[1], visited[2] = subs, checks
        if subs >= out_sub.size or checks >= out_check.size:
            return p
        sub_offset[p + 1] = _distinct(out_sub, sub_offset[p], subs, seen_sub) if may_repeat else subs
        check_offset[p + 1] = _distinct(out_check, check_offset[p], checks, seen_clause)
        visited[0] += nodes_seen
    return p1
