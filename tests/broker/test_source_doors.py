"""The doors of sources, of what is pushed and of the taxonomy, on both databases."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from cloudevents.core.bindings import http
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from fastapi.testclient import TestClient

from broker.serving import on_sqlite_alone
from triplewire.broker.broker import Broker
from triplewire.engine import Engine
from triplewire.errors import SubscriptionError
from triplewire.ir.taxonomy import Taxonomy
from triplewire.service.app import ServiceSettings, service
from waiting import until

TOKEN = "token-of-the-owner-0123456789"
QUERY = "SELECT ?t WHERE { ?i rss:title ?t }"
GQL = 'SELECT ?t WHERE (?i, title, ?t) SUCHTHAT (?t CONTAINS "Olympic")'


class Client:
    """Asks a service, with a token or without; answers are status and JSON."""

    def __init__(self, app: object) -> None:
        self._client = TestClient(app)  # type: ignore[arg-type]

    def __call__(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        token: str | None = TOKEN,
        kind: str = "application/rss+xml",
        **headers: str,
    ) -> tuple[int, object]:
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if isinstance(body, bytes):
            answer = self._client.request(method, path, content=body, headers={"Content-Type": kind, **sent})
        else:
            answer = self._client.request(method, path, json=body, headers=sent)
        return answer.status_code, answer.json() if answer.content else None


@pytest.fixture
def broker(database_url: str) -> Iterator[Broker]:
    with Broker.open(database_url, b"s" * 32) as opened:
        yield opened


@pytest.fixture
def ask(broker: Broker, tmp_path: Path) -> Client:
    (tmp_path / "allowed" / "in").mkdir(parents=True)
    return Client(
        service(broker, ServiceSettings(token=TOKEN, source_folder=str(tmp_path / "allowed"), wait_seconds=300.0))
    )


def item(id: str, title: str, description: str = "text") -> bytes:
    return (
        f"<rss version='2.0'><channel><title>News</title><link>http://example.org/</link>"
        f"<item><guid isPermaLink='false'>{id}</guid><title>{title}</title>"
        f"<description>{description}</description></item></channel></rss>"
    ).encode()


def made(ask: Client, **wanted: object) -> dict[str, str]:
    status, said = ask("POST", "/sources", wanted)
    assert status == 201, said
    assert isinstance(said, dict)
    return said


def told(broker: Broker) -> list[tuple[str, str]]:
    return [(event.id, event.publication) for event in broker.events(None, 0)]


# --- sources ---------------------------------------------------------------------------------------------------------


def test_a_source_is_made_looked_at_changed_and_removed(ask: Client) -> None:
    said = made(ask, url="http://93.184.215.14/feed", id="news", title="News")
    assert said["kind"] == "poll"
    assert said["health"]["state"] == "new"  # type: ignore[index]
    assert "ticket" not in said
    status, changed = ask("PATCH", "/sources/news", {"title": "Other", "may_subscribe": True})
    assert status == 200
    assert changed == {**said, "title": "Other", "may_subscribe": True}
    assert ask("GET", "/sources") == (200, [changed])
    assert ask("POST", "/sources/news/reset")[0] == 200
    assert ask("DELETE", "/sources/news") == (204, None)
    assert ask("GET", "/sources/news")[0] == 404


@on_sqlite_alone
@pytest.mark.parametrize(
    "wanted",
    [
        {"url": "http://127.0.0.1/feed"},
        {"url": "http://[::ffff:10.0.0.1]/feed"},
        {"url": "http://2130706433/feed"},
        {"url": "http://93.184.215.14:25/feed"},
        {"url": "file:///etc/passwd"},
        {"url": "in/../../..", "kind": "folder"},
        {"url": "/etc", "kind": "folder"},
        {"url": "missing", "kind": "folder"},
        {"url": "kafka://host", "kind": "kafka"},
        {"url": "http://93.184.215.14/feed", "kind": "pull"},
        {"kind": "poll"},
        {"kind": "push", "url": "urn:no iri"},
        {"kind": "push", "id": "a/b"},
        {"kind": "push", "anonymous": True, "may_subscribe": True},
    ],
)
def test_sources_that_are_refused(ask: Client, wanted: dict[str, str]) -> None:
    status, said = ask("POST", "/sources", wanted)
    assert status == 400, said
    assert ask("GET", "/sources") == (200, [])
    made(ask, url="http://93.184.215.14/feed", id="news")
    if wanted.get("url", "").startswith("http://") and "kind" not in wanted:
        assert ask("PATCH", "/sources/news", {"url": wanted["url"]})[0] == 400


def test_sources_of_others(broker: Broker, ask: Client) -> None:
    made(ask, kind="push", id="mine")
    bob = broker.new_token("bob")
    for method, path, body in [
        ("GET", "/sources/mine", None),
        ("PATCH", "/sources/mine", {"title": "x"}),
        ("POST", "/sources/mine/reset", None),
        ("DELETE", "/sources/mine", None),
        ("POST", "/publish?source=mine", item("urn:a:1", "One")),
    ]:
        assert ask(method, path, body, token=bob)[0] == 404, path
        assert ask(method, path, body, token=None)[0] == 401, path
    assert ask("GET", "/sources", token=bob) == (200, [])
    for kind, url in (("folder", "in"), ("kafka", "kafka://localhost:9092/topic")):
        assert ask("POST", "/sources", {"kind": kind, "url": url}, token=bob)[0] == 403
        made(ask, kind=kind, url=url)


# --- push ------------------------------------------------------------------------------------------------------------


def test_a_ticket_publishes_to_its_source_alone(broker: Broker, ask: Client) -> None:
    ticket = made(ask, kind="push", id="desk")["ticket"]
    made(ask, kind="push", id="other")
    ask("POST", "/subscriptions", {"query": QUERY, "id": "all"})
    assert ask("POST", "/publish?source=desk&wait=1", item("urn:a:1", "One"), token=ticket)[1] == {
        "publication": "urn:a:1",
        "new": True,
        "matched": 1,
    }
    assert ask("POST", "/publish", item("urn:a:2", "Two"), token=ticket)[0] == 202
    assert ask("POST", "/publish?source=other", item("urn:a:3", "Three"), token=ticket)[0] == 404
    assert ask("POST", "/publish?source=desk", item("urn:a:3", "Three"), token=ticket[:-1] + "x")[0] == 401
    assert ask("POST", "/publish?source=desk", item("urn:a:3", "Three"), token=None)[0] == 401
    assert ask("GET", "/sources/desk", token=ticket)[0] == 401
    broker.wait([2], 300)
    assert {event.source for event in broker.events(None, 0)} == {"desk"}


def test_a_publisher_is_told_of_its_own_subscriptions(broker: Broker, ask: Client) -> None:
    tokens = {owner: broker.new_token(owner) for owner in ("ann", "ann/eve", "bob")}
    for token in (TOKEN, *tokens.values()):
        assert ask("POST", "/subscriptions", {"query": QUERY, "id": "all"}, token=token)[0] == 201
    made(ask, kind="push", id="box", anonymous=True)
    ticket = ask("POST", "/sources", {"kind": "push", "id": "desk"}, token=tokens["ann"])[1]["ticket"]  # type: ignore[index]
    for number, (token, source, count) in enumerate(
        [
            (TOKEN, "", 4), (tokens["ann"], "", 2), (tokens["ann/eve"], "", 1), (tokens["bob"], "", 1),
            (ticket, "desk", 2), (tokens["ann"], "box", 2), (None, "box", None),
        ]
    ):  # fmt: skip
        address, body = f"/publish?wait=1&source={source}", item(f"urn:a:{number}", "One")
        said = ask("POST", address, body, token=token)[1]
        assert said.get("matched") == count, said  # type: ignore[attr-defined]


def test_anybody_may_publish_to_an_anonymous_source(ask: Client) -> None:
    made(ask, kind="push", id="box", anonymous=True)
    assert ask("POST", "/publish?source=box", item("urn:a:1", "One"), token=None)[0] == 202
    assert ask("POST", "/publish", item("urn:a:2", "Two"), token=None)[0] == 401
    assert ask("PATCH", "/sources/box", {"may_subscribe": True})[0] == 400
    ask("PATCH", "/sources/box", {"anonymous": False})
    assert ask("POST", "/publish?source=box", item("urn:a:2", "Two"), token=None)[0] == 401


def test_documents_without_ids_are_known_by_their_content(ask: Client) -> None:
    first, second, again = (
        ask("POST", "/publish", body, kind="text/turtle")[1]
        for body in (b"[] <urn:p> 'one' .", b"[] <urn:p> 'two' .", b"[] <urn:p> 'one' .")
    )
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert first["publication"] != second["publication"]
    assert again == {**first, "new": False}


def test_a_request_that_is_sent_again_is_accepted_once(broker: Broker, ask: Client) -> None:
    first = ask("POST", "/publish", item("urn:a:1", "One"), Idempotency_Key="k1")[1]
    assert isinstance(first, dict)
    ask("POST", "/publish", item("urn:a:1", "One, changed"), Idempotency_Key="k2")
    again = ask("POST", "/publish", item("urn:a:1", "One"), Idempotency_Key="k1")
    assert again == (202, {**first, "new": False})
    assert ask("POST", "/publish", item("urn:a:1", "Other"), Idempotency_Key="k1")[0] == 400
    bob = broker.new_token("bob")
    assert ask("POST", "/publish", item("urn:b:1", "Bob's"), Idempotency_Key="k1", token=bob)[0] == 202


def test_attachments_come_with_a_document(broker: Broker, ask: Client) -> None:
    body = (
        b"--b\r\nContent-Type: application/rss+xml\r\n\r\n" + item("urn:a:1", "One")
        + b"\r\n--b\r\nContent-ID: <pic>\r\nContent-Type: image/png\r\n\r\n\x89PNG\r\n--b--\r\n"
    )  # fmt: skip
    ticket = made(ask, kind="push", id="desk")["ticket"]
    kind = 'multipart/related; boundary="b"'
    assert ask("POST", "/publish", body, token=ticket, kind=kind)[0] == 202
    from triplewire.broker.events.event_log import publication_of

    with broker.database.reading() as connection:
        publication = publication_of(connection, 1)
    assert publication is not None
    assert dict(publication.attachments) == {"pic": b"\x89PNG"}


def event(id: str, data: bytes) -> CloudEvent:
    attributes = {"id": id, "source": "/desk", "type": "net.example.item", "datacontenttype": "application/rss+xml"}
    return CloudEvent(attributes=attributes, data=data.decode())


def test_cloud_events_in_all_modes(broker: Broker, ask: Client) -> None:
    binary = http.to_binary(event("1", item("urn:a:1", "One")), JSONFormat())
    headers = {name: value for name, value in binary.headers.items() if name != "content-type"}
    kind = binary.headers["content-type"]
    assert ask("POST", "/publish", binary.body, kind=kind, **headers) == (202, {"publication": "urn:a:1", "new": True})
    structured = http.to_structured(event("2", item("urn:a:2", "Two")), JSONFormat())
    kind = structured.headers["content-type"]
    assert ask("POST", "/publish", structured.body, kind=kind)[1] == {"publication": "urn:a:2", "new": True}
    batch: list[object] = [
        json.loads(JSONFormat().write(event("1", item("urn:a:1", "One")))),
        {"specversion": "1.0", "id": "3", "source": "/desk"},
        {"specversion": "1.0", "id": "4", "source": "/desk", "type": "t", "data": "<nothing"},
        {
            "specversion": "1.0",
            "id": "5",
            "source": "/desk",
            "type": "t",
            "data": [{"@id": "urn:a:5", "@graph": {"urn:p": "Five"}}],
        },
        {
            "specversion": "1.0",
            "id": "6",
            "source": "/desk",
            "type": "t",
            "data_base64": base64.b64encode(item("urn:a:6", "Six")).decode(),
        },
        7,
    ]
    status, said = ask("POST", "/publish", json.dumps(batch).encode(), kind="application/cloudevents-batch+json")
    assert status == 202
    assert isinstance(said, list)
    assert [entry.get("publication", entry.get("status")) for entry in said] == [
        "urn:a:1", 400, 400, "urn:a:5", "urn:a:6", 400
    ]  # fmt: skip
    assert "type" in said[1]["title"]
    assert said[0]["new"] is False
    assert said[4]["new"] is True


@on_sqlite_alone
@pytest.mark.parametrize("body", [b"[]", b"{}", b"[", b'{"specversion": "0.3", "id": "1", "source": "s", "type": "t"}'])
def test_cloud_events_that_are_refused(ask: Client, body: bytes) -> None:
    kind = "application/cloudevents-batch+json" if body == b"[]" else "application/cloudevents+json"
    assert ask("POST", "/publish", body, kind=kind)[0] == 400


# --- subscriptions that arrive as items ------------------------------------------------------------------------------


def test_an_item_subscribes_and_changes_its_query(broker: Broker, ask: Client) -> None:
    ticket = made(ask, kind="push", id="desk", may_subscribe=True)["ticket"]
    quoted = GQL.replace('"', "&amp;quot;").replace("SELECT", "&lt;p&gt;SELECT")
    said = ask("POST", "/publish", item("wish-1", "GQL: games", quoted), token=ticket)
    assert said == (202, {"subscription": "wish-1"})
    _, row = ask("GET", "/subscriptions/wish-1")
    assert isinstance(row, dict)
    assert (row["query"], row["language"], row["title"], row["revision"]) == (GQL, "gql", "games", 1)
    ask("POST", "/publish?wait=1", item("urn:a:1", "Olympic games"), token=ticket)
    ask("POST", "/publish", item("wish-1", "GQL: games", quoted), token=ticket)
    ask("POST", "/publish", item("wish-1", "GQL: games", quoted.replace("Olympic", "Winter")), token=ticket)
    assert ask("GET", "/subscriptions/wish-1")[1]["revision"] == 2  # type: ignore[index]
    ask("POST", "/publish?wait=1", item("urn:a:2", "Winter games"), token=ticket)
    assert told(broker) == [("wish-1", "urn:a:1"), ("wish-1", "urn:a:2")]
    said = ask("POST", "/publish", item("http://example.org/wish?n=2", "GQL", GQL), token=ticket)
    assert said[0] == 202
    assert len(ask("GET", "/subscriptions")[1]) == 2  # type: ignore[arg-type]


def test_an_item_that_only_speaks_of_it_is_content(broker: Broker, ask: Client) -> None:
    made(ask, kind="push", id="trusted", may_subscribe=True)
    made(ask, kind="push", id="other")
    ask("POST", "/subscriptions", {"query": QUERY, "id": "all"})
    for number, title in enumerate(("ISO publishes GQL", "GQLite is out", "gql: a language", "About GQL: part 2")):
        for source in ("trusted", "other"):
            path = f"/publish?wait=1&source={source}"
            status, said = ask("POST", path, item(f"urn:{source}:{number}", title))
            assert (status, said["matched"]) == (202, 1), title  # type: ignore[index]


def test_an_item_that_asks_is_refused_from_other_sources(broker: Broker, ask: Client) -> None:
    made(ask, kind="push", id="other")
    ask("POST", "/subscriptions", {"query": QUERY, "id": "all"})
    for number, title in enumerate(("GQL", "GQL:", " GQL : games")):
        for path in ("/publish?source=other", "/publish"):
            status, said = ask("POST", path, item(f"urn:a:{number}", title, GQL))
            assert status == 400
            assert "may_subscribe" in said["remedy"]  # type: ignore[index]
    assert len(ask("GET", "/subscriptions")[1]) == 1  # type: ignore[arg-type]
    assert told(broker) == []


def test_an_item_cannot_take_over_other_subscriptions(ask: Client) -> None:
    ask("POST", "/subscriptions", {"query": QUERY, "id": "all"})
    made(ask, kind="push", id="desk", may_subscribe=True)
    status, said = ask("POST", "/publish?source=desk", item("all", "GQL", GQL))
    assert status == 400
    assert "taken" in said["title"]  # type: ignore[index]
    assert ask("GET", "/subscriptions/all")[1]["query"] == QUERY  # type: ignore[index]
    assert ask("POST", "/publish?source=desk", item("new", "GQL", "SELECT nothing"))[0] == 400
    assert ask("POST", "/publish?source=desk", item("new", "GQL", ""))[0] == 400
    assert ask("GET", "/subscriptions/new")[0] == 404


def wishes(*ids: str, query: str = GQL, more: str = "") -> bytes:
    """A feed of items that ask for subscriptions."""
    items = "".join(
        f"<item><guid isPermaLink='false'>{id}</guid><title>GQL: {id}</title><description>{query}</description></item>"
        for id in ids
    )
    head = "<rss version='2.0'><channel><title>Wishes</title><link>http://example.org/</link>"
    return f"{head}{items}{more}</channel></rss>".encode()


def states(ask: Client) -> dict[str, str]:
    _, rows = ask("GET", "/subscriptions")
    return {row["id"]: row["state"] for row in rows}  # type: ignore[index,union-attr]


def test_a_feed_of_many_wishes_ends_what_is_missing_where_it_names_all(broker: Broker, ask: Client) -> None:
    ticket = made(ask, kind="push", id="desk", may_subscribe=True, full_sync=True)["ticket"]
    ask("POST", "/subscriptions", {"query": QUERY, "id": "of-the-page"})
    said = ask("POST", "/publish", wishes("a", "b", "c"), token=ticket)
    assert said == (202, [{"subscription": id} for id in "abc"])
    ask("POST", "/publish", wishes("a", "c", query=GQL.replace("Olympic", "Winter")), token=ticket)
    assert states(ask) == {"of-the-page": "active", "a": "active", "b": "ended", "c": "active"}
    assert ask("GET", "/subscriptions/c")[1]["revision"] == 2  # type: ignore[index]
    for damaged in (wishes("a") + b"<", wishes("a", more="<item><title>x</title>"), wishes(), item("urn:a:1", "One")):
        ask("POST", "/publish", damaged, token=ticket)
        assert states(ask)["c"] == "active", damaged
    wrong = wishes("a", more=wishes("c", query="nonsense").decode().partition("</link>")[2].partition("</channel>")[0])
    ask("POST", "/publish", wrong, token=ticket)
    assert states(ask)["c"] == "active"
    ask("POST", "/publish", wishes("b"), token=ticket)
    assert states(ask) == {"of-the-page": "active", "a": "ended", "b": "active", "c": "ended"}
    ask("POST", "/publish?wait=1", item("urn:a:2", "Olympic games"), token=ticket)
    assert ("b", "urn:a:2") in told(broker)
    ask("PATCH", "/sources/desk", {"full_sync": False})
    ask("POST", "/publish", wishes("d"), token=ticket)
    assert states(ask)["b"] == "active"
    ask("DELETE", "/subscriptions/b")
    assert ask("POST", "/publish", wishes("b"), token=ticket)[0] == 400  # its owner has ended it


@on_sqlite_alone
def test_only_sources_whose_documents_may_subscribe_name_all(ask: Client) -> None:
    for wanted in ({"kind": "push"}, {"kind": "folder", "url": "in", "may_subscribe": True}):
        assert ask("POST", "/sources", {**wanted, "full_sync": True})[0] == 400
    made(ask, kind="push", id="desk", may_subscribe=True, full_sync=True)
    assert ask("PATCH", "/sources/desk", {"may_subscribe": False})[0] == 400


# --- FROM ------------------------------------------------------------------------------------------------------------


def test_from_narrows_to_a_source_by_id_and_title(broker: Broker, ask: Client) -> None:
    made(ask, kind="push", id="desk", title="World News", url="urn:source:desk")
    made(ask, kind="push", id="other")
    names = {"by-id": "desk", "by-title": '"world news"', "by-url": "<urn:source:desk>", "by-none": "missing"}
    for id, name in names.items():
        query = f"SELECT ?t FROM {name} WHERE (?i, title, ?t)"
        assert ask("POST", "/subscriptions", {"query": query, "language": "gql", "id": id})[0] == 201
    ask("POST", "/publish?wait=1&source=desk", item("urn:a:1", "One"))
    ask("POST", "/publish?wait=1&source=other", item("urn:a:2", "Two"))
    assert sorted(told(broker)) == [("by-id", "urn:a:1"), ("by-title", "urn:a:1"), ("by-url", "urn:a:1")]
    ask("PATCH", "/sources/other", {"title": "World  NEWS"})
    ask("POST", "/publish?wait=1&source=other", item("urn:a:3", "Three"))
    assert told(broker)[3:] == [("by-title", "urn:a:3")]


def test_an_item_of_two_sources_is_told_once_also_to_who_asks_for_the_second(broker: Broker, ask: Client) -> None:
    def subscribe(id: str, *names: str) -> None:
        sources = f"FROM {', '.join(names)}" if names else ""
        query = f"SELECT ?t {sources} WHERE (?i, title, ?t)"
        assert ask("POST", "/subscriptions", {"query": query, "language": "gql", "id": id})[0] == 201

    def publish(source: str, title: str = "One") -> list[tuple[str, str]]:
        """Who is told of the item as a source has it, and how."""
        before = broker.events("owner", 0)
        ask("POST", f"/publish?wait=1&source={source}", item("urn:a:1", title))
        return sorted((event.id, event.type) for event in broker.events("owner", 0)[len(before) :])

    for source in ("first", "second", "third"):
        made(ask, kind="push", id=source)
        subscribe(source, source)
    subscribe("any")
    subscribe("first-or-third", "first", "third")
    assert publish("first") == [("any", "matched"), ("first", "matched"), ("first-or-third", "matched")]
    subscribe("late")
    subscribe("late-third", "third")
    assert publish("second") == [("second", "matched")]
    assert publish("third") == [("late-third", "matched"), ("third", "matched")]
    assert publish("first") == publish("second") == publish("third") == []
    assert [event.source for event in broker.events("owner", 0)] == ["first"] * 3 + ["second"] + ["third"] * 2
    changed = dict(publish("third", "Two"))
    assert changed == {
        "any": "changed", "third": "changed", "first-or-third": "changed", "late-third": "changed", "late": "matched",
        "first": "unmatched", "second": "unmatched",
    }  # fmt: skip
    assert publish("first", "Two") == [("first", "matched")]


# --- the taxonomy ----------------------------------------------------------------------------------------------------

CLASSES = b"@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . <urn:c:Puffin> rdfs:subClassOf <urn:c:Bird> ."


def puffin(id: str) -> bytes:
    return f"<{id}> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <urn:c:Puffin> <{id}> .".encode()


def test_the_taxonomy_is_put_changed_and_lasts(database_url: str) -> None:
    with Broker.open(database_url, b"s" * 32) as broker:
        ask = Client(service(broker, ServiceSettings(token=TOKEN, wait_seconds=300.0)))
        query = "SELECT ?i WHERE (?i, rdf:type, ?c) SUCHTHAT (?c ISA <= <urn:c:Bird>)"
        assert ask("POST", "/subscriptions", {"query": query, "language": "gql", "id": "birds"})[0] == 201
        ask("POST", "/publish?wait=1", puffin("urn:a:1"), kind="application/n-quads")
        status, said = ask("PUT", "/taxonomy", CLASSES, kind="text/turtle")
        assert (status, said) == (200, {"classes": 2, "instances": 0, "names": 0})
        ask("POST", "/publish?wait=1", puffin("urn:a:2"), kind="application/n-quads")
        assert told(broker) == [("birds", "urn:a:2")]
        assert ask("GET", "/taxonomy")[1]["superclasses"] == {"urn:c:Puffin": ["urn:c:Bird"]}  # type: ignore[index]
    with Broker.open(database_url, b"s" * 32) as broker:
        ask = Client(service(broker, ServiceSettings(token=TOKEN, wait_seconds=300.0)))
        ask("POST", "/publish?wait=1", puffin("urn:a:3"), kind="application/n-quads")
        assert told(broker)[1:] == [("birds", "urn:a:3")]
        change = {"add": "urn:c:Bird\turn:c:Animal\n", "drop": ["urn:c:Puffin"]}
        assert ask("PATCH", "/taxonomy", change)[0] == 200
        ask("POST", "/publish?wait=1", puffin("urn:a:4"), kind="application/n-quads")
        assert len(told(broker)) == 2
        assert ask("GET", "/taxonomy")[1]["superclasses"] == {"urn:c:Bird": ["urn:c:Animal"]}  # type: ignore[index]


def test_a_cycle_is_refused_and_named(broker: Broker, ask: Client) -> None:
    ask("PUT", "/taxonomy", CLASSES, kind="text/turtle")
    before = ask("GET", "/taxonomy")
    for method, body in (
        ("PUT", b"urn:c:A\turn:c:B\nurn:c:B\turn:c:A\n"),
        ("PATCH", {"add": "urn:c:Bird\turn:c:Puffin\n"}),
    ):
        status, said = ask(method, "/taxonomy", body)
        assert status == 400
        assert "cycle" in said["title"]  # type: ignore[index]
        assert said["title"].count("urn:c:") >= 2  # type: ignore[index]
    assert ask("GET", "/taxonomy") == before
    bob = broker.new_token("bob")
    assert ask("GET", "/taxonomy", token=bob) == before
    assert ask("PUT", "/taxonomy", CLASSES, token=bob)[0] == 403
    assert ask("PATCH", "/taxonomy", {"drop": ["urn:c:Bird"]}, token=bob)[0] == 403
    assert ask("GET", "/taxonomy", token=None)[0] == 401
    assert ask("PUT", "/taxonomy", b"<nothing")[0] == 400


def test_another_process_follows_the_taxonomy_and_the_names_of_sources(database_url: str) -> None:
    if database_url.startswith("sqlite"):
        pytest.skip("a SQLite file has one process")
    settings = ServiceSettings(token=TOKEN, wait_seconds=300.0)
    with Broker.open(database_url, b"s" * 32) as matching:
        ask = Client(service(matching, settings))
        with Broker.open(database_url, b"s" * 32) as other:
            ask_other = Client(service(other, settings))
            until(lambda: matching.matching.is_ours or other.matching.is_ours)
            query = "SELECT ?i FROM desk WHERE (?i, rdf:type, ?c) SUCHTHAT (?c ISA <= <urn:c:Bird>)"
            assert ask("POST", "/subscriptions", {"query": query, "language": "gql", "id": "birds"})[0] == 201
            for number, (one, another) in enumerate(((ask, ask_other), (ask_other, ask))):
                assert one("PUT", "/taxonomy", CLASSES if number else b"", kind="text/turtle")[0] == 200
                made(one, kind="push", id=("desk", "none")[number])
                path = "/publish?wait=1&source=desk"
                another("POST", path, puffin(f"urn:a:{number}"), kind="application/n-quads")
                assert [publication for _, publication in told(other)] == ["urn:a:1"] * number
            assert ask("PATCH", "/taxonomy", {"drop": ["urn:c:Bird"]})[0] == 200


def test_a_taxonomy_that_is_given_is_the_first(database_url: str) -> None:
    given = Taxonomy.build([("urn:c:Puffin", "urn:c:Bird")])
    said: list[str] = []
    with Broker.open(database_url, b"s" * 32, engine=Engine(taxonomy=given), warn=said.append) as broker:
        assert broker.taxonomy == given
        said.clear()  # what SQLite is warned of
        broker.change_taxonomy(lambda today: today.changed(drop=["urn:c:Puffin"]))
    with Broker.open(database_url, b"s" * 32, engine=Engine(taxonomy=given), warn=said.append) as broker:
        assert broker.taxonomy != given
        assert "PUT /taxonomy" in said[-1]


def test_a_site_changes_what_is_stated_of_its_namespace(broker: Broker, ask: Client) -> None:
    from triplewire.broker import owners

    tokens = {name: broker.new_token(name) for name in ("site1", "site2")}
    for name in tokens:
        granted = f"http://{name}.example/"
        broker.database.write(lambda c, granted=granted, name=name: owners.grant(c, granted, name))
    with pytest.raises(SubscriptionError, match="granted to site1"):
        broker.database.write(lambda c: owners.grant(c, "http://site1.example/terms#", "site2"))
    above = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
    same = "<http://www.w3.org/2002/07/owl#equivalentClass>"

    def put(name: str, *statements: str, namespace: str = "", method: str = "PUT", more: str = "") -> int:
        text = "\n".join(re.sub(r"(\d):(\w+)", r"<http://site\1.example/\2>", line) + " ." for line in statements)
        path = f"/taxonomy?namespace={namespace or f'http://{name}.example/'}{more}"
        body: object = text.encode() if method == "PUT" else {"add": text}
        return ask(method, path, body, token=tokens[name], kind="text/turtle")[0]

    assert put("site1", f"1:Dinghy {above} 1:Boat") == 200
    assert put("site2", f"2:Ship {above} 2:Craft", f"2:Ship {same} 1:Boat") == 200
    made(ask, kind="push", id="desk")
    craft = "SELECT ?x WHERE (?x, rdf:type, ?t) SUCHTHAT (?x ISA <= <http://site2.example/Craft>)"
    ask("POST", "/subscriptions", {"query": craft, "language": "gql", "id": "craft"})
    dinghy = b"<urn:d:%d> a <http://site1.example/Dinghy> ."
    assert ask("POST", "/publish?wait=1", dinghy % 1, kind="text/turtle")[1]["matched"] == 1  # type: ignore[index]
    for name, statement, more in (
        ("site1", f"2:Craft {above} 1:Boat", ""),
        ("site2", f"1:Boat {above} 2:Ship", ""),
        ("site2", f"2:Craft {above} 2:Ship", ""),
        ("site2", f"2:Craft {above} 2:Ship", "&dry_run=1"),
        ("site2", f"2:Craft {above} 1:Dinghy", ""),
    ):
        assert [put(name, statement, method=method, more=more) for method in ("PATCH",)] == [400], statement
    assert put("site2", f"1:Boat {above} 1:Thing", namespace="http://site1.example/") == 403
    assert put("site2", f"1:Boat {above} 1:Thing", namespace="http://") == 403
    tokens["site1/ann"] = broker.new_token("site1/ann")  # the site acts for its users, and not they for it
    assert put("site1/ann", f"1:Boat {above} 1:Thing", namespace="http://site1.example/") == 403
    broker.database.write(lambda c: owners.grant(c, "http://ann.example/", "site1/ann"))
    assert put("site1", namespace="http://ann.example/") == 200
    assert put("site2", f"1:Boat {above} 1:Thing", namespace="http://site1.example/", more="&dry_run=1") == 200
    assert put("site2", f"2:Ship {above} 2:Craft") == 200  # what is the same is stated no more
    assert ask("POST", "/publish?wait=1", dinghy % 2, kind="text/turtle")[1]["matched"] == 0  # type: ignore[index]
    assert ask("GET", "/taxonomy")[1]["superclasses"] == {  # type: ignore[index]
        "http://site1.example/Dinghy": ["http://site1.example/Boat"],
        "http://site2.example/Ship": ["http://site2.example/Craft"],
    }
    assert len(told(broker)) == 1
