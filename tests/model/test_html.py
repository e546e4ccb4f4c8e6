"""Tables for notebooks: what a feed or a query says stays text."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from triplewire import Engine
from triplewire.model.match import Match
from triplewire.model.publication import Publication
from triplewire.model.terms import Literal, Triple, made_blank, made_iri, made_literal

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg/onload=alert(1)>",
    "</td></tr></table><iframe src='javascript:alert(1)'>",
    "]]><!--",
    "&lt;script&gt;",
    "\x00\x1b[31m\u202etxt.exe\ud800",
    "</pre><script>alert(1)</script>",
]
ALLOWED = {"table", "caption", "tr", "th", "td", "pre"}


class Tags(HTMLParser):
    """The elements and attributes of a text, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes.update(name for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        self.names.add("<!--")


def _seen(text: str) -> Tags:
    tags = Tags(text)
    assert tags.names <= ALLOWED
    assert tags.attributes <= {"style", "colspan"}
    text.encode()
    assert not set("\x00\x1b\u202e\ud800") & set(text)
    return tags


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_texts_become_no_markup(hostile: str) -> None:
    triple = Triple(made_blank(hostile), made_iri(hostile), Literal(hostile, language=""))
    publication = Publication(
        hostile, (triple, Triple(made_iri("urn:s"), made_iri("urn:p"), made_literal("o", hostile))), hostile
    )
    shown = _seen(publication._repr_html_()).text
    assert "alert(1)" not in hostile or "alert(1)" in shown
    match = Match(hostile, hostile, ({hostile: Literal(hostile)}, {"y": made_iri(hostile)}))
    _seen(match._repr_html_())
    engine = Engine(matcher="reference")
    engine.subscribe("SELECT ?o { ?s <urn:p> ?o }", id=hostile)
    result = engine.match(publication)
    assert len(result) == 1
    _seen(result._repr_html_())
    explanation = engine.explain(hostile, publication)
    assert "matches" in _seen(explanation._repr_html_()).text
    assert len(repr(explanation)) < 400


def test_large_ones_are_cut_and_say_so() -> None:
    triples = tuple(Triple(made_iri(f"urn:{n}"), made_iri("urn:p"), Literal("word " * 10_000)) for n in range(1_234))
    shown = Publication("urn:x", triples)._repr_html_()
    assert shown.count("<tr>") == 52
    assert "1,184 more" in shown
    assert len(shown) < 50_000
    match = Match("p", "s", tuple({"x": Literal(str(n))} for n in range(60)), True)
    assert "10 more" in match._repr_html_()
    assert "truncated" in match._repr_html_()


def test_all_variables_are_columns() -> None:
    shown = Match("p", "s", ({"x": Literal("1")}, {"x": Literal("2"), "y": Literal("3")}))._repr_html_()
    cells = [re.sub("<[^>]*>", "", cell) for cell in re.findall("<t[hd].*?</t[hd]>", shown)]
    assert cells == ["?x", "?y", "1", "", "2", "3"]
