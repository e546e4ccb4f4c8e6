"""`triplewire pipeline matches`: exactly the committed rows, whatever else lies in the folder. No Spark runs here."""

from __future__ import annotations

import csv
import datetime as dt
import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from triplewire.cli import run
from triplewire.encode.schema import MATCHES
from triplewire.errors import TriplewireError
from triplewire.pipeline import committed as exporting
from triplewire.pipeline.committed import Status
from triplewire.pipeline.output import DEAD_LETTER, Counts, Output, Totals
from triplewire.pipeline.rows import MATCH_ROWS

INSTANT = dt.datetime(2026, 3, 1, 12, 30, 0, 250, tzinfo=dt.UTC)
ROW = {"bindings": '[{"x": "a, \\"b\\""}]', "truncated": False, "matched_at": INSTANT, "content": "c", "revision": "r"}


def row(publication: str, **more: object) -> dict[str, object]:
    return {"publication": publication, "subscription": "s", "construct": None, **ROW, **more}


def write(folder: Path, *rows: dict[str, object], schema: pa.Schema = MATCHES) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), folder / "part-00000-x.snappy.parquet")
    return folder


def exported(output: Path, name: str = "all.parquet") -> Path:
    file = output.parent / name
    assert run(["pipeline", "matches", "--output", str(output), "--export", str(file)]) == 0
    return file


def publications(output: Path) -> list[str]:
    return pq.read_table(exported(output)).column("publication").to_pylist()


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    """A stream with micro-batches 0, 2 and 10, that was killed while it wrote another."""
    out = tmp_path / "out"
    for number, name in ((0, "first"), (10, "third"), (2, "second")):
        write(out / "matches" / f"batch={number}", row(name))
    write(out / "_writing" / "1-x" / "matches", row("not committed"))
    (out / "matches" / "batch=2" / ".part-00001-x.parquet").write_bytes(b"PAR1")
    (out / "matches" / "batch=2 (a copy)").mkdir()
    Output(out).record(streaming=True)
    return out


def test_the_rows_of_all_micro_batches_in_order(stream: Path) -> None:
    assert publications(stream) == ["first", "second", "third"]
    assert pq.read_schema(exported(stream)).names == MATCH_ROWS.names


def test_a_column_that_older_rows_do_not_have(stream: Path) -> None:
    wider = MATCHES.append(pa.field("index_version", pa.string()))
    write(stream / "matches" / "batch=11", row("fourth", index_version="v2"), schema=wider)
    table = pq.read_table(exported(stream))
    assert table.column("index_version").to_pylist() == [None, None, None, "v2"]


def test_the_forms(stream: Path) -> None:
    write(stream / "matches" / "batch=11", row("gräph", construct='<urn:s> <urn:p> "x\\n" .\n'))
    lines = [json.loads(line) for line in exported(stream, "all.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["publication"] for line in lines] == ["first", "second", "third", "gräph"]
    assert list(lines[0]) == MATCH_ROWS.names
    assert lines[3]["construct"] == '<urn:s> <urn:p> "x\\n" .\n'
    assert lines[0] | {"publication": ""} == {
        **row("", bindings=[{"x": 'a, "b"'}], matched_at="2026-03-01T12:30:00.000250Z"),
        "index_version": None,
        "why": None,
    }
    with exported(stream, "all.csv").open(encoding="utf-8", newline="") as text:
        rows = list(csv.DictReader(text))
    assert [row["bindings"] for row in rows] == [ROW["bindings"]] * 4
    assert [row["matched_at"] for row in rows] == ["2026-03-01T12:30:00.000250Z"] * 4


def test_nothing_is_committed_yet(tmp_path: Path) -> None:
    output = Output(tmp_path / "out")
    output.prepare(tmp_path / "in", True)
    assert exported(output.folder, "empty.jsonl").read_bytes() == b""
    output.record(streaming=True)
    assert exported(output.folder, "empty.csv").read_text() == ",".join(f'"{name}"' for name in MATCH_ROWS.names) + "\n"
    output.release()
    assert publications(output.folder) == []


def test_another_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "all.parquet"
    write(tmp_path / "other" / "matches", row("not ours"))
    (tmp_path / "other" / "_lock").touch()
    for folder in (tmp_path, tmp_path / "none", tmp_path / "other"):
        assert run(["pipeline", "matches", "--output", str(folder), "--export", str(file)]) == 2
    assert run(["pipeline", "matches", "--output", str(tmp_path), "--export", str(tmp_path / "all.xml")]) == 2
    said = capsys.readouterr().err
    assert "it is no output folder of a run" in said
    assert "there is no such folder" in said
    assert not file.exists()


class Ended(BaseException):
    """In the place of the end of the process."""


def commit(output: Output, name: str, part: str = "", at: str = "") -> None:
    """Commit one row; the process ends at this point."""

    def reached(point: str) -> None:
        if point == at:
            raise Ended

    write(output._writing / "matches", row(name))
    (output._writing / DEAD_LETTER).mkdir()
    output.at = reached
    own = Totals(matches=len(name))
    if not at:
        output.commit(part, Counts(own, own))
        return
    with pytest.raises(Ended):
        output.commit(part, Counts(own, own))


@pytest.mark.parametrize(
    ("point", "seen"),
    [("before the commit", "first"), ("between the renames", "first"), ("after the commit", "second")],
)
def test_a_batch_run_that_ends_while_it_replaces_the_one_before(tmp_path: Path, point: str, seen: str) -> None:
    output = Output(tmp_path / "out")
    output.prepare(tmp_path / "in", False)
    output.record(streaming=False)
    commit(output, "first")
    assert publications(output.folder) == ["first"]
    commit(output, "second", at=point)
    assert publications(output.folder) == [seen]
    assert Status.of(output).matches == len(seen)
    output.release()
    again = Output(output.folder)
    again.prepare(tmp_path / "in", False)
    assert publications(again.folder) == [seen]
    commit(again, "third")
    assert publications(again.folder) == ["third"]
    again.release()


def test_a_micro_batch_that_ends_between_its_renames(stream: Path) -> None:
    output = Output(stream)
    commit(output, "fourth", "batch=11", "between the renames")
    assert not output.is_committed("batch=11")
    assert len(publications(stream)) == 3
    commit(output, "fourth", "batch=11")
    assert output.is_committed("batch=11")
    assert len(publications(stream)) == 4


def test_files_that_go_away_are_looked_for_again(stream: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    looked: list[list[Path]] = []
    look = exporting.committed_files

    def once_too_early(output: Output) -> list[Path]:
        files = look(output)
        looked.append(files)
        return [*files, stream / "matches" / "gone.parquet"] if len(looked) == 1 else files

    monkeypatch.setattr(exporting, "committed_files", once_too_early)
    assert publications(stream) == ["first", "second", "third"]
    assert len(looked) == 2
    monkeypatch.setattr(exporting, "committed_files", lambda output: [stream / "gone.parquet"])
    monkeypatch.setattr(exporting, "_PAUSE", 0)
    with pytest.raises(TriplewireError, match="go away while they are read"):
        exporting.export(Output(stream), tmp_path / "file.csv", ".csv")
    shutil.rmtree(stream)
