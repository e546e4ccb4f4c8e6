"""A service that is stopped by SIGTERM again and again, while publications come, webhooks are posted and a stream of
events is read: each publication that was answered is told once, also on the wire."""

from __future__ import annotations

import http.client
import os
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from amounts import usually
from broker.receivers import Answer, Came, Server, serving
from pipeline.connect.servers import free_port
from service.serving import TOKEN
from triplewire.broker.broker import Broker, Target, Wanted
from triplewire.broker.events.delivery_log import DeliveryLog
from triplewire.store.database import Database
from waiting import until

TESTS = Path(__file__).resolve().parents[1]
TITLE = "<http://purl.org/rss/1.0/title>"
SECRET = "a secret that keys of feeds are made with"
WITHIN = 300.0
LANES, PAUSE = 2, 0.01  # who publishes side by side, and seconds between two publications of one
SLOWEST = 0.05  # seconds that a receiver takes
MOST = 8  # webhooks between two stops


def slowly(came: Came) -> Answer:
    """A receiver's answer, which takes a while, so that stops come while a webhook is posted."""
    time.sleep(random.uniform(0, SLOWEST))
    return 200, {}, b""


@dataclass
class Clients:
    """Those who publish to a service and read its events, and come back when it has ended."""

    port: int
    accepted: list[str] = field(default_factory=list)
    streamed: list[int] = field(default_factory=list)  # the sequences of the events of the stream
    is_enough: bool = False
    is_over: bool = False

    def publish_one(self, id: str) -> None:
        """Publish something, as soon as there is somebody who takes it."""
        head = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/trig"}
        body = f'<{id}> {{ <{id}> {TITLE} "a title" }}'.encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/publish", body, head)
        end = time.monotonic() + WITHIN
        while True:
            try:
                with urllib.request.urlopen(request, timeout=300):
                    return
            except (OSError, http.client.HTTPException):
                assert time.monotonic() < end
                time.sleep(PAUSE)

    def publish(self, lane: int) -> None:
        """Publish until it is enough."""
        number = 0
        while not self.is_enough:
            id = f"urn:p:{lane}-{number}"
            self.publish_one(id)
            self.accepted.append(id)
            number += 1
            time.sleep(PAUSE)

    def read(self, feed: str) -> None:
        """Read the stream of a subscription, behind the event that came last."""
        address = f"http://127.0.0.1:{self.port}/s/{feed}/events"
        while not self.is_over:
            last = str(self.streamed[-1] if self.streamed else 0)
            request = urllib.request.Request(address, headers={"Last-Event-ID": last})
            with suppress(OSError, http.client.HTTPException), urllib.request.urlopen(request, timeout=300) as answer:
                id = ""
                for line in answer:
                    name, _, value = line.decode().rstrip("\n").partition(": ")
                    if name == "id":
                        id = value
                    elif not name and id:  # the end of an event
                        self.streamed.append(int(id))
                        id = ""
            time.sleep(PAUSE)


@dataclass
class Told:
    """What came of a service that was stopped so often."""

    accepted: list[str]
    streamed: list[int]
    posted: list[Counter[str]]  # event -> how often it was posted, for each receiver
    codes: list[int]
    tally: dict[str, int]
    log: str


def ended(process: subprocess.Popen[str]) -> None:
    """End what stops a service, and the service, whatever has failed."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def after_stops(url: str, folder: Path, stops: int, name: str = "SIGTERM") -> Told:
    """Stop a service so often, and wait until all is told."""
    clients, log = Clients(free_port()), folder / "serve.log"
    command = [sys.executable, "-m", "service.stopped", str(folder / "data"), str(clients.port)]
    environment = {
        **os.environ, "PYTHONPATH": str(TESTS), "TRIPLEWIRE_TIER": "interpreted", "TRIPLEWIRE_TOKEN": TOKEN,
        "TRIPLEWIRE_ALLOW_PRIVATE_ADDRESSES": "1", "TRIPLEWIRE_KEEP_EVENTS": "1000000", "TRIPLEWIRE_DATABASE": url,
        "TRIPLEWIRE_FEED_SECRET": SECRET,
    }  # fmt: skip
    with ExitStack() as running:
        receivers: list[Server] = [running.enter_context(serving(slowly)) for _ in range(2)]
        with Broker.open(url, SECRET.encode()) as broker:
            targets = [Target("webhook", to.url) for to in receivers]
            feed = broker.subscribe(Wanted(f"SELECT ?t {{ ?s {TITLE} ?t }}", targets=targets), "owner").feed_key
        errors = running.enter_context(log.open("w"))
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": errors, "text": True}
        process = running.enter_context(subprocess.Popen(command, env=environment, start_new_session=True, **pipes))
        running.callback(ended, process)
        given, output, codes = process.stdin, process.stdout, []
        assert given is not None
        assert output is not None

        reading = threading.Thread(target=clients.read, args=(feed,), daemon=True)
        publishing = [threading.Thread(target=clients.publish, args=(lane,), daemon=True) for lane in range(LANES)]
        for thread in (reading, *publishing):
            thread.start()

        for _ in range(stops):
            enough = len(receivers[0].requests) + random.randint(1, MOST)
            until(lambda: len(receivers[0].requests) >= enough, WITHIN)  # noqa: B023  # it is called at once
            time.sleep(random.uniform(0, SLOWEST))
            print(name, file=given, flush=True)
            codes.append(int(output.readline()))
        clients.is_enough = True
        for thread in publishing:
            thread.join(WITHIN)
        count = len(clients.accepted)
        until(lambda: min(len(clients.streamed), *(len({*to.ids}) for to in receivers)) >= count, WITHIN)
        given.close()
        codes.append(int(output.readline()))
        clients.is_over = True
        reading.join(WITHIN)
    with Database.open(url) as database:
        tally = DeliveryLog(database).tally()
    posted = [Counter(to.ids) for to in receivers]
    return Told(clients.accepted, clients.streamed, posted, codes, tally, log.read_text())


def test_stopped_often_nothing_is_told_twice(database_url: str, tmp_path: Path) -> None:
    stops = usually(5, 1_000)
    told = after_stops(database_url, tmp_path, stops)
    assert told.codes == [0] * (stops + 1)
    count = len(told.accepted)
    assert count > stops
    assert told.streamed == list(range(1, count + 1))
    for posted in told.posted:
        assert len(posted) == count
        assert {event: times for event, times in posted.items() if times > 1} == {}
    assert told.tally == {"matched": 2 * count, "delivered": 2 * count, "pending": 0, "expired": 0, "dead": 0}
    assert "Traceback" not in told.log
    assert TOKEN not in told.log


def test_killed_as_often_something_is_posted_twice(new_database: Callable[[], str], tmp_path: Path) -> None:
    """So a stop that did not wait would be found out."""

    def is_posted_twice(number: int) -> bool:
        folder = tmp_path / str(number)
        folder.mkdir()
        told = after_stops(new_database(), folder, 5, "SIGKILL")
        assert told.streamed == list(range(1, len(told.accepted) + 1))
        assert all(len(posted) == len(told.accepted) for posted in told.posted)
        return any(times > 1 for posted in told.posted for times in posted.values())

    assert any(map(is_posted_twice, range(20)))
