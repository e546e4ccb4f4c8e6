"""The hub of the broker's own feeds: W1 to W16 of WebSub, and the seven checks of hubs of websub.rocks (100 to 106)."""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import sqlalchemy as sa
from hub_tools import Came, Said, Server, ask, delivered, echo, published, served, serving, subscribed

from broker.serving import on_sqlite_alone
from triplewire.broker.broker import Broker
from triplewire.broker.feeds.websub import MOST_UNVERIFIED, MOST_UNVERIFIED_OF_FEED, MOST_WAITING, Hub
from triplewire.store.tables import intents, targets

DAY = 86_400
FORMS = ("atom", "rss", "rdf", "json", "html", "opml", "ndjson")


@dataclass
class World:
    """A broker with a subscription, its service, its hub, and a subscriber."""

    broker: Broker
    hub: Hub
    subscriber: Server
    url: str
    key: str
    number: int
    ahead: float = 0.0  # of the hub's clock

    @property
    def topic(self) -> str:
        """The feed of the subscription."""
        return self.topic_as("atom")

    @property
    def callback(self) -> str:
        """Where the subscriber wants it."""
        return f"{self.subscriber.url}/callback?x=1"

    def topic_as(self, form: str) -> str:
        """The feed in a form."""
        return f"{self.url}/s/{self.key}.{form}"

    def ask(self, mode_: str, /, **more: str) -> Said:
        """Ask the hub; what is given is named without `hub.`."""
        given = {"mode": mode_, "topic": self.topic, "callback": self.callback, **more}
        return ask(f"{self.url}/hub", {f"hub.{name}": value for name, value in given.items() if value != "-"})

    def subscribe(self, **more: str) -> None:
        """Subscribe, and have it verified."""
        assert self.ask("subscribe", **more).status == 202
        while self.hub.step():
            pass

    def notified(self, n: int) -> list[Came]:
        """What the subscriber is sent of a publication."""
        before = len(self.subscriber.of("POST"))
        published(self.broker, n)
        delivered(self.broker)
        return self.subscriber.of("POST")[before:]

    def rows(self) -> list[Any]:
        """The targets."""
        with self.broker.database.reading() as connection:
            return list(connection.execute(sa.select(targets)).all())

    def set_expiry(self, expires: float) -> None:
        """Have all leases end then."""
        changed = targets.update().values(expires=expires)
        self.broker.database.write(lambda connection: connection.execute(changed))


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    """All of it."""
    with Broker.open(database_url, b"secret of a test") as broker, served(broker) as url, serving() as subscriber:
        made = subscribed(broker)
        world = World(
            broker, Hub(broker, True, lambda: time.time() + world.ahead), subscriber, url, made.feed_key, made.number
        )
        yield world


def test_w1_what_a_request_has_to_say(world: World) -> None:
    for missing in ("mode", "topic", "callback"):
        assert world.ask("subscribe", **{missing: "-"}).status == 400
    for lease in ("0", "-5", "1.5", "ten", "٣"):
        assert world.ask("subscribe", lease_seconds=lease).status == 400
    assert world.ask("subscribe", secret="é" * 100).status == 400  # 200 bytes
    assert world.ask("subscribe", secret="s" * 199, lease_seconds="3600").status == 202
    assert world.ask("later").status == 400
    form = "hub.mode=subscribe"
    assert ask(f"{world.url}/hub", form.encode(), Content_Type="application/json").status == 415
    assert ask(f"{world.url}/hub", b"hub.mode=\xff", Content_Type="application/x-www-form-urlencoded").status == 400
    assert ask(f"{world.url}/hub", {"hub.mode": "x" * 20_000}).status == 413


def test_w2_rocks_102_parameters_that_are_not_known_are_ignored(world: World) -> None:
    given = {"hub.mode": "subscribe", "hub.topic": world.topic, "hub.callback": world.callback}
    assert ask(f"{world.url}/hub", {**given, "foo": "bar", "hub.foo": "hub.bar"}).status == 202
    assert world.hub.step()
    assert len(world.notified(1)) == 1


def test_w3_the_answer_does_not_depend_on_what_the_callback_says(world: World) -> None:
    world.subscriber.answer = lambda came: Said(404, {}, b"")
    answers = [world.ask("subscribe", callback=f"{world.subscriber.url}/{name}") for name in ("one", "other")]
    for said in answers:
        del said.headers["date"]
    assert answers[0] == answers[1]
    assert world.ask("unsubscribe", callback="http://127.0.0.1:9999/nobody").status == 202
    assert not world.subscriber.came, "nothing is asked before the answer"


def test_w4_refusals_are_plain_text(world: World) -> None:
    refusals = [
        world.ask("subscribe", topic="https://example.org/feed"),
        world.ask("subscribe", topic=world.topic.replace("atom", "exe")),
        world.ask("subscribe", topic=f"{world.topic[:-6]}x.atom"),
        world.ask("subscribe", callback="ftp://example.org/"),
        world.ask("subscribe", callback="https://user@example.org/"),
        world.ask("nothing"),
    ]
    for refusal in refusals:
        assert 400 <= refusal.status < 500
        assert refusal.headers["content-type"].startswith("text/plain")
        assert refusal.body.strip()


def test_w5_verification_keeps_the_parameters_of_the_callback(world: World) -> None:
    for callback, begins in (("/a", "/a?"), ("/b?x=1&y=%20", "/b?x=1&y=%20&"), ("/c?", "/c?")):
        world.subscribe(callback=world.subscriber.url + callback, lease_seconds="7200")
        (came,) = world.subscriber.of("GET")
        assert came.path.startswith(begins + "hub.mode=subscribe&")
        assert came.query["hub.topic"] == world.topic
        assert came.query["hub.lease_seconds"] == "7200"
        assert len(came.query["hub.challenge"]) >= 32
        world.subscriber.came.clear()


def test_w6_only_a_success_with_the_challenge_confirms(world: World) -> None:
    other = f"{world.subscriber.url}/elsewhere"
    wrong = [
        lambda came: echo(came)._replace(status=404),
        lambda came: echo(came)._replace(status=500),
        lambda came: Said(302, {"Location": f"{other}?{came.path.partition('?')[2]}"}, b""),
        lambda came: Said(200, {}, b""),
        lambda came: Said(200, {}, b"x" + echo(came).body),
    ]
    for number, answer in enumerate(wrong):
        world.subscriber.answer = answer
        world.subscribe(callback=f"{world.subscriber.url}/{number}")
    assert [came.path for came in world.subscriber.came if came.path.startswith("/elsewhere")] == []
    assert not world.rows()
    challenges = [came.query["hub.challenge"] for came in world.subscriber.of("GET")]
    assert len(set(challenges)) == len(wrong)
    world.subscriber.answer = lambda came: Said(200, {}, challenges[0].encode())  # of another time
    world.ahead = 3_700
    world.subscribe(callback=f"{world.subscriber.url}/0")
    assert not world.rows()


def test_w7_a_topic_that_ends_is_denied_then_or_later(world: World) -> None:
    world.subscribe()
    world.broker.unsubscribe(world.number)
    world.hub.sweep()
    assert world.hub.step()
    denial = world.subscriber.of("GET")[-1]
    assert (denial.query["hub.mode"], denial.query["hub.topic"]) == ("denied", world.topic)
    assert denial.query["x"] == "1"
    assert denial.query["hub.reason"]
    assert [row.state for row in world.rows()] == ["gone"]
    world.ahead = 61
    world.subscribe(callback=f"{world.subscriber.url}/late")
    denial = world.subscriber.of("GET")[-1]
    assert denial.path.startswith("/late?")
    assert denial.query["hub.mode"] == "denied"
    assert [row.state for row in world.rows()] == ["gone"]
    world.hub.sweep()
    assert not world.hub.step(), "it is said once"


def test_w8_rocks_103_a_subscription_is_replaced_once_that_is_verified(world: World) -> None:
    world.subscribe(secret="first")
    world.subscribe(secret="second")
    (came,) = world.notified(1)
    assert came.headers["x-hub-signature"] == signed("second", came.body)
    world.subscriber.answer = lambda came: Said(404, {}, b"") if came.method == "GET" else echo(came)
    world.subscribe(secret="third", lease_seconds="60")
    (came,) = world.notified(2)
    assert came.headers["x-hub-signature"] == signed("second", came.body)
    world.subscriber.answer = echo
    world.ahead = 61
    world.subscribe(topic=world.topic_as("rss"))  # another topic, the same callback
    world.subscribe(callback=f"{world.subscriber.url}/other")
    assert len(world.notified(3)) == 3


def test_w9_leases_are_bounded_and_end(world: World) -> None:
    for asked, given in (("-", 10 * DAY), ("1", 60), ("99999999999999999999", 30 * DAY), ("7200", 7200)):
        world.subscribe(lease_seconds=asked)
        assert world.subscriber.of("GET")[-1].query["hub.lease_seconds"] == str(given)
        (row,) = world.rows()
        assert abs(row.expires - time.time() - given) < 60
    world.set_expiry(time.time() - 1)
    assert world.notified(1) == []
    world.hub.sweep()
    assert [row.state for row in world.rows()] == ["gone"]
    world.subscribe()
    assert len(world.notified(2)) == 1


def test_w10_rocks_104_unsubscribing_is_verified_too(world: World) -> None:
    world.subscribe()
    world.subscriber.answer = lambda came: Said(404, {}, b"") if came.method == "GET" else echo(came)
    assert world.ask("unsubscribe").status == 202
    assert world.hub.step()
    assert len(world.notified(1)) == 1, "somebody else has asked"
    world.subscriber.answer = echo
    world.ahead = 61
    assert world.ask("unsubscribe").status == 202
    assert world.hub.step()
    asked = world.subscriber.of("GET")[-1].query
    assert asked["hub.mode"] == "unsubscribe"
    assert "hub.lease_seconds" not in asked
    assert world.notified(2) == []


@on_sqlite_alone
@pytest.mark.parametrize("form", FORMS)
def test_w11_w12_rocks_100_105_106_a_topic_is_sent_as_it_is(world: World, form: str) -> None:
    topic = world.topic_as(form)
    world.subscribe(topic=topic)
    (came,) = world.notified(1)
    shown = ask(topic)
    assert came.path == "/callback?x=1"
    assert came.body == shown.body
    assert form == "opml" or b"Olympic games 1" in came.body
    assert came.headers["content-type"] == shown.headers["content-type"]
    assert came.headers["link"] == f'<{world.url}/hub>; rel="hub", <{topic}>; rel="self"'
    assert "x-hub-signature" not in came.headers


def test_rocks_publisher_a_feed_names_its_hub_and_itself(world: World) -> None:
    link = ask(world.topic).headers["link"]
    assert f'<{world.url}/hub>; rel="hub"' in link
    assert re.search(rf'<{re.escape(world.topic)}>; rel="self"', link)
    hub = re.search(r'<([^>]*)>; rel="hub"', link)
    assert hub is not None
    given = {"hub.mode": "subscribe", "hub.topic": world.topic, "hub.callback": world.callback}
    assert ask(hub[1], given).status == 202
    assert world.hub.step()
    assert len(world.notified(1)) == 1


def test_w15_rocks_101_what_is_sent_is_signed(world: World) -> None:
    world.subscribe(secret="s3cret with ü")
    (came,) = world.notified(1)
    assert came.headers["x-hub-signature"] == signed("s3cret with ü", came.body)


def test_w16_publishers_may_say_that_a_feed_of_ours_has_changed(world: World) -> None:
    for name in ("hub.url", "hub.topic"):
        assert ask(f"{world.url}/hub", {"hub.mode": "publish", name: world.topic}).status == 202
        assert ask(f"{world.url}/hub", {"hub.mode": "publish", name: "https://example.org/"}).status == 404


def test_s8_a_host_that_does_not_confirm_is_asked_five_times_an_hour(world: World) -> None:
    world.subscriber.answer = lambda came: Said(404, {}, b"")
    for number in range(40):
        world.subscribe(callback=f"{world.subscriber.url}/{number}")
    assert len(world.subscriber.of("GET")) == MOST_UNVERIFIED
    world.ahead = 3_601
    while world.hub.step():
        pass
    assert len(world.subscriber.of("GET")) == MOST_UNVERIFIED, "what has waited for ten minutes is forgotten"
    world.hub.sweep()
    with world.broker.database.reading() as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(intents)).scalar() == 0


def test_s8_a_feed_has_few_callbacks_of_any_hosts_asked_that_do_not_confirm(world: World) -> None:
    """Names of one machine that whoever has a domain can make."""
    world.subscriber.answer = lambda came: Said(404, {}, b"")
    port = world.subscriber.url.rpartition(":")[2]
    for number in range(1, MOST_UNVERIFIED_OF_FEED + 20):
        world.subscribe(callback=f"http://127.0.{number}.1:{port}")
    assert len(world.subscriber.of("GET")) == MOST_UNVERIFIED_OF_FEED


def test_s8_a_host_that_confirms_is_asked_as_often_as_it_is_named(world: World) -> None:
    for number in range(3 * MOST_UNVERIFIED):
        assert world.ask("subscribe", callback=f"{world.subscriber.url}/{number}").status == 202
    while world.hub.step():
        pass
    assert len(world.rows()) == 3 * MOST_UNVERIFIED


def test_s8_a_callback_is_asked_once_a_minute_until_it_confirms(world: World) -> None:
    world.subscriber.answer = lambda came: Said(404, {}, b"")
    for _ in range(3):
        world.subscribe()
    assert len(world.subscriber.of("GET")) == 1
    world.subscriber.answer = echo
    world.ahead = 61
    while world.hub.step():
        pass
    assert len(world.subscriber.of("GET")) == 2
    assert len(world.rows()) == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "a{}.example"], ids=["host", "feed"])
def test_s8_only_so_many_of_a_host_or_a_feed_may_wait(host: str, world: World) -> None:
    for number in range(MOST_WAITING):
        values = {"subscription": world.number, "form": "atom", "topic": world.topic, "mode": "subscribe", "due": 0.0}
        values |= {
            "host": host.format(number),
            "seconds": 60.0,
            "secret": "",
            "reason": "",
            "state": "waiting",
            "created": 0.0,
        }
        row = intents.insert().values(callback=f"http://127.0.0.1/{number}", **values)
        world.broker.database.begin(lambda connection, row=row: connection.execute(row))
    refusal = world.ask("subscribe")
    assert (refusal.status, refusal.headers["retry-after"]) == (429, "600")


def test_nobody_is_asked_about_a_subscription_that_is_not_there(world: World) -> None:
    assert world.ask("unsubscribe").status == 202
    assert not world.hub.step()


def test_an_intent_that_a_killed_process_has_taken_is_asked_again(world: World) -> None:
    assert world.ask("subscribe").status == 202
    taken = intents.update().values(state="asked", asked=time.time() - 61)
    world.broker.database.write(lambda connection: connection.execute(taken))
    assert world.hub.step()
    assert len(world.rows()) == 1


def test_s1_a_callback_in_the_own_network_is_refused_at_the_door_and_when_it_is_asked(database_url: str) -> None:
    with Broker.open(database_url, b"secret") as broker, serving() as canary:
        made = subscribed(broker)
        with served(broker, allow_private=False) as url:
            given = {"hub.mode": "subscribe", "hub.topic": f"{url}/s/{made.feed_key}.atom", "hub.callback": canary.url}
            assert ask(f"{url}/hub", given).status == 400
        with served(broker) as url:  # as of a name whose address has changed since
            given["hub.topic"] = f"{url}/s/{made.feed_key}.atom"
            assert ask(f"{url}/hub", given).status == 202
        assert Hub(broker, allow_private_addresses=False).step()
        assert not canary.came
        assert Hub(broker, allow_private_addresses=True, clock=lambda: time.time() + 61).step() is False


def test_the_hub_works_by_itself_until_it_is_closed(world: World) -> None:
    with Hub(world.broker, True):
        assert world.ask("subscribe").status == 202
        end = time.monotonic() + 300
        while not world.rows():
            assert time.monotonic() < end
            time.sleep(0.02)
    assert len(world.notified(1)) == 1


def signed(secret: str, body: bytes) -> str:
    """The signature of a body."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
