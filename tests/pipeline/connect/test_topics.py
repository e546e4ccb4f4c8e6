"""Topics of Kafka whose records are gone when a stream reads them, or are others: deleted, made again, trimmed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds
import pytest

from pipeline.runs import dead_letters_in, run
from triplewire.engine import Engine
from triplewire.errors import TriplewireError
from triplewire.net.addresses import Connections
from triplewire.pipeline import run as runs
from triplewire.pipeline import run as structured
from triplewire.pipeline.jobs import write_outcomes
from triplewire.pipeline.session import failures

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

ANOTHER = "another one of the same name"
AT_ONCE = 4  # records of a micro-batch


@dataclass
class Topic:
    """A topic of one partition, whose records are numbered, and the output folder of the streams that read it."""

    spark: SparkSession
    brokers: str
    name: str
    out: Path
    settings: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def _client(self) -> Iterator[Any]:
        jvm: Any = self.spark._jvm
        settings = jvm.java.util.HashMap({"bootstrap.servers": self.brokers})
        client = jvm.org.apache.kafka.clients.admin.AdminClient.create(settings)
        yield client
        client.close()

    def send(self, first: int, count: int) -> None:
        """Append records of these numbers."""
        rows = [(f"record{number}".encode(), "<urn:s> <urn:p> 1 .") for number in range(first, first + count)]
        frame = self.spark.createDataFrame(rows, "key binary, value string").coalesce(1)
        frame.write.format("kafka").option("kafka.bootstrap.servers", self.brokers).option("topic", self.name).save()

    def delete(self) -> None:
        """Delete the topic."""
        with self._client() as client:
            client.deleteTopics(self.spark._jvm.java.util.ArrayList([self.name])).all().get()  # type: ignore[union-attr]
            while self.name in client.listTopics().names().get():
                time.sleep(0.05)

    def make_again(self, first: int, count: int) -> None:
        """Make another topic of the same name, with these records."""
        self.delete()
        self.send(first, count)

    def trim(self, before: int) -> None:
        """Delete the records before an offset, as retention does."""
        jvm: Any = self.spark._jvm
        place = jvm.org.apache.kafka.common.TopicPartition(self.name, 0)
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        records = loader.loadClass("org.apache.kafka.clients.admin.RecordsToDelete")
        # by reflection: py4j does not see a static method that has the name of another one
        new_array = self.spark.sparkContext._gateway.new_array  # type: ignore[union-attr]  # there is one
        kinds, values = new_array(jvm.java.lang.Class, 1), new_array(jvm.java.lang.Object, 1)
        kinds[0], values[0] = jvm.java.lang.Long.TYPE, jvm.java.lang.Long.valueOf(str(before))
        offset = records.getMethod("beforeOffset", kinds).invoke(None, values)
        with self._client() as client:
            client.deleteRecords(jvm.java.util.HashMap({place: offset})).all().get()

    def stream(self, **more: Any) -> list[int]:
        """Read the topic to its end, or as `of_stream` says. Returns the numbers of all records that are matched."""
        engine = Engine(matcher="reference")
        engine.subscribe("ASK { ?s ?p ?o }", id="any")
        connections = Connections({"kafka:": {"maxOffsetsPerTrigger": str(AT_ONCE), **self.settings}})
        source = f"kafka://{self.brokers}/{self.name}"
        with failures(source=source):
            run(self.spark, source, engine, self.out, streaming=True, connections=connections, **more)
        return self.matched()

    def matched(self) -> list[int]:
        """The numbers of the records of all matches that were committed."""
        names = ds.dataset(self.out / "matches", partitioning="hive").to_table()["publication"].to_pylist()
        return sorted(int(name.removeprefix("urn:triplewire:id:record")) for name in names)


@pytest.fixture
def topic(linked: SparkSession, kafka: str, tmp_path: Path, request: pytest.FixtureRequest) -> Topic:
    return Topic(linked, kafka, f"of-{request.node.originalname.replace('_', '-')}", tmp_path / "out")


def around_the_job(monkeypatch: pytest.MonkeyPatch, before: Callable[[], None], after: Callable[[], None]) -> None:
    """Have something happen right before the job of each micro-batch reads the topic, and right after it."""

    def surrounded(*arguments: Any, **more: Any) -> Any:
        before()
        written = write_outcomes(*arguments, **more)
        after()
        return written

    monkeypatch.setattr(runs, "write_outcomes", surrounded)


def nothing() -> None:
    """Nothing happens."""


def test_made_again_between_two_streams(topic: Topic) -> None:
    """Its records have the offsets of others that a stream has read."""

    def forget() -> None:
        """The record of the run, as earlier versions wrote it."""
        record = json.loads((topic.out / "_run.json").read_text())
        del record["topic_id"]
        (topic.out / "_run.json").write_text(json.dumps(record))

    topic.send(0, 3)
    assert topic.stream() == [0, 1, 2]
    topic.make_again(3, 3)
    with pytest.raises(TriplewireError, match=ANOTHER):
        topic.stream()
    forget()
    assert topic.stream() == [0, 1, 2]
    topic.make_again(6, 1)
    with pytest.raises(TriplewireError, match=ANOTHER):
        topic.stream()
    forget()
    with pytest.raises(TriplewireError, match=r"records that should be read are gone from the topic: Partition .*-0"):
        topic.stream()


def test_made_again_between_two_micro_batches(topic: Topic) -> None:
    topic.send(0, 2 * AT_ONCE)
    with pytest.raises(TriplewireError, match=ANOTHER):
        topic.stream(on_batch=lambda summary: topic.make_again(8, 8) if summary.batches == 1 else None)
    assert topic.matched() == [0, 1, 2, 3]


@pytest.mark.parametrize("count", [4, 1], ids=["as many records", "fewer records"])
def test_made_again_while_a_job_begins(topic: Topic, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """The job reads records of the new topic, which are not committed, or finds none."""
    topic.name += f"-{count}"
    topic.send(0, 3)
    assert topic.stream() == [0, 1, 2]
    topic.send(3, 1)
    around_the_job(monkeypatch, lambda: topic.make_again(10, count), nothing)
    with pytest.raises(TriplewireError, match=ANOTHER):
        topic.stream()
    assert topic.matched() == [0, 1, 2]


@pytest.mark.parametrize("count", [3, 1], ids=["as many records", "fewer records"])
def test_made_again_under_a_stream_that_waits(topic: Topic, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(structured, "_LOOK", 0.1)
    topic.name += f"-{count}"
    topic.send(0, 3)
    with pytest.raises(TriplewireError, match=ANOTHER):
        topic.stream(of_stream={"watch": 0.2}, on_batch=lambda summary: topic.make_again(3, count))
    assert topic.matched() == [0, 1, 2]


def test_deleted_under_a_stream_that_waits(topic: Topic) -> None:
    topic.send(0, 3)
    with pytest.raises(TriplewireError, match=f"there is no such topic|{ANOTHER}"):  # brokers may make it again
        topic.stream(of_stream={"watch": 0.2}, on_batch=lambda summary: topic.delete())
    assert topic.matched() == [0, 1, 2]


def test_records_that_are_deleted_before_they_are_read(topic: Topic) -> None:
    topic.send(0, 2)
    assert topic.stream() == [0, 1]
    topic.send(2, 10)
    topic.trim(7)
    with pytest.raises(TriplewireError):  # this session cannot tell why: it got the connector after its start
        topic.stream()
    assert topic.matched() == [0, 1]
    topic.settings["failOnDataLoss"] = "False"
    assert topic.stream() == [0, 1, 7, 8, 9, 10, 11]
    place = f"kafka:{topic.name}/0"
    refused = {(refusal.subject, refusal.where, refusal.reason) for refusal in dead_letters_in(topic.out)}
    where, reason = (
        f"kafka://{topic.brokers}/{topic.name}",
        "these records were deleted from the topic before they were read",
    )
    assert refused == {(f"{place}/2-5", where, reason), (f"{place}/6-6", where, reason)}


def test_records_that_are_deleted_while_they_are_read(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    topic.settings["failOnDataLoss"] = "false"
    topic.send(0, 3)
    around_the_job(monkeypatch, nothing, lambda: topic.trim(2))
    assert topic.stream() == [0, 1, 2]
    (refusal,) = dead_letters_in(topic.out)
    assert refusal.subject == f"kafka:{topic.name}/0/0-1"
    assert refusal.reason.endswith("while they were read, and may not have been")
