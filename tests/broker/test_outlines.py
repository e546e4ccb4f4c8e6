"""Subscriptions and sources as lists in OPML: written, taken again, and lists of other programs."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from amounts import usually
from broker.serving import OWNER, QUERY, TOKEN, broker_at, on_sqlite_alone, subscribed
from triplewire.broker.broker import Broker, Wanted
from triplewire.service.app import ServiceSettings, service

CASES = tomllib.loads((Path(__file__).parents[1] / "cases/feeds/outlines.toml").read_text(encoding="utf-8"))["list"]
COUNT = usually(200, 1_000)  # subscriptions


def written(client: TestClient) -> bytes:
    return client.get("/subscriptions.opml", headers=OWNER).content


def taken(client: TestClient, body: bytes | str, **parameters: Any) -> list[dict[str, Any]]:
    answer = client.post("/opml", content=body, headers=OWNER, params=parameters)
    assert answer.status_code == 201, answer.text
    lines: list[dict[str, Any]] = answer.json()
    return lines


def allowing(broker: Broker) -> TestClient:
    return TestClient(service(broker, ServiceSettings(token=TOKEN, allow_private_addresses=True)))


def test_a_list_taken_by_another_broker_is_written_the_same(new_database: Callable[[], str]) -> None:
    wanted = [
        Wanted(
            f'PREFIX ex: <http://example.org/>\n\tSELECT ?t {{ ?i rss:title ?t FILTER (?t != "<a>\'&amp; {number}") }}',
            id=f"s {number}",
            title=f'Title "{number}" & more' if number % 2 else "",
            prefixes={"ex": f"http://example.org/{number}#"} if number % 3 else None,
            once_per_story=number % 5 == 0,
        )
        for number in range(COUNT)
    ]
    with broker_at(new_database()) as (broker, _):
        first = allowing(broker)
        paused = [made for made in broker.subscribe_all(wanted, "owner") if not isinstance(made, Exception)][7]
        broker.change(paused.number, state="paused")
        broker.subscribe(Wanted(QUERY), "somebody else")
        broker.sources.add_feeds({"http://127.0.0.9/feed?a=1&b=2": "A feed"}, "owner")
        text = written(first)
        assert {line["what"] for line in taken(first, text)} == {"there already"}
        assert written(first) == text
    with broker_at(new_database()) as (broker, _):
        again = allowing(broker)
        lines = taken(again, text, seconds=3600)
        assert [line["what"] for line in lines] == ["subscribed"] * COUNT + ["source"]
        assert written(again) == text
        rows = {row.id: row for row in broker.subscriptions_of("owner")}
        assert (rows["s 7"].state, rows["s 8"].state) == ("paused", "active")
        assert rows["s 3"].expires - rows["s 3"].created == 3600


@on_sqlite_alone
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_lists_of_others(database_url: str, case: dict[str, Any]) -> None:
    with broker_at(database_url) as (broker, _):
        lines = taken(allowing(broker), case["text"])
        assert [[line["line"], line["what"]] for line in lines] == case["lines"]
        for line in lines:
            assert line["what"] != "refused" or line["problem"]["title"]


@on_sqlite_alone
@pytest.mark.parametrize(
    ("body", "what"),
    [
        (b"<opml><body><outline", "not well-formed"),
        (b'<!DOCTYPE o [<!ENTITY a "x"><!ENTITY b "&a;&a;">]><opml>&b;</opml>', "refers to other entities"),
        (b'<!DOCTYPE o SYSTEM "http://127.0.0.1/x.dtd"><opml/>', ""),
        (b"no list", "not well-formed"),
    ],
)
def test_what_is_no_list(database_url: str, body: bytes, what: str) -> None:
    with broker_at(database_url) as (_, app):
        answer = TestClient(app).post("/opml", content=body, headers=OWNER)
        assert answer.status_code == 400
        assert what in answer.json()["title"]


@on_sqlite_alone
def test_private_addresses_are_no_sources(database_url: str) -> None:
    body = '<opml><body><outline xmlUrl="http://127.0.0.1/feed"/>\n<outline xmlUrl="file:///etc/passwd"/></body></opml>'
    with broker_at(database_url) as (_, app):
        lines = taken(TestClient(app), body)
        assert [(line["line"], line["what"], line["problem"]["status"]) for line in lines] == [
            (1, "refused", 400),
            (2, "refused", 400),
        ]


def test_an_id_that_is_taken_by_another_query(database_url: str) -> None:
    with broker_at(database_url) as (broker, app):
        subscribed(broker, id="games")
        outline = '<outline t:id="games" t:query="SELECT ?s { ?s a ?c }"/>'
        body = f'<opml xmlns:t="urn:triplewire:opml:"><body>\n{outline}</body></opml>'
        (line,) = taken(TestClient(app), body)
        assert (line["line"], line["what"]) == (2, "refused")
        assert "taken" in line["problem"]["title"]
