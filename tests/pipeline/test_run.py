"""Whole runs: batch, stream and embedded engine agree; nothing is doubled, lost or dropped without a record."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from runs import EXAMPLES, Row, copied, dead_letters_in, embedded, row_of, rows_in, run

import shared_data
from triplewire.config import Settings
from triplewire.engine import Engine
from triplewire.errors import Refusal, SubscriptionError, TriplewireError
from triplewire.languages import parse
from triplewire.pipeline.committed import Status
from triplewire.pipeline.jobs import compile_filter, match_publications
from triplewire.pipeline.output import Output
from triplewire.pipeline.rows import MATCH_ROWS
from triplewire.pipeline.sources import publications
from triplewire.read import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")


@pytest.fixture(scope="module")
def coast() -> Engine:
    engine = Engine(taxonomy=EXAMPLES / "taxonomy.ttl")
    engine.load_subscriptions(EXAMPLES / "subscriptions")
    return engine


# --- the same answers ------------------------------------------------------------------------------------------------


def test_graphs_of_construct_queries(spark: SparkSession, tmp_path: Path) -> None:
    engine = Engine()
    engine.subscribe("CONSTRUCT { ?item <urn:é> [ <urn:named> ?title ] } { ?item rss:title ?title }", id="made")
    engine.subscribe("ASK { ?item rss:title ?title }", id="asked")
    copied(EXAMPLES / "publications" / "feeds", ["bird-log.atom"], tmp_path / "in")
    rows = agree(spark, tmp_path / "in", engine, tmp_path)
    assert {("<urn:é> _:c14n0 .\n" in row[4], row[4] == "(none)") for row in rows} == {(True, False), (False, True)}


def agree(spark: SparkSession, source: Path, engine: Engine, tmp_path: Path) -> list[Row]:
    """Batch, stream and engine give the same rows and the same refusals; what they gave."""
    wanted, refused = embedded(source, engine)
    for streaming in (False, True):
        folder = tmp_path / f"out {streaming} 100%20"  # a name that must be neither escaped nor unescaped
        summary, said = run(spark, source, engine, folder, streaming=streaming)
        assert rows_in(folder) == wanted
        assert dead_letters_in(folder) == refused == sorted(said, key=str)
        assert (summary.matches, summary.refused) == (len(wanted), len(refused))
        assert summary.publications == len(list(read(str(source), on_refusal=lambda refusal: None)))
    return wanted


def test_on_the_examples(spark: SparkSession, coast: Engine, tmp_path: Path) -> None:
    rows = agree(spark, EXAMPLES / "publications", coast, tmp_path)
    subscriptions = {one.id for one in coast.subscriptions}
    assert subscriptions - {row[1] for row in rows} == {"kraken"}, "each example matches, and this one does not"


def test_on_a_slice_of_the_mixed_workload(spark: SparkSession, tmp_path: Path) -> None:
    graphs: dict[str, list[str]] = {}
    for line in shared_data.lines("10-workloads/mixed-5000.nq.gz"):
        graphs.setdefault(line.split()[-2], []).append(line)
        if len(graphs) > 400:
            break
    names = list(graphs)[:400]
    source = tmp_path / "in"
    source.mkdir()
    for part in range(3):
        text = "".join(line for name in names[part::3] for line in graphs[name])
        (source / f"part-{part}.nq").write_text(text, encoding="utf-8")
    (source / "broken.ttl").write_text("<http://a> <http://b> ", encoding="utf-8")
    engine = Engine()
    for line in shared_data.lines("10-workloads/rtf-queries-100k-ft050.jsonl.gz"):
        number, matching, tuples = json.loads(line)
        if matching:
            engine.subscribe(sparql(tuples), id=str(number))
        if len(engine.subscriptions) == 40:
            break
    assert len(agree(spark, source, engine, tmp_path)) > 100


def sparql(tuples: list[list[object]]) -> str:
    """A query of the workload: [subject, predicate, object] or [subject, predicate, variable, [words]]."""
    patterns = [" ".join(map(str, one[:3])) for one in tuples]
    filters = [
        f"FILTER ftcontains({one[2]}, {' ftAND '.join(map(json.dumps, words))})"
        for one in tuples
        for words in one[3:]
        if isinstance(words, list)
    ]
    return f"SELECT * WHERE {{ {' . '.join(patterns)} {' '.join(filters)} }}"


def test_as_data_frames(spark: SparkSession, coast: Engine) -> None:
    """`match_publications` takes files, compiled subscriptions, an engine; the answers are the same."""
    source = EXAMPLES / "publications"
    df = publications(spark, source).cache()
    wanted = embedded(source, coast)[0]
    text = "SELECT ?title WHERE { ?item rss:title ?title FILTER ftcontains(?title, 'puffin*') }"
    few = [parse(text, id="a"), parse("language(fr)", "predicates", id="b")]
    for subscriptions, expected in (
        (EXAMPLES / "subscriptions", wanted),
        (coast, wanted),
        ([EXAMPLES / "subscriptions" / "storm-warning.rq"], [row for row in wanted if row[1] == "storm-warning"]),
    ):
        found = match_publications(df, subscriptions, taxonomy=EXAMPLES / "taxonomy.ttl")
        assert found.columns == MATCH_ROWS.names
        assert sorted(row_of(row.asDict()) for row in found.collect()) == expected
    counted = Counter(row.subscription for row in match_publications(df.select("triples", "id"), few).collect())
    assert counted == {"a": 3, "b": 3}
    reasoned = match_publications(df, coast, why=True).where("publication LIKE '%kestrelcoast%'").collect()
    assert len(reasoned) > 10
    by_id = {publication.id: publication for publication in read(str(source), on_refusal=lambda refusal: None)}
    for row in reasoned:
        assert json.loads(row.why) == list(coast.explain(row.subscription, by_id[row.publication]).reasons)
    df.unpersist()


def test_from_narrows_to_a_source(spark: SparkSession) -> None:
    """As in one process: rows carry where their publication was read to the workers."""
    source = EXAMPLES / "publications" / "feeds"
    texts = {
        "all": "SELECT ?i WHERE (?i, rss:title, ?t)",
        "one": "SELECT ?i FROM bird-log WHERE (?i, rss:title, ?t)",
        "none": "SELECT ?i FROM nowhere WHERE (?i, rss:title, ?t)",
    }
    queries = [parse(text, "gql", id=id_) for id_, text in texts.items()]
    engine = Engine()
    for query in queries:
        engine.subscribe(query)
    wanted = sorted((match.publication, match.subscription) for match in engine.match(read(str(source))))
    counts = Counter(subscription for _, subscription in wanted)
    assert 0 < counts["one"] < counts["all"]
    found = match_publications(publications(spark, source), queries).collect()
    assert sorted((row.publication, row.subscription) for row in found) == wanted


def test_a_refused_subscription_is_raised_or_handed_over(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "wrong.rq"
    file.write_text("SELECT ?x WHERE { ?x ", encoding="utf-8")
    df = publications(spark, EXAMPLES / "publications" / "tides.nq")
    with pytest.raises(SubscriptionError, match=r"wrong\.rq"):
        match_publications(df, file)
    refusals: list[Refusal] = []
    assert match_publications(df, file, on_refusal=refusals.append).count() == 0
    assert [refusal.subject for refusal in refusals] == ["wrong"]


def test_workers_compile_once(spark: SparkSession, coast: Engine) -> None:
    """Task after task in the same worker process: the engine is compiled in the first only."""
    df, index = publications(spark, EXAMPLES / "publications").repartition(4), compile_filter(coast)

    def probe(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        from triplewire.pipeline.index import open_version as worker

        before = worker.openings()
        matched = sum(batch.num_rows for batch in index(batches))
        row = {"pid": os.getpid(), "loads": worker.openings() - before, "rows": matched}
        yield pa.RecordBatch.from_pylist([row])

    rows = [r for _ in range(3) for r in df.mapInArrow(probe, "pid long, loads long, rows long").collect()]
    assert len(rows) == 12
    loads = Counter[int]()
    for row in rows:
        loads[row.pid] += row.loads
    assert len(loads) < len(rows), "no worker was used twice: nothing was tested"
    assert all(count <= 1 for count in loads.values())


# --- nothing is dropped without a record -----------------------------------------------------------------------------


@pytest.mark.parametrize("streaming", [False, True])
def test_dead_letters(spark: SparkSession, tmp_path: Path, streaming: bool) -> None:
    """Malformed publications and subscriptions, and pairs past a limit: each once in the output, and each reported."""
    source, queries = tmp_path / "in", tmp_path / "queries"
    copied(EXAMPLES / "publications", ["tides.nq", "lighthouses/unfinished-notice.ttl"], source)
    (source / "quads.nq").write_text('<urn:s> <urn:p> "1" <urn:good> .\n<urn:s> <urn:p> 2 <urn:bad> .\n', "utf-8")
    copied(EXAMPLES / "subscriptions", ["spring-tides.rq"], queries)
    (queries / "wrong.gql").write_text("SELECT * WHERE (", encoding="utf-8")
    (queries / "costly.rq").write_text("ASK { ?a ?p ?b . ?c ?q ?d . ?e ?r ?f FILTER(?b + ?d + ?f > 1000) }", "utf-8")
    refused: list[Refusal] = []
    settings = Settings(max_steps=20)
    engine = Engine(settings=settings)
    engine.load_subscriptions(queries, on_refusal=refused.append)
    assert [refusal.subject for refusal in refused] == ["wrong"]
    summary, said = run(spark, source, engine, tmp_path / "out", streaming=streaming, refused=tuple(refused))
    found = dead_letters_in(tmp_path / "out")
    assert sorted([*refused, *said], key=str) == found
    assert summary.refused == len(found)
    kinds = Counter(refusal.kind for refusal in found)
    assert kinds["subscription"] == 1
    assert kinds["publication"] == 2
    assert kinds["pair"] == 3
    assert all(refusal.reason and refusal.where for refusal in found)
    assert {row[1] for row in rows_in(tmp_path / "out")} == {"spring-tides"}
    for file in (tmp_path / "out" / "dead-letter").rglob("*.parquet"):
        assert ds.dataset(file).schema.names == ["kind", "subject", "where", "reason", "remedy"]


def test_a_stream_records_what_it_passes_over(spark: SparkSession, coast: Engine, tmp_path: Path) -> None:
    source = tmp_path / "in"
    copied(EXAMPLES / "publications", ["tides.nq"], source)
    shutil.copy(EXAMPLES / "publications" / "walks.trig", source / "_walks.trig")
    (source / "empty.ttl").touch()
    summary, said = run(spark, source, coast, tmp_path / "out", streaming=True)
    assert {Path(refusal.subject).name for refusal in said} == {"_walks.trig", "empty.ttl"}
    assert dead_letters_in(tmp_path / "out") == sorted(said, key=str)
    assert summary.matches == 2


# --- exactly once ----------------------------------------------------------------------------------------------------


def test_a_stream_goes_on_and_a_replay_changes_nothing(spark: SparkSession, coast: Engine, tmp_path: Path) -> None:
    feeds, source, out = EXAMPLES / "publications" / "feeds", tmp_path / "in", tmp_path / "out"
    copied(feeds, ["bird-log.atom", "festival.rss"], source)
    first, _ = run(spark, source, coast, out, streaming=True)
    copied(feeds, ["harbour-news.rdf", "kitchen.json"], source)
    os.utime(source / "kitchen.json", (0, 0))  # an old file that comes late is new all the same
    second, _ = run(spark, source, coast, out, streaming=True)
    assert (first.publications, second.publications) == (16, 14)
    before = rows_in(out)
    assert before == embedded(source, coast)[0]

    # the driver died before the last micro-batch was committed
    shutil.rmtree(out / "matches" / "batch=1")
    left = out / "_writing" / "matches" / "part-left.parquet"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half a file")
    written = sorted((file, file.stat().st_mtime_ns) for file in (out / "matches").rglob("*.parquet"))
    again, _ = run(spark, source, coast, out, streaming=True)
    assert (again.batches, again.publications) == (1, 14), "nothing was replayed: this test is blind"
    assert written < sorted((file, file.stat().st_mtime_ns) for file in (out / "matches").rglob("*.parquet"))
    assert rows_in(out) == before
    assert not left.exists()

    idle, _ = run(spark, source, coast, out, streaming=True)
    assert (idle.batches, rows_in(out)) == (0, before)


@pytest.mark.parametrize("streaming", [False, True])
def test_an_empty_folder(spark: SparkSession, coast: Engine, tmp_path: Path, streaming: bool) -> None:
    (tmp_path / "in").mkdir()
    summary, said = run(spark, tmp_path / "in", coast, tmp_path / "out", streaming=streaming)
    assert (summary.publications, summary.matches, summary.refused, said) == (0, 0, 0, [])
    assert (rows_in(tmp_path / "out"), dead_letters_in(tmp_path / "out")) == ([], [])


def test_a_batch_run_takes_the_place_of_the_one_before(spark: SparkSession, coast: Engine, tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    copied(EXAMPLES / "publications", ["tides.nq", "walks.trig"], source)
    run(spark, source, coast, out)
    (source / "tides.nq").unlink()
    (source / "linked").symlink_to(EXAMPLES)
    output = Output(out)
    assert "takes the place of 4 matches" in output.prepare(source, False)
    output.release()
    run(spark, source, coast, out, refused=(Refusal("subscription", "wrong", "wrong.rq:1:1", "it is wrong"),))
    assert rows_in(out) == embedded(source, coast)[0]
    assert len(rows_in(out)) == 2
    assert [Path(letter.subject).name for letter in dead_letters_in(out)] == ["linked", "wrong"]
    assert (Status.of(output).matches, Status.of(output).refused) == (2, 2)


# --- the output folder -----------------------------------------------------------------------------------------------


def foreign(folder: Path) -> None:
    (folder / "matches").mkdir(parents=True)
    (folder / "matches" / "mine.parquet").touch()


def batch(folder: Path) -> None:
    (folder / "matches").mkdir(parents=True)
    Output(folder).record(streaming=False)


def stream(folder: Path) -> None:
    (folder / "matches" / "batch=0").mkdir(parents=True)
    Output(folder).record(streaming=True)


@pytest.mark.parametrize(
    ("made", "streaming", "said"),
    [
        (foreign, False, "was not written by this command"),
        (foreign, True, "was not written by this command"),
        (batch, True, "a batch run"),
        (stream, False, "a stream"),
        (stream, True, "_arrivals.sqlite is gone"),
    ],
)
def test_results_of_others_stay(made: Callable[[Path], None], streaming: bool, said: str, tmp_path: Path) -> None:
    made(tmp_path)
    before = sorted(tmp_path.rglob("*.parquet"))
    with pytest.raises(TriplewireError, match=said):
        Output(tmp_path).prepare(EXAMPLES, streaming)
    assert sorted(tmp_path.rglob("*.parquet")) == before


def test_one_run_at_a_time(tmp_path: Path) -> None:
    first = Output(tmp_path)
    first.prepare(EXAMPLES, False)
    with pytest.raises(TriplewireError, match="another run"):
        Output(tmp_path).prepare(EXAMPLES, False)


def test_no_run_reads_its_own_output(tmp_path: Path) -> None:
    with pytest.raises(TriplewireError, match="within the input folder"):
        Output(tmp_path / "deep" / "out").prepare(tmp_path, False)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(TriplewireError, match="within the input folder"):
        Output(tmp_path / "out").prepare(tmp_path / "*", True)
    assert list(tmp_path.iterdir()) == []
    Output(tmp_path / "out").prepare(tmp_path / "*.nq", True)


def test_the_output_is_local() -> None:
    with pytest.raises(TriplewireError, match="file system"):
        Output("s3a://bucket/out")
