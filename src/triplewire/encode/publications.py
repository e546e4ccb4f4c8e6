"""Parsed publications to a batch: each distinct term once, then flat arrays. The loops over triples are C's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from operator import attrgetter, methodcaller

import numpy as np

from triplewire.encode.batch import BLANK_KIND, IRI_KIND, LITERAL_KIND, Batch, Ids, Offsets
from triplewire.encode.columns import Columns, made, sorted_triples
from triplewire.encode.interning import wide
from triplewire.encode.names import suffix_of
from triplewire.kernels.text import intern as kernels
from triplewire.kernels.text.names import hash_terms
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, BlankNode, Literal, Term

_PAD = b"\0" * 8  # no buffer is empty, and all of it can be read eight bytes at a time
_bytes = methodcaller("encode", "utf-8", "surrogatepass")


def encode(publications: Sequence[Publication]) -> Batch:
    """The publications, in their order."""
    flat: list[Term] = list(chain.from_iterable(chain.from_iterable([p.triples for p in publications])))
    # first each object once, which is quick, and often most of the work, since readers share terms
    objects = dict(zip(map(id, flat), flat, strict=True)).values()
    iris = [term for term in objects if isinstance(term, IRI)]
    labels = [term for term in objects if isinstance(term, BlankNode)]
    literals = [term for term in objects if isinstance(term, Literal)]
    with np.errstate(over="ignore"):  # hashes; only where kernels are not compiled
        columns, numbers = _distinct(_columns(iris, labels, literals))
    number = dict(zip(map(id, chain(iris, labels, literals)), numbers.tolist(), strict=True))
    statements = np.fromiter(map(number.__getitem__, map(id, flat)), np.int32, len(flat)).reshape(-1, 3)
    subject, predicate, object_ = (np.ascontiguousarray(column) for column in statements.T)
    counts = np.array([len(p.triples) for p in publications], np.int64)
    publication = np.repeat(np.arange(len(publications), dtype=np.int32), counts)
    triples = sorted_triples(publication, subject, predicate, object_, len(columns), len(publications))
    return made([p.id for p in publications], triples, columns)


def _columns(iris: list[IRI], labels: list[BlankNode], literals: list[Literal]) -> Columns:
    """The columns of these terms, which need not be distinct."""
    texts: Iterable[str] = chain(
        map(attrgetter("value"), iris), map(attrgetter("label"), labels), map(attrgetter("lexical"), literals)
    )
    encoded = list(map(_bytes, texts))
    offset = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), out=offset[1:])
    text = np.frombuffer(bytearray().join([*encoded, _PAD]), np.uint8)
    kind = np.repeat(np.array([IRI_KIND, BLANK_KIND, LITERAL_KIND], np.uint8), [len(iris), len(labels), len(literals)])
    pairs: list[tuple[str, str]] = list(map(attrgetter("datatype", "language"), literals))
    suffix_of_pair = {pair: suffix_of(Literal("", *pair)) for pair in dict.fromkeys(pairs)}
    suffixes = {suffix: number for number, suffix in enumerate(dict.fromkeys(["", *suffix_of_pair.values()]))}
    number_of_pair = {pair: suffixes[suffix] for pair, suffix in suffix_of_pair.items()}
    suffix = np.zeros(len(encoded), np.int32)
    suffix[len(encoded) - len(literals) :] = np.fromiter(map(number_of_pair.__getitem__, pairs), np.int32, len(pairs))
    suffix_bytes = list(map(_bytes, suffixes))
    suffix_offset = np.cumsum([0, *map(len, suffix_bytes)])
    suffix_text = np.frombuffer(bytearray().join([*suffix_bytes, _PAD]), np.uint8)
    hashes = hash_terms(text, offset[:-1], offset[1:], kind, suffix, suffix_text, suffix_offset)
    return Columns(text, offset[:-1], offset[1:], kind, suffix, tuple(suffixes), hashes)


def _distinct(columns: Columns) -> tuple[Columns, Ids]:
    """Each term once, and which of them each one was."""
    c, size = columns, len(columns)
    rows, numbers = np.empty((size, kernels.COLUMNS), np.uint64), np.empty(size, np.int32)
    slots = np.empty(1 << (2 * size).bit_length(), np.int32)
    first = np.empty(size, np.int64)
    table = kernels.Interned(rows, slots)
    count = kernels.intern_spans(wide(c.text), c.start, c.end, c.kind, c.suffix, table, first, numbers)
    if count < 0:
        count = _intern_by_dictionary(columns, first, numbers)
    f = first[:count]
    return Columns(c.text, c.start[f], c.end[f], c.kind[f], c.suffix[f], c.suffixes, c.hash[f]), numbers


def _intern_by_dictionary(columns: Columns, first: Offsets, numbers: Ids) -> int:
    """As the kernel does it, but slower: for terms that were made to collide."""
    known: dict[tuple[bytes, int, int], int] = {}
    spans = zip(columns.start.tolist(), columns.end.tolist(), strict=True)
    texts = [columns.text[start:end].tobytes() for start, end in spans]
    for row, key in enumerate(zip(texts, columns.kind.tolist(), columns.suffix.tolist(), strict=True)):
        if key not in known:
            first[len(known)] = row
        numbers[row] = known.setdefault(key, len(known))
    return len(known)
