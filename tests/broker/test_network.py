"""A broker that subscribes at others: what is asked there, what crosses, and that it answers as one broker does."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from broker.history import QUERIES, unit
from broker.networks import Node, matched, network, relink, settle
from broker.serving import on_sqlite_alone, published
from triplewire import Publication
from triplewire.broker.broker import Broker
from triplewire.broker.network.links import STATE, states_of
from triplewire.broker.network.roots import PREFIX, Asked, asked_for
from triplewire.broker.network.upstream import Upstream
from triplewire.config import Settings
from triplewire.engine import Engine
from triplewire.errors import ArgumentError, ServiceError
from triplewire.model.terms import IRI, Literal, Triple
from triplewire.store.database import now
from triplewire.store.tables import facts, publications, subscriptions

CASES = tomllib.loads(Path("tests/cases/network/asked.toml").read_text())["case"]
NewDatabase = Callable[[], str]
Pair = tuple[dict[str, Node], Node, Node]
ALL = "ASK { ?s ?p ?o }"


def item(name: str, value: object = 1) -> Publication:
    subject = IRI(f"urn:p:{name.replace(' ', '-')}")
    return Publication(subject.value, (Triple(subject, IRI("urn:v:value"), Literal(str(value))),), "http://a.example/")


def asking(value: object) -> str:
    return f'SELECT ?s {{ ?s <urn:v:value> "{value}" }}'


of_links = facts.c.name.startswith(STATE)
ANY = "SELECT ?s { ?s <urn:v:value> ?v }"


def arrived(node: Node) -> list[str]:
    """Ids of publications, in the order in which they were accepted."""
    with node.broker.database.reading() as connection:
        return list(connection.execute(sa.select(publications.c.id).order_by(publications.c.number)).scalars())


@pytest.fixture
def pair(new_database: NewDatabase) -> Iterator[Pair]:
    """Two brokers, of which the last subscribes at the first: all nodes, and each."""
    with network(new_database, first="", last="first") as nodes:
        yield nodes, nodes["first"], nodes["last"]


# --- what is asked at an upstream ------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["about"])
def test_how_a_subscription_is_asked(case: dict[str, str]) -> None:
    class Row:
        number, revision, prefixes = 7, 1, None
        query, language = case["query"], case.get("language", "sparql")

    row: Any = Row()
    asked = asked_for(row, Engine(settings=Settings(max_patterns=32)))
    same = Asked(row.query, row.language, {})
    wanted = {"same": same, "all": None}.get(case["asked"], Asked(case["asked"], "sparql", {}))
    assert asked == wanted


@on_sqlite_alone
def test_roots_alone_are_asked_and_follow_what_changes(pair: Pair) -> None:
    nodes, first, last = pair
    for value in range(3):
        last.subscribe(f"s{value}", asking(value))
    settle(nodes)
    assert first.asked_of() == [asking(value) for value in range(3)]
    last.subscribe("again", asking(1))  # it is in another
    settle(nodes)
    assert len(first.asked_of()) == 3
    last.subscribe("any", ANY)
    settle(nodes)
    assert ANY in first.asked_of()
    first.broker.publish([item("a", 1), item("b", 7)])
    settle(nodes)
    assert last.crossed() == {"new": 2}
    last.end("any")  # what it has contained stands for itself again
    settle(nodes)
    assert set(first.asked_of()) == {asking(value) for value in range(3)}
    number = last.broker.find("s0", owner="owner").number  # type: ignore[union-attr]  # it is there
    last.broker.change(number, query=asking(9))
    settle(nodes)
    assert set(first.asked_of()) == {asking(value) for value in (1, 2, 9)}
    for name in ("s0", "s1", "s2", "again"):
        last.end(name)
    settle(nodes)
    assert first.asked_of() == []


@on_sqlite_alone
def test_what_an_upstream_refuses_has_everything_asked_for(pair: Pair) -> None:
    nodes, first, last = pair
    last.subscribe("value", asking(1))
    last.subscribe("place", "locIn(57.10, -2.10, 57.20, -2.00)", "predicates")
    settle(nodes)
    assert ALL in first.asked_of()
    last.end("place")
    settle(nodes)
    assert first.asked_of() == [asking(1)]
    first.broker.most_subscriptions = 2
    last.subscribe("two", asking(2))
    last.subscribe("three", asking(3))
    last.subscribe("four", asking(4))
    with pytest.raises(ServiceError, match="no more subscriptions"):
        settle(nodes)


@on_sqlite_alone
def test_a_link_that_begins_again_finds_what_is_its(pair: Pair) -> None:
    nodes, first, last = pair
    last.subscribe("one", asking(1))
    settle(nodes)
    rows = {row.id: row.query for row in first.broker.subscriptions_of("owner")}
    (id,) = rows
    first.subscribe(id + "f", asking(1))  # an answer to it was lost
    relink(nodes, "last", "first")
    last.subscribe("two", asking(2))
    settle(nodes)
    assert first.asked_of() == [asking(1), asking(2)]
    assert sum(row.query == asking(1) for row in first.broker.subscriptions_of("owner")) == 2


# --- what crosses ----------------------------------------------------------------------------------------------------


def test_what_matches_behind_a_link_crosses_once_and_in_order(new_database: NewDatabase) -> None:
    with network(new_database, first="", middle="first", last="middle") as nodes:
        first, middle, last = nodes.values()
        for value in (1, 2):
            last.subscribe(f"s{value}", asking(value))
            last.subscribe(f"t{value}", asking(value))
        middle.subscribe("three", asking(3))
        settle(nodes)
        given = [item(str(number), number % 5) for number in range(40)]
        given[6] = Publication("not an IRI", given[6].triples, given[6].source, attachments={"a": b"\x00b"})
        for each in given:
            first.broker.publish([each])
        settle(nodes)
        behind_middle = [each.id for number, each in enumerate(given) if number % 5 in (1, 2, 3)]
        behind_last = [each.id for number, each in enumerate(given) if number % 5 in (1, 2)]
        assert arrived(middle) == behind_middle
        assert arrived(last) == behind_last
        assert (middle.crossed(), last.crossed()) == ({"new": len(behind_middle)}, {"new": len(behind_last)})
        told = Counter((subscription, publication) for subscription, _, publication, _ in last.told())
        assert told == Counter((f"{kind}{n % 5}", given[n].id) for n in range(40) if n % 5 in (1, 2) for kind in "st")
        with last.broker.database.reading() as connection:
            row = connection.execute(sa.select(publications).where(publications.c.id == "not an IRI")).one()
        assert (row.content, row.source) == (given[6].content_hash, "http://a.example/")


@pytest.mark.parametrize("shape", [{"last": "first"}, {"middle": "first", "last": "middle"},
                                   {"left": "first", "right": "first", "last": "left right"},
                                   {"middle": "first last", "last": "middle first"}], ids=str)  # fmt: skip
@on_sqlite_alone
def test_the_answers_are_those_of_one_broker(new_database: NewDatabase, shape: dict[str, str]) -> None:
    with network(new_database, one="", first="", **shape) as nodes:
        one, first, last = nodes["one"], nodes["first"], nodes["last"]
        for node in (one, last):
            for id, query in QUERIES.items():
                node.subscribe(id, query)
        settle(nodes)
        for number in range(60):
            for node in (one, first):
                node.broker.publish(unit(5, 0, number))
                matched(node.broker)
            if number % 7 == 0:
                settle(nodes)
        settle(nodes)
        assert last.told() == one.told()
        assert len({kind for _, kind, _, _ in one.told()}) == 3  # matched, changed, unmatched


@on_sqlite_alone
def test_two_brokers_that_are_each_others_upstreams(new_database: NewDatabase) -> None:
    with network(new_database, a="b", b="a") as nodes:
        a, b = nodes.values()
        a.subscribe("any", ANY)
        b.subscribe("any", ANY)
        settle(nodes)
        assert a.asked_of() == b.asked_of() == [ANY]
        for number in range(6):
            a.broker.publish([item("from a", number)])
            b.broker.publish([item("from b", number)])
        settle(nodes)
        for node in nodes.values():
            assert Counter(arrived(node)) == {"urn:p:from-a": 6, "urn:p:from-b": 6}
        a.broker.publish([item("of both", "a")])
        b.broker.publish([item("of both", "b")])
        settle(nodes)  # they may differ on what came last, and tell each other once
        assert {tuple(told[1:3]) for told in a.told()[-2:]} == {
            ("matched", "urn:p:of-both"),
            ("changed", "urn:p:of-both"),
        }
        a.end("any")
        b.end("any")
        settle(nodes)
        assert a.asked_of() == b.asked_of() == []


@on_sqlite_alone
def test_a_ring_of_three(new_database: NewDatabase) -> None:
    with network(new_database, a="b", b="c", c="a") as nodes:
        for node in nodes.values():
            node.subscribe("any", ANY)
        settle(nodes)
        for number in range(5):
            for name, node in nodes.items():
                node.broker.publish([item(f"from {name}", number), item("of all", f"{name} {number}")])
        settle(nodes)
        for name, node in nodes.items():
            assert {each for each in arrived(node) if "from" in each} == {f"urn:p:from-{n}" for n in nodes}, name
            assert Counter(arrived(node))[f"urn:p:from-{name}"] == 5
        ends = [row.expires for node in nodes.values() for row in node.broker.subscriptions_of("owner")]
        relink(nodes, "a", "b")
        settle(nodes)  # no lease is longer for having gone round
        assert max(ends) == max(r.expires for node in nodes.values() for r in node.broker.subscriptions_of("owner"))


@on_sqlite_alone
def test_readers_go_with_what_they_may_read(pair: Pair) -> None:
    nodes, first, last = pair
    for owner in ("owner", "ann"):
        last.subscribe("any", ANY, owner=owner)
    settle(nodes)
    first.broker.publish([item("for ann")], readers=["ann"])
    first.broker.publish([item("for both")], readers=["ann", "owner"])
    first.broker.publish([item("for owner")], readers=["owner"])
    first.broker.publish([item("for all")])
    settle(nodes)
    ids = {
        owner: [told[2].removeprefix("urn:p:").replace("-", " ") for told in last.told(owner)]
        for owner in ("owner", "ann")
    }
    assert ids == {"owner": ["for both", "for owner", "for all"], "ann": ["for both", "for all"]}
    first.broker.publish([item("for all", "a secret")], readers=["ann"])
    settle(nodes)
    assert [told[1] for told in last.told() if told[2] == "urn:p:for-all"] == ["matched", "unmatched"]
    with last.broker.database.reading() as connection:
        bodies = connection.execute(sa.select(publications.c.body)).scalars().all()
    assert not any(b"a secret" in body for body in bodies)


@on_sqlite_alone
def test_what_cannot_be_taken_over_is_a_dead_letter(new_database: NewDatabase) -> None:
    with network(new_database, first="") as nodes:
        settings = Settings(max_literal_bytes=100)
        with Broker.open(new_database(), b"last", engine=Engine(settings=settings)) as broker:
            nodes["last"] = Node(broker, "", [])
            relink(nodes, "last", "first")
            nodes["last"].subscribe("any", ANY)
            settle(nodes)
            nodes["first"].broker.publish([item("a"), item("large", "x" * 1_000), item("b")])
            settle(nodes)
            assert [told[2] for told in nodes["last"].told()] == ["urn:p:a", "urn:p:b"]
            (letter,) = broker.delivery_log.refused()
            assert letter.id == "urn:p:large"
            assert "literal" in letter.reason


@pytest.mark.parametrize(
    ("wrong", "value"), [("publication", "urn:\ud800"), ("origin", ["5e1f", 2**64]), ("origin", ["5e1f", "x"])]
)
def test_what_cannot_be_kept_holds_up_nothing_behind_it(new_database: NewDatabase, wrong: str, value: Any) -> None:
    with Broker.open(new_database(), b"last") as broker:
        last = Node(broker, "", [])
        relink({"last": last, "away": Node(broker, "http://127.0.0.1:9", [])}, "last", "away")
        page = []
        for number in (1, 2, 3):
            document = {"nquads": f'<urn:p:{number}> <urn:v> "x" .\n', "attachments": {}, "published": None}
            document |= {"readers": None, "origin": ["5e1f", number]}
            page.append({"number": 10 * number, "publication": f"urn:p:{number}", "source": "", "document": document})
        (page[1] if wrong == "publication" else page[1]["document"])[wrong] = value
        last.links[0]._publish(page)
        assert arrived(last) == ["urn:p:1", "urn:p:3"]
        assert last.crossed() == {"new": 2, "refused": 1}
        with broker.database.reading() as connection:
            (state,) = states_of(connection).values()
        assert state["after"] == 30


# --- an upstream that is away ----------------------------------------------------------------------------------------


@on_sqlite_alone
def test_an_upstream_that_does_not_answer_is_told_of(new_database: NewDatabase) -> None:
    with Broker.open(new_database(), b"last") as broker:
        last = Node(broker, "", [])
        nodes = {"last": last, "away": Node(broker, "http://127.0.0.1:9", [])}
        relink(nodes, "last", "away")
        (link,) = last.links
        link._turn()
        link._turn()
        with broker.database.reading() as connection:
            (state,) = states_of(connection).values()
        assert state["failures"] == 2
        assert "connection" in state["reason"]


def end_leases(node: Node, *queries: str) -> None:
    """Have the subscriptions with these queries that other brokers have here end, as at the end of their leases."""
    here = subscriptions.c.query.in_(queries), subscriptions.c.id.startswith(PREFIX)
    over = subscriptions.update().where(*here).values(expires=now() - 1)
    node.broker.database.write(lambda connection: connection.execute(over))
    assert node.broker.expire() == len(queries)


@on_sqlite_alone
def test_what_is_missed_while_nobody_asked_is_a_dead_letter(pair: Pair) -> None:
    nodes, first, last = pair
    last.subscribe("one", asking(1))
    settle(nodes)
    last.subscribe("any", ANY)
    settle(nodes)
    end_leases(first, asking(1))  # the other one contains it: nothing is missed
    first.broker.publish([item("a")])
    settle(nodes)
    assert last.broker.delivery_log.refused() == []
    end_leases(first, ANY)
    first.broker.publish([item("missed")])
    matched(first.broker)
    with last.broker.database.reading() as connection:
        state = connection.execute(sa.select(facts.c.value).where(of_links)).scalar_one()
    for _ in range(2):  # also by a process that did not come to note how far it was
        back = facts.update().where(of_links).values(value=state)
        last.broker.database.write(lambda connection, back=back: connection.execute(back))
        relink(nodes, "last", "first")
        settle(nodes)
        (letter,) = last.broker.delivery_log.refused()
    assert letter.title == f"Missed at upstream {first.url}"
    assert "1 of our subscriptions there had ended" in letter.reason
    first.broker.publish([item("b")])
    settle(nodes)
    assert arrived(last) == ["urn:p:a", letter.id, "urn:p:b"]


@on_sqlite_alone
def test_an_upstream_that_is_the_broker_itself_is_refused(new_database: NewDatabase) -> None:
    with network(new_database, alone="alone") as nodes, pytest.raises(ServiceError, match="this broker itself"):
        settle(nodes)
    with pytest.raises(ArgumentError, match="cannot be asked"):
        Upstream("ftp://elsewhere", "")


@on_sqlite_alone
def test_the_door_gives_each_document_once(new_database: NewDatabase) -> None:
    with network(new_database, first="") as nodes:
        first = nodes["first"]
        for id in ("x.one", "x.two", "y"):
            first.subscribe(id, ANY)
        published(first.broker)
        first.broker.publish([item("a"), item("b")])
        matched(first.broker)
        asked = Upstream(first.url, "token-of-the-owner")
        _, page = asked.events(0, "x.")
        assert [event["subscription"] for event in page] == ["x.one", "x.two"] * 2
        assert ["document" in event for event in page] == [True, False, True, False]
        assert "bindings" not in page[0]
        assert json.loads(json.dumps(page[0]["document"]["nquads"])).count("\n") == 1
        _, rest = asked.events(page[0]["number"], "x.")
        assert ["document" in event for event in rest] == [False, True, False]
