"""Sources that are topics of Kafka, read without a JVM (confluent-kafka). Each message is a document.

How far a topic was read is kept by Kafka, for the group of the source, and only after what came is accepted. A message
that was accepted twice, as after a crash, is one publication.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from sqlalchemy.engine import Row

from triplewire.broker.incoming.registered_sources import Take
from triplewire.errors import TriplewireError, UnavailableError
from triplewire.net.addresses import KAFKA, address, brokers

_AT_ONCE = 100  # messages of a look
_WAIT = 0.1  # seconds for them

_log = logging.getLogger("triplewire.broker")


class Topics:
    """The topics of sources, read by this process."""

    def __init__(self, take: Take) -> None:
        self._take = take
        self._consumers: dict[int, tuple[Row[Any], Any]] = {}

    def follow(self, rows: Sequence[Row[Any]]) -> None:
        """Read these topics from now on."""
        there = {row.number: row for row in rows}
        for number, (row, consumer) in list(self._consumers.items()):
            if number not in there or there[number].url != row.url:
                consumer.close()
                del self._consumers[number]
        for number, row in there.items():
            try:
                consumer = self._consumers[number][1] if number in self._consumers else _consumer(row)
            except TriplewireError as error:
                _log.warning("source %s: %s", row.id, error)
            else:
                self._consumers[number] = row, consumer

    def look(self) -> None:
        """Take what is there. What cannot be kept now is read again."""
        if not self._consumers:
            return
        for row, consumer in list(self._consumers.values()):
            try:
                while messages := consumer.consume(_AT_ONCE, _WAIT):
                    self._take_all(row, consumer, messages)
            except kafka_client().KafkaException as error:  # of Kafka, which is away
                _log.warning("source %s: %s", row.id, error)

    def _take_all(self, row: Row[Any], consumer: Any, messages: Sequence[Any]) -> None:
        taken = [message for message in messages if not message.error()]
        for message in taken:
            if message.value() is not None:
                place = f"kafka:{message.topic()}/{message.partition()}/{message.offset()}"
                self._take([row], message.value(), place)
            consumer.store_offsets(message)
        if taken:
            consumer.commit(asynchronous=False)

    def close(self) -> None:
        """Read no more."""
        for _, consumer in self._consumers.values():
            consumer.close()
        self._consumers.clear()


def kafka_client() -> Any:
    """The module `confluent_kafka`. Raises `UnavailableError` where it is not installed."""
    # imported here because it takes a while, and is not there without the extra
    try:
        import confluent_kafka
    except ImportError:
        remedy = "in a copy of the sources: pip install '.[kafka]'"
        raise UnavailableError("topics of Kafka need confluent-kafka", remedy=remedy) from None
    return confluent_kafka


def kafka_consumer(servers: str, group: str, topic: str, **more: Any) -> Any:
    """What reads a topic from where its group has come to, or from the beginning; it is committed by who reads. Raises
    `UnavailableError`."""
    settings = {"bootstrap.servers": servers, "group.id": group, "enable.auto.commit": False}
    consumer = kafka_client().Consumer({**settings, "auto.offset.reset": "earliest", **more})
    consumer.subscribe([topic])
    return consumer


def _consumer(row: Row[Any]) -> Any:
    target = address(row.url, allowed=(KAFKA,))
    by_hand = {"enable.auto.offset.store": False}
    return kafka_consumer(brokers(target), f"triplewire-{row.id}", target.name, **by_hand)
