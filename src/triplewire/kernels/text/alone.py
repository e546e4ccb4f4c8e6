"""One parsed publication to the columns of a batch, in one call and in work areas that stay.

The same as `triplewire.kernels.text.publications` and `triplewire.kernels.text.words` do for many. Terms are found by
the hash that they have anyway. Who calls: `triplewire.encode.publications`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.shared.compiled import called_helper, helper, kernel
from triplewire.kernels.shared.hashing import hash_bytes
from triplewire.kernels.shared.lending import Field, borrowed
from triplewire.kernels.text.names import hash_with, same_bytes
from triplewire.kernels.text.numbers import NO, number_of
from triplewire.kernels.text.publications import BLANK, LITERAL, kind_and_suffix
from triplewire.kernels.text.words import DONE, GROWTH, PAD, Folding, WordTable, cut_texts
from triplewire.kernels.triples import sort_by_all, write_distinct

TERMS, TRIPLES = 0, 1  # places in `counts`, which `encode_one` fills
STATEMENT_ROWS = 6
_int: Any = np.int64
_wide: Any = np.uint64


class Room(NamedTuple):
    """Work areas for a publication of few terms and statements. `state` is that of `cut_texts`."""

    slots: Any
    number: Any  # given term -> the term that it is
    sums: Any  # a number for each term and one more
    statement: Any  # STATEMENT_ROWS numbers a statement
    words: Any  # slots of words
    fold: Any
    expansion: Any
    state: Any  # (`triplewire.kernels.text.words.cut`)
    counts: Any


_ids, _longs = Field(np.int32), Field(np.int64)
LENT = ((Room, (_ids, _ids, _longs, _ids, Field(np.uint64, (2,)), _ids, _ids, _longs, _longs)),)
"""What is in the table of addresses."""

_take_room = borrowed(*LENT[0])


class Places(NamedTuple):
    """Where columns begin in the five arrays of a publication with so many terms, statements and bytes of literals.
    What is used of each is told by `counts`."""

    end: int  # in the whole numbers, behind `start`
    offset: int
    word_offset: int
    bounds: int
    longs: int  # the size of all
    word_hash: int  # in the hashes, behind those of terms
    hashes: int
    subject: int  # in the ids, behind suffixes
    predicate: int
    object: int
    words: int
    ids: int
    state: int  # in the bytes, behind kinds
    has_text: int
    word_text: int
    bytes: int


@helper
def places(terms: int, statements: int, literals: int) -> Places:
    """See `Places`. A text of so many bytes has no more words, and is folded to no more than GROWTH times as many."""
    return Places(
        terms, 2 * terms, 2 * terms + 2, 3 * terms + 3, 3 * terms + 4 + literals,
        terms, terms + literals,
        terms, terms + statements, terms + 2 * statements, terms + 3 * statements,
        terms + 3 * statements + literals + 1,
        terms, 2 * terms, 3 * terms, 3 * terms + GROWTH * literals + PAD,
    )  # fmt: skip


@helper
def _row(h: Any, begin: int, end: int, text: Any, kind: int, suffix: int, rows: Any, slots: Any, mask: int,
         count: int) -> int:  # fmt: skip
    """The number of a term with the hash h; it is `count` for a new one. `rows`: what is written of those before."""
    start, stop, kinds, suffixes, hashes = rows
    at, row = _int(h & _wide(mask)), -1
    while row < 0:
        other = _int(slots[at])
        if other < 0:
            slots[at] = count
            row = count
        elif hashes[other] == h and kinds[other] == kind and suffixes[other] == suffix:
            first = start[other]
            if stop[other] - first == end - begin and same_bytes(text, begin, end, text, first):
                row = other
        at = (at + 1) & mask
    return row


@called_helper
def _write_terms(text: Any, given: Any, suffix_of: Any, columns: Any, room: Room, mask: int) -> Any:
    """The columns of the distinct terms; returns how many there are. `given`: the bytes of each, then their codes."""
    start, stop, kind_of, suffixes, hashes, numbers, states, has_text = columns
    suffix_text, suffix_offset, is_plain = suffix_of
    terms = room.number.size
    count, at = _int(0), _int(0)
    slots = room.slots
    for i in range(mask + 1):
        slots[i] = -1
    for i in range(terms):
        end = at + given[i]
        code = _int(given[terms + i])
        kind, suffix = kind_and_suffix(code)
        h = hash_with(hash_bytes(text, at, end, kind), suffix, suffix_text, suffix_offset)
        rows = start, stop, kind_of, suffixes, hashes
        row = _row(h, at, end, text, kind, suffix, rows, slots, mask, count)
        room.number[i] = row
        if row == count:
            start[row], stop[row], kind_of[row], suffixes[row], hashes[row] = at, end, kind, suffix, h
            states[row], numbers[row] = NO, np.nan
            if code != BLANK:  # which reads as nothing, whatever its label
                states[row], numbers[row] = number_of(text, at, end)
            has_text[row] = code >= LITERAL and is_plain[suffix]
            count += 1
        at = end
    return count


@called_helper
def _write_triples(count: int, room: Room, columns: Any) -> Any:
    """The triples, in order; returns how many there are. Each three of the terms given are a statement. `columns`: the
    offsets, and subjects, predicates and objects."""
    number = room.number
    size = number.size // 3
    work = room.statement
    graph, s, p, o = work[:size], work[size : 2 * size], work[2 * size : 3 * size], work[3 * size : 4 * size]
    order, other = work[4 * size : 5 * size], work[5 * size : 6 * size]
    for i in range(size):
        graph[i], s[i], p[i], o[i] = 0, number[3 * i], number[3 * i + 1], number[3 * i + 2]
    sort_by_all(graph, s, p, o, count, 1, room.sums, order, other)
    return write_distinct(graph, s, p, o, order, *columns)


@kernel
def encode_one(lent: Any, text: Any, given: Any, literals: int, suffix_text: Any, suffix_offset: Any, is_plain: Any,
               longs: Any, hashes: Any, numbers: Any, ids: Any, small: Any) -> bool:  # fmt: skip
    """Write the columns of a publication to where `Places` says, and fill `counts` and `state`. False where too many
    words collide.

    `given`: the bytes of the terms' texts, then their codes (`triplewire.kernels.text.publications`); each three terms
    are a statement. `literals`: the bytes of all literals, or more.
    """
    room = _take_room(lent, 0)
    terms = _int(given.size // 2)
    at = places(terms, terms // 3, literals)
    mask, slots = _int(1), _int(1)
    while mask < 2 * terms:
        mask *= 2
    while slots <= 2 * literals:
        slots *= 2
    start, stop, kind, suffix = longs[: at.end], longs[at.end : at.offset], small[: at.state], ids[: at.subject]
    has_text, own_hash = small[at.has_text : at.word_text], hashes[: at.word_hash]
    room = Room(room.slots, room.number[:terms], room.sums, room.statement, room.words[:slots], room.fold,
                room.expansion, room.state, room.counts)  # fmt: skip
    columns = start, stop, kind, suffix, own_hash, numbers, small[at.state : at.has_text], has_text
    suffix_of = suffix_text, suffix_offset, is_plain
    count = _write_terms(text, given, suffix_of, columns, room, mask - 1)
    triples = (longs[at.offset : at.word_offset], ids[at.subject : at.predicate], ids[at.predicate : at.object],
               ids[at.object : at.words])  # fmt: skip
    room.counts[TERMS] = count
    room.counts[TRIPLES] = _write_triples(count, room, triples)
    room.state[:] = 0
    for i in range(slots):
        room.words[i, 1] = 0
    longs[at.bounds] = 0
    table = WordTable(small[at.word_text :], longs[at.bounds + 1 :], hashes[at.word_hash :], room.words)
    done = cut_texts(text, start[:count], stop[:count], has_text, Folding(room.fold, room.expansion),
                     longs[at.word_offset :], ids[at.words :], table, room.state)  # fmt: skip
    return done == DONE
