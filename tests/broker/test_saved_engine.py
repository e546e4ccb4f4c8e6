"""A broker that starts again from a saved engine tells the same, with what has changed since.

It does so from none that is of another database, or damaged.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from broker.items import item, publish
from triplewire import Engine
from triplewire.broker.broker import Broker, Wanted
from triplewire.broker.subscriptions import saved_engine

QUERY = 'SELECT ?t {{ ?i rss:title ?t FILTER ftcontains(?t, "{word}") }}'


def opened(url: str, folder: Path, registered: list[int] | None = None) -> Broker:
    seen = [] if registered is None else registered
    return Broker.open(url, b"secret", engine=Engine(matcher="trie"), folder=folder, progress=seen.append)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_engine, "FEWEST", 2)
    monkeypatch.setenv("TRIPLEWIRE_TIER", "interpreted")


def test_a_restart_takes_over_what_has_changed(database_url: str, tmp_path: Path) -> None:
    with opened(database_url, tmp_path) as broker:
        for word in ("red", "blue", "green"):
            broker.subscribe(Wanted(QUERY.format(word=word), id=word), "ann")
    about = (tmp_path / "engine.json").read_bytes()
    seen: list[int] = []
    with opened(database_url, tmp_path / "elsewhere", seen) as broker:  # changes that the saved engine has not seen
        assert seen
        blue = broker.find("blue", owner="ann")
        assert blue is not None
        broker.unsubscribe(blue.number)
        broker.subscribe(Wanted(QUERY.format(word="black"), id="black"), "bob")
    assert (tmp_path / "engine.json").read_bytes() == about
    registered: list[int] = []
    with opened(database_url, tmp_path, registered) as broker:
        assert registered == []  # none anew
        assert publish(broker, [item(1, "red blue"), item(2, "black green")], readers=["ann"]) == {1: 1, 2: 1}
        assert publish(broker, [item(3, "black")]) == {3: 1}
        assert [event.id for event in broker.events(None, 0)] == ["red", "green", "black"]


def test_another_database_has_another_engine(new_database: Callable[[], str], tmp_path: Path) -> None:
    first, second = new_database(), new_database()
    for url, word in ((first, "red"), (second, "blue")):
        with opened(url, tmp_path) as broker:
            for number in range(3):
                broker.subscribe(Wanted(QUERY.format(word=word), id=f"{word}-{number}"), "ann")
    with opened(first, tmp_path) as broker:
        assert publish(broker, [item(1, "red"), item(2, "blue")]) == {1: 3, 2: 0}


def test_a_damaged_one_is_not_used(database_url: str, tmp_path: Path) -> None:
    with opened(database_url, tmp_path) as broker:
        for number in range(3):
            broker.subscribe(Wanted(QUERY.format(word="red"), id=str(number)), "ann")
    (tmp_path / "engine.npz").write_bytes(b"no archive")
    with opened(database_url, tmp_path) as broker:
        assert publish(broker, [item(1, "red")]) == {1: 3}
