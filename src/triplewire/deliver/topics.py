"""Deliveries to topics of Kafka (the extra `kafka`), as CloudEvents in binary mode.

Headers are `ce_...`, the key is `partitionkey` (CloudEvents Kafka binding, section 3.2).
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

from triplewire.broker.incoming.topic_sources import kafka_client
from triplewire.deliver.limits import DeliverySettings
from triplewire.deliver.messages import Channel, Message, Outcome, json_bytes
from triplewire.errors import ArgumentError, TriplewireError
from triplewire.net.addresses import Address, address, brokers

if TYPE_CHECKING:
    from confluent_kafka import Producer


class Topics(Channel):
    """Writes events to topics. A client of Kafka goes on to the servers that the first one names, which no guard sees:
    so the service names the servers that topics may be at."""

    def __init__(self, settings: DeliverySettings) -> None:
        super().__init__(settings)
        self._producers: dict[str, Producer] = {}
        self._lock = threading.Lock()

    def check(self, text: str) -> None:
        """Raises `TriplewireError` where it is no topic, or at a server that the service does not name."""
        servers = brokers(_topic(text))
        if not set(servers.split(",")) <= set(self._settings.kafka.split(",")):
            what, remedy = f"this service delivers to no topics at {servers}", "its setting kafka names the servers"
            raise ArgumentError(what, remedy=remedy)
        kafka_client()

    def close(self) -> None:
        """Forget connections; what was not acknowledged is tried again later."""
        with self._lock:
            self._producers.clear()

    def send(self, message: Message) -> Outcome:
        """One try; it is delivered once all replicas that are in step have it."""
        target = _topic(message.target.address)
        data, is_whole = message.data()
        attributes = message.attributes(is_whole)
        headers: list[tuple[str, str | bytes | None]] = [("content-type", b"application/json")]
        headers += [(f"ce_{name}", value.encode("utf-8", "replace")) for name, value in attributes.items()]
        key = attributes["partitionkey"].encode("utf-8", "replace")
        answered, told = threading.Event(), list[Any]()

        def answer(error: Any, _: Any) -> None:
            told.append(error)
            answered.set()

        try:
            producer = self._producer(brokers(target))
            producer.produce(target.name, json_bytes(data), key, headers=headers, on_delivery=answer)
            while not answered.is_set():  # the client ends it in time
                producer.poll(0.1)
        except TriplewireError:
            raise
        except Exception as error:  # as a queue that is full
            return Outcome(f"the topic cannot be written: {error}"[:200], of_target=True)
        if told[0] is not None:
            return Outcome(f"the topic cannot be written: {told[0]}"[:200], of_target=True)
        return Outcome("acknowledged", is_delivered=True)

    def _producer(self, servers: str) -> Producer:
        with self._lock:
            if servers not in self._producers:
                milliseconds = int(self._settings.delivery_seconds * 1_000)
                self._producers[servers] = kafka_client().Producer(
                    {
                        "bootstrap.servers": servers,
                        "enable.idempotence": True,
                        "delivery.timeout.ms": milliseconds,
                        "linger.ms": 0,
                    },
                    logger=logging.getLogger("triplewire.deliver.kafka"),
                )
            return self._producers[servers]


def _topic(text: str) -> Address:
    topic = address(text, allowed=["kafka"])
    if not topic.name:
        raise ArgumentError("this is not kafka://HOST:PORT/TOPIC")
    return topic
