"""Feeds of generated entries are read again by other programs, each with the same ids, titles and times.

Texts of strangers stay texts in each format.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import RdfFormat, parse

from amounts import usually
from broker.written_feeds import Read, dangers, dangers_of_page, elements, feed, with_feedparser, with_json
from triplewire.broker.feeds.cleaning import one_line, safe_markup
from triplewire.broker.feeds.entries import Entry, with_markup
from triplewire.broker.feeds.formats import FORMATS
from triplewire.broker.publications.kept_contents import text_of
from triplewire.config import Settings
from triplewire.model.namespaces import PREDECLARED
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Literal, Triple
from triplewire.read import read_document

SCRIPTS = tomllib.loads((Path(__file__).parents[1] / "cases/feeds/scripts.toml").read_text(encoding="utf-8"))["texts"]


def is_kept(text: str) -> bool:
    """Is it as it was after feedparser, which takes UTF-8 back out of what looks like UTF-8 that was encoded twice?"""
    try:
        return one_line(text).encode("iso-8859-1").decode() == one_line(text)
    except UnicodeError:
        return True


ANY = st.text(st.characters(exclude_categories=()), max_size=60).filter(is_kept)  # surrogates and controls, too
TEXTS = ANY | st.sampled_from(
    [*SCRIPTS, "AT&T &amp; more", "1 < 2 > 0", "a]]>b", "&#0; &nbsp;", "\ufffe\x00\x0b\ud800"]
)
SECONDS = st.floats(0, 4e9)


def content(text: str, is_markup: bool) -> Publication:
    name = "content" if is_markup else "rss"
    about, said = IRI("urn:x:1"), IRI(PREDECLARED[name] + ("encoded" if is_markup else "description"))
    return Publication("urn:x:1", (Triple(about, said, Literal(text)),))


@st.composite
def entries(draw: Callable[..., object]) -> list[Entry]:
    made = []
    for number in range(draw(st.integers(0, 5))):  # type: ignore[arg-type]  # an int
        title, text = one_line(draw(TEXTS)), draw(TEXTS)  # type: ignore[arg-type]  # texts
        bindings = [{"t": {"type": "literal", "value": draw(TEXTS)}}]
        others = [(one_line(draw(TEXTS)), "http://example.org/?a=1&b=2")]  # type: ignore[arg-type]  # a text
        times = draw(SECONDS), draw(SECONDS)
        entry = Entry(f"urn:uuid:{number}", title, f"http://example.org/{number}?a=1&b=2", *times, "", others=others)  # type: ignore[arg-type]  # floats
        made.append(with_markup(entry, content(text, draw(st.booleans())), bindings))  # type: ignore[arg-type]  # as above
    return made


def expected(given_entries: list[Entry]) -> list[tuple[str, str, int, int]]:
    return [(entry.id, entry.title, int(entry.published), int(entry.updated)) for entry in given_entries]


@pytest.mark.parametrize("form", ["atom", "rss", "rdf", "json"])
@settings(max_examples=usually(200, 10_000))
@given(entries(), TEXTS)
def test_feeds_are_read_again(form: str, given_entries: list[Entry], title: str) -> None:
    text = FORMATS[form].write(feed(given_entries, one_line(title)))
    read: list[Read] = with_json(text) if form == "json" else with_feedparser(text)
    assert [entry[:4] for entry in read] == expected(given_entries)
    assert not [danger for entry in read for danger in dangers(entry.markup)]


@settings(max_examples=usually(50, 2_500))
@given(entries(), TEXTS)
def test_the_other_formats_hold_the_same_entries(given_entries: list[Entry], title: str) -> None:
    page = feed(given_entries, one_line(title))
    told = [json.loads(line) for line in FORMATS["ndjson"].write(page).splitlines()]
    assert [line["entry"] for line in told] == [entry.id for entry in given_entries]
    written = FORMATS["html"].write(page)
    assert elements(written).headings == [entry.title for entry in given_entries]
    assert not dangers_of_page(written)
    (outline,) = ElementTree.fromstring(FORMATS["opml"].write(page)).iter("outline")
    assert outline.get("xmlUrl") == "http://broker.example/s/1-key.atom"
    assert outline.get("title") == one_line(title)


@pytest.mark.parametrize("form", ["atom", "rss", "rdf", "json"])
@settings(max_examples=usually(20, 200))
@given(entries())
def test_another_broker_reads_them(form: str, given_entries: list[Entry]) -> None:
    read = (
        read_document(FORMATS[form].write(feed(given_entries)).encode(), "", settings=Settings())
        if given_entries
        else []
    )
    assert [publication.id for publication in read] == [entry.id for entry in given_entries]


@settings(max_examples=usually(50, 2_500))
@given(entries())
def test_rss_1_is_rdf(given_entries: list[Entry]) -> None:
    triples = list(parse(FORMATS["rdf"].write(feed(given_entries)).encode(), format=RdfFormat.RDF_XML))
    titles = [quad.object.value for quad in triples if quad.predicate.value == "http://purl.org/rss/1.0/title"]
    assert len(titles) == 1 + len(given_entries)


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_are_text(script: str) -> None:
    assert dangers(script.replace("\0", "")), "the text does nothing: no test of it can fail"
    entry = Entry(
        "urn:uuid:1", one_line(script), f"http://x/{one_line(script)}", 0.0, 0.0, "", others=[(script, script)]
    )
    for is_markup in (False, True):
        made = with_markup(entry, content(script, is_markup), [{script: {"value": script}}])
        page = feed([made], one_line(script))
        for form in ("atom", "rss", "rdf"):
            (read,) = with_feedparser(FORMATS[form].write(page))
            assert not dangers(read.markup)
            assert read.title == made.title
        titles = [title.text or "" for title in ElementTree.fromstring(FORMATS["rss"].write(page)).iter("title")]
        assert not [danger for title in titles for danger in dangers(title)]
        assert not dangers_of_page(FORMATS["html"].write(page))
        (read,) = with_json(FORMATS["json"].write(page))
        assert not dangers(read.markup)


@pytest.mark.parametrize("seconds", [-1e18, -6e10, 1e12, 1e300])
def test_a_time_that_no_calendar_has_spoils_nothing(seconds: float) -> None:
    page = feed([Entry("urn:uuid:1", "one", "", seconds, seconds, ""), Entry("urn:uuid:2", "two", "", 1.0, 1.0, "")])
    for form in ("atom", "rss", "rdf", "html", "json"):
        assert "two" in FORMATS[form].write(page)


@given(TEXTS)
def test_what_is_harmless_stays_as_it_is(text: str) -> None:
    assert safe_markup(safe_markup(text)) == safe_markup(text)


def test_the_text_of_a_publication() -> None:
    assert text_of(content("a < b", False)) == ("a < b", False)
    assert text_of(content("<b>x</b>", True)) == ("<b>x</b>", True)
