"""The subscriptions of each publication: a walk through the tries, and what hangs on the nodes that are reached.

How a trie lies in memory and which of its nodes are reached: `triplewire.kernels.trie.subsets`. The first trie has the
sets of atoms, its nodes with STAR are the labels of the second, whose sets are stars. Who calls:
`triplewire.select.trie.walk`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.prefetch import prefetch
from triplewire.kernels.shared.bits import count_bits
from triplewire.kernels.shared.compiled import allocating_kernel, called_helper, helper
from triplewire.kernels.shared.search import lower
from triplewire.kernels.trie.bounds import GENERAL, LOOSE, NUMBER, STATUS
from triplewire.kernels.trie.columns import (
    Bounds,
    Limits,
    Predicates,
    RunAtoms,
    TrieArrays,
    WalkOutput,
    WalkSpace,
)
from triplewire.kernels.trie.stars import CHECK
from triplewire.kernels.trie.subsets import ALONE, AT, CODE, COUNT, ENDS, HALF, STAR, TAIL, fresh, subsets

WITHIN, SINGLE = 1, 2  # what a bound says
BLOCK, BLOCK_ROWS = 5, 32  # rows whose stars are bits of one number: as a power of two

_int: Any = np.int64
_wide: Any = np.uint64  # also of an index: that it is not negative


@called_helper
def _count_objects(t0: int, t1: int, facts: Predicates, bounds: Bounds, mark: int) -> None:
    """For each known predicate of the triples t0 .. t1: the most objects that a subject has. Once a publication: the
    last stamp, which is no predicate's, tells."""
    (subject, predicate, term), most, stamp = facts, bounds.most, bounds.stamp
    if stamp[stamp.size - 1] != mark:
        stamp[stamp.size - 1] = mark
        a = t0
        while a < t1:
            b = a + 1
            while b < t1 and predicate[b] == predicate[a] and subject[b] == subject[a]:
                b += 1
            known = term[predicate[a]]
            if known >= 0:
                if stamp[known] != mark:
                    stamp[known] = mark
                    most[known] = 0
                most[known] = max(most[known], b - a)
            a = b


@helper
def _verdict(number: int, bounds: Bounds, scope: Limits) -> int:
    """What a bound (`triplewire.kernels.trie.bounds`) says of a publication: WITHIN, at most `cap` solutions, by the
    number of objects that a subject has under each predicate; SINGLE, all those numbers are 1."""
    first, end, cap, parts = bounds.offset[number], bounds.offset[number + 1], scope.cap, bounds.bounds
    bound, single = 1, scope.degree == 1 or parts[first + 1] == 0
    for _ in range(parts[first]):
        bound = min(bound * scope.subjects, cap + 1)
    for _ in range(parts[first + 1]):
        bound = min(bound * scope.degree, cap + 1)
    for i in range(first + 2, end):
        objects = bounds.most[parts[i]] if bounds.stamp[parts[i]] == scope.mark else 1
        single = single and objects == 1
        bound = min(bound * objects, cap + 1)
    within = bound <= cap or parts[first] < 0
    return WITHIN * within + SINGLE * single


@helper
def _copy_each(begin: int, end: int, source: Any, out: Any, at: int) -> None:
    """Copy source[begin:end] if there is room."""
    if at + end - begin <= out.size and at >= 0 and begin >= 0:
        for i in range(end - begin):
            out[at + i] = source[begin + i]


@helper
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


@helper
def _append_places(begin: int, end: int, out: Any, at: int) -> Any:
    """Append the places begin .. end, four at a time: mostly once is enough. Returns the end with all of them, or that
    of `out` where there is no room."""
    i, j, last = begin, at, at + end - begin
    while j < last and j + 4 <= out.size:
        out[_wide(j)], out[_wide(j + 1)], out[_wide(j + 2)], out[_wide(j + 3)] = i, i + 1, i + 2, i + 3
        i, j = i + 4, j + 4
    return last if j >= last else out.size


@helper
def _fill_sure(safe: int, loose: int, sure: Any) -> None:
    """Fill `sure`, shape (2, 256) and 0 before: (is a run multi?, code) -> is such an item a match at once?"""
    multi = 1 << STATUS
    for free in range(LOOSE):
        sure[0, free] = sure[1, free] = sure[0, multi + free] = free <= safe
        sure[0, LOOSE + free] = sure[1, LOOSE + free] = sure[0, multi + LOOSE + free] = free <= loose


@helper
def _hand_out(trie: TrieArrays, space: WalkSpace, hit: int, safe: int, sure: Any, out: Any, check: Any, subs: int,
              checks: int) -> Any:  # fmt: skip
    """Hand out the items that are alone and at a glance matches, or to be checked; the other nodes with items go to
    `rest`. Returns the new ends, and whether there are others that may have to be asked for their bounds."""
    nodes, hits, rest = trie.nodes, space.hits, space.rest
    others, unsure, fits = _int(0), _int(0), subs + hit < out.size and checks + hit < check.size
    for i in range(hit if fits else 0):
        node = _int(hits[_wide(i)])
        item, marks = nodes[_wide(2 * node)] >> AT, nodes[_wide(2 * node + 1)]
        code = marks >> CODE & 255
        good = marks >> ALONE & sure[_wide(code)]
        open_ = marks >> ALONE & _int(code >> STATUS == CHECK)
        place, is_tail = marks & HALF, -(marks >> TAIL & 1)
        behind = _int(trie.tail[_wide((place + (marks >> COUNT & 0xFFFF)) & is_tail)])
        named = place ^ ((place ^ behind) & is_tail)
        out[_wide(subs)] = named
        subs += good
        check[_wide(checks)] = named
        checks += open_
        more = marks >> ENDS & (1 - good) & (1 - open_)
        rest[_wide(others)] = node
        others += more
        doubt = more & _int(code > safe)
        unsure |= doubt
        prefetch(trie.subscription, item & -more)
        prefetch(trie.need, item & -doubt)
    return subs if fits else subs + hit, checks if fits else checks + hit, others, unsure


@helper
def _emit(trie: TrieArrays, rest: Any, others: int, sure: Any, multi: int, bounds: Bounds, scope: Limits,
          out: WalkOutput, subs: int, checks: int) -> Any:  # fmt: skip
    """Hand out the items of the nodes in `rest`; returns the new ends. What is not sure at a glance is asked for its
    bound, once a publication; items of the same need lie together."""
    nodes, need, safe, verdict = trie.nodes, trie.need, scope.safe, bounds.verdict
    for i in range(others):
        node = _int(rest[_wide(i)])
        begin, end = nodes[_wide(2 * node)] >> AT, nodes[_wide(2 * node + 2)] >> AT
        glance = nodes[_wide(2 * node + 1)] >> CODE & 255
        if (glance <= safe) | ((end - begin == 1) & (sure[_wide(glance)] > 0)):
            subs = _copy(begin, end, trie.subscription, out.subscription, subs)
            begin = end
        while begin < end:
            wanted, upto = _int(need[begin]), end
            code, number = wanted >> NUMBER, wanted & ((1 << NUMBER) - 1)
            good = sure[code] > 0
            if code <= safe:
                upto = lower(need, begin + 1, end, (safe + 1) << NUMBER)
            elif need[end - 1] != wanted:
                upto = lower(need, begin + 1, end, wanted + 1)
            if not good and code >> STATUS < 2:
                if verdict[number] >> 2 != scope.mark:
                    verdict[number] = scope.mark << 2 | _verdict(number, bounds, scope)
                said = verdict[number]
                good = said & WITHIN > 0 and (code >> STATUS == 0 or multi == 0 or said & SINGLE > 0)
            if good:
                subs = _copy(begin, upto, trie.subscription, out.subscription, subs)
            else:
                checks = _append_places(trie.before + begin, trie.before + upto, out.check, checks)
            begin = upto
    return subs, checks


@called_helper
def _emit_aside(trie: TrieArrays, rest: Any, others: int, sure: Any, multi: int, bounds: Bounds, scope: Limits,
                out: WalkOutput, subs: int, checks: int) -> Any:  # fmt: skip
    """`_emit` where it is seldom called for, and not inlined."""
    return _emit(trie, rest, others, sure, multi, bounds, scope, out, subs, checks)


@helper
def _stars(trie: TrieArrays, space: WalkSpace, hit: int, out: WalkOutput, count: int) -> Any:
    """Add the stars of the nodes reached to those of the publication, and set their bits; returns how many it has."""
    bits = space.star_bits
    for i in range(hit):
        node = _int(space.hits[_wide(i)])
        block = trie.star[_wide(node >> BLOCK)]
        before = (_int(1) << (node & (BLOCK_ROWS - 1))) - 1
        is_star = trie.nodes[_wide(2 * node + 1)] >> STAR & 1
        star = (block >> BLOCK_ROWS) + count_bits(block & before)
        star &= -is_star  # else its place may be the one behind the last
        out.star_list[_wide(count)] = star
        place, bit = _wide(star >> 6), _wide(star & 63)
        count += is_star & ~_int(bits[place] >> bit)
        bits[place] |= _wide(is_star) << bit
    return count


@helper
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


@helper
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


@helper
def _safe_loose(r0: int, r1: int, run_most: Any, degree: int, cap: int) -> int:
    """`_safe_freedom` where predicates may be the same, and one may be variable. degree: most triples of a subject."""
    most = 1
    for r in range(r0, r1):
        most = max(most, run_most[r, 0])
    bound, k = (r1 - r0) * degree, 0
    while bound <= cap and k < GENERAL - 1:
        bound, k = bound * most, k + 1
    return k


@helper
def _degree(r0: int, r1: int, run_first: Any) -> int:
    """The most triples of a subject."""
    degree = 1
    for r in range(r0, r1):
        degree = max(degree, run_first[r + 1] - run_first[r])
    return degree


@helper
def _reaches(trie: TrieArrays, atoms: Any, begin: int, end: int, spans: int) -> Any:
    """Is there anything to walk for the atoms of a publication? Of few subscriptions there seldom is."""
    reached = trie.nodes[2] >> AT > 0 or spans > 0
    while begin < end and not reached:
        reached = trie.root[atoms[begin]] >= 0
        begin += 1
    return reached


@called_helper
def _walk_stars(second: TrieArrays, stars: int, runs: RunAtoms, bounds: Bounds, scope: Limits, sure: Any, multi: int,
                space: WalkSpace, out: WalkOutput, subs: int, checks: int) -> Any:  # fmt: skip
    """Hand out what the second trie has for the stars of a publication; returns its nodes reached, and the new ends."""
    hit = subsets(second, out.star_list, 0, stars, runs, 0, 0, space.star_bits, space)
    subs, checks, others, _ = _hand_out(second, space, hit, scope.safe, sure, out.subscription, out.check, subs, checks)
    subs, checks = _emit_aside(second, space.rest, others, sure, multi, bounds, scope, out, subs, checks)
    return hit, subs, checks


@helper
def _of_publication(p: int, r0: int, r1: int, runs: RunAtoms, facts: Predicates, tries: Any, bounds: Bounds,
                    space: WalkSpace, out: WalkOutput, scope: Limits, sure: Any) -> Any:  # fmt: skip
    """Hand out what the runs r0 .. r1 of the publication p reach; returns how many nodes, and the new ends."""
    (first, second), several = tries, sure[1]
    nodes, mark, t0, t1 = first.nodes, scope.mark, runs.first[r0], runs.first[r1]
    subs, checks, count, stars = _int(out.offset[p]), _int(out.check_offset[p]), _int(0), _int(0)
    nodes_seen, any_multi = _int(0), _int(0)
    if nodes[2] >> AT > 0:  # what the root has, nothing narrows
        space.rest[0] = 0
        _count_objects(t0, t1, facts, bounds, mark)
        subs, checks = _emit_aside(first, space.rest, 1, several, 1, bounds, scope, out, subs, checks)
    for r in range(r0, r1):
        hit = subsets(first, runs.atoms, runs.atom_offset[r], runs.atom_offset[r + 1], runs, runs.span_offset[r],
                      runs.span_offset[r + 1], space.atom_bits, space)  # fmt: skip
        nodes_seen += hit
        if r1 - r0 > 1:
            hit, count = fresh(nodes, space, hit, count)
        multi = _int(1 if runs.multi[r] else 0)
        any_multi, own_sure = any_multi | multi, sure[multi]
        if first.star.size > 0:
            stars = _stars(first, space, hit, out, stars)
        subs, checks, others, unsure = _hand_out(first, space, hit, scope.safe, own_sure, out.subscription, out.check,
                                                 subs, checks)  # fmt: skip
        if unsure > 0:
            _count_objects(t0, t1, facts, bounds, mark)
        if others > 0:
            subs, checks = _emit(first, space.rest, others, own_sure, multi, bounds, scope, out, subs, checks)
    for i in range(count):
        space.reached_bits[space.reached[i] >> 3] = 0
    if stars > 0:
        _count_objects(t0, t1, facts, bounds, mark)
        hit, subs, checks = _walk_stars(second, stars, runs, bounds, scope, sure[any_multi], any_multi, space, out,
                                        subs, checks)  # fmt: skip
        nodes_seen += hit
    return nodes_seen, subs, checks


@helper
def matched(p0: int, p1: int, mark: int, cap: int, may_repeat: bool, runs: RunAtoms, facts: Predicates, tries: Any,
             bounds: Bounds, space: WalkSpace, out: WalkOutput, sure: Any) -> Any:  # fmt: skip
    """What `match` does. `sure`: as in `_fill_sure`."""
    (first, _), p, has_room = tries, p0, True
    while p < p1 and has_room:
        r0, r1 = _int(runs.publication_run[p]), _int(runs.publication_run[p + 1])
        a0, a1, spans = runs.atom_offset[r0], runs.atom_offset[r1], runs.span_offset[r1] - runs.span_offset[r0]
        out.offset[p + 1], out.check_offset[p + 1] = out.offset[p], out.check_offset[p]
        if _reaches(first, runs.atoms, a0, a1, spans):
            safe, degree = _safe_freedom(r0, r1, runs.most, cap), _degree(r0, r1, runs.first)
            _fill_sure(safe, _safe_loose(r0, r1, runs.most, degree, cap), sure)
            scope = Limits(_int(mark + p + 1), r1 - r0, _int(degree), _int(cap), _int(safe))
            nodes, subs, checks = _of_publication(p, r0, r1, runs, facts, tries, bounds, space, out, scope, sure)
            out.visited[1], out.visited[2] = subs, checks
            has_room = subs < out.subscription.size and checks < out.check.size
            if has_room:
                begin, check_begin = out.offset[p], out.check_offset[p]
                out.offset[p + 1] = (
                    _distinct(out.subscription, begin, subs, space.subscription_bits) if may_repeat else subs
                )
                out.check_offset[p + 1] = _distinct(out.check, check_begin, checks, space.clause_bits)
                out.visited[0] += nodes
        p += has_room
    return p


@allocating_kernel
def match(p0: int, p1: int, mark: int, cap: int, may_repeat: bool, runs: RunAtoms, facts: Predicates,
          first: TrieArrays, second: TrieArrays, bounds: Bounds, space: WalkSpace, out: WalkOutput) -> int:  # fmt: skip
    """The subscriptions and the places to check of the publications p0 .. p1, as slices of `out`.

    No stamp in `bounds` and `out` is above `mark`. Returns the first publication that found no room, else p1.
    """
    sure = np.zeros((2, 256), np.uint8)
    done: int = matched(p0, p1, mark, cap, may_repeat, runs, facts, (first, second), bounds, space, out, sure)
    return done
