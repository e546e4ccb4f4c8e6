"""Kafka, through the connector of the Spark project: topics of documents in, topics of matches and dead letters out.

It is a package of its own (`PACKAGES`), which a session gets by `spark.jars.packages` or `spark.jars`.

A record that comes in: its value is one document, in any syntax and gzipped or not, as a file may be; its header `id`,
or else its key, is the id of the document. A record that goes out: key, the identity of the match (32 hexadecimal
digits); value, a JSON object; headers `stream`, `batch` and `identity`. Spark's writer repeats records after a failure
(at least once): those that are the same have the same headers.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from triplewire.errors import Refusal, TriplewireError, UnavailableError
from triplewire.net.addresses import KAFKA, Address, Connections, address, brokers, kind_of, shown
from triplewire.notify.rows import Part
from triplewire.pipeline.connect.sink_rows import errors_of, json_value

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


PACKAGES = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
MOST_BYTES = 1_048_576  # of a record, by default: `max.request.size` of Kafka's producers
LEAST_BYTES = 131_072
"""The least `max.request.size`: a record with all of its texts cut is smaller."""

_OVERHEAD = 8_192  # bytes of a record beside its value
_LONG = 4_096  # characters of a text in a record that is too large as a whole
_PROVIDER = "org.apache.spark.sql.kafka010.KafkaSourceProvider"
_OF_SPARK = {
    "failOnDataLoss", "fetchOffset.numRetries", "fetchOffset.retryIntervalMs", "groupIdPrefix", "includeHeaders",
    "kafkaConsumer.pollTimeoutMs", "maxOffsetsPerTrigger", "maxTriggerDelay", "minOffsetsPerTrigger", "minPartitions",
    "startingOffsets", "startingTimestamp", "endingOffsets",
}  # fmt: skip
_PER_BATCH = "10000"  # records of a micro-batch, whose outcomes are held in memory
_WAIT = {"kafka.default.api.timeout.ms": "30000"}  # for the brokers: as long as for one request, of two by default
_LOST = re.compile(r"set the source option failOnDataLoss to false\.\s+Reason:\s+(.+)")  # what Spark's connector says
_ID = "coalesce(try_element_at(filter(headers, h -> h.key = 'id'), 1).value, key)"
_DOCUMENT = [
    f"nullif({_ID}, X'') AS id",
    "concat('kafka:', topic, '/', partition, '/', offset) AS place",
    "value AS content",
    "CAST(NULL AS string) AS reason",
]


def options(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings as Spark's connector takes them: its own as they are, those of Kafka's clients behind `kafka.`."""
    as_it_is = {name for name in settings if name in _OF_SPARK or name.startswith("kafka.")}
    return {name if name in as_it_is else f"kafka.{name}": value for name, value in settings.items()}


def documents_from(spark: SparkSession, source: Address, streaming: bool) -> DataFrame:
    """The records of a topic as rows of `documents.DOCUMENTS`: from the first one on, or, of a stream, from where it
    stopped. Raises `TriplewireError` where the session has no connector."""
    check_connector(spark)
    wanted = {
        "kafka.bootstrap.servers": brokers(source),
        "subscribe": source.name,
        "startingOffsets": "earliest",
        "includeHeaders": "true",
    }
    if streaming:
        wanted |= {"maxOffsetsPerTrigger": _PER_BATCH, "kafka.fetch.max.wait.ms": "50"}
    reader = spark.readStream if streaming else spark.read
    return reader.format("kafka").options(**{**wanted, **options(source.settings)}).load().selectExpr(*_DOCUMENT)


def lost_records(error: Exception, source: str) -> TriplewireError | None:
    """What is told where Spark failed because records are gone that it should read; None where it is not that."""
    lost = _LOST.search(str(error))
    if lost is None:
        return None
    return TriplewireError(
        f"records that should be read are gone from the topic: {lost[1]}",
        source=source,
        remedy="failOnDataLoss = false (--connect FILE) goes on with those that are there",
    )


@contextmanager
def admin_client(spark: SparkSession, target: Address, wait: Mapping[str, str] | None = None) -> Iterator[Any]:
    """A client that asks the brokers of an address, made as Spark's connector makes its own. `wait`: other settings
    than usual for how long they may take. Raises `TriplewireError` where the session has no connector, for what goes
    wrong in the block, and where no broker answers in time."""
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # it has no types

    check_connector(spark)
    jvm: Any = spark._jvm
    stated = options(target.settings)
    usual = {} if "kafka.request.timeout.ms" in stated else _WAIT
    settings = jvm.java.util.HashMap()
    for name, value in {**usual, "kafka.bootstrap.servers": brokers(target), **stated, **(wait or {})}.items():
        if name.startswith("kafka."):
            settings.put(name.removeprefix("kafka."), value)
    try:
        names = jvm.PythonUtils.toSeq([target.name])
        client = jvm.org.apache.spark.sql.kafka010.SubscribeStrategy(names).createAdmin(settings)
        try:
            yield client
        finally:
            client.close()
    except Py4JJavaError as error:
        cause = error.java_exception
        while (deeper := cause.getCause()) is not None:
            cause = deeper
        text = shown(str(cause.toString()).partition("\n")[0])[:500]
        what, remedy = f"the topic cannot be read or written to: {text}", ""
        if "UnknownTopicOrPartition" in text:
            what = "there is no such topic"
        elif "TimeoutException" in text:
            what, remedy = f"no broker answers: {text}", "is the address right, and security.protocol (--connect FILE)?"
        raise UnavailableError(what, source=str(target), remedy=remedy) from None


class KafkaSink:
    """A topic that matches or dead letters are written to: at least once. Raises `TriplewireError` where the setting
    `max.request.size` is wrong."""

    def __init__(self, target: Address) -> None:
        self._target = target
        settings = options(target.settings)
        most = settings.get("kafka.max.request.size", str(MOST_BYTES))
        if not re.fullmatch(r"\d{1,10}", most) or int(most) < LEAST_BYTES:
            what = f"max.request.size is no number of bytes from {LEAST_BYTES:,} on"
            raise TriplewireError(what, source=str(target), remedy="a record that is cut has to go into a request")
        self._most = int(most) - _OVERHEAD
        self._options = {"kafka.bootstrap.servers": brokers(target), "topic": target.name, **settings}

    def __str__(self) -> str:
        return str(self._target)

    def check(self, spark: SparkSession, stream: str, stop: threading.Event | None = None) -> None:
        """Raises `TriplewireError` where the session has no connector, or no broker answers."""
        with admin_client(spark, self._target) as client:
            client.describeCluster().nodes().get()

    def deliver(self, rows: DataFrame, part: Part) -> list[Refusal]:
        """Write the rows. One that is larger than a record may be goes without its longest texts, and says so."""
        value = json_value(part.kind)
        short = json_value(part.kind, most=_LONG)
        records = rows.selectExpr(
            "CAST(identity AS binary) AS key",
            f"CAST(CASE WHEN octet_length({value}) > {self._most} THEN {short} ELSE {value} END AS binary) AS value",
            "array("
            f"struct('stream' AS key, CAST('{part.stream}' AS binary) AS value), "
            f"struct('batch' AS key, CAST('{part.batch}' AS binary) AS value), "
            "struct('identity' AS key, CAST(identity AS binary) AS value)) AS headers",
        )
        with errors_of(self._target, "the topic cannot be written to", PACKAGES):
            records.write.format("kafka").options(**self._options).save()
        return []


def check_connector(spark: SparkSession) -> None:
    """Raises `TriplewireError` where the session has no Kafka connector."""
    from py4j.protocol import Py4JJavaError

    jvm = spark._jvm
    assert jvm is not None
    try:
        jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(_PROVIDER)
    except Py4JJavaError:
        raise UnavailableError(
            "this Spark session has no Kafka connector", remedy=f"--conf spark.jars.packages={PACKAGES}"
        ) from None


# --- the topic that is read ------------------------------------------------------------------------------------------


_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"  # of brokers that give topics no ids
_SOON = {"kafka.default.api.timeout.ms": "3000", "kafka.request.timeout.ms": "3000"}
_KEEP_LONGER = "keep records for longer (retention.ms), or read them sooner"


class Topic:
    """The topic that a run reads, as the brokers know it. Of a source that is none, nothing is asked.

    Of a stream, `check_id` raises `TriplewireError` for the id of another topic than it has read; `checkpoint` is that
    of Structured Streaming.
    """

    def __init__(
        self,
        spark: SparkSession,
        source: str,
        connections: Connections | None,
        check_id: Callable[[str], None] = lambda id: None,
        checkpoint: Path = Path(),
    ) -> None:
        self._spark, self._check_id, self._checkpoint = spark, check_id, checkpoint
        self._address = address(source, connections) if kind_of(source) == KAFKA else None
        settings = {} if self._address is None else self._address.settings
        self._passes_over = settings.get("failOnDataLoss", "").lower() == "false"  # without it, Spark refuses them

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
