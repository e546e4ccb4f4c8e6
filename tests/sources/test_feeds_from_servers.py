"""Feeds behind redirects, with headers of all kinds, in encodings that only the server states, and too large ones."""

from __future__ import annotations

import gzip
import tomllib
from pathlib import Path
from typing import Any

import pytest

from sources.feed_server import RSS, Clock, Web, came, poller
from triplewire.errors import Refusal
from triplewire.model.terms import text_of
from triplewire.net.addresses import Connections
from triplewire.read import read_document
from triplewire.read.feeds.vocabulary import TITLE
from triplewire.sources.poller import INTERVAL, Poller


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


CASES = tomllib.loads((Path(__file__).resolve().parents[1] / "cases/feeds/stated-by-servers.toml").read_text("utf-8"))
each_case = pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in CASES["case"]])


@each_case
def test_the_encoding_that_only_the_server_states(web: Web, tmp_path: Path, case: dict[str, Any]) -> None:
    body = case["text"].encode(case.get("encoding", "utf-8"))
    for word, of in case.get("bytes", {}).items():
        body = body.replace(word.encode(), bytes.fromhex(of))
    headers = {"Content-Type": case["content_type"]}
    web.pages["/plain"] = 200, headers, body
    web.pages["/packed"] = 200, headers | {"Content-Encoding": "gzip"}, gzip.compress(body)
    assert poller(web, tmp_path, Clock(), "/plain", "/packed").poll() == 2
    for place, content, _ in came(tmp_path):
        told: list[Refusal] = []
        publications = read_document(content or b"", place, on_refusal=told.append)
        objects = [triple.object for one in publications for triple in one.triples if triple.predicate == TITLE]
        assert list(map(text_of, objects)) == case["titles"]
        assert [str(row).replace(place, "feed") for row in told] == case["told"]


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


def test_an_answer_that_is_too_large_or_ends_early(web: Web, tmp_path: Path) -> None:
    web.pages |= {"/large": (200, {}, b"x" * (17 << 20)), "/encoded": (200, {"Content-Encoding": "br"}, b"x")}
    assert poller(web, tmp_path, Clock(), *web.pages).poll() == 0
    reasons = [reason for _, _, reason in came(tmp_path)]
    assert "has more than" in reasons[0]
    assert "encoding that was not asked for" in reasons[1]


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
