"""One parsed publication to the columns of a batch, in one call and in work areas that stay.

The same as `triplewire.kernels.text.publications` and `triplewire.kernels.text.words` do for many. Terms are found by
the hash that they have anyway. Who calls: `triplewire.encode.publications`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.shared.columns import BATCH_FIELDS, BatchColumns, take_batch
from triplewire.kernels.shared.compiled import called_helper, helper, kernel
from triplewire.kernels.shared.hashing import hash_bytes
from triplewire.kernels.shared.lending import WORDS, Field, borrowed
from triplewire.kernels.text.names import hash_with, same_bytes
from triplewire.kernels.text.numbers import NO, number_of
from triplewire.kernels.text.publications import kind_and_suffix
from triplewire.kernels.text.words import BYTES, DONE, GROWTH, IDS, PAD, Folding, WordTable, cut_texts
from triplewire.kernels.text.words import WORDS as _WORDS
from triplewire.kernels.triples import sort_by_all, write_distinct
from triplewire.model.packed import BLANK_CODE, LITERAL_CODE

STATEMENT_ROWS = 6
COLLIDING = -1, -1, -1, -1
_LANGUAGE = ord("@")  # a suffix that begins with it is a language, and its literals have text
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
    has_text: Any  # distinct term -> has it words?


_ids, _longs = Field(np.int32), Field(np.int64)
LENT = ((Room, (_ids, _ids, _longs, _ids, Field(np.uint64, (2,)), _ids, _ids, _longs, Field(np.bool_))),)
"""What is in the table of addresses."""

_take_room = borrowed(*LENT[0])


(
    _OFFSET, _SUBJECT, _PREDICATE, _OBJECT, _TEXT, _START, _END, _KIND, _SUFFIX, _SUFFIX_TEXT, _SUFFIX_OFFSET, _HASH,
    _NUMBER, _NUMBER_STATE, _WORD_OFFSET, _WORD_IDS, _WORD_TEXT, _WORD_START, _WORD_END, _WORD_HASH,
) = range(len(BATCH_FIELDS))  # fmt: skip


def block_size(terms: int, statements: int, suffixes: int, literals: int) -> int:
    """Numbers of 64 bits that the columns of so many terms, statements, suffixes and bytes of literals take, with the
    table of their addresses. A text of so many bytes has no more words, and is folded to no more than GROWTH times as
    many."""
    return 64 + 6 * terms + 2 * statements + suffixes + 3 * literals


@helper
def _place(block: Any, column: int, at: int, rows: int, size: int) -> int:
    """Put a column of so many rows, of so many bytes each, to an address; returns the next one."""
    block[WORDS * column], block[WORDS * column + 1] = at, rows
    return at + (rows * size + 7) // 8 * 8


@helper
def _lay_out(text: Any, of_terms: int, counts: tuple[int, int, int, int], block: Any) -> None:
    """Write the table of addresses, with the largest number of rows that columns may have. `of_terms`: the bytes of
    all terms, behind which suffixes stand in the text. `counts`: of terms, statements, suffixes, bytes of literals."""
    terms, statements, suffixes, literals = counts
    at = _int(block.ctypes.data) + 8 * WORDS * len(BATCH_FIELDS)  # where the first column begins
    for column in (_START, _END, _HASH, _NUMBER):
        at = _place(block, column, at, terms, 8)
    at = _place(block, _WORD_OFFSET, at, terms + 1, 8)
    at = _place(block, _OFFSET, at, 2, 8)
    at = _place(block, _SUFFIX_OFFSET, at, suffixes + 1, 8)
    at = _place(block, _WORD_START, at, literals + 2, 8)
    _place(block, _WORD_END, block[WORDS * _WORD_START] + 8, literals + 1, 8)  # each word ends where the next begins
    at = _place(block, _WORD_HASH, at, literals + 1, 8)
    for column in (_SUBJECT, _PREDICATE, _OBJECT):
        at = _place(block, column, at, statements, 4)
    at = _place(block, _SUFFIX, at, terms, 4)
    at = _place(block, _WORD_IDS, at, literals + 1, 4)
    at = _place(block, _KIND, at, terms, 1)
    at = _place(block, _NUMBER_STATE, at, terms, 1)
    _place(block, _WORD_TEXT, at, GROWTH * literals + PAD, 1)
    _place(block, _TEXT, _int(text.ctypes.data), text.size, 1)
    _place(block, _SUFFIX_TEXT, _int(text.ctypes.data) + of_terms, text.size - of_terms, 1)


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
def _write_terms(given: Any, terms: int, suffixes: int, columns: BatchColumns, room: Room, mask: int) -> Any:
    """The columns of the distinct terms; returns how many there are. `given`: see `encode_one`."""
    text, number = columns.text, room.number
    start, stop, kind_of, suffix_of, hashes = columns.start, columns.end, columns.kind, columns.suffix, columns.hash
    suffix_text, suffix_offset = columns.suffix_text, columns.suffix_offset
    suffix_offset[0] = 0
    for i in range(suffixes):
        suffix_offset[i + 1] = suffix_offset[i] + given[terms + i]
    count, at = _int(0), _int(0)
    slots = room.slots
    for i in range(mask + 1):
        slots[i] = -1
    for i in range(terms):
        end = at + given[i]
        code = _int(given[terms + suffixes + i])
        kind, suffix = kind_and_suffix(code)
        h = hash_with(hash_bytes(text, at, end, kind), suffix, suffix_text, suffix_offset)
        rows = start, stop, kind_of, suffix_of, hashes
        row = _row(h, at, end, text, kind, suffix, rows, slots, mask, count)
        number[i] = row
        if row == count:
            start[row], stop[row], kind_of[row], suffix_of[row], hashes[row] = at, end, kind, suffix, h
            columns.number_state[row], columns.number[row] = NO, np.nan
            if code != BLANK_CODE:  # which reads as nothing, whatever its label
                columns.number_state[row], columns.number[row] = number_of(text, at, end)
            first = suffix_offset[suffix]
            is_plain = first == suffix_offset[suffix + 1] or suffix_text[first] == _LANGUAGE
            room.has_text[row] = code >= LITERAL_CODE and is_plain
            count += 1
        at = end
    return count


@called_helper
def _write_triples(statement: Any, count: int, room: Room, columns: BatchColumns) -> Any:
    """The triples, in order; returns how many there are. Each three terms are a statement."""
    number, size, work = room.number, statement.size // 3, room.statement
    graph, s, p, o = work[:size], work[size : 2 * size], work[2 * size : 3 * size], work[3 * size : 4 * size]
    order, other = work[4 * size : 5 * size], work[5 * size : 6 * size]
    for i in range(size):
        graph[i], s[i] = 0, number[statement[3 * i]]
        p[i], o[i] = number[statement[3 * i + 1]], number[statement[3 * i + 2]]
    sort_by_all(graph, s, p, o, count, 1, room.sums, order, other)
    return write_distinct(graph, s, p, o, order, columns.offset, columns.subject, columns.predicate, columns.object)


@kernel
def encode_one(lent: Any, text: Any, given: Any, terms: int, suffixes: int, literals: int, block: Any) -> Any:
    """Write the columns of a publication (`triplewire.kernels.shared.columns.BatchColumns`) to a block of memory,
    behind the table of their addresses. Returns how many triples, terms, words and ids of words there are;
    `COLLIDING`, each of them, where too many words collide.

    `text`, `given` and the counts: as `triplewire.model.packed.Packed` has them.
    """
    room = _take_room(lent, 0)
    statement, of_terms = given[2 * terms + suffixes :], _int(0)
    for i in range(terms):
        of_terms += given[i]
    _lay_out(text, of_terms, (terms, statement.size // 3, suffixes, literals), block)
    columns = take_batch(block, 0)
    mask, slots = _int(1), _int(1)
    while mask < 2 * terms:
        mask *= 2
    while slots <= 2 * literals:
        slots *= 2
    count = _write_terms(given, terms, suffixes, columns, room, mask - 1)
    triples = _write_triples(statement, count, room, columns)
    state, entries = room.state, room.words[:slots]
    state[:] = 0
    for i in range(slots):
        entries[i, 1] = 0
    columns.word_start[0] = 0
    table = WordTable(columns.word_text, columns.word_end, columns.word_hash, entries)
    folding = Folding(room.fold, room.expansion)
    done = cut_texts(columns.text, columns.start[:count], columns.end[:count], room.has_text, folding,
                     columns.word_offset, columns.word_ids, table, state)  # fmt: skip
    for column in (_START, _END, _KIND, _SUFFIX, _HASH, _NUMBER, _NUMBER_STATE):
        block[WORDS * column + 1] = count
    for column in (_SUBJECT, _PREDICATE, _OBJECT):
        block[WORDS * column + 1] = triples
    for column in (_WORD_START, _WORD_END, _WORD_HASH):
        block[WORDS * column + 1] = state[_WORDS]
    block[WORDS * _WORD_OFFSET + 1] = count + 1
    block[WORDS * _WORD_IDS + 1] = state[IDS]
    block[WORDS * _WORD_TEXT + 1] = state[BYTES]
    return (_int(triples), _int(count), _int(state[_WORDS]), _int(state[IDS])) if done == DONE else COLLIDING
