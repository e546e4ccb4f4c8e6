"""Triples as bytes and back, and publications that keep them so until somebody asks for a term."""

from __future__ import annotations

import copy
import pickle
import struct
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amounts import examples
from any_triples import TRIPLES
from triplewire.model.packed import PAD, Packed, pack, unpack
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, XSD, BlankNode, Literal, Triple
from triplewire.read import read_document

S, P = IRI("http://a/s"), IRI("http://a/p")
SEVERAL = (
    Triple(S, P, Literal("Straße 5")),
    Triple(S, P, Literal("Straße 5", XSD + "token")),
    Triple(BlankNode("s"), P, Literal.tagged("\U0001f600", "de")),
    Triple(S, S, S),
    Triple(S, P, Literal("")),
)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(TRIPLES, max_size=8))
def test_bytes_and_back(triples: list[Triple]) -> None:
    packed = pack(triples)
    packed.check()
    assert unpack(packed) == tuple(triples)
    assert packed.statements == len(triples)
    assert packed.terms <= 3 * len(triples)


def test_a_term_object_is_packed_once() -> None:
    assert pack(SEVERAL).terms == 7


def test_what_does_not_fit_is_refused() -> None:
    """Each byte of the numbers, and each count, changed by a little: it is refused, or it is read without a crash."""
    good, refused = pack(SEVERAL), 0
    changed = [
        good._replace(numbers=good.numbers[:at] + bytes([good.numbers[at] ^ bit]) + good.numbers[at + 1 :])
        for at in range(len(good.numbers))
        for bit in (1, 128)
    ]
    changed += [good._replace(terms=good.terms + by) for by in (-8, -7, -3, -1, 1, 3, 100)]
    for packed in changed:
        try:
            packed.check()
        except ValueError:
            refused += 1
        else:
            unpack(packed)
    assert refused > len(changed) * 3 // 4


GOOD = pack(SEVERAL)
CUT_IN_A_CHARACTER = Packed("é".encode() + PAD, struct.pack("5i", 1, 1, 0, 2, 2), ("",), 2, 2)


@pytest.mark.parametrize(
    ("damaged", "why"),
    [
        (GOOD._replace(text=b""), "texts and their lengths"),
        (GOOD._replace(text=GOOD.text[:-1] + b"x"), "texts and their lengths"),
        (GOOD._replace(text=GOOD.text.replace("ß".encode(), b"\xc3\x41")), "invalid continuation byte"),
        (GOOD._replace(numbers=GOOD.numbers[:-4]), "a term of a triple is not there"),
        (GOOD._replace(numbers=GOOD.numbers[:-2]), "a number is cut"),
        (GOOD._replace(suffixes=()), "texts and their lengths"),
        (GOOD._replace(literals=3), "literals have more bytes"),
        (CUT_IN_A_CHARACTER, "a text ends within a character"),
    ],
    ids=["no text", "no pad", "no UTF-8", "part of a triple", "part of a number", "no suffix", "bytes", "characters"],
)
def test_what_is_damaged_is_refused(damaged: Packed, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        damaged.check()


def test_terms_are_made_when_somebody_asks() -> None:
    document = b'<http://a/s> <http://a/p> "x" .\n<http://a/s> <http://a/p> <http://a/s> .\n'
    (publication,) = read_document(document, "x.nt")
    assert publication.size == 2
    assert "2 triples" in repr(publication)
    assert "triples" not in vars(publication)
    assert publication.triples == (Triple(S, P, Literal("x")), Triple(S, P, S))
    assert publication.triples is publication.triples


def test_a_publication_that_was_read_is_like_one_that_was_made() -> None:
    made = Publication("p", SEVERAL, "s", notes=("n",))
    read = Publication.of_packed("p", pack(SEVERAL), "s", notes=("n",))
    for one in (copy.copy(read), pickle.loads(pickle.dumps(read)), read):
        assert "triples" not in vars(one)
        assert (one.id, one.source, one.notes, one.attachments, one.size) == ("p", "s", ("n",), {}, 5)
        assert one == made
    assert replace(read, id="q").triples == SEVERAL
    assert read.content_hash == made.content_hash
    assert pickle.loads(pickle.dumps(read)) == made
    for one in (made, read):
        with pytest.raises(AttributeError, match="'Publication' object has no attribute 'triple'"):
            one.triple  # type: ignore[attr-defined]  # noqa: B018  # that is what is tested
