"""Parsed publications to a batch: each distinct term once, then flat arrays. The loops over triples are C's."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from itertools import chain, compress
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Batch, Bytes, Ids, Offsets, Terms, Words
from triplewire.encode.columns import Triples, frozen_batch
from triplewire.encode.interning import wide
from triplewire.encode.names import suffix_columns, suffix_of
from triplewire.encode.text import folding, is_plain, words_of_terms
from triplewire.kernels.pool import Pool
from triplewire.kernels.shared.compiled import wrapping
from triplewire.kernels.shared.lending import Lent
from triplewire.kernels.text import alone
from triplewire.kernels.text import publications as kernels
from triplewire.kernels.text.intern import COLUMNS
from triplewire.kernels.text.words import STATE
from triplewire.model.publication import Publication
from triplewire.model.terms import LANG_STRING, Literal, Term, sort_of, tag_of, text_of

_PAD = b"\0" * 8  # no buffer is empty, and all of it can be read eight bytes at a time
_MOST_STATEMENTS, _MOST_BYTES = 1 << 9, 1 << 13  # of one publication that is encoded in work areas that stay; bytes of
# its literals
_MOST_TERMS = 3 * _MOST_STATEMENTS
_FEW_SORTS = 16  # of terms, whose codes are remembered
_Sort: TypeAlias = "str | int | tuple[str | int, str]"
"""What `sort_of` says of a term, with its language where a term has one."""


class _Terms(NamedTuple):
    """Terms, which need not be distinct: their texts in UTF-8, one behind the other, and what they are."""

    data: bytes
    lengths: list[int]
    codes: list[int]  # `kernels.IRI`, `kernels.BLANK`, or `kernels.LITERAL` and the number of the suffix
    suffixes: tuple[str, ...]

    @classmethod
    def of(cls, terms: Collection[Term]) -> _Terms:
        """These. The loops over them are C's."""
        texts = list(map(text_of, terms))
        whole = "".join(texts)
        data = whole.encode("utf-8", "surrogatepass")
        if len(data) == len(whole):
            lengths = list(map(len, texts))
        else:
            lengths = [len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass")) for text in texts]
        sorts: list[_Sort] = list(map(sort_of, terms))
        distinct = dict.fromkeys(sorts)
        if LANG_STRING in distinct:  # few have another tag than the others
            sorts = list(zip(map(sort_of, terms), map(tag_of, terms), strict=True))
            distinct = dict.fromkeys(sorts)
        code_of_sort, suffixes = (_codes_again if len(distinct) <= _FEW_SORTS else _codes)(tuple(distinct))
        return cls(data, lengths, list(map(code_of_sort.__getitem__, sorts)), suffixes)


def encode(publications: Sequence[Publication]) -> Batch:
    """The publications, in their order."""
    if len(publications) == 1:
        batch = _encoded_alone(publications[0])
        if batch is not None:
            return batch
    flat: list[Term] = list(chain.from_iterable(chain.from_iterable([p.triples for p in publications])))
    # first each object once, which is quick, and often most of the work, since readers share terms
    identities = list(map(id, flat))
    objects = dict(zip(identities, flat, strict=True))
    place = dict(zip(objects, range(len(objects)), strict=True))
    given, sizes = _Terms.of(objects.values()), np.array([len(p.triples) for p in publications], np.int64)
    statement = np.array(list(map(place.__getitem__, identities)), np.int32)
    terms, triples, has_text = _columns(_given(given, statement, sizes), given.suffixes)
    words = words_of_terms(terms.text, terms.start, terms.end, has_text)
    return frozen_batch([p.id for p in publications], triples, terms, words)


def _given(terms: _Terms, statement: Ids, sizes: Offsets) -> kernels.Given:
    """The terms and statements as the kernel takes them."""
    text: Bytes = np.frombuffer(bytearray(terms.data + _PAD), np.uint8)
    suffix_text, suffix_offset = suffix_columns(terms.suffixes)
    return kernels.Given(
        text, wide(text), np.array(terms.lengths, np.int64), np.array(terms.codes, np.int32), suffix_text,
        suffix_offset, is_plain(terms.suffixes), statement, sizes,
    )  # fmt: skip


def _codes(sorts: tuple[_Sort, ...]) -> tuple[Mapping[_Sort, int], tuple[str, ...]]:
    """The code of terms of each of these sorts (`_Terms.codes`); and the suffixes."""
    suffixes, codes = {"": 0}, dict[_Sort, int]()
    for sort in sorts:
        datatype, language = sort if isinstance(sort, tuple) else (sort, "")
        if isinstance(datatype, int):
            codes[sort] = datatype
        else:
            suffix = suffix_of(Literal("", datatype, language))
            codes[sort] = kernels.LITERAL + suffixes.setdefault(suffix, len(suffixes))
    return codes, tuple(suffixes)


_codes_again = lru_cache(maxsize=1_024)(_codes)


def _columns(given: kernels.Given, suffixes: tuple[str, ...]) -> tuple[Terms, Triples, NDArray[np.bool_]]:
    """The distinct terms, the triples, and which of the terms have text."""
    size, statements, publications = len(given.length), len(given.statement) // 3, len(given.size)
    work = kernels.Work(
        np.empty(size, np.int32),
        np.empty(size, np.int32),
        np.empty(size + 1, np.int64),
        np.empty((size, COLUMNS), np.uint64),
        np.empty(1 << (2 * size).bit_length(), np.int32),
        np.empty(max(size, publications) + 1, np.int64),
        np.empty((kernels.STATEMENT_ROWS, statements), np.int32),
    )
    out = kernels.Encoded(
        np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.uint8), np.empty(size, np.int32),
        np.empty(size, np.uint64), np.empty(size, np.float64), np.empty(size, np.uint8), np.empty(size, np.bool_),
        np.empty(publications + 1, np.int64), np.empty(statements, np.int32), np.empty(statements, np.int32),
        np.empty(statements, np.int32),
    )  # fmt: skip
    with wrapping():
        count = kernels.number_terms(given, work)
        if count < 0:
            count = _number_by_dictionary(given, work)
        triples = kernels.encode(given, count, work, out)
    terms = Terms(
        given.text, out.start[:count], out.end[:count], out.kind[:count], out.suffix[:count], suffixes,
        out.hash[:count], out.number[:count], out.number_state[:count],
    )  # fmt: skip
    columns = out.subject[:triples], out.predicate[:triples], out.object[:triples]
    return terms, Triples(out.offset, *columns), out.has_text[:count]


def _number_by_dictionary(given: kernels.Given, work: kernels.Work) -> int:
    """As the kernel does it, but slower: for terms that were made to collide."""
    known: dict[tuple[bytes, int], int] = {}
    text, at = given.text.tobytes(), 0
    for row, (length, code) in enumerate(zip(given.length.tolist(), given.code.tolist(), strict=True)):
        key = text[at : at + length], code
        if key not in known:
            work.first[len(known)] = row
        work.number[row] = known.setdefault(key, len(known))
        at += length
    return len(known)


# --- one publication alone -------------------------------------------------------------------------------------------


def _new_room() -> Lent:
    """The work areas for one publication."""
    return Lent(
        alone.LENT,
        alone.Room(
            np.empty(4 * _MOST_TERMS, np.int32),
            np.empty(_MOST_TERMS, np.int32),
            np.empty(_MOST_TERMS + 1, np.int64),
            np.empty(alone.STATEMENT_ROWS * _MOST_STATEMENTS, np.int32),
            np.empty((4 * _MOST_BYTES, 2), np.uint64),
            *folding(),
            np.zeros(STATE, np.int64),
            np.zeros(2, np.int64),
        ),
    )


_ROOMS: Pool[Lent] = Pool()


def _encoded_alone(publication: Publication) -> Batch | None:
    """One publication; None where it is large, or made to collide."""
    statements = len(publication.triples)
    if statements > _MOST_STATEMENTS:
        return None
    texts, terms = _Terms.of(list(chain.from_iterable(publication.triples))), 3 * statements
    literals = sum(compress(texts.lengths, texts.codes))  # and blank nodes
    if literals > _MOST_BYTES:
        return None
    text: Bytes = np.frombuffer(texts.data + _PAD, np.uint8)
    given: Ids = np.frombuffer(array("i", texts.lengths + texts.codes), np.int32)
    at = alone.places(terms, statements, literals)
    longs, hashes, numbers = np.empty(at.longs, np.int64), np.empty(at.hashes, np.uint64), np.empty(terms, np.float64)
    ids, small = np.empty(at.ids, np.int32), np.empty(at.bytes, np.uint8)
    suffix_text, suffix_offset = suffix_columns(texts.suffixes)
    room = _ROOMS.take(_new_room)
    with wrapping():
        done = alone.encode_one(
            room.table, text, given, literals, suffix_text, suffix_offset, is_plain(texts.suffixes), longs, hashes,
            numbers, ids, small,
        )  # fmt: skip
    areas: alone.Room = room.parts[0]
    (count, triples), (_, word_ids, words, used) = areas.counts.tolist(), areas.state.tolist()
    _ROOMS.give(room)
    if not done:
        return None
    for column in (longs, hashes, numbers, ids, small):
        column.setflags(write=False)  # as `frozen_batch` does; what is cut from them is like them
    return Batch(
        [publication.id],
        longs[at.offset : at.word_offset],
        ids[at.subject : at.subject + triples],
        ids[at.predicate : at.predicate + triples],
        ids[at.object : at.object + triples],
        Terms(
            text, longs[:count], longs[at.end : at.end + count], small[:count], ids[:count], texts.suffixes,
            hashes[:count], numbers[:count], small[at.state : at.state + count],
        ),
        Words(
            longs[at.word_offset : at.word_offset + count + 1], ids[at.words : at.words + word_ids],
            small[at.word_text : at.word_text + used], longs[at.bounds : at.bounds + words],
            longs[at.bounds + 1 : at.bounds + 1 + words], hashes[at.word_hash : at.word_hash + words],
        ),
    )  # fmt: skip
