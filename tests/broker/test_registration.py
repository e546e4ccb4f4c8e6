"""Many subscriptions at once: each as if it were alone, with few statements, and known to matching as columns."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from broker.items import item, opened, publish
from broker.serving import OWNER, broker_at, served
from triplewire import Engine
from triplewire.broker.broker import Broker, Made, Wanted
from triplewire.broker.subscriptions import followed, registration, trial
from triplewire.broker.subscriptions.trial import Query, Trial
from triplewire.errors import TriplewireError
from waiting import until

QUERIES = [
    Query('SELECT ?t { ?i rss:title ?t FILTER ftcontains(?t, "red") }', "sparql"),
    Query("SELECT ?t {", "sparql"),
    Query("SELECT ?t ?u { ?i rss:title ?t }", "sparql"),
    Query("SELECT ?t WHERE (?i, nothing:title, ?t)", "gql"),
    Query("SELECT ?t { ?i p:title ?t }", "sparql", {"p": "http://purl.org/rss/1.0/"}),
    Query("locIn(58, 4, 71)", "predicates"),
    Query("locIn(58, 4, 71, 31)", "predicates"),
    Query("red -blue", "keywords"),
    Query("red", "klingon"),
]


def told(answer: tuple[str, ...] | TriplewireError) -> Any:
    if isinstance(answer, TriplewireError):
        return type(answer), answer.what, answer.line, answer.column
    return answer


@pytest.mark.parametrize(("few", "many"), [(100, 1_000), (2, 1_000), (2, 3)])
def test_together_or_alone(few: int, many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "FEW", few)
    monkeypatch.setattr(trial, "MANY", many)
    together = [told(answer) for answer in Trial(QUERIES, Engine()).answers]
    assert together == [told(Trial([query], Engine()).answers[0]) for query in QUERIES]
    assert sum(isinstance(answer, TriplewireError) for answer in Trial(QUERIES, Engine()).answers) == 4
    assert any(answer and isinstance(answer[0], str) for answer in together), "one is warned of"


def statements(broker: Broker, wanted: list[Wanted]) -> list[str]:
    """The statements that write, as subscriptions are registered."""
    seen: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *more: Any) -> None:
        if statement.startswith("INSERT"):
            seen.append(statement)

    sa.event.listen(broker.database.engine, "before_cursor_execute", note)
    made = broker.subscribe_all(wanted, "ann")
    sa.event.remove(broker.database.engine, "before_cursor_execute", note)
    assert all(isinstance(each, Made) for each in made)
    return seen


class Slow(list[Wanted]):
    """A list whose portions behind the first come only after `go_on`."""

    def __init__(self, wanted: Iterable[Wanted], go_on: threading.Event) -> None:
        super().__init__(wanted)
        self._go_on = go_on

    def __getitem__(self, place: Any) -> Any:
        assert place.start == 0 or self._go_on.wait(300), "the list was to be registered as a whole"
        return super().__getitem__(place)


def test_a_long_list_holds_up_nobody(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes meanwhile is matched, with the portions that are registered by then; each entry is answered."""
    monkeypatch.setattr(registration, "AT_ONCE", 100)
    query = 'SELECT ?t {{ ?i rss:title ?t FILTER ftcontains(?t, "w{number}") }}'
    wanted = [Wanted(query.format(number=number % 100), id=f"s{number % 290}") for number in range(300)]
    go_on, made = threading.Event(), list[Any]()
    with opened(database_url) as broker:
        thread = threading.Thread(target=lambda: made.extend(broker.subscribe_all(Slow(wanted, go_on), "ann")))
        thread.start()
        until(lambda: len(broker.engine) == 100)
        assert publish(broker, [item(1, "w7")]) == {1: 1}
        go_on.set()
        thread.join()
        assert publish(broker, [item(2, "w7")]) == {2: 3}
    assert [isinstance(each, Made) for each in made] == [True] * 290 + [False] * 10, "an id is taken over portions, too"


def test_thousands_through_the_door_are_each_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In their order, the wrong ones with why; what is published meanwhile is answered before they are."""
    query = 'SELECT ?t {{ ?i rss:title ?t FILTER ftcontains(?t, "w{number}") }}'
    wanted = [{"id": f"s{number}", "query": query.format(number=number)} for number in range(5_000)]
    wanted[7]["query"] = "SELECT ?t {"
    wanted[-1]["id"] = "s0"
    answers, order, go_on, register = list[Any](), list[str](), threading.Event(), Broker.subscribe_all
    monkeypatch.setattr(Broker, "subscribe_all", lambda self, given, *how: register(self, Slow(given, go_on), *how))
    with broker_at(f"sqlite:///{tmp_path}/broker.db") as (_, app), served(app) as url:

        def ask(path: str, body: bytes, kind: str) -> Any:
            request = urllib.request.Request(f"{url}{path}", body, {**OWNER, "Content-Type": kind})
            with urllib.request.urlopen(request, timeout=600) as answer:
                return json.load(answer)

        def subscribe() -> None:
            answers.extend(ask("/subscriptions", json.dumps(wanted).encode(), "application/json"))
            order.append("subscribed")

        thread = threading.Thread(target=subscribe)
        thread.start()
        assert "matched" in ask("/publish?wait=1", b'<urn:a> <urn:b> "c" .', "text/turtle")
        order.append("published")
        go_on.set()
        thread.join()
        told = ask("/publish?wait=1", b'<urn:i> <http://purl.org/rss/1.0/title> "w8 w4998" .', "text/turtle")
    assert order == ["published", "subscribed"]
    assert [answer.get("id") for answer in answers[:7]] == [f"s{number}" for number in range(7)]
    assert [place for place, answer in enumerate(answers) if "status" in answer] == [7, 4_999]
    assert (answers[7]["line"], len(answers)) == (1, 5_000)
    assert told["matched"] == 2


def test_who_loads_holds_up_no_matching(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a new machine, where a list waits for compiled kernels."""
    monkeypatch.setattr(followed, "MANY", 10)
    go_on, made = threading.Event(), list[Any]()
    query = "SELECT ?t { ?i rss:title ?t }"
    with opened(f"sqlite:///{tmp_path}/broker.db") as broker:
        broker.subscribe(Wanted(query), "ann")
        load = Engine.load_subscriptions

        def slow(*given: Any, **named: Any) -> Any:
            assert go_on.wait(300), "the load was waited for"
            return load(*given, **named)

        monkeypatch.setattr(Engine, "load_subscriptions", slow)
        wanted = [Wanted(query) for _ in range(20)]
        thread = threading.Thread(target=lambda: made.extend(broker.subscribe_all(wanted, "ann")))
        thread.start()
        until(lambda: len(broker.subscriptions_of("ann")) == 21)
        assert publish(broker, [item(1, "red")]) == {1: 1}
        go_on.set()
        thread.join()
        assert publish(broker, [item(2, "red")]) == {2: 21}


def test_no_thread_reads_within_a_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without WAL a commit waits for the readers that there are, and new ones wait for it: such a thread would wait for
    itself, until SQLite gives up."""
    monkeypatch.setattr(followed, "MANY", 10)
    taken, most = Counter[int](), Counter[int]()
    with opened(f"sqlite:///{tmp_path}/broker.db") as broker:

        def take(*_: Any) -> None:
            taken[threading.get_ident()] += 1
            most[threading.get_ident()] = max(most[threading.get_ident()], taken[threading.get_ident()])

        sa.event.listen(broker.database.engine, "checkout", take)

        def put_back(*_: Any) -> None:
            taken[threading.get_ident()] = max(taken[threading.get_ident()] - 1, 0)  # it may have been taken before

        sa.event.listen(broker.database.engine, "checkin", put_back)
        for count in (1, 20):
            broker.subscribe_all([Wanted("SELECT ?t { ?i rss:title ?t }") for _ in range(count)], "ann")
            assert publish(broker, [item(count, "red")]) == {count: len(broker.subscriptions_of("ann"))}
        broker.change(1, query="SELECT ?t ?i { ?i rss:title ?t }")
        broker.change_taxonomy(lambda today: today)
    assert set(most.values()) == {1}


def test_many_take_few_statements_and_are_loaded(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many statements for 200 as for two; and the engine has what it had where they were registered one by one."""
    query = 'SELECT ?t {{ ?i rss:title ?t FILTER ftcontains(?t, "w{number}") }}'
    with opened(database_url) as broker:
        publish(broker, [item(number, f"w{number}") for number in range(4)])
        few = statements(broker, [Wanted(query.format(number=number)) for number in range(2)])
        monkeypatch.setattr(followed, "MANY", 10)
        wanted = [Wanted(query.format(number=number), id=f"w{number}") for number in range(200)]
        assert len(statements(broker, wanted)) == len(few)
        assert publish(broker, [item(7, "w1 w5"), item(8, "w150")]) == {7: 3, 8: 1}
        (row,) = [row for row in broker.subscriptions_of("ann") if row.id == "w3"]
        broker.change(row.number, query=query.format(number=1))
        assert publish(broker, [item(9, "w1 w3")]) == {9: 3}
    with opened(database_url) as broker:  # more than a few: loaded as they are in the store
        assert publish(broker, [item(10, "w1 w3")]) == {10: 3}
