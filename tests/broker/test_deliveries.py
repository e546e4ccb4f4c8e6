"""Deliveries: when they are tried, how often, in which order, and that none is lost."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import sqlalchemy as sa

from broker.receivers import Answer, Came, Clock, Server, published, serving, subscribed
from triplewire.broker.broker import Broker
from triplewire.broker.feeds.entries import feed_of
from triplewire.broker.subscriptions.targets import Target
from triplewire.deliver import schedule
from triplewire.deliver.limits import SCHEDULE, DeliverySettings
from triplewire.deliver.schedule import Deliveries
from triplewire.store.tables import deliveries
from waiting import until

PRIVATE = {"allow_private_addresses": True}
Deliver = Callable[..., Deliveries]


@pytest.fixture
def broker(database_url: str) -> Iterator[Broker]:
    with Broker.open(database_url, b"s" * 32) as opened:
        yield opened
        law(opened)


@pytest.fixture
def deliver(broker: Broker) -> Iterator[Deliver]:
    """Begins deliveries, which end before the broker does."""
    with ExitStack() as stack:

        def begin(clock: Any = None, **settings: Any) -> Deliveries:
            more = {} if clock is None else {"clock": clock}
            return stack.enter_context(Deliveries(broker, DeliverySettings(**PRIVATE, **settings), **more))

        yield begin


def law(broker: Broker) -> dict[str, int]:
    """What is owed is somewhere."""
    tally = broker.delivery_log.tally()
    assert tally["matched"] == sum(tally[state] for state in ("delivered", "pending", "expired", "dead")), tally
    return tally


def ended(broker: Broker, **counts: int) -> Callable[[], bool]:
    """Is this what has become of deliveries?"""
    return lambda: {name: broker.delivery_log.tally()[name] for name in counts} == counts


def test_each_event_goes_to_each_target_once(broker: Broker, deliver: Deliver) -> None:
    with serving() as first, serving() as second:
        deliver()
        subscribed(broker, first.url, second.url)
        subscribed(broker, first.url)
        published(broker, *range(10))
        until(ended(broker, delivered=30, pending=0))
        assert len(first.ids) == len(set(first.ids)) == 20
        assert len(second.ids) == len(set(second.ids)) == 10


def test_a_host_is_read_when_it_is_told_and_when_it_has_answered(
    broker: Broker, deliver: Deliver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule, "LOOK", 3_600.0)
    count = Counter[str]()

    def note(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        count["due"] += "deliveries.due <=" in statement

    with serving() as server:
        deliver()
        subscribed(broker, server.url)
        published(broker, 0)
        until(ended(broker, delivered=1))
        sa.event.listen(broker.database.engine, "before_cursor_execute", note)
        for number in range(1, 11):
            published(broker, number)
            until(ended(broker, delivered=number + 1))
    assert 10 <= count["due"] <= 21


def test_schedule_is_followed_to_the_end_and_begun_again(broker: Broker, deliver: Deliver) -> None:
    clock = Clock()
    with serving(500) as server:
        subscribed(broker, server.url)
        published(broker, 1)
        delivering = deliver(clock)
        for tries, pause in enumerate(SCHEDULE[1:], 1):
            until(lambda tries=tries: len(server.requests) == tries)  # type: ignore[misc]
            until(lambda tries=tries: one(broker).tries == tries)  # type: ignore[misc]
            assert clock.now + pause <= one(broker).due <= clock.now + 1.2 * pause
            clock.now = one(broker).due - 0.01
            delivering.wake()
            delivering.wake()
            assert len(server.requests) == tries
            clock.now += 0.02
            delivering.wake()
        until(ended(broker, dead=1, pending=0))
        assert len(server.requests) == len(SCHEDULE) == one(broker).tries
        assert len(set(server.ids)) == 1, "the id is the same for each try"
        assert one(broker).status == "500 Internal Server Error"
        (letter,) = broker.delivery_log.dead("ann")
        assert not broker.delivery_log.dead("bob")
        server.answer = lambda came: (204, {}, b"")
        broker.delivery_log.resend(letter.number)
        until(ended(broker, delivered=1, dead=0))
        assert len(set(server.ids)) == 1


def test_what_failed_together_is_not_tried_again_together(broker: Broker, deliver: Deliver) -> None:
    clock = Clock()
    with serving(500) as server:
        for _ in range(20):
            subscribed(broker, server.url)
        published(broker, 1)
        deliver(clock)
        until(lambda: len(server.requests) == 20)
        tried = sa.select(deliveries.c.due).where(deliveries.c.tries == 1)
        until(lambda: len(broker.database.rows(tried)) == 20)
        due = sorted(row.due - clock.now for row in broker.database.rows(tried))
    assert SCHEDULE[1] <= due[0] < due[-1] <= 1.2 * SCHEDULE[1]
    assert len(set(due)) >= 15
    assert due[-1] - due[0] > 0.08 * SCHEDULE[1]


def test_dead_letters_are_told_in_the_feed_once_until_the_target_takes_something(
    broker: Broker, deliver: Deliver
) -> None:
    clock = Clock()
    with serving(500) as server, serving() as other:
        number = subscribed(broker, server.url + "?token=secret", other.url)
        published(broker, 1)
        delivering = deliver(clock, schedule=(0.0, 3 * 86_400.0))
        until(lambda: one(broker).tries == 1)
        published(broker, 2)
        for _ in range(2):
            until(lambda: all(row.tries for row in waiting(broker)))
            clock.now += 4 * 86_400
            delivering.wake()
        until(ended(broker, dead=2, delivered=2, pending=0))
        until(lambda: types(broker) == ["matched", "matched", "undelivered"])
        told = broker.events("ann", 0)[-1].to_json()
        assert told["bindings"] == [
            {
                "address": {"type": "literal", "value": server.url + "?token=***"},
                "answer": {"type": "literal", "value": "500 Internal Server Error"},
            }
        ]
        row = broker.by_number(number)
        with broker.database.reading() as connection:
            entry = feed_of(connection, row, b"s" * 32, lambda form, before=None: "").entries[0]
        assert entry.title == "Events could not be delivered, and are dead letters"
        assert "500 Internal Server Error" in entry.markup
        server.answer = lambda came: (200, {}, b"")
        for letter in broker.delivery_log.dead("ann"):
            broker.delivery_log.resend(letter.number)
        until(ended(broker, delivered=4, dead=0))
        broker.expire()
        assert types(broker) == ["matched", "matched", "undelivered"], "it is told once"
        server.answer = lambda came: (410, {}, b"")
        published(broker, 3)
        until(ended(broker, dead=1))
        until(lambda: types(broker)[3:] == ["matched", "undelivered"])
        assert len(other.ids) == 3, "it is delivered to no target"


def types(broker: Broker) -> list[str]:
    return [event.type for event in broker.events("ann", 0)]


def one(broker: Broker) -> Any:
    """The newest delivery of the first subscription."""
    return broker.delivery_log.of_subscription(1)[0]


def test_gone_ends_the_target(broker: Broker, deliver: Deliver) -> None:
    with serving(410) as server, serving() as other:
        number = subscribed(broker, server.url, other.url)
        published(broker, *range(5))
        deliver()
        until(ended(broker, dead=1, expired=4, delivered=5))
        assert len(server.requests) == 1
        published(broker, 9)
        until(ended(broker, delivered=6, pending=0))
        assert len(server.requests) == 1, "nothing is sent to who wants nothing"
        assert [row.state for row in broker.targets.of(number)] == ["gone", "active"]
        assert law(broker)["matched"] == 11


def test_retry_after_is_obeyed_by_all_of_the_target(broker: Broker, deliver: Deliver) -> None:
    clock = Clock()
    answers: list[Answer] = [(429, {"Retry-After": "1000"}, b"")]
    with serving(lambda came: answers.pop() if answers else (200, {}, b"")) as server, serving() as other:
        subscribed(broker, server.url, other.url)
        published(broker, 1, 2)
        delivering = deliver(clock)
        until(lambda: server.requests and not answers)
        until(lambda: min(row.due for row in waiting(broker)) >= clock.now + 1_000)
        published(broker, 3)
        until(ended(broker, delivered=3, pending=3))
        clock.now += 999
        delivering.wake()
        published(broker, 4)
        until(ended(broker, delivered=4, pending=4))
        assert len(server.requests) == 1
        clock.now += 1_000
        delivering.wake()
        until(ended(broker, delivered=8, pending=0))
        assert len(set(server.ids)) == 4


def waiting(broker: Broker) -> list[Any]:
    return [row for row in broker.delivery_log.of_subscription(1) if row.state == "pending"]


def test_redirects_are_failures(broker: Broker, deliver: Deliver) -> None:
    with serving() as inside, serving(lambda came: (307, {"Location": inside.url}, b"")) as server:
        subscribed(broker, server.url)
        published(broker, 1)
        deliver(Clock())
        until(lambda: one(broker).tries == 1)
        assert one(broker).state == "pending"
        assert "redirects are not followed" in one(broker).status
        assert not inside.requests


def test_private_addresses_are_not_asked(broker: Broker) -> None:
    with serving() as server, Deliveries(broker, DeliverySettings()):
        subscribed(broker, server.url)
        published(broker, 1)
        until(lambda: one(broker).tries == 1)
        assert not server.requests
        assert "private address" in one(broker).status


def test_hosts_that_hang_hold_up_nobody(broker: Broker, deliver: Deliver) -> None:
    go_on = threading.Event()

    def hang(came: Came) -> Answer:
        go_on.wait(600)
        return 200, {}, b""

    with ExitStack() as stack:
        healthy = [stack.enter_context(serving()) for _ in range(10)]
        hanging = [stack.enter_context(serving(hang)) for _ in range(10)]
        silent = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(10)]
        addresses = [f"http://127.0.0.1:{server.getsockname()[1]}/" for server in silent]
        subscribed(broker, *(server.url for server in hanging), *addresses, *(server.url for server in healthy))
        published(broker, *range(10))
        deliver(
            workers=44, delivery_seconds=500.0
        )  # none of those that hang answers before the healthy have all of theirs
        until(lambda: all(len(set(server.ids)) == 10 for server in healthy))
        assert not go_on.is_set()
        go_on.set()
        until(lambda: all(len(set(server.ids)) == 10 for server in hanging))


def test_a_host_gets_two_at_once(broker: Broker, deliver: Deliver) -> None:
    meeting = threading.Barrier(2, timeout=300)

    def answer(came: Came) -> Answer:
        if came.path.endswith("/first"):
            return 200, {}, b""
        meeting.wait()  # each waits for the other one
        return 200, {}, b""

    with serving(answer) as server:
        subscribed(broker, server.url + "/first")  # the first answer of a host is waited for alone
        subscribed(broker, *(f"{server.url}/{n}" for n in range(6)))
        published(broker, 1)
        deliver(quick=1e9)
        until(ended(broker, delivered=7))
        assert server.most_at_once == 2


def test_a_rate_is_kept_and_raised_by_the_receiver(broker: Broker, deliver: Deliver) -> None:
    clock = Clock()
    headers: dict[str, str] = {}
    with serving(lambda came: (200, dict(headers), b"")) as server:
        subscribed(broker, server.url)
        published(broker, *range(12))
        delivering = deliver(clock, deliveries_per_minute=3.0, without_rate=frozenset())
        until(ended(broker, delivered=3))
        clock.now += 19
        delivering.wake()
        clock.now += 2
        delivering.wake()
        until(ended(broker, delivered=4))
        headers["WebHook-Allowed-Rate"] = "120"
        clock.now += 20
        until(ended(broker, delivered=12))
        delivering.stop()
        published(broker, *range(20, 40))
        deliver(clock, deliveries_per_minute=3.0, without_rate=frozenset())
        until(ended(broker, delivered=32))  # what a host has said is kept
        assert law(broker)["matched"] == 32


def test_order_is_kept_where_a_target_asks_for_it(broker: Broker, deliver: Deliver) -> None:
    clock = Clock()
    broken = {"1"}

    def answer(came: Came) -> Answer:
        return (500 if came.headers["ce-id"] in broken else 200), {}, b""

    with serving(answer) as ordered, serving(answer) as other:
        subscribed(broker, ordered.url, ordered=True)
        broker.add_target(1, Target("webhook", other.url))
        published(broker, *range(6))
        delivering = deliver(clock)
        until(ended(broker, delivered=5, pending=7))
        published(broker, 7)
        until(ended(broker, delivered=6, pending=8))
        assert ordered.ids == ["1"]
        broken.clear()
        clock.now += 10
        delivering.wake()
        until(ended(broker, delivered=14, pending=0))
        assert ordered.ids == ["1", *map(str, range(1, 8))]
        assert Counter(other.ids) == {"1": 2, **{str(n): 1 for n in range(2, 8)}}


def test_what_nobody_waits_for_expires(broker: Broker, deliver: Deliver) -> None:
    clock = Clock()
    with serving() as server, serving(503) as removed:
        number = subscribed(broker, removed.url)
        broker.add_target(number, Target("webhook", server.url, expires=clock.now - 1))
        published(broker, 1)
        deliver(clock)
        until(lambda: removed.requests and ended(broker, expired=1)())
        broker.targets.end(broker.targets.of(number)[0].number)
        assert law(broker)["expired"] == 2
        assert not server.requests
        assert {row.status for row in broker.delivery_log.of_subscription(number)} == {
            "the target had ended",
            "the target was removed",
        }


def test_one_try_counts_for_all_where_a_target_is_down(broker: Broker, deliver: Deliver) -> None:
    clock = Clock()
    with serving(404) as server:
        subscribed(broker, server.url)
        published(broker, *range(20))
        delivering = deliver(clock)
        while not ended(broker, dead=20)():
            clock.now += 1_000
            delivering.wake()
            law(broker)
        assert len(server.requests) < 80, "not each of 20 deliveries 10 times"


def test_a_message_that_is_never_taken_harms_no_other(broker: Broker, deliver: Deliver) -> None:
    clock = Clock()
    poison = {"1", "2", "3", "4", "5"}
    with serving(lambda came: (502 if came.headers["ce-id"] in poison else 200, {}, b"")) as server:
        subscribed(broker, server.url)
        published(broker, *range(20))
        delivering = deliver(clock, schedule=(0.0, *[100.0] * 9))
        while law(broker)["pending"]:
            clock.now += 10
            delivering.wake()
        assert (law(broker)["delivered"], law(broker)["dead"]) == (15, 5)
        assert law(broker)["matched"] == 20
        assert set(server.ids) == {str(n) for n in range(1, 21)}


def test_the_law_holds_at_any_moment(broker: Broker, deliver: Deliver) -> None:
    with serving(
        lambda came: (200 if int(came.headers["ce-subject"].rpartition(":")[2]) % 3 else 400, {}, b"")
    ) as server:
        deliver(Clock(), schedule=(0.0, 0.0, 0.0))
        subscribed(broker, server.url, server.url + "/other")
        publishing = threading.Thread(target=published, args=(broker, *range(30)), daemon=True)
        publishing.start()
        while publishing.is_alive() or law(broker)["pending"]:
            law(broker)
        assert law(broker) == {"matched": 60, "delivered": 40, "pending": 0, "expired": 0, "dead": 20}
        forgotten = broker.delivery_log.forget(4e9)
        assert forgotten == 40
        assert law(broker) == {"matched": 60, "delivered": 40, "pending": 0, "expired": 0, "dead": 20}


@pytest.mark.parametrize(("stop_seconds", "times"), [(0.5, 2), (300.0, 1)])
def test_an_end_waits_for_receivers_as_long_as_a_stop_may_take(
    broker: Broker, deliver: Deliver, stop_seconds: float, times: int
) -> None:
    """Who has not answered by then is sent it again."""
    go_on = threading.Event()

    def hang(came: Came) -> Answer:
        go_on.wait(600)
        return 200, {}, b""

    with serving(hang) as server:
        subscribed(broker, server.url)
        published(broker, 1)
        delivering = deliver(delivery_seconds=500.0, stop_seconds=stop_seconds)
        until(lambda: server.requests)
        answering = threading.Timer(1 if times == 1 else 3_600, go_on.set)
        answering.start()
        delivering.stop()
        assert "delivery" not in {thread.name for thread in threading.enumerate()}
        assert law(broker)["pending"] == times - 1
        answering.cancel()
        go_on.set()
        deliver()
        until(ended(broker, delivered=1))
        assert len(server.ids) == times
        assert len(set(server.ids)) == 1


def test_several_processes_share_hosts(new_database: Callable[[], str]) -> None:
    url = new_database()
    if url.startswith("sqlite"):
        pytest.skip("a SQLite file has one process")
    how = DeliverySettings(**PRIVATE)
    with ExitStack() as stack:
        servers: list[Server] = [stack.enter_context(serving()) for _ in range(12)]
        ours = stack.enter_context(Broker.open(url, b"s" * 32))
        others = stack.enter_context(Broker.open(url, b"s" * 32))
        subscribed(ours, *(server.url for server in servers))
        stack.enter_context(Deliveries(ours, how))
        second = stack.enter_context(Deliveries(others, how))
        published(ours, *range(10))
        until(ended(ours, delivered=120, pending=0))
        assert all(len(server.ids) == len(set(server.ids)) == 10 for server in servers), "each is sent by one"
        second.stop()
        published(ours, *range(10, 15))
        until(ended(ours, delivered=180, pending=0))
        assert all(len(server.ids) == len(set(server.ids)) == 15 for server in servers)
        law(ours)
