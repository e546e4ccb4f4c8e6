"""What a subscriber may not read is no match.

That holds in events, in what is told when a publication changes, and in the window that queries are asked of.
"""

from __future__ import annotations

from broker.items import item, opened, publish
from triplewire.broker.broker import Broker, Wanted
from triplewire.broker.publications.window import may_see

ALL = "SELECT ?t { ?i rss:title ?t }"


def told(broker: Broker, owner: str) -> list[tuple[str, str]]:
    """Type and title of the events of an owner, by all ways to read them."""
    events = broker.events(owner, 0)
    for row in broker.subscriptions_of(owner):
        own = [event for event in events if event.subscription == row.number]
        assert broker.events_of(row.number, 0) == own
        assert broker.newest_events(row.number, 1_000) == own[::-1]
    return [(event.type, event.title) for event in events]


def test_only_readers_are_told(database_url: str) -> None:
    with opened(database_url) as broker:
        for owner in ("ann", "bob", "eve"):
            broker.subscribe(Wanted(ALL, id=f"of-{owner}"), owner)
        assert publish(broker, [item(1, "for two")], readers=["ann", "bob"]) == {1: 2}
        assert publish(broker, [item(2, "for nobody")], readers=[]) == {2: 0}
        assert publish(broker, [item(3, "for all")]) == {3: 3}
        assert told(broker, "ann") == told(broker, "bob") == [("matched", "for two"), ("matched", "for all")]
        assert told(broker, "eve") == [("matched", "for all")]


def test_a_content_that_somebody_may_not_read_is_not_shown_by_its_change(database_url: str) -> None:
    with opened(database_url) as broker:
        broker.subscribe(Wanted(ALL, id="of-ann"), "ann")
        broker.subscribe(Wanted(ALL, id="of-bob"), "bob")
        publish(broker, [item(1, "for all")])
        publish(broker, [item(1, "secret")], readers=["ann"])
        assert told(broker, "ann") == [("matched", "for all"), ("changed", "secret")]
        assert told(broker, "bob") == [("matched", "for all"), ("unmatched", "for all")]
        (secret,) = {event.content for event in broker.events("ann", 0) if event.title == "secret"}
        assert secret not in {event.content for event in broker.events("bob", 0)}
        publish(broker, [item(1, "for all again")])
        assert told(broker, "bob")[2:] == [("matched", "for all again")]


def test_the_same_content_for_other_readers_is_told_to_them(database_url: str) -> None:
    with opened(database_url) as broker:
        broker.subscribe(Wanted(ALL, id="of-ann"), "ann")
        broker.subscribe(Wanted(ALL, id="of-bob"), "bob")
        publish(broker, [item(1, "soon public")], readers=["ann"])
        assert [taken.is_new for taken in broker.publish([item(1, "soon public")], readers=["ann"])] == [False]
        publish(broker, [item(1, "soon public")])
        assert told(broker, "bob") == [("matched", "soon public")]
        publish(broker, [item(1, "soon public")], readers=["ann"])
        assert told(broker, "bob")[1:] == [("unmatched", "soon public")]


def test_the_window_of_an_owner(database_url: str) -> None:
    with opened(database_url) as broker:
        publish(broker, [item(1, "for ann")], readers=["ann"])
        publish(broker, [item(2, "for all")])
        assert [seen.title for seen in broker.window.of("ann")] == ["for all", "for ann"]
        assert [seen.title for seen in broker.window.of("bob")] == ["for all"]
    assert may_see("ann", None)
    assert may_see("ann", '["ann"]')
    assert not may_see("an", '["ann"]')
