"""The terms of a few publications, looked up in one call and in work areas that stay: which constants and classes of
some clauses they are, which of their words they have, and where numbers lie among theirs. What else is asked of them
is given.

What is done: `triplewire.kernels.text.names`, `triplewire.kernels.text.substring`, `triplewire.kernels.pairs`,
`triplewire.kernels.classes` and `triplewire.kernels.places`. Who calls: `triplewire.clauses.node_tests.few`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.classes import NOT_KNOWN, ClassTests, KnownSets, Scratch, TermTexts, known_tests
from triplewire.kernels.listed import LONG
from triplewire.kernels.pairs import codes_of_words, tests_of_words
from triplewire.kernels.places import group_places, number_places
from triplewire.kernels.shared.columns import BatchColumns, Triples, take_batch
from triplewire.kernels.shared.compiled import called_helper, helper, kernel
from triplewire.kernels.shared.lending import NUMBER, Field, borrowed, places
from triplewire.kernels.shared.sorting import sort_numbers
from triplewire.kernels.text.names import Spans, StringTable, find_rows
from triplewire.kernels.text.substring import child_of

MOST_TERMS, MOST_TRIPLES = 1 << 10, 1 << 10
WORDS, CLASSES, NUMBERS, PREFIXES = 1, 2, 4, 8
"""Bits of `LookUpQuery.kinds`."""
_AT_START = 1  # the node of prefixes where a word begins: all of them have the root's one child
_int: Any = np.int64
_wide: Any = np.uint64


class LookUpQuery(NamedTuple):
    """What the tests ask for."""

    kinds: Any
    seed: Any  # of the hashes of the names of classes
    type_name: Any  # the IRI of rdf:type
    group: Any  # the range group of the orders of numbers, or -1
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
    """The constants that numbers are compared with (`triplewire.kernels.places`), and the tests for `=` of each."""

    keys: Any
    inexact: Any
    offset: Any
    test: Any


class Areas(NamedTuple):
    """Work areas: rows and codes of words; `seen`, a number for each test and one more, is 0 in between; the slices of
    tests of words; those of classes, as in `ClassTests`; places of numbers; tests that are known before, as pairs that
    ascend by term, `others[0]` of them; and what comes out, which takes the first places of what
    `triplewire.kernels.shared.columns.TermFeatures` has."""

    row: Any
    code: Any
    seen: Any
    no_kinds: Any  # what words have in place of a kind and a suffix
    no_numbers: Any
    no_offsets: Any
    word_offset: Any
    word_test: Any
    text_hash: Any
    named: Any
    types: Any
    slots: Any
    class_offset: Any
    class_test: Any
    below: Any
    upto: Any
    left: Any
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
    (LookUpQuery, (NUMBER, NUMBER, _bytes, NUMBER, NUMBER)),
    (StringTable, _STRINGS),
    (StringTable, _STRINGS),
    (WordPostings, (_longs, _ids)),
    (PrefixPostings, (_ids, _bytes, _ids, _longs, _ids)),
    (StringTable, _STRINGS),
    (KnownSets, (_ids, _ids, _ids, _bytes, _longs, _ids)),
    (NumberScale, (Field(np.float64), _longs, _longs, _ids)),
    (Areas, (_ids, _ids, _ids, _bytes, _ids, _longs, _longs, _ids, _hashes, _by_term,
             Field(np.int32, (MOST_TRIPLES,)), _hashes, _longs, _ids, _ids, _ids, _ids, _ids, _ids, _longs, _ids,
             _longs, _ids, _longs, _ids, _ids, _by_term, _by_term)),
)  # fmt: skip
"""What is in the table of addresses, in its order: what is asked for, constants, words, their tests, prefixes, names of
classes, their sets of tests, the scale of numbers, work areas."""

_ASKED, _CONSTANTS, _WORDS, _POSTINGS, _PREFIXES, _NAMES, _SETS, _SCALE, AREAS = places(LENT)
(
    _take_asked, _take_constants, _take_words, _take_postings, _take_prefixes, _take_names, _take_sets, _take_scale,
    take_areas,
) = (borrowed(kind, fields) for kind, fields in LENT)  # fmt: skip


@called_helper
def _of_words(batch: BatchColumns, words: StringTable, postings: WordPostings, areas: Areas) -> Any:
    """The tests of the words of each term, as slices of `word_test`; returns how many there are."""
    count = batch.word_start.size
    row, code = areas.row[:count], areas.code[:count]
    no_suffixes = areas.no_numbers, areas.no_kinds, areas.no_offsets
    spans = Spans(batch.word_text, batch.word_start, batch.word_end, areas.no_kinds, *no_suffixes)
    find_rows(spans, batch.word_hash, words, row)
    codes_of_words(row, postings.offset, postings.test, areas.seen.size - 1, code)
    return _int(tests_of_words(batch.word_offset, batch.word_ids, code, postings.offset, postings.test, areas.seen,
                               areas.word_offset, areas.word_test))  # fmt: skip


@called_helper
def _of_classes(batch: BatchColumns, asked: LookUpQuery, names: StringTable, sets: KnownSets, areas: Areas,
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


@helper
def _add(test: int, mark: int, count: int, seen: Any, out: Any) -> Any:
    """Append a test unless it is marked as seen; where there is no room, it is only counted."""
    out[_wide(min(count, out.size - 1))] = test
    count += seen[_wide(test)] != mark
    seen[_wide(test)] = mark
    return count


@called_helper
def _add_prefixes(batch: BatchColumns, term: int, prefixes: PrefixPostings, mark: int, count: int, areas: Areas) -> Any:
    """Append the tests for prefixes of a term's words."""
    for i in range(batch.word_offset[term], batch.word_offset[term + 1]):
        word, node = batch.word_ids[i], _AT_START
        for at in range(batch.word_start[word], batch.word_end[word]):
            node = child_of(node, batch.word_text[at], prefixes.first, prefixes.label)
            if node < 0:
                break
            if prefixes.end[node] >= 0:
                for j in range(prefixes.offset[prefixes.end[node]], prefixes.offset[prefixes.end[node] + 1]):
                    count = _add(prefixes.test[j], mark, count, areas.seen, areas.test)
    return count


@called_helper
def _joined(batch: BatchColumns, kinds: int, prefixes: PrefixPostings, scale: NumberScale, areas: Areas) -> Any:
    """The tests of each term, each once, as slices of `areas.test`; returns how many."""
    terms = _int(batch.start.size)
    count, seen, out, offset, other = _int(0), areas.seen, areas.test, areas.offset, 0
    for term in range(terms):
        offset[term], mark = count, terms + 1 + term  # above the marks of words
        if kinds & WORDS:
            for i in range(areas.word_offset[term], areas.word_offset[term + 1]):
                count = _add(areas.word_test[i], mark, count, seen, out)
        if kinds & PREFIXES:
            count = _add_prefixes(batch, term, prefixes, mark, count, areas)
        if kinds & CLASSES:
            for i in range(areas.class_offset[term], areas.class_offset[term + 1]):
                count = _add(areas.class_test[i], mark, count, seen, out)
        if kinds & NUMBERS and scale.test.size > 0 and areas.below[term] >= 0:
            for i in range(scale.offset[areas.below[term]], scale.offset[areas.upto[term]]):
                count = _add(scale.test[i], mark, count, seen, out)
        while other < areas.others[0] and areas.other_term[other] == term:
            count = _add(areas.other_test[other], mark, count, seen, out)
            other += 1
        if count - offset[term] > LONG and count < out.size:
            sort_numbers(out, offset[term], count)
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


@called_helper
def looked_up(lent: Any, batch: BatchColumns) -> Any:
    """See `look_up`."""
    asked, areas, scale = _take_asked(lent, _ASKED), take_areas(lent, AREAS), _take_scale(lent, _SCALE)
    kinds, terms, publications = asked.kinds, _int(batch.start.size), batch.offset.size - 1
    texts = Spans(batch.text, batch.start, batch.end, batch.kind, batch.suffix, batch.suffix_text, batch.suffix_offset)
    find_rows(texts, batch.hash, _take_constants(lent, _CONSTANTS), areas.term[:terms])
    of_classes, nodes, left, node_offset = _int(0), _int(0), _int(0), areas.node_offset[: publications + 1]
    node_offset[:] = 0
    if kinds & CLASSES:
        of_classes, nodes = _of_classes(batch, asked, _take_names(lent, _NAMES), _take_sets(lent, _SETS), areas,
                                        node_offset)  # fmt: skip
    if kinds & NUMBERS:
        left = number_places(batch.kind, batch.number_state, batch.number, scale.keys, scale.inexact, areas.below,
                             areas.upto, areas.left)  # fmt: skip
        if asked.group >= 0:
            group_places(batch.kind, areas.below, areas.upto, False, areas.low[asked.group], areas.high[asked.group])
        if asked.unequal >= 0:
            group_places(batch.kind, areas.below, areas.upto, True, areas.low[asked.unequal], areas.high[asked.unequal])
    if left > 0 or not 0 <= of_classes < areas.class_test.size or nodes >= areas.node_test.size:
        return NOT_KNOWN
    of_words = _int(0)
    if kinds & WORDS:
        of_words = _of_words(batch, _take_words(lent, _WORDS), _take_postings(lent, _POSTINGS), areas)
    tests = of_words
    if of_words < areas.word_test.size:
        tests = _joined(batch, kinds, _take_prefixes(lent, _PREFIXES), scale, areas)
    _forget(tests, areas.seen, areas.test)
    return (tests, nodes) if tests < areas.test.size else NOT_KNOWN


@kernel
def look_up(lent: Any, batch_table: Any) -> Any:
    """What the terms of a batch are to the clauses, in the work areas: `term`, the number of each among the constants,
    or -1; `offset`, the slices of `test`; `node_offset`, those of `node_term` and `node_test`; and the places of
    numbers, `low` and `high`, whose other groups are as they were given. `batch_table`: the addresses of the batch.

    Returns how many tests there are of terms and of nodes; NOT_KNOWN, twice, where this does not tell, or there is no
    room.
    """
    return looked_up(lent, take_batch(batch_table, 0))
