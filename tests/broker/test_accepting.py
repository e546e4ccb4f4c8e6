"""What is accepted together: numbers in the order given, contents of one id one behind the other, repetitions once."""

from __future__ import annotations

from broker.items import item, opened, publish
from triplewire.broker.broker import Wanted


def test_many_at_once(database_url: str) -> None:
    given = [item(1, "a"), item(2, "a"), item(1, "b"), item(2, "a"), item(3, "c"), item(1, "a")]
    with opened(database_url) as broker:
        broker.subscribe(Wanted("SELECT ?t { ?i rss:title ?t }", id="all"), "ann")
        taken = broker.publish(given)
        assert [one.id for one in taken] == [publication.id for publication in given]
        assert [one.is_new for one in taken] == [True, True, True, False, True, True]
        assert taken[3].number == taken[1].number
        new = [one.number for one in taken if one.is_new]
        assert new == sorted(new)
        assert len(broker.wait(new, 300)) == len(new)
        told = [(event.publication[-1], event.type, event.title) for event in broker.events("ann", 0)]
        assert told == [
            ("1", "matched", "a"),
            ("2", "matched", "a"),
            ("1", "changed", "b"),
            ("3", "matched", "c"),
            ("1", "changed", "a"),
        ]
        assert publish(broker, [item(3, "c")]) == {3: 1}


def test_many_subscriptions_without_ids(database_url: str) -> None:
    with opened(database_url) as broker:
        made = broker.subscribe_all([Wanted("SELECT ?t { ?i rss:title ?t }")] * 3, "ann")
        assert len({broker.by_number(one.number).id for one in made}) == 3  # type: ignore[union-attr]  # all were made
        assert publish(broker, [item(1, "x")]) == {1: 3}


def test_any_number_is_waited_for(database_url: str) -> None:
    with opened(database_url) as broker:
        assert broker.wait(range(1, 300_000), 0.01) == {}
