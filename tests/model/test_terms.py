"""Terms as programs make them: languages, what `repr` shows, and copies."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable

import pytest

from triplewire.errors import ArgumentError
from triplewire.model.match import Match
from triplewire.model.publication import Publication
from triplewire.model.terms import (
    IRI,
    LANG_STRING,
    XSD,
    XSD_STRING,
    BlankNode,
    Literal,
    Triple,
    made_blank,
    made_iri,
    made_literal,
)
from triplewire.read import read, to_nquads

TERMS = [
    IRI("urn:a"),
    BlankNode("b"),
    Literal("x"),
    Literal("5", XSD + "integer"),
    Literal.tagged("chat", "FR"),
    Triple(IRI("urn:s"), IRI("urn:p"), Literal("o")),
]


@pytest.mark.parametrize("term", TERMS, ids=str)
def test_copies_are_equal_and_nothing_changes_a_term(term: IRI | BlankNode | Literal | Triple) -> None:
    assert pickle.loads(pickle.dumps(term)) == copy.deepcopy(term) == term
    assert hash(copy.copy(term)) == hash(term)
    assert type(copy.copy(term)) is type(term)
    for name in ("value", "label", "lexical", "datatype", "subject"):
        if hasattr(term, name):
            with pytest.raises(AttributeError):
                setattr(term, name, "y")
    assert eval(repr(term)) == term  # as it is written here


def test_a_language_makes_a_tagged_string() -> None:
    tagged = Literal.tagged("chat", "fr")
    assert Literal("chat", language="fr") == tagged
    assert Literal("chat", language="FR") == tagged
    assert Literal("chat", XSD_STRING, "fr") == Literal("chat", LANG_STRING, "fr") == tagged
    assert tagged.datatype == LANG_STRING
    assert tagged.has_text
    assert dataclasses.replace(tagged, lexical="chien") == Literal.tagged("chien", "fr")


@pytest.mark.parametrize("size", [1, 200_000])
def test_what_is_shown_is_short(size: int) -> None:
    """No title, id or query of a megabyte fills the screen."""
    long = "a<b>\n" * size
    terms = [
        made_iri("urn:" + long),
        made_blank(long),
        Literal(long),
        made_literal("x", long),
        Literal("x", language="e" * 9),
    ]
    assert max(len(repr(term)) for term in terms) < 400
    triples = tuple(Triple(made_iri(f"urn:{n}"), made_iri("urn:p"), Literal(long)) for n in range(3))
    publication = Publication(long, triples, long)
    assert len(repr(publication)) < 400
    assert "3 triples" in repr(publication)
    match = Match(long, long, ({long: Literal(long), "y": made_iri(long)},) * 5, True)
    assert len(repr(match)) < 400
    assert "5+ bindings" in repr(match)


@pytest.mark.parametrize(
    "make",
    [
        lambda: IRI("a b"),
        lambda: IRI("a"),
        lambda: IRI(""),
        lambda: IRI("//a/b"),
        lambda: IRI("1a:b"),
        lambda: IRI(":a"),
        lambda: IRI("<http://a/>"),
        lambda: IRI("http://a/\n"),
        lambda: Literal("5", "xsd:integer"),
        lambda: Literal("5", "integer"),
        lambda: Literal("5", ""),
        lambda: Literal("five", LANG_STRING),
        lambda: Literal("5", "http://a/ b"),
        lambda: Literal("5", "<http://a/>"),
        lambda: Literal("five", language="e n"),
        lambda: BlankNode(""),
        lambda: BlankNode("a> .\n<urn:a> <urn:b> <urn:c"),
    ],
)
def test_what_is_no_term_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(ArgumentError) as refused:
        make()
    assert refused.value.source  # where


def test_a_prefixed_name_as_a_datatype_is_told_what_to_write() -> None:
    with pytest.raises(ArgumentError, match=XSD + "integer"):
        Literal("5", "xsd:integer")


def test_a_relative_iri_is_told_how_to_write_it() -> None:
    with pytest.raises(ArgumentError, match=r"IRI\(value\): .* got str 'a'; write it whole, as http://") as refused:
        IRI("a")
    assert refused.value.remedy


def test_what_is_read_may_have_a_datatype_that_looks_like_a_prefixed_name() -> None:
    written = '<http://a/> <http://p/> "5"^^<xsd:integer> <http://a/> .\n'
    (publication,) = read(written.encode())
    assert to_nquads(publication) == written
    assert copy.deepcopy(publication.triples) == publication.triples
