"""Feeds that a real server gives: asked politely, kept for good, and from no address of one's own network."""

from __future__ import annotations

import gzip
import socket
import sqlite3
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from sources.feed_server import LOOPBACK, RSS, Clock, Web, came, poller
from triplewire.config import Settings
from triplewire.errors import ReadError, Refusal, TriplewireError
from triplewire.net.addresses import Connections
from triplewire.pipeline.connect.documents import DocumentReader
from triplewire.sources.feed_states import Feed, feeds_of
from triplewire.sources.fetch import Answered, fetch
from triplewire.sources.inbox import Delivered
from triplewire.sources.lists import addresses, is_list
from triplewire.sources.poller import INTERVAL, Poller


def test_a_feed_is_asked_when_it_is_due_and_kept_when_it_is_new(web: Web, tmp_path: Path) -> None:
    clock, feed = Clock(), web.root + "/a"
    web.pages["/a"] = 200, {"ETag": '"1"', "Last-Modified": "Mon, 23 Nov 2026 10:00:00 GMT"}, RSS.format(1).encode()
    assert poller(web, tmp_path, clock, "/a").poll() == 1
    assert poller(web, tmp_path, clock, "/a").poll() == 0  # in another process: it is not due
    assert web.paths() == ["/a"]
    clock.now += 1.2 * INTERVAL
    again = poller(web, tmp_path, clock, "/a")
    assert again.poll() == 0
    assert web.asked[0][1]["if-none-match"] == '"1"'
    assert web.asked[0][1]["if-modified-since"] == "Mon, 23 Nov 2026 10:00:00 GMT"
    clock.now += 1.2 * INTERVAL
    web.pages["/a"] = 200, {"ETag": '"2"', "Content-Encoding": "gzip"}, gzip.compress(RSS.format(2).encode())
    assert again.poll() == 1
    clock.now += 1.2 * INTERVAL
    web.pages["/a"] = 200, {"ETag": '"3"', "Content-Encoding": "gzip"}, web.pages["/a"][2]  # new only by its tag
    assert again.poll() == 0
    assert [(place, reason) for place, _, reason in came(tmp_path)] == [(feed, "")] * 2

    read = [
        row
        for file in sorted((tmp_path / "documents").glob("*.parquet"))
        for batch in DocumentReader()(pq.read_table(file).to_batches())
        for row in batch.to_pylist()
    ]
    assert [row["source"] for row in read] == [feed, feed]
    assert len({row["id"] for row in read}) == 2


def test_what_a_server_asks_for_is_done(web: Web, tmp_path: Path) -> None:
    clock = Clock()
    web.pages["/busy"] = 503, {"Retry-After": "7200"}, b""
    web.pages["/other"] = 200, {"Cache-Control": "public, max-age=10000"}, RSS.format(1).encode()
    web.pages["/gone"] = 410, {}, b""
    polled = poller(web, tmp_path, clock, "/gone", "/busy", "/other")
    assert polled.poll() == 0
    assert web.paths() == ["/gone", "/busy"]  # the server is overloaded: it is left alone
    clock.now += 7000
    assert polled.poll() == 0
    assert web.paths() == []
    clock.now += 1000
    web.pages["/busy"] = 200, {}, RSS.format(2).encode()
    assert polled.poll() == 2
    assert sorted(web.paths()) == ["/busy", "/other"]
    clock.now += 9000
    polled.poll()
    assert web.paths() == ["/busy"]  # max-age is longer than the interval
    reasons = [reason for _, content, reason in came(tmp_path) if content is None]
    assert reasons == [
        "the feed's server answers 410: it is not asked again",
        "the feed's server answers 503",
    ]


def test_failures_are_told_once_and_asked_less_and_less_often(web: Web, tmp_path: Path) -> None:
    clock, pauses = Clock(), []
    polled = poller(web, tmp_path, clock, "/absent")
    for _ in range(6):
        clock.now = max(clock.now, polled.feeds[web.root + "/absent"].due)
        polled.poll()
        pauses.append(polled.feeds[web.root + "/absent"].due - clock.now)
    assert pauses == sorted(pauses)
    assert pauses[0] >= 2 * INTERVAL
    assert pauses[-1] <= 1.1 * 24 * 3600
    assert [reason for _, _, reason in came(tmp_path)] == ["the feed's server answers 404"]


def test_an_answer_without_a_byte_is_a_failure_and_no_empty_publication(web: Web, tmp_path: Path) -> None:
    clock = Clock()
    web.pages["/empty"] = 200, {"Content-Type": "application/rss+xml"}, b""
    polled = poller(web, tmp_path, clock, "/empty")
    assert polled.poll() == 0
    assert [(content, reason) for _, content, reason in came(tmp_path)] == [
        (None, "the feed's server answers 200 without a byte")
    ]
    clock.now = polled.feeds[web.root + "/empty"].due
    web.pages["/empty"] = 200, {}, RSS.format(1).encode()
    assert polled.poll() == 1


def test_one_request_at_a_time_for_a_server(web: Web, tmp_path: Path) -> None:
    web.pages |= {f"/{number}": (200, {}, RSS.format(number).encode()) for number in range(4)}
    assert poller(web, tmp_path, Clock(), *web.pages).poll() == 4
    assert web.most_at_once == 1
    assert len(list((tmp_path / "documents").glob("*.parquet"))) == 1  # all or nothing


def test_lists(tmp_path: Path) -> None:
    refused: list[Refusal] = []
    (tmp_path / "a.opml").write_text(
        "<opml version='2.0'><body><outline text='group'><outline text='a' xmlUrl=' https://a.example/feed '/>"
        "<outline xmlurl='http://b.example/'/></outline><outline xmlUrl='https://a.example/feed'/>"
        "<outline xmlUrl='file:///etc/passwd'/><outline xmlUrl='https://me:secret@c.example/'/></body></opml>"
    )
    assert addresses(tmp_path / "a.opml", Settings(), refused.append) == ["https://a.example/feed", "http://b.example/"]
    assert len(refused) == 2
    (tmp_path / "b.feeds").write_text("# mine\n\nhttps://a.example/feed\n  http://b.example/\n")
    assert addresses(tmp_path / "b.feeds", Settings(), refused.append) == [
        "https://a.example/feed",
        "http://b.example/",
    ]
    bomb = "<!DOCTYPE a [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;'>]><opml><outline xmlUrl='&b;'/></opml>"
    for name, text in {"bomb.opml": bomb, "none.opml": "<opml/>", "open.opml": "<opml>", "none.feeds": "#"}.items():
        (tmp_path / name).write_text(text)
        with pytest.raises(ReadError):
            addresses(tmp_path / name, Settings(), refused.append)


def test_an_interval_that_is_no_number(tmp_path: Path) -> None:
    for beginning in ("https://", "http://feeds may move here"):
        with pytest.raises(TriplewireError, match="no number of seconds"):
            Poller(["https://a.example/"], tmp_path, Connections({beginning: {"interval": "soon"}}))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"timeout": "soon"}, "timeout must be a number of seconds above 0"),
        ({"timeout": "0"}, "timeout must be a number of seconds above 0"),
        ({"intervall": "60"}, "the setting 'intervall' is unknown"),
    ],
)
def test_settings_of_feeds_that_are_wrong(settings: dict[str, str], said: str, tmp_path: Path) -> None:
    with pytest.raises(TriplewireError, match=said):
        Poller(["https://a.example/"], tmp_path, Connections({"https://": settings}))


def test_a_feed_has_a_timeout_of_its_own(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it takes connections, and answers nothing
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        settings = {"allow_private_addresses": "true", "timeout": "0.3"}
        Poller([address], tmp_path, Connections({"http://": settings})).poll()
    (feed,) = feeds_of(tmp_path)
    assert feed.reason == "the feed cannot be fetched: no answer within 0.3 s (timeout)"


def test_what_is_known_of_feeds_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "feeds.sqlite").write_bytes(b"damage" * 1_000)
    with pytest.raises(TriplewireError, match=r"feeds\.sqlite: it cannot be used: file is not a database; put it back"):
        Poller(["http://a.example/"], tmp_path)


def test_an_interval_longer_than_a_day(web: Web, tmp_path: Path) -> None:
    clock, week = Clock(), 7 * 24 * 3600
    web.pages["/a"] = 200, {}, RSS.format(1).encode()
    weekly = Connections({"http://": {"allow_private_addresses": "true", "interval": str(week)}})
    polled = poller(web, tmp_path, clock, "/a", connections=weekly)
    polled.poll()
    assert week <= polled.feeds[web.root + "/a"].due - clock.now <= 1.1 * week


def test_what_a_clock_that_was_ahead_has_written_is_not_believed(web: Web, tmp_path: Path) -> None:
    """In a poller that goes on as well as at the next start; feeds that failed or were put off as well as others."""
    year = 365 * 24 * 3600.0
    for name, page in {"ok": (200, {}, b"x"), "absent": (404, {}, b""), "busy": (503, {}, b"")}.items():
        web.pages = {"/a": page, "/b": page}
        clock = Clock()
        polled = poller(web, tmp_path / name, clock, "/a", "/b")
        clock.now += year
        polled.poll()
        clock.now -= year
        begun = poller(web, tmp_path / name, clock, "/a", "/b")
        web.paths()
        for at in (polled, begun):
            at.poll()
            assert len(web.paths()) == (1 if name == "busy" else 2), "they are asked at once"
            assert all(feed.due <= clock.now + 1.1 * 24 * 3600 for feed in at.feeds.values())
            at.poll()
            assert web.paths() == [], "and then when it is due"


def test_what_an_earlier_version_knew_of_feeds(web: Web, tmp_path: Path) -> None:
    """Its file had fewer columns; a time that a wrong clock had given is seen by its distance."""
    clock = Clock()
    web.pages |= {path: (200, {}, RSS.format(1).encode()) for path in ("/soon", "/never")}
    tmp_path.joinpath("feeds.sqlite").touch()
    with closing(sqlite3.connect(tmp_path / "feeds.sqlite")) as connection, connection:
        connection.execute(
            "CREATE TABLE feeds (address TEXT PRIMARY KEY, url TEXT NOT NULL, etag TEXT NOT NULL,"
            "modified TEXT NOT NULL, of TEXT NOT NULL, due REAL NOT NULL, failures INTEGER NOT NULL,"
            "status INTEGER NOT NULL, digest BLOB NOT NULL) WITHOUT ROWID"
        )
        for path, due in (("/soon", clock.now + 60), ("/never", clock.now + 1e8)):
            row = (web.root + path, web.root + path, "", "", "", due, 0, 200, b"")
            connection.execute("INSERT INTO feeds VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    poller(web, tmp_path, clock, "/soon", "/never").poll()
    assert web.paths() == ["/never"]
    clock.now += 61
    poller(web, tmp_path, clock, "/soon").poll()
    assert web.paths() == ["/soon"]
    assert [feed.address for feed in feeds_of(tmp_path)] == [web.root + "/soon"], "what is listed no more is forgotten"


def test_why_feeds_wait(web: Web, tmp_path: Path) -> None:
    clock = Clock()
    web.pages |= {
        "/busy": (503, {"Retry-After": "4000"}, b""),
        "/gone": (410, {}, b""),
        "/long": (200, {"Cache-Control": "max-age=5000"}, b"x"),
        "/ok": (200, {}, b"x"),
    }
    assert feeds_of(tmp_path) == []
    polled = poller(web, tmp_path, clock, "/gone", "/long", "/ok", "/busy", "/other")
    assert [feed.state for feed in feeds_of(tmp_path)] == ["new"] * 5
    polled.poll()
    shown = {feed.address.removeprefix(web.root): feed for feed in feeds_of(tmp_path)}
    assert {path: (feed.state, feed.reason) for path, feed in shown.items()} == {
        "/busy": ("failed 1 time", "the feed's server answers 503"),
        "/gone": ("gone", "the feed's server answers 410: it is not asked again"),
        "/long": ("ok", "its server asks for a pause of 5,000 s"),
        "/ok": ("ok", ""),
        "/other": ("new", f"its server is overloaded: it answers 503 to {web.root}/busy"),
    }
    assert shown["/gone"].next == ""
    assert shown["/ok"].last == "1970-01-12T13:46:40+00:00"


@pytest.mark.parametrize("page", [(404, {}, b""), (410, {}, b""), (200, {"Cache-Control": "max-age=80000"}, b"x")])
def test_a_feed_with_other_settings_is_asked_at_once(
    page: tuple[int, dict[str, str], bytes], web: Web, tmp_path: Path
) -> None:
    clock, private = Clock(), {"allow_private_addresses": "true"}
    web.pages["/a"] = page
    for settings, is_asked in (
        (private, True),
        (private, False),
        (private | {"interval": "1000"}, True),
        (private | {"interval": "1000"}, False),
        (private | {"interval": "1000", "authorization": "Basic x"}, True),
    ):
        poller(web, tmp_path, clock, "/a", connections=Connections({"http://": settings})).poll()
        assert web.paths() == ["/a"] * is_asked, settings
    with pytest.raises(TriplewireError, match="no header may have"):
        poller(web, tmp_path, clock, "/a", connections=Connections({"http://": {"authorization": "a\nb"}}))


def test_a_header_goes_to_its_own_server_alone(web: Web, tmp_path: Path) -> None:
    port = web.root.rpartition(":")[2]
    web.pages |= {"/a": (302, {"Location": f"http://localhost:{port}/b"}, b""), "/b": (200, {}, b"x")}
    private = {"allow_private_addresses": "true"}
    tables = {"http://": private, "http://127.0.0.1": private | {"authorization": "Bearer x"}}
    poller(web, tmp_path, Clock(), "/a", connections=Connections(tables)).poll()
    assert [(path, headers.get("authorization")) for path, headers in web.asked] == [("/a", "Bearer x"), ("/b", None)]


def test_the_same_compressed_again_is_not_new(web: Web, tmp_path: Path) -> None:
    clock = Clock()
    polled = poller(web, tmp_path, clock, "/a")
    for seconds, count in ((1, 1), (2, 0)):
        body = gzip.compress(RSS.format(1).encode(), mtime=seconds)
        web.pages["/a"] = 200, {"Content-Encoding": "gzip"}, body
        assert polled.poll() == count
        clock.now += 2 * INTERVAL


def test_much_of_one_server_is_written_in_pieces(web: Web, tmp_path: Path) -> None:
    web.pages |= {f"/{number}": (200, {}, bytes([number]) * (9 << 20)) for number in range(3)}
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / ".1.part").write_bytes(b"of a process that was killed")
    assert poller(web, tmp_path, Clock(), *web.pages).poll() == 3
    counts = [pq.read_metadata(file).num_rows for file in sorted((tmp_path / "documents").iterdir())]
    assert counts == [2, 1]


def test_a_slow_server_holds_up_none_but_its_own_feeds(web: Web, tmp_path: Path) -> None:
    clock, port = Clock(), web.root.rpartition(":")[2]
    web.pages |= {path: (200, {}, RSS.format(1).encode()) for path in ("/slow", "/quick")}
    web.held["/slow"] = threading.Event()
    polled = Poller([f"{web.root}/slow", f"http://localhost:{port}/quick"], tmp_path, LOOPBACK, clock)
    end = polled.begin(True)
    try:
        for times in (1, 2):
            limit = time.monotonic() + 120
            while [path for path, _ in web.asked].count("/quick") < times:
                assert time.monotonic() < limit
                time.sleep(0.05)
                clock.now += 100
        assert [path for path, _ in web.asked].count("/slow") == 1
    finally:
        web.held["/slow"].set()
        end()


def test_a_defect_of_ours_costs_one_feed(web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    web.pages |= {path: (200, {}, RSS.format(1).encode()) for path in ("/a", "/b")}

    def failing(address: str, *more: Any) -> Answered:
        if address.endswith("/a"):
            raise RuntimeError("not thought of")
        return fetch(address, *more)

    monkeypatch.setattr("triplewire.sources.poller.fetch", failing)
    polled = poller(web, tmp_path, Clock(), "/a", "/b")
    assert polled.poll() == 1
    assert polled.poll() == 0
    assert sorted(reason for _, _, reason in came(tmp_path)) == [
        "",
        "the feed cannot be fetched: RuntimeError: not thought of",
    ]


def test_what_is_no_list_of_feeds(tmp_path: Path) -> None:
    (tmp_path / "folder.feeds").mkdir()
    for source in ("kafka://h:9092/news.feeds", "inbox:/my.opml", str(tmp_path / "folder.feeds"), "a.nt"):
        assert not is_list(source)
    assert is_list("mine.OPML")
    (tmp_path / "prefix.opml").write_text("<opml><outline x:y='1' xmlUrl='https://a.example/'/></opml>")
    with pytest.raises(ReadError, match="unbound prefix"):
        addresses(tmp_path / "prefix.opml", Settings(), lambda refusal: None)


def test_a_program_gets_what_came_in_place_of_the_inbox(web: Web, tmp_path: Path) -> None:
    clock, received = Clock(), list[object]()
    web.pages |= {"/a": (200, {}, RSS.format(1).encode()), "/gone": (410, {}, b"")}

    def receive(came: Sequence[Delivered]) -> None:
        if not received:
            received.append("refused")
            raise OSError("no room")
        received.extend((entry.place, entry.content) for entry in came)

    polled = Poller([web.root + "/a", web.root + "/gone"], tmp_path, LOOPBACK, clock, receive=receive)
    with pytest.raises(OSError, match="no room"):
        polled.poll()
    assert polled.poll() == 1, "what was not received is asked for again"
    assert received[1:] == [(f"{web.root}/a", RSS.format(1).encode()), (f"{web.root}/gone", None)]
    assert polled.poll() == 0
    assert not (tmp_path / "documents").exists()


class Kept:
    """States of feeds in memory."""

    def __init__(self) -> None:
        self.feeds: dict[str, Feed] = {}

    def load(self) -> dict[str, Feed]:
        return self.feeds

    def store(self, feeds: Iterable[Feed], *, alone: bool = False) -> None:
        self.feeds = {} if alone else self.feeds
        self.feeds.update((feed.address, feed) for feed in feeds)


def test_feeds_that_change_are_asked_more_often(web: Web) -> None:
    clock, kept, came = Clock(), Kept(), list[Delivered]()
    address = web.root + "/a"
    polling = Poller(
        [address], Path(), LOOPBACK, clock, receive=came.extend, states=kept, adapts=(INTERVAL / 4, 2 * INTERVAL)
    )
    intervals = []
    for number in (1, 2, 3, 4, 4, 4, 4, 4, 4, 4):
        web.pages["/a"] = 200, {}, RSS.format(number).encode()
        polling.poll()
        intervals.append(kept.feeds[address].interval / INTERVAL)
        clock.now = kept.feeds[address].due
    assert intervals == [1, 0.5, 0.25, 0.25, 0.375, 0.5625, 0.84375, 1.265625, 1.8984375, 2]
    assert [entry.feed for entry in came] == [address] * 4


def test_feeds_come_and_go_while_they_are_polled(web: Web) -> None:
    clock, kept, came = Clock(), Kept(), list[Delivered]()
    for path in ("/a", "/b"):
        web.pages[path] = 200, {}, RSS.format(path).encode()
    polling = Poller([web.root + "/a"], Path(), LOOPBACK, clock, receive=came.extend, states=kept)
    polling.poll()
    polling.follow([web.root + "/a", web.root + "/b"])
    polling.poll()
    assert web.paths() == ["/a", "/b"]
    polling.follow([web.root + "/b"])
    clock.now += 2 * INTERVAL
    polling.poll()
    assert web.paths() == ["/b"]
    polling.follow([web.root + "/a"])
    polling.poll()
    assert web.paths() == ["/a"]
    assert [entry.feed for entry in came] == [web.root + "/a", web.root + "/b"]
