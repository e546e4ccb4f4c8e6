"""Texts of classes of their own, as members of an `Enum` and terms of RDFLib, become plain."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

import pytest

from amounts import MATCHERS
from engine.samples import item
from triplewire import IRI, BlankNode, Engine, Literal, Publication, parse
from triplewire.model.terms import XSD_STRING

TITLES = "SELECT ?t WHERE { ?s rss:title ?t }"


class Name(str, Enum):  # noqa: UP042  # whose members print their names
    """Ids, as programs list them."""

    NEWS = "urn:news"


class Odd(str):
    """A text that is not what it says it is."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return False

    def __str__(self) -> str:
        return "odd"

    def encode(self, *_: object, **__: object) -> bytes:
        return b"odd"


@pytest.mark.parametrize("matcher", MATCHERS)
def test_terms_of_texts_of_another_class_are_plain(matcher: str) -> None:
    """As RDFLib's terms, which are texts that are equal to no plain one."""
    name, title = Odd("urn:name"), Literal(Odd("A b"), Odd(XSD_STRING))
    assert (IRI(name), BlankNode(Odd("b")), title) == (IRI("urn:name"), BlankNode("b"), Literal("A b"))
    assert Literal(Odd("chat"), language=Odd("FR")) == Literal.tagged("chat", "fr")
    assert {type(text) for text in (IRI(name).value, title.lexical, title.datatype)} == {str}
    publication = Publication("p", [(IRI(name), IRI(Odd("urn:p")), title)], Odd("urn:source"))
    assert type(publication.source) is str
    engine = Engine(matcher=matcher)
    engine.subscribe(Odd("SELECT * { n:name ?p ?t FILTER ftcontains(?t, 'a') }"), prefixes={Odd("n"): Odd("urn:")})
    (match,) = engine.match(publication)
    assert engine.explain(match, publication).matched


@pytest.mark.parametrize("matcher", MATCHERS)
@pytest.mark.parametrize("id_", [Name.NEWS, Odd("urn:news")])
def test_ids_are_plain_texts(matcher: str, id_: str) -> None:
    engine = Engine(matcher=matcher)
    given = [engine.subscribe(TITLES, id=id_), engine.subscribe(replace(parse(TITLES), id=Odd("urn:")))]
    publication = Publication(id_, item("a", "one").triples)
    assert {type(one.id) for one in (*given, publication)} == {str}
    assert [(match.publication, match.subscription) for match in engine.match(publication)] == [
        ("urn:news", "urn:"),
        ("urn:news", "urn:news"),
    ]
    assert id_ in engine
    assert engine.explain(id_, publication).matched
    assert getattr(engine.get(id_), "id", None) == "urn:news"
    assert engine.unsubscribe(id_)
    assert [one.id for one in engine.subscriptions] == ["urn:"]
