"""`triplewire serve` as a process: publications and subscriptions that end it, and a stop while it works."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from pipeline.connect.servers import free_port
from triplewire.store.database import Database
from triplewire.store.tables import publications

TOKEN = "tw_api_of_the_owner_that_nobody_else_knows"
WITHIN = 300.0
TITLE = "<http://purl.org/rss/1.0/title>"
OPERATORS = """
import os
from triplewire.extend import Parameter


class Fragile:
    'Ends the process where a publication says so, or the query.'
    name, parameters = "fragile", (Parameter("when"),)

    def evaluate(self, publication, arguments):
        said = {triple.object.lexical for triple in publication.triples}
        if arguments[0].lexical == "always" or "poison" in said:
            os._exit(1)
        return True


operators = (Fragile(),)
"""


class Served:
    """A broker that is served by a process, and started again when it has ended."""

    def __init__(self, folder: Path, operators: str = "") -> None:
        self.folder, self.port, self.starts = folder, free_port(), 0
        self.log = folder / "serve.log"
        self._command = [sys.executable, "-m", "triplewire", "serve", "--data", str(folder), "--port", str(self.port)]
        if operators:
            (folder / "operators.py").write_text(operators)
            self._command += ["--operators", str(folder / "operators.py")]
        self.process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        self.starts += 1
        environment = {**os.environ, "TRIPLEWIRE_TOKEN": TOKEN, "TRIPLEWIRE_TIER": "interpreted"}
        with self.log.open("ab") as log:
            return subprocess.Popen(self._command, env=environment, stdout=log, stderr=log)

    def ask(self, method: str, path: str, body: bytes | None = None, content_type: str = "application/json") -> Any:
        """What a door answers: a value of JSON, or the text. Raises `OSError`."""
        head = {"Authorization": f"Bearer {TOKEN}", "Content-Type": content_type}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", body, head, method=method)
        try:
            with urllib.request.urlopen(request, timeout=WITHIN) as answer:
                text = answer.read().decode()
        except http.client.HTTPException as error:  # the process ended while it answered
            raise ConnectionError(str(error)) from error
        return json.loads(text) if answer.headers["content-type"] == "application/json" else text

    def kept_up(self) -> None:
        """Start it again if it has ended, and wait until it answers, or has ended again."""
        if self.process.poll() is not None:
            self.process = self._started()
        end = time.monotonic() + WITHIN
        while self.process.poll() is None:
            with suppress(OSError):
                self.ask("GET", "/readiness")
                return
            assert time.monotonic() < end, self.log.read_text()
            time.sleep(0.05)

    def events(self) -> list[dict[str, Any]]:
        """All events; none while it does not answer."""
        with suppress(OSError):
            return [json.loads(line) for line in self.ask("GET", "/events").splitlines()]
        return []

    def stop(self) -> int:
        """End it as a supervisor does; returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(WITHIN)


@contextmanager
def served(folder: Path, operators: str = "") -> Iterator[Served]:
    """A broker that answers."""
    of = Served(folder, operators)
    try:
        of.kept_up()
        yield of
    finally:
        of.process.kill()
        of.process.wait(WITHIN)


def graph(number: int, title: str = "") -> str:
    """A publication in TriG."""
    return f'<urn:p:{number}> {{ <urn:p:{number}> {TITLE} "{title or number}" }}\n'


def subscribe(of: Served, id: str, query: str, language: str = "sparql") -> None:
    """Make a subscription."""
    of.ask("POST", "/subscriptions", json.dumps({"id": id, "query": query, "language": language}).encode())


def until_told(of: Served, count: int) -> Counter[tuple[str, str]]:
    """How often each subscription was told of each publication, once they are so many together."""
    end = time.monotonic() + WITHIN
    while True:
        of.kept_up()
        found = of.events()
        if len(found) >= count:
            return Counter((event["subscription"], event["publication"]) for event in found)
        assert time.monotonic() < end, (len(found), of.log.read_text()[-2_000:])
        time.sleep(0.1)


def test_a_publication_that_ends_the_process_is_refused(tmp_path: Path) -> None:
    """The others of its batch are told once, and nobody has to do anything but start the process again."""
    with served(tmp_path, OPERATORS) as of:
        subscribe(of, "all", f"SELECT ?t {{ ?s {TITLE} ?t }}")
        subscribe(of, "fragile", 'fragile("at times")', "predicates")
        text = "".join(graph(number, "poison" if number == 6 else "") for number in range(12))
        with suppress(OSError):  # it may end before it answers
            of.ask("POST", "/publish", text.encode(), "application/trig")
        told = until_told(of, 22)
        others = [f"urn:p:{number}" for number in range(12) if number != 6]
        assert told == Counter((id, other) for other in others for id in ("all", "fragile"))
        assert of.starts == 4, "in its batch, twice alone, and one start that goes on"
        of.ask("POST", "/publish", graph(20).encode(), "application/trig")
        assert len(until_told(of, 24)) == 24
        assert of.starts == 4
        assert of.stop() == 0
    with Database.open(f"sqlite:///{tmp_path / 'broker.db'}") as database, database.reading() as connection:
        refused = connection.execute(sa.select(publications).where(publications.c.state != "matched")).all()
    assert [(row.id, row.state) for row in refused] == [("urn:p:6", "refused")]
    assert "ended the process" in refused[0].reason


def test_a_subscription_that_ends_the_process_is_suspended(tmp_path: Path) -> None:
    """Others are told of all that came meanwhile."""
    with served(tmp_path, OPERATORS) as of:
        subscribe(of, "all", f"SELECT ?t {{ ?s {TITLE} ?t }}")
        subscribe(of, "fragile", 'fragile("always")', "predicates")
        with suppress(OSError):
            of.ask("POST", "/publish", "".join(map(graph, range(5))).encode(), "application/trig")
        told = until_told(of, 6)
        assert told == Counter([*(("all", f"urn:p:{number}") for number in range(5)), ("fragile", "")])
        assert of.starts == 6, "in a batch, two publications twice alone, and one start that goes on"
        answer = of.ask("GET", "/subscriptions/fragile")
        assert answer["state"] == "suspended"
        assert "ended the process" in answer["reason"]
        assert of.ask("GET", "/subscriptions/all")["state"] == "active"
        assert of.stop() == 0


def test_a_stop_under_load_loses_nothing(tmp_path: Path) -> None:
    """SIGTERM: what was answered is kept and told; the process ends by itself, and says no token. Many stops:
    `test_stopped_often`."""
    accepted: list[int] = []
    with served(tmp_path) as of:
        subscribe(of, "all", f"SELECT ?t {{ ?s {TITLE} ?t }}")
        enough = threading.Event()

        def publish(lane: int) -> None:
            for number in range(lane, 100_000, 4):
                try:
                    of.ask("POST", "/publish", graph(number).encode(), "application/trig")
                except OSError:
                    return
                accepted.append(number)
                if len(accepted) > 40:
                    enough.set()

        lanes = [threading.Thread(target=publish, args=(lane,)) for lane in range(4)]
        for lane in lanes:
            lane.start()
        assert enough.wait(WITHIN)
        assert of.stop() == 0
        for lane in lanes:
            lane.join(WITHIN)
        told = until_told(of, len(accepted))
        assert set(told) >= {("all", f"urn:p:{number}") for number in accepted}
        assert set(told.values()) == {1}
        assert of.stop() == 0
        assert TOKEN not in of.log.read_text()
        assert "Traceback" not in of.log.read_text()


def test_a_body_in_chunks_is_refused_when_it_is_too_long(tmp_path: Path) -> None:
    """Also where the last chunk is the one too many: nobody waits for more. The next request is answered."""
    with served(tmp_path) as of:
        head = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        for path in ("/publish", "/subscriptions", "/match"):
            for chunks in ([b"x" * (1 << 20), b"x"], [b"x" * 100_000] * 40, [b"x" * ((1 << 20) + 1)]):
                connection = http.client.HTTPConnection("127.0.0.1", of.port, timeout=WITHIN)
                connection.request("POST", path, iter(chunks), head, encode_chunked=True)
                assert connection.getresponse().status == 413, (path, len(chunks))
                connection.close()
        assert of.ask("GET", "/readiness") == {"ready": True}
