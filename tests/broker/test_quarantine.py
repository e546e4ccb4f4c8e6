"""Subscriptions that match or cost far more than foreseen are suspended; owners are told, others are not harmed."""

from __future__ import annotations

from broker.items import item, opened, publish
from triplewire import Settings
from triplewire.broker.broker import Broker, Wanted
from triplewire.broker.subscriptions.quarantine import Limits
from triplewire.model.publication import Publication

ALL = "SELECT ?t { ?i rss:title ?t }"
WORD = 'SELECT ?t {{ ?i rss:title ?t FILTER ftcontains(?t, "{word}") }}'


def state(broker: Broker, id: str, owner: str) -> tuple[str, str]:
    row = broker.find(id, owner=owner)
    assert row is not None
    return row.state, row.reason


def test_what_matches_everything_is_suspended_and_told(database_url: str) -> None:
    limits = Limits(publications=20, trusted=frozenset({"chief"}))
    with opened(database_url, limits=limits) as broker:
        broker.subscribe(Wanted(ALL, id="all"), "ann")
        broker.subscribe(Wanted(ALL, id="mine"), "chief")
        broker.subscribe(Wanted(WORD.format(word="red"), id="red"), "bob")
        publish(broker, [item(number, "red" if number % 10 == 0 else "blue") for number in range(20)])
        counts = publish(broker, [item(100, "red"), item(101, "blue")])
        assert counts == {100: 2, 101: 1}
        suspended = state(broker, "all", "ann")
        assert suspended[0] == "suspended"
        assert "100%" in suspended[1]
        assert state(broker, "red", "bob") == ("active", "")
        assert state(broker, "mine", "chief") == ("active", "")
        told = broker.events("ann", 0)
        assert [event.type for event in told] == ["matched"] * 20 + ["suspended"]
        assert [event.sequence for event in told] == list(range(1, 22))
        assert told[-1].to_json()["reason"] == suspended[1]
    with opened(database_url, limits=limits) as broker:
        publish(broker, [item(200, "green")])
        assert state(broker, "all", "ann")[0] == "suspended"
        row = broker.find("all", owner="ann")
        assert row is not None
        broker.change(row.number, state="active")
        assert state(broker, "all", "ann") == ("active", "")
        assert publish(broker, [item(201, "green")]) == {201: 2}


def test_what_matches_far_more_than_its_price_is_suspended(database_url: str) -> None:
    with opened(database_url, Limits(publications=50)) as broker:
        publish(broker, [item(number, "blue") for number in range(50)])
        broker.subscribe(Wanted(WORD.format(word="storm"), id="storm"), "ann")
        broker.subscribe(Wanted(WORD.format(word="calm"), id="calm"), "ann")
        titles = ["storm" if number % 10 == 0 else "calm" if number == 7 else "blue" for number in range(50)]
        publish(broker, [item(100 + number, title) for number, title in enumerate(titles)])
        publish(broker, [item(900, "end")])
        assert state(broker, "storm", "ann")[0] == "suspended"
        assert "foreseen" in state(broker, "storm", "ann")[1]
        assert state(broker, "calm", "ann")[0] == "active"


def test_what_cannot_be_decided_is_suspended_at_the_third_time(database_url: str) -> None:
    """A product of patterns passes the limit of steps; others go on to be told."""
    settings = Settings(max_steps=2_000)
    product = " ".join(f"?a{n} ?b{n} ?c{n} ." for n in range(6))
    hard = f"SELECT * {{ {product} FILTER(?a0 != ?a1) }}"
    with opened(database_url, settings=settings) as broker:
        broker.subscribe(Wanted(hard, id="hard"), "ann")
        broker.subscribe(Wanted(ALL, id="all"), "bob")
        more = item(50, "x").triples + item(51, "y").triples
        many = [Publication(f"urn:item:{number}", item(number, "z").triples + more) for number in range(6)]
        for place, publication in enumerate(many):
            assert publish(broker, [publication]) == {place: 1}
        publish(broker, [item(99, "end")])
        assert state(broker, "hard", "ann")[0] == "suspended"
        assert "3 publications could not be decided" in state(broker, "hard", "ann")[1]
        assert [event.type for event in broker.events("ann", 0)] == ["suspended"]
        assert [event.type for event in broker.events("bob", 0)] == ["matched"] * 7
