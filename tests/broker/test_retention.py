"""What is removed as time goes by, and what never is."""

from __future__ import annotations

import threading

import pytest
import sqlalchemy as sa

from broker.serving import SECRET, published, subscribed
from triplewire.broker.broker import Broker, Target
from triplewire.broker.events.removal import Retention, forget
from triplewire.broker.network.roots import PREFIX
from triplewire.broker.publications.solutions import answer
from triplewire.store.database import DAY
from triplewire.store.tables import attachments, deliveries, events, publications

ITEMS = [(f"urn:item:{number}", f"Item {number}") for number in range(1, 9)]


def sequences(broker: Broker, number: int) -> list[int]:
    return [event.sequence for event in broker.events_of(number, 0)]


def count(broker: Broker, table: sa.Table) -> int:
    with broker.database.reading() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()


@pytest.mark.parametrize(
    ("retention", "left"),
    [
        (Retention(), [1, 2, 3, 4, 5, 6, 7, 8]),
        (Retention(events=3), [6, 7, 8]),
        (Retention(seconds=0), [8]),
        (Retention(seconds=0, events=3), [8]),
    ],
)
def test_events_are_kept_for_so_long(database_url: str, retention: Retention, left: list[int]) -> None:
    with Broker.open(database_url, SECRET, retention=retention) as broker:
        made, other = subscribed(broker), subscribed(broker)
        published(broker, *ITEMS)
        assert broker.sweeper.sweep() == (2 * (8 - len(left)), 0)
        assert sequences(broker, made.number) == sequences(broker, other.number) == left
        assert broker.sweeper.sweep() == (0, 0)


def test_a_sequence_and_a_number_are_never_used_again(database_url: str) -> None:
    with Broker.open(database_url, SECRET, retention=Retention(seconds=0, window_seconds=0)) as broker:
        made = subscribed(broker)
        published(broker, *ITEMS[:3])
        assert broker.sweeper.sweep() == (2, 2)
        newest = broker.events_of(made.number, 0)[0]
    with Broker.open(database_url, SECRET) as broker:
        published(broker, *ITEMS)  # the first three are there with the same content, though it is not kept
        told = broker.events_of(made.number, 0)
        assert [event.sequence for event in told] == [3, 4, 5, 6, 7, 8]
        assert [event.title for event in told] == [title for _, title in ITEMS[2:]]
        assert told[0] == newest
        assert len({event.publication_number for event in told}) == 6


def test_events_of_another_broker_stay_for_a_day(database_url: str) -> None:
    with Broker.open(database_url, SECRET, retention=Retention(events=3)) as broker:
        made = subscribed(broker, id=f"{PREFIX}5e1f.7.1.a1")
        published(broker, *ITEMS)
        assert broker.sweeper.sweep() == (0, 0)
        yesterday = events.update().where(events.c.sequence <= 4).values(at=events.c.at - DAY)
        broker.database.write(lambda connection: connection.execute(yesterday))
        assert broker.sweeper.sweep() == (4, 0)
        assert sequences(broker, made.number) == [5, 6, 7, 8]


@pytest.mark.parametrize(
    ("retention", "left", "tally"),
    [
        (Retention(seconds=0), [4, 5], {"delivered": 1, "expired": 2, "pending": 2, "dead": 0}),
        (Retention(events=1), [3, 4, 5], {"delivered": 1, "expired": 1, "pending": 2, "dead": 1}),
    ],
)
def test_what_is_to_be_delivered_stays_and_no_delivery_is_lost(
    database_url: str, retention: Retention, left: list[int], tally: dict[str, int]
) -> None:
    with Broker.open(database_url, SECRET, retention=retention) as broker:
        made = subscribed(broker, targets=[Target("webhook", "http://127.0.0.1:9/")])
        published(broker, *ITEMS[:5])
        for number, state in enumerate(("delivered", "expired", "dead"), 1):
            broker.database.execute(deliveries.update().where(deliveries.c.number == number).values(state=state))
        broker.sweeper.sweep()
        assert sequences(broker, made.number) == left
        assert broker.delivery_log.tally() == {"matched": 5, **tally}
        assert count(broker, deliveries) == len(left)


def test_what_was_given_up_as_it_ended_processes_is_asked_no_more(database_url: str) -> None:
    with Broker.open(database_url, SECRET) as broker:
        published(broker, *ITEMS[:2])
        refused = publications.update().where(publications.c.id == "urn:item:1").values(state="refused")
        broker.database.execute(refused)
        assert broker.delivery_log.settle_publication(1, "dropped")
        assert [seen.title for seen in broker.window.of("owner")] == ["Item 2"]
        rows = answer(broker, "SELECT ?title { ?item rss:title ?title }", "owner").rows
        assert [str(row["title"]) for row in rows] == ['"Item 2"']


def test_who_is_called_as_an_owner_that_was_removed_sees_nothing_of_it(database_url: str) -> None:
    with Broker.open(database_url, SECRET) as broker:
        published(broker, ITEMS[0], readers=["ann", "bob"])
        published(broker, ITEMS[1])
        assert [seen.title for seen in broker.window.of("ann")] == ["Item 2", "Item 1"]
        forget(broker.database, "ann")
        assert [seen.title for seen in broker.window.of("ann")] == ["Item 2"]
        assert [seen.title for seen in broker.window.of("bob")] == ["Item 2", "Item 1"]


def test_contents_that_no_event_names_are_removed(database_url: str) -> None:
    with Broker.open(database_url, SECRET, retention=Retention(events=2, window_seconds=0)) as broker:
        published(broker, *ITEMS[:2])
        made = subscribed(broker)
        published(broker, *ITEMS[2:6])
        files = [{"publication": number, "name": "a", "content": b"x"} for number in (1, 6)]
        broker.database.write(lambda connection: connection.execute(attachments.insert(), files))
        refused = publications.update().where(publications.c.number == 2).values(state="refused")
        broker.database.write(lambda connection: connection.execute(refused))
        assert broker.sweeper.sweep() == (2, 3)
        with broker.database.reading() as connection:
            left = list(connection.execute(sa.select(publications.c.number).order_by(publications.c.number)).scalars())
        assert left == [2, 5, 6]  # a dead letter is kept as long as events are
        assert count(broker, attachments) == 1
        assert sequences(broker, made.number) == [3, 4]
        assert count(broker, events) == 2


def test_subscriptions_end_by_themselves(database_url: str) -> None:
    with Broker.open(database_url, SECRET) as broker:
        made = subscribed(broker)
        published(broker, ITEMS[0])
        told = threading.Event()
        broker.listeners.append(lambda batch: told.set())
        over = sa.text("UPDATE subscriptions SET expires = 1")
        broker.database.write(lambda connection: connection.execute(over))
        assert told.wait(300)
        row = broker.by_number(made.number)
        assert row is not None
        assert (row.state, row.reason) == ("ended", "its time is over")
        published(broker, ITEMS[1])
        assert [event.type for event in broker.events_of(made.number, 0)] == ["matched", "expired"]
