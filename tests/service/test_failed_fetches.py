"""What was wrong with an address that the service has asked is told to whose it is, and to nobody else.

Others would look around in the network of the service by it. And nothing that one server gave, or is to get, goes to
another.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from broker.receivers import Came, published, serving
from broker.receivers import subscribed as subscribed_at
from pipeline.connect.servers import free_port
from service.test_doors import found_doors
from sources.feed_server import Web, served
from triplewire import Engine
from triplewire.broker.broker import Broker, Wanted
from triplewire.broker.incoming.polling import Polling
from triplewire.broker.incoming.registered_sources import WantedSource, health
from triplewire.broker.network.upstream import Upstream
from triplewire.config import ServiceSettings
from triplewire.deliver.limits import DeliverySettings
from triplewire.deliver.schedule import Deliveries
from triplewire.errors import TriplewireError
from triplewire.net import guard
from triplewire.net.addresses import Connections
from triplewire.service import access
from triplewire.service.app import service
from triplewire.sources.fetch import Known, fetch
from waiting import until

TOKEN, SECRET_WORD = "the token of the owner", "a word that only one server may see"
PRIVATE = ServiceSettings(shortest_poll=10, allow_private_addresses=True)


def page(status: int, body: bytes = b"", **headers: str) -> Callable[[Web], str]:
    """What gives such an answer, and its address."""

    def there(web: Web) -> str:
        web.pages["/feed"] = (status, headers, body)
        return f"{web.root}/feed"

    return there


FAILURES: dict[str, Callable[[Web], str]] = {
    "nobody listens": lambda web: f"http://127.0.0.1:{free_port()}/feed",
    "no such name": lambda web: "http://nowhere.invalid/feed",
    "not found": page(404),
    "forbidden": page(403),
    "gone": page(410),
    "an error": page(500),
    "a web page": page(200, b"<!DOCTYPE html><html><body>inside</body></html>"),
    "no feed at all": page(200, b"\x00\x01\x02"),
    "a redirect to nothing": page(302, Location="http://nowhere.invalid/"),
    "redirects in a circle": page(302, Location="/feed"),
}


@pytest.fixture
def web() -> Iterator[Web]:
    with served() as server:
        yield server


def seen_by_others(broker: Broker) -> list[tuple[str, str, int, str]]:
    """What each door that only shows something says to ann, to nobody, and to who has the key of a feed of bob."""
    ann = broker.new_token("ann")
    key = broker.subscribe(Wanted("SELECT ?s { ?s <urn:none> ?o }", id="of-bob"), "bob").feed_key
    app = service(broker, ServiceSettings(token=TOKEN))
    client = TestClient(app, follow_redirects=False)
    shown = []
    for method, path, _ in found_doors(app):
        if method != "GET" or path in ("/s/{key}/events", "/s/{key}.{form}", "/openapi.json"):
            continue
        for who, head in (("ann", {"Authorization": f"Bearer {ann}"}), ("nobody", {})):
            address = path.replace("{id}", "news").replace("{number}", "1").replace("{key}", "1")
            answer = client.get(address, headers=head)
            shown.append((path, who, answer.status_code, answer.text))
    feed = client.get(f"/s/{key}.ndjson")
    return [*shown, ("the feed", "who has its key", feed.status_code, feed.text)]


def test_others_see_the_same_whatever_has_failed(web: Web, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "triplewire.broker")
    shown, reasons, logged = [], set(), 0
    for number, (name, there) in enumerate(FAILURES.items()):
        url = f"sqlite:///{tmp_path / f'{number}.db'}"
        with Broker.open(url, b"s" * 32, engine=Engine(matcher="reference")) as broker:
            source, _ = broker.sources.add(WantedSource(there(web), id="news"), "bob")

            def state(of: Broker = broker) -> Any:
                row = of.sources.find("news")
                assert row is not None
                return health(row)

            with Polling(broker, PRIVATE):
                until(lambda: state()["reason"])
            shown.append(seen_by_others(broker))
            bob = {"Authorization": f"Bearer {broker.new_token('bob')}"}
            told = TestClient(service(broker, ServiceSettings(token=TOKEN))).get("/sources/news", headers=bob).json()
            assert told["health"]["reason"] == state()["reason"], name
            reasons.add(told["health"]["reason"].replace(source.url, ""))
            logged += told["health"]["reason"].partition(":")[0] in caplog.text
    assert len(shown[0]) > 40
    assert all(others == shown[0] for others in shown[1:])
    assert len(reasons) >= len(FAILURES) - 1, "bob can tell them apart"
    assert logged >= len(FAILURES) - 2, "and so can who reads the log"


NAMES: dict[str, list[str] | Exception] = {
    "inside.example": ["10.0.0.5"],
    "this.example": ["127.0.0.1"],
    "nowhere.example": socket.gaierror("no such name"),
    "slow.example": TimeoutError(),
}


def test_who_has_no_token_cannot_look_names_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither as a callback of the hub, nor as a target of a subscription whose ticket somebody has."""

    def addresses(host: str, port: int, seconds: float) -> list[str]:
        answer = NAMES.get(host, [host])
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(guard.RESOLVER, "addresses", addresses)
    monkeypatch.setattr(access, "REFUSED_AFTER", 0.01)
    url = f"sqlite:///{tmp_path / 'broker.db'}"
    with Broker.open(url, b"s" * 32, engine=Engine(matcher="reference")) as broker:
        made = broker.subscribe(Wanted("SELECT ?s { ?s ?p ?o }", id="one"), "bob")
        client = TestClient(service(broker, ServiceSettings(token=TOKEN)))
        hosts = [*NAMES, "10.0.0.7", "169.254.169.254"]
        topic = f"http://testserver/s/{made.feed_key}.atom"

        def at_hub(callback: str) -> Any:
            return client.post("/hub", data={"hub.mode": "subscribe", "hub.topic": topic, "hub.callback": callback})

        def as_target(token: str) -> Callable[[str], Any]:
            head = {"Authorization": f"Bearer {token}"}
            return lambda address: client.post("/subscriptions/one/targets", json={"address": address}, headers=head)

        for ask, count in ((at_hub, 1), (as_target(made.ticket), 1), (as_target(broker.new_token("bob")), len(hosts))):
            answers = [ask(f"http://{host}/hook") for host in hosts]
            assert {answer.status_code for answer in answers} == {400}
            assert len({answer.text for answer in answers}) == count
        assert "10.0.0.5" in as_target(broker.new_token("bob"))("http://inside.example/hook").text
        assert at_hub("http://93.184.215.14/hook").status_code == 202


# --- what is sent along ----------------------------------------------------------------------------------------------


def first_leads_to_second(first: Web, second: Web) -> Connections:
    """Two servers that set cookies, of which the first redirects to the second; only the first gets a word."""
    cookie = {"Set-Cookie": f"session={SECRET_WORD}; Path=/", "ETag": '"of-this-server"'}
    first.pages["/feed"] = (302, {**cookie, "Location": f"{second.root}/feed"}, b"")
    second.pages["/feed"] = (302, {**cookie, "Location": f"{first.root}/end"}, b"")
    first.pages["/end"] = (200, cookie, b"<rss version='2.0'><channel><title>t</title></channel></rss>")
    private = {"allow_private_addresses": "true"}
    return Connections({second.root: private, first.root: private | {"authorization": SECRET_WORD}})


def sent_to_second(first: Web, second: Web, connections: Connections) -> list[dict[str, str]]:
    """The headers of what the second server was asked, in two rounds."""
    known = Known()
    for _ in range(2):
        known = fetch(f"{first.root}/feed", known, connections, 30).known
    assert [headers.get("authorization") for _, headers in first.asked] == [SECRET_WORD] * 4
    assert not any("cookie" in headers for _, headers in first.asked + second.asked)
    assert [headers.get("if-none-match") for _, headers in first.asked] == [None, None, None, '"of-this-server"']
    return [headers for _, headers in second.asked]


def test_a_redirect_takes_nothing_along(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    with served() as second:
        connections = first_leads_to_second(web, second)
        for headers in sent_to_second(web, second, connections):
            assert set(headers) == {"host", "user-agent", "accept", "accept-encoding"}
            assert SECRET_WORD not in str(headers)
        web.asked.clear()
        second.asked.clear()
        of = Connections.of  # the settings of the first server for all
        monkeypatch.setattr(Connections, "of", lambda self, text: of(self, web.root))
        assert [SECRET_WORD in str(headers) for headers in sent_to_second(web, second, connections)] == [True, True]


def test_a_receiver_gets_no_cookie_back_and_leads_nowhere(tmp_path: Path) -> None:
    def lead(came: Came) -> tuple[int, dict[str, str], bytes]:
        cookie = {"Set-Cookie": f"session={SECRET_WORD}; Path=/"}
        return (307, {**cookie, "Location": other.url}, b"") if came.path == "/hook" else (200, cookie, b"")

    url = f"sqlite:///{tmp_path / 'broker.db'}"
    how = DeliverySettings(allow_private_addresses=True, token=SECRET_WORD)
    with serving() as other, serving(lead) as first, Broker.open(url, b"s" * 32) as broker:
        subscribed_at(broker, first.url, first.url.replace("/hook", "/right"))
        with Deliveries(broker, how):
            published(broker, 1, 2)
            until(lambda: sorted({came.path for came in first.requests}) == ["/hook", "/right"])
            until(lambda: len([came for came in first.requests if came.path == "/right"]) == 2)
        assert other.requests == []
        assert not any({"cookie", "authorization"} & set(came.headers) for came in first.requests)
        assert SECRET_WORD not in str(first.requests)


def test_an_upstream_that_leads_elsewhere_does_not_give_the_token_away(web: Web) -> None:
    with served() as other:
        web.pages["/subscriptions"] = (307, {"Location": f"{other.root}/subscriptions"}, b"")
        with closing(Upstream(web.root, SECRET_WORD)) as upstream, pytest.raises(TriplewireError):
            upstream.subscriptions("")
        assert [headers["authorization"] for _, headers in web.asked] == [f"Bearer {SECRET_WORD}"]
        assert other.asked == []
