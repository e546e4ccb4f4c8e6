"""What a batch says, in the terms of those who wrote it; and that it is built as its docstrings promise."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from triplewire.config import Settings
from triplewire.encode.batch import EXACT_NUMBER, LONG_NUMBER, NO_NUMBER, Batch, Bytes
from triplewire.encode.decode import Decoder
from triplewire.encode.names import WORD_SEED
from triplewire.encode.publications import PADDING, encode_nquads
from triplewire.ir.fulltext import analyse
from triplewire.ir.nodes import Analyzer
from triplewire.ir.values.numbers import lenient_number
from triplewire.kernels.text.names import hash_spans, hash_terms
from triplewire.model.packed import suffix_of
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, BlankNode, Literal, Term, Triple

Said = list[tuple[str, frozenset[Triple]]]


def said(publications: Iterable[Publication]) -> Said:
    """Ids and triples, in order."""
    return [(publication.id, frozenset(publication.triples)) for publication in publications]


def said_by(batch: Batch) -> Said:
    """The same of a batch."""
    decoder = Decoder(batch)
    return said(decoder.publication(number) for number in range(len(batch)))


def check(batch: Batch) -> None:
    """Are the terms distinct, the triples in order, hashes, numbers and words what they have to be?"""
    decoder = Decoder(batch)
    terms = [decoder.term(number) for number in range(len(batch.terms))]
    assert len(set(terms)) == len(terms)
    assert batch.offset[0] == 0
    assert batch.offset[-1] == len(batch.subject) == len(batch.predicate) == len(batch.object)
    for start, end in zip(batch.offset[:-1].tolist(), batch.offset[1:].tolist(), strict=True):
        columns = (column[start:end].tolist() for column in (batch.subject, batch.predicate, batch.object))
        rows = list(zip(*columns, strict=True))
        assert rows == sorted(set(rows))
    _check_terms(batch, terms)
    _check_words(batch, terms)


def _check_terms(batch: Batch, terms: list[Term]) -> None:
    columns = batch.terms
    assert columns.suffixes[0] == ""
    assert len(set(columns.suffixes)) == len(columns.suffixes)
    suffixes = [suffix.encode("utf-8", "surrogatepass") for suffix in columns.suffixes]
    suffix_offset = np.cumsum([0, *map(len, suffixes)])
    suffix_text = np.frombuffer(b"".join(suffixes) or b"\0", np.uint8)
    hashes = hash_terms(
        columns.text, columns.start, columns.end, columns.kind, columns.suffix, suffix_text, suffix_offset
    )
    assert (columns.hash == hashes).all()
    for number, term in enumerate(terms):
        assert columns.suffixes[columns.suffix[number]] == suffix_of(term)
        read = None if isinstance(term, BlankNode) else lenient_number(text_of(term))
        state = columns.number_state[number]
        if state == EXACT_NUMBER:
            assert read is not None
            assert columns.number[number] == float(read)
        else:
            assert state == (NO_NUMBER if read is None else LONG_NUMBER)
            assert np.isnan(columns.number[number])


def _check_words(batch: Batch, terms: list[Term]) -> None:
    words = batch.words
    texts = [
        words.text[start:end].tobytes().decode("utf-8", "surrogatepass")
        for start, end in zip(words.start, words.end, strict=True)
    ]
    assert len(set(texts)) == len(texts)
    if texts:
        assert (words.hash == hash_spans(words.text, words.start, words.end, WORD_SEED)).all()
    assert len(words.offset) == len(terms) + 1
    assert words.offset[-1] == len(words.ids)
    for number, term in enumerate(terms):
        found = words.ids[words.offset[number] : words.offset[number + 1]]
        expected = analyse(term.lexical, Analyzer()) if isinstance(term, Literal) and term.has_text else ()
        assert tuple(texts[word] for word in found) == expected


def text_of(term: Term) -> str:
    """IRI, label, or lexical form."""
    return term.value if isinstance(term, IRI) else term.label if isinstance(term, BlankNode) else term.lexical


def encoded(data: bytes | Bytes, document: str, settings: Settings) -> Batch | None:
    """The bytes of a document, as the engine has them encoded."""
    return encode_nquads(np.frombuffer(bytearray(bytes(data) + PADDING), np.uint8), document, settings)
