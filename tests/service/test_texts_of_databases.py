"""Texts that would be a part of a statement of SQL where somebody pasted them into one.

They come through each door that takes a text, in the path, the query, JSON, forms, headers, items of feeds, OPML and
XML-RPC. Each is answered as a text of the same signs that says nothing, and what others have stays as it is. A new text
needs no Python: `tests/cases/service/odd_texts.toml`.
"""

from __future__ import annotations

import re
import tomllib
import xmlrpc.client
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode
from xml.sax.saxutils import quoteattr

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient

from amounts import usually
from broker.serving import on_sqlite_alone
from service.bodies import VALUES, body, properties
from triplewire import Engine
from triplewire.broker.broker import Broker, Wanted
from triplewire.broker.incoming.registered_sources import WantedSource
from triplewire.service.app import ServiceSettings, service
from triplewire.service.xml_rpc import _METHODS

FILE = Path(__file__).resolve().parents[1] / "cases" / "service" / "odd_texts.toml"
TEXTS: list[str] = tomllib.loads(FILE.read_text("utf-8"))["texts"]
TOKEN, MARK = "the token of the owner", "only-for-bob"
QUERY = f'SELECT ?s {{ ?s <urn:v:mark> "{MARK}" }}'
OPML, RSS = "text/x-opml", "application/rss+xml"
_NUMBERS = count()


@dataclass(frozen=True)
class Place:
    """Where a text may stand: a door, and in which part of a request under which name."""

    method: str
    path: str
    part: str
    name: str


def places(schema: dict[str, Any]) -> Iterator[Place]:
    """All of them."""
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            for parameter in operation.get("parameters", ()):
                if parameter["in"] in ("path", "query"):
                    yield Place(method.upper(), path, parameter["in"], parameter["name"])
            for kind, content in operation.get("requestBody", {}).get("content", {}).items():
                for name in properties(content["schema"], schema):
                    if kind in ("application/json", "application/x-www-form-urlencoded"):
                        yield Place(method.upper(), path, kind, name)
    for name in ("guid", "title", "link", "description", "author", "category"):
        yield Place("POST", "/publish", RSS, name)
    for name in ("text", "title", "xmlUrl", "tw:id", "tw:query", "tw:language"):
        yield Place("POST", "/opml", OPML, name)
    for method, about in _METHODS.items():
        for name in about.takes.model_fields:
            yield Place("POST", "/RPC2", method, name)
    for name in ("Idempotency-Key", "Authorization", "Ce-Id"):
        yield Place("POST", "/publish", "header", name)
    yield Place("GET", "/", "query", "word")
    yield Place("POST", "/sign-in", "application/x-www-form-urlencoded", "token")


def is_of(kind: str, field: Any) -> bool:
    """Is a field of this type, or may it be?"""
    return field.get("type") == kind or any(is_of(kind, one) for one in field.get("anyOf", ()))


def request_for(place: Place, text: str, schema: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The address, and the rest of a request, with a text at a place."""
    operation = schema["paths"].get(place.path, {}).get(place.method.lower(), {})
    given = {place.name: quote(text, safe="")} if place.part == "path" else {}
    address = re.sub(r"{(\w+)(?::\w+)?}", lambda part: given.get(part[1], "one"), place.path)
    needed = {each["name"]: VALUES.get(each["name"], "x") for each in operation.get("parameters", ())
              if each["in"] == "query" and each.get("required")}  # fmt: skip
    asked = needed | ({place.name: text} if place.part == "query" else {})
    address += f"?{urlencode(asked)}" if asked else ""
    json = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if place.part == "application/json" or (json and place.part in ("path", "query")):
        field = properties(json["schema"], schema).get(place.name, {})
        value = {text: text} if is_of("object", field) else [text] if is_of("array", field) else text
        more = {place.name: value} if place.part == "application/json" else {}
        return address, {"json": body(json["schema"], schema, "one") | more}
    if place.part == "application/x-www-form-urlencoded":
        whole = {"hub.mode": "subscribe", "hub.topic": "x", "hub.callback": "http://93.184.215.14/", place.name: text}
        return address, {"data": whole}
    turtle = {"content": f"<urn:p:{next(_NUMBERS)}> <urn:b> <urn:c> .", "headers": {"Content-Type": "text/turtle"}}
    if place.part in (RSS, OPML):
        return address, {"content": document(place, text), "headers": {"Content-Type": place.part}}
    if place.part in _METHODS:
        struct = {"subscription": "one", "query": VALUES["query"], place.name: text}
        return address, {"content": xmlrpc.client.dumps((struct,), place.part).encode()}
    if place.part == "header":
        value = f"Bearer {text}" if place.name == "Authorization" else text
        event = {"Ce-Specversion": "1.0", "Ce-Type": "x", "Ce-Source": "x"} if place.name == "Ce-Id" else {}
        turtle["headers"] = {"Content-Type": "text/turtle", **event, place.name: value.encode()}
    return address, turtle if place.method in ("POST", "PUT") else {}


def document(place: Place, text: str) -> bytes:
    """A feed or a list in which the text stands."""
    if place.part == OPML:
        outline = {"text": "a", "tw:query": VALUES["query"]} | {place.name: text}
        if place.name == "xmlUrl":
            del outline["tw:query"]
        attributes = " ".join(f"{name}={quoteattr(value)}" for name, value in outline.items())
        return (
            f'<opml version="2.0" xmlns:tw="urn:triplewire:opml:"><body><outline {attributes}/></body></opml>'.encode()
        )
    item = {"guid": f"urn:item:{next(_NUMBERS)}", "title": "t"} | {place.name: text}
    parts = "".join(f"<{name}>{escaped(value)}</{name}>" for name, value in item.items())
    return f"<rss version='2.0'><channel><title>c</title><item>{parts}</item></channel></rss>".encode()


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def says_nothing(text: str) -> str:
    """A text of the same signs that is no SQL."""
    return re.sub(r"[A-Za-z0-9]", "x", text)


def can_stand(place: Place, text: str) -> bool:
    """Can a request have this text there? Neither XML nor headers have all controls."""
    has_control = any(letter < " " for letter in text)
    return not (has_control and (place.part in (RSS, OPML, "header") or place.part in _METHODS))


@dataclass
class Attacked:
    """A broker in which bob has something, its service, and the tokens of two who ask."""

    broker: Broker
    client: TestClient
    tokens: dict[str, str]

    def kept(self) -> list[str]:
        """All that is bob's, and the names of the tables."""
        with self.broker.database.reading() as connection:
            rows: list[Any] = list(sa.inspect(connection).get_table_names())
            for table in ("subscriptions", "sources", "tokens"):
                rows += connection.execute(sa.text(f"SELECT * FROM {table} WHERE owner = 'bob' ORDER BY 1")).all()
        return sorted(map(str, rows))

    def ask(self, place: Place, text: str, who: str, schema: dict[str, Any]) -> Any:
        """The answer to a request with the text."""
        address, sent = request_for(place, text, schema)
        head = {"Authorization": f"Bearer {self.tokens[who]}", **sent.pop("headers", {})}
        return self.client.request(place.method, address, headers=head, **sent)


@pytest.fixture
def attacked(database_url: str) -> Iterator[Attacked]:
    with Broker.open(database_url, b"s" * 32, engine=Engine(matcher="reference")) as broker:
        for id in ("of-bob", "other"):
            broker.subscribe(Wanted(QUERY, id=id, title=MARK), "bob")
        broker.sources.add(WantedSource(kind="push", id="bobs", title=MARK), "bob")
        tokens = {"owner": TOKEN, "ann": broker.new_token("ann")}
        broker.new_token("bob")
        app = service(broker, ServiceSettings(token=TOKEN, wait_seconds=0.0))
        yield Attacked(broker, TestClient(app, raise_server_exceptions=False, follow_redirects=False), tokens)


def effects(of: Attacked, step: int) -> Iterator[str]:
    """What texts do that they must not: each place gets each so manyth text, the next one others."""
    before = of.kept()
    schema = of.client.app.openapi()  # type: ignore[attr-defined]
    all_places = list(places(schema))
    assert len(all_places) > 150
    for number, place in enumerate(all_places):
        for text in TEXTS[number % step :: step]:
            if not can_stand(place, text):
                continue
            for who in of.tokens:
                answer, nothing = of.ask(place, text, who, schema), says_nothing(text)
                like = of.ask(place, nothing, who, schema) if nothing != text else answer
                where = f"{place} as {who}: {text!r}: {answer.status_code}"
                if answer.status_code >= 500:
                    yield f"{where} is a fault"
                if answer.status_code != like.status_code:
                    yield f"{where}, but {like.status_code}"
                if who == "ann" and MARK in answer.text:
                    yield f"{where} tells of bob's"
                if (now := of.kept()) != before:
                    yield f"{where} changes what is bob's"
                    before = now


def test_a_text_is_a_text(attacked: Attacked) -> None:
    assert list(effects(attacked, usually(23, 1))) == []


def test_it_is_kept_and_found_as_it_is(attacked: Attacked) -> None:
    head = {"Authorization": f"Bearer {attacked.tokens['ann']}"}
    texts = [text for text in TEXTS if "\0" not in text]
    wanted = [{"query": VALUES["query"], "title": text, "id": f"of-{number}"} for number, text in enumerate(texts)]
    assert attacked.client.post("/subscriptions", json=wanted, headers=head).status_code == 201
    shown = attacked.client.get("/subscriptions", headers=head).json()
    assert {row["id"]: row["title"] for row in shown} == {row["id"]: row["title"] for row in wanted}


@on_sqlite_alone  # the other one takes several statements, and has lost its tables then
def test_a_statement_that_is_put_together_would_be_noticed(attacked: Attacked, monkeypatch: pytest.MonkeyPatch) -> None:
    def find(self: Broker, id: str, *, owner: str | None = None, ticket: str | None = None) -> Any:
        with self.database.reading() as connection:
            return connection.execute(sa.text(f"SELECT * FROM subscriptions WHERE id = '{id}'")).first()

    monkeypatch.setattr(Broker, "find", find)
    unnoticed = {"is a fault", "tells of bob's"}
    for effect in effects(attacked, 11):
        unnoticed = {each for each in unnoticed if each not in effect}
        if not unnoticed:
            break
    assert not unnoticed
