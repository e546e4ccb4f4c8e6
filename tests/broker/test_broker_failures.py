"""What a broker does when what it stands on fails: the disk, the database, the clock; and where several act at once."""

from __future__ import annotations

import json
import random
import resource
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from triplewire import Engine, Publication
from triplewire.broker.broker import LONGEST, SHORTEST, Broker, Wanted
from triplewire.broker.events.event_log import EXPIRED
from triplewire.errors import SubscriptionError, TriplewireError
from triplewire.model.terms import IRI, Literal, Triple
from triplewire.service.app import ServiceSettings, service
from triplewire.store.tables import events, publications
from waiting import until

SECRET = b"s" * 32
TOKEN = "the token of the owner"
TITLE = IRI("http://purl.org/rss/1.0/title")
ALL = f"SELECT ?t {{ ?s <{TITLE.value}> ?t }}"
WITHIN = 300.0  # seconds, for what happens in one


def publication(number: int, content: str = "") -> Publication:
    """A publication with a title."""
    subject = IRI(f"urn:p:{number}")
    return Publication(subject.value, (Triple(subject, TITLE, Literal(f"publication {number} {content}")),))


def opened(url: str) -> Broker:
    """A broker that compiles nothing."""
    return Broker.open(url, SECRET, engine=Engine(matcher="reference"))


def told(broker: Broker, owner: str = "ann") -> Counter[str]:
    """How often an owner was told of each publication."""
    return Counter(event.publication for event in broker.events(owner, 0, 100_000))


# --- several at once--------------------------------------------------------------------------------------


def test_what_is_published_by_many_at_once_is_one(new_database: Callable[[], str]) -> None:
    url = new_database()
    with opened(url) as broker:
        others = [broker] if broker.database.is_sqlite else [broker, opened(url)]
        broker.subscribe(Wanted(ALL, id="all"), "ann")
        start = threading.Barrier(8)

        def publish(place: int) -> None:
            start.wait(WITHIN)
            order = list(range(30))
            random.Random(place).shuffle(order)  # two processes that take the same in another order wait for each other
            for begin in range(0, 30, 5):
                others[place % len(others)].publish([publication(number) for number in order[begin : begin + 5]])

        threads = [threading.Thread(target=publish, args=(place,)) for place in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WITHIN)
        until(lambda: len(told(broker)) == 30)
        assert set(told(broker).values()) == {1}
        for other in others[1:]:
            other.close()


def test_contents_of_two_processes_follow_each_other(new_database: Callable[[], str]) -> None:
    """Of contents that come at once, one is the previous of the next: each is matched once, then changed."""
    url = new_database()
    with opened(url) as broker:
        others = [broker] * 2 if broker.database.is_sqlite else [broker, opened(url)]
        broker.subscribe(Wanted(ALL, id="all"), "ann")
        start = threading.Barrier(2)

        def publish(place: int) -> None:
            start.wait(WITHIN)
            for content in range(20):
                others[place].publish([publication(1, f"{place}-{content}")])

        threads = [threading.Thread(target=publish, args=(place,)) for place in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WITHIN)
        until(lambda: len(broker.events("ann", 0)) == 40)
        assert [event.type for event in broker.events("ann", 0)] == ["matched"] + ["changed"] * 39
        if others[1] is not broker:
            others[1].close()


def test_a_refused_content_is_passed_over(database_url: str) -> None:
    """What comes after it is a change of what was told before it."""
    with opened(database_url) as broker:
        broker.subscribe(Wanted(ALL, id="all"), "ann")
        for content in ("first", "refused", "third"):
            numbers = [taken.number for taken in broker.publish([publication(1, content)])]
            assert broker.wait(numbers, WITHIN)
            if content == "refused":
                here = publications.c.number == numbers[0]
                refuse = publications.update().where(here).values(state="refused")
                unsay = events.delete().where(events.c.publication == numbers[0])
                for statement in (refuse, unsay):
                    broker.database.write(lambda connection, statement=statement: connection.execute(statement))  # type: ignore[misc]
        assert [event.type for event in broker.events("ann", 0)] == ["matched", "changed"]


@contextmanager
def own_clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The clock of the computer, set by hand: its time is the first of the list."""
    clock = [time.time()]
    monkeypatch.setattr(time, "time", lambda: clock[0])
    yield clock
    monkeypatch.undo()


def test_who_renews_and_who_ends_agree(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A subscription is renewed or has ended, never both, never neither: whatever comes at the same moment."""
    with opened(database_url) as broker, own_clock(monkeypatch) as clock:
        made = broker.subscribe_all([Wanted(ALL, id=f"s{number}", seconds=SHORTEST) for number in range(40)], "ann")
        numbers = [one.number for one in made if not isinstance(one, TriplewireError)]
        renewed: dict[int, float] = {}
        start = threading.Barrier(4)

        def renew(part: int) -> None:
            start.wait(WITHIN)
            for number in numbers[part::2]:
                with suppress(SubscriptionError):
                    renewed[number] = broker.renew(number, SHORTEST)

        def expire() -> None:
            start.wait(WITHIN)
            for _ in range(20):
                broker.expire()

        def unsubscribe() -> None:
            start.wait(WITHIN)
            for number in numbers[::4]:
                broker.unsubscribe(number)

        clock[0] += SHORTEST
        threads = [threading.Thread(target=renew, args=(part,)) for part in (0, 1)]
        threads += [threading.Thread(target=expire), threading.Thread(target=unsubscribe)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WITHIN)
        broker.expire()
        ends = Counter(event.subscription for event in broker.events("ann", 0) if event.type == EXPIRED)
        for number in numbers:
            row = broker.by_number(number)
            assert row is not None
            is_over = (row.state, row.reason) == ("ended", "its time is over")
            assert ends[number] == is_over
            if row.state != "ended":
                assert row.expires == renewed[number]
                continue
            with pytest.raises(SubscriptionError):
                broker.renew(number, SHORTEST)
            with pytest.raises(SubscriptionError):
                broker.change(number, title="of one that has ended")
        clock[0] += SHORTEST
        broker.expire()
        assert {row.state for row in broker.subscriptions_of("ann")} == {"ended"}
        ends = Counter(event.subscription for event in broker.events("ann", 0) if event.type == EXPIRED)
        assert set(ends.values()) == {1}


# --- clocks----------------------------------------------------------------------------------------------------


def test_a_clock_that_jumps_ends_nothing_too_early_or_never(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(13)
    with opened(database_url) as broker, own_clock(monkeypatch) as clock:
        until(lambda: broker.matching.is_ours)  # nobody else ends a subscription
        ends: dict[str, float] = {}
        for step in range(60):
            clock[0] += chance.choice([-3_600, -1, 0, 1, 30, 3_600])
            seconds = chance.uniform(SHORTEST, 7_200)
            ends[f"s{step}"] = broker.subscribe(Wanted(ALL, id=f"s{step}", seconds=seconds), "ann").expires
            broker.expire()
            for row in broker.subscriptions_of("ann"):
                if row.state == "ended":
                    ends.pop(row.id, None)
                else:
                    assert clock[0] < ends[row.id], "it should have ended"
            assert {row.id for row in broker.subscriptions_of("ann") if row.state != "ended"} == set(ends)
        events = broker.events("ann", 0)
        assert {event.type for event in events} == {EXPIRED}
        assert max(Counter(event.id for event in events).values()) == 1


def test_a_subscription_ends_by_itself(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(database_url) as broker, own_clock(monkeypatch) as clock:
        broker.subscribe(Wanted(ALL, id="short", seconds=SHORTEST), "ann")
        broker.subscribe(Wanted(ALL, id="long", seconds=LONGEST), "ann")
        clock[0] += SHORTEST + 1
        until(lambda: [event.id for event in broker.events("ann", 0)] == ["short"])
        broker.publish([publication(1)])
        until(lambda: told(broker)["urn:p:1"] == 1)


@pytest.mark.parametrize("jump", [-3_600, 3_600])
def test_who_waits_is_not_misled_by_the_clock(jump: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(f"sqlite:///{tmp_path / 'broker.db'}") as broker, own_clock(monkeypatch) as clock:
        broker.subscribe(Wanted(ALL, id="all"), "ann")
        until(lambda: broker.matching.is_ours)
        found: list[dict[int, int]] = []

        def wait() -> None:
            found.append(broker.wait([2], WITHIN))

        waiting = threading.Thread(target=wait)
        waiting.start()
        clock[0] += jump
        broker.publish([publication(1)])
        broker.publish([publication(2)])
        waiting.join(WITHIN)
        assert found == [{2: 1}]
        clock[0] += jump
        never = threading.Thread(target=lambda: broker.wait([99], 0.1))
        never.start()
        clock[0] += jump
        never.join(WITHIN)
        assert not never.is_alive()


# --- a full disk------------------------------------------------------------------------------------------------

FULL = """
import json, resource, sys, time
from fastapi.testclient import TestClient
from triplewire import Engine
from triplewire.broker.broker import Broker, Wanted
from triplewire.service.app import ServiceSettings, service
from triplewire.store.tables import events, publications

def publish(number, size):
    title = f'<urn:p:{number}> <http://purl.org/rss/1.0/title> "{number}"'
    text = f'<urn:p:{number}> {{ {title} ; <urn:v:text> "{"x" * size}" }}'
    return doors.post("/publish?wait=1", content=text, headers=head | {"Content-Type": "application/trig"})

head = {"Authorization": "Bearer token"}
with Broker.open(sys.argv[1], b"s" * 32, engine=Engine(matcher="reference")) as broker:
    broker.subscribe(Wanted("SELECT ?t { ?s <http://purl.org/rss/1.0/title> ?t }", id="all"), "owner")
    doors = TestClient(service(broker, ServiceSettings(token="token", wait_seconds=0.1)))
    statuses, accepted = [], []
    none, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    for round in range(3):
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]) + 300_000 * round, hard))
        for number in range(100 * round, 100 * round + 40):
            answer = publish(number, 20_000)
            statuses.append(answer.status_code)
            assert answer.status_code in (202, 507), answer.text
            if answer.status_code == 202:
                accepted.append(f"urn:p:{number}")
            else:
                assert "full" in answer.json()["title"] or "I/O" in answer.json()["title"], answer.text
                assert answer.headers["Retry-After"]
                break
        resource.setrlimit(resource.RLIMIT_FSIZE, (none, hard))
        answer = publish(100 * round + 99, 20_000)
        statuses.append(answer.status_code)
        accepted.append(f"urn:p:{100 * round + 99}")
    end = time.monotonic() + 300
    told = []
    while len(told) < len(accepted) and time.monotonic() < end:
        told = [event.publication for event in broker.events("owner", 0)]
        time.sleep(0.05)
    print(json.dumps([statuses, accepted, sorted(told)]))
"""


def test_a_full_disk_refuses_and_recovers(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'broker.db'}"
    with opened(url):
        pass
    size = (tmp_path / "broker.db").stat().st_size
    run = [sys.executable, "-c", FULL, url, str(size + 200_000)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3_000:]
    statuses, accepted, told_of = json.loads(done.stdout)
    assert set(statuses) == {202, 507}
    assert statuses[-1] == 202
    assert told_of == sorted(accepted), "what was accepted is told once, and nothing else is"
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


# --- a database that is away------------------------------------------------------------------------------------


class Cut:
    """A way to a server that can be cut: what goes through is ended, and nothing gets through any more."""

    def __init__(self, host: str, port: int) -> None:
        self._to = host, port
        self._through: list[socket.socket] = []
        self._lock = threading.Lock()
        self._is_cut = False
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                came, _ = self._listening.accept()
                with self._lock:
                    if self._is_cut:
                        came.close()
                        continue
                    on = socket.create_connection(self._to)
                    self._through += [came, on]
                for one, other in ((came, on), (on, came)):
                    threading.Thread(target=self._pass_on, args=(one, other), daemon=True).start()

    @staticmethod
    def _pass_on(one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(65_536):
                other.sendall(data)
        with suppress(OSError):
            other.shutdown(socket.SHUT_WR)

    def cut(self) -> None:
        """Let nothing through."""
        with self._lock:
            self._is_cut = True
            for each in self._through:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
                each.close()
            self._through.clear()

    def mend(self) -> None:
        """Let everything through again."""
        with self._lock:
            self._is_cut = False

    def close(self) -> None:
        """End."""
        self.cut()
        self._listening.close()


def test_a_database_that_is_away_comes_back(server: str, new_database: Callable[[], str]) -> None:
    url = new_database()
    if url.startswith("sqlite"):
        pytest.skip("a SQLite file is never away")
    host, port = url.rpartition("@")[2].partition("/")[0].split(":")
    way = Cut(host, int(port))
    with opened(url.replace(f":{port}/", f":{way.port}/")) as broker:
        doors = TestClient(service(broker, ServiceSettings(token=TOKEN, owner="ann")))
        head = {"Authorization": f"Bearer {TOKEN}"}

        def publish(number: int) -> int:
            text = f'<urn:p:{number}> {{ <urn:p:{number}> <{TITLE.value}> "{number}" }}'
            answer = doors.post("/publish", content=text, headers=head | {"Content-Type": "application/trig"})
            if answer.status_code != 202:
                assert answer.headers["content-type"] == "application/problem+json"
                assert int(answer.headers["Retry-After"]) > 0
                assert "not-to-be-seen" not in answer.text
            return answer.status_code

        broker.subscribe(Wanted(ALL, id="all"), "ann")
        accepted = set()
        for outage in range(3):
            assert publish(10 * outage) == 202
            accepted.add(f"urn:p:{10 * outage}")
            way.cut()
            for number in range(10 * outage + 1, 10 * outage + 4):
                assert publish(number) == 503
            for path in ("/readiness", "/subscriptions", "/subscriptions/all", "/events"):
                assert doors.get(path, headers=head).status_code == 503, path
            assert doors.get("/liveness").status_code == 200
            way.mend()
            assert publish(10 * outage + 5) == 202
            accepted.add(f"urn:p:{10 * outage + 5}")
            assert doors.get("/readiness").status_code == 200
            until(lambda: set(told(broker)) == accepted)  # it is asked at once
        assert set(told(broker).values()) == {1}
        assert [event.sequence for event in broker.events("ann", 0)] == list(range(1, 7))
    way.close()
