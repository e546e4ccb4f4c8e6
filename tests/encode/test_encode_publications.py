"""Parsed publications to a batch, and back."""

from __future__ import annotations

import gzip
import pickle
from collections.abc import Sequence

import pytest
from decoded import check, said, said_by
from documents import colliding
from hypothesis import given, settings
from hypothesis import strategies as st

import shared_data
from amounts import examples
from any_triples import TEXTS, TRIPLES
from triplewire.encode.batch import BLANK_KIND
from triplewire.encode.decode import Decoder
from triplewire.encode.publications import encode
from triplewire.model.packed import pack
from triplewire.model.publication import Publication
from triplewire.model.terms import (
    IRI,
    LANG_STRING,
    XSD,
    BlankNode,
    Literal,
    Term,
    Triple,
    made_blank,
    made_iri,
    made_literal,
)
from triplewire.read import read_document

S, P = IRI("a:s"), IRI("a:p")


def _publication(name: str, objects: Sequence[Term]) -> Publication:
    return Publication(name, tuple(Triple(S, P, term) for term in objects))


ALIKE: list[Term] = [
    made_iri("x"),
    BlankNode("x"),
    Literal("x"),
    Literal.tagged("x", "en"),
    Literal.tagged("x", "de"),
    Literal("x", XSD + "int"),
    made_literal("x", LANG_STRING),
    made_literal("x", "@en"),
    made_literal("x", "^@en"),
    made_literal("x", ""),
    made_literal("x", "^"),
    made_literal("x", "x"),
    Literal("x\udc80"),
    Literal("x\ufffd"),
    made_iri("\udc80"),
    made_iri("\ud800"),
    Literal(""),
    made_iri(""),
]


def test_terms_that_look_alike_stay_apart() -> None:
    batch = encode([_publication("one", ALIKE), _publication("none", []), _publication("two", ALIKE[::-1])])
    assert said_by(batch) == said([_publication("one", ALIKE), _publication("none", []), _publication("two", ALIKE)])
    assert len(batch.terms) == len(ALIKE) + 2
    check(batch)


def test_nothing() -> None:
    for some in ([], [_publication("x", [])]):
        batch = encode(some)
        assert len(batch) == len(some)
        assert len(batch.terms) == len(batch.words) == 0
        check(batch)


def test_equal_terms_of_several_objects() -> None:
    some = [_publication(f"x{i}", [Literal("a b"), IRI("a:o"), Literal("a b")]) for i in range(3)]
    copies = [pickle.loads(pickle.dumps(publication)) for publication in some]
    batch = encode(some + copies)
    assert said_by(batch) == said(some) * 2
    assert len(batch.terms) == 4
    assert batch.offset.tolist() == [0, 2, 4, 6, 8, 10, 12]
    check(batch)


def test_decoder_makes_each_term_once() -> None:
    batch = encode([_publication("x", ALIKE), _publication("y", ALIKE)])
    decoder = Decoder(batch)
    first, second = decoder.publication(0), decoder.publication(1)
    assert all(
        a is b
        for left, right in zip(first.triples, second.triples, strict=True)
        for a, b in zip(left, right, strict=True)
    )
    assert decoder.term(0) is decoder.term(0)


def is_right_alone(publication: Publication) -> None:
    """A batch of one publication says what it says."""
    batch = encode([publication])
    assert said_by(batch) == said([publication])
    check(batch)


@pytest.mark.parametrize("count", [0, 1, 493, 494, 495, 1_023, 3_000])
def test_one_of_many_terms(count: int) -> None:
    objects: list[Term] = [*ALIKE, *(Literal(f"word{number % 50} {number}") for number in range(count))]
    is_right_alone(_publication("x", objects))
    is_right_alone(_publication("x", [Literal("again")] * count))


@pytest.mark.parametrize("size", [8_190, 8_191, 8_192, 8_193, 100_000])
def test_one_of_long_texts(size: int) -> None:
    for text in ("a " * (size // 2), "x" * size, "ß" * (size // 2), "".join(map(chr, range(48, 48 + size // 3)))):
        is_right_alone(_publication("x", [Literal(text)]))


def test_terms_made_to_collide() -> None:
    publication = _publication("x", [made_blank(label.decode()) for label in colliding(2_200, BLANK_KIND)] * 2)
    batch = encode([publication])
    assert said_by(batch) == said([publication])
    check(batch)


@pytest.mark.parametrize("copied", [False, True])
def test_real(copied: bool) -> None:
    data = gzip.decompress(shared_data.path("10-workloads/mixed-5000.nq.gz").read_bytes())
    read = read_document(data[: data.index(b"\n", 1_000_000) + 1], "x.nq")
    if copied:
        read = [Publication(p.id, tuple(Triple(*map(_copy, t)) for t in p.triples)) for p in read]  # type: ignore[arg-type]
    batch = encode(read)
    assert said_by(batch) == said(read)
    check(batch)
    for publication in read[:: len(read) // 50]:
        is_right_alone(publication)


def _copy(term: Term) -> Term:
    if isinstance(term, Literal):
        return made_literal(term.lexical, term.datatype, term.language)
    return made_iri(term.value) if isinstance(term, IRI) else made_blank(term.label)


def are_right(publications: Sequence[Publication], meant: Sequence[Publication]) -> None:
    """Together and each alone, they say what is meant."""
    batch = encode(publications)
    assert said_by(batch) == said(meant)
    check(batch)
    for publication in publications:
        is_right_alone(publication)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.builds(Publication, TEXTS.filter(bool), st.lists(TRIPLES, max_size=5).map(tuple)), max_size=4))
def test_any(made: list[Publication]) -> None:
    are_right(made, made)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.tuples(st.lists(TRIPLES, max_size=5).map(tuple), st.booleans()), max_size=4))
def test_any_that_were_read(some: list[tuple[tuple[Triple, ...], bool]]) -> None:
    """Publications that are bytes yet, others between them, and the same ones again."""
    made = [Publication(f"p{number}", triples) for number, (triples, _) in enumerate(some)]
    mixed = [
        Publication.of_packed(one.id, pack(one.triples)) if was_read else one
        for one, (_, was_read) in zip(made, some, strict=True)
    ]
    are_right(mixed, made)
    assert said_by(encode(mixed + mixed)) == said(made + made)
