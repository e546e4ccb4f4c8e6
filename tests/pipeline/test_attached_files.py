"""Files that publications name beside their own files, in tasks of one stage and of two, called as Spark calls them."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pyarrow as pa
import pytest

from cli.runner import triplewire
from operators.pictures import drawn
from pipeline.index.stages import answers, filter_of
from triplewire.config import Settings
from triplewire.pipeline.index.versions import load
from triplewire.pipeline.rows import FILE_ROWS
from triplewire.pipeline.sources import FileReader
from triplewire.pipeline.tasks import OneStage
from triplewire.pipeline.written import Target

QUERIES = {
    "size.pred": "imageSize(?width, ?height)",
    "wide.pred": "imageSize(?width, ?height), ?width > 60",
    "wide-photo.rq": 'SELECT * { ?e <urn:photo> ?p FILTER op:imageSize("64", ?height) }',
    "none.pred": "imageSize(1, 1)",
}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pa.RecordBatch:
    """Rows of a file in Turtle and one in N-Quads, of which each names a picture of its own folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "photo.png").write_bytes(base64.b64decode(drawn("wave png 64 48").partition(",")[2]))
    (tmp_path / "one" / "event.ttl").write_text("<urn:one> <urn:photo> <photo.png> .")
    (tmp_path / "other" / "event.nq").write_text('<urn:other> <urn:photo> "photo.png" <urn:other> .\n')
    (tmp_path / "queries").mkdir()
    for name, query in QUERIES.items():
        (tmp_path / "queries" / name).write_text(query)
    paths = [f"file:{tmp_path}/one/event.ttl", f"file:{tmp_path}/other/event.nq"]
    rows = [{"path": os.fsencode(path), "length": 1} for path in paths]
    return pa.RecordBatch.from_pylist(rows, schema=FILE_ROWS)


@pytest.mark.parametrize("more", [(), ("--partitioner", "containment", "--nodes", "2")], ids=["one", "two"])
def test_stages(files: pa.RecordBatch, more: tuple[str, ...]) -> None:
    done = triplewire("pipeline", "index", "--subscriptions", "queries", "--output", "index", *more)
    assert done.code == 0
    version = load(Path("index"))
    rows, refused, _ = answers(version, list(FileReader()([files])))
    assert sorted({subscription for _, subscription, *_ in rows}) == ["size", "wide", "wide-photo"]
    assert (len(rows), refused) == (6, [])


@pytest.mark.parametrize("settings", [Settings(), Settings(max_regex_bytes=999)], ids=["as columns", "as rows"])
def test_files_of_one_stage(files: pa.RecordBatch, settings: Settings) -> None:
    """Files that are read as the engine reads them go to it directly; others become rows first."""
    triplewire("pipeline", "index", "--subscriptions", "queries", "--output", "index")
    stage = OneStage(filter_of(load(Path("index"))), Target("out", "v1"), FileReader(settings=settings))
    assert sum(report["matches"] for batch in stage([files]) for report in batch.to_pylist()) == 6
