"""What workers write: Parquet whose rows share texts, identities as ledgers have them, and a row a task. No Spark."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from triplewire.encode.schema import to_batch
from triplewire.engine import Engine
from triplewire.errors import Refusal
from triplewire.pipeline import written
from triplewire.pipeline.filter import Calling, IndexFilter
from triplewire.pipeline.index.build import shipped
from triplewire.pipeline.rows import DEAD_LETTERS, FILE_ROWS, MATCH_ROWS, PUBLICATION_ROWS, widened
from triplewire.pipeline.sources import FileReader
from triplewire.pipeline.tasks import OneStage
from triplewire.pipeline.written import MATCHES_IN, Report, Target, TaskFiles, Written, identities
from triplewire.read import read

DATA = """<urn:s> <urn:p> "one" <urn:g1> .
<urn:s> <urn:p> "one" <urn:g2> .
<urn:s> <urn:p> "é \\"two\\"" <urn:g3> .
<urn:s> <urn:q> "three" <urn:g4> .
no quad
"""
QUERIES = {
    "same": "SELECT ?o { ?s <urn:p> ?o }",
    "again": "SELECT ?o { ?s <urn:p> ?o }",
    "made": "CONSTRUCT { ?s <urn:made> ?o } { ?s <urn:q> ?o }",
    'odd "id" \\ \t': "ASK { ?s <urn:p> ?o }",
}


@pytest.fixture
def packed() -> IndexFilter:
    engine = Engine()
    for id_, query in QUERIES.items():
        engine.subscribe(query, id=id_)
    return shipped(engine)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "data.nq"
    path.write_text(DATA, encoding="utf-8")
    return path


def of_files(packed: IndexFilter, file: Path, target: Target) -> Written:
    row = {"path": os.fsencode(f"file:{file}"), "length": file.stat().st_size}
    return done(target, OneStage(packed, target, FileReader())([pa.RecordBatch.from_pylist([row], schema=FILE_ROWS)]))


def done(target: Target, reports: object) -> Written:
    rows = [row for batch in reports for row in batch.to_pylist()]  # type: ignore[attr-defined]  # an iterator
    return Written(Path(target.folder), [Report(**row) for row in rows])


def rows_of(written_files: Written) -> list[dict[str, object]]:
    tables = [pq.read_table(each) for each in written_files.files(MATCHES_IN)]
    assert all(table.schema.equals(MATCH_ROWS) for table in tables), "plain columns, as all programs read them"
    return [row for table in tables for row in table.to_pylist()]


def test_files_and_rows_give_the_same(packed: IndexFilter, file: Path, tmp_path: Path) -> None:
    """From files, whose matches never become rows, and from rows of publications."""
    direct = of_files(packed, file, Target(str(tmp_path / "direct"), "v1", True))
    refusals: list[Refusal] = []
    batch = widened(to_batch(read(str(file), on_refusal=refusals.append)), PUBLICATION_ROWS)
    target = Target(str(tmp_path / "rows"), "v1", True)
    by_rows = done(target, OneStage(packed, target)([batch]))
    given = [[{**row, "matched_at": None} for row in rows_of(each)] for each in (direct, by_rows)]
    assert given[0] == given[1]
    assert len(given[0]) == 3 * 3 + 1
    assert {row["index_version"] for row in given[0]} == {"v1"}
    assert [row["construct"] is None for row in given[0]].count(False) == 1
    assert direct.identities() == by_rows.identities()
    assert direct.total("candidates") == by_rows.total("candidates") >= len(given[0])
    assert (direct.total("publications"), direct.total("refused"), by_rows.total("refused")) == (4, 1, 0)
    (letters,) = direct.files("dead-letter")
    assert pq.read_table(letters).to_pylist() == [{name: getattr(refusals[0], name) for name in DEAD_LETTERS.names}]


def test_reasons_are_those_of_the_engine(packed: IndexFilter, file: Path, tmp_path: Path) -> None:
    """From files, and from rows of publications, which are matched by other calls."""
    asked = replace(packed, calling=Calling(why=True))
    read_ones = list(read(str(file), on_refusal=lambda refusal: None))
    direct = of_files(asked, file, Target(str(tmp_path / "direct"), "v1"))
    target = Target(str(tmp_path / "rows"), "v1")
    by_rows = done(target, OneStage(asked, target)([widened(to_batch(read_ones), PUBLICATION_ROWS)]))
    engine = packed.opened().server()
    result = engine.match(read_ones)
    wanted = {(each.publication, each.subscription): list(engine.explain(each).reasons) for each in result}
    assert len(wanted) == len(result)
    assert all(wanted.values())
    for written_files in (direct, by_rows):
        rows = rows_of(written_files)
        assert {(row["publication"], row["subscription"]): json.loads(str(row["why"])) for row in rows} == wanted


def test_identities_are_those_of_ledgers(packed: IndexFilter, file: Path, tmp_path: Path) -> None:
    """Stated anew: a SHA-256 over content, revision and the JSON of both ids, as Spark has written them before."""
    direct = of_files(packed, file, Target(str(tmp_path / "out"), "v1", True))
    wanted = []
    for row in rows_of(direct):
        ids = json.dumps([row["publication"], row["subscription"]], ensure_ascii=False, separators=(",", ":"))
        wanted.append(hashlib.sha256(f"{row['content']}{row['revision']}{ids}".encode()).digest()[:16])
    assert direct.identities() == wanted
    assert len(set(wanted)) == len(wanted)


def test_control_characters_in_identities() -> None:
    """Spark's JSON has them with capital digits."""
    columns = {"content": "c", "revision": "r", "publication": "a\x1f\x00", "subscription": "b\n/é\x7f"}
    table = pa.table({name: pa.array([text]).dictionary_encode() for name, text in columns.items()})
    ids = '["a\\u001F\\u0000","b\\n/é\x7f"]'
    assert list(identities(table)) == [hashlib.sha256(f"cr{ids}".encode()).digest()[:16]]


def test_rows_are_left_out_later(
    packed: IndexFilter, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that were told before; in files of several row groups."""
    monkeypatch.setattr(written, "_GROUP_ROWS", 1)
    target = Target(str(tmp_path / "out"), "v1")
    engine, files = packed.opened().server(), TaskFiles(target)
    for _ in range(2):
        for result in engine.match_files(str(file), on_refusal=lambda refusal: None):
            for part in result.parts:
                files.add(engine, part)
    files.counts["publications"] = 8
    out = done(target, files.reports())
    before = rows_of(out)
    assert pq.ParquetFile(out.files(MATCHES_IN)[0]).num_row_groups == 2
    chosen = np.arange(len(before)) % 3 == 0
    out.retain(chosen)
    assert rows_of(out) == [row for row, is_chosen in zip(before, chosen, strict=True) if is_chosen]


def test_what_a_failed_task_has_left_does_not_count(packed: IndexFilter, file: Path, tmp_path: Path) -> None:
    target = Target(str(tmp_path / "out"), "v1")
    first, second = (of_files(packed, file, target) for _ in range(2))
    assert len(list(Path(target.folder, MATCHES_IN).iterdir())) == 2
    assert len(first.files(MATCHES_IN)) == len(second.files(MATCHES_IN)) == 1
    assert first.files(MATCHES_IN) != second.files(MATCHES_IN)


def test_a_task_without_work_says_nothing(packed: IndexFilter, tmp_path: Path) -> None:
    target = Target(str(tmp_path / "out"), "v1")
    assert list(OneStage(packed, target, FileReader())([])) == []
    assert not Path(target.folder).exists()
