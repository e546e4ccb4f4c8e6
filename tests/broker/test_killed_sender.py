"""A process that is killed while it sends: what it had not written as delivered is sent again, with the same id."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from broker.receivers import Answer, Came, published, serving, subscribed
from triplewire.broker.broker import Broker
from triplewire.deliver.limits import DeliverySettings
from triplewire.deliver.schedule import Deliveries
from waiting import until

SENDER = """
import sys, time
from triplewire.broker.broker import Broker
from triplewire.deliver.limits import DeliverySettings
from triplewire.deliver.schedule import Deliveries
with Broker.open(sys.argv[1], b"s" * 32) as broker, Deliveries(broker, DeliverySettings(allow_private_addresses=True)):
    print("there", flush=True)
    time.sleep(600)
"""


def test_killed_between_sending_and_writing(new_database: Callable[[], str]) -> None:
    url = new_database()
    answering = threading.Event()

    def answer(came: Came) -> Answer:
        if came.headers["ce-id"] == "3" and not answering.is_set():
            answering.wait(300)
        return 200, {}, b""

    with serving(answer) as server:
        with Broker.open(url, b"s" * 32) as broker:
            subscribed(broker, server.url, ordered=True)
            published(broker, *range(5))
        sender = subprocess.Popen([sys.executable, "-c", SENDER, url])
        until(lambda: server.ids[-1:] == ["3"])
        sender.kill()
        sender.wait()
        answering.set()
        with Broker.open(url, b"s" * 32) as broker:
            assert broker.delivery_log.tally() == {"matched": 5, "delivered": 2, "pending": 3, "expired": 0, "dead": 0}
            with Deliveries(broker, DeliverySettings(allow_private_addresses=True)):
                until(lambda: broker.delivery_log.tally()["delivered"] == 5)
        assert server.ids == ["1", "2", "3", "3", "4", "5"]


def test_another_process_goes_on(new_database: Callable[[], str]) -> None:
    url = new_database()
    if url.startswith("sqlite"):
        pytest.skip("a SQLite file has one process")
    with Broker.open(url, b"s" * 32) as broker, serving() as server, serving() as other, serving() as third:
        subscribed(broker, server.url, other.url, third.url)
        sender = subprocess.Popen([sys.executable, "-c", SENDER, url], stdout=subprocess.PIPE)
        try:
            assert sender.stdout is not None
            assert sender.stdout.readline()
            published(broker, 1)
            until(lambda: broker.delivery_log.tally()["delivered"] == 3)  # it has all of the shares
            with Deliveries(broker, DeliverySettings(allow_private_addresses=True)):
                published(broker, *range(2, 12))
                sender.kill()
                until(lambda: broker.delivery_log.tally()["delivered"] == 33)
        finally:
            sender.kill()
            sender.wait()
        assert len(set(server.ids)) == len(set(other.ids)) == len(set(third.ids)) == 11
