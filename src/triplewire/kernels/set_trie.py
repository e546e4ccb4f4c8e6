"""All stored sets that are subsets of a given set: a walk through a trie of labels (architecture: "Set-trie").

The trie is flat. Row n of `nodes` is (label, first child, first item, marks); items end where those of row n + 1 begin.
Siblings lie side by side, ascending by label. A label from `first_range` on leads to a range node: the labels of its
children are ranks, and those within the interval of that range atom are walked. A node's items are the clauses whose
set ends there. Its marks: the largest code of its items (`triplewire.kernels.bounds`), STAR where the node is a star,
that is, a label of the second trie, whose sets are stars, and above CHILDREN bits how many children there are; WIDE
says that the row before the first child has that as its label. Tries are built by `triplewire.kernels.trie_nodes`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from triplewire.kernels.prefetch import prefetch

SUBS, CHECKS, NODES = 0, 1, 2  # places in `counts`
LABEL, FIRST, ITEM, MARKS = 0, 1, 2, 3  # columns of `nodes`
STAR, CHILDREN = 256, 9  # in the marks: a bit, and how many bits lie below the number of children
WIDE = 127  # so many children or more
ROOM = 8  # children a present label for which they are scanned; more are searched
NUMBER, LOOSE, GENERAL = 23, 32, 31  # of needs and codes: `triplewire.kernels.bounds`
WITHIN, SINGLE = 1, 2  # verdicts


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
def _mark(present: Any, span_atom: Any, stamp: Any, now: int, span_of: Any, first_range: int) -> None:
    """Mark what is present, and where the interval of each range atom is."""
    for i in range(present.size):
        stamp[present[i]] = now
    for i in range(span_atom.size):
        stamp[span_atom[i]] = now
        span_of[span_atom[i] - first_range] = i


@njit(cache=True, nogil=True)
def _roots(nodes: Any, root: Any, present: Any, span_atom: Any, queue: Any, queue_span: Any) -> int:
    """Begin the queue: the children of the root whose label is present."""
    tail = 0
    for i in range(present.size):
        queue[tail] = root[present[i]]
        queue_span[tail] = -1
        prefetch(nodes, root[present[i]])
        tail += root[present[i]] >= 0
    for i in range(span_atom.size):
        queue[tail] = root[span_atom[i]]
        queue_span[tail] = i
        tail += root[span_atom[i]] >= 0
    return tail


@njit(cache=True, nogil=True)
def _searched(begin: int, end: int, nodes: Any, present: Any, span_atom: Any, queue: Any, queue_span: Any,
              tail: int) -> int:  # fmt: skip
    """Add the children begin .. end whose label is present, by one search a label; few are, of many children."""
    labels = nodes[:, LABEL]
    for i in range(present.size):
        child = _lower(labels, begin, end, present[i])
        if child < end and nodes[child, LABEL] == present[i]:
            queue[tail] = child
            queue_span[tail] = -1
            tail += 1
    for i in range(span_atom.size):
        child = _lower(labels, begin, end, span_atom[i])
        if child < end and nodes[child, LABEL] == span_atom[i]:
            queue[tail] = child
            queue_span[tail] = i
            tail += 1
    return tail


@njit(cache=True, nogil=True)
def _subsets(nodes: Any, subscription: Any, root: Any, present: Any, span_atom: Any, span_ends: Any, span_of: Any,
             first_range: int, stamp: Any, now: int, queue: Any, queue_span: Any) -> int:  # fmt: skip
    """The nodes that are reached by present labels, in `queue`; returns their number. Breadth first: each node waits
    in the queue until its children are looked at, and they and its items are fetched meanwhile."""
    _mark(present, span_atom, stamp, now, span_of, first_range)
    tail = _roots(nodes, root, present, span_atom, queue, queue_span)
    most = ROOM * (present.size + span_atom.size)
    head = 0
    for i in range(tail):
        prefetch(nodes, nodes[queue[i], FIRST])
        prefetch(subscription, nodes[queue[i], ITEM])
    while head < tail:
        node, span = queue[head], queue_span[head]
        head += 1
        begin = nodes[node, FIRST]
        end = begin + (nodes[node, MARKS] >> CHILDREN)
        if span < 0 and end - begin <= 1:  # most nodes: without a branch, which would be guessed wrong half the time
            a = nodes[begin, LABEL] * (end - begin)
            queue[tail] = begin
            queue_span[tail] = -1 if a < first_range else span_of[a - first_range]
            prefetch(nodes, nodes[begin, FIRST])
            prefetch(subscription, nodes[begin, ITEM])
            tail += (stamp[a] == now) & (begin < end)
            continue
        if end - begin == WIDE:
            end = begin + nodes[begin - 1, LABEL]
        if span >= 0:  # below a range node come ordinary nodes
            begin = _lower(nodes[:, LABEL], begin, end, span_ends[span, 0])
            end = _lower(nodes[:, LABEL], begin, end, span_ends[span, 1])
            for child in range(begin, end):
                queue[tail] = child
                queue_span[tail] = -1
                tail += 1
        elif end - begin > most:
            tail = _searched(begin, end, nodes, present, span_atom, queue, queue_span, tail)
        else:
            for child in range(begin, end):
                a = nodes[child, LABEL]
                queue[tail] = child
                queue_span[tail] = -1 if a < first_range else span_of[a - first_range]
                prefetch(nodes, nodes[child, FIRST])
                prefetch(subscription, nodes[child, ITEM])
                tail += stamp[a] == now
    return tail


@njit(cache=True, nogil=True)
def _count_objects(t0: int, t1: int, subject: Any, predicate: Any, term: Any, most: Any, stamp: Any, now: int) -> None:
    """For each known predicate of the triples t0 .. t1: the most objects that a subject has."""
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
def _copy(begin: int, end: int, source: Any, out: Any, at: int) -> int:
    """Append source[begin:end] if there is room; returns the end with all of them. Where no index can be negative, as
    the compiler is told, it copies by vectors."""
    if at + end - begin <= out.size and at >= 0 and begin >= 0:
        for i in range(end - begin):
            out[at + i] = source[begin + i]
    return at + end - begin


@njit(cache=True, nogil=True)
def _fresh(queue: Any, tail: int, bits: Any, reached: Any, count: int) -> tuple[int, int]:
    """Keep the nodes of the queue that this publication reaches for the first time, by another subject than before;
    they are added to `reached`. Returns the new ends of both. No item comes twice then: each hangs on one node."""
    at = 0
    for i in range(tail):
        node = queue[i]
        mark = np.uint8(1 << (node & 7))
        if bits[node >> 3] & mark == 0:
            bits[node >> 3] |= mark
            reached[count] = node
            count += 1
            queue[at] = node
            at += 1
    return at, count


@njit(cache=True, nogil=True)
def _fill_sure(safe: int, loose: int, sure: Any) -> None:
    """Fill `sure`, shape (2, 256): (is a run multi?, need) -> is such an item a match at once? The last column has
    `safe`, the one before it `loose`; these are no needs that occur."""
    if sure[0, 255] == safe and sure[0, 254] == loose:
        return
    for need in range(254):
        good = need & GENERAL <= (loose if need & LOOSE else safe)
        sure[0, need] = good and need >> 6 < 2
        sure[1, need] = good and need >> 6 < 1
    sure[:, 255], sure[:, 254] = safe, loose


@njit(cache=True, nogil=True)
def _emit(nodes: Any, item: Any, need: Any, subscription: Any, queue: Any, tail: int, sure: Any, multi: int,
          bound_offset: Any, bounds: Any, verdict: Any, most: Any, stamp: Any, now: int, subjects: int, degree: int,
          cap: int, out_sub: Any, out_check: Any, subs: int, checks: int) -> tuple[int, int]:  # fmt: skip
    """Hand out the items of the nodes in the queue; returns the new ends. Most nodes have one item or none, and what it
    is cannot be guessed: so there are no branches on it. What is not sure at a glance is asked for its bound, once a
    publication; items of the same need lie together."""
    last_sub = out_sub.size - 1
    for i in range(tail):
        node = queue[i]
        begin, end = nodes[node, ITEM], nodes[node + 1, ITEM]
        if end - begin <= sure[nodes[node, MARKS] & 255]:  # one item that is a match, or none
            out_sub[min(subs, last_sub)] = subscription[begin * (end - begin)]
            subs += end - begin
            begin = end
        elif nodes[node, MARKS] & 255 <= sure[255]:
            subs = _copy(begin, end, subscription, out_sub, subs)
            begin = end
        while begin < end:
            wanted, upto = np.int64(need[begin]), end
            code, number = wanted >> NUMBER, wanted & ((1 << NUMBER) - 1)
            good = sure[code] > 0
            if code <= sure[255]:
                upto = _lower(need, begin + 1, end, (sure[255] + 1) << NUMBER)
            elif need[end - 1] != wanted:
                upto = _lower(need, begin + 1, end, wanted + 1)
            if not good and code >> 6 < 2:
                if verdict[number] >> 2 != now:
                    verdict[number] = now << 2 | _verdict(bound_offset[number], bound_offset[number + 1], bounds, most,
                                                          stamp, now, subjects, degree, cap)  # fmt: skip
                said = verdict[number]
                good = said & WITHIN > 0 and (code >> 6 == 0 or multi == 0 or said & SINGLE > 0)
            if good:
                subs = _copy(begin, upto, subscription, out_sub, subs)
            else:
                checks = _copy(begin, upto, item, out_check, checks)
            begin = upto
    return subs, checks


@njit(cache=True, nogil=True)
def _stars(nodes: Any, star_of: Any, queue: Any, tail: int, star_list: Any, star_stamp: Any, now: int,
           count: int) -> int:  # fmt: skip
    """Add the stars of the nodes in the queue to those of the publication; returns how many there are."""
    for i in range(tail):
        if nodes[queue[i], MARKS] & STAR:
            star_list[count] = star = star_of[queue[i]]
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


@njit(cache=True, nogil=True)
def _reaches(r0: int, r1: int, run_atoms: Any, nodes: Any, root: Any) -> Any:
    """Is there anything to walk for the runs r0 .. r1? Of few subscriptions there seldom is."""
    atom_offset, atoms, span_offset, _, _ = run_atoms
    found, i, last = nodes[1, ITEM] > 0 or span_offset[r0] < span_offset[r1], atom_offset[r0], atom_offset[r1]
    while i < last and not found:
        found, i = root[atoms[i]] >= 0, i + 1
    return found


@njit(cache=True, nogil=True)
def _walk(p: int, mark: int, r0: int, r1: int, run_atoms: Any, run_multi: Any, first: Any, second: Any, limits: Any,
          degree: int, cap: int, work: Any, outs: Any, sure: Any, counts: Any) -> None:  # fmt: skip
    """Walk both tries for the runs r0 .. r1 of a publication."""
    atom_offset, atoms, span_offset, span_atom, span_ends = run_atoms
    nodes, root, item, need, subscription, star_of, first_range = first
    bound_offset, bounds, verdict, most, most_stamp = limits
    stamp, span_of, stars_stamp, queue, queue_span, bits, reached = work
    out_sub, out_check, star_list, star_stamp = outs
    subs, checks, any_multi, count, stars, now = counts[SUBS], counts[CHECKS], 0, 0, 0, mark + p + 1
    if nodes[1, ITEM] > 0:  # what the root has, nothing narrows
        queue[0] = 0
        subs, checks = _emit(nodes, item, need, subscription, queue, 1, sure[1], 1, bound_offset, bounds, verdict, most,
                             most_stamp, now, r1 - r0, degree, cap, out_sub, out_check, subs, checks)  # fmt: skip
    for r in range(r0, r1):
        s0, s1 = span_offset[r], span_offset[r + 1]
        present = atoms[atom_offset[r] : atom_offset[r + 1]]
        tail = _subsets(nodes, subscription, root, present, span_atom[s0:s1], span_ends[s0:s1], span_of, first_range,
                        stamp, mark + r + 1, queue, queue_span)  # fmt: skip
        counts[NODES] += tail
        if r1 - r0 > 1:
            tail, count = _fresh(queue, tail, bits, reached, count)
        multi = 1 if run_multi[r] else 0
        subs, checks = _emit(nodes, item, need, subscription, queue, tail, sure[multi], multi, bound_offset, bounds,
                             verdict, most, most_stamp, now, r1 - r0, degree, cap, out_sub, out_check, subs,
                             checks)  # fmt: skip
        stars = _stars(nodes, star_of, queue, tail, star_list, star_stamp, now, stars)
        any_multi = max(any_multi, multi)
    for i in range(count):
        bits[reached[i] >> 3] = 0
    if stars > 0:
        nodes, root, item, need, subscription, star_of, first_range = second
        tail = _subsets(nodes, subscription, root, star_list[:stars], span_atom[:0], span_ends[:0], span_of,
                        first_range, stars_stamp, now, queue, queue_span)  # fmt: skip
        counts[NODES] += tail
        subs, checks = _emit(nodes, item, need, subscription, queue, tail, sure[any_multi], any_multi, bound_offset,
                             bounds, verdict, most, most_stamp, now, r1 - r0, degree, cap, out_sub, out_check, subs,
                             checks)  # fmt: skip
    counts[SUBS], counts[CHECKS] = subs, checks


@njit(cache=True, nogil=True)
def match(p0: int, p1: int, mark: int, publication_run: Any, run_atoms: Any, facts: Any, first: Any, second: Any,
          limits: Any, may_repeat: bool, cap: int, work: Any, seen: Any, outs: Any, sub_offset: Any,
          check_offset: Any, visited: Any) -> int:  # fmt: skip
    """The subscriptions and the clauses to check of the publications p0 .. p1, as slices of outs[0] and outs[1].

    No stamp in `limits`, `work`, `seen` and outs[3] is above `mark`. visited: nodes, and the ends that the last
    publication had, or would have had. Returns the first publication that found no room, else p1.
    """
    out_sub, out_check, _, _ = outs
    run_first, run_most, run_multi, subject, predicate, term = facts
    _, _, _, most, most_stamp = limits
    seen_sub, seen_clause = seen
    counts, sure = np.zeros(3, np.int64), np.full((2, 256), -1, np.int64)
    for p in range(p0, p1):
        r0, r1 = publication_run[p], publication_run[p + 1]
        if not _reaches(r0, r1, run_atoms, first[0], first[1]):
            sub_offset[p + 1], check_offset[p + 1] = sub_offset[p], check_offset[p]
            continue
        counts[SUBS], counts[CHECKS], counts[NODES] = sub_offset[p], check_offset[p], 0
        safe = _safe_freedom(r0, r1, run_most, cap)
        degree = _degree(r0, r1, run_first)
        loose = _safe_loose(r0, r1, run_most, degree, cap)
        _fill_sure(safe, loose, sure)
        _count_objects(run_first[r0], run_first[r1], subject, predicate, term, most, most_stamp, mark + p + 1)
        _walk(p, mark, r0, r1, run_atoms, run_multi, first, second, limits, degree, cap, work, outs, sure, counts)
        subs, checks = counts[SUBS], counts[CHECKS]
        visited[1], visited[2] = subs, checks
        if subs >= out_sub.size or checks >= out_check.size:
            return p
        if may_repeat:
            subs = _distinct(out_sub, sub_offset[p], subs, seen_sub)
        sub_offset[p + 1] = subs
        check_offset[p + 1] = _distinct(out_check, check_offset[p], checks, seen_clause)
        visited[0] += counts[NODES]
    return p1
