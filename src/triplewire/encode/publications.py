"""Parsed publications to a batch: each distinct term once, then flat arrays. The loops over triples are C's."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain
from operator import attrgetter, methodcaller
from typing import NamedTuple

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
from triplewire.model.terms import IRI, BlankNode, Literal, Term

_PAD = b"\0" * 8  # no buffer is empty, and all of it can be read eight bytes at a time
_MOST_TERMS, _MOST_BYTES = 1 << 10, 1 << 13  # of one publication that is encoded in work areas that stay: also of its
# statements; and bytes of its literals
_FEW_PAIRS = 16  # of a datatype and a language, whose suffixes are remembered
_bytes = methodcaller("encode", "utf-8", "surrogatepass")
_value, _label, _lexical = attrgetter("value"), attrgetter("label"), attrgetter("lexical")
_suffix_pair = attrgetter("datatype", "language")


class _Texts(NamedTuple):
    """The texts of terms in UTF-8: those of IRIs first, then of blank nodes, then of literals."""

    data: bytes
    lengths: list[int]
    iris: int  # how many are IRIs
    nodes: int  # how many are IRIs or blank nodes
    suffix: list[int]  # literal -> the number of its suffix
    suffixes: tuple[str, ...]

    @classmethod
    def of(cls, iris: list[IRI], labels: list[BlankNode], literals: list[Literal]) -> _Texts:
        """The texts of these terms."""
        texts: list[str] = [*map(_value, iris), *map(_label, labels), *map(_lexical, literals)]
        whole = "".join(texts)
        if whole.isascii():
            data, lengths = whole.encode("ascii"), list(map(len, texts))
        else:
            encoded = list(map(_bytes, texts))
            data, lengths = b"".join(encoded), list(map(len, encoded))
        pairs: list[tuple[str, str]] = list(map(_suffix_pair, literals))
        distinct = tuple(dict.fromkeys(pairs))
        number_of_pair, suffixes = (_suffixes_again if len(distinct) <= _FEW_PAIRS else _suffixes)(distinct)
        suffix = list(map(number_of_pair.__getitem__, pairs))
        return cls(data, lengths, len(iris), len(iris) + len(labels), suffix, suffixes)


def encode(publications: Sequence[Publication]) -> Batch:
    """The publications, in their order."""
    flat: list[Term] = list(chain.from_iterable(chain.from_iterable([p.triples for p in publications])))
    # first each object once, which is quick, and often most of the work, since readers share terms
    identities = list(map(id, flat))
    objects = dict(zip(identities, flat, strict=True)).values()
    iris = [term for term in objects if isinstance(term, IRI)]
    labels = [term for term in objects if isinstance(term, BlankNode)]
    literals = [term for term in objects if isinstance(term, Literal)]
    place = dict(zip(map(id, chain(iris, labels, literals)), range(len(objects)), strict=True))
    statement = list(map(place.__getitem__, identities))
    texts = _Texts.of(iris, labels, literals)
    if len(publications) == 1:
        batch = _encoded_alone(publications[0].id, texts, statement)
        if batch is not None:
            return batch
    sizes = np.array([len(p.triples) for p in publications], np.int64)
    terms, triples, has_text = _columns(_given(texts, statement, sizes), texts.suffixes)
    words = words_of_terms(terms.text, terms.start, terms.end, has_text)
    return frozen_batch([p.id for p in publications], triples, terms, words)


def _given(texts: _Texts, statement: list[int], sizes: Offsets) -> kernels.Given:
    """The terms and statements as the kernel takes them."""
    text: Bytes = np.frombuffer(bytearray(texts.data + _PAD), np.uint8)
    suffix_text, suffix_offset = suffix_columns(texts.suffixes)
    return kernels.Given(
        text, wide(text), np.array(texts.lengths, np.int64), np.array([texts.iris, texts.nodes], np.int64),
        np.array(texts.suffix, np.int32), suffix_text, suffix_offset, is_plain(texts.suffixes),
        np.array(statement, np.int32), sizes,
    )  # fmt: skip


def _suffixes(pairs: tuple[tuple[str, str], ...]) -> tuple[Mapping[tuple[str, str], int], tuple[str, ...]]:
    """The number of the suffix of literals with each pair of a datatype and a language; and the suffixes."""
    suffix_of_pair = {pair: suffix_of(Literal("", *pair)) for pair in pairs}
    suffixes = {suffix: number for number, suffix in enumerate(dict.fromkeys(["", *suffix_of_pair.values()]))}
    return {pair: suffixes[suffix] for pair, suffix in suffix_of_pair.items()}, tuple(suffixes)


_suffixes_again = lru_cache(maxsize=1_024)(_suffixes)


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
    known: dict[tuple[bytes, int, int], int] = {}
    text, at, kinds = given.text.tobytes(), 0, given.kinds.tolist()
    for row, length in enumerate(given.length.tolist()):
        kind = 1 + sum(row >= behind for behind in kinds)
        suffix = int(given.suffix[row - kinds[1]]) if row >= kinds[1] else 0
        key = text[at : at + length], kind, suffix
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
            np.empty(2 * _MOST_TERMS, np.int32),
            np.empty(_MOST_TERMS, np.int32),
            np.empty(_MOST_TERMS + 1, np.int64),
            np.empty(alone.STATEMENT_ROWS * _MOST_TERMS, np.int32),
            np.empty((4 * _MOST_BYTES, 2), np.uint64),
            *folding(),
            np.zeros(STATE, np.int64),
            np.zeros(2, np.int64),
        ),
    )


_ROOMS: Pool[Lent] = Pool()


def _encoded_alone(id: str, texts: _Texts, statement: list[int]) -> Batch | None:
    """One publication; None where it is large, or made to collide."""
    terms, statements = len(texts.lengths), len(statement) // 3
    literals = sum(texts.lengths[texts.nodes :])
    if max(terms, statements) > _MOST_TERMS or literals > _MOST_BYTES:
        return None
    text: Bytes = np.frombuffer(texts.data + _PAD, np.uint8)
    given: Ids = np.frombuffer(array("i", texts.lengths + texts.suffix + statement), np.int32)
    at = alone.places(terms, statements, literals)
    longs, hashes, numbers = np.empty(at.longs, np.int64), np.empty(at.hashes, np.uint64), np.empty(terms, np.float64)
    ids, small = np.empty(at.ids, np.int32), np.empty(at.bytes, np.uint8)
    suffix_text, suffix_offset = suffix_columns(texts.suffixes)
    sizes = texts.iris, texts.nodes, terms, statements, literals
    with _ROOMS.borrowed(_new_room) as room, wrapping():
        done = alone.encode_one(
            room.table, text, given, sizes, suffix_text, suffix_offset, is_plain(texts.suffixes), longs, hashes,
            numbers, ids, small,
        )  # fmt: skip
        areas: alone.Room = room.parts[0]
        (count, triples), (_, word_ids, words, used) = areas.counts.tolist(), areas.state.tolist()
    if not done:
        return None
    for column in (longs, hashes, numbers, ids, small):
        column.setflags(write=False)  # as `frozen_batch` does; what is cut from them is like them
    return Batch(
        [id],
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
