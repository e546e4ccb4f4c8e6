"""The subscriptions of each publication: a walk through the tries, and what hangs on the nodes that are reached.

    for each publication:
        for each run of its triples with one subject:
            nodes = those of the first trie that the atoms of the run reach (`triplewire.select.trie.kernels.subsets`)
            stars += those of the nodes that are labels of the second trie
            hand out the items of the nodes
        hand out the items of the nodes of the second trie that the stars reach
    to hand out an item: accept its subscription, if the clause surely matches with at most `cap` solutions; else write
        its place, for the clause to be checked

Most items are told at a glance, by their code: `sure[is a run multi?, code]` says whether it is accepted. For the
others the bound of their clause is worked out, once a publication (`triplewire.select.trie.kernels.stars`). Who calls:
`triplewire.select.trie.index`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.shared.columns import TermFeatures, Triples
from triplewire.kernels.shared.compiled import called_helper, helper, kernel, prefetch
from triplewire.kernels.shared.search import count_bits, lower
from triplewire.select.trie.kernels import columns
from triplewire.select.trie.kernels.columns import Bounds, Limits, RunAtoms, TrieArrays, WalkOutput, WalkSpace
from triplewire.select.trie.kernels.stars import CHECK, GENERAL, LOOSE, NUMBER, STATUS
from triplewire.select.trie.kernels.subsets import ALONE, AT, CODE, COUNT, ENDS, HALF, STAR, TAIL, fresh, subsets

WITHIN, SINGLE = 1, 2  # what a bound says
BLOCK, BLOCK_ROWS = 5, 32  # rows whose stars are bits of one number: as a power of two

_int: Any = np.int64
_wide: Any = np.uint64  # also of an index: that it is not negative


@called_helper
def _count_objects(t0: int, t1: int, batch: Triples, term: Any, bounds: Bounds, mark: int) -> None:
    """For each known predicate of the triples t0 .. t1: the most objects that a subject has. Once a publication: the
    last stamp, which is no predicate's, tells. `term`: batch term -> the segment's term id, or -1."""
    subject, predicate, most, stamp = batch.subject, batch.predicate, bounds.most, bounds.stamp
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
    """What a bound (`triplewire.select.trie.kernels.stars`) says of a publication: WITHIN, at most `cap` solutions,
    by the number of objects that a subject has under each predicate; SINGLE, all those numbers are 1."""
    first, end, cap, numbers = bounds.offset[number], bounds.offset[number + 1], scope.cap, bounds.bounds
    subjects, wild_predicates = numbers[first], numbers[first + 1]
    solutions, is_single = 1, scope.degree == 1 or wild_predicates == 0
    for _ in range(subjects):
        solutions = min(solutions * scope.subjects, cap + 1)
    for _ in range(wild_predicates):
        solutions = min(solutions * scope.degree, cap + 1)
    for i in range(first + 2, end):
        predicate = numbers[i]
        objects = bounds.most[predicate] if bounds.stamp[predicate] == scope.mark else 1
        is_single = is_single and objects == 1
        solutions = min(solutions * objects, cap + 1)
    is_within = solutions <= cap or subjects < 0
    return WITHIN * is_within + SINGLE * is_single


@helper
def _copy(begin: int, end: int, source: Any, out: Any, place: int) -> Any:
    """Append source[begin:end] if there is room; returns the end with all of them. Eight at a time, all read before
    they are written: mostly there are so few that once is enough."""
    count = end - begin
    if place + count + 8 <= out.size and begin + count + 8 <= source.size:
        i, j = begin, place
        while i < end:
            a, b, c, d = source[_wide(i)], source[_wide(i + 1)], source[_wide(i + 2)], source[_wide(i + 3)]
            e, f, g, h = source[_wide(i + 4)], source[_wide(i + 5)], source[_wide(i + 6)], source[_wide(i + 7)]
            out[_wide(j)], out[_wide(j + 1)], out[_wide(j + 2)], out[_wide(j + 3)] = a, b, c, d
            out[_wide(j + 4)], out[_wide(j + 5)], out[_wide(j + 6)], out[_wide(j + 7)] = e, f, g, h
            i += 8
            j += 8
    elif place + count <= out.size and place >= 0 and begin >= 0:
        for i in range(count):
            out[place + i] = source[begin + i]
    return place + count


@helper
def _append_places(begin: int, end: int, out: Any, place: int) -> Any:
    """Append the places begin .. end, four at a time: mostly once is enough. Returns the end with all of them, or that
    of `out` where there is no room."""
    i, j, last = begin, place, place + end - begin
    while j < last and j + 4 <= out.size:
        out[_wide(j)], out[_wide(j + 1)], out[_wide(j + 2)], out[_wide(j + 3)] = i, i + 1, i + 2, i + 3
        i, j = i + 4, j + 4
    return last if j >= last else out.size


@helper
def _fill_sure(safe: int, loose: int, sure: Any) -> None:
    """Fill `sure`, shape (2, 256) and 0 before: (is a run multi?, code) -> is such an item a match at once? Of the
    clauses with the status SURE, and with the status MULTI where no run is multi, those are that have at most `safe`
    variable objects; `loose` where the code says LOOSE."""
    multi = 1 << STATUS  # the code of a clause with the status MULTI
    for free in range(LOOSE):
        sure[0, free] = sure[1, free] = sure[0, multi + free] = free <= safe
        sure[0, LOOSE + free] = sure[1, LOOSE + free] = sure[0, multi + LOOSE + free] = free <= loose


@helper
def _hand_out(trie: TrieArrays, space: WalkSpace, hit: int, safe: int, sure: Any, out: Any, check: Any, subs: int,
              checks: int) -> Any:  # fmt: skip
    """Hand out the items that are alone on their nodes and told at a glance; the other nodes with items go to `rest`.
    Returns the new ends, how many these are, and whether some of them may have to be asked for their bounds."""
    nodes, hits, rest = trie.nodes, space.hits, space.rest
    others, unsure, fits = _int(0), _int(0), subs + hit < out.size and checks + hit < check.size
    for i in range(hit if fits else 0):
        node = _int(hits[_wide(i)])
        first_item, marks = nodes[_wide(2 * node)] >> AT, nodes[_wide(2 * node + 1)]
        code = marks >> CODE & 255
        is_accepted = marks >> ALONE & sure[_wide(code)]
        is_checked = marks >> ALONE & _int(code >> STATUS == CHECK)
        # what stands in the place of the first child; of a tail, whose bits are all set, the number behind its labels
        first_half, is_tail = marks & HALF, -(marks >> TAIL & 1)
        behind_labels = _int(trie.tail[_wide((first_half + (marks >> COUNT & 0xFFFF)) & is_tail)])
        subscription_or_place = (behind_labels & is_tail) | (first_half & ~is_tail)
        out[_wide(subs)] = subscription_or_place
        subs += is_accepted
        check[_wide(checks)] = subscription_or_place
        checks += is_checked
        is_other = marks >> ENDS & (1 - is_accepted) & (1 - is_checked)
        rest[_wide(others)] = node
        others += is_other
        is_unsure = is_other & _int(code > safe)
        unsure |= is_unsure
        prefetch(trie.subscription, first_item & -is_other)
        prefetch(trie.need, first_item & -is_unsure)
    return subs if fits else subs + hit, checks if fits else checks + hit, others, unsure


@helper
def _emit(trie: TrieArrays, rest: Any, others: int, sure: Any, multi: int, bounds: Bounds, scope: Limits,
          out: WalkOutput, subs: int, checks: int) -> Any:  # fmt: skip
    """Hand out the items of the nodes in `rest`; returns the new ends. What is not sure at a glance is asked for its
    bound, once a publication; items of the same need lie together."""
    nodes, need, safe, verdicts = trie.nodes, trie.need, scope.safe, bounds.verdict
    for i in range(others):
        node = _int(rest[_wide(i)])
        begin, end = nodes[_wide(2 * node)] >> AT, nodes[_wide(2 * node + 2)] >> AT
        largest = nodes[_wide(2 * node + 1)] >> CODE & 255  # code of the items
        if (largest <= safe) | ((end - begin == 1) & (sure[_wide(largest)] > 0)):
            subs = _copy(begin, end, trie.subscription, out.subscription, subs)
            begin = end
        while begin < end:
            first_need, same_end = _int(need[begin]), end  # begin .. same_end: items that are told alike
            code, bound = first_need >> NUMBER, first_need & ((1 << NUMBER) - 1)
            is_accepted = sure[code] > 0
            if code <= safe:
                same_end = lower(need, begin + 1, end, (safe + 1) << NUMBER)
            elif need[end - 1] != first_need:
                same_end = lower(need, begin + 1, end, first_need + 1)
            if not is_accepted and code >> STATUS < CHECK:
                if verdicts[bound] >> 2 != scope.mark:
                    verdicts[bound] = scope.mark << 2 | _verdict(bound, bounds, scope)
                verdict = verdicts[bound]
                is_single = code >> STATUS == 0 or multi == 0 or verdict & SINGLE > 0
                is_accepted = verdict & WITHIN > 0 and is_single
            if is_accepted:
                subs = _copy(begin, same_end, trie.subscription, out.subscription, subs)
            else:
                checks = _append_places(trie.before + begin, trie.before + same_end, out.check, checks)
            begin = same_end
    return subs, checks


@called_helper
def _emit_aside(trie: TrieArrays, rest: Any, others: int, sure: Any, multi: int, bounds: Bounds, scope: Limits,
                out: WalkOutput, subs: int, checks: int) -> Any:  # fmt: skip
    """`_emit` where it is seldom called for, and not inlined."""
    return _emit(trie, rest, others, sure, multi, bounds, scope, out, subs, checks)


@helper
def _stars(trie: TrieArrays, space: WalkSpace, hit: int, out: WalkOutput, count: int) -> Any:
    """Add the stars of the nodes reached to those of the publication, and set their bits; returns how many it has.

    Stars are numbered as their rows ascend. An entry of `trie.star` is for BLOCK_ROWS rows: in its upper half, how many
    stars come before these rows; in its lower half, a bit for each row that is one."""
    bits = space.star_bits
    for i in range(hit):
        node = _int(space.hits[_wide(i)])
        block = trie.star[_wide(node >> BLOCK)]
        rows_before = (_int(1) << (node & (BLOCK_ROWS - 1))) - 1
        is_star = trie.nodes[_wide(2 * node + 1)] >> STAR & 1
        star = (block >> BLOCK_ROWS) + count_bits(block & rows_before)
        star &= -is_star  # else its number may be the one behind the last
        out.star_list[_wide(count)] = star
        word, bit = _wide(star >> 6), _wide(star & 63)
        count += is_star & ~_int(bits[word] >> bit)
        bits[word] |= _wide(is_star) << bit
    return count


@helper
def _distinct(out: Any, begin: int, end: int, bits: Any) -> int:
    """Drop repetitions among out[begin:end]; returns the new end. `bits` has a bit for each number, eight a byte, all
    clear before and after: so small that it stays near the processor."""
    distinct_end = begin
    for i in range(begin, end):
        number = out[i]
        mark = np.uint8(1 << (number & 7))
        out[distinct_end] = number
        distinct_end += bits[number >> 3] & mark == 0
        bits[number >> 3] |= mark
    for i in range(begin, distinct_end):
        bits[out[i] >> 3] = 0
    return distinct_end


@helper
def _most_free_objects(r0: int, r1: int, run_most: Any, cap: int) -> int:
    """How many objects may be variable in a clause of one star, under as many different predicates, so that it surely
    has at most `cap` solutions in the runs r0 .. r1? -1 where not even a clause without any has. run_most[r]: the
    largest numbers of objects of one predicate, descending.

        runs * (largest numbers of objects of a run, as many as there are variable objects, multiplied) <= cap
    """
    bound, free, columns = r1 - r0, -1, run_most.shape[1]
    while bound <= cap and free < GENERAL - 1:
        free += 1
        most = 1
        for r in range(r0, r1):
            most = max(most, run_most[r, min(free, columns - 1)])
        if most == 1:
            return GENERAL - 1
        bound *= most
    return free


@helper
def _most_free_objects_loose(r0: int, r1: int, run_most: Any, degree: int, cap: int) -> int:
    """`_most_free_objects` for clauses that are LOOSE: several of the objects may be under the same predicate, and one
    predicate may be variable. `degree`: the most triples of a subject."""
    most = 1
    for r in range(r0, r1):
        most = max(most, run_most[r, 0])
    bound, free = (r1 - r0) * degree, 0
    while bound <= cap and free < GENERAL - 1:
        bound, free = bound * most, free + 1
    return free


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
def _of_publication(p: int, r0: int, r1: int, runs: RunAtoms, batch: Triples, term: Any, tries: Any, bounds: Bounds,
                    space: WalkSpace, out: WalkOutput, scope: Limits, sure: Any) -> Any:  # fmt: skip
    """Hand out what the runs r0 .. r1 of the publication p reach; returns how many nodes, and the new ends. `term`: see
    `_count_objects`."""
    (first, second), several, lists = tries, sure[1], runs.lists
    nodes, mark, t0, t1 = first.nodes, scope.mark, lists.first[r0], lists.first[r1]
    subs, checks, count, stars = _int(out.offset[p]), _int(out.check_offset[p]), _int(0), _int(0)
    nodes_seen, any_multi = _int(0), _int(0)
    if nodes[2] >> AT > 0:  # what the root has, nothing narrows
        space.rest[0] = 0
        _count_objects(t0, t1, batch, term, bounds, mark)
        subs, checks = _emit_aside(first, space.rest, 1, several, 1, bounds, scope, out, subs, checks)
    for r in range(r0, r1):
        hit = subsets(first, lists.atoms, lists.atom_offset[r], lists.atom_offset[r + 1], runs, lists.span_offset[r],
                      lists.span_offset[r + 1], space.atom_bits, space)  # fmt: skip
        nodes_seen += hit
        if r1 - r0 > 1:
            hit, count = fresh(nodes, space, hit, count)
        multi = _int(1 if lists.multi[r] else 0)
        any_multi, sure_of_run = any_multi | multi, sure[multi]
        if first.star.size > 0:
            stars = _stars(first, space, hit, out, stars)
        subs, checks, others, unsure = _hand_out(first, space, hit, scope.safe, sure_of_run, out.subscription,
                                                 out.check, subs, checks)  # fmt: skip
        if unsure > 0:
            _count_objects(t0, t1, batch, term, bounds, mark)
        if others > 0:
            subs, checks = _emit(first, space.rest, others, sure_of_run, multi, bounds, scope, out, subs, checks)
    for i in range(count):
        space.reached_bits[space.reached[i] >> 3] = 0
    if stars > 0:
        _count_objects(t0, t1, batch, term, bounds, mark)
        hit, subs, checks = _walk_stars(second, stars, runs, bounds, scope, sure[any_multi], any_multi, space, out,
                                        subs, checks)  # fmt: skip
        nodes_seen += hit
    return nodes_seen, subs, checks


@kernel
def match(lent: Any, of_runs: Any, publication_run: Any, p0: int, mark: int, cap: int, may_repeat: bool,
          batch: Triples, features: TermFeatures, subscription: Any, ends: Any) -> int:  # fmt: skip
    """The subscriptions and the places to check of the publications from p0 on, whose runs `publication_run` has.

    `lent`, `of_runs`: the addresses of `INDEX` and `RUNS`. `ends`, shape (2, publications + 1) and 0 before: the
    slices of `subscription`, and of what is to be checked. No stamp in the bounds is above `mark`. Returns the first
    publication that found no room, else how many there are.
    """
    runs = RunAtoms(columns.take_runs(of_runs, 0), batch.object, features.low, features.high)
    lists, room = runs.lists, columns.take_room(lent, columns.ROOM)
    out = WalkOutput(subscription, room.check, room.star_list, ends[0], ends[1], room.visited)
    tries = columns.take_trie(lent, columns.FIRST), columns.take_trie(lent, columns.SECOND)
    bounds, space = columns.take_bounds(lent, columns.BOUNDS), columns.take_space(lent, columns.SPACE)
    (first, _), p, has_room, sure = tries, p0, True, room.sure
    while p < publication_run.size - 1 and has_room:
        r0, r1 = _int(publication_run[p]), _int(publication_run[p + 1])
        a0, a1, spans = lists.atom_offset[r0], lists.atom_offset[r1], lists.span_offset[r1] - lists.span_offset[r0]
        out.offset[p + 1], out.check_offset[p + 1] = out.offset[p], out.check_offset[p]
        if _reaches(first, lists.atoms, a0, a1, spans):
            safe, degree = _most_free_objects(r0, r1, lists.most, cap), _int(1)
            for r in range(r0, r1):
                degree = max(degree, _int(lists.first[r + 1] - lists.first[r]))
            _fill_sure(safe, _most_free_objects_loose(r0, r1, lists.most, degree, cap), sure)
            scope = Limits(_int(mark + p + 1), r1 - r0, degree, _int(cap), _int(safe))
            nodes, subs, checks = _of_publication(p, r0, r1, runs, batch, features.term, tries, bounds, space, out,
                                                  scope, sure)  # fmt: skip
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
    return int(p)
