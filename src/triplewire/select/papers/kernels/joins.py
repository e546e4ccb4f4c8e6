"""Binding tables of a publication, and their natural join: G-ToPSS, section 4.2; the cluster paper, section 4.5.

A binding table holds the triples of the publication that match an edge. The patterns of a clause name the tables to
join.

    order:  the smallest table first; then always the smallest of those that share a variable with what is joined so far
    join:   for each row of the first table, for each row of the second, ...: the variables have one value each, and
            their tests hold; either at once, or, as G-ToPSS has it, of each row of the result (`late`)
    decide: none: no match; at most as many as a match may have: it is accepted; else it is left to verification

The papers make the whole table b = b join E.bindingTable at each step; here the rows are made one after the other,
depth first, which needs no memory and ends when one row too many is there. A join that takes too long is left to
verification.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.shared.columns import (
    RANGE_TEST,
    RESIDUAL,
    ClauseColumns,
    TermFeatures,
    TestColumns,
    Triples,
    range_holds,
)
from triplewire.kernels.shared.compiled import called_helper, helper
from triplewire.kernels.shared.search import is_listed, lower

CHECK, ROWS, ASKED, BEYOND = 0, 1, 2, 3
"""What becomes of a clause with a solution. CHECK: it is left to verification; ROWS: it is accepted if it has no more
solutions than a match may have; ASKED: it is accepted. BEYOND: the matcher cannot hold it."""

TRIES, COMPARISONS, LIST_STEPS = 0, 1, 2
"""What is counted: look-ups of an edge, node or attribute; rows that a join tried; entries of lists that were read."""

_MOST_STEPS = 1 << 16  # rows that the join of one clause may try
_int: Any = np.int64


class Source(NamedTuple):
    """Publications and clauses: what selection looks at."""

    clauses: ClauseColumns
    tests: TestColumns
    features: TermFeatures
    triples: Triples
    kind: Any  # clause -> CHECK, ROWS, ASKED or BEYOND
    owner: Any  # clause -> subscription
    beyond: Any  # the clauses that are BEYOND


class Tables(NamedTuple):
    """The binding tables of the publication at hand, as lists of rows, and room for the join."""

    stamp: Any  # table -> the mark of the publication that it is of
    first: Any  # table -> its first row, or -1
    size: Any
    next: Any  # row -> the next row of its table, or -1
    triple: Any
    value: Any  # variable -> its batch term; -1 without one
    depth: Any  # variable -> the depth at which it got it
    order: Any  # depth -> pattern
    at: Any  # depth -> row
    told: Any  # subscription -> the mark of the publication for which it was last accepted
    seen: Any  # clause -> the mark of the publication that `hits` is of
    hits: Any  # clause -> how many of its distinct edges the publication has
    candidate: Any
    state: Any  # the last mark, rows, candidates


MARK, USED_ROWS, CANDIDATES = 0, 1, 2


class Selection(NamedTuple):
    """Room for what is selected, as slices by publication (`triplewire.select.index.Selected`)."""

    end: Any  # shape (2, publications + 1)
    accepted: Any
    checked: Any
    counts: Any  # TRIES, COMPARISONS, LIST_STEPS


@called_helper
def holds(test: int, term: int, publication: int, tests: TestColumns, features: TermFeatures) -> bool:
    """Does a test hold of a term of the batch in a publication? One that nothing looks up is taken to hold: its clause
    is left to verification."""
    kind = tests.kind[test]
    if kind == RESIDUAL:
        return True
    if kind == RANGE_TEST:
        group = tests.group[test]
        return bool(
            range_holds(tests.op[test], tests.rank[test], features.low[group, term], features.high[group, term])
        )
    if is_listed(test, features.test, features.offset[term], features.offset[term + 1]):
        return True
    end = features.node_offset[publication + 1]
    at = lower(features.node_term, features.node_offset[publication], end, term)
    while at < end and features.node_term[at] == term and features.node_test[at] != test:
        at += 1
    return bool(at < end and features.node_term[at] == term)


@helper
def term_at(place: int, triple: int, triples: Triples) -> Any:
    """The subject (0), predicate (1) or object (2) of a triple."""
    term = triples.subject[triple] if place == 0 else triples.predicate[triple]
    return triples.object[triple] if place == 2 else term


@helper
def add_row(table: int, triple: int, room: Tables) -> Any:
    """Put a triple into a binding table. Is it the first one?"""
    is_first, row = room.stamp[table] != room.state[MARK], room.state[USED_ROWS]
    if is_first:
        room.stamp[table], room.first[table], room.size[table] = room.state[MARK], -1, 0
    room.next[row], room.triple[row] = room.first[table], triple
    room.first[table] = row
    room.size[table] += 1
    room.state[USED_ROWS] = row + 1
    return is_first


@helper
def count_hit(clause: int, wanted: Any, room: Tables) -> None:
    """One more of the distinct edges of a clause is there. With the last one it is a candidate."""
    if room.seen[clause] != room.state[MARK]:
        room.seen[clause], room.hits[clause] = room.state[MARK], 0
    room.hits[clause] += 1
    if room.hits[clause] == wanted[clause]:
        room.candidate[room.state[CANDIDATES]] = clause
        room.state[CANDIDATES] += 1


@called_helper
def _order(p0: int, p1: int, table: Any, pattern: Any, room: Tables) -> bool:
    """The patterns p0 .. p1 - 1 in the order of the join. False: a table is empty."""
    value, order, size = room.value, room.order, p1 - p0
    for d in range(size):
        order[d] = p0 + d
        if room.stamp[table[p0 + d]] != room.state[MARK]:
            return False
    for d in range(size):
        best, cost = d, _int(-1)
        for e in range(d, size):
            is_apart = 1
            for k in range(3):
                code = pattern[order[e], k]
                if code < 0 and value[-1 - code] == -2:
                    is_apart = 0
            its_cost = (_int(is_apart) << 32) + room.size[table[order[e]]]
            if cost < 0 or its_cost < cost:
                best, cost = e, its_cost
        order[d], order[best] = order[best], order[d]
        for k in range(3):
            code = pattern[order[d], k]
            if code < 0:
                value[-1 - code] = -2
    for i in range(p0, p1):
        for k in range(3):
            if pattern[i, k] < 0:
                value[-1 - pattern[i, k]] = -1
    return True


@helper
def _release(i: int, d: int, pattern: Any, room: Tables) -> None:
    """Take back the values that pattern i gave at depth d."""
    for k in range(3):
        code = pattern[i, k]
        if code < 0 and room.depth[-1 - code] == d:
            room.value[-1 - code] = -1


@called_helper
def _fits(i: int, d: int, clause: int, row: int, publication: int, late: bool, source: Source, room: Tables) -> bool:
    """Give the variables of pattern i the terms of a row. False: one has another value, or a test does not hold."""
    clauses, triple = source.clauses, room.triple[row]
    for k in range(3):
        term = term_at(k, triple, source.triples)
        code = clauses.pattern[i, k]
        variable = -1 - code
        if code >= 0:
            if source.features.term[term] != code:
                return False
        elif room.value[variable] >= 0:
            if room.value[variable] != term:
                return False
        else:
            room.value[variable], room.depth[variable] = term, d
            if not late and not _tested(variable, clause, publication, source, room):
                return False
    return True


@helper
def _tested(variable: int, clause: int, publication: int, source: Source, room: Tables) -> Any:
    """Do the tests of a variable hold of its value? Of all variables, where it is -1."""
    clauses, is_true = source.clauses, True
    for t in range(clauses.test_offset[clause], clauses.test_offset[clause + 1]):
        if is_true and (variable < 0 or clauses.test_variable[t] == variable):
            term = room.value[clauses.test_variable[t]]
            is_true = holds(clauses.test[t], term, publication, source.tests, source.features)
    return is_true


@called_helper
def solutions(clause: int, most: int, publication: int, late: bool, table: Any, source: Source, room: Tables,
              counts: Any) -> int:  # fmt: skip
    """How many solutions a clause has, at most one more than `most`; -1 where it takes too long. Pattern i is joined
    by table[i]."""
    pattern, order, at = source.clauses.pattern, room.order, room.at
    p0, p1 = source.clauses.pattern_offset[clause], source.clauses.pattern_offset[clause + 1]
    if not _order(p0, p1, table, pattern, room):
        return 0
    count, steps, d, last = _int(0), _int(0), _int(0), p1 - p0 - 1
    at[0] = room.first[table[order[0]]]
    while d >= 0:
        row, i = at[d], order[d]
        if row < 0 or count > most or steps > _MOST_STEPS:
            d -= 1
            if d >= 0:
                _release(order[d], d, pattern, room)
            continue
        at[d] = room.next[row]
        steps += 1
        is_row = _fits(i, d, clause, row, publication, late, source, room)
        if is_row and d < last:
            d += 1
            at[d] = room.first[table[order[d]]]
            continue
        if is_row and (not late or _tested(-1, clause, publication, source, room)):
            count += 1
        _release(i, d, pattern, room)
    counts[COMPARISONS] += steps
    return count if steps <= _MOST_STEPS or count > most else -1


@called_helper
def decide(clause: int, most: int, publication: int, late: bool, table: Any, source: Source, room: Tables,
           selection: Selection) -> None:  # fmt: skip
    """Accept a clause, leave it to verification, or neither, as the join of its tables says. `most`: so many bindings a
    match may have."""
    kind, end = source.kind[clause], selection.end
    limit = most if kind == ROWS else 0
    count = solutions(clause, limit, publication, late, table, source, room, selection.counts)
    if count > 0 and (kind == ASKED or (kind == ROWS and count <= limit)):
        if room.told[source.owner[clause]] != room.state[MARK]:  # of an ASK query several clauses may hold
            room.told[source.owner[clause]] = room.state[MARK]
            selection.accepted[end[0, publication + 1]] = source.owner[clause]
            end[0, publication + 1] += 1
    elif count != 0:
        leave(clause, publication, selection)


@helper
def leave(clause: int, publication: int, selection: Selection) -> None:
    """Leave a clause to verification."""
    selection.checked[selection.end[1, publication + 1]] = clause
    selection.end[1, publication + 1] += 1


@helper
def has_room(publication: int, source: Source, room: Tables, selection: Selection) -> Any:
    """Begin a publication: all its tables are empty, and to check are the clauses that no matcher of this kind can
    hold. False: there might be no room for what it selects."""
    room.state[MARK] += 1
    room.state[USED_ROWS] = room.state[CANDIDATES] = 0
    end, clauses = selection.end, source.kind.size
    for side in range(2):
        end[side, publication + 1] = end[side, publication]
    is_room = (
        end[0, publication] + clauses <= selection.accepted.size
        and end[1, publication] + clauses <= selection.checked.size
    )
    if is_room:
        for number in range(source.beyond.size):
            leave(source.beyond[number], publication, selection)
    return is_room
