"""Our subscriptions at foreign hubs: W17 of WebSub, and the fourteen checks of subscribers of websub.rocks."""

from __future__ import annotations

import hashlib
import hmac
import time
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import sqlalchemy as sa
from hub_tools import ITEM, Said, Server, ask, served, serving

from broker.serving import on_sqlite_alone
from triplewire.broker.broker import Broker
from triplewire.broker.incoming.websub_subscriber import Subscriber
from triplewire.store.tables import leases, publications, sources

DAY = 86_400
FEED = ITEM.format(n=1).encode()


@dataclass
class World:
    """A foreign site with feeds and a hub, and a broker that has a source there."""

    broker: Broker
    site: Server
    url: str
    ahead: float = 0.0
    pages: dict[str, Said] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.subscriber = Subscriber(self.broker, self.url, True, lambda: time.time() + self.ahead)
        self.site.answer = lambda came: self.pages.get(came.path, Said(202, {}, b""))

    def page(self, path: str, *links: str, body: bytes = FEED, **headers: str) -> None:
        """A page of the site with headers Link; HUB, TOPIC and SITE in them are addresses."""
        text = "\n".join(links).replace("HUB", f"{self.site.url}/hub").replace("SITE", self.site.url)
        fields = {"Content-Type": "application/rss+xml", **({"Link": text} if text else {}), **headers}
        body = body.replace(b"HUB", f"{self.site.url}/hub".encode()).replace(b"SITE", self.site.url.encode())
        self.pages[path] = Said(200, fields, body)

    def source(self, path: str = "/feed") -> int:
        """Have the broker poll a page; the number of the source."""
        values = {"id": path, "owner": "owner", "kind": "poll", "url": self.site.url + path, "title": "", "state": "{}"}
        values |= {"may_subscribe": False, "anonymous": False, "ticket": b"", "created": time.time()}
        made = sources.insert().values(values)
        key: Any = self.broker.database.write(lambda connection: connection.execute(made).inserted_primary_key)
        return int(key[0])

    def asked(self, path: str = "/hub") -> list[dict[str, str]]:
        """The forms that the hub got at a path."""
        came = [came for came in self.site.of("POST") if came.path == path]
        return [dict(urllib.parse.parse_qsl(each.body.decode())) for each in came]

    def subscribed(self) -> dict[str, str]:
        """What the hub was asked, at last, after it was looked for."""
        self.source()
        self.subscriber.step()
        return self.asked()[-1]

    def verified(self, form: dict[str, str], **more: str) -> Said:
        """The hub asks whether it was meant."""
        asked = {"mode": form["hub.mode"], "topic": form["hub.topic"], "challenge": "c-1_2", "lease_seconds": "864000"}
        query = urllib.parse.urlencode({f"hub.{name}": value for name, value in {**asked, **more}.items()})
        return ask(f"{form['hub.callback']}?{query}")

    def sent(self, form: dict[str, str], body: bytes, *, method: str = "sha256", secret: str = "") -> Said:
        """The hub sends a feed."""
        signature = hmac.new((secret or form["hub.secret"]).encode(), body, getattr(hashlib, method)).hexdigest()
        return ask(form["hub.callback"], body, X_Hub_Signature=f"{method}={signature}", Content_Type="text/xml")

    def lease(self) -> Any:
        """The only lease."""
        with self.broker.database.reading() as connection:
            return connection.execute(sa.select(leases)).one()

    def taken(self) -> list[str]:
        """The ids of the publications that came, sorted."""
        with self.broker.database.reading() as connection:
            return sorted(connection.execute(sa.select(publications.c.id)).scalars())


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    """All of it."""
    with Broker.open(database_url, b"secret of a test") as broker, served(broker) as url, serving() as site:
        yield World(broker, site, url)


HTML = b"""<!doctype html><html><head><link rel="hub" href="HUB"><link rel=self href="/topic">
</head><body><link rel="hub" href="http://example.org/of-a-comment"></body></html>"""
ATOM = b"""<feed xmlns="http://www.w3.org/2005/Atom"><link rel="hub" href="HUB"/><link rel="self" href="SITE/topic"/>
<entry><link rel="self" href="http://example.org/entry"/></entry></feed>"""
RSS = b"""<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>t</title>
<link>http://example.org/</link><atom:link rel="hub" href="HUB"/><atom:link rel="self" href="SITE/topic"/>
<item><atom:link rel="self" href="http://example.org/item"/></item></channel></rss>"""


@on_sqlite_alone
@pytest.mark.parametrize("body", [HTML, ATOM, RSS], ids=["101 html", "102 atom", "103 rss"])
def test_rocks_101_to_103_a_hub_is_found_in_a_document(world: World, body: bytes) -> None:
    world.page("/feed", body=body)
    assert world.subscribed()["hub.topic"] == f"{world.site.url}/topic"


@on_sqlite_alone
@pytest.mark.parametrize(
    "links",
    [
        ['<HUB>; rel="hub"', '<SITE/topic>; rel="self"'],  # two headers
        ['<HUB>; rel="hub", <SITE/topic>; rel="self"'],
        ["<HUB>;rel=hub,</topic>;type=\"a,b\";REL='x self'", '</topic>; rel="alternate self"'],
    ],
)
def test_rocks_100_a_hub_is_found_in_headers(world: World, links: list[str]) -> None:
    world.page("/feed", *links)
    form = world.subscribed()
    assert form["hub.topic"] == f"{world.site.url}/topic"
    assert form["hub.mode"] == "subscribe"
    assert len(form["hub.secret"]) >= 32
    assert len(form["hub.secret"].encode()) < 200
    assert form["hub.callback"].startswith(f"{world.url}/websub/")


@on_sqlite_alone
def test_rocks_104_headers_come_first(world: World) -> None:
    other = ATOM.replace(b"HUB", b"SITE/other-hub").replace(b"/topic", b"/other-topic")
    world.page("/feed", '<HUB>; rel="hub"', '<SITE/topic>; rel="self"', body=other)
    assert world.subscribed()["hub.topic"] == f"{world.site.url}/topic"


def test_rocks_200_a_feed_may_have_another_address_for_hubs(world: World) -> None:
    world.page("/feed", '<HUB>; rel="hub"', '<http://elsewhere.example/feed>; rel="self"')
    form = world.subscribed()
    assert form["hub.topic"] == "http://elsewhere.example/feed"
    assert world.verified(form).body == b"c-1_2"
    assert world.lease().state == "active"


@on_sqlite_alone
@pytest.mark.parametrize("status", [301, 302], ids=["202 permanent", "201 temporary"])
def test_rocks_201_202_a_feed_may_have_moved(world: World, status: int) -> None:
    world.pages["/feed"] = Said(status, {"Location": "/moved", "Link": "<http://127.0.0.1/>; rel=hub"}, b"")
    world.page("/moved", '<HUB>; rel="hub"', '<SITE/moved>; rel="self"')
    assert world.subscribed()["hub.topic"] == f"{world.site.url}/moved"


@on_sqlite_alone
@pytest.mark.parametrize("status", [307, 308], ids=["203 temporary", "204 permanent"])
def test_rocks_203_204_a_hub_may_name_another(world: World, status: int) -> None:
    world.page("/feed", '<HUB>; rel="hub"', '<SITE/feed>; rel="self"')
    world.pages["/hub"] = Said(status, {"Location": "/second-hub"}, b"")
    world.subscribed()
    (form,) = world.asked("/second-hub")
    assert form == world.asked("/hub")[0]
    assert world.verified(form).body == b"c-1_2"


def test_rocks_205_a_hub_that_asks_for_another_topic_is_refused(world: World) -> None:
    form = _offered(world)
    assert world.verified(form, topic="http://example.org/other").status == 404
    assert world.verified(form, mode="unsubscribe").status == 404
    assert world.lease().state == "subscribing"
    assert world.verified(form).status == 200


@on_sqlite_alone
@pytest.mark.parametrize("method", ["sha1", "sha256", "sha384", "sha512"])
def test_rocks_300_what_a_hub_sends_is_taken_in(world: World, method: str) -> None:
    form = _offered(world)
    assert world.verified(form).status == 200
    assert 200 <= world.sent(form, ITEM.format(n=7).encode(), method=method).status < 300
    assert world.taken() == ["urn:item:7"]


def test_rocks_301_302_what_is_signed_wrongly_or_not_at_all_is_ignored(world: World) -> None:
    form = _offered(world)
    assert world.verified(form).status == 200
    body = ITEM.format(n=7).encode()
    answers = [
        world.sent(form, body, secret="another"),
        ask(form["hub.callback"], body),
        ask(form["hub.callback"], body, X_Hub_Signature="sha256="),
        ask(form["hub.callback"], body, X_Hub_Signature="sha256=\xfc"),
        ask(form["hub.callback"], body, X_Hub_Signature="md5=0"),
    ]
    assert {answer.status for answer in answers} == {202}
    assert world.taken() == []
    assert world.sent(form, body).status == 202, "it looks the same"
    assert world.taken() == ["urn:item:7"]


def test_what_comes_before_it_is_verified_or_after_the_lease_is_ignored(world: World) -> None:
    form = _offered(world)
    world.sent(form, FEED)
    assert world.taken() == []
    world.verified(form)
    _set(world, expires=time.time() - 1)
    world.sent(form, FEED)
    assert world.taken() == []


def test_s9_a_verification_is_answered_once_and_for_ten_minutes(world: World) -> None:
    form = _offered(world)
    assert world.verified(form).status == 200
    assert world.verified(form).status == 404, "nothing is pending"
    _set(world, pending=time.time() - 1, state="subscribing")
    assert world.verified(form).status == 404, "it was asked for too long ago"
    number, _, key = form["hub.callback"].rpartition("/")
    for callback in (f"{number}/{key[:-1]}x", f"{number[:-1]}2/{key}", f"{number}/%FC"):
        assert world.verified({**form, "hub.callback": callback}).status == 404
        assert ask(callback, FEED).status == 404


@on_sqlite_alone
@pytest.mark.parametrize("challenge", ["", "<script>alert(1)</script>", "a b", "a\n", "ä", "x" * 257, "a.b"])
def test_s10_only_a_plain_challenge_is_sent_back(world: World, challenge: str) -> None:
    form = _offered(world)
    said = world.verified(form, challenge=challenge)
    assert said.status == 404
    assert b"script" not in said.body
    assert world.verified(form).status == 200


def test_s10_a_challenge_is_sent_back_as_nothing_but_text(world: World) -> None:
    said = world.verified(_offered(world), challenge="A" * 256)
    assert said.body == b"A" * 256
    assert said.headers["content-type"].startswith("text/plain")
    assert said.headers["x-content-type-options"] == "nosniff"
    assert said.headers["content-security-policy"].startswith("default-src 'none';")


@on_sqlite_alone
@pytest.mark.parametrize("lease", ["", "0", "-1", "x"])
def test_a_lease_without_end_is_not_taken(world: World, lease: str) -> None:
    assert world.verified(_offered(world), lease_seconds=lease).status == 404


def test_w17_a_lease_is_renewed_before_it_ends(world: World) -> None:
    form = _offered(world)
    world.verified(form, lease_seconds=str(10 * DAY))
    world.ahead = 7 * DAY
    assert world.subscriber.step() == 0
    world.ahead = 8 * DAY + 60
    assert world.subscriber.step() == 1
    assert world.asked()[1] == form
    assert world.lease().state == "active", "the lease before lasts"
    _set(world, pending=time.time() + 60)  # the door has the real clock
    assert world.verified(form, lease_seconds=str(20 * DAY)).status == 200
    assert world.lease().expires > time.time() + 19 * DAY


def test_a_denial_is_kept_and_tried_again_after_a_day(world: World) -> None:
    form = _offered(world)
    assert world.verified(form, mode="denied").status == 200
    assert world.lease().state == "denied"
    world.ahead = DAY + 60
    assert world.subscriber.step() == 1
    assert len(world.asked()) == 2


def test_a_source_that_is_removed_is_unsubscribed(world: World) -> None:
    form = _offered(world)
    world.verified(form)
    world.broker.database.write(lambda connection: connection.execute(sources.delete()))
    world.subscriber.step()
    ending = world.asked()[-1]
    assert (ending["hub.mode"], ending["hub.topic"]) == ("unsubscribe", form["hub.topic"])
    assert world.verified(ending).body == b"c-1_2"
    assert ask(form["hub.callback"], FEED).status == 410


def test_a_source_without_a_hub_is_asked_again_after_a_day(world: World) -> None:
    world.page("/feed")
    world.source()
    assert [world.subscriber.step(), world.subscriber.step()] == [1, 0]
    assert world.lease().reason == "it names no hub"
    world.page("/feed", '<HUB>; rel="hub"')  # without a topic
    world.ahead = DAY + 60
    assert world.subscriber.step() == 1
    assert not world.asked()
    world.page("/feed", '<HUB>; rel="hub"', '<SITE/feed>; rel="self"')
    world.ahead = 2 * DAY + 120
    assert world.subscriber.step() == 1
    assert len(world.asked()) == 1


def _private(world: World) -> None:
    world.subscriber = Subscriber(world.broker, world.url, False, lambda: time.time() + world.ahead)


def _refusing(world: World) -> None:
    world.pages["/hub"] = Said(403, {}, b"")


def _in_a_circle(world: World) -> None:
    world.pages["/hub"] = Said(308, {"Location": "/hub"}, b"")


def _of_another_kind(world: World) -> None:
    world.page("/feed", '<file:///etc/passwd>; rel="hub"', '<SITE/feed>; rel="self"')


@on_sqlite_alone
@pytest.mark.parametrize("spoil", [_private, _refusing, _in_a_circle, _of_another_kind])
def test_a_hub_that_cannot_be_asked_is_tried_less_and_less_often(world: World, spoil: Callable[[World], None]) -> None:
    world.page("/feed", '<HUB>; rel="hub"', '<SITE/feed>; rel="self"')
    spoil(world)
    world.source()
    for failures, hours in ((1, 1), (2, 2), (3, 4)):
        assert world.subscriber.step() == 1
        lease = world.lease()
        assert (lease.failures, lease.state == "active", bool(lease.reason)) == (failures, False, True)
        assert abs(lease.due - time.time() - world.ahead - hours * 3_600) < 60
        world.ahead += hours * 3_600 + 60
    assert spoil is not _private or not world.site.came


def test_s1_a_hub_in_the_own_network_is_not_asked(world: World) -> None:
    form = _offered(world)
    world.verified(form)
    world.broker.database.write(lambda connection: connection.execute(sources.delete()))
    before = len(world.site.came)
    assert Subscriber(world.broker, world.url, False).step() == 1  # it would unsubscribe
    assert len(world.site.came) == before
    assert "private address" in world.lease().reason


def test_the_subscriber_works_by_itself_until_it_is_closed(world: World) -> None:
    world.page("/feed", '<HUB>; rel="hub"', '<SITE/feed>; rel="self"')
    world.source()
    with world.subscriber:
        end = time.monotonic() + 300
        while not world.asked():
            assert time.monotonic() < end
            time.sleep(0.02)


def _offered(world: World) -> dict[str, str]:
    world.page("/feed", '<HUB>; rel="hub"', '<SITE/feed>; rel="self"')
    return world.subscribed()


def _set(world: World, **values: Any) -> None:
    world.broker.database.write(lambda connection: connection.execute(leases.update().values(values)))
