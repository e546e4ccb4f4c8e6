"""The live tester: the last publications that a query would have matched, as the engine says."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from broker.page_visits import TOKEN, Service, served
from triplewire.broker.publications.window import MOST
from triplewire.engine import Engine
from triplewire.service.pages.sessions import CODE_HEADER

QUERIES = [
    ("sparql", 'SELECT ?t { ?s rss:title ?t FILTER ftcontains(?t, "three") }'),
    ("sparql", "ASK { ?s rss:title ?t FILTER NOT EXISTS { ?s rss:link ?l } }"),
    ("gql", 'SELECT * WHERE ((?s, rss:title, ?t) SUCHTHAT (?t FTCONTAINS "two" ftOR "three"))'),
    ("keywords", "title:two OR about"),
    ("keywords", "nothing has this"),
]


@pytest.fixture
def running(database_url: str) -> Iterator[Service]:
    """A service with publications."""
    with served(database_url) as service:
        service.publish(*(f"number {('one', 'two', 'three')[place % 3]}" for place in range(20)))
        yield service


@pytest.mark.parametrize(("language", "query"), QUERIES)
def test_it_matches_what_the_engine_matches(running: Service, language: str, query: str) -> None:
    """The same publications, the newest first, of all that are there."""
    status, said = running.ask("/try", {"query": query, "language": language})
    engine = Engine()
    engine.subscribe(query, language, id="q")
    window = running.broker.window.of("owner")
    assert [seen.number for seen in window] == list(range(20, 0, -1))
    wanted = {match.publication for match in engine.match([seen.publication for seen in window])}
    numbers = [seen.number for seen in window if seen.publication.id in wanted]
    assert (status, said["matched"], said["count"], said["of"]) == (200, numbers, len(numbers), 20)
    assert said["share"] == len(numbers) / 20
    assert [window[place].number for place in said["places"]] == numbers
    assert [each["number"] for each in said["publications"]] == numbers[:50]


def test_it_follows_what_comes(running: Service) -> None:
    """New publications, and of a changed one its new content alone."""
    query = {"query": "title:three"}
    counts = [running.ask("/try", {**query, "language": "keywords"})[1]["count"]]
    running.publish("three at last", id="urn:new:{}")
    counts.append(running.ask("/try", {**query, "language": "keywords"})[1]["count"])
    running.publish("four in its place", id="urn:new:{}")
    counts.append(running.ask("/try", {**query, "language": "keywords"})[1]["count"])
    assert counts == [6, 7, 6]


def test_it_keeps_the_last_ones(running: Service) -> None:
    """A thousand, however many there were when it was asked first, and after."""
    running.publish(*(f"more {place}" for place in range(MOST)), id="urn:more:{}")
    assert running.ask("/try", {"query": "number", "language": "keywords"})[1]["of"] == MOST
    running.publish("the last", id="urn:last:{}")
    said = running.ask("/try", {"query": "last OR number", "language": "keywords"})[1]
    assert (said["of"], said["count"]) == (MOST, 1)


def test_publications_for_others_do_not_count(running: Service) -> None:
    """Who may not read a publication does not see that it is there."""
    running.publish("number secret", readers="ann", id="urn:secret:{}")
    ann = running.broker.new_token("ann")
    asked = {"query": "secret", "language": "keywords"}
    told = [running.ask("/try", asked, token)[1] for token in (TOKEN, ann)]
    assert [(said["count"], said["of"]) for said in told] == [(0, 20), (1, 21)]


def test_a_wrong_query_is_told_with_its_place(running: Service) -> None:
    """Line and column."""
    status, said = running.ask("/try", {"query": "SELECT ?t {\n ?s rss:title }", "language": "sparql"})
    assert (status, said["line"]) == (400, 2)
    assert said["column"] > 1
    assert running.ask("/try", {"query": "x", "language": "klingon"})[0] == 400


def test_the_page_asks_with_its_code_and_nobody_else(running: Service) -> None:
    """A cookie alone, which another site may cause to be sent, is refused."""
    visitor = running.visitor()
    body = json.dumps({"query": "number", "language": "keywords"}).encode()
    code = visitor.get("/").code
    kind = {"Content-Type": "application/json"}
    assert visitor.get("/try", body, **kind, **{CODE_HEADER: code}).status == 200
    assert visitor.get("/try", body, **kind).status == 403
    assert visitor.get("/try", body, **kind, **{CODE_HEADER: "0"}).status == 403
    visitor.cookies.clear()
    assert visitor.get("/try", body, **kind, **{CODE_HEADER: code}).status == 401
