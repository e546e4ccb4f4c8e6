"""Sinks: what they refuse before the work begins, several threads at once, and what a receiver will not take."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipeline.connect.received import in_postgres, in_sqlite
from pipeline.connect.servers import Receiver
from pipeline.runs import dead_letters_in, run
from triplewire.engine import Engine
from triplewire.errors import Refusal, TriplewireError
from triplewire.net.addresses import Connections, address
from triplewire.notify.rows import LETTER, MATCH, TABLES
from triplewire.notify.sqlite import SqliteSink
from triplewire.pipeline.connect.databases import options, staging_table
from triplewire.pipeline.connect.delivery import Delivery, sink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

LONGEST = "t" * 63  # characters of a name in PostgreSQL
THREADS, LETTERS = 4, 5


def test_a_staging_table_has_a_name_of_its_own() -> None:
    names = {
        staging_table(table, stream) for table in (LONGEST, LONGEST[1:], f"own.{LONGEST}") for stream in ("0a", "0b")
    }
    assert len(names) == 6
    assert all(len(name.removeprefix("own.")) <= 63 for name in names)
    assert sum(name.startswith("own.") for name in names) == 2


@pytest.mark.parametrize(
    ("key", "what"), [("", "ON CONFLICT"), (", UNIQUE (batch, stream, identity)", ""), (", other TEXT", "ON CONFLICT")]
)
def test_a_table_of_sqlite_needs_its_key(tmp_path: Path, key: str, what: str) -> None:
    with closing(sqlite3.connect(tmp_path / "own.db")) as connection, connection:
        columns = ", ".join(f"[{name}] TEXT" for name in TABLES[MATCH])
        connection.execute(f"CREATE TABLE matches ({columns}{key})")
    own = SqliteSink(address(f"sqlite:{tmp_path}/own.db#matches"), MATCH)
    if not what:
        own.check("0a")
        return
    with pytest.raises(TriplewireError, match=what):
        own.check("0a")


@pytest.mark.parametrize("size", ["large", "-1", "1000"])
def test_a_size_of_kafka_that_is_wrong(size: str) -> None:
    connections = Connections({"kafka://h:1/": {"max.request.size": size}})
    with pytest.raises(TriplewireError, match=r"max\.request\.size is no number"):
        sink(address("kafka://h:1/topic", connections), MATCH)


@pytest.mark.slow
def test_several_threads_deliver_at_once(
    linked: SparkSession, postgres: str, secrets_file: Path, tmp_path: Path
) -> None:
    """A stream refuses files in one thread while another delivers a micro-batch; the name of the table is as long as
    PostgreSQL has them."""
    connections = Connections.read(secrets_file)
    # a start that was killed left its table
    left = options(address(postgres, connections), dbtable=staging_table(LONGEST, "0a-check"))
    linked.createDataFrame([], "number int").write.format("jdbc").options(**left).save()
    given = Delivery(letters=[sink(address(f"{postgres}#{LONGEST}", connections), LETTER)], stream="0a")
    given.open(linked, tmp_path)

    def deliver(thread: int) -> list[Refusal]:
        return given.refused([Refusal("publication", f"{thread}.{n}", "", "wrong") for n in range(LETTERS)], -thread)

    thread = linked._jvm.java.lang.Thread  # type: ignore[union-attr]  # a session has a JVM
    loader = thread.currentThread().getContextClassLoader()  # jars that were added are in that of this thread

    def begin() -> None:
        thread.currentThread().setContextClassLoader(loader)

    with ThreadPoolExecutor(THREADS, initializer=begin) as pool:
        assert list(pool.map(deliver, range(THREADS))) == [[]] * THREADS
    rows = in_postgres(linked, connections, postgres, LONGEST)
    assert {(row["batch"], row["subject"]) for row in rows} == {
        (-thread, f"{thread}.{n}") for thread in range(THREADS) for n in range(LETTERS)
    }
    names = in_postgres(linked, connections, postgres, "information_schema.tables")
    assert not [row["table_name"] for row in names if "staging" in row["table_name"]]


@pytest.mark.slow
def test_what_a_receiver_will_not_take_is_a_dead_letter_everywhere(
    spark: SparkSession, receiver: Receiver, secrets_file: Path, tmp_path: Path
) -> None:
    engine, connections, out = Engine(matcher="reference"), Connections.read(secrets_file), tmp_path / "out"
    engine.subscribe("ASK { ?s ?p ?o }", id="any")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.nt").write_text("<urn:s> <urn:p> <urn:o> .\n")
    (tmp_path / "in" / "_b.nt").write_text("<urn:s> <urn:p> <urn:o> .\n")
    # the first is that of the start: the file with a name that a stream passes over
    receiver.answers += [(200, {}), (422, {})]
    letters = [sink(address(text, connections), LETTER) for text in (f"sqlite:{tmp_path}/d.db", receiver.url)]
    delivery = Delivery([sink(address(f"{receiver.url}?token=hidden", connections), MATCH)], letters)
    summary, said = run(spark, tmp_path / "in", engine, out, streaming=True, delivery=delivery)
    assert (summary.matches, summary.refused) == (1, 2)
    kinds = ["delivery", "publication"]
    assert sorted(refusal.kind for refusal in said) == kinds
    assert sorted(refusal.kind for refusal in dead_letters_in(out)) == kinds
    assert sorted(row["kind"] for row in in_sqlite(tmp_path / "d.db", "dead_letters")) == kinds
    assert [b'"kind":"delivery"' in body for _, body in receiver.requests] == [False, False, True]
    assert "hidden" not in str(dead_letters_in(out))
