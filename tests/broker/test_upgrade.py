"""An upgrade while publishers publish, with `kill -9`: what the doors promise holds.

Services are of this version and of the next one, side by side over PostgreSQL, or one after the other over SQLite. The
next version is this one with one more revision of the tables (`cases/service/next_revision.py`).
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
import sqlalchemy as sa

from broker import history, receivers
from broker.next_version import revisions
from pipeline.connect.servers import free_port
from service.serving import PROGRAM, TOKEN, Serving, serving
from triplewire.model.publication import Publication
from triplewire.store import migrate
from triplewire.store.database import Database
from triplewire.store.tables import deliveries, publications
from waiting import until

SEED = 19
EACH = 5  # units that are answered before the next step
WITHIN = 300.0  # seconds, for what happens in a few
STEPS = {
    "sqlite": ["start this", "kill 0", "start next", "kill 1", "start next"],
    "postgresql": ["start this", "start this", "start next", "kill 0", "start next", "kill 1", "kill 2"],
}
"""Numbers count the services in the order in which they were started."""
ENDS_FIRST = """CREATE FUNCTION ends_first() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
IF nextval('changes_begun') = 1 THEN RAISE EXCEPTION 'deadlock detected' USING ERRCODE = '40P01'; END IF; END $$"""


class Publisher:
    """Publishes one unit after the other at one of the services that there are, and reads; what was not answered is
    sent again, perhaps to another one."""

    def __init__(self, running: dict[int, Serving]) -> None:
        self.answered = 0
        self._running = running
        self._chance = random.Random(SEED)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._publish)

    def __enter__(self) -> Publisher:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(WITHIN)

    def _publish(self) -> None:
        while not self._stop.is_set():
            given = history.unit(SEED, 0, self.answered)
            lines = [f"{str(triple)[:-2]} <{one.id}> .\n" for one in given for triple in one.triples]
            with suppress(OSError, HTTPException, IndexError):
                service = self._chance.choice([*self._running.values()])
                status, answer = service.ask("POST", "/publish", "".join(lines).encode())
                assert status == 202, answer
                self.answered += 1
                assert service.get("/events", TOKEN)[0] in (200, 503)  # what reads may be ended for what changes tables
            time.sleep(0.05)

    def wait(self) -> None:
        """Until so many more units are answered."""
        enough = self.answered + EACH
        until(lambda: self.answered >= enough or not self._thread.is_alive(), WITHIN)
        assert self._thread.is_alive()

    @property
    def published(self) -> list[Publication]:
        return [one for number in range(self.answered) for one in history.unit(SEED, 0, number)]


def subscribed(at: Serving, hook: str) -> dict[str, dict[str, Any]]:
    """The subscriptions of a history, as they were answered."""
    to = {id: {"webhook": hook, "secret": "of the receiver"} for id in history.WITH_TARGET}
    wanted = [{"id": id, "query": query, **to.get(id, {})} for id, query in history.QUERIES.items()]
    status, answer = at.ask("POST", "/subscriptions", wanted)
    assert status == 201, answer
    return {one["id"]: one for one in json.loads(answer)}


def is_new(at: Serving) -> bool:
    """Is it new, what a request publishes that is sent again and again?"""
    key = {"Idempotency-Key": "of all"}
    status, answer = at.ask("POST", "/publish", b'[] <urn:once> "it has no id of its own" .', headers=key)
    assert status == 202, answer
    return bool(json.loads(answer)["new"])


def told(at: Serving) -> dict[str, list[tuple[int, int, str, str, str]]]:
    """What the owner is told, at a door."""
    events: dict[str, list[tuple[int, int, str, str, str]]] = {id: [] for id in history.QUERIES}
    for line in at.ask("GET", "/events?after=0")[1].splitlines():
        event = json.loads(line)
        told = (event["number"], event["sequence"], event["type"], event["publication"], event["content"])
        events[event["subscription"]].append(told)
    return events


def is_all_done(database: Database) -> bool:
    """Is nothing waiting to be matched, or delivered?"""
    waits = sa.select(publications.c.number).where(publications.c.state == "accepted")
    return not database.rows(waits.union_all(sa.select(deliveries.c.number).where(deliveries.c.state == "pending")))


@pytest.mark.parametrize("new_database", [*STEPS], indirect=True)
def test_an_upgrade_loses_and_doubles_nothing(
    new_database: Callable[[], str],
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder, running, count, new = tmp_path / "data", dict[int, Serving](), 0, list[bool]()
    url = new_database()
    (tmp_path / "database").write_text(url)
    options = ["--database-file", str(tmp_path / "database")]
    next_one = [sys.executable, "-m", "broker.next_version", str(revisions(tmp_path / "revisions"))]
    environment = {"PYTHONPATH": str(Path(__file__).parents[1]), "TRIPLEWIRE_ALLOW_PRIVATE_ADDRESSES": "1"}
    made: dict[str, dict[str, Any]] = {}
    with receivers.serving() as receiver, ExitStack() as services:
        with ExitStack() as publishing:
            publisher = Publisher(running)
            for step in STEPS[request.node.callspec.params["new_database"]]:
                what, which = step.split()
                if what == "kill":
                    running.pop(int(which)).process.kill()
                else:
                    program = next_one if which == "next" else [PROGRAM]
                    running[count] = services.enter_context(serving(folder, *options, program=program, **environment))
                    count += 1
                if not made:
                    made = subscribed(running[0], receiver.url)
                    publishing.enter_context(publisher)
                if running:
                    publisher.wait()
                    new += map(is_new, [*running.values()])
        (last,) = running.values()
        assert new == [True, *[False] * (len(new) - 1)]
        monkeypatch.setattr(migrate, "MIGRATIONS", tmp_path / "revisions")
        with Database.open(url, alone=False) as database:
            until(lambda: is_all_done(database), WITHIN)
            found = history.read(database, publisher.published)
        found.told = told(last)
        assert history.wrong(found) == []
        kinds = {kind for events in found.told.values() for _, _, kind, *_ in events}
        assert kinds == {"matched", "changed", "unmatched"}
        due = {str(number) for id in history.WITH_TARGET for number, *_ in found.told[id]}
        assert {came.headers["webhook-id"] for came in receiver.requests} == due
        for id, answer in made.items():  # as the version before has told them
            status, shown = last.ask("POST", f"/subscriptions/{id}/renew", {"ticket": answer["ticket"]}, token="")
            assert status == 200, shown
            address = urlsplit(answer["feed"]).path.removesuffix(".atom")
            assert len(last.get(f"{address}/events?format=ndjson")[1].splitlines()) == len(found.told[id])
        assert last.end() == 0
        command = [PROGRAM, "serve", "--data", str(folder), "--port", str(free_port()), *options]
        back = subprocess.run(command, env=last.environment, capture_output=True, text=True, check=False)
        assert (back.returncode, "a newer Triplewire has written it" in back.stderr) == (74, True)


@pytest.mark.parametrize("new_database", ["postgresql"], indirect=True)
def test_a_migration_that_the_server_ends_is_tried_again(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As PostgreSQL ends one of two that wait for each other. Here a trigger says so of the first change."""
    Database.open(database_url).close()
    monkeypatch.setattr(migrate, "MIGRATIONS", revisions(tmp_path / "revisions"))
    with psycopg.connect(database_url, autocommit=True) as watcher:
        watcher.execute("CREATE SEQUENCE changes_begun")  # of which nothing is rolled back
        watcher.execute(ENDS_FIRST)
        watcher.execute("CREATE EVENT TRIGGER ends_first ON ddl_command_start EXECUTE FUNCTION ends_first()")
        Database.open(database_url).close()
        assert watcher.execute("SELECT version_num FROM alembic_version").fetchall() == [("next",)]
        assert watcher.execute("SELECT last_value > 1 FROM changes_begun").fetchone() == (True,)
