"""How long an answer takes tells nothing that the answer itself does not: neither whether a token is nearly right, nor
whether something is there that belongs to another owner, nor what the look-up of a name has shown.

Answers of two kinds are taken in turn, in random order, and a rank test (Mann-Whitney) says whether one kind takes
longer. Of decisions the time of the processor counts, which little else on the machine takes; of waits the time that
passes. By chance the test says "different" once in 150,000 times, and what else goes on may disturb a comparison, so it
has to say so three times.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from amounts import usually
from triplewire.broker.broker import Broker, Wanted
from triplewire.broker.incoming.registered_sources import PUSH, WantedSource
from triplewire.config import ServiceSettings
from triplewire.engine import Engine
from triplewire.net import guard
from triplewire.service import access
from triplewire.service.app import service

TOKEN = "the-token-of-the-owner-of-a-service"
SAMPLES = usually(150, 10_000)  # of each of two kinds of answer
OF_NAMES = usually(40, 3_300)
DIFFERENT = 4.5  # standard deviations
Clock = Callable[[], int]


class Asked(NamedTuple):
    """A request."""

    method: str
    path: str
    token: str = ""
    body: bytes = b""
    kind: str = "application/trig"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    url = f"sqlite:///{tmp_path / 'broker.db'}"
    with Broker.open(url, b"s" * 32, engine=Engine(matcher="reference")) as opened:
        yield opened


def nanoseconds(one: Asked, asking: Broker, clock: Clock, count: int, other: Asked) -> tuple[np.ndarray, np.ndarray]:
    """How long the answers of two requests take, each asked so often, in random order."""
    app = service(asking, ServiceSettings(token=TOKEN))
    statuses: dict[Asked, set[int]] = {one: set(), other: set()}

    async def measured(asked: Asked) -> int:
        path, _, query = asked.path.partition("?")
        head = {"host": "broker.example", "content-type": asked.kind, "authorization": f"Bearer {asked.token}"}
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": asked.method, "scheme": "http",
            "path": path, "query_string": query.encode(), "client": ("127.0.0.1", 1), "server": ("broker.example", 80),
            "headers": [(name.encode(), text.encode()) for name, text in head.items() if asked.token or name[0] != "a"],
        }  # fmt: skip

        async def receive() -> dict[str, object]:
            return {"type": "http.request", "body": asked.body, "more_body": False}

        async def send(message: dict[str, object]) -> None:
            if message["type"] == "http.response.start":
                statuses[asked].add(int(str(message["status"])))

        begun = clock()
        await app(scope, receive, send)
        return clock() - begun

    async def all_of_them() -> list[tuple[int, int]]:
        taken = []
        for _ in range(count):
            first, second = random.sample([one, other], 2)
            times = {id(first): await measured(first), id(second): await measured(second)}
            taken.append((times[id(one)], times[id(other)]))
        return taken

    taken = np.array(asyncio.run(all_of_them()))
    assert statuses[one] == statuses[other]
    assert len(statuses[one]) == 1
    return taken[:, 0], taken[:, 1]


def deviations(one: np.ndarray, other: np.ndarray) -> float:
    """By how many standard deviations the ranks of one differ from what they are where nothing differs."""
    order = np.argsort(np.concatenate([one, other]), kind="stable")
    ranks = np.empty(len(order))
    ranks[order] = np.arange(1, len(order) + 1)
    n, m = len(one), len(other)
    above = ranks[:n].sum() - n * (n + 1) / 2 - n * m / 2
    return float(above / np.sqrt(n * m * (n + m + 1) / 12))


def is_alike(one: Asked, other: Asked, broker: Broker, clock: Clock, count: int) -> bool:
    """Do answers of two kinds take the same time, in one of three comparisons at least?"""
    return any(abs(deviations(*nanoseconds(one, broker, clock, count, other))) < DIFFERENT for _ in range(3))


def is_noticed(one: Asked, other: Asked, broker: Broker, clock: Clock) -> bool:
    """Are they told apart, in one of many comparisons at least?"""
    return any(abs(deviations(*nanoseconds(one, broker, clock, 100, other))) > DIFFERENT for _ in range(30))


def pairs(broker: Broker) -> dict[str, tuple[Asked, Asked]]:
    """Requests whose answers must not be told apart."""
    query = "SELECT ?s { ?s <urn:none> ?o } #" + "x" * 5_000
    made = broker.subscribe(Wanted(query, id="of-bob"), "bob")
    broker.sources.add(WantedSource("", kind=PUSH, id="of-bob"), "bob")
    ticket = broker.subscribe(Wanted("SELECT ?s { ?s <urn:none> ?o }", id="of-ann"), "ann").ticket
    ann = broker.new_token("ann")
    number, code = made.feed_key.split("-")
    near = code[:-1] + ("a" if code[-1] != "a" else "b")
    far = "".join("a" if letter != "a" else "b" for letter in code)
    body = b'<urn:p> { <urn:p> <urn:v> "1" }'

    def subscription(id: str, token: str) -> Asked:
        return Asked("GET", f"/subscriptions/{id}", token)

    def feed(key: str) -> Asked:
        return Asked("GET", f"/s/{key}.atom")

    def publish(source: str, token: str = "") -> Asked:
        return Asked("POST", f"/publish?source={source}", token, body)

    return {
        "another's subscription, by token": (subscription("nobodys", ann), subscription("of-bob", ann)),
        "another's subscription, by ticket": (subscription("nobodys", ticket), subscription("of-bob", ticket)),
        "another's source": (Asked("GET", "/sources/nobodys", ann), Asked("GET", "/sources/of-bob", ann)),
        "a token that is nearly right": (
            Asked("GET", "/subscriptions", "x" * len(TOKEN)),
            Asked("GET", "/subscriptions", TOKEN[:-1] + "x"),
        ),
        "a key of a feed that is nearly right": (feed(f"{number}-{far}"), feed(f"{number}-{near}")),
        "a subscription that is there": (feed(f"9{number}-{far}"), feed(f"{number}-{far}")),
        "a source to publish to, without a token": (publish("nobodys"), publish("of-bob")),
        "a source to publish to, with none that counts": (publish("nobodys", "wrong"), publish("of-bob", "wrong")),
    }


NAMES_OF_PAIRS = (
    "another's subscription, by token", "another's subscription, by ticket", "another's source",
    "a token that is nearly right", "a key of a feed that is nearly right", "a subscription that is there",
    "a source to publish to, without a token", "a source to publish to, with none that counts",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES_OF_PAIRS)
def test_what_is_hidden_takes_no_time(broker: Broker, name: str) -> None:
    found = pairs(broker)
    assert set(found) == set(NAMES_OF_PAIRS)
    one, other = found[name]
    assert is_alike(one, other, broker, time.process_time_ns, SAMPLES)


def test_work_for_what_is_there_would_be_noticed(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a millisecond of the processor, for what is another's."""
    find = Broker.find

    def slower(self: Broker, id: str, **who: str | None) -> object:
        until = time.thread_time_ns() + (500_000 if id == "of-bob" else 0)
        while time.thread_time_ns() < until:
            pass
        return find(self, id, **who)

    monkeypatch.setattr(Broker, "find", slower)
    one, other = pairs(broker)["another's subscription, by token"]
    assert is_noticed(one, other, broker, time.process_time_ns)


# --- names -----------------------------------------------------------------------------------------------------------


def addresses(host: str, port: int, seconds: float) -> list[str]:
    """Those of a name inside at once, of another one after a while not."""
    if host == "inside.example":
        return ["10.0.0.5"]
    time.sleep(0.02)
    raise TimeoutError


def asked_for(broker: Broker, door: str) -> tuple[Asked, Asked]:
    """Requests of who has no API token, for an address inside and for one whose look-up takes long."""
    made = broker.subscribe(Wanted("SELECT ?s { ?s ?p ?o }", id="one"), "bob")

    def request(host: str) -> Asked:
        if door == "hub":
            topic = f"http://broker.example/s/{made.feed_key}.atom"
            form = f"hub.mode=subscribe&hub.topic={topic}&hub.callback=http://{host}/hook"
            return Asked("POST", "/hub", "", form.encode(), "application/x-www-form-urlencoded")
        body = f'{{"address": "http://{host}/hook"}}'.encode()
        return Asked("POST", "/subscriptions/one/targets", made.ticket, body, "application/json")

    return request("inside.example"), request("nowhere.example")


@pytest.mark.parametrize("door", ["hub", "targets"])
def test_a_look_up_takes_as_long_whatever_it_shows(broker: Broker, door: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard.RESOLVER, "addresses", addresses)
    monkeypatch.setattr(access, "REFUSED_AFTER", 0.05)
    one, other = asked_for(broker, door)
    assert is_alike(one, other, broker, time.perf_counter_ns, OF_NAMES)
    monkeypatch.setattr(access, "REFUSED_AFTER", 0.0)
    assert is_noticed(one, other, broker, time.perf_counter_ns)
