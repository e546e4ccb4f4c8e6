"""The topic of Kafka that a run reads: is it still the same one, and which of its records are gone?"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from triplewire.errors import Refusal, TriplewireError
from triplewire.net.addresses import KAFKA, Connections, address, kind_of
from triplewire.pipeline.connect.kafka import admin_client

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"  # of brokers that give topics no ids
_SOON = {"kafka.default.api.timeout.ms": "3000", "kafka.request.timeout.ms": "3000"}
_KEEP_LONGER = "keep records for longer (retention.ms), or read them sooner"


class Topic:
    """The topic that a run reads, as the brokers know it. Of a source that is none, nothing is asked."""

    def __init__(self, spark: SparkSession, source: str, connections: Connections | None) -> None:
        self._spark = spark
        self._address = address(source, connections) if kind_of(source) == KAFKA else None

    def id(self, wait: Mapping[str, str] | None = None) -> str:
        """The id that Kafka gave the topic when it was made: one that is made again under its name has another. "" of
        a source that is no topic, and where the brokers give none. `wait`: settings for how long they may take. Raises
        `TriplewireError` where the session has no connector, there is no such topic, or no broker answers."""
        return self._state(wait=wait)[0]

    def _state(self, *, offsets: bool = False, wait: Mapping[str, str] | None = None) -> tuple[str, dict[int, int]]:
        """The id, and, if wanted, partition -> the offset of the first record that it still has."""
        if self._address is None:
            return "", {}
        jvm: Any = self._spark._jvm
        with admin_client(self._spark, self._address, wait) as client:
            name = self._address.name
            topic = client.describeTopics(jvm.java.util.ArrayList([name])).allTopicNames().get().get(name)
            id = str(topic.topicId().toString())
            first = _first_offsets(jvm, client, topic) if offsets else {}
        return "" if id == _NO_ID else id, first


class StreamedTopic(Topic):
    """The topic that a stream reads, with what is known of it from before.

    `check_id` raises `TriplewireError` for the id of another topic than the stream has read; `checkpoint` is that of
    Structured Streaming.
    """

    def __init__(
        self,
        spark: SparkSession,
        source: str,
        connections: Connections | None,
        check_id: Callable[[str], None],
        checkpoint: Path,
    ) -> None:
        super().__init__(spark, source, connections)
        self._check_id = check_id
        self._checkpoint = checkpoint
        settings = self._address.settings if self._address is not None else {}
        self._passes_over = settings.get("failOnDataLoss", "").lower() == "false"  # without it, Spark refuses them

    def check(self) -> None:
        """Raises `TriplewireError` as `id` does, and where the topic is another one."""
        self._compare(self.id())

    def check_idle(self) -> None:
        """`check` while nothing is read, which brokers that do not answer do not end."""
        try:
            id = self.id(_SOON)
        except TriplewireError:  # if that lasts, Spark ends
            return
        self._compare(id)

    @contextmanager
    def around_job(self, number: int, refused: list[Refusal]) -> Iterator[None]:
        """Looks at the topic before and after the job of a micro-batch: one that is made again meanwhile has other
        records at its offsets, and retention deletes records. Adds to `refused` the records that no job can have read,
        and those that may have been gone when they were to be read. Raises `TriplewireError` as `check` does."""
        before = self._first_offsets_of_same()
        yield
        refused += self._gone(number, before, self._first_offsets_of_same())

    def _first_offsets_of_same(self) -> dict[int, int]:
        id, first = self._state(offsets=self._passes_over)
        self._compare(id)
        return first

    def _compare(self, id: str) -> None:
        if id:
            self._check_id(id)

    def _gone(self, number: int, before: Mapping[int, int], after: Mapping[int, int]) -> Iterator[Refusal]:
        if self._address is None or not self._passes_over:
            return
        ends = _offsets(self._checkpoint / "offsets" / str(number))
        earlier = f"offsets/{number - 1}" if number else "sources/0/0"
        begins = _offsets(self._checkpoint / earlier)
        for partition, end in sorted(ends.items()):
            begin = begins.get(partition, 0)
            first_left, first_left_after = (min(max(first.get(partition, 0), begin), end) for first in (before, after))
            for low, high, what in (
                (begin, first_left, "before they were read"),
                (first_left, first_left_after, "while they were read, and may not have been"),
            ):
                if low < high:
                    subject = f"kafka:{self._address.name}/{partition}/{low}-{high - 1}"
                    reason = f"these records were deleted from the topic {what}"
                    yield Refusal("publication", subject, str(self._address), reason, _KEEP_LONGER)


def _first_offsets(jvm: Any, client: Any, topic: Any) -> dict[int, int]:
    """Partition -> the offset of its first record."""
    earliest, wanted = jvm.org.apache.kafka.clients.admin.OffsetSpec.earliest(), jvm.java.util.HashMap()
    for partition in topic.partitions():
        wanted.put(jvm.org.apache.kafka.common.TopicPartition(topic.name(), partition.partition()), earliest)
    first = client.listOffsets(wanted).all().get()
    return {place.partition(): first.get(place).offset() for place in wanted}


def _offsets(file: Path) -> dict[int, int]:
    """What Structured Streaming writes of a source: partition -> the offset that comes next."""
    last = file.read_text(encoding="utf-8").splitlines()[-1]
    (offsets,) = json.loads(last[last.index("{") :]).values()
    return {int(partition): offset for partition, offset in offsets.items()}
