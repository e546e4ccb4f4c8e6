"""The broker beside what it is made of: the engine alone, bare inserts with the same syncs, one bare request.

They are ratios of one run, in which other load of the machine counts on both sides.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import sqlalchemy as sa

from bench.report import Figure
from bench.resident import resident_bytes
from bench.webhooks import delivered, divided, removed, tested
from bench.workloads.catalogue import RTF_SUBSCRIPTIONS, Case, Place, rtf_case
from triplewire.broker.broker import Broker
from triplewire.broker.subscriptions.quarantine import Limits
from triplewire.engine import Engine
from triplewire.errors import TriplewireError
from triplewire.model.packed import pack
from triplewire.model.publication import Publication
from triplewire.read import read
from triplewire.store.database import Database, now
from triplewire.store.sqlite_library import sqlite3
from triplewire.store.tables import events, publications, subscriptions

NAME = "broker"
RATE, POSTGRES, RESTART, MEMORY = 0.5, 0.5, 2.0, 1.5
RESTARTED = 1_000_000  # subscriptions
_BATCHES, _AT_ONCE = 20, 100
_TESTED = 1_000  # publications of the live tester
_TRUSTED = Limits(trusted=frozenset({"bench"}))  # generated queries may match as much as they do


def cases(place: Place) -> list[Case]:
    """RTF with half text."""
    return [rtf_case(place, 50, place.sized(size)) for size in (RTF_SUBSCRIPTIONS, RESTARTED)]


def figures(place: Place, given: list[Case], matcher: str) -> Iterator[Figure]:
    """All figures of the broker. What needs a part that is not installed is not measured, and says why."""
    case, large = given
    full = place.size is None
    folder = place.work / "broker"
    batches = _BATCHES if full else 5
    documents = [_alone(document) for document in islice(read(case.publications), (batches + 1) * _AT_ONCE)]
    with removed(folder):
        url = f"sqlite:///{folder / 'broker.db'}"
        _store(url, case.subscriptions)
        seconds, floors, found = _batches(url, documents, folder, matcher)
        yield Figure(NAME, "events a publication", found / (len(documents) - _AT_ONCE))
        yield Figure(NAME, "stored and matched, SQLite", seconds / (len(documents) - _AT_ONCE) * 1e6, "us/publication")
        rate = floors / seconds
        yield Figure(NAME, "rate / (engine alone, then bare inserts)", rate, "x", RATE if full else None, at_least=True)
        yield _on_postgres(case, documents, matcher, seconds, full)
    yield from delivered(folder, full)
    yield tested(folder, documents[:_TESTED], full)
    yield divided(folder, full)
    yield _idle(case, folder, matcher, full)
    yield _restarted(large, folder, matcher, full)


def _alone(document: Publication) -> Publication:
    """The publication as a door reads it: no file lies beside it."""
    return Publication.of_packed(document.id, document.packed or pack(document.triples))


def _store(url: str, path: Path) -> None:
    """Put the subscriptions of a file into a store, as registration does, without asking each text."""
    with Database.open(url) as database, path.open("rb") as lines:
        created = now()
        while portion := list(islice(lines, 10_000)):
            rows = [
                {
                    "owner": "bench",
                    "id": str(row["id"]),
                    "language": row["language"],
                    "query": row["query"],
                    "title": "",
                    "state": "active",
                    "reason": "",
                    "once_per_story": False,
                    "price": "{}",
                    "revision": 1,
                    "created": created,
                    "expires": created + 86_400,
                    "ticket": str(row["id"]).encode(),
                }
                for row in map(json.loads, portion)
            ]
            database.write(lambda connection, rows=rows: connection.execute(subscriptions.insert(), rows))  # type: ignore[misc]  # of the loop


def _published(url: str, documents: Sequence[Publication], matcher: str) -> tuple[float, float, int]:
    """The seconds in which publications but the first batch were stored and matched, those of the engine alone, and the
    events that were written."""
    parts = [documents[begin : begin + _AT_ONCE] for begin in range(0, len(documents), _AT_ONCE)]
    with Broker.open(url, b"bench", engine=Engine(matcher=matcher), limits=_TRUSTED) as broker:
        broker.engine.settle()
        for part in parts:  # so that kernels are there, and memory
            broker.engine.match(part)
        _all_matched(broker, parts[:1])
        begun = time.perf_counter()
        _all_matched(broker, parts[1:])
        seconds = time.perf_counter() - begun
        alone = 0.0
        for part in parts[1:]:
            begun = time.perf_counter()
            for of_chunk in broker.engine.match(part).parts:
                _ = of_chunk.ids(), list(of_chunk.texts())  # which the rows of the other floor hold
            alone += time.perf_counter() - begun
        with broker.database.reading() as connection:
            first = sa.select(sa.func.min(publications.c.number)).scalar_subquery()
            here = sa.select(sa.func.count()).where(events.c.publication >= first + _AT_ONCE)
            count = connection.execute(here).scalar_one()
    return seconds, alone, count


def _all_matched(broker: Broker, parts: Sequence[Sequence[Publication]]) -> None:
    numbers = [taken.number for part in parts for taken in broker.publish(part)]
    matched = broker.wait(numbers, 600)
    if len(matched) < len(numbers):
        raise TriplewireError(f"{len(numbers) - len(matched)} publications were not matched within ten minutes")


def _batches(url: str, documents: Sequence[Publication], folder: Path, matcher: str) -> tuple[float, float, int]:
    """Seconds of the broker, seconds of both floors, and events."""
    seconds, alone, count = _published(url, documents, matcher)
    return seconds, alone + _inserts(folder / "broker.db", folder / "bare.db"), count


def _inserts(filled: Path, bare: Path) -> float:
    """The seconds in which the rows of all batches but the first are inserted into the same tables of an empty file,
    with two synced commits a batch: one for what is accepted, one for what is told."""
    source, target = sqlite3.connect(filled), sqlite3.connect(bare, isolation_level=None)
    names = ("publications", "current", "events")
    for kind in ("table", "index"):
        made = source.execute("SELECT sql, tbl_name FROM sqlite_master WHERE type = ? AND sql IS NOT NULL", (kind,))
        for (statement,) in [(sql,) for sql, table in made.fetchall() if table in names]:
            target.execute(statement)
    journal = source.execute("PRAGMA journal_mode").fetchone()[0]
    target.execute(f"PRAGMA journal_mode={journal}")
    target.execute("PRAGMA synchronous=FULL")
    columns = {"publications": "number", "current": "publication", "events": "publication"}
    numbers = [row[0] for row in source.execute("SELECT number FROM publications ORDER BY number")]
    seconds = 0.0
    for begin in range(_AT_ONCE, len(numbers), _AT_ONCE):
        first, last = numbers[begin], numbers[min(begin + _AT_ONCE, len(numbers)) - 1]
        rows = {
            name: source.execute(f"SELECT * FROM {name} WHERE {column} BETWEEN ? AND ?", (first, last)).fetchall()
            for name, column in columns.items()
        }
        begun = time.perf_counter()
        for together in (("publications", "current"), ("events",)):
            target.execute("BEGIN")
            for name in together:
                marks = ", ".join("?" * len(rows[name][0])) if rows[name] else ""
                target.executemany(f"INSERT INTO {name} VALUES ({marks})", rows[name]) if marks else None
            target.execute("COMMIT")
        seconds += time.perf_counter() - begun
    source.close()
    target.close()
    return seconds


def _on_postgres(case: Case, documents: Sequence[Publication], matcher: str, sqlite: float, full: bool) -> Figure:
    name, target = "PostgreSQL / SQLite, the same", POSTGRES if full else None
    address = os.environ.get("TRIPLEWIRE_BENCH_POSTGRES", "")
    if not address:
        note = "name an empty database in TRIPLEWIRE_BENCH_POSTGRES, for which it is measured"
        return Figure(NAME, name, None, "x", None, at_least=True, note=note)
    _store(address, case.subscriptions)
    seconds, _, _ = _published(address, documents, matcher)
    return Figure(NAME, name, sqlite / seconds, "x", target, at_least=True)


# --- memory, and restarts --------------------------------------------------------------------------------------------


def _idle(case: Case, folder: Path, matcher: str, full: bool) -> Figure:
    """The memory of a process that waits with all subscriptions, beside one that has them in an engine alone."""
    with removed(folder):
        url = f"sqlite:///{folder / 'broker.db'}"
        _store(url, case.subscriptions)
        broker = _in_process("idle", url, matcher)
        alone = _in_process("alone", str(case.subscriptions), matcher)
    name = "memory with all subscriptions, idle / of a process with the engine alone"
    return Figure(NAME, name, broker / alone, "x", MEMORY if full else None)


def _restarted(case: Case, folder: Path, matcher: str, full: bool) -> Figure:
    """From opening a store that was used before to its first match, beside opening a saved engine to its first."""
    with removed(folder):
        url = f"sqlite:///{folder / 'broker.db'}"
        _store(url, case.subscriptions)
        _in_process("restart", url, matcher)  # which saves the engine
        again = _in_process("restart", url, matcher)
        _in_process("save", f"{case.subscriptions} {folder / 'saved'}", matcher)
        saved = _in_process("opened", str(folder / "saved"), matcher)
    return Figure(
        NAME, "restart to the first match / opening a saved engine", again / saved, "x", RESTART if full else None
    )


def _in_process(what: str, argument: str, matcher: str) -> float:
    """A figure that a process of its own measures."""
    command = [sys.executable, "-m", "bench.broker", what, argument, matcher]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise TriplewireError(f"{what}: {done.stderr.strip()[-300:]}")
    return float(done.stdout)


def _one(number: int = 0) -> Publication:
    return Publication.from_text(f'<urn:x:{number}> <http://purl.org/rss/1.0/title> "x" .', f"urn:x:{number}")


def measure(what: str, argument: str, matcher: str) -> float:
    """What a process of its own measures: bytes, or seconds."""
    if what == "alone":
        engine = Engine(matcher=matcher)
        engine.load_subscriptions(argument)
        engine.settle()
        engine.match(_one())
        return float(resident_bytes())
    begun = time.perf_counter()
    if what == "save":
        path, folder = argument.rsplit(" ", 1)
        engine = Engine(matcher=matcher)
        engine.load_subscriptions(path)
        engine.save(folder)
        return 0.0
    if what == "opened":
        Engine.load(argument).match(_one())
        return time.perf_counter() - begun
    file = Path(argument.removeprefix("sqlite:///"))
    with Broker.open(argument, b"bench", engine=Engine(matcher=matcher), folder=file.parent) as broker:
        number = int(time.time())
        _all_matched(broker, [[_one(number)]])
        seconds = time.perf_counter() - begun
        return seconds if what == "restart" else float(resident_bytes())


if __name__ == "__main__":
    print(measure(*sys.argv[1:]))
