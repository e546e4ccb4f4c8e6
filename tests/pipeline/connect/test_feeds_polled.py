"""Feeds that a real server gives: asked politely, kept for good, and from no address of one's own network."""

from __future__ import annotations

import contextlib
import gzip
import http.server
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from triplewire.config import Settings
from triplewire.errors import ReadError, Refusal, TriplewireError
from triplewire.model.terms import text_of
from triplewire.pipeline.connect.addresses import Connections
from triplewire.pipeline.connect.documents import DocumentReader
from triplewire.pipeline.connect.feeds.fetch import Answered, fetch
from triplewire.pipeline.connect.feeds.lists import addresses, is_list
from triplewire.pipeline.connect.feeds.poller import INTERVAL, Poller
from triplewire.read import read_document

RSS = "<rss version='2.0'><channel><title>t</title><item><guid isPermaLink='false'>{}</guid></item></channel></rss>"
LOOPBACK = Connections({"http://": {"allow_private_addresses": "true"}})


@dataclass
class Web:
    """What is at each path (status, headers, body), and what was asked for: path and headers."""

    pages: dict[str, tuple[int, dict[str, str], bytes]] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    root: str = ""
    held: dict[str, threading.Event] = field(default_factory=dict)  # paths that answer once these are set
    at_once: int = 0
    most_at_once: int = 0

    def paths(self) -> list[str]:
        """What was asked for since the last time."""
        asked, self.asked = [path for path, _ in self.asked], []
        return asked


class Clock:
    """A clock that a test sets."""

    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def web() -> Iterator[Web]:
    state, lock = Web(), threading.Lock()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            with lock:
                state.asked.append((self.path, headers))
                state.at_once += 1
                state.most_at_once = max(state.most_at_once, state.at_once)
            if self.path in state.held:
                state.held[self.path].wait(20)
            status, more, body = state.pages.get(self.path, (404, {}, b""))
            if status == 200 and more.get("ETag", "-") == headers.get("if-none-match"):
                status, body = 304, b""
            self.send_response(status)
            for name, value in {**more, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(body)
            with lock:
                state.at_once -= 1

        def log_message(self, *_: object) -> None:
            """Nothing on standard error."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    state.root = f"http://127.0.0.1:{server.server_address[1]}"
    yield state
    server.shutdown()
    server.server_close()


def poller(web: Web, folder: Path, clock: Clock, *paths: str, connections: Connections = LOOPBACK) -> Poller:
    return Poller([web.root + path for path in paths], folder, connections, clock)


def came(folder: Path) -> list[tuple[str, bytes | None, str]]:
    files = sorted((folder / "documents").glob("*.parquet"))
    return [(row["place"], row["content"], row["reason"]) for file in files for row in pq.read_table(file).to_pylist()]


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


def test_redirects(web: Web, tmp_path: Path) -> None:
    clock = Clock()
    web.pages |= {
        "/old": (301, {"Location": "/new"}, b""),
        "/today": (302, {"Location": "/new#top"}, b""),
        "/new": (200, {}, RSS.format(1).encode()),
        "/round": (302, {"Location": "/round"}, b""),
        "/inside": (302, {"Location": "http://[::ffff:10.0.0.1]/"}, b""),
        "/file": (302, {"Location": "file:///etc/passwd"}, b""),
        "/none": (302, {"Location": "http://["}, b""),
    }
    polled = poller(web, tmp_path, clock, "/old", "/today")
    assert polled.poll() == 2
    web.paths()
    clock.now += 1.2 * INTERVAL
    polled.poll()
    assert sorted(web.paths()) == ["/new", "/new", "/today"]  # what moved for good is asked where it is
    only_here = Connections({web.root + "/": {"allow_private_addresses": "true"}})
    poller(web, tmp_path / "wrong", clock, "/round", "/file", "/none", connections=only_here).poll()
    assert web.paths() == ["/round"] * 6 + ["/file", "/none"]
    reasons = [reason for _, _, reason in came(tmp_path / "wrong")]
    assert "more than 5 times" in reasons[0]
    assert "an address that cannot be asked" in reasons[1]
    assert "no address" in reasons[2]


def test_what_temporary_redirects_lead_to(web: Web, tmp_path: Path) -> None:
    """A document lies where it was found; what is gone there is not gone for good."""
    clock, linked = Clock(), RSS.replace("<item>", "<item><link>story</link>")
    web.pages |= {
        "/today": (302, {"Location": "/by/day/feed"}, b""),
        "/by/day/feed": (200, {}, linked.format(1).encode()),
        "/parked": (302, {"Location": "/gone"}, b""),
        "/gone": (410, {}, b""),
    }
    polled = poller(web, tmp_path, clock, "/today", "/parked")
    polled.poll()
    (place, content, _), (_, _, reason) = came(tmp_path)
    assert place == web.root + "/by/day/feed"
    assert reason == "the feed's server answers 410"
    (publication,) = read_document(content or b"", place)
    assert f"{web.root}/by/day/story" in {text_of(triple.object) for triple in publication.triples}
    web.paths()
    clock.now += 3 * INTERVAL
    web.pages["/parked"] = 200, {}, RSS.format(2).encode()
    assert polled.poll() == 1
    assert sorted(web.paths()) == ["/by/day/feed", "/parked", "/today"]


def test_a_feed_that_moved_to_a_page_is_asked_where_it_was(web: Web, tmp_path: Path) -> None:
    clock = Clock()
    web.pages |= {
        "/sold": (301, {"Location": "/lander"}, b""),
        "/lander": (200, {"Content-Type": "text/html"}, b"<!DOCTYPE html><html><body>Buy it</body></html>"),
    }
    polled = poller(web, tmp_path, clock, "/sold")
    polled.poll()
    clock.now += 3 * INTERVAL
    polled.poll()
    assert web.paths() == ["/sold", "/lander"] * 2


def test_headers_in_other_letters(web: Web, tmp_path: Path) -> None:
    clock, packed = Clock(), gzip.compress(RSS.format(1).encode())
    web.pages["/a"] = 200, {"Cache-Control": "Public, Max-Age=7200", "Content-Encoding": "X-Gzip"}, packed
    polled = poller(web, tmp_path, clock, "/a")
    assert polled.poll() == 1
    assert polled.feeds[web.root + "/a"].due >= clock.now + 7200


@pytest.mark.parametrize(
    ("content_type", "declaration", "title", "read"),
    [
        ("application/rss+xml; charset=windows-1251", "", "тупик".encode("cp1251"), "тупик"),
        ('text/xml; charset="Shift_JIS"', "<?xml version='1.0'?>", "灯台".encode("shift_jis"), "灯台"),
        ("text/xml; charset=windows-1251", "", "тупик".encode(), "тупик"),  # the server is wrong
        ("text/xml; charset=KOI8-R", "<?xml version='1.0' encoding='cp1251'?>", "тупик".encode("cp1251"), "тупик"),
        ("text/xml; charset=unicode_escape", "", b"\\u0066 \xe9", "\\u0066 é"),  # no encoding of texts
        ("text/xml; charset=zip", "", b"caf\xe9", "café"),
        ("text/xml; charset", "", b"caf\xe9", "café"),
    ],
)
def test_the_encoding_that_only_the_server_states(
    web: Web, tmp_path: Path, content_type: str, declaration: str, title: bytes, read: str
) -> None:
    body = declaration.encode() + RSS.encode().replace(b"<guid", b"<title>" + title + b"</title><guid").replace(
        b"{}", b"1"
    )
    for path, packed in (("/plain", False), ("/packed", True)):
        headers = {"Content-Type": content_type} | ({"Content-Encoding": "gzip"} if packed else {})
        web.pages[path] = 200, headers, gzip.compress(body) if packed else body
    assert poller(web, tmp_path, Clock(), "/plain", "/packed").poll() == 2
    for place, content, _ in came(tmp_path):
        (publication,) = read_document(content or b"", place, on_refusal=lambda refusal: None)
        assert read in {text_of(triple.object) for triple in publication.triples}


def test_no_address_of_one_s_own_network(web: Web, tmp_path: Path) -> None:
    local = ["", "/", "/a"]
    polled = poller(web, tmp_path, Clock(), *local, connections=Connections())
    port = web.root.rpartition(":")[2]
    for host in (
        "localhost",
        "127.1",
        "2130706433",
        "0x7f000001",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "0",
        "[64:ff9b::7f00:1]",
    ):
        more = Poller([f"http://{host}:{port}/"], tmp_path / host, Connections(), Clock())
        assert more.poll() == 0
        assert came(tmp_path / host)[0][1] is None
    assert polled.poll() == 0
    assert web.paths() == []
    assert {reason.partition(" has ")[2][:19] for _, _, reason in came(tmp_path)} == {"the private address"}


def test_one_request_at_a_time_for_a_server(web: Web, tmp_path: Path) -> None:
    web.pages |= {f"/{number}": (200, {}, RSS.format(number).encode()) for number in range(4)}
    assert poller(web, tmp_path, Clock(), *web.pages).poll() == 4
    assert web.most_at_once == 1
    assert len(list((tmp_path / "documents").glob("*.parquet"))) == 1  # all or nothing


def test_an_answer_that_is_too_large_or_ends_early(web: Web, tmp_path: Path) -> None:
    web.pages |= {"/large": (200, {}, b"x" * (17 << 20)), "/encoded": (200, {"Content-Encoding": "br"}, b"x")}
    assert poller(web, tmp_path, Clock(), *web.pages).poll() == 0
    reasons = [reason for _, _, reason in came(tmp_path)]
    assert "has more than" in reasons[0]
    assert "encoding that was not asked for" in reasons[1]


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


def test_each_address_on_the_way_has_its_own_settings(web: Web, tmp_path: Path) -> None:
    """A feed of one's own network must not lead to the rest of that network."""
    port = web.root.rpartition(":")[2]
    web.pages |= {
        "/inside": (302, {"Location": f"http://localhost:{port}/secret"}, b""),
        "/mail": (302, {"Location": "http://192.0.2.1:25/"}, b""),
        "/secret": (200, {}, b"not to be read"),
    }
    only_here = Connections({web.root: {"allow_private_addresses": "true"}})
    assert poller(web, tmp_path, Clock(), "/inside", "/mail", connections=only_here).poll() == 0
    assert web.paths() == ["/inside", "/mail"]
    reasons = [reason for _, _, reason in came(tmp_path)]
    assert "has the private address" in reasons[0]
    assert "port 25" in reasons[1]


def test_what_moved_to_nothing_is_asked_where_it_was(web: Web, tmp_path: Path) -> None:
    clock = Clock()
    web.pages["/old"] = 301, {"Location": "/absent"}, b""
    polled = poller(web, tmp_path, clock, "/old")
    polled.poll()
    clock.now += 3 * INTERVAL
    web.pages["/old"] = 200, {}, RSS.format(1).encode()
    assert polled.poll() == 1
    assert web.paths() == ["/old", "/absent", "/old"]


def test_an_interval_longer_than_a_day(web: Web, tmp_path: Path) -> None:
    clock, week = Clock(), 7 * 24 * 3600
    web.pages["/a"] = 200, {}, RSS.format(1).encode()
    weekly = Connections({"http://": {"allow_private_addresses": "true", "interval": str(week)}})
    polled = poller(web, tmp_path, clock, "/a", connections=weekly)
    polled.poll()
    assert week <= polled.feeds[web.root + "/a"].due - clock.now <= 1.1 * week


def test_a_clock_that_was_wrong_puts_nothing_off_for_years(web: Web, tmp_path: Path) -> None:
    clock = Clock()
    web.pages["/a"] = 200, {}, RSS.format(1).encode()
    clock.now += 1e8
    poller(web, tmp_path, clock, "/a").poll()
    clock.now -= 1e8
    assert poller(web, tmp_path, clock, "/a").feeds[web.root + "/a"].due <= clock.now + 1.1 * 24 * 3600


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
            limit = time.monotonic() + 10
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

    monkeypatch.setattr("triplewire.pipeline.connect.feeds.poller.fetch", failing)
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
