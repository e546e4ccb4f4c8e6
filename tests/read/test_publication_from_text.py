"""A publication of a text: any syntax, one publication, with the id that is wanted."""

from __future__ import annotations

import pytest

from triplewire import IRI, Engine, Literal, Publication, ReadError, Triple
from triplewire.errors import ArgumentError

TITLE = IRI("http://purl.org/rss/1.0/title")
TURTLE = '@prefix rss: <http://purl.org/rss/1.0/> . <> rss:title "Puffins é" .'


def test_a_text_becomes_a_publication() -> None:
    made = Publication.from_text(TURTLE, "http://kestrelcoast.example/p/1")
    subject = IRI("http://kestrelcoast.example/p/1")
    assert (made.id, made.triples) == (subject.value, (Triple(subject, TITLE, Literal("Puffins é")),))
    assert Publication.from_text(TURTLE.encode(), "http://kestrelcoast.example/p/1") == made
    nquads = f'<urn:s> <{TITLE.value}> "x" .'
    assert Publication.from_text(nquads, "seventh").id == "seventh"
    assert Publication.from_text(nquads).triples == (Triple(IRI("urn:s"), TITLE, Literal("x")),)
    engine = Engine()
    engine.subscribe("ASK { ?s rss:title ?t }", id="all")
    assert engine.match(made).ids(made) == ["all"]


def test_a_feed_is_one_publication() -> None:
    feed = """<rss version="2.0"><channel><title>C</title><link>http://e.example/</link><description>d</description>
    <item><title>one</title><link>http://e.example/1</link></item>
    <item><title>two</title><link>http://e.example/2</link></item></channel></rss>"""
    titles = {triple.object for triple in Publication.from_text(feed).triples if triple.predicate == TITLE}
    assert {Literal("one"), Literal("two")} <= titles


def test_what_is_no_publication_is_refused() -> None:
    with pytest.raises(ReadError, match="urn:p"):
        Publication.from_text('<urn:s> <urn:p> "never closed', "urn:p")
    two = "<urn:s> <urn:p> <urn:o> <urn:g> .\n<urn:s> <urn:p> <urn:o> <urn:h> .\n"
    with pytest.raises(ArgumentError, match="2 publications"):
        Publication.from_text(two)
    for wrong in (None, 7, ["x"]):
        with pytest.raises(ArgumentError):
            Publication.from_text(wrong)  # type: ignore[arg-type]
