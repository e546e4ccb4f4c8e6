"""The channels of deliveries, each against a real receiver; what is sent is read by the libraries of its standard."""

from __future__ import annotations

import json
import random
import socketserver
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from email import message_from_bytes, policy
from typing import Any
from xmlrpc.server import SimpleXMLRPCServer

import pytest
from cloudevents.core.bindings import http, kafka
from cloudevents.core.formats.json import JSONFormat
from standardwebhooks import Webhook, WebhookVerificationError

from broker.receivers import QUERY, published, serving
from pipeline.connect import servers
from triplewire.broker.broker import Broker, Wanted
from triplewire.broker.events.event_log import Event
from triplewire.broker.subscriptions.targets import Target
from triplewire.deliver.channels import Channels, shown_address
from triplewire.deliver.limits import DeliverySettings
from triplewire.deliver.messages import MOST_BYTES, Message
from triplewire.deliver.schedule import Deliveries
from triplewire.errors import ArgumentError, TriplewireError
from waiting import until

EVENT = Event(
    7, 1, "games/ü", "ann", 3, "matched", 1_700_000_000.25, "urn:item:ü 1", 5, "c0ffee", 'Zürich "1" & 100 %', "http://e.x/1",
    None, "http://e.x/feed", '[{"title": {"type": "literal", "value": "Olympic games"}}]', None,
)  # fmt: skip
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
PRIVATE = DeliverySettings(base_url="https://broker.example", allow_private_addresses=True, delivery_seconds=20)


def message(address: str, kind: str = "webhook", secret: str = "", event: Event = EVENT) -> Message:
    return Message(event, Target(kind, address, secret), "1-key", PRIVATE.base_url)


@contextmanager
def channels(**settings: Any) -> Iterator[Channels]:
    opened = Channels(replace(PRIVATE, **settings))
    try:
        yield opened
    finally:
        opened.close()


@pytest.mark.parametrize("secret", [SECRET, "a plain text", "whsec_no base64", "whsec_"])
def test_webhooks_are_cloud_events_and_signed(secret: str) -> None:
    with serving() as server, channels() as over:
        assert over.send(message(server.url, secret=secret)).is_delivered
        assert over.send(message(server.url, secret=secret)).is_delivered
        (_, headers, body), again = server.requests
        assert headers["ce-id"] == again.headers["ce-id"] == "7"
        event = http.from_binary(http.HTTPMessage(headers, body), JSONFormat())
        attributes = event.get_attributes()
        assert attributes["type"] == "net.triplewire.notification.matched"
        assert attributes["source"] == "https://broker.example/subscriptions/games%2F%C3%BC"
        assert attributes["subject"] == "urn:item:ü 1"
        assert attributes["time"].timestamp() == EVENT.at
        assert int(attributes["sequence"]) == 3
        assert attributes["partitionkey"] == "ann/games/ü"
        data = event.get_data()
        assert isinstance(data, dict)
        assert data["publication"]["title"] == EVENT.title
        assert data["bindings"] == json.loads(EVENT.bindings)
        assert "test" not in data
        key: Any = secret if secret == SECRET else secret.encode()
        verifier = Webhook(key)
        assert verifier.verify(body, headers) == data
        chance = random.Random(1)
        for _ in range(500):
            changed = bytearray(body)
            changed[chance.randrange(len(body))] ^= 1 << chance.randrange(7)
            if bytes(changed) != body:
                with pytest.raises((WebhookVerificationError, UnicodeDecodeError)):
                    verifier.verify(bytes(changed), headers)


def test_what_is_too_long_is_a_link() -> None:
    with serving() as server, channels() as over:
        for length, is_whole in ((MOST_BYTES - 1_000, True), (MOST_BYTES, False)):
            bindings = json.dumps([{"title": {"type": "literal", "value": "x" * length}}])
            over.send(message(server.url, event=replace(EVENT, bindings=bindings, title="t" * (length // 40))))
            _, headers, body = server.requests[-1]
            assert len(body) <= MOST_BYTES
            said = json.loads(body)
            assert ("bindings" in said) == is_whole
            link = "https://broker.example/s/1-key/events/3"
            assert (said.get("link"), headers.get("ce-dataref")) == ((None, None) if is_whole else (link, link))


def test_texts_that_are_no_text() -> None:
    strange = replace(EVENT, title="a\ud800\x00\ufffeb", id="\ud800", publication="urn:\ud800")
    with serving() as server, channels() as over:
        for kind in ("webhook", "xmlrpc"):
            assert over.send(message(server.url, kind, event=strange)).is_delivered
        assert json.loads(server.requests[0].body)["publication"]["title"] == strange.title


def test_xml_rpc_calls_notify() -> None:
    told: list[Any] = []

    def notify(event: Any) -> bool:
        told.append(event)
        return bool(1 / (len(told) - 2)) or True  # the second call fails

    server = SimpleXMLRPCServer(("127.0.0.1", 0), logRequests=False)
    server.register_function(notify)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        with channels() as over:
            url = f"http://127.0.0.1:{server.server_address[1]}/RPC2"
            target = over.target(f"xmlrpc:{url}")
            assert (target.kind, target.address) == ("xmlrpc", url)
            assert over.send(message(url, "xmlrpc")).is_delivered
            assert told[0]["id"] == "7"
            assert told[0]["publication"]["title"] == EVENT.title
            assert told[0]["bindings"] == json.loads(EVENT.bindings)
            outcome = over.send(message(url, "xmlrpc"))
            assert not outcome.is_delivered
            assert "ZeroDivisionError" in outcome.text
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    "body", [b"<html>", b"<a>" * 20_000, b"\xff", b"<methodResponse/>"], ids=["html", "deep", "no text", "empty"]
)
def test_answers_that_are_no_xml_rpc(body: bytes) -> None:
    with serving(lambda came: (200, {}, body)) as server, channels() as over:
        assert not over.send(message(server.url, "xmlrpc")).is_delivered


# --- mail ----------------------------------------------------------------------------------------------------------


class Post(socketserver.StreamRequestHandler):
    """As much of SMTP (RFC 5321) as a client needs."""

    def handle(self) -> None:
        server: Any = self.server
        self.say("220 here")
        for line in self.rfile:
            command = line.strip().upper()
            if command.startswith(b"RCPT") and b"NOBODY@" in command:
                self.say("550 no such user")
            elif command.startswith(b"RCPT") and b"LATER@" in command:
                self.say("451 later")
            elif command == b"DATA":
                self.say("354 go on")
                mail = b""
                while (part := self.rfile.readline()) != b".\r\n":
                    mail += part
                server.mails.append(mail)
                self.say("250 taken")
            else:
                self.say("250 fine")
            if command == b"QUIT":
                return

    def say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


def test_mail() -> None:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Post) as server:
        server.mails = []  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        smtp = f"smtp://127.0.0.1:{server.server_address[1]}"
        with channels(smtp=smtp, mail_from="broker@broker.example") as over:
            target = over.target("mailto:ann@example.org")
            assert target.kind == "mail"
            evil = replace(EVENT, title="Games\r\nBcc: bob@example.org\r\n\r\nhello")
            assert over.send(message(target.address, "mail", event=evil)).is_delivered
            (raw,) = server.mails  # type: ignore[attr-defined]
            mail = message_from_bytes(raw, policy=policy.default)
            assert mail["To"] == "ann@example.org"
            assert mail["Subject"] == "Games Bcc: bob@example.org hello"
            assert mail["Bcc"] is None
            assert mail["Message-ID"] == "<7.triplewire@broker.example>"
            assert "title: Olympic games" in mail.get_content()  # type: ignore[attr-defined]
            assert over.send(message("mailto:nobody@example.org", "mail")).is_gone
            later = over.send(message("mailto:later@example.org", "mail"))
            assert not later.is_delivered
            assert not later.is_gone
        server.shutdown()
    with channels(smtp=smtp, mail_from="broker@broker.example", delivery_seconds=5) as over:
        assert over.send(message("mailto:ann@example.org", "mail")).of_target


def test_a_digest_is_one_mail_of_all_that_came_in_a_period(database_url: str) -> None:
    """Nothing before the end of the hour; then one message, after which each event is delivered. What fails stays
    together."""
    with (
        Broker.open(database_url, b"s" * 32) as broker,
        socketserver.ThreadingTCPServer(("127.0.0.1", 0), Post) as server,
    ):
        server.mails = []  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        how = DeliverySettings(smtp=f"smtp://127.0.0.1:{server.server_address[1]}", mail_from="b@b.example", jitter=0)
        with Deliveries(broker, how) as delivering:
            for name, more in (("ann", {"digest": "hourly"}), ("later", {"digest": "daily"})):
                target = delivering.channels.target(f"mailto:{name}@example.org", "", more)
                broker.subscribe(Wanted(QUERY, id=name, targets=[target]), "ann")
            with pytest.raises(ArgumentError, match="only mail"):
                delivering.channels.target("kafka://h:9/t", "", {"digest": "daily"})
            with pytest.raises(ArgumentError, match="no digest"):
                delivering.channels.target("mailto:ann@example.org", "", {"digest": "weekly"})
            published(broker, *range(8))
            delivering.wake()
        assert broker.delivery_log.tally()["pending"] == 16
        assert not server.mails  # type: ignore[attr-defined]
        with Deliveries(broker, how, clock=lambda: time.time() + 86_400):
            until(lambda: broker.delivery_log.tally()["delivered"] == 8)
            until(lambda: {row.tries for row in broker.delivery_log.of_subscription(2)} == {1})
        (raw,) = server.mails  # type: ignore[attr-defined]
        mail = message_from_bytes(raw, policy=policy.default)
        assert mail["Subject"] == "8 events of ann"
        text = mail.get_content()  # type: ignore[attr-defined]
        assert all(f"Zürich {number}: matched" in text for number in range(8))
        assert len({row.due for row in broker.delivery_log.of_subscription(2)}) == 1
        server.shutdown()


# --- Kafka ---------------------------------------------------------------------------------------------------------


@pytest.mark.xdist_group("spark")
def test_topics(kafka_server: str) -> None:
    import confluent_kafka

    with channels(kafka=kafka_server, delivery_seconds=60) as over:
        target = over.target(f"kafka://{kafka_server}/games")
        for number in range(3):
            outcome = over.send(message(target.address, "kafka", event=replace(EVENT, number=number)))
            assert outcome.is_delivered, outcome
    settings = {"bootstrap.servers": kafka_server, "group.id": "test", "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer(settings)
    consumer.subscribe(["games"])
    came: list[Any] = []
    while len(came) < 3:
        if (one := consumer.poll(60)) is None:
            pytest.fail("the topic has no more")
        if one.error() is None:
            came.append(one)
    consumer.close()
    for number, one in enumerate(came):
        headers = dict(one.headers())
        event = kafka.from_binary(kafka.KafkaMessage(headers, one.key(), one.value()), JSONFormat())
        assert event.get_attributes()["id"] == str(number)
        assert one.key() == "ann/games/ü".encode()
        assert event.get_data()["publication"]["id"] == EVENT.publication  # type: ignore[index]


def test_topics_that_cannot_be_written_are_failures() -> None:
    nobody = f"127.0.0.1:{servers.free_port()}"
    with channels(kafka=nobody, delivery_seconds=2) as over:
        outcome = over.send(message(f"kafka://{nobody}/games", "kafka"))
        assert outcome.of_target
        assert not outcome.is_delivered


# --- Apprise -------------------------------------------------------------------------------------------------------


def test_messengers() -> None:
    with serving(lambda came: (200, {}, b"{}")) as server, channels() as over:
        target = over.target("apprise:" + server.url.replace("http:", "ntfy:"))
        assert over.send(message(target.address, "apprise")).is_delivered
        (came,) = server.requests
        assert b"Olympic games" in came.body
        server.answer = lambda came: (500, {}, b"")
        assert not over.send(message(target.address, "apprise")).is_delivered


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_messengers_reach_no_private_address(host: str) -> None:
    with serving() as server, channels(allow_private_addresses=False) as over:
        address = "apprise:" + server.url.replace("http://127.0.0.1", f"ntfy://{host}")
        outcome = over.send(message(address, "apprise"))
        assert not outcome.is_delivered
        assert "no public address" in outcome.text
        assert not server.requests
        # the guard ends with the call
        assert urllib.request.urlopen(server.url, data=b"x").status == 200


REFUSED = [
    "ftp://e.x/",
    "file:///etc/passwd",
    "javascript:alert(1)",
    "",
    "http://127.0.0.1:22/",
    "http://10.1.2.3/",
    "http://user:pass@e.x/",
    "http://localhost/",
    "http://[::1]/",
    "xmlrpc:http://127.0.0.1/",
    "xmlrpc:file:///etc/passwd",
    "kafka://e.x:9092/topic",
    "kafka://e.x:9092",
    "mailto:ann@example.org?bcc=bob@example.org",
    "mailto:ann",
    "mailto:ann@example.org,bob@example.org",
    "mailto:ann@example.org%0d%0aBcc:bob@example.org",
    "apprise:syslog://",
    "apprise:dbus://",
    "apprise:json://e.x/",
    "apprise:discord://1234567890/abcdefghijklmnop?template=/etc/passwd",
    "apprise:discord://1234567890/abcdefghijklmnop?%74emplate=/etc/passwd",
    "apprise:discord://1234567890/abcdefghijklmnop?TEMPLATE=/etc/passwd",
    "apprise:ntfy://e.x/topic?retry=10",
    "apprise:nothing",
    "https://e.x/" + "a" * 3_000,
]


@pytest.mark.parametrize("address", REFUSED)
def test_addresses_that_are_refused(address: str) -> None:
    with (
        channels(allow_private_addresses=False, smtp="smtp://127.0.0.1", mail_from="a@e.x") as over,
        pytest.raises(TriplewireError),
    ):
        over.target(address)


def test_secrets_of_addresses_are_not_shown() -> None:
    assert shown_address("webhook", "https://e.x/a?token=abcdef&b=1") == "https://e.x/a?token=***&b=1"
    assert shown_address("apprise", "apprise:slack://T1JJ3T3L2/A1BRTD4JD/TIia") == "apprise:slack://***"
