"""Parsed publications to a batch: each distinct term once, then flat arrays. The loops over triples are C's."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from operator import attrgetter, methodcaller

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Batch, Bytes, Ids, Offsets, Terms
from triplewire.encode.columns import Triples, frozen_batch
from triplewire.encode.interning import wide
from triplewire.encode.names import suffix_columns, suffix_of
from triplewire.encode.text import is_plain, words_of_terms
from triplewire.kernels.shared.compiled import wrapping
from triplewire.kernels.text import publications as kernels
from triplewire.kernels.text.intern import COLUMNS
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, BlankNode, Literal, Term

_PAD = b"\0" * 8  # no buffer is empty, and all of it can be read eight bytes at a time
_bytes = methodcaller("encode", "utf-8", "surrogatepass")
_suffix_pair = attrgetter("datatype", "language")


def encode(publications: Sequence[Publication]) -> Batch:
    """The publications, in their order."""
    flat: list[Term] = list(chain.from_iterable(chain.from_iterable([p.triples for p in publications])))
    # first each object once, which is quick, and often most of the work, since readers share terms
    objects = dict(zip(map(id, flat), flat, strict=True)).values()
    iris = [term for term in objects if isinstance(term, IRI)]
    labels = [term for term in objects if isinstance(term, BlankNode)]
    literals = [term for term in objects if isinstance(term, Literal)]
    place = dict(zip(map(id, chain(iris, labels, literals)), range(len(objects)), strict=True))
    statement = np.fromiter(map(place.__getitem__, map(id, flat)), np.int32, len(flat))
    sizes = np.array([len(p.triples) for p in publications], np.int64)
    given, suffixes = _given(iris, labels, literals, statement, sizes)
    terms, triples, has_text = _columns(given, suffixes)
    words = words_of_terms(terms.text, terms.start, terms.end, has_text)
    return frozen_batch([p.id for p in publications], triples, terms, words)


def _given(
    iris: list[IRI], labels: list[BlankNode], literals: list[Literal], statement: Ids, sizes: Offsets
) -> tuple[kernels.Given, tuple[str, ...]]:
    """The terms and statements as the kernel takes them, and the suffixes of literals."""
    texts: list[str] = [iri.value for iri in iris]
    texts += [blank.label for blank in labels]
    texts += [literal.lexical for literal in literals]
    whole = "".join(texts)
    if whole.isascii():
        data, lengths = whole.encode("ascii"), list(map(len, texts))
    else:
        encoded = list(map(_bytes, texts))
        data, lengths = b"".join(encoded), list(map(len, encoded))
    text: Bytes = np.frombuffer(bytearray(data + _PAD), np.uint8)
    pairs: list[tuple[str, str]] = list(map(_suffix_pair, literals))
    suffix_of_pair = {pair: _suffix(*pair) for pair in dict.fromkeys(pairs)}
    suffixes = {suffix: number for number, suffix in enumerate(dict.fromkeys(["", *suffix_of_pair.values()]))}
    number_of_pair = {pair: suffixes[suffix] for pair, suffix in suffix_of_pair.items()}
    suffix = np.fromiter(map(number_of_pair.__getitem__, pairs), np.int32, len(pairs))
    distinct = tuple(suffixes)
    kinds = np.array([len(iris), len(iris) + len(labels)], np.int64)
    suffix_text, suffix_offset = suffix_columns(distinct)
    given = kernels.Given(
        text, wide(text), np.array(lengths, np.int64), kinds, suffix, suffix_text, suffix_offset, is_plain(distinct),
        statement, sizes,
    )  # fmt: skip
    return given, distinct


@lru_cache(maxsize=1_024)
def _suffix(datatype: str, language: str) -> str:
    """The suffix of literals of a datatype and a language."""
    return suffix_of(Literal("", datatype, language))


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
