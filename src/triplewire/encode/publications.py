"""Parsed publications to a batch: each distinct term once, then flat arrays. The loops over triples are C's."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from itertools import chain, compress
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Batch, Bytes, Ids, Offsets, Terms
from triplewire.encode.columns import PackedBatch, Triples, frozen_batch
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


class _Sorts(NamedTuple):
    """Sorts of terms: what codes say that a term is of them, and the suffixes of their literals."""

    code: Mapping[_Sort, int]  # `kernels.IRI`, `kernels.BLANK`, or `kernels.LITERAL` and the number of the suffix
    suffixes: tuple[str, ...]
    text: bytes  # the suffixes one behind the other
    lengths: list[int]


class _Terms(NamedTuple):
    """Terms, which need not be distinct: their texts in UTF-8, one behind the other, and what they are."""

    data: bytes
    lengths: list[int]
    codes: list[int]
    sorts: _Sorts

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
        said = (_sorts_again if len(distinct) <= _FEW_SORTS else _sorts)(tuple(distinct))
        return cls(data, lengths, list(map(said.code.__getitem__, sorts)), said)


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
    terms, triples, has_text = _columns(_given(given, statement, sizes), given.sorts.suffixes)
    words = words_of_terms(terms.text, terms.start, terms.end, has_text)
    return frozen_batch([p.id for p in publications], triples, terms, words)


def _given(terms: _Terms, statement: Ids, sizes: Offsets) -> kernels.Given:
    """The terms and statements as the kernel takes them."""
    text: Bytes = np.frombuffer(bytearray(terms.data + _PAD), np.uint8)
    suffix_text, suffix_offset = suffix_columns(terms.sorts.suffixes)
    return kernels.Given(
        text, wide(text), np.array(terms.lengths, np.int64), np.array(terms.codes, np.int32), suffix_text,
        suffix_offset, is_plain(terms.sorts.suffixes), statement, sizes,
    )  # fmt: skip


def _sorts(sorts: tuple[_Sort, ...]) -> _Sorts:
    """What is said of terms of these sorts."""
    suffixes, codes = {"": 0}, dict[_Sort, int]()
    for sort in sorts:
        suffix = _suffix_again(sort)
        codes[sort] = (
            suffix if isinstance(suffix, int) else kernels.LITERAL + suffixes.setdefault(suffix, len(suffixes))
        )
    texts = [suffix.encode("utf-8", "surrogatepass") for suffix in suffixes]
    return _Sorts(codes, tuple(suffixes), b"".join(texts), list(map(len, texts)))


def _suffix(sort: _Sort) -> str | int:
    """The suffix of literals of a sort; the code of other terms."""
    datatype, language = sort if isinstance(sort, tuple) else (sort, "")
    return datatype if isinstance(datatype, int) else suffix_of(Literal("", datatype, language))


_sorts_again, _suffix_again = lru_cache(maxsize=256)(_sorts), lru_cache(maxsize=1_024)(_suffix)


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
            np.empty(_MOST_TERMS, np.bool_),
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
    text: Bytes = np.frombuffer(texts.data + texts.sorts.text + _PAD, np.uint8)
    given: Ids = np.frombuffer(array("i", texts.lengths + texts.sorts.lengths + texts.codes), np.int32)
    suffixes = len(texts.sorts.suffixes)
    block = np.empty(alone.block_size(terms, suffixes, literals), np.int64)
    room = _ROOMS.take(_new_room)
    with wrapping():
        done = alone.encode_one(room.table, text, given, suffixes, literals, block)
    _ROOMS.give(room)
    return PackedBatch(publication.id, text, texts.sorts.suffixes, block) if done else None
