"""The stream of a subscription: what was, then what comes, each event once for who says where it was."""

from __future__ import annotations

import contextlib
import json
import threading
import urllib.request
from collections.abc import Iterator
from http.client import HTTPResponse
from typing import Any

import pytest
from fastapi.testclient import TestClient

from broker.serving import SECRET, broker_at, published, served, subscribed
from triplewire.broker.broker import Broker
from triplewire.store.tables import subscriptions

Told = tuple[str, str]


@contextlib.contextmanager
def stream(address: str, last: str | None = None) -> Iterator[HTTPResponse]:
    headers = {"Accept": "text/event-stream", **({"Last-Event-ID": last} if last is not None else {})}
    with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=300) as answer:
        yield answer


def told(answer: HTTPResponse, count: int) -> list[Told]:
    """The next events, as (id, title), read as the HTML standard says (9.2.6)."""
    found: list[Told] = []
    fields: dict[str, list[str]] = {}
    while len(found) < count and (line := answer.readline().decode()):
        name, _, value = line.rstrip("\n").partition(":")
        if line == "\n":
            if "data" in fields:
                found.append((fields["id"][-1], json.loads("\n".join(fields["data"]))["title"]))
            fields = {}
        elif name:
            fields.setdefault(name, []).append(value.removeprefix(" "))
    return found


def test_the_past_then_what_comes(database_url: str) -> None:
    with broker_at(database_url) as (broker, app), served(app) as url:
        made = subscribed(broker)
        address = f"{url}/s/{made.feed_key}/events"
        published(broker, ("urn:item:1", "One"), ("urn:item:2", "Two"))
        with stream(address, "0") as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            assert answer.readline().startswith(b"retry: ")
            assert told(answer, 2) == [("1", "One"), ("2", "Two")]
            published(broker, ("urn:item:3", "Three"))
            assert told(answer, 1) == [("3", "Three")]
        published(broker, ("urn:item:4", "Four"))
        with stream(f"{address}?after=1", "3") as answer:  # of the two, what its client saw since counts
            assert told(answer, 1) == [("4", "Four")]
        with stream(f"{address}?after=2") as answer:
            assert told(answer, 2) == [("3", "Three"), ("4", "Four")]
        with stream(address) as live, stream(address, "99") as beyond:
            for answer in (live, beyond):
                answer.readline()  # so it has begun
            published(broker, ("urn:item:5", "Five"))
            assert told(live, 1) == told(beyond, 1) == [("5", "Five")]


def test_a_text_adds_no_field(database_url: str) -> None:
    title = "One\n\nid: 99\r\rdata: {}\n\n\x00\u2028event: x"
    with broker_at(database_url) as (broker, app), served(app) as url:
        made = subscribed(broker)
        published(broker, ("urn:item:1", title), ("urn:item:2", "Two"))
        with stream(f"{url}/s/{made.feed_key}/events", "0") as answer:
            assert [id for id, _ in told(answer, 2)] == ["1", "2"]


def test_what_another_process_matches(database_url: str) -> None:
    if database_url.startswith("sqlite"):
        pytest.skip("one process has a file of SQLite")
    with broker_at(database_url) as (first, _), broker_at(database_url) as (_, app), served(app) as url:
        made = subscribed(first)
        with stream(f"{url}/s/{made.feed_key}/events?after=0") as answer:
            published(first, ("urn:item:1", "One"))
            assert told(answer, 1) == [("1", "One")]


def test_a_stream_ends_with_its_subscription(database_url: str) -> None:
    with broker_at(database_url) as (broker, app), served(app) as url:
        made = subscribed(broker)
        address = f"{url}/s/{made.feed_key}/events"
        with stream(f"{address}?after=0") as answer:
            over = subscriptions.update().values(expires=1.0)
            broker.database.write(lambda connection: connection.execute(over))
            rest = answer.read().decode()
            assert '"type": "expired"' in rest
        client = TestClient(app)
        assert client.get(address, headers={"Last-Event-ID": "1"}).status_code == 204
        assert client.get(address, headers={"Last-Event-ID": "one"}).status_code == 400


def test_the_service_ends_while_somebody_listens(database_url: str) -> None:
    ended = threading.Event()

    def listen(answer: Any) -> None:
        answer.read()
        ended.set()

    with contextlib.ExitStack() as open_streams:
        with broker_at(database_url) as (broker, app), served(app) as url:
            made = subscribed(broker)
            answer = open_streams.enter_context(stream(f"{url}/s/{made.feed_key}/events"))
            answer.readline()
            threading.Thread(target=listen, args=(answer,), daemon=True).start()
        assert ended.wait(300)


def test_a_list_to_catch_up(database_url: str) -> None:
    with broker_at(database_url) as (broker, app):
        made, client = subscribed(broker), TestClient(app)
        published(broker, ("urn:item:1", "One"), ("urn:item:2", "Two"), ("urn:item:3", "Three"))
        lines = client.get(f"/s/{made.feed_key}/events?after=1&format=ndjson").text.splitlines()
        assert [json.loads(line)["title"] for line in lines] == ["Two", "Three"]
    with Broker.open(database_url, SECRET) as again:
        assert [event.title for event in again.events_of(made.number, 2)] == ["Three"]


def test_ids_begin_so_in_the_same_letters(database_url: str) -> None:
    with broker_at(database_url) as (broker, _):
        for id in ("News.a", "news.b", "N_ws.c"):
            subscribed(broker, id=id)
        published(broker, ("urn:item:1", "One"))
        begun = {prefix: [event.id for event in broker.events("owner", 0, prefix=prefix)] for prefix in ("News.", "N_")}
        assert begun == {"News.": ["News.a"], "N_": ["N_ws.c"]}
