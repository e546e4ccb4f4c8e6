"""Matching by constraint tables (their class: `triplewire.select.papers.constraint_tables`).

match, for each publication:
    for each triple v -> w, for each edge of G_M with its label, or any, between v or * and w or *:
        put the triple into the edge's binding table
        with the first one: count each pattern in the list of the edge without constraints for its clause
        for each end of the edge that is *:
        for each pattern in the lists of the end, as far as the constraint of the list's entries holds:
            =  the list of each test that holds of the node        < descending, > ascending: up to the first
            !=  the list, but for those equal to the node          entry that does not hold
            do its other constraints hold of the triple? with the first such triple: count it for its clause
    for each clause of which all patterns in lists are counted: join the binding tables of its edges, and decide

insert, for each pattern: its edge; of its constraints on an end the one by which it is found; its place in the list of
that. In a clause that has such constraints, a pattern without one is in no list. The join asks for it, and for what
constraints say of labels
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.shared.columns import (
    AT_MOST,
    INDEXED,
    RESIDUAL,
    UNEQUAL,
    ClauseColumns,
    TestColumns,
    range_holds,
)
from triplewire.kernels.shared.compiled import called_helper, helper, kernel
from triplewire.kernels.shared.search import lower
from triplewire.select.papers.kernels.joins import (
    BEYOND,
    CANDIDATES,
    LIST_STEPS,
    MARK,
    TRIES,
    Selection,
    Source,
    Tables,
    add_row,
    count_hit,
    decide,
    has_room,
    holds,
    term_at,
)
from triplewire.select.papers.kernels.lists import Lists, Table, append, entered, find, remove

_int: Any = np.int64
_ANY = -1  # in place of a term: a variable


class ConstraintTables(NamedTuple):
    """The graph of all subscriptions, first by label, then by nodes; and lists of patterns by their constraints. An end
    is 2 * edge for its subject, and one more for its object."""

    label: Table  # (label, 0)
    edge: Table  # (row of the label, subject << 32 | object)
    equal: Table  # (end, own number of a test)
    patterns: Lists  # list -> patterns
    ends: Lists  # end -> its lists of < <= > >= !=, each of one range group
    table: Any  # pattern -> edge
    clause: Any  # pattern -> clause
    lead: Any  # pattern -> where among the tests of clauses its leading constraint is, or -1
    list: Any  # pattern -> the list that has it, or -1
    free: Any  # edge -> the list of its patterns of clauses without constraints
    equal_list: Any  # row of `equal` -> list
    has_equal: Any  # end -> has it an = list?
    counted: Any  # pattern -> the mark of the publication that it was last counted for
    wanted: Any  # clause -> how many of its patterns are in lists
    lists: Any  # how many lists there are


# --- insert ----------------------------------------------------------------------------------------------------------


@helper
def _rank_of_kind(test: int, tests: TestColumns) -> Any:
    """How well a constraint leads to its patterns: = before < and >, != last; 0 where nothing looks it up."""
    kind = tests.kind[test]
    return 0 if kind == RESIDUAL else 3 if kind == INDEXED else 1 if tests.op[test] == UNEQUAL else 2


@called_helper
def _lead(i: int, t0: int, t1: int, clauses: ClauseColumns, tests: TestColumns) -> int:
    """The place of the constraint by which a pattern is found, or -1."""
    best, place = _int(0), _int(-1)
    for t in range(t0, t1):
        is_end = False
        for k in range(0, 3, 2):
            is_end = is_end or clauses.pattern[i, k] == -1 - clauses.test_variable[t]
        if is_end and _rank_of_kind(clauses.test[t], tests) > best:
            best, place = _rank_of_kind(clauses.test[t], tests), _int(t)
    return int(place)


@helper
def _new_list(tables: ConstraintTables) -> Any:
    """The number of a list that is empty."""
    tables.lists[0] += 1
    return tables.lists[0] - 1


@called_helper
def _edge(subject: int, label: int, target: int, tables: ConstraintTables) -> int:
    """The edge of a pattern, with variables as _ANY."""
    edges = tables.edge.used[0]
    row = entered(max(label, _ANY), 0, tables.label)
    edge = entered(row, _nodes(max(subject, _ANY), max(target, _ANY)), tables.edge)
    if tables.edge.used[0] > edges:
        tables.free[edge] = _new_list(tables)
    return int(edge)


@helper
def _nodes(subject: int, target: int) -> Any:
    """Two nodes as one number."""
    return (_int(subject) << 32) | (_int(target) & 0xFFFFFFFF)


@helper
def _end(i: int, clauses: ClauseColumns, tables: ConstraintTables) -> Any:
    """The end of a pattern's edge that its leading constraint is about."""
    is_target = clauses.pattern[i, 2] == -1 - clauses.test_variable[tables.lead[i]]
    return 2 * _int(tables.table[i]) + is_target


@kernel
def insert(first: int, last: int, number: Any, kind: Any, clauses: ClauseColumns, tests: TestColumns,
           tables: ConstraintTables) -> None:  # fmt: skip
    """Add the clauses first .. last - 1, but for the ordered lists. number[test]: the matcher's own."""
    for c in range(first, last):
        p0, p1 = clauses.pattern_offset[c], clauses.pattern_offset[c + 1]
        t0, t1 = clauses.test_offset[c], clauses.test_offset[c + 1]
        constrained = _int(0)
        for i in range(p0, p1):
            tables.clause[i], tables.list[i] = c, -1
            tables.lead[i] = -1 if kind[c] == BEYOND else _lead(i, t0, t1, clauses, tests)
            constrained += tables.lead[i] >= 0
        tables.wanted[c] = constrained if constrained > 0 else p1 - p0
        if kind[c] == BEYOND:
            continue
        for i in range(p0, p1):
            pattern = clauses.pattern[i]
            edge = _edge(pattern[0], pattern[1], pattern[2], tables)
            tables.table[i] = edge
            if tables.lead[i] < 0:
                if constrained == 0:
                    tables.list[i] = tables.free[edge]
                    append(tables.list[i], i, tables.patterns)
            elif tests.kind[clauses.test[tables.lead[i]]] == INDEXED:
                end, rows = _end(i, clauses, tables), tables.equal.used[0]
                row = entered(end, number[clauses.test[tables.lead[i]]], tables.equal)
                if tables.equal.used[0] > rows:
                    tables.equal_list[row], tables.has_equal[end] = _new_list(tables), 1
                tables.list[i] = tables.equal_list[row]
                append(tables.list[i], i, tables.patterns)


@kernel
def insert_ordered(patterns: Any, clauses: ClauseColumns, tests: TestColumns, tables: ConstraintTables) -> int:
    """Put patterns into the ordered lists of their constraints; returns how many entries were passed. In the order in
    which the lists end, each comes to the front, and none is passed."""
    steps, lists, lead = _int(0), tables.patterns, tables.lead
    for number in range(patterns.size):
        i = patterns[number]
        test, end = clauses.test[lead[i]], _end(i, clauses, tables)
        entry, its_list = _int(tables.ends.first[end]), _int(-1)
        while entry >= 0 and its_list < 0:
            other = clauses.test[lead[lists.value[lists.first[tables.ends.value[entry]]]]]
            if tests.op[other] == tests.op[test] and tests.group[other] == tests.group[test]:
                its_list = _int(tables.ends.value[entry])
            entry = _int(tables.ends.next[entry])
        if its_list < 0:
            its_list = _int(_new_list(tables))
            append(end, its_list, tables.ends)
        tables.list[i] = its_list
        before, entry = _int(-1), _int(lists.first[its_list])
        while entry >= 0 and _is_before(clauses.test[lead[lists.value[entry]]], test, tests):
            before, entry, steps = entry, _int(lists.next[entry]), steps + 1
        new = lists.used[0]
        lists.value[new], lists.next[new], lists.used[0] = i, entry, new + 1
        if before < 0:
            lists.first[its_list] = new
        else:
            lists.next[before] = new
    return int(steps)


@helper
def _is_before(test: int, other: int, tests: TestColumns) -> Any:
    """Does a constraint stand before another one in their list? Lists of < and <= descend, so that the first one that
    does not hold ends them."""
    return tests.rank[test] > tests.rank[other] if tests.op[test] <= AT_MOST else tests.rank[test] < tests.rank[other]


@kernel
def delete(clause: int, first: int, last: int, tables: ConstraintTables) -> int:
    """Take the patterns of a clause out of their lists; returns how many entries were looked at."""
    steps = 0
    for i in range(first, last):
        if tables.list[i] >= 0:
            steps += remove(tables.list[i], i, tables.patterns)
    tables.wanted[clause] = 0
    return steps


# --- match -----------------------------------------------------------------------------------------------------------


@called_helper
def _reach(entry: int, triple: int, publication: int, source: Source, tables: ConstraintTables, room: Tables,
           selection: Selection) -> None:  # fmt: skip
    """Count the pattern of an entry for its clause, if a triple satisfies all its constraints."""
    i = tables.patterns.value[entry]
    clause = _int(tables.clause[i])
    selection.counts[LIST_STEPS] += 1
    if clause >= source.kind.size or tables.counted[i] == room.state[MARK]:  # it came later, or it is counted
        return
    clauses, is_true = source.clauses, True
    for t in range(clauses.test_offset[clause], clauses.test_offset[clause + 1]):
        for k in range(3):
            if is_true and t != tables.lead[i] and clauses.pattern[i, k] == -1 - clauses.test_variable[t]:
                term = term_at(k, triple, source.triples)
                is_true = holds(clauses.test[t], term, publication, source.tests, source.features)
    if is_true:
        tables.counted[i] = room.state[MARK]
        count_hit(clause, tables.wanted, room)


@called_helper
def _reach_all(number: int, triple: int, publication: int, source: Source, tables: ConstraintTables, room: Tables,
               selection: Selection) -> None:  # fmt: skip
    """The patterns of a list."""
    entry = tables.patterns.first[number]
    while entry >= 0:
        _reach(entry, triple, publication, source, tables, room, selection)
        entry = tables.patterns.next[entry]


@called_helper
def _match_equal(end: int, node: int, triple: int, publication: int, number: Any, source: Source,
                 tables: ConstraintTables, room: Tables, selection: Selection) -> None:  # fmt: skip
    """The = lists of an end: one look-up for each test that holds of the node."""
    features = source.features
    at, last = features.offset[node], features.offset[node + 1]
    for side in range(2):
        values = features.node_test if side == 1 else features.test
        if side == 1:
            last = features.node_offset[publication + 1]
            at = lower(features.node_term, features.node_offset[publication], last, node)
        while at < last and (side == 0 or features.node_term[at] == node):
            selection.counts[TRIES] += 1
            row = find(end, number[values[at]], tables.equal)
            if row >= 0:
                _reach_all(tables.equal_list[row], triple, publication, source, tables, room, selection)
            at += 1


@called_helper
def _match_ordered(end: int, node: int, triple: int, publication: int, source: Source, tables: ConstraintTables,
                   room: Tables, selection: Selection) -> None:  # fmt: skip
    """The ordered lists of an end, each up to the first constraint that does not hold."""
    lists, tests, features = tables.patterns, source.tests, source.features
    place = tables.ends.first[end]
    while place >= 0:
        entry, is_in_order = lists.first[tables.ends.value[place]], True
        while entry >= 0 and is_in_order:
            i = lists.value[entry]
            if tables.clause[i] < source.kind.size:
                test = source.clauses.test[tables.lead[i]]
                low, high = features.low[tests.group[test], node], features.high[tests.group[test], node]
                if range_holds(tests.op[test], tests.rank[test], low, high):
                    _reach(entry, triple, publication, source, tables, room, selection)
                else:
                    selection.counts[LIST_STEPS] += 1
                    is_in_order = tests.op[test] == UNEQUAL and low >= 0
            entry = lists.next[entry]
        place = tables.ends.next[place]


@called_helper
def _match_edge(edge: int, triple: int, publication: int, number: Any, source: Source, tables: ConstraintTables,
                room: Tables, selection: Selection) -> None:  # fmt: skip
    """A triple matches an edge: put it into the edge's table, and find the patterns whose constraints hold."""
    if add_row(edge, triple, room):
        entry = tables.patterns.first[tables.free[edge]]
        while entry >= 0:
            clause = _int(tables.clause[tables.patterns.value[entry]])
            selection.counts[LIST_STEPS] += 1
            if clause < source.kind.size:  # else it came later
                count_hit(clause, tables.wanted, room)
            entry = tables.patterns.next[entry]
    for side in range(2):
        end = 2 * edge + side
        node = source.triples.object[triple] if side == 1 else source.triples.subject[triple]
        if tables.has_equal[end]:
            _match_equal(end, node, triple, publication, number, source, tables, room, selection)
        _match_ordered(end, node, triple, publication, source, tables, room, selection)


@kernel
def match(done: int, most: int, number: Any, source: Source, tables: ConstraintTables, room: Tables,
          selection: Selection) -> int:  # fmt: skip
    """Select for the publications from `done` on. `most`: so many bindings a match may have. Returns the number of the
    first for which there is no room."""
    triples, term = source.triples, source.features.term
    for p in range(done, triples.offset.size - 1):
        if not has_room(p, source, room, selection):
            return int(p)
        for t in range(triples.offset[p], triples.offset[p + 1]):
            for which in range(8):  # bit 0: any label; bit 1: any subject; bit 2: any object
                label = _int(_ANY) if which & 1 else _int(term[triples.predicate[t]])
                subject = _int(_ANY) if which & 2 else _int(term[triples.subject[t]])
                target = _int(_ANY) if which & 4 else _int(term[triples.object[t]])
                is_unknown = (label < 0) != (which & 1 > 0) or (subject < 0) != (which & 2 > 0)
                if is_unknown or (target < 0) != (which & 4 > 0):
                    continue
                selection.counts[TRIES] += 1
                row = find(label, 0, tables.label)
                edge = find(row, _nodes(subject, target), tables.edge) if row >= 0 else -1
                if edge >= 0:
                    _match_edge(edge, t, p, number, source, tables, room, selection)
        for n in range(room.state[CANDIDATES]):
            decide(room.candidate[n], most, p, False, tables.table, source, room, selection)
    return int(triples.offset.size - 1)
