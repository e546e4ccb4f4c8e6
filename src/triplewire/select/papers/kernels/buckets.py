"""Matching by chains of attributes: "ibroker" (its class: `triplewire.select.papers.chains`).

match, for each publication:
    put each triple into the bucket of its predicate, and of any
    for each bucket with a triple, for each pattern in its list that begins a clause:
        from this pattern on, along NextToMatch: has the bucket of the pattern a triple with its subject, object and
        words? Where all have one, name the clause

insert, for each pattern: its bucket, which is added where it is not there; the end of the bucket's list
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.shared.columns import INDEXED
from triplewire.kernels.shared.compiled import called_helper, kernel
from triplewire.select.papers.kernels.joins import (
    BEYOND,
    COMPARISONS,
    LIST_STEPS,
    MARK,
    TRIES,
    Selection,
    Source,
    Tables,
    add_row,
    has_room,
    holds,
    leave,
)
from triplewire.select.papers.kernels.lists import Lists, Table, append, entered, find, remove

_ANY = -1  # in place of a predicate: a variable
_int: Any = np.int64


class Chains(NamedTuple):
    """The inverted index. A clause is the chain of its patterns, in their order: the next one to match is the next
    row."""

    bucket: Table  # (predicate, 0)
    patterns: Lists  # bucket -> the patterns with this predicate
    table: Any  # pattern -> bucket
    clause: Any  # pattern -> clause
    present: Any  # the buckets that the publication at hand has


@kernel
def insert(first: int, last: int, pattern_offset: Any, pattern: Any, kind: Any, chains: Chains) -> None:
    """Add the clauses first .. last - 1."""
    for c in range(first, last):
        for i in range(pattern_offset[c], pattern_offset[c + 1]):
            chains.clause[i] = c
            if kind[c] != BEYOND:
                chains.table[i] = entered(max(_int(pattern[i, 1]), _int(_ANY)), 0, chains.bucket)
                append(chains.table[i], i, chains.patterns)


@kernel
def delete(clause: int, first: int, last: int, chains: Chains) -> int:
    """Take the patterns of a clause out of their buckets; returns how many entries were looked at."""
    steps = 0
    for i in range(first, last):
        steps += remove(chains.table[i], i, chains.patterns)
    return steps


@called_helper
def _has_triple(i: int, clause: int, publication: int, source: Source, chains: Chains, room: Tables,
                selection: Selection) -> bool:  # fmt: skip
    """Has the bucket of a pattern a triple with its subject, object and words?"""
    clauses, triples, term = source.clauses, source.triples, source.features.term
    if room.stamp[chains.table[i]] != room.state[MARK]:
        return False
    row, subject, target = room.first[chains.table[i]], clauses.pattern[i, 0], clauses.pattern[i, 2]
    while row >= 0:
        triple = room.triple[row]
        node = triples.object[triple]
        selection.counts[COMPARISONS] += 1
        is_such = (subject < 0 or term[triples.subject[triple]] == subject) and (target < 0 or term[node] == target)
        for t in range(clauses.test_offset[clause], clauses.test_offset[clause + 1]):
            if is_such and target == -1 - clauses.test_variable[t]:
                test = clauses.test[t]
                is_word = source.tests.kind[test] == INDEXED
                is_such = not is_word or holds(test, node, publication, source.tests, source.features)
        if is_such:
            return True
        row = room.next[row]
    return False


@kernel
def match(done: int, source: Source, chains: Chains, room: Tables, selection: Selection) -> int:
    """Select for the publications from `done` on; returns the number of the first for which there is no room."""
    clauses, triples, patterns = source.clauses, source.triples, chains.patterns
    for p in range(done, triples.offset.size - 1):
        if not has_room(p, source, room, selection):
            return int(p)
        present = 0
        for t in range(triples.offset[p], triples.offset[p + 1]):
            label = _int(source.features.term[triples.predicate[t]])
            for turn in range(1 + (label >= 0)):  # any, and its own
                selection.counts[TRIES] += 1
                bucket = find(label if turn > 0 else _int(_ANY), 0, chains.bucket)
                if bucket >= 0 and add_row(bucket, t, room):
                    chains.present[present], present = bucket, present + 1
        for number in range(present):
            entry = patterns.first[chains.present[number]]
            while entry >= 0 and chains.clause[patterns.value[entry]] < source.kind.size:
                i = patterns.value[entry]
                clause = chains.clause[i]
                selection.counts[LIST_STEPS] += 1
                if i == clauses.pattern_offset[clause]:
                    last = clauses.pattern_offset[clause + 1]
                    while i < last and _has_triple(i, clause, p, source, chains, room, selection):
                        i += 1
                    if i == last:
                        leave(clause, p, selection)
                entry = patterns.next[entry]
    return int(triples.offset.size - 1)
