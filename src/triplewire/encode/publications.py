"""Parsed publications to a batch: each distinct term once, in flat arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, groupby
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Batch, Bytes, Ids, Offsets, Sizes, Terms
from triplewire.encode.columns import PackedBatch, Triples, frozen_batch
from triplewire.encode.interning import wide
from triplewire.encode.names import suffix_columns
from triplewire.encode.text import folding, is_plain, words_of_terms
from triplewire.kernels.pool import Pool
from triplewire.kernels.shared.lending import Lent
from triplewire.kernels.text import alone
from triplewire.kernels.text import publications as kernels
from triplewire.kernels.text.intern import COLUMNS
from triplewire.kernels.text.words import STATE
from triplewire.model.packed import BLANK_CODE, IRI_CODE, LITERAL_CODE, PAD, Packed, pack
from triplewire.model.publication import Publication

_MOST_STATEMENTS = 1 << 9  # of one publication that is encoded in work areas that stay
_MOST_BYTES = 1 << 13  # of its literals
_MOST_TERMS = 3 * _MOST_STATEMENTS
_NO_NUMBERS = np.zeros(0, np.int32)


def encode(publications: Sequence[Publication]) -> Batch:
    """The publications, in their order."""
    if len(publications) == 1:
        batch = _encoded_alone(publications[0])
        if batch is not None:
            return batch
    suffixes: dict[str, int] = {"": 0}
    given = _given(list(_parts(publications)), [p.size for p in publications], suffixes)
    terms, triples, has_text = _columns(given, tuple(suffixes))
    words = words_of_terms(terms.text, terms.start, terms.end, has_text)
    return frozen_batch([p.id for p in publications], triples, terms, words)


def _parts(publications: Sequence[Publication]) -> Iterator[Packed]:
    """The triples as bytes: of each publication that was read, and of those together that programs made one behind the
    other, as these often share terms."""
    for packed, run in groupby(publications, attrgetter("packed")):
        if packed is None:
            yield pack(list(chain.from_iterable(p.triples for p in run)))
        else:
            for _ in run:  # the same publication may come again
                yield packed


def _given(parts: Sequence[Packed], sizes: list[int], suffixes: dict[str, int]) -> kernels.Given:
    """The terms and statements of all of these as the kernel takes them. `sizes`: how many statements each publication
    has. Suffixes become numbers of `suffixes`."""
    texts: list[memoryview | bytes] = []
    lengths, codes, statements = [_NO_NUMBERS], [_NO_NUMBERS], [_NO_NUMBERS]
    first = 0
    for part in parts:
        numbers: Ids = np.frombuffer(part.numbers, np.int32)
        terms, behind = part.terms, part.terms + len(part.suffixes)
        own = numbers[behind : behind + terms]
        if len(part.suffixes) > 1:
            places = [suffixes.setdefault(suffix, len(suffixes)) for suffix in part.suffixes]
            own = np.array([IRI_CODE, BLANK_CODE, *(LITERAL_CODE + place for place in places)], np.int32)[own]
        texts.append(memoryview(part.text)[: int(numbers[:terms].sum())])
        lengths.append(numbers[:terms])
        codes.append(own)
        statements.append(numbers[behind + terms :] + first)
        first += terms
    text: Bytes = np.frombuffer(bytearray(b"".join((*texts, PAD))), np.uint8)
    length: Offsets = np.concatenate(lengths, dtype=np.int64)
    names = tuple(suffixes)
    return kernels.Given(
        text, wide(text), length, np.concatenate(codes), *suffix_columns(names), is_plain(names),
        np.concatenate(statements), np.array(sizes, np.int64),
    )  # fmt: skip


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
    packed = publication.packed
    if packed is None:
        if publication.size > _MOST_STATEMENTS:
            return None
        packed = pack(publication.triples)
    terms, statements, literals = packed.terms, packed.statements, packed.literals
    if terms > _MOST_TERMS or statements > _MOST_STATEMENTS or literals > _MOST_BYTES:
        return None
    text: Bytes = np.frombuffer(packed.text, np.uint8)
    given: Ids = np.frombuffer(packed.numbers, np.int32)
    suffixes = len(packed.suffixes)
    block = np.empty(alone.block_size(terms, statements, suffixes, literals), np.int64)
    room = _ROOMS.take(_new_room)
    sizes = alone.encode_one(room.table, text, given, terms, suffixes, literals, block)
    _ROOMS.give(room)
    plain = Sizes(*map(int, sizes))  # they are NumPy's where kernels run as plain Python
    return PackedBatch(publication.id, text, packed.suffixes, block, plain) if plain.triples >= 0 else None
