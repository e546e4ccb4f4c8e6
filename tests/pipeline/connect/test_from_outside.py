"""What comes from elsewhere: records of Kafka, polled feeds, data frames; subscriptions from tables of databases."""

from __future__ import annotations

import http.server
import json
import os
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from pipeline.connect.received import in_sqlite
from pipeline.connect.servers import free_port
from pipeline.runs import dead_letters_in, run
from triplewire.cli import run as command
from triplewire.engine import Engine
from triplewire.errors import ReadError, TriplewireError
from triplewire.net.addresses import Connections, address
from triplewire.notify.rows import LETTER
from triplewire.pipeline import publications
from triplewire.pipeline.connect import databases as jdbc
from triplewire.pipeline.connect.databases import fetched, options
from triplewire.pipeline.connect.delivery import Delivery, sink
from triplewire.pipeline.connect.documents import prune, read_files
from triplewire.pipeline.index.versions import load
from triplewire.pipeline.rows import PUBLICATION_ROWS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

RSS = (
    "<rss version='2.0'><channel><title>t</title><link>https://a.example/</link><description>d</description>"
    "<item><guid isPermaLink='false'>1</guid><title>Puffins</title></item></channel></rss>"
)


Record: TypeAlias = "tuple[bytes, dict[str, str], str | None]"  # key, headers, value


def packed() -> Engine:
    engine = Engine(matcher="reference")
    engine.subscribe("ASK { ?s ?p ?o }", id="any")
    return engine


def matched(out: Path) -> list[str]:
    return sorted(ds.dataset(out / "matches", partitioning="hive").to_table()["publication"].to_pylist())


def sent(spark: SparkSession, broker: str, topic: str, rows: list[Record]) -> None:
    frame = spark.createDataFrame(rows, "key binary, named map<string, string>, value string").selectExpr(
        "key",
        "value",
        "if(size(named) = 0, NULL, transform(map_entries(named), "
        "h -> struct(h.key AS key, CAST(h.value AS binary) AS value))) AS headers",
    )
    frame.coalesce(1).write.format("kafka").option("kafka.bootstrap.servers", broker).option("topic", topic).save()


def test_records_of_kafka(linked: SparkSession, kafka: str, secrets_file: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.ttl").write_text("<urn:secret> <urn:p> 'not to be read' .")
    triple = "<urn:s> <urn:p> '{}' ."
    records: list[Record] = [
        (b"item 1", {}, triple.format("a plain key")),
        (b"ignored", {"trace": "x", "id": "urn:of-the-header"}, triple.format("an id in a header")),
        (b"other headers", {"trace": "x"}, triple.format("a key beside headers")),
        (b"\xfe", {}, triple.format("a key that is no text")),
        (b"\xff", {}, triple.format("a key that is no text")),
        (b"", {}, '<urn:s> <urn:p> "of a graph" <urn:graph> .\n'),
        (f"file:{tmp_path}/secret.ttl".encode(), {}, triple.format("a file is a name only")),
        (b"tombstone", {}, None),
        (b"nothing", {}, ""),
        (b"broken", {}, "<urn:s> <urn:p> "),
        (b"feed", {}, RSS),
    ]

    def send(rows: list[Record]) -> None:
        sent(linked, kafka, "documents", rows)

    send(records)
    connections, source, out = Connections.read(secrets_file), f"kafka://{kafka}/documents", tmp_path / "out"
    run(linked, source, packed(), out, streaming=True, connections=connections)  # type: ignore[arg-type]  # a URL
    names = matched(out)
    ids = [f"urn:triplewire:id:{text}" for text in ("item%201", "other%20headers", "%FE", "%FF")]
    ids += ["1", "urn:graph", "urn:of-the-header"]  # "1" is the item of the feed
    assert names == sorted([*ids, f"file://{tmp_path}/secret.ttl"])
    refused = dead_letters_in(out)
    assert [refusal.where.startswith("kafka:documents/") for refusal in refused] == [True, True, True]
    assert {"the message has no value", "the message is empty"} < {refusal.reason for refusal in refused}
    assert "not to be read" not in str(ds.dataset(out / "matches", partitioning="hive").to_table().to_pylist())

    sent(linked, kafka, "other", [(b"", {}, "")])
    other = f"kafka://{kafka}/other"  # the offsets of a topic say nothing of another one
    with pytest.raises(TriplewireError, match="reads the topic documents of Kafka, and this one reads the topic other"):
        run(linked, other, packed(), out, streaming=True, connections=connections)  # type: ignore[arg-type]  # a URL

    send([(b"later", {}, triple.format("later"))])
    summary, _ = run(linked, source, packed(), out, streaming=True, connections=connections)  # type: ignore[arg-type]  # a URL
    assert summary.publications == 1
    assert set(matched(out)) - set(names) == {"urn:triplewire:id:later"}


def test_a_topic_that_cannot_be_reached(linked: SparkSession, kafka: str, tmp_path: Path) -> None:
    connections = Connections({"kafka:": {"default.api.timeout.ms": "2000", "request.timeout.ms": "1000"}})
    wrong = {f"kafka://{kafka}/absent": "there is no such topic", f"kafka://127.0.0.1:{free_port()}/x": "no broker"}
    for source, what in wrong.items():
        for streaming in (False, True):
            with pytest.raises(TriplewireError, match=what):
                run(linked, source, packed(), tmp_path / "out", streaming=streaming, connections=connections)


@pytest.fixture
def web() -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/feed" else 404)
            self.end_headers()
            self.wfile.write(RSS.encode() if self.path == "/feed" else b"")

        def log_message(self, *_: object) -> None:
            """Nothing on standard error."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_polled_feeds(spark: SparkSession, web: str, secrets_file: Path, tmp_path: Path) -> None:
    feeds, out = tmp_path / "mine.feeds", tmp_path / "out [x]"
    feeds.write_text(f"{web}/feed\n{web}/absent\nno address\n")
    connections = Connections.read(secrets_file)
    letters = sink(address(f"sqlite:{tmp_path}/letters.sqlite"), LETTER)
    targets = Delivery(letters=[letters])
    summary, said = run(spark, feeds, packed(), out, streaming=True, connections=connections, delivery=targets)
    assert (summary.publications, summary.matches) == (1, 1)
    assert sorted(refusal.reason.partition(":")[0] for refusal in said) == [
        "the feed cannot be asked",
        "the feed's server answers 404",
    ]
    assert {refusal.where for refusal in dead_letters_in(out)} == {f"{web}/absent", str(feeds)}
    delivered = in_sqlite(tmp_path / "letters.sqlite", "dead_letters")
    assert {row["where"]: row["batch"] for row in delivered} == {f"{web}/absent": 0, str(feeds): -1}
    rows = publications(spark, f"inbox:{out}/_inbox/documents").where("refusal IS NULL").collect()
    assert [row.source for row in rows] == [f"{web}/feed"]
    with pytest.raises(ReadError, match="polled by a stream"):
        publications(spark, feeds)

    # the driver died after the commit and before Spark knew of it: the micro-batch stays as it is
    written = {file: file.stat().st_mtime_ns for file in (out / "matches").rglob("*.parquet")}
    for name in ("0", ".0.crc"):
        (out / "_checkpoint" / "commits" / name).unlink(missing_ok=True)
    replayed, _ = run(spark, feeds, packed(), out, streaming=True, connections=connections)
    assert (replayed.batches, replayed.publications) == (1, 1), "nothing was replayed: this test is blind"
    assert {file: file.stat().st_mtime_ns for file in (out / "matches").rglob("*.parquet")} == written

    # what was read is removed once it is old; what was not read, and the last file, stay
    inbox = out / "_inbox" / "documents"
    assert read_files(out / "_checkpoint") == {"000000000001.parquet"}
    for number in (2, 3):
        shutil.copy(inbox / "000000000001.parquet", inbox / f"00000000000{number}.parquet")
    assert prune(inbox, out / "_checkpoint", 3600) == 0
    for file in inbox.iterdir():
        os.utime(file, (0, 0))
    again, _ = run(spark, feeds, packed(), out, streaming=True, connections=connections, of_stream={"repeat": True})
    assert again.publications == 2
    assert sorted(file.name[-9] for file in inbox.glob("*.parquet")) == ["2", "3"]
    assert prune(inbox, out / "_checkpoint", 3600) == 1
    assert [file.name for file in inbox.glob("*.parquet")] == ["000000000003.parquet"]
    (out / "_checkpoint" / "offsets" / "1").unlink()
    assert read_files(out / "_checkpoint") == set()


def test_polled_feeds_in_a_folder_of_a_plain_name(
    spark: SparkSession, web: str, secrets_file: Path, tmp_path: Path
) -> None:
    """Spark looks for such a folder when it is told of it, and not for one whose name might be a glob."""
    feeds = tmp_path / "mine.feeds"
    feeds.write_text(f"{web}/feed\n")
    connections = Connections.read(secrets_file)
    summary, said = run(spark, feeds, packed(), tmp_path / "out", streaming=True, connections=connections)
    assert (summary.matches, said) == (1, [])


def test_a_data_frame_gets_the_columns_that_it_does_not_have(spark: SparkSession) -> None:
    given = spark.createDataFrame(
        [("urn:a", [("<urn:s>", "<urn:p>", "<urn:o>")])],
        "id string, triples array<struct<s string, p string, o string>>",
    )
    rows = publications(spark, given)
    assert rows.columns == PUBLICATION_ROWS.names
    (row,) = rows.toArrow().to_pylist()
    assert (row["id"], row["source"], row["triples"]) == (
        "urn:a",
        None,
        [{"s": "<urn:s>", "p": "<urn:p>", "o": "<urn:o>"}],
    )


def test_subscriptions_from_tables(
    linked: SparkSession, postgres: str, secrets_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = options(address(postgres, Connections.read(secrets_file)), dbtable="users_queries")
    rows = [("one", "sparql", "ASK { ?s e:p ?o }", json.dumps({"e": "urn:"})), ("two", "sparql", "ASK {", None)]
    long = "ASK { ?s ?p ?o } #" + "x" * 3_000_000
    rows.append(("long", "sparql", long, None))
    linked.createDataFrame(rows, "id string, language string, query string, prefixes string").write.format(
        "jdbc"
    ).options(**given).save()
    database, out = tmp_path / "mine [1].sqlite", tmp_path / "index"
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE subscriptions (query TEXT, id INTEGER, language TEXT, mine BLOB)")
        connection.executemany("INSERT INTO subscriptions VALUES (?, ?, 'sparql', x'00')", [("ASK { ?s ?p ?o }", 3)])
        connection.execute("INSERT INTO subscriptions (id) VALUES (4)")
        connection.execute("INSERT INTO subscriptions VALUES (?, 5, 'sparql', NULL)", [long])
    (tmp_path / "more.rq").write_text("ASK { ?s ?p 1 }")
    for number, text in enumerate((f"{postgres}#users_queries", f"sqlite:{database}#subscriptions")):
        files = fetched(address(text, Connections.read(secrets_file)), tmp_path / str(number), lambda: linked, 1_000)
        texts = [text for file in files for text in pq.read_table(file)["query"].to_pylist() if text]
        assert max(map(len, texts)) == 1_001, "the database has cut it"
    arguments = ["pipeline", "index", "--subscriptions", f"{postgres}#users_queries"]
    arguments += [
        "--subscriptions",
        f"sqlite:{database}",
        "--subscriptions",
        str(tmp_path / "more.rq"),
        "--connect",
        str(secrets_file),
        "--output",
        str(out),
    ]
    code = command(arguments)
    said = capsys.readouterr().err
    assert code == 1, said
    assert f"{postgres}#users_queries (record " in said
    assert f"sqlite:{database}#subscriptions (record 2)" in said
    assert said.count("the row is longer than 1,572,864 bytes; raise max_query_bytes") == 2
    assert "v1 has 3 subscriptions" in said
    assert said.count("starting Spark") == 1


def test_a_table_that_lacks_a_column_changes_nothing(
    linked: SparkSession, postgres: str, secrets_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """None of its rows can be a subscription: an index without all that were there would be worse than none."""
    database, index, connections = tmp_path / "mine.sqlite", tmp_path / "index", Connections.read(secrets_file)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE subscriptions (id TEXT, language TEXT, query TEXT)")
        connection.execute("INSERT INTO subscriptions VALUES ('any', 'sparql', 'ASK { ?s ?p ?o }')")
        arguments = ["pipeline", "index", "--subscriptions", f"sqlite:{database}", "--output", str(index)]
        connection.commit()
        assert command(arguments) == 0
        connection.execute("ALTER TABLE subscriptions RENAME COLUMN query TO text")
        connection.commit()
    assert command(arguments) == 2
    said = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert "the table has no column query, only id, language, text; columns: id, language, query, prefixes" in said
    assert (load(index).name, load(index).content.subscriptions) == ("v1", 1)
    lacking = address(f"{postgres}#lacking", connections)
    with jdbc._connection(linked, lacking) as (statement, _):
        statement('CREATE TABLE lacking (id TEXT, "Language" TEXT, base TEXT)')
    with pytest.raises(TriplewireError, match="no column language and no column query, only id, Language, base"):
        fetched(lacking, tmp_path / "rows", lambda: linked, 1_000)
