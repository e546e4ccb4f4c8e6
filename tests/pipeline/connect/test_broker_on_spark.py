"""Beyond one machine: Spark matches what a broker accepts and what a topic brings.

It does so by the index that the broker keeps, and the broker tells each match once. Without Spark:
`tests/broker/test_scale_out.py`.
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from pipeline.connect.servers import PASSWORD
from pipeline.connect.test_delivery import delivery, repeat_last
from pipeline.connect.test_from_outside import RSS, sent
from triplewire.broker.broker import Broker, Wanted
from triplewire.broker.scale_out.from_pipeline import Outside
from triplewire.net.addresses import Connections
from triplewire.pipeline.index.pins import IndexSource
from triplewire.pipeline.output import Output
from triplewire.pipeline.run import PipelineRun
from triplewire.read import read
from waiting import until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

QUERY = 'SELECT ?title { ?item rss:title ?title FILTER ftcontains(?title, "puffin*") }'


@pytest.mark.parametrize("told_by", ["table", "topic"])
def test_spark_matches_for_a_broker(
    told_by: str, linked: SparkSession, postgres: str, kafka: str, secrets_file: Path, tmp_path: Path
) -> None:
    name = f"t{uuid.uuid4().hex}"
    server = postgres.replace("jdbc:postgresql://", f"postgresql://test:{PASSWORD}@")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    database = f"{server.rpartition('/')[0]}/{name}"
    topic = f"kafka://{kafka}/{name}"
    to = topic if told_by == "topic" else f"{postgres.rpartition('/')[0]}/{name}#matches"
    matches = topic if told_by == "topic" else f"{database}#matches"
    index, inbox, connections = tmp_path / "index", tmp_path / "inbox", Connections.read(secrets_file)

    def run(source: str, out: Path) -> None:
        output = Output(out)
        output.prepare(Path(source), True)
        from_index = IndexSource(index, output.folder)
        given = {"delivery": delivery(connections, [to], []), "connections": connections}
        try:
            PipelineRun(source, from_index, output, on_refusal=lambda refusal: None, **given).stream(linked, settle=0.0)  # type: ignore[arg-type]  # tests' own options
        finally:
            output.release()

    with Broker.open(database, b"secret", outside=Outside(index, inbox, matches)) as broker:
        broker.subscribe(Wanted(QUERY, id="puffins"), "ann")
        until(lambda: (index / "v2").exists())
        (first,) = broker.publish(read(RSS.replace("<guid isPermaLink='false'>1", "<guid>http://a.example/0").encode()))
        sent(linked, kafka, f"news{name}", [(b"feed", {}, RSS)])
        until(lambda: list(inbox.glob("[!.]*.nq")))
        run(str(inbox), tmp_path / "out-inbox")
        run(f"kafka://{kafka}/news{name}", tmp_path / "out-topic")
        assert broker.wait([first.number], 300) == {first.number: 1}
        until(lambda: len(broker.events("ann", 0)) == 2)
        repeat_last(tmp_path / "out-topic")
        run(f"kafka://{kafka}/news{name}", tmp_path / "out-topic")
        broker.subscribe(Wanted(QUERY, id="later"), "ann")
        until(lambda: (index / "v3").exists())
        sent(linked, kafka, f"news{name}", [(b"feed", {}, RSS.replace(">1<", ">2<"))])
        run(f"kafka://{kafka}/news{name}", tmp_path / "out-topic")
        until(lambda: len(broker.events("ann", 0)) == 4)
        told = sorted((event.id, event.publication) for event in broker.events("ann", 0))
    assert told == [("later", "2"), ("puffins", "1"), ("puffins", "2"), ("puffins", "http://a.example/0")]
