"""Subscriptions whose texts stay in a table of SQLite match as those of a file do.

The table is asked for a text only when it is needed.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from engine.samples import EX, item
from engine.store.manifests import change
from triplewire import Engine, Settings
from triplewire.errors import ArgumentError, Refusal, StoreError, SubscriptionError
from triplewire.extend import SubscriptionTexts, TableTexts
from triplewire.languages.sources.rows import Row
from triplewire.languages.sources.tables import AT_ONCE

TITLES = 'SELECT ?t {{ ?s rss:title ?t FILTER ftcontains(?t, "w{}") }}'
EVALUATED = 'SELECT ?t {{ ?s rss:title ?t FILTER ftcontains(?t, "w{}") FILTER NOT EXISTS {{ ?s z:no ?o }} }}'
PREFIXES = json.dumps({"z": EX})


class Service:
    """A database with subscriptions, and what was asked of it."""

    def __init__(self, path: Path, ids: str = "TEXT") -> None:
        self.path = path
        self.asked: list[str] = []
        self.write(f"CREATE TABLE queries (key {ids} PRIMARY KEY, lang TEXT, body TEXT, names TEXT)")

    def write(self, statement: str, *parameters: object) -> None:
        with sqlite3.connect(self.path) as connection:
            connection.execute(statement, parameters)
        connection.close()

    def add(self, id: object, body: str, language: str = "sparql", names: str | None = PREFIXES) -> None:
        self.write("INSERT INTO queries VALUES (?, ?, ?, ?)", id, language, body, names)

    def connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path)
        connection.set_trace_callback(self.asked.append)
        return connection

    def table(self, name: str = "queries") -> TableTexts:
        return TableTexts(self.connect, name, id="key", language="lang", query="body", prefixes="names")


@pytest.fixture
def service(tmp_path: Path) -> Service:
    """Forty subscriptions, of which each fourth is evaluated from its text, a rule, and one that names it."""
    service = Service(tmp_path / "service.db")
    for number in range(40):
        service.add(f"q{number:02}", (EVALUATED if number % 4 == 3 else TITLES).format(number % 10))
    service.add("Rule", f"search <http://purl.org/rss/1.0/item> r register r where r.<{EX}year> > 3", "mdv", None)
    service.add("over Rule", f"search Rule r register r where r.<{EX}year> < 2100", "mdv", None)
    return service


def found(engine: Engine, title: str = "w3 w4") -> list[tuple[str, object]]:
    result = engine.match(item("p", title))
    assert not result.refusals
    return [(match.subscription, match.bindings) for match in result]


def from_a_file(service: Service, folder: Path, matcher: str) -> Engine:
    """An engine with the same subscriptions, from a file."""
    with sqlite3.connect(service.path) as connection:
        rows = connection.execute("SELECT key, lang, body, names FROM queries ORDER BY key").fetchall()
    lines = [
        json.dumps({"id": id_, "language": lang, "query": body, "prefixes": json.loads(names or "{}")})
        for id_, lang, body, names in rows
    ]
    (folder / "same.jsonl").write_text("\n".join(lines))
    engine = Engine(matcher=matcher)
    engine.load_subscriptions(folder / "same.jsonl")
    return engine


def test_they_are_what_a_file_of_them_gives(service: Service, matcher: str, tmp_path: Path) -> None:
    engine, same = Engine(matcher=matcher), from_a_file(service, tmp_path, matcher)
    told: list[int] = []
    assert engine.load_subscriptions(service.table(), progress=told.append) == 42
    assert told[-1] == 42
    assert engine.subscriptions == same.subscriptions
    assert [id_ for id_, _ in found(engine)] == [
        "Rule", "over Rule", *sorted(f"q{number:02}" for number in range(40) if number % 10 in (3, 4))
    ]  # fmt: skip
    for title in ("w3 w4", "w7", "nothing"):
        assert found(engine, title) == found(same, title)
    assert [match.revision for match in engine.match(item("p", "w3"))] == [
        match.revision for match in same.match(item("p", "w3"))
    ]


def test_texts_are_asked_for_when_they_are_needed(service: Service) -> None:
    engine = Engine()
    engine.load_subscriptions(service.table())
    engine.settle()
    del service.asked[:]
    assert len(engine.match(item("p", "w0"))) == 4 + 2
    assert not service.asked
    assert len(engine.match(item("p", "w1"))) == 4 + 2
    assert any("'q11'" in statement for statement in service.asked), "which is evaluated"
    assert engine.get("q05") is not None
    assert "'q05'" in service.asked[-1]


def test_no_text_is_in_a_saved_engine(service: Service, tmp_path: Path) -> None:
    engine = Engine()
    engine.load_subscriptions(service.table())
    engine.subscribe(TITLES.format(3), id="own")
    engine.unsubscribe("q13")
    engine.save(tmp_path / "saved")
    (texts,) = (tmp_path / "saved").glob("subscriptions.*")
    assert texts.read_text().count("ftcontains") == 1, "that of the one that is in no table"
    loaded = Engine.load(tmp_path / "saved", tables=service.table())
    assert loaded.subscriptions == engine.subscriptions
    assert found(loaded) == found(engine)
    loaded.save(tmp_path / "again")
    assert found(Engine.load(tmp_path / "again", tables=[service.table()])) == found(engine)
    with pytest.raises(StoreError, match=r"queries: the texts .* table that is not given; give it: .*tables="):
        Engine.load(tmp_path / "saved")
    engine.save(tmp_path / "whole", index=False)
    assert Engine.load(tmp_path / "whole").subscriptions == engine.subscriptions


@pytest.mark.parametrize("matcher", ["trie", "everything", "reference"])
def test_what_is_compiled_anew_refers_to_the_table_again(service: Service, tmp_path: Path, matcher: str) -> None:
    engine, folder = Engine(), tmp_path / "saved"
    engine.load_subscriptions(service.table())
    engine.save(folder)
    change(folder, lambda manifest: manifest["index"].update(version=0))
    loaded = Engine.load(folder, tables=service.table(), matcher=matcher)
    assert loaded.subscriptions == engine.subscriptions
    assert found(loaded) == found(engine)
    loaded.save(folder)
    (texts,) = folder.glob("subscriptions.*")
    assert ("ftcontains" in texts.read_text()) == (matcher == "reference")


LOST = {
    "gone": ("DELETE FROM queries WHERE key = 'q03'", "q03: its row in the table queries is gone"),
    "changed": (
        "UPDATE queries SET body = replace(body, 'w3', 'w4') WHERE key = 'q03'",
        "q03: its row in the table queries has changed",
    ),
    "none any more": ("UPDATE queries SET body = NULL WHERE key = 'q03'", "q03: its row in the table queries is gone"),
    "no table": ("DROP TABLE queries", "the table queries: the texts of subscriptions cannot be read: Operational"),
}


@pytest.mark.parametrize(("statement", "said"), LOST.values(), ids=LOST)
def test_a_row_that_is_lost_refuses_its_own_pairs(service: Service, tmp_path: Path, statement: str, said: str) -> None:
    engine = Engine()
    engine.load_subscriptions(service.table(), on_refusal=print)
    engine.save(tmp_path / "saved")
    loaded = Engine.load(tmp_path / "saved", tables=service.table())
    service.write(statement)
    for one in (engine, loaded):
        with pytest.raises(StoreError, match=said) as caught:
            one.get("q03")
        assert caught.value.remedy
        result = one.match(item("p", "w3"))
        matched = [match.subscription for match in result]
        assert {"q13", "q33"} <= set(matched), "for whose matches no text is needed"
        assert "q03" not in matched
        assert any(said.split(": ", 1)[1] in str(refusal) for refusal in result.refusals)
        assert found(one, "w2")
    change(tmp_path / "saved", lambda manifest: manifest["index"].update(version=0))
    with pytest.raises(StoreError, match=said):
        Engine.load(tmp_path / "saved", tables=service.table())


def test_a_changed_row_is_taken_anew(service: Service) -> None:
    engine, table = Engine(), service.table()
    engine.load_subscriptions(table)
    service.write("UPDATE queries SET body = ? WHERE key = 'q03'", TITLES.format("new"))
    assert engine.unsubscribe("q03")
    assert engine.load_subscriptions(table, ids=["q03"]) == 1
    assert [id_ for id_, _ in found(engine, "wnew")] == ["Rule", "over Rule", "q03"]


@pytest.mark.parametrize("ids", ["INTEGER", "TEXT"])
def test_only_rows_with_these_ids_are_read(tmp_path: Path, ids: str) -> None:
    service, engine = Service(tmp_path / "service.db", ids), Engine()
    for number in range(2 * AT_ONCE + 3):
        service.add(number, TITLES.format(number))
    table = service.table()
    assert engine.load_subscriptions(table, ids=["7", "12", "none"]) == 2
    assert len(service.asked) <= 2
    assert engine.load_subscriptions(table, on_refusal=lambda refusal: None) == 2 * AT_ONCE + 1
    subscription = engine.get("1002")
    assert subscription is not None
    assert subscription.text == TITLES.format(1002)
    assert [id_ for id_, _ in found(engine, "w12 w1002")] == ["1002", "12"]


def test_rows_that_are_no_subscriptions_are_refused(service: Service) -> None:
    service.add("bad", "SELECT nothing")
    service.add("empty", None)  # type: ignore[arg-type]  # as a service may
    service.add("names", "ASK { ?s ?p ?o }", names="[1]")
    engine, refused = Engine(), list[Refusal]()
    assert engine.load_subscriptions(service.table(), on_refusal=refused.append) == 42
    assert sorted(refusal.subject for refusal in refused) == ["bad", "empty", "names"]
    assert all("the table queries" in str(refusal) for refusal in refused)
    with pytest.raises(SubscriptionError, match="the table queries"):
        Engine().load_subscriptions(service.table())


def test_several_threads_and_a_connection_that_fails(service: Service) -> None:
    """Each thread has its own; one that has failed is replaced."""
    engine, made = Engine(settings=Settings()), list[sqlite3.Connection]()

    def connect() -> sqlite3.Connection:
        made.append(service.connect())
        return made[-1]

    engine.load_subscriptions(TableTexts(connect, "queries", id="key", language="lang", query="body", prefixes="names"))
    made[0].close()
    ids = [f"q{number:02}" for number in range(40)]

    def texts(_: int) -> list[str]:
        return [one.text for one in map(engine.get, ids) if one is not None]

    with ThreadPoolExecutor(4) as pool:
        every = list(pool.map(texts, range(8)))
    assert every == [texts(0)] * 8
    assert len(texts(0)) == 40


class InMemory:
    """Another store of texts."""

    name = "memory"

    def rows(self, ids: object = None) -> Iterator[Row]:
        """The one row."""
        if ids is None or "a" in ids:  # type: ignore[operator]
            yield Row("a", "sparql", TITLES.format(3), table=self.name)


def test_another_store(tmp_path: Path) -> None:
    assert isinstance(InMemory(), SubscriptionTexts)
    engine = Engine()
    assert engine.load_subscriptions([InMemory()]) == 1
    engine.save(tmp_path)
    loaded = Engine.load(tmp_path, tables=[InMemory()])
    assert loaded.subscriptions == engine.subscriptions
    assert [id_ for id_, _ in found(loaded)] == ["a"]


@pytest.mark.parametrize("wrong", [{"table": "queries; DROP"}, {"id": "a b"}, {"query": ""}, {"placeholder": ":1"}])
def test_names_that_are_none(wrong: dict[str, str]) -> None:
    with pytest.raises(ArgumentError, match="TableTexts"):
        TableTexts(lambda: sqlite3.connect(":memory:"), **wrong)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"load\(tables"):
        Engine.load("nowhere", tables=["queries"])  # type: ignore[list-item]
