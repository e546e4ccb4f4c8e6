"""Matching by edges that subscriptions share: "naive", "ops" and "gtopss" (their classes:
`triplewire.select.papers.edges`).

match, for each publication:
    for each triple, for each edge of G_M that it matches:     ops:    the edges (*, label, *)
        put the triple into the edge's binding table           gtopss: of all pairs of its nodes and of stars
        with the first one: count the edge for all clauses that have it
    for each clause whose edges are all there: join their binding tables, and decide

naive: one table with all triples, and each clause is joined with it

insert, for each clause: its stars;  for each pattern: the edge, which is added where it is not there
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.shared.compiled import called_helper, helper, kernel
from triplewire.select.papers.kernels.joins import (
    BEYOND,
    CANDIDATES,
    LIST_STEPS,
    TRIES,
    Selection,
    Source,
    Tables,
    add_row,
    count_hit,
    decide,
    has_room,
)
from triplewire.select.papers.kernels.lists import Lists, Table, append, entered, find, remove

OPS, ARBITRARY, GREEDY = 0, 1, 2
"""How nodes become nodes of G_M: all of them one star; constants by themselves, and variables as stars, either in the
order in which they come, or so that the most edges are there already."""

STARS, LABEL_STARS = 0, 1
"""In `Edges.most`: the highest star of a node, and of a label."""

_int: Any = np.int64


class Edges(NamedTuple):
    """The graph G_M of all subscriptions. A node is a term >= 0, or -1 - i for star i."""

    pair: Table  # the first level: pairs of nodes
    edge: Table  # the second level: (row of the pair, label)
    clauses: Lists  # edge -> the clauses that have it
    table: Any  # pattern -> edge
    wanted: Any  # clause -> how many distinct edges it has
    star: Any  # variable -> its star, of the clause at hand
    is_taken: Any  # star -> has a variable of the clause at hand got it?
    most: Any


# --- insert ----------------------------------------------------------------------------------------------------------


@helper
def _node(code: int, star: Any) -> Any:
    """A term, or the star of a variable, which is -1 without one yet."""
    return code if code >= 0 else star[-1 - code]


@helper
def _is_edge(i: int, pattern: Any, edges: Edges) -> Any:
    """Is a pattern an edge of G_M, with the stars that its variables have?"""
    star = edges.star
    pair = find(_node(pattern[i, 0], star), _node(pattern[i, 2], star), edges.pair)
    return pair >= 0 and find(pair, _node(pattern[i, 1], star), edges.edge) >= 0


@helper
def _is_new(first: int, i: int, table: Any) -> Any:
    """Is the edge of a pattern none of those of the patterns from `first` on?"""
    j = first
    while j < i and table[j] != table[i]:
        j += 1
    return j == i


@called_helper
def _share(i: int, pattern: Any, edges: Edges) -> bool:
    """Give nodes of a pattern that have no star yet such stars that it is an edge of G_M. False: there are none."""
    star, is_taken, most = edges.star, edges.is_taken, edges.most[STARS]
    subject, target = -1 - pattern[i, 0], -1 - pattern[i, 2]
    if subject >= 0 and star[subject] != -1:
        subject = -1
    if target >= 0 and (star[target] != -1 or target == subject):
        target = -1
    if (subject < 0 and target < 0) or _node(pattern[i, 1], star) == -1:
        return False
    for s in range(1, (most if subject >= 0 else 1) + 1):
        for t in range(1, (most if target >= 0 else 1) + 1):
            is_free = (subject < 0 or not is_taken[s]) and (target < 0 or not is_taken[t])
            if not is_free or (subject >= 0 and target >= 0 and s == t):
                continue
            if subject >= 0:
                star[subject] = -1 - s
            if target >= 0:
                star[target] = -1 - t
            if _is_edge(i, pattern, edges):
                is_taken[s] |= subject >= 0
                is_taken[t] |= target >= 0
                return True
    if subject >= 0:
        star[subject] = -1
    if target >= 0:
        star[target] = -1
    return False


@called_helper
def map_stars(p0: int, p1: int, variables: int, mode: int, pattern: Any, edges: Edges) -> None:
    """Give each variable of a clause a star. GREEDY: first those of patterns that can be edges of G_M, one after the
    other; any other variable gets the lowest star that is free."""
    star, is_taken = edges.star, edges.is_taken
    for v in range(variables):
        star[v] = -1
    for s in range(is_taken.size):
        is_taken[s] = 0
    is_shared = mode == GREEDY
    while is_shared:
        is_shared = False
        for i in range(p0, p1):
            is_shared = is_shared or _share(i, pattern, edges)
    for i in range(p0, p1):
        for k in range(3):
            v = -1 - pattern[i, k]
            if v >= 0 and star[v] == -1:
                s = 1
                while is_taken[s]:
                    s += 1
                star[v], is_taken[s] = -1 - s, 1


@kernel
def insert(first: int, last: int, mode: int, pattern_offset: Any, pattern: Any, variables: Any, kind: Any,
           edges: Edges) -> None:  # fmt: skip
    """Add the clauses first .. last - 1: algorithm Insert of G-ToPSS, for each edge its place in both tables, and the
    subscription at the end of its list."""
    table, most, star = edges.table, edges.most, edges.star
    for c in range(first, last):
        edges.wanted[c] = 0
        if kind[c] == BEYOND:
            continue
        p0, p1 = pattern_offset[c], pattern_offset[c + 1]
        if mode != OPS:
            map_stars(p0, p1, variables[c], mode, pattern, edges)
        for i in range(p0, p1):
            if mode == OPS:
                table[i] = entered(max(_int(pattern[i, 1]), _int(-1)), 0, edges.edge)
            else:
                subject, target, label = (
                    _node(pattern[i, 0], star),
                    _node(pattern[i, 2], star),
                    _node(pattern[i, 1], star),
                )
                most[STARS] = max(most[STARS], -1 - subject, -1 - target)
                most[LABEL_STARS] = max(most[LABEL_STARS], -1 - label)
                table[i] = entered(entered(subject, target, edges.pair), label, edges.edge)
            if _is_new(p0, i, table):
                edges.wanted[c] += 1
                append(table[i], c, edges.clauses)


@kernel
def delete(clause: int, first: int, last: int, edges: Edges) -> int:
    """Take a clause out of the lists of its edges; returns how many entries were looked at."""
    steps = 0
    for i in range(first, last):
        if _is_new(first, i, edges.table):
            steps += remove(edges.table[i], clause, edges.clauses)
    edges.wanted[clause] = 0
    return steps


# --- match -----------------------------------------------------------------------------------------------------------


@called_helper
def _hit(edge: int, triple: int, source: Source, edges: Edges, room: Tables, selection: Selection) -> None:
    """A triple matches an edge."""
    if add_row(edge, triple, room):
        entry = edges.clauses.first[edge]
        while entry >= 0 and edges.clauses.value[entry] < source.kind.size:  # those behind came later
            count_hit(edges.clauses.value[entry], edges.wanted, room)
            entry = edges.clauses.next[entry]
            selection.counts[LIST_STEPS] += 1


@called_helper
def _match_triple(triple: int, source: Source, edges: Edges, room: Tables, selection: Selection) -> None:
    """Find the edges that a triple v -> w matches: those of the complete graph G'_P over v, w and all stars."""
    term, triples = source.features.term, source.triples
    label = _int(term[triples.predicate[triple]])
    is_loop = triples.subject[triple] == triples.object[triple]
    for i in range(edges.most[STARS] + 1):
        v = -1 - i if i > 0 else _int(term[triples.subject[triple]])
        for j in range(edges.most[STARS] + 1):
            w = -1 - j if j > 0 else _int(term[triples.object[triple]])
            if v == -1 or w == -1 or (i > 0 and i == j and not is_loop):
                continue
            selection.counts[TRIES] += 1
            pair = find(v, w, edges.pair)
            if pair < 0:
                continue
            for k in range(edges.most[LABEL_STARS] + 1):
                selection.counts[TRIES] += 1
                edge = find(pair, -1 - k if k > 0 else label, edges.edge)
                if edge >= 0:
                    _hit(edge, triple, source, edges, room, selection)


@kernel
def match(done: int, most: int, mode: int, source: Source, edges: Edges, room: Tables, selection: Selection) -> int:
    """Select for the publications from `done` on. `most`: so many bindings a match may have. Returns the number of the
    first for which there is no room."""
    triples = source.triples
    for p in range(done, triples.offset.size - 1):
        if not has_room(p, source, room, selection):
            return int(p)
        for t in range(triples.offset[p], triples.offset[p + 1]):
            if mode == OPS:
                label = _int(source.features.term[triples.predicate[t]])
                for turn in range(1 + (label >= 0)):  # any label, and its own
                    edge = find(label if turn > 0 else _int(-1), 0, edges.edge)
                    selection.counts[TRIES] += 1
                    if edge >= 0:
                        _hit(edge, t, source, edges, room, selection)
            else:
                _match_triple(t, source, edges, room, selection)
        for number in range(room.state[CANDIDATES]):
            decide(room.candidate[number], most, p, mode != OPS, edges.table, source, room, selection)
    return int(triples.offset.size - 1)


@kernel
def match_naive(done: int, most: int, table: Any, source: Source, room: Tables, selection: Selection) -> int:
    """The same, one clause after the other, with all triples as the one table of all patterns."""
    triples = source.triples
    for p in range(done, triples.offset.size - 1):
        if not has_room(p, source, room, selection):
            return int(p)
        for t in range(triples.offset[p], triples.offset[p + 1]):
            add_row(0, t, room)
        for c in range(source.kind.size):
            if source.kind[c] != BEYOND:
                decide(c, most, p, False, table, source, room, selection)
    return int(triples.offset.size - 1)
