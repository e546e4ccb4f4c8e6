"""A copy of a database that is put back: no number of an event comes twice, and who has read further misses none."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from triplewire.broker.broker import Broker, Wanted
from triplewire.broker.events.event_log import Event, skip_numbers
from triplewire.cli import run
from triplewire.model.publication import Publication
from triplewire.read import read
from triplewire.store.database import Database

QUERY = "SELECT ?t { ?s <urn:title> ?t }"


def item(number: int) -> list[Publication]:
    return list(read(f'<urn:s> <urn:title> "{number}" <urn:graph:{number}> .\n'.encode()))


def told(broker: Broker, numbers: range) -> list[Event]:
    for number in numbers:
        broker.wait([one.number for one in broker.publish(item(number))], 300)
    return broker.events(None, 0)


def test_numbers_after_a_restore_are_new(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url, data = f"sqlite:///{tmp_path / 'broker.db'}", str(tmp_path)
    with Broker.open(url, b"secret") as broker:
        for id in ("a", "b"):
            broker.subscribe(Wanted(QUERY, id=id), "ann")
        before = told(broker, range(2))
        assert run(["backup", "--data", data, "--output", str(tmp_path / "copy.db")]) == 0
        lost = told(broker, range(2, 5))
        assert run(["restore", str(tmp_path / "copy.db"), "--data", data]) == 75
    assert run(["restore", str(tmp_path / "copy.db"), "--data", data]) == 0
    for start in (5, 6):  # also at a start that has found no event of its own
        with Broker.open(url, b"secret") as broker:
            after = told(broker, range(start, start + 1))
    assert after[: len(before)] == before
    new = after[len(before) :]
    assert len(new) == 4
    assert min(event.number for event in new) > max(event.number for event in lost)
    assert min(event.sequence for event in new) > max(event.sequence for event in lost)
    assert [event.sequence - new[0].sequence for event in new if event.id == new[0].id] == [0, 1]


def test_a_copy_that_is_damaged_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "copy.db").write_bytes(b"no database" * 500)
    with Database.open(f"sqlite:///{tmp_path / 'broker.db'}"):
        pass
    kept = (tmp_path / "broker.db").read_bytes()
    assert run(["restore", str(tmp_path / "copy.db"), "--data", str(tmp_path)]) == 74
    assert "it is no whole database" in capsys.readouterr().err
    assert (tmp_path / "broker.db").read_bytes() == kept
    shutil.rmtree(tmp_path / "absent", ignore_errors=True)
    assert run(["backup", "--data", str(tmp_path), "--output", str(tmp_path / "absent" / "copy.db")]) == 73


def test_both_databases_skip(new_database: Callable[[], str]) -> None:
    url = new_database()
    with Broker.open(url, b"secret") as broker:
        number = broker.subscribe(Wanted(QUERY, id="a"), "ann").number
        (first,) = told(broker, range(1))
    with Database.open(url) as database:
        database.write(skip_numbers)
    with Broker.open(url, b"secret") as broker:
        _, second = told(broker, range(1, 2))
        later = [broker.subscribe(Wanted(QUERY), "ann").number for _ in range(2)]
    assert (later[0] > number + 1_000, later[1] - later[0]) == (True, 1)
    assert (second.number > first.number + 1_000, second.sequence > first.sequence + 1_000) == (True, True)
