"""Matching by a forest of tries: "rtf-m" and "rtf-s" (their class: `triplewire.select.papers.tries`).

match, for each publication:
    for each triple:
        from the roots: to the children with its subject or *, its predicate or *, its object or *
        mark the tuples that end at a node; from there (rtf-m), or from the root of all words (rtf-s):
        go to the children whose word the object has, and on from each; mark the tuples that end there,
            rtf-s: if the node where their structure ends was reached by this triple
    name each clause all of whose tuples are marked

insert, for each tuple: the node of its subject, predicate and object, which is added where it is not there; then, as
long as it has words: the child with one of them, if there is such; else a new one with the next
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.shared.columns import INDEXED, ClauseColumns, TestColumns
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
    count_hit,
    has_room,
    leave,
)
from triplewire.select.papers.kernels.lists import Lists, Table, append, entered, find, remove

PER_STRUCTURE, SHARED = 0, 1
"""Where words are: a trie of them below each structure, or one for all."""

_ROOT, _WORDS, _ANY = -1, -2, -1  # the parents of all roots, and of all words; in place of a term: a variable
_int: Any = np.int64


class Forest(NamedTuple):
    """Nodes are numbered. The query table is `clause` and `wanted`."""

    nodes: Table  # (parent, content) -> node. The content: a term, _ANY, or the own number of a test
    tuples: Lists  # node -> the patterns whose path ends there
    children: Lists  # node + 1 -> its children that are words; 0 -> those of _WORDS
    breadth: Any  # of each such list: how many these are
    structure: Any  # pattern -> the node where its structure ends
    end: Any  # pattern -> the node where its path ends
    clause: Any  # pattern -> clause
    wanted: Any  # clause -> how many patterns it has
    counted: Any  # pattern -> the mark of the publication that it was last marked for
    reached: Any  # node -> the mark of the triple that last reached it
    has_word: Any  # own number of a test -> the mark of the triple whose object it last held of
    stack: Any  # nodes that are still to be looked at
    words: Any  # those of the tuple, or of the object, at hand
    mark: Any  # that of the triple at hand


# --- insert ----------------------------------------------------------------------------------------------------------


@called_helper
def _words_of(i: int, t0: int, t1: int, number: Any, clauses: ClauseColumns, tests: TestColumns, words: Any) -> int:
    """Write the words of a tuple: what is looked up of its object. Returns how many there are."""
    count = 0
    for t in range(t0, t1):
        if clauses.pattern[i, 2] == -1 - clauses.test_variable[t] and tests.kind[clauses.test[t]] == INDEXED:
            words[count] = number[clauses.test[t]]
            count += 1
    return count


@called_helper
def _end_of_words(parent: int, count: int, forest: Forest) -> int:
    """The node where the path of some words ends, from a node on; they go the ways that are there, as far as there are
    any."""
    words, node = forest.words, parent
    for first in range(count):
        chosen, child = first, _int(-1)
        for k in range(first, count):
            if child < 0:
                child = _int(find(node, words[k], forest.nodes))
                chosen = k if child >= 0 else chosen
        words[first], words[chosen] = words[chosen], words[first]
        if child < 0:
            child = _int(entered(node, words[first], forest.nodes))
            append(max(node + 1, 0), child, forest.children)
            forest.breadth[max(node + 1, 0)] += 1
        node = child
    return int(node)


@kernel
def insert(first: int, last: int, mode: int, number: Any, kind: Any, clauses: ClauseColumns, tests: TestColumns,
           forest: Forest) -> None:  # fmt: skip
    """Add the clauses first .. last - 1. number[test]: the matcher's own."""
    for c in range(first, last):
        p0, p1 = clauses.pattern_offset[c], clauses.pattern_offset[c + 1]
        t0, t1 = clauses.test_offset[c], clauses.test_offset[c + 1]
        forest.wanted[c] = p1 - p0
        for i in range(p0, p1):
            forest.clause[i] = c
            if kind[c] == BEYOND:
                continue
            node = _int(_ROOT)
            for k in range(3):
                node = _int(entered(node, max(_int(clauses.pattern[i, k]), _int(_ANY)), forest.nodes))
            forest.structure[i] = node
            count = _words_of(i, t0, t1, number, clauses, tests, forest.words)
            if count > 0:
                node = _int(_end_of_words(_WORDS if mode == SHARED else node, count, forest))
            forest.end[i] = node
            append(node, i, forest.tuples)


@kernel
def delete(clause: int, first: int, last: int, forest: Forest) -> int:
    """Take the tuples of a clause out of their nodes; returns how many entries were looked at."""
    steps = 0
    for i in range(first, last):
        steps += remove(forest.end[i], i, forest.tuples)
    forest.wanted[clause] = 0
    return steps


# --- match -----------------------------------------------------------------------------------------------------------


@called_helper
def _mark(node: int, mode: int, source: Source, forest: Forest, room: Tables, selection: Selection) -> None:
    """Mark the tuples that end at a node."""
    entry = forest.tuples.first[node]
    while entry >= 0:
        i = forest.tuples.value[entry]
        selection.counts[LIST_STEPS] += 1
        if forest.clause[i] >= source.kind.size:  # it came later, and so did those behind it
            break
        is_reached = mode != SHARED or forest.reached[forest.structure[i]] == forest.mark[0]
        if is_reached and forest.counted[i] != room.state[MARK]:
            forest.counted[i] = room.state[MARK]
            count_hit(forest.clause[i], forest.wanted, room)
        entry = forest.tuples.next[entry]


@called_helper
def _words_in(node: int, publication: int, number: Any, source: Source, forest: Forest) -> int:
    """Write what holds of an object: its words. Returns how many there are."""
    features, count = source.features, 0
    for at in range(features.offset[node], features.offset[node + 1]):
        forest.words[count], forest.has_word[number[features.test[at]]] = number[features.test[at]], forest.mark[0]
        count += 1
    last = features.node_offset[publication + 1]
    at = lower(features.node_term, features.node_offset[publication], last, node)
    while at < last and features.node_term[at] == node:
        own = number[features.node_test[at]]
        if forest.has_word[own] != forest.mark[0]:
            forest.words[count], forest.has_word[own] = own, forest.mark[0]
            count += 1
        at += 1
    return count


@called_helper
def _walk_words(
    node: int, count: int, mode: int, source: Source, forest: Forest, room: Tables, selection: Selection
) -> None:
    """Depth first, to the children whose word the object has; they, or its words, are gone through: the fewer."""
    stack, depth = forest.stack, 1
    stack[0] = node
    while depth > 0:
        depth -= 1
        node = stack[depth]
        place = max(node + 1, 0)
        if forest.breadth[place] > count:
            for k in range(count):
                selection.counts[TRIES] += 1
                child = find(node, forest.words[k], forest.nodes)
                if child >= 0:
                    stack[depth], depth = child, depth + 1
                    _mark(child, mode, source, forest, room, selection)
            continue
        entry = forest.children.first[place]
        while entry >= 0:
            child = forest.children.value[entry]
            selection.counts[TRIES] += 1
            if forest.has_word[forest.nodes.key[child, 1]] == forest.mark[0]:
                stack[depth], depth = child, depth + 1
                _mark(child, mode, source, forest, room, selection)
            entry = forest.children.next[entry]


@helper
def _step(node: int, k: int, term: int, which: int, forest: Forest, selection: Selection) -> Any:
    """The child of a node for position k: with the term, or, where bit k of `which` is set, with _ANY; -1 for none."""
    content = _int(_ANY) if which >> k & 1 else _int(term)
    if content < 0 and not which >> k & 1:
        return -1
    selection.counts[TRIES] += 1
    return find(node, content, forest.nodes)


@kernel
def match(done: int, mode: int, number: Any, source: Source, forest: Forest, room: Tables, selection: Selection) -> int:
    """Select for the publications from `done` on; returns the number of the first for which there is no room."""
    triples, term = source.triples, source.features.term
    for p in range(done, triples.offset.size - 1):
        if not has_room(p, source, room, selection):
            return int(p)
        for t in range(triples.offset[p], triples.offset[p + 1]):
            forest.mark[0] += 1
            count = _words_in(triples.object[t], p, number, source, forest)
            is_reached = False
            for which in range(8):
                node = _int(_step(_ROOT, 0, term[triples.subject[t]], which, forest, selection))
                node = _int(_step(node, 1, term[triples.predicate[t]], which, forest, selection)) if node >= 0 else node
                node = _int(_step(node, 2, term[triples.object[t]], which, forest, selection)) if node >= 0 else node
                if node >= 0:
                    is_reached, forest.reached[node] = True, forest.mark[0]
                    _mark(node, mode, source, forest, room, selection)
                    if mode == PER_STRUCTURE and count > 0:
                        _walk_words(node, count, mode, source, forest, room, selection)
            if mode == SHARED and is_reached and count > 0:
                _walk_words(_WORDS, count, mode, source, forest, room, selection)
        for n in range(room.state[CANDIDATES]):
            leave(room.candidate[n], p, selection)
    return int(triples.offset.size - 1)
