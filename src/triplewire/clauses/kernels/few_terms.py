"""The terms of a few publications, looked up in one call and in work areas that stay.

For many, the same is done by `triplewire.clauses.view`, in calls that would take longer than a publication alone.

    term[t] = the constant that the term t is, or -1
    for each term t:  tests of its words, of beginnings of its words, of its classes by the taxonomy, of the number that
                      it reads as, and those that the caller has found; each test once, as a slice of `test`
    node_test = the tests of classes that rdf:type triples add to nodes, by publication
    low, high = the places of its number among the constants, for the range groups of numbers

Who calls: `triplewire.clauses.node_tests.few`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.clauses.kernels.classes import NOT_KNOWN, ClassTests, KnownSets, Scratch, TermTexts, known_tests
from triplewire.clauses.kernels.pairs import add_test, add_word, codes_of_words, end_slice, group_places, number_places
from triplewire.kernels.shared.columns import NUMBER, BatchColumns, Field, Triples, borrowed, places
from triplewire.kernels.shared.compiled import called_helper, helper, kernel
from triplewire.kernels.text.names import Spans, StringTable, find_rows
from triplewire.kernels.text.substring import child_of

MOST_TERMS, MOST_TRIPLES = 1 << 10, 1 << 10
_AT_START = 1  # the node of prefixes where a word begins: all of them have the root's one child
_int: Any = np.int64


class Asked(NamedTuple):
    """What classes and numbers are asked for."""

    seed: Any  # of the hashes of the names of classes
    type_name: Any  # the IRI of rdf:type
    orders: Any  # the range group of the orders of numbers, or -1
    unequal: Any  # that of `!=`, or -1


class WordPostings(NamedTuple):
    """The tests of each word of a table."""

    offset: Any
    test: Any


class PrefixPostings(NamedTuple):
    """Prefixes of words, as nodes of a trie (`triplewire.kernels.text.substring`), and the tests of each."""

    first: Any
    label: Any
    end: Any
    offset: Any
    test: Any


class NumberScale(NamedTuple):
    """The constants that numbers are compared with (`triplewire.clauses.kernels.pairs`), and the tests for `=` of
    each."""

    keys: Any
    inexact: Any
    offset: Any
    test: Any


class Areas(NamedTuple):
    """Work areas: rows and codes of words; `seen`, a number for each test and one more, 0 in between; what
    `triplewire.clauses.kernels.classes.Scratch` and `ClassTests` have; places of numbers; the tests that the caller
    has found, as pairs that ascend by term, `others[0]` of them; and what comes out, as the first places of what
    `triplewire.kernels.shared.columns.TermFeatures` has."""

    row: Any
    code: Any
    seen: Any
    text_hash: Any
    named: Any
    types: Any
    slots: Any
    class_offset: Any
    class_test: Any
    below: Any
    upto: Any
    inexact: Any
    other_term: Any
    other_test: Any
    others: Any
    term: Any
    offset: Any
    test: Any
    node_offset: Any
    node_term: Any
    node_test: Any
    low: Any
    high: Any


_bytes, _ids, _longs, _hashes = Field(np.uint8), Field(np.int32), Field(np.int64), Field(np.uint64)
_by_term = Field(np.int32, (MOST_TERMS,))
_STRINGS = (_bytes, _longs, _bytes, _hashes, _ids)
LENT = (
    (Asked, (NUMBER, _bytes, NUMBER, NUMBER)),
    (StringTable, _STRINGS),
    (StringTable, _STRINGS),
    (WordPostings, (_longs, _ids)),
    (PrefixPostings, (_ids, _bytes, _ids, _longs, _ids)),
    (StringTable, _STRINGS),
    (KnownSets, (_ids, _ids, _ids, _bytes, _longs, _ids)),
    (NumberScale, (Field(np.float64), _longs, _longs, _ids)),
    (Areas, (_ids, _ids, _ids, _hashes, _by_term, Field(np.int32, (MOST_TRIPLES,)), _hashes, _longs, _ids, _ids, _ids,
             _ids, _ids, _ids, _longs, _ids, _longs, _ids, _longs, _ids, _ids, _by_term, _by_term)),
)  # fmt: skip
"""What is in the table of addresses, in its order: what is asked for, constants, words, their tests, prefixes, names of
classes, their sets of tests, the scale of numbers, work areas."""

_ASKED, _CONSTANTS, _WORDS, _POSTINGS, _PREFIXES, _NAMES, _SETS, _SCALE, _AREAS = places(LENT)
(
    _take_asked, _take_constants, _take_words, _take_postings, _take_prefixes, _take_names, _take_sets, _take_scale,
    _take_areas,
) = (borrowed(kind, fields) for kind, fields in LENT)  # fmt: skip


@called_helper
def _find_classes(batch: BatchColumns, asked: Asked, names: StringTable, sets: KnownSets, areas: Areas,
                  node_offset: Any) -> Any:  # fmt: skip
    """The tests of classes: of terms, as slices of `class_test`, and of nodes. Returns how many both are; NOT_KNOWN
    where something has to be found out first."""
    triples, size = Triples(batch.offset, batch.subject, batch.predicate, batch.object), 2
    while size <= 2 * batch.subject.size:
        size *= 2
    slots = areas.slots[:size]
    slots[:] = 0
    texts = TermTexts(batch.text, batch.start, batch.end, batch.kind)
    work = Scratch(areas.text_hash[: batch.start.size], areas.named, areas.types, slots)
    out = ClassTests(areas.class_offset, areas.class_test, node_offset, areas.node_term, areas.node_test)
    return known_tests(triples, texts, names, asked.seed, sets, asked.type_name, work, out)


@called_helper
def _find_numbers(batch: BatchColumns, asked: Asked, scale: NumberScale, areas: Areas) -> Any:
    """The places of numbers; returns how many are not found, as doubles do not tell them from constants."""
    unknown = number_places(batch.kind, batch.number_state, batch.number, scale.keys, scale.inexact, areas.below,
                            areas.upto, areas.inexact)  # fmt: skip
    for group in (asked.orders, asked.unequal):
        if group >= 0:
            has_iris = group == asked.unequal
            group_places(batch.kind, areas.below, areas.upto, has_iris, areas.low[group], areas.high[group])
    return _int(unknown)


@called_helper
def _find_words(batch: BatchColumns, words: StringTable, postings: WordPostings, areas: Areas) -> None:
    """The code of each distinct word (`triplewire.clauses.kernels.pairs.word_codes`)."""
    row = areas.row[: batch.word_start.size]
    strings = Spans(batch.word_text, batch.word_start, batch.word_end, batch.kind[:0], batch.suffix[:0],
                    batch.suffix_text[:0], batch.suffix_offset[:0])  # fmt: skip
    find_rows(strings, batch.word_hash, words, row)
    codes_of_words(row, postings.offset, postings.test, areas.seen.size - 1, areas.code)


@called_helper
def _add_prefixes(batch: BatchColumns, word: int, prefixes: PrefixPostings, mark: int, count: int, areas: Areas) -> Any:
    """Append the tests for beginnings of a word."""
    node = _AT_START
    for place in range(batch.word_start[word], batch.word_end[word]):
        node = child_of(node, batch.word_text[place], prefixes.first, prefixes.label)
        if node < 0:
            break
        pattern = prefixes.end[node]
        if pattern >= 0:
            for i in range(prefixes.offset[pattern], prefixes.offset[pattern + 1]):
                count = add_test(prefixes.test[i], mark, count, areas.seen, areas.test)
    return count


@called_helper
def _join_tests(batch: BatchColumns, postings: WordPostings, prefixes: PrefixPostings, has_classes: bool,
                scale: NumberScale, areas: Areas) -> Any:  # fmt: skip
    """The tests of each term, each once, as slices of `areas.test`; returns how many."""
    terms, count, seen, out, offset, other = _int(batch.start.size), _int(0), areas.seen, areas.test, areas.offset, 0
    for term in range(terms):
        offset[term], mark = count, term + 1
        seen[seen.size - 1] = mark  # the test that words without one ask for
        for i in range(batch.word_offset[term], batch.word_offset[term + 1]):
            word = batch.word_ids[i]
            count = add_word(areas.code[word], mark, postings.offset, postings.test, seen, out, count)
            if prefixes.first.size > 0:
                count = _add_prefixes(batch, word, prefixes, mark, count, areas)
        if has_classes:
            for i in range(areas.class_offset[term], areas.class_offset[term + 1]):
                count = add_test(areas.class_test[i], mark, count, seen, out)
        if scale.test.size > 0 and areas.below[term] >= 0:
            for i in range(scale.offset[areas.below[term]], scale.offset[areas.upto[term]]):
                count = add_test(scale.test[i], mark, count, seen, out)
        while other < areas.others[0] and areas.other_term[other] == term:
            count = add_test(areas.other_test[other], mark, count, seen, out)
            other += 1
        end_slice(offset[term], count, out)
    offset[terms] = count
    return count


@helper
def _forget(count: int, seen: Any, test: Any) -> None:
    """Forget the marks of the tests that were found; where there was no room for all, of every test."""
    if count < test.size:
        seen[seen.size - 1] = 0
        for i in range(count):
            seen[test[i]] = 0
    else:
        seen[:] = 0


@kernel
def look_up(lent: Any, batch: BatchColumns) -> Any:
    """What the terms of a batch are to the clauses, in the work areas; the other range groups of `low` and `high` stay
    as the caller filled them. `lent`: the addresses of `LENT`. A part that is empty is not asked for: prefixes, sets
    of tests of classes, the scale of numbers.

    Returns how many tests there are of terms and of nodes; NOT_KNOWN, twice, where this does not tell, or there is no
    room.
    """
    asked, areas = _take_asked(lent, _ASKED), _take_areas(lent, _AREAS)
    scale, sets = _take_scale(lent, _SCALE), _take_sets(lent, _SETS)
    terms, has_classes, of_classes, nodes = _int(batch.start.size), sets.offset.size > 0, _int(0), _int(0)
    node_offset = areas.node_offset[: batch.offset.size]
    texts = Spans(batch.text, batch.start, batch.end, batch.kind, batch.suffix, batch.suffix_text, batch.suffix_offset)
    find_rows(texts, batch.hash, _take_constants(lent, _CONSTANTS), areas.term[:terms])
    node_offset[:] = 0
    if has_classes:
        of_classes, nodes = _find_classes(batch, asked, _take_names(lent, _NAMES), sets, areas, node_offset)
    unknown = _find_numbers(batch, asked, scale, areas) if scale.keys.size > 0 else _int(0)
    if unknown > 0 or not 0 <= of_classes < areas.class_test.size or nodes >= areas.node_test.size:
        return NOT_KNOWN
    postings = _take_postings(lent, _POSTINGS)
    _find_words(batch, _take_words(lent, _WORDS), postings, areas)
    tests = _join_tests(batch, postings, _take_prefixes(lent, _PREFIXES), has_classes, scale, areas)
    _forget(tests, areas.seen, areas.test)
    return (tests, nodes) if tests < areas.test.size else NOT_KNOWN
