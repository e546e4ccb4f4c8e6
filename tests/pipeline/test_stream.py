"""Streams: what is told once, what is read when, and what is said of the rest."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.dataset as ds
import pytest
from runs import EXAMPLES, dead_letters_in, index_of, rows_in, run

from triplewire.encode.schema import to_batch
from triplewire.engine import Engine
from triplewire.errors import Refusal, TriplewireError
from triplewire.operators.files import OperatorFile, operators_of
from triplewire.pipeline.jobs import compile_filter, dead_letters, matches, outcomes
from triplewire.pipeline.output import Output
from triplewire.pipeline.run import PipelineRun
from triplewire.pipeline.sources import publications, read_by_stream
from triplewire.read import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

LOG = EXAMPLES / "publications" / "feeds" / "bird-log.atom"


def packed(*queries: str) -> Engine:
    engine = Engine()
    for number, query in enumerate(queries):
        engine.subscribe(query, id=f"q{number}")
    return engine


TITLES = "SELECT ?title { ?item a rss:item ; rss:title ?title }"
ITEMS = LOG.read_text(encoding="utf-8").count("</entry>")  # each has a title


def quads(name: str, *texts: str) -> str:
    return "".join(f'<urn:s> <urn:p> "{text}" <urn:{name}{text}> .\n' for text in texts)


def test_an_item_that_comes_again_is_told_once(spark: SparkSession, tmp_path: Path) -> None:
    source, out = tmp_path / "in [x]", tmp_path / "out {y} [x]"  # characters of globs
    source.mkdir()
    shutil.copy(LOG, source / "monday.atom")
    shutil.copy(LOG, source / "tuesday.atom")
    first, _ = run(spark, source, packed(TITLES), out, streaming=True)
    assert (first.publications, first.matches, first.repeats) == (2 * ITEMS, ITEMS, ITEMS)
    changed = LOG.read_text(encoding="utf-8").replace("<title>", "<title>New: ", 2)  # of the feed, and of an item
    (source / "wednesday.atom").write_text(changed, encoding="utf-8")
    second, _ = run(spark, source, packed(TITLES), out, streaming=True)
    assert second.matches + second.repeats == ITEMS
    assert second.matches >= 1
    rows = rows_in(out)
    assert len(rows) == len({(row[0], row[1], row[5], row[6]) for row in rows}) == ITEMS + second.matches

    # another text of the subscription is another revision, and a new subscription has told nothing
    shutil.copy(LOG, source / "thursday.atom")
    notes: list[str] = []
    other = packed(f"{TITLES} ", "ASK { ?item a rss:item }")
    third, _ = run(spark, source, other, out, streaming=True, on_note=notes.append)
    assert (third.matches, third.repeats) == (2 * ITEMS, 0)
    assert [note for note in notes if "subscriptions" in note]
    shutil.copy(LOG, source / "friday.atom")
    notes.clear()
    fourth, _ = run(spark, source, other, out, streaming=True, of_stream={"repeat": True}, on_note=notes.append)
    assert (fourth.matches, fourth.repeats, notes) == (2 * ITEMS, 0, [])


def test_a_batch_has_a_row_for_each_file(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    for name in ("monday.atom", "tuesday.atom"):
        shutil.copy(LOG, source / name)
    summary, _ = run(spark, source, packed(TITLES), tmp_path / "out")
    assert summary.matches == 2 * ITEMS
    assert len({(row[0], row[5]) for row in rows_in(tmp_path / "out")}) == ITEMS


def test_filled_and_overwritten_between_starts(spark: SparkSession, tmp_path: Path) -> None:
    source, out, any_ = tmp_path / "in", tmp_path / "out", packed("ASK { ?s ?p ?o }")
    source.mkdir()
    (source / "filled.nq").touch()
    (source / "grows.nq").write_text(quads("g", "1"), encoding="utf-8")
    (source / "wrong.ttl").write_text("<urn:s> <urn:p> ", encoding="utf-8")
    refused = (Refusal("subscription", "wrong", "wrong.rq:1:1", "it is wrong"),)
    first, said = run(spark, source, any_, out, streaming=True, refused=refused)
    assert (first.matches, {Path(refusal.subject).name for refusal in said}) == (1, {"filled.nq", "wrong.ttl"})
    (source / "filled.nq").write_text(quads("f", "1", "2"), encoding="utf-8")
    (source / "grows.nq").write_text(quads("g", "1", "2"), encoding="utf-8")
    (source / "_later.nq").write_text(quads("l", "1"), encoding="utf-8")
    notes: list[str] = []
    second, more = run(spark, source, any_, out, streaming=True, refused=refused, on_note=notes.append)
    assert (second.matches, second.repeats) == (3, 1)
    assert [Path(refusal.subject).name for refusal in more] == ["_later.nq"]
    assert notes == [f"{source / 'grows.nq'} has changed since it was read: it is read again"]
    assert dead_letters_in(out) == sorted([*refused, *said, *refused, *more], key=str)
    assert {folder.name for folder in (out / "dead-letter").glob("batch=-*")} == {"batch=-1", "batch=-2"}


def wait_for(holds: Callable[[], bool], seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.1)


def test_what_arrives_while_a_stream_watches(spark: SparkSession, tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    output, notes = Output(out), list[str]()
    output.prepare(source, True)
    job = PipelineRun(str(source), index_of(packed("ASK { ?s ?p ?o }"), output), output, on_note=notes.append)
    watching = threading.Thread(target=job.stream, args=(spark, 0.2), kwargs={"settle": 2})
    watching.start()
    try:
        (source / "empty.nq").touch()
        (source / "_aside.nq").write_text(quads("a", "1"), encoding="utf-8")
        wait_for(lambda: job.summary.refused == 2)
        with (source / "slow.nq").open("w", encoding="utf-8") as slow:
            for text in "12345":
                slow.write(quads("s", text))
                slow.flush()
                time.sleep(0.2)
        (source / "empty.nq").write_text(quads("e", "1"), encoding="utf-8")
        wait_for(lambda: job.summary.matches == 6)
        (source / "empty.nq").write_text(quads("e", "1", "2"), encoding="utf-8")
        wait_for(lambda: job.summary.matches == 7)
        shutil.rmtree(source)
        wait_for(lambda: any("no such file" in note for note in notes))
        source.mkdir()
        (source / "again.nq").write_text(quads("e", "2", "3"), encoding="utf-8")
        wait_for(lambda: job.summary.matches == 8)
        (source / "changes.nq").write_text("", encoding="utf-8")
        wait_for(lambda: bool(job._pending) or job.summary.refused == 3)
    finally:
        job.stop.set()
        watching.join(300)
        output.release()
    assert job.summary.repeats == 2
    assert len(rows_in(out)) == 8
    names = [Path(refusal.subject).name for refusal in dead_letters_in(out)]
    assert sorted(names) == ["_aside.nq", "changes.nq", "empty.nq"]
    assert [note for note in notes if "has changed" in note] == [
        f"{source / 'empty.nq'} has changed since it was read: it is read again"
    ]


WAITS = """
import os, time
from pathlib import Path

class Waits:
    name, parameters = "waits", ()
    def evaluate(self, publication, arguments):
        Path(FOLDER, "called").touch()
        while not Path(FOLDER, "go").exists():
            time.sleep(0.05)
        return True

operators = (Waits(),)
"""


def test_a_micro_batch_that_is_stopped_comes_again(spark: SparkSession, tmp_path: Path) -> None:
    """It is not waited for, and the next start reads the same files."""
    source = tmp_path / "in"
    source.mkdir()
    (source / "a.nq").write_text(quads("a", "1"), encoding="utf-8")
    file = OperatorFile("waits.py", f"FOLDER = {str(tmp_path)!r}\n{WAITS}")
    engine = Engine(operators=operators_of([file]))
    engine.subscribe("waits()", "predicates", id="slow")
    output = Output(tmp_path / "out")
    output.prepare(source, True)
    job = PipelineRun(str(source), index_of(engine, output, [file]), output)
    watching = threading.Thread(target=job.stream, args=(spark, 0.2), kwargs={"settle": 0})
    watching.start()
    wait_for((tmp_path / "called").exists)
    job.stop.set()
    watching.join(300)
    output.release()
    assert not watching.is_alive()
    assert (job.summary.batches, rows_in(tmp_path / "out")) == (0, [])
    (tmp_path / "go").touch()
    (source / "b.nq").write_text(quads("b", "1"), encoding="utf-8")
    again, _ = run(spark, source, engine, tmp_path / "out", [file], streaming=True)
    assert (again.batches, again.matches) == (2, 2), "the files of the first one, then the others"


def test_another_source_is_refused(tmp_path: Path) -> None:
    """Its micro-batches would have the numbers of those that are there."""
    output = Output(tmp_path)
    offsets = output.checkpoint / "offsets"
    offsets.mkdir(parents=True)  # Spark makes it before it has asked the source
    sources = {
        "in": output.arrivals,
        "kafka://a/x": offsets / "0",
        "kafka://a/y": offsets / "0",
        "inbox:in": offsets / "0",
    }
    for source, progress in sources.items():
        reads = read_by_stream(source)
        for facts in ({"reads": reads}, {}):  # an earlier version wrote what was local only
            output.record(streaming=True, remote=source != "in", **facts)
            for other in sources:
                output.check_progress(read_by_stream(other))
            progress.touch()
            output.check_progress(reads)
            with pytest.raises(TriplewireError, match="its stream reads"):
                output.check_progress(read_by_stream("kafka://b/z" if facts or source == "in" else "in"))
            progress.unlink()


def test_a_stream_of_an_earlier_version_is_left_alone(tmp_path: Path) -> None:
    """It read the same files, and nothing says which."""
    (tmp_path / "matches" / "batch=0").mkdir(parents=True)
    (tmp_path / "_checkpoint").mkdir()
    Output(tmp_path).record(streaming=True)
    with pytest.raises(TriplewireError, match="an earlier version"):
        Output(tmp_path).prepare(EXAMPLES, True)


def test_bad_rows_of_a_data_frame(spark: SparkSession, tmp_path: Path) -> None:
    """A text that is not UTF-8, a term that is none, a null: each is a dead letter, and the others are matched."""
    (tmp_path / "good.nq").write_text(quads("g", *map(str, range(20))), encoding="utf-8")
    good = publications(spark, tmp_path / "good.nq").select("id", "triples").repartition(1)
    term = "string(unhex('22FF22'))"
    bad = {
        "urn:bytes": f"array(struct('<urn:s>' AS s, '<urn:p>' AS p, {term} AS o))",
        "urn:none": "array(struct('<urn:s>' AS s, '<urn:p>' AS p, 'no term' AS o))",
        "urn:null": "array(struct('<urn:s>' AS s, '<urn:p>' AS p, string(null) AS o))",
        "urn:nulls": "array(struct('<urn:s>' AS s, '<urn:p>' AS p, '\"x\"' AS o), null)",
        "urn:list": "null",
    }
    for id_, triples in bad.items():
        good = good.union(spark.range(1).selectExpr(f"'{id_}' AS id", f"{triples} AS triples"))
    fine = "array(struct('<urn:s>' AS s, '<urn:p>' AS p, '<urn:o>' AS o))"
    for id_ in ("string(null)", "''", "string(unhex('FF61'))"):
        good = good.union(spark.range(1).selectExpr(f"{id_} AS id", f"{fine} AS triples"))
    rows = outcomes(good.coalesce(1), compile_filter(packed("ASK { ?s ?p ?o }"))).cache()
    assert {row.publication for row in matches(rows).collect()} == {f"urn:g{number}" for number in range(20)}
    letters = dead_letters(rows).collect()
    assert sorted(letter.subject for letter in letters) == sorted([*bad, "(no id)", "(no id)", "\\xffa"])
    assert all(letter.kind == "publication" and letter.reason for letter in letters)
    rows.unpersist()


def test_a_data_frame_of_other_columns_is_refused_as_a_whole(spark: SparkSession) -> None:
    df = spark.range(1).selectExpr("'urn:a' AS id", "'text' AS triples")
    with pytest.raises(Exception, match="the column 'triples' is string"):
        outcomes(df, compile_filter(packed("ASK { ?s ?p ?o }"))).collect()


def test_parts_where_the_matches_are_too_long_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Arrow cannot hold in one batch goes in several."""
    some = list(read(str(LOG)))
    engine = compile_filter(packed(TITLES))
    whole = [row for batch in engine([to_batch(some)]) for row in batch.to_pylist()]
    longest = max(len(row["content"]) for row in whole)
    monkeypatch.setattr("triplewire.encode.matches.MOST_BYTES", 4 * longest)
    parts = list(engine([to_batch(some)]))
    assert len(parts) > 3
    in_parts = [row for batch in parts for row in batch.to_pylist()]
    for row in (*whole, *in_parts):
        row["matched_at"] = None
    assert in_parts == whole


def test_a_name_that_is_not_utf8(spark: SparkSession, tmp_path: Path) -> None:
    """A stream and a batch read such a file as `match` does."""
    source = tmp_path / "in"
    source.mkdir()
    try:
        (source / "\udce9.nq").write_text(quads("a", "1"), encoding="utf-8")
        (source / "\udce9.ttl").write_text("<urn:s> <urn:p> 1 .", encoding="utf-8")
    except OSError:
        pytest.skip("this file system holds no such names")
    for streaming in (True, False):
        folder = tmp_path / str(streaming)
        summary, said = run(spark, source, packed("ASK { ?s ?p ?o }"), folder, streaming=streaming)
        assert (summary.matches, said) == (2, [])
        assert {row[0] for row in rows_in(folder)} == {"urn:a1", f"file://{source}/%E9.ttl"}


def test_the_columns_of_the_files(spark: SparkSession, tmp_path: Path) -> None:
    shutil.copy(LOG, tmp_path)
    run(spark, tmp_path / LOG.name, packed(TITLES), tmp_path / "out")
    table = ds.dataset(tmp_path / "out" / "matches").to_table()
    assert table.schema.names[5:] == ["construct", "content", "revision", "index_version", "why"]
    wanted = {publication.id: publication.content_hash for publication in read(str(LOG))}
    assert {row["publication"]: row["content"] for row in table.to_pylist()} == wanted
