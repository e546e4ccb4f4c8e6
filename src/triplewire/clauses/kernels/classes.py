"""Class tests of the terms of a batch, by the taxonomy and by the publication.

Which sets of tests hold of a term by the taxonomy, and of a node because of the rdf:type triples of its publication?
Used by `triplewire.clauses.node_tests.classes`.

    set of a term = by its text among the names of the taxonomy, as IRI or as literal
    for each rdf:type triple:  set of its class, added to the tests of its subject in this publication
    slices of tests = the tests of the sets, by term; and by publication and subject

A set of tests has a number; set s is the slice offset[s] .. offset[s + 1] of `flat`, ascending. Where a function fills
arrays that may be too small, it returns how much there is and writes nothing beyond their ends.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.shared.columns import Triples
from triplewire.kernels.shared.compiled import called_helper, helper, kernel
from triplewire.kernels.shared.hashing import hash_bytes
from triplewire.kernels.shared.search import sort_numbers
from triplewire.kernels.text.names import Spans, StringTable, find_rows

_IRI, _LITERAL = 1, 3
_ODD = np.uint64(1)  # set in each key of a hash table, so that none is 0, which marks a free slot
_HIGH = np.uint64(33)  # the bits of a hash from here on choose the slot
UNKNOWN = -1
NOT_KNOWN = -1, -1
PUBLICATION, SUBJECT, CLASS, ADDED = 0, 1, 2, 3  # rows of `types`; ADDED: the set of tests that the triple gives
_int: Any = np.int64


@kernel
def static_sets(number: Any, kind: Any, of_iris: Any, of_literals: Any, sets: Any, unknown: Any) -> int:
    """Term -> its set by the taxonomy alone, from what is known of names: `number` is that of the term's text among
    them, or -1. The terms of which it is not known go to `unknown`; returns how many they are."""
    count = 0
    for term in range(number.size):
        number_of_set = _int(0)
        if number[term] >= 0 and (kind[term] == _IRI or kind[term] == _LITERAL):
            number_of_set = _int(of_iris[number[term]]) if kind[term] == _IRI else _int(of_literals[number[term]])
            if number_of_set == UNKNOWN:
                unknown[count] = term
                count += 1
        sets[term] = number_of_set
    return count


@called_helper
def _term_of(text: Any, start: Any, end: Any, kind: Any, name: Any) -> int:
    """The IRI of this name among the terms, or -1."""
    for term in range(start.size):
        if kind[term] == _IRI and end[term] - start[term] == name.size:
            last = name.size - 1  # IRIs of a length differ at the end
            while last >= 0 and text[start[term] + last] == name[last]:
                last -= 1
            if last < 0:
                return term
    return -1


@kernel
def type_triples(triples: Triples, text: Any, start: Any, end: Any, kind: Any, name: Any, types: Any) -> int:
    """The triples whose predicate is the IRI `name` and whose object is an IRI, in their order, to the columns of
    `types`, which has room for all triples; returns how many there are."""
    predicate, count = _term_of(text, start, end, kind, name), 0
    if predicate >= 0:
        for publication in range(triples.offset.size - 1):
            for t in range(triples.offset[publication], triples.offset[publication + 1]):
                if triples.predicate[t] == predicate and kind[triples.object[t]] == _IRI:
                    types[PUBLICATION, count] = publication
                    types[SUBJECT, count] = triples.subject[t]
                    types[CLASS, count] = triples.object[t]
                    count += 1
    return count


@kernel
def spread_sets(sets: Any, offset: Any, flat: Any, term_offset: Any, test: Any) -> Any:
    """The tests of the sets of all terms, as slices of `test`; returns how many there are."""
    count = _int(0)
    for term in range(sets.size):
        begin = offset[sets[term]]
        size = offset[sets[term] + 1] - begin
        term_offset[term] = count
        if count + size <= test.size:
            for i in range(size):
                test[count + i] = flat[begin + i]
        count += size
    term_offset[sets.size] = count
    return count


@kernel
def node_tests(types: Any, count: int, sets: Any, offset: Any, flat: Any, out_offset: Any, term: Any, test: Any) -> int:
    """The tests that hold of nodes because of the first `count` of the columns of `types`, each of which gives its
    subject a set of `sets`: by publication (the slices `out_offset`), term and test, each once. Returns how many there
    are. Columns of one subject of one publication follow each other."""
    used, row = 0, 0
    for publication in range(out_offset.size - 1):
        out_offset[publication] = used
        while row < count and types[PUBLICATION, row] == publication:
            subject, begin, several = types[SUBJECT, row], used, 0
            while row < count and types[PUBLICATION, row] == publication and types[SUBJECT, row] == subject:
                size = offset[sets[row] + 1] - offset[sets[row]]
                if used + size <= test.size:
                    for i in range(size):
                        test[used + i] = flat[offset[sets[row]] + i]
                used += size
                several += 1
                row += 1
            if used <= test.size:
                if several > 1:
                    used = _distinct(test, begin, used)
                for i in range(begin, used):
                    term[i] = subject
    out_offset[out_offset.size - 1] = used
    return used


@called_helper
def _distinct(numbers: Any, begin: int, end: int) -> int:
    """Sort numbers[begin:end] and keep each once; returns where they end then."""
    sort_numbers(numbers, begin, end)
    last = begin
    for i in range(begin, end):
        if i == begin or numbers[i] != numbers[last - 1]:
            numbers[last] = numbers[i]
            last += 1
    return last


@helper
def _slot_of_key(slots: Any, key: Any) -> Any:
    """Where a key, which is odd, is in a hash table of keys, or the free slot (0) where it belongs."""
    mask = slots.size - 1
    slot = np.int64(key >> _HIGH) & mask
    while slots[slot] != 0 and slots[slot] != key:
        slot = (slot + 1) & mask
    return slot


@kernel
def literals_like(kind: Any, text_hash: Any, number: Any, is_name: Any, subject: Any, slots: Any) -> bool:
    """May a literal stand for a node that some triples say something of, those with the subjects of a column? It may
    where its text is a name that the taxonomy has (`is_name` of its number), or has the hash of the text of such a
    node. `slots`: an empty hash table, uint64 zeros, a power of two of them, more than there are subjects."""
    for row in range(subject.size):
        key = text_hash[subject[row]] | _ODD
        slots[_slot_of_key(slots, key)] = key
    for term in range(kind.size):
        if kind[term] == _LITERAL:
            if number[term] >= 0 and is_name[number[term]]:
                return True
            key = text_hash[term] | _ODD
            if slots[_slot_of_key(slots, key)] == key:
                return True
    return False


class TermTexts(NamedTuple):
    """The texts and kinds of the terms of a batch."""

    text: Any
    start: Any
    end: Any
    kind: Any


class KnownSets(NamedTuple):
    """What is known of names: the set of tests of each as an IRI, as a literal, and as a class that a node is said to
    be of (the last one: of a class that is no name); is it a name that the taxonomy has? `offset`, `flat`: the sets."""

    of_iris: Any
    of_literals: Any
    of_classes: Any
    is_name: Any
    offset: Any
    flat: Any


class ClassTests(NamedTuple):
    """Room for the tests of terms, as slices, and for those of the nodes of publications (`node_tests`)."""

    offset: Any
    test: Any
    node_offset: Any
    node_term: Any
    node_test: Any


class Scratch(NamedTuple):
    """Work areas. `slots`: as in `literals_like`, for as many subjects as there are triples."""

    text_hash: Any
    terms: Any  # shape (3, at least terms)
    types: Any  # shape (4, at least triples)
    slots: Any


@called_helper
def known_tests(triples: Triples, texts: TermTexts, names: StringTable, seed: int, known: KnownSets, type_name: Any,
                work: Scratch, out: ClassTests) -> Any:  # fmt: skip
    """How many tests of terms and of nodes there are, where all is known that has to be: else NOT_KNOWN. Those beyond
    the room are not written. `seed`: of the hashes of `names`."""
    text, start, end, kind = texts
    terms, text_hash, types = kind.size, work.text_hash, work.types
    named, sets = work.terms[0][:terms], work.terms[1][:terms]
    for term in range(kind.size):
        text_hash[term] = hash_bytes(text, start[term], end[term], seed)
    find_rows(Spans(text, start, end, kind[:0], named[:0], text[:0], start[:0]), text_hash, names, named)
    if static_sets(named, kind, known.of_iris, known.of_literals, sets, work.terms[2]) > 0:
        return NOT_KNOWN
    last = known.offset.size - 2  # another thread may have found out about later ones meanwhile
    for term in range(kind.size):
        if sets[term] > last:
            return NOT_KNOWN
    count = type_triples(triples, text, start, end, kind, type_name, types)
    for row in range(count):
        added = known.of_classes[named[types[CLASS, row]]]
        # a subject that has a set by the taxonomy takes out of one set what is in another
        if not 0 <= added <= last or sets[types[SUBJECT, row]] > 0:
            return NOT_KNOWN
        types[ADDED, row] = added
    if literals_like(kind, text_hash, named, known.is_name, types[SUBJECT, :count], work.slots):
        return NOT_KNOWN
    tests = spread_sets(sets, known.offset, known.flat, out.offset, out.test)
    nodes = node_tests(types, count, types[ADDED], known.offset, known.flat, out.node_offset, out.node_term,
                       out.node_test)  # fmt: skip
    return _int(tests), _int(nodes)
