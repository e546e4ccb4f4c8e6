"""Matches and dead letters in every sink, once and when a micro-batch is repeated. Kills: `test_killed.py`."""

from __future__ import annotations

import base64
import hmac
import json
import shutil
import sqlite3
import threading
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds
import pytest

from pipeline.connect.received import in_kafka, in_postgres, in_sqlite
from pipeline.connect.servers import PASSWORD, Receiver, free_port
from pipeline.runs import dead_letters_in, run
from triplewire.engine import Engine
from triplewire.errors import TriplewireError
from triplewire.net.addresses import Connections, address
from triplewire.notify.rows import LETTER, MATCH, TABLES, Part
from triplewire.pipeline.connect import databases as jdbc
from triplewire.pipeline.connect.databases import options
from triplewire.pipeline.connect.delivery import Delivery, sink
from triplewire.pipeline.connect.sink_rows import COLUMNS, rows_of
from triplewire.pipeline.filter import Calling
from triplewire.pipeline.output import last_batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

GRAPHS = 5
QUADS = "".join(f'<urn:s> <urn:p> "{n}" <urn:g{n}> .\n' for n in range(GRAPHS)) + "no quad\n"
NUL = '<urn:s> <urn:p> "before\\u0000after" <urn:nul> .\n'


def engine() -> Engine:
    made = Engine(matcher="reference")
    made.subscribe("SELECT ?o WHERE { ?s <urn:p> ?o }", id="any")
    made.subscribe("CONSTRUCT { ?s <urn:q> ?o } WHERE { ?s <urn:p> ?o }", id="größe 'quoted'")
    return made


def delivery(connections: Connections, matches: list[str], letters: list[str]) -> Delivery:
    return Delivery(
        [sink(address(text, connections), MATCH) for text in matches],
        [sink(address(text, connections), LETTER) for text in letters],
    )


def repeat_last(out: Path) -> None:
    """Make the output folder forget that the micro-batch was committed: its sinks have it."""
    last = last_batch(out / "matches")
    for kind in ("matches", "dead-letter"):
        shutil.rmtree(out / kind / f"batch={last}")


Rows = list[dict[str, Any]]
PAIR = ("publication", "subscription", "content", "revision")


def pairs(rows: Rows) -> set[tuple[str, ...]]:
    return {tuple(row[name] for name in PAIR) for row in rows}


def check_tables(tables: list[Rows], wanted: set[tuple[str, ...]]) -> tuple[str, set[str]]:
    """Each table has what is wanted, once; returns the stream, and the identities."""
    for rows in tables:
        assert len(rows) == len(wanted)
        assert pairs(rows) == wanted
        assert {row["identity"]: row["why"] for row in rows} == {row["identity"]: row["why"] for row in tables[0]}
    graphs = [row["construct"] for row in tables[1] if row["construct"]]
    assert any("before\ufffdafter" in graph or "\\u0000" in graph for graph in graphs)
    ((stream, batch),) = {(row["stream"], row["batch"]) for rows in tables for row in rows}
    assert batch == 0
    return stream, {row["identity"] for row in tables[0]}


def check_records(
    records: list[tuple[str, dict[str, Any], dict[str, str]]], stream: str, times: dict[str, int]
) -> None:
    """The topic has each identity so many times, under its name."""
    assert Counter(key for key, _, _ in records) == times
    for key, value, headers in records:
        assert headers == {"stream": stream, "batch": "0", "identity": key}
        assert value["identity"] == key
        assert isinstance(value["bindings"], list)


def test_every_sink_has_each_row(
    linked: SparkSession, postgres: str, kafka: str, receiver: Receiver, secrets_file: Path, tmp_path: Path
) -> None:
    source, out, database = tmp_path / "in", tmp_path / "out", tmp_path / "found.sqlite"
    source.mkdir()
    (source / "a.nq").write_text(QUADS)
    (source / "nul.nq").write_text(NUL)
    connections = Connections.read(secrets_file)
    matches = [f"sqlite:{database}", f"{postgres}#found", f"kafka://{kafka}/found", receiver.url]
    letters = [f"sqlite:{database}", f"{postgres}#refused", f"kafka://{kafka}/refused"]
    for times in (1, 2):
        targets = delivery(connections, matches, letters)
        asked = Calling(why=True)
        summary, said = run(linked, source, engine(), out, streaming=True, delivery=targets, calling=asked)
        rows = ds.dataset(out / "matches", partitioning="hive").to_table().to_pylist()
        assert all(json.loads(row["why"])[0].startswith("<urn:s> <urn:p> ") for row in rows)
        wanted = pairs(rows)
        assert (len(wanted), summary.matches, len(said)) == (2 * (GRAPHS + 1), len(wanted), 1)

        tables = [in_sqlite(database, "matches"), in_postgres(linked, connections, postgres, "found")]
        stream, identities = check_tables(tables, wanted)
        records = in_kafka(linked, kafka, "found")
        check_records(records, stream, dict.fromkeys(identities, times))
        reasons = {row["identity"]: json.loads(row["why"]) for row in tables[0]}
        posts = [json.loads(body) for _, body in receiver.requests]
        for each in (*(value for _, value, _ in records), *posts):
            assert each["why"] == reasons[each["identity"]]
        posted = Counter(headers["idempotency-key"] for headers, _ in receiver.requests)
        assert posted == {f"{stream}-0-{identity}": times for identity in identities}

        (letter,) = dead_letters_in(out)
        for rows in (in_sqlite(database, "dead_letters"), in_postgres(linked, connections, postgres, "refused")):
            ((subject, reason),) = [(row["subject"], row["reason"]) for row in rows]
            assert (subject, reason) == (letter.subject, letter.reason)
        refused = in_kafka(linked, kafka, "refused")
        assert [value["reason"] for _, value, _ in refused] == [letter.reason] * times
        repeat_last(out)

    for file in out.rglob("*"):
        assert not file.is_file() or PASSWORD.encode() not in file.read_bytes(), file


def test_files_that_change_before_the_repeat(
    spark: SparkSession, receiver: Receiver, secrets_file: Path, tmp_path: Path
) -> None:
    """A sink failed, so a micro-batch is repeated: it reads its files as they are now, and tells each match once."""
    source, out, database = tmp_path / "in", tmp_path / "out", tmp_path / "found.sqlite"
    source.mkdir()
    connections = Connections.read(secrets_file)

    def start(*names: str) -> list[str]:
        for name, texts in zip(("a.nq", "b.nq"), names, strict=False):
            (source / name).write_text("".join(f'<urn:s> <urn:p> "{text}" <urn:{text}> .\n' for text in texts))
        targets = delivery(connections, [f"sqlite:{database}", receiver.url], [])
        run(spark, source, engine(), out, streaming=True, delivery=targets)
        return sorted(row["publication"] for row in in_sqlite(database, "matches"))

    receiver.answers = [(404, {})] * 8
    with pytest.raises(TriplewireError, match="nothing is lost"):
        start("1", "2")
    receiver.answers.clear()
    receiver.requests.clear()
    wanted = [f"urn:{text}" for text in "2233"]  # two subscriptions
    assert start("3") == wanted
    table = ds.dataset(out / "matches", partitioning="hive").to_table()
    assert sorted(table["publication"].to_pylist()) == wanted
    assert sorted(json.loads(body)["publication"] for _, body in receiver.requests) == wanted
    assert last_batch(out / "matches") == 0


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_instants_are_those_of_utc(spark: SparkSession, zone: str) -> None:
    instants = ["2026-03-29T02:30:00.000005Z", "2026-03-29T01:30:00.120000Z", "2026-10-25T00:30:00.000000Z"]
    given = spark.createDataFrame([(text,) for text in instants], "publication string")
    others = [f"'' AS `{name}`" for name in COLUMNS[MATCH] if name not in ("publication", "matched_at")]
    before = str(spark.conf.get("spark.sql.session.timeZone"))
    spark.conf.set("spark.sql.session.timeZone", zone)  # in Berlin, clocks are set forward and back in these nights
    try:
        rows = rows_of(given.selectExpr("publication", *others, "to_timestamp(publication) AS matched_at"), MATCH)
        shown = {row.publication: row.matched_at for row in rows.collect()}
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert shown == dict(zip(instants, instants, strict=True))


def test_a_batch_run_replaces_what_it_delivered(
    linked: SparkSession, postgres: str, secrets_file: Path, tmp_path: Path
) -> None:
    source, database = tmp_path / "in", tmp_path / "found.sqlite"
    source.mkdir()
    connections = Connections.read(secrets_file)
    for count in (3, 2):
        (source / "a.nq").write_text("".join(f'<urn:s> <urn:p> "{n}" <urn:g{n}> .\n' for n in range(count)))
        targets = delivery(connections, [f"sqlite:{database}", f"{postgres}#replaced"], [])
        run(linked, source, engine(), tmp_path / "out", delivery=targets)
        for rows in (in_sqlite(database, "matches"), in_postgres(linked, connections, postgres, "replaced")):
            assert {row["publication"] for row in rows} == {f"urn:g{n}" for n in range(count)}


def test_what_is_missing_is_told_before_anything_is_read(
    linked: SparkSession, postgres: str, secrets_file: Path, tmp_path: Path
) -> None:
    connections = Connections.read(secrets_file)
    with closing(sqlite3.connect(tmp_path / "other.sqlite")) as connection:
        connection.execute("CREATE TABLE matches (mine TEXT)")
    wrong = {
        f"sqlite:{tmp_path}/other.sqlite": "has no column named",
        f"{postgres}_absent": "does not exist",
        "jdbc:h2:mem:x": "No suitable driver",
    }
    types = {**dict.fromkeys(TABLES[MATCH], "string"), "batch": "long", "truncated": "boolean", "bindings": "int"}
    other_types = ", ".join(f"`{name}` {type_}" for name, type_ in types.items())
    given = options(address(postgres, connections), dbtable="other_types")
    linked.createDataFrame([], other_types).write.format("jdbc").options(**given).save()
    wrong |= {
        f"{postgres}#other_types": 'column "bindings" is of type integer but',
        f"kafka://127.0.0.1:{free_port()}/found": "no broker answers",
    }
    quick = {"kafka://127.0.0.1": {"default.api.timeout.ms": "2000", "request.timeout.ms": "1000"}}
    connections = Connections({**connections.tables, **quick})
    for text, what in wrong.items():
        with pytest.raises(TriplewireError, match=what) as raised:
            sink(address(text, connections), MATCH).check(linked, "0a")
        assert PASSWORD not in str(raised.value)
    names = in_postgres(linked, connections, postgres, "information_schema.tables")
    assert not [row["table_name"] for row in names if "staging" in row["table_name"]]
    stranger = sink(address(postgres, Connections({postgres: {"user": "test", "password": "wrong"}})), MATCH)
    with pytest.raises(TriplewireError, match="password authentication failed"):
        stranger.check(linked, "0a")
    with jdbc._connection(linked, address(f"{postgres}#unread", connections)) as (statement, quoted):
        columns = ", ".join(f"{quoted(name)} {type_}" for name, type_ in TABLES[MATCH].items())
        statement(f"CREATE TABLE unread ({columns}); CREATE ROLE writer LOGIN PASSWORD 'other'")
        statement("GRANT INSERT, DELETE ON unread TO writer")
    writer = sink(
        address(f"{postgres}#unread", Connections({postgres: {"user": "writer", "password": "other"}})), MATCH
    )
    with pytest.raises(TriplewireError, match="permission denied for table unread"):
        writer.check(linked, "0a")


def test_what_a_webhook_answers(spark: SparkSession, receiver: Receiver, secrets_file: Path) -> None:
    letters = [
        {"kind": "publication", "subject": f"urn:{n}", "where": "", "reason": "\u2028 '\"", "remedy": ""}
        for n in range(3)
    ]
    rows = rows_of(spark.createDataFrame(letters), LETTER).persist()  # type: ignore[type-var]  # dicts are rows
    target, part = sink(address(receiver.url, Connections.read(secrets_file)), LETTER), Part("s", 7, LETTER)

    receiver.answers = [(503, {}), (429, {"Retry-After": "1"}), (422, {})]
    begun = time.monotonic()
    refused = target.deliver(rows, part)
    assert time.monotonic() - begun >= 1
    assert [(refusal.kind, refusal.subject[:4]) for refusal in refused] == [("delivery", "s-7-")]
    assert "422" in refused[0].reason
    posted = Counter(headers["idempotency-key"] for headers, _ in receiver.requests)
    assert (len(posted), sum(posted.values())) == (3, 5)

    for headers, body in receiver.requests:
        assert json.loads(body)["subject"].startswith("urn:")
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        wanted = base64.b64encode(hmac.digest(b"secret secret", signed, "sha256")).decode()
        assert headers["webhook-signature"] == f"v1,{wanted}"

    # what is taken is taken, however the answer goes on
    receiver.requests.clear()
    receiver.body, receiver.answers = b"x" * 100_000, [(200, {"Content-Length": "100009", "Connection": "close"})]
    assert target.deliver(rows, part) == []
    assert len(receiver.requests) == 3
    receiver.body = b""

    for answers in ([(404, {})], [(301, {"Location": receiver.url})], [(500, {})] * 9):
        receiver.answers = answers
        with pytest.raises(TriplewireError, match="nothing is lost"):
            target.deliver(rows, part)
    own_network = sink(address(receiver.url, Connections({receiver.url: {"attempts": "1"}})), LETTER)
    with pytest.raises(TriplewireError, match="private address"):
        own_network.deliver(rows, part)
    with pytest.raises(TriplewireError, match="unknown"):
        sink(address(receiver.url, Connections({receiver.url: {"token": "x"}})), LETTER)
    with pytest.raises(TriplewireError, match="header"):
        sink(address(receiver.url, Connections({receiver.url: {"authorization": "x\n"}})), LETTER)

    receiver.answers = [(503, {"Retry-After": "300"})] * 9
    receiver.requests.clear()

    def stop_once_asked() -> None:
        while not receiver.requests:
            time.sleep(0.01)
        part.stop.set()  # nobody waits for the attempts

    threading.Thread(target=stop_once_asked, daemon=True).start()
    for count in (1, 0):
        with pytest.raises(TriplewireError, match="it answers 503" if count else "the run was ended"):
            target.deliver(rows, part)
        assert len(receiver.requests) >= count
        receiver.requests.clear()
