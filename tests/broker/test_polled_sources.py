"""Sources that are polled, on both databases, from a real server: accepted once, known again, told of their owners."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from broker.serving import on_sqlite_alone
from sources.feed_server import Web, served
from triplewire.broker.broker import Broker, Wanted
from triplewire.broker.incoming.folder_sources import Folders
from triplewire.broker.incoming.polling import Polling
from triplewire.broker.incoming.registered_sources import FOLDER, KAFKA, PUSH, State, WantedSource, health
from triplewire.config import ServiceSettings
from triplewire.errors import ArgumentError, SubscriptionError
from triplewire.store.tables import publications
from waiting import until

SECRET = b"s" * 32
QUERY = "SELECT ?t WHERE { ?i rss:title ?t }"
PRIVATE = ServiceSettings(shortest_poll=10, allow_private_addresses=True, most_new=3)


def feed(*items: tuple[str, str], description: str = "text") -> tuple[int, dict[str, str], bytes]:
    """A page with a feed of items: id and title."""
    parts = "".join(
        f"<item><guid isPermaLink='false'>{id}</guid><title>{title}</title>"
        f"<description>{description}</description></item>"
        for id, title in items
    )
    link = "<link>http://example.org/</link>"
    return 200, {}, f"<rss version='2.0'><channel><title>News</title>{link}{parts}</channel></rss>".encode()


@pytest.fixture
def web() -> Iterator[Web]:
    with served() as server:
        yield server


@pytest.fixture
def broker(database_url: str) -> Iterator[Broker]:
    with Broker.open(database_url, SECRET) as opened:
        yield opened


def told(broker: Broker, owner: str = "ann") -> list[tuple[str, str, str]]:
    """Subscription, publication and type of each event of an owner."""
    return [(event.id, event.publication, event.type) for event in broker.events(owner, 0)]


def state_of(broker: Broker, id: str) -> dict[str, object]:
    row = broker.sources.find(id)
    assert row is not None
    return health(row)


def test_what_a_feed_brings_is_told_once_also_after_a_reset_and_a_restart(database_url: str, web: Web) -> None:
    web.pages["/feed"] = feed(("urn:a:1", "One"), ("urn:a:2", "Two"))
    with Broker.open(database_url, SECRET) as broker:
        broker.subscribe(Wanted(QUERY, id="all"), "ann")
        with Polling(broker, PRIVATE):
            broker.sources.add(WantedSource(f"{web.root}/feed", id="news"), "ann")
            until(lambda: len(told(broker)) == 2)
            row = broker.sources.find("news")
            assert row is not None
            asked = len(web.asked)
            broker.sources.reset(row.number)
            until(lambda: len(web.asked) > asked)
            until(lambda: state_of(broker, "news")["state"] == "ok")
    with Broker.open(database_url, SECRET) as broker, Polling(broker, PRIVATE):
        assert state_of(broker, "news")["state"] == "ok"
        web.pages["/feed"] = feed(("urn:a:2", "Two"), ("urn:a:3", "Three"))
        broker.sources.add(WantedSource(f"{web.root}/other", id="other"), "ann")  # which is asked by the same poller
        until(lambda: state_of(broker, "other")["failures"])
        row = broker.sources.find("news")
        assert row is not None
        broker.sources.reset(row.number)
        until(lambda: len(told(broker)) == 3)
        assert [entry[1] for entry in told(broker)] == ["urn:a:1", "urn:a:2", "urn:a:3"]
        assert {event.source for event in broker.events("ann", 0)} == {f"{web.root}/feed"}
        count = broker.counts.registry.get_sample_value
        assert (count("triplewire_documents_total", {"outcome": "taken"}) or 0) >= 1


def test_the_owner_is_told_of_failures(broker: Broker, web: Web) -> None:
    web.pages["/page"] = (200, {}, b"<!DOCTYPE html><html><body>for sale</body></html>")
    web.pages["/gone"] = (410, {}, b"")
    with Polling(broker, PRIVATE):
        for name in ("page", "gone", "missing"):
            broker.sources.add(WantedSource(f"{web.root}/{name}", id=name), "ann")
        until(lambda: all(state_of(broker, name)["reason"] for name in ("page", "gone", "missing")))
        assert state_of(broker, "gone")["state"] == "gone"
        assert state_of(broker, "missing")["state"] == "failing"
        assert "404" in str(state_of(broker, "missing")["reason"])
        assert state_of(broker, "page")["state"] == "failing"
        make_due(broker, "missing", lambda: int(str(state_of(broker, "missing")["failures"])) >= 3)
        row = broker.sources.find("missing")
        assert row is not None
        assert state_of(broker, "missing")["state"] == "broken"
        web.pages["/missing"] = feed(("urn:a:1", "One"))
        broker.sources.reset(row.number)
        until(lambda: state_of(broker, "missing")["state"] == "ok")


def make_due(broker: Broker, id: str, holds: Callable[[], object]) -> None:
    """Have a feed be due, as if its interval were over, until it holds."""

    def past(state: State) -> None:
        if state.feed:  # it was asked, and that was kept
            state.feed["due"] = 0.0

    row = broker.sources.find(id)
    assert row is not None
    while not holds():
        broker.sources.note(row.number, past)
        broker.sources.change(row.number, title="due")
        time.sleep(0.3)


def test_a_feed_is_not_asked_at_a_private_address(broker: Broker, web: Web) -> None:
    web.pages["/feed"] = feed(("urn:a:1", "One"))
    with Polling(broker, ServiceSettings()):
        broker.sources.add(WantedSource(f"{web.root}/feed", id="news"), "ann")
        until(lambda: state_of(broker, "news")["reason"])
        assert "private address" in str(state_of(broker, "news")["reason"])
    assert not web.asked


def test_of_many_new_items_some_are_told_and_the_others_kept(broker: Broker, web: Web) -> None:
    broker.subscribe(Wanted(QUERY, id="all"), "ann")
    web.pages["/feed"] = feed(*((f"urn:a:{n}", f"Title {n}") for n in range(3)))
    with Polling(broker, PRIVATE):
        row, _ = broker.sources.add(WantedSource(f"{web.root}/feed", id="news"), "ann")
        until(lambda: len(told(broker)) == 3)
        web.pages["/feed"] = feed(*((f"urn:a:{n}", f"Title {n}") for n in range(10)))
        broker.sources.reset(row.number)
        until(lambda: state_of(broker, "news")["refused"])
        until(lambda: len(told(broker)) == 6)
    assert refused(broker, "news") == [f"urn:a:{n}" for n in range(6, 10)]


def test_items_that_come_again_under_new_ids_are_not_told_again(broker: Broker, web: Web) -> None:
    broker.subscribe(Wanted(QUERY, id="all"), "ann")
    pages = [(f"urn:old:{n}", f"Title {n}") for n in range(3)]
    web.pages["/feed"] = feed(*pages, ("urn:old:3", "Alike"))
    with Polling(broker, ServiceSettings(allow_private_addresses=True)):
        row, _ = broker.sources.add(WantedSource(f"{web.root}/feed", id="news"), "ann")
        until(lambda: len(told(broker)) == 4)
        web.pages["/feed"] = feed(*pages, ("urn:old:4", "Alike"), ("urn:old:5", "Alike"))  # two, which happens
        broker.sources.reset(row.number)
        until(lambda: len(told(broker)) == 6)
        web.pages["/feed"] = feed(*((f"urn:new:{n}", f"Title {n}") for n in range(3)), ("urn:new:3", "Another"))
        broker.sources.reset(row.number)
        until(lambda: len(told(broker)) == 7)
    assert told(broker)[6] == ("all", "urn:new:3", "matched")
    assert refused(broker, "news") == ["urn:new:0", "urn:new:1", "urn:new:2"]


def refused(broker: Broker, id: str) -> list[str]:
    """The publications that were kept as refused, of which the owner is told."""
    with broker.database.reading() as connection:
        kept = sa.select(publications.c.id).where(publications.c.state == "refused").order_by(publications.c.number)
        ids = list(connection.execute(kept).scalars())
    said = state_of(broker, id)["refused"]
    assert isinstance(said, list)
    assert len(said) == len(ids)
    assert all("held back" in text for text in said)
    return ids


def test_two_owners_have_one_feed_that_is_asked_once(broker: Broker, web: Web) -> None:
    web.pages["/feed"] = feed(("urn:a:1", "One"))
    with Polling(broker, PRIVATE):
        broker.sources.add(WantedSource(f"{web.root}/feed", id="of-ann"), "ann")
        until(lambda: state_of(broker, "of-ann")["state"] == "ok")
        row, _ = broker.sources.add(WantedSource(f"{web.root}/feed", id="of-bob"), "bob")
        until(lambda: state_of(broker, "of-bob")["state"] == "ok")
        broker.sources.remove(row.number)
        assert broker.sources.find("of-bob") is None
        assert state_of(broker, "of-ann")["state"] == "ok"


POLLS = """
import sys, time
from broker.test_polled_sources import PRIVATE, SECRET
from triplewire.broker.broker import Broker
from triplewire.broker.incoming.polling import Polling

with Broker.open(sys.argv[1], SECRET) as broker, Polling(broker, PRIVATE):
    time.sleep(600)
"""


def test_another_process_goes_on_with_what_a_killed_one_polled(database_url: str, web: Web) -> None:
    if database_url.startswith("sqlite"):
        pytest.skip("a SQLite file has one process")
    web.pages["/feed"] = feed(("urn:a:1", "One"))
    web.pages["/more"] = feed(("urn:a:1", "One"), ("urn:a:2", "Two"))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    with Broker.open(database_url, SECRET) as broker:
        broker.subscribe(Wanted(QUERY, id="all"), "ann")
        broker.sources.add(WantedSource(f"{web.root}/feed", id="news"), "ann")
        process = subprocess.Popen([sys.executable, "-c", POLLS, database_url], env=environment)
        try:
            until(lambda: state_of(broker, "news")["state"] == "ok")
            with Polling(broker, PRIVATE):
                process.kill()
                broker.sources.add(WantedSource(f"{web.root}/more", id="more"), "ann")
                until(lambda: len(told(broker)) == 2)
        finally:
            process.kill()
            process.wait()
    assert [entry[1] for entry in told_after(database_url)] == ["urn:a:1", "urn:a:2"]


def told_after(database_url: str) -> list[tuple[str, str, str]]:
    """The events that a broker that is opened anew has."""
    with Broker.open(database_url, SECRET) as broker:
        return told(broker)


def test_the_end_does_not_wait_for_a_server(broker: Broker, web: Web) -> None:
    web.held["/slow"] = threading.Event()
    with Polling(broker, PRIVATE):
        broker.sources.add(WantedSource(f"{web.root}/slow", id="slow"), "ann")
        until(lambda: web.asked)
    assert not [thread.name for thread in threading.enumerate() if thread.name in ("polling", "feeds")]
    assert state_of(broker, "slow")["state"] == "new"
    web.held["/slow"].set()


def test_a_folder_is_read_file_by_file(broker: Broker, tmp_path: Path) -> None:
    allowed = tmp_path / "allowed"
    (allowed / "in").mkdir(parents=True)
    outside = tmp_path / "outside.ttl"
    outside.write_text("<urn:o:1> rss:title 'Outside' .")
    (allowed / "in" / "link.ttl").symlink_to(outside)
    (allowed / "in" / "one.atom").write_bytes(feed(("urn:a:1", "One"))[2])
    (allowed / "in" / "bad.xml").write_bytes(b"<nothing")
    broker.subscribe(Wanted(QUERY, id="all"), "ann")
    with Polling(broker, ServiceSettings(source_folder=str(allowed))):
        broker.sources.add(WantedSource("in", FOLDER, id="files"), "ann")
        until(lambda: state_of(broker, "files")["refused"] and len(told(broker)) == 1)
        (allowed / "in" / "two.atom").write_bytes(feed(("urn:a:2", "Two"))[2])
        until(lambda: len(told(broker)) == 2)
    with Polling(broker, ServiceSettings(source_folder=str(allowed))):
        (allowed / "in" / "one.atom").write_bytes(feed(("urn:a:3", "Three"))[2])
        until(lambda: len(told(broker)) == 3)
    assert [entry[1] for entry in told(broker)] == ["urn:a:1", "urn:a:2", "urn:a:3"]


@on_sqlite_alone
@pytest.mark.parametrize("becomes", ["a link", "a pipe"])
def test_a_file_that_becomes_another_thing_is_not_read(broker: Broker, tmp_path: Path, becomes: str) -> None:
    file, outside = tmp_path / "in" / "news.ttl", tmp_path / "outside.ttl"
    file.parent.mkdir()
    outside.write_text("<urn:o:1> rss:title 'Outside' .")
    file.write_text("seen")
    row, _ = broker.sources.add(WantedSource("in", FOLDER, id="files"), "ann")
    taken: list[bytes] = []
    folders = Folders(
        str(tmp_path),
        lambda rows, content, place: taken.append(content),
        lambda row, update: broker.sources.note(row.number, update),
    )
    folders.follow([row])
    folders.look()
    seen = folders._seen[row.number]
    file.unlink()
    if becomes == "a link":
        file.symlink_to(outside)
    else:
        os.mkfifo(file)
    folders._take_file(row, file, seen)
    assert taken == []
    assert "cannot be read" in State.of(broker.sources.of_kind(FOLDER)[0]).told[-1]


@on_sqlite_alone
@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (WantedSource("http://a.example/", id="taken"), SubscriptionError),
        (WantedSource("http://a.example/", id="a/b"), ArgumentError),
        (WantedSource("http://a.example/", kind="pull"), ArgumentError),
        (WantedSource("no iri", kind=PUSH), ArgumentError),
        (WantedSource(), ArgumentError),
    ],
)
def test_sources_that_cannot_be(broker: Broker, wanted: WantedSource, error: type[Exception]) -> None:
    broker.sources.add(WantedSource(kind=PUSH, id="taken"), "ann")
    with pytest.raises(error):
        broker.sources.add(wanted, "bob")


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_a_topic_of_kafka_is_read_once_over_restarts(broker: Broker, kafka_server: str) -> None:
    kafka_client = pytest.importorskip("confluent_kafka")
    broker.subscribe(Wanted(QUERY, id="all"), "ann")
    producer = kafka_client.Producer({"bootstrap.servers": kafka_server})
    topic = f"items{uuid.uuid4().hex}"

    def send(*bodies: bytes) -> None:
        for body in bodies:
            producer.produce(topic, body)
        producer.flush()

    send(feed(("urn:a:1", "One"))[2], b"<nothing", feed(("urn:a:2", "Two"))[2])
    broker.sources.add(WantedSource(f"kafka://{kafka_server}/{topic}", KAFKA, id="topic"), "ann")
    for count in (2, 3):
        with Polling(broker, PRIVATE):
            until(lambda count=count: len(told(broker)) == count)
        send(feed(("urn:a:3", "Three"))[2])
    assert [entry[1] for entry in told(broker)] == ["urn:a:1", "urn:a:2", "urn:a:3"]
    assert f"kafka:{topic}/0/1" in str(state_of(broker, "topic")["refused"])
    narrowed = f"SELECT ?t FROM {topic} WHERE (?i, title, ?t)"
    broker.subscribe(Wanted(narrowed, "gql", id="narrowed"), "ann")
    with Polling(broker, PRIVATE):
        send(feed(("urn:a:4", "Four"))[2])
        until(lambda: ("narrowed", "urn:a:4", "matched") in told(broker))


def test_a_feed_subscribes_and_its_subscriptions_last_as_long_as_it_is_there(broker: Broker, web: Web) -> None:
    query = "SELECT ?t WHERE (?i, title, ?t)"
    web.pages["/wishes"] = feed(("all", "GQL: everything"), ("urn:a:1", "One"), description=query)
    with Polling(broker, PRIVATE):
        row, _ = broker.sources.add(WantedSource(f"{web.root}/wishes", id="wishes"), "ann")
        until(lambda: state_of(broker, "wishes")["refused"])
        assert broker.subscriptions_of("ann") == []
        broker.sources.change(row.number, may_subscribe=True)
        until(lambda: broker.find("all", owner="ann"))
        web.pages["/wishes"] = feed(("all", "GQL: everything"), ("urn:a:2", "Two"), description=query)
        make_due(broker, "wishes", lambda: told(broker) == [("all", "urn:a:2", "matched")])
        wish = broker.find("all", owner="ann")
        assert wish is not None
        soon = broker.renew(wish.number, 3600)
        make_due(broker, "wishes", lambda: broker.by_number(wish.number).expires > soon + 86_400)  # type: ignore[union-attr]
