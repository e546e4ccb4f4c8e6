"""Databases that do not answer, and rows and texts that are long: what a stream holds, and how long it waits."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.dataset as ds
import pytest
from py4j.protocol import Py4JJavaError

from pipeline.connect.received import in_postgres, in_sqlite
from pipeline.runs import run
from triplewire.engine import Engine
from triplewire.errors import TriplewireError
from triplewire.net.addresses import Connections, address
from triplewire.notify.rows import MATCH, Part
from triplewire.pipeline.connect import databases as jdbc
from triplewire.pipeline.connect import delivery
from triplewire.pipeline.connect.databases import fetched
from triplewire.pipeline.connect.delivery import Delivery, sink
from triplewire.pipeline.connect.sink_rows import SCHEMAS, rows_of
from triplewire.pipeline.rows import columns_of
from triplewire.pipeline.written import text_bytes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]


def test_a_lock_of_another_program(
    linked: SparkSession, postgres: str, secrets_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = address(f"{postgres}#locked", Connections.read(secrets_file))
    found = sink(target, MATCH)
    found.check(linked, "0a")
    none = rows_of(linked.createDataFrame([], columns_of(SCHEMAS[MATCH])), MATCH)
    with jdbc._connection(linked, target, commit=False) as (other, _):
        other("LOCK TABLE locked IN ACCESS EXCLUSIVE MODE")
        monkeypatch.setattr(jdbc, "_PATIENCE", "SET lock_timeout = '1s'")
        for wait in (lambda: found.deliver(none, Part("a", 0, MATCH)), lambda: found.check(linked, "0a")):
            with pytest.raises(TriplewireError, match="canceling statement due to lock timeout"):
                wait()
        monkeypatch.setattr(jdbc, "_PATIENCE", "SET lock_timeout = '300s'")
        for ended in (
            lambda stop: found.deliver(none, Part("a", 0, MATCH, stop=stop)),
            lambda stop: found.check(linked, "0a", stop),
        ):
            stop, begun = threading.Event(), time.monotonic()
            threading.Timer(2, stop.set).start()
            with pytest.raises(TriplewireError, match="the database cannot be used"):
                ended(stop)
            assert stop.is_set()
            assert time.monotonic() - begun < 60
    assert found.deliver(none, Part("a", 0, MATCH)) == []


def test_a_locked_table_of_subscriptions(
    linked: SparkSession, postgres: str, secrets_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Locked before its columns are asked for, or between that and its rows."""
    target = address(f"{postgres}#waiting", Connections.read(secrets_file))
    monkeypatch.setattr(jdbc, "_PATIENCE", "SET lock_timeout = '1s'")
    with jdbc._connection(linked, target) as (statement, _):
        statement("CREATE TABLE waiting (id TEXT, language TEXT, query TEXT)")
    reader = linked.read.format("jdbc").options(**jdbc.options_of_reading(target, dbtable="waiting")).load()
    with jdbc._connection(linked, target, commit=False) as (other, _):
        other("LOCK TABLE waiting IN ACCESS EXCLUSIVE MODE")
        other("SET LOCAL idle_in_transaction_session_timeout = '60s'")  # else a wait without end holds the test, too
        with pytest.raises(TriplewireError, match="canceling statement due to lock timeout"):
            fetched(target, tmp_path / "rows", lambda: linked, 1_000)
        with pytest.raises(Py4JJavaError, match="Job aborted"):
            reader.collect()
    assert fetched(target, tmp_path / "rows", lambda: linked, 1_000)


def test_long_rows_come_a_few_at_a_time(
    linked: SparkSession, postgres: str, secrets_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with rows of megabytes: here the memory for them is small."""
    engine, connections = Engine(matcher="reference"), Connections.read(secrets_file)
    for number in range(3):
        engine.subscribe("SELECT ?o WHERE { ?s <urn:p> ?o }", id=str(number))
    (tmp_path / "a.nq").write_text("".join(f'<urn:s> <urn:p> "{n} {"x" * 4_000}" <urn:g{n}> .\n' for n in range(8)))
    monkeypatch.setattr(delivery, "AT_ONCE", 10_000)
    monkeypatch.setattr("triplewire.notify.rows.AT_ONCE", 10_000)
    given: list[tuple[int, Part]] = []
    deliver = jdbc.JdbcSink.deliver

    def noted(self: jdbc.JdbcSink, rows: object, part: Part) -> object:
        given.append((rows.rdd.getNumPartitions(), part))  # type: ignore[attr-defined]  # a data frame
        return deliver(self, rows, part)  # type: ignore[arg-type]  # as above

    targets = [sink(address(text, connections), MATCH) for text in (f"sqlite:{tmp_path}/db", f"{postgres}#long")]
    monkeypatch.setattr(jdbc.JdbcSink, "deliver", noted)
    run(linked, tmp_path / "a.nq", engine, tmp_path / "out", delivery=Delivery(targets))
    told = ds.dataset(tmp_path / "out" / "matches").to_table(columns=["publication", "subscription", "bindings"])
    wanted = sorted(tuple(row.values()) for row in told.to_pylist())
    size = sum(text_bytes(file) for file in (tmp_path / "out").rglob("matches/**/*.parquet"))
    assert size == sum(len(row[2]) for row in wanted) > 24 * 4_000
    ((partitions, part),) = [entry for entry in given if entry[1].stream == delivery.stream_of(tmp_path / "out")]
    assert partitions == size // 10_000 + 1
    assert part.rows_at_once(1_000) == 10_000 // (size // 24)
    for rows in (in_sqlite(tmp_path / "db", "matches"), in_postgres(linked, connections, postgres, "long")):
        assert sorted((row["publication"], row["subscription"], row["bindings"]) for row in rows) == wanted
