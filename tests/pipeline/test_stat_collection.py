"""What merging goes by, counted on Spark: as in one process, whatever the tasks are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from triplewire.cli import run
from triplewire.engine import Engine
from triplewire.partition.sample import collect
from triplewire.pipeline import stat_collection
from triplewire.pipeline.index.build import shipped
from triplewire.pipeline.index.changes import held
from triplewire.pipeline.index.open_version import opened
from triplewire.pipeline.index.versions import load
from triplewire.pipeline.rows import publication_rows
from triplewire.pipeline.sources import publications
from triplewire.pipeline.stat_collection import StatCollection, collected
from triplewire.read import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

STORIES, OF_STORY = 6, 10


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    """A folder of publications, ten of each story, which have four triples in common, and a file that is none."""
    folder = tmp_path / "stream"
    folder.mkdir()
    for story in range(STORIES):
        common = "".join(f"<urn:s{story}> <urn:p{n}> <urn:o{n}> GRAPH .\n" for n in range(4))
        editions = (f'{common}<urn:s{story}> <urn:edition> "{n}" GRAPH .\n' for n in range(OF_STORY))
        texts = [text.replace("GRAPH", f"<urn:{story}.{n}>") for n, text in enumerate(editions)]
        (folder / f"{story}.nq").write_text("".join(texts))
    (folder / "none.nq").write_text("no triple\n")
    return folder


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    """Of each story but the last, one subscription more than of the story before, each with an edge of its own."""
    path = tmp_path / "queries.jsonl"
    texts = {
        f"{story}.{n}": f"ASK {{ <urn:s{story}> <urn:p0> <urn:o0> ; <urn:p1> <urn:o1> ; <urn:p{n % 2 + 2}> ?x{n} }}"
        for story in range(STORIES - 1)
        for n in range(story + 2)
    }
    rows = ({"id": id, "language": "sparql", "query": query} for id, query in texts.items())
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_counters_and_what_is_kept_do_not_depend_on_the_tasks(
    spark: SparkSession, stream: Path, queries: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine()
    engine.load_subscriptions(queries)
    sample = list(read(stream, on_refusal=lambda refusal: None))
    matches = engine.match(sample)
    of_each = [sum(match.publication == one.id for match in matches) for one in sample]
    rows = publications(spark, stream)
    index = shipped(engine)
    statistics, refusals = collected(rows, index, engine)
    alone = {summary.triples: summary.counter for summary in collect(zip(sample, of_each, strict=True))}
    assert {summary.triples: summary.counter for summary in statistics.summaries} == alone
    assert [summary.counter for summary in statistics.summaries] == [60, 50, 40, 30, 20, 0]
    assert sum(alone.values()) == len(matches)
    assert [refusal.kind for refusal in refusals] == ["publication"]
    assert {one.content_hash for one in statistics.publications} == {one.content_hash for one in sample}
    monkeypatch.setattr(stat_collection, "MOST_PUBLICATIONS", 7)
    told = [row for batch in StatCollection(index)([publication_rows(sample)]) for row in batch.to_pylist()]
    assert [row["counter"] for row in told if row["counter"] is not None] == [60, 50, 40, 30, 20, 0]
    drawn = [row["id"] for row in told if row["counter"] is None]
    assert drawn == [one.id for one in statistics.publications[:7]], "one task draws as several do"


def test_an_index_is_merged_by_what_a_folder_says(stream: Path, queries: Path, tmp_path: Path) -> None:
    command = ["pipeline", "index", "--subscriptions", str(queries), "--partitioner", "merging", "--nodes", "2"]
    sizes = []
    for percent in (60, 75):
        index = tmp_path / f"index-{percent}"
        more = ["--output", str(index), "--collect", str(stream), "--merge-percent", str(percent)]
        assert run([*command, *more, "--conf", "local[2]"]) == 1, "a file is no publication"
        version = load(index)
        there = opened(index, version.name)
        sizes.append(len(there.server()))
        assert len(list(held(there))) == version.content.subscriptions == 20
        assert version.content.percent == percent
    assert 20 > sizes[0] > sizes[1]
    assert run([*command, "--output", str(tmp_path / "x"), "--collect", "a", "--sample", str(stream)]) == 2
    assert run([*command[:-4], "--output", str(tmp_path / "x"), "--collect", str(stream)]) == 2
