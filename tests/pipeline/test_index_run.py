"""Runs on an index, through Spark: the answers of one process, and a stream that follows the versions."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.dataset as ds
import pytest

from pipeline.runs import EXAMPLES, dead_letters_in, embedded, rows_in
from triplewire.cli import run
from triplewire.engine import Engine
from triplewire.pipeline.committed import committed_files
from triplewire.pipeline.index.pins import IndexSource, Pins
from triplewire.pipeline.output import Output
from triplewire.pipeline.run import PipelineRun
from waiting import until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

TAXONOMY = ["--taxonomy", str(EXAMPLES / "taxonomy.ttl")]
PUBLICATIONS = EXAMPLES / "publications"


def pipeline(command: str, *arguments: object) -> int:
    return run(["pipeline", command, *map(str, arguments)])


def versions_in(folder: Path) -> dict[str, set[str]]:
    """Micro-batch -> the versions that its matches name."""
    out = {}
    for part in (folder / "matches").glob("batch=*"):
        rows = [row for file in part.glob("*.parquet") for row in ds.dataset(file).to_table().to_pylist()]
        if rows:
            out[part.name] = {row["index_version"] for row in rows}
    return out


@pytest.mark.usefixtures("spark")  # the command takes the session that is there
@pytest.mark.parametrize("partitioner", ["replicated", "containment", "random"])
def test_a_batch_and_a_stream(partitioner: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index, out = tmp_path / "index", tmp_path / "out"
    spread = ["--partitioner", partitioner, "--nodes", 2]
    assert pipeline("index", "--subscriptions", EXAMPLES / "subscriptions", *TAXONOMY, "--output", index, *spread) == 0
    assert pipeline("run", "--input", PUBLICATIONS, "--index", index, "--output", out) == 1
    engine = Engine(taxonomy=EXAMPLES / "taxonomy.ttl")
    engine.load_subscriptions(EXAMPLES / "subscriptions")
    rows, refused = embedded(PUBLICATIONS, engine)
    assert not [*(index / "pins").iterdir()], "a batch run that is done needs no version any more"
    assert rows_in(out) == rows
    assert dead_letters_in(out) == refused
    said = capsys.readouterr().err
    assert f"built; {index} v1 has {len(engine)} subscriptions" in said
    assert "43 publications, 1 refused" in said
    stream = ["--streaming", "--conf", "triplewire.settle=0"]
    assert pipeline("run", "--input", PUBLICATIONS, "--index", index, "--output", tmp_path / "live", *stream) == 1
    assert rows_in(tmp_path / "live") == rows
    assert pipeline("run", "--input", PUBLICATIONS, "--index", tmp_path / "none", "--output", tmp_path / "o") == 74
    more = ["--index", index, "--subscriptions", EXAMPLES / "subscriptions"]
    assert pipeline("run", "--input", PUBLICATIONS, *more, "--output", tmp_path / "o") == 2
    assert pipeline("run", "--input", PUBLICATIONS, "--index", index, *TAXONOMY, "--output", tmp_path / "o") == 2
    said = capsys.readouterr().err
    assert "there is no such directory" in said
    assert "give either, and not both" in said
    assert "an index has its own" in said


def test_a_stream_follows_its_index(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Subscriptions come and go under it. Started again, it repeats what was interrupted with the version it had."""
    source, index, folder = tmp_path / "in", tmp_path / "index", tmp_path / "out"
    source.mkdir()
    for name in ("first", "second"):
        (tmp_path / f"{name}.rq").write_text("SELECT ?s WHERE { ?s <urn:p> ?o }")
    assert pipeline("index", "--subscriptions", tmp_path / "first.rq", "--output", index) == 0
    output = Output(folder)
    output.prepare(source, True)
    job = PipelineRun(str(source), IndexSource(index, output.folder), output)

    def publish(name: str) -> list[str]:
        before = job.summary.batches
        (source / f".{name}").write_text(f"<urn:{name}> <urn:p> <urn:o> .\n")
        (source / f".{name}").rename(source / f"{name}.nt")
        until(lambda: job.summary.batches > before)
        return sorted(row[1] for row in rows_in(folder) if name in row[0])

    stream = threading.Thread(target=lambda: job.stream(spark, 0.2, settle=0.0), daemon=True)
    stream.start()
    try:
        assert publish("one") == ["first"]
        assert pipeline("subscribe", "--index", index, tmp_path / "second.rq") == 0
        assert publish("two") == ["first", "second"]
        assert pipeline("unsubscribe", "--index", index, "first", "nobody") == 1
        assert publish("three") == ["second"]
    finally:
        job.stop.set()
        stream.join(300)
    assert "refused subscription nobody: there is no subscription of this id" in capsys.readouterr().err
    assert versions_in(folder) == {"batch=0": {"v1"}, "batch=1": {"v2"}, "batch=2": {"v3"}}
    # as after a kill between the work of the last micro-batch and its commit: its results are not there
    shutil.rmtree(folder / "matches" / "batch=2")
    assert pipeline("subscribe", "--index", index, tmp_path / "first.rq") == 0
    again = PipelineRun(str(source), IndexSource(index, output.folder), output)
    again.stream(spark, settle=0.0)
    output.release()
    assert versions_in(folder)["batch=2"] == {"v3"}, "not v4, which is the newest"
    assert sorted(row[1] for row in rows_in(folder)) == ["first", "first", "second", "second"]
    assert Pins(output.pins).of(2) is not None


def test_a_stream_has_another_taxonomy_at_its_next_micro_batch(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A version of its own, which the matches name; the subscriptions stay."""
    source, index, folder = tmp_path / "in", tmp_path / "index", tmp_path / "out"
    source.mkdir()
    (tmp_path / "boats.rq").write_text("ASK { ?s a <urn:Boat> }")
    for name, above in (("boat", "Boat"), ("car", "Car")):
        (tmp_path / f"{name}.nt").write_text(
            f"<urn:Ferry> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <urn:{above}> .\n"
        )
    first = ["--subscriptions", tmp_path / "boats.rq", "--entailment", "rdfs"]
    assert pipeline("index", *first, "--taxonomy", tmp_path / "car.nt", "--output", index) == 0
    output = Output(folder)
    output.prepare(source, True)
    job = PipelineRun(str(source), IndexSource(index, output.folder), output)

    def publish(name: str) -> set[str]:
        """The versions that found the ferry of this name to be a boat."""
        before = job.summary.batches
        (source / f".{name}").write_text(f"<urn:{name}> a <urn:Ferry> .\n")
        (source / f".{name}").rename(source / f"{name}.ttl")
        until(lambda: job.summary.batches > before)
        rows = [row for file in committed_files(output) for row in ds.dataset(file).to_table().to_pylist()]
        return {row["index_version"] for row in rows if name in row["publication"]}

    stream = threading.Thread(target=lambda: job.stream(spark, 0.2, settle=0.0), daemon=True)
    stream.start()
    try:
        assert publish("one") == set()
        assert pipeline("index", "--taxonomy", tmp_path / "boat.nt", "--output", index) == 0
        assert publish("two") == {"v2"}
        assert pipeline("index", "--taxonomy", tmp_path / "car.nt", "--output", index) == 0
        assert publish("three") == set()
    finally:
        job.stop.set()
        stream.join(300)
        output.release()
    assert f"taxonomy changed; {index} v3 has 1 subscription" in capsys.readouterr().err
    wrong = {
        "give subscriptions, or a taxonomy": [],
        "the subscriptions of the index stay": ["--taxonomy", tmp_path / "boat.nt", "--matcher", "reference"],
        "only merging looks at a sample": ["--taxonomy", tmp_path / "boat.nt", "--sample", source / "one.ttl"],
    }
    for said, options in wrong.items():
        assert pipeline("index", *options, "--output", index) == 2
        assert said in " ".join(capsys.readouterr().err.split())
    assert pipeline("index", "--taxonomy", tmp_path / "boat.nt", "--output", tmp_path / "none") == 74
    assert not (tmp_path / "none").exists()
