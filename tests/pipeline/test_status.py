"""`triplewire pipeline status` over folders whose streams have not got far. No Spark runs here."""

from __future__ import annotations

import contextlib
import errno
import json
import re
import sqlite3
from pathlib import Path

import pytest

from triplewire.cli import run
from triplewire.errors import Refusal
from triplewire.pipeline.committed import Status
from triplewire.pipeline.connect.arrivals import Arrivals
from triplewire.pipeline.output import Output
from triplewire.state_file import connected


def test_a_stream_that_has_just_begun(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, output = tmp_path / "in", Output(tmp_path / "out")
    source.mkdir()
    output.prepare(source, True)
    output.record(streaming=True, subscriptions="abc", remote=False)
    assert Status.of(output) == Status(streaming=True, running=True, waiting=0, version="abc")
    for name in "ab":
        (source / f"{name}.nt").write_text("<urn:s> <urn:p> <urn:o> .\n")
    arrivals = Arrivals(str(source), output.arrivals, settle=0)
    arrivals.take(arrivals.scan(-1))
    with contextlib.closing(sqlite3.connect(output.arrivals)) as connection, connection:
        connection.execute("UPDATE files SET taken = taken - 90")
    output.release()
    status = Status.of(output)
    assert (status.running, status.waiting) == (False, 2)
    assert status.oldest_seconds is not None
    assert 90 <= status.oldest_seconds < 150

    assert run(["pipeline", "status", "--output", str(output.folder)]) == 0
    assert "waiting       2 files, the first for 9" in capsys.readouterr().out
    assert run(["pipeline", "status", "--output", str(output.folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["waiting"] == 2


def test_a_kill_while_refusals_are_written(tmp_path: Path) -> None:
    """The half of a file that it leaves counts for nothing, and the next start removes it."""
    output = Output(tmp_path / "out")
    output.prepare(tmp_path / "in", True)
    output.record(streaming=True)
    output.add_refusals([Refusal("publication", "a", "a", "it is wrong")], "batch=-1")
    file = output.folder / "dead-letter" / "batch=-1" / "driver-0.parquet"
    (half := file.with_name(".driver-1.parquet")).write_bytes(file.read_bytes()[:100])
    output.release()
    assert Status.of(output).refused == 1
    again = Output(output.folder)
    again.prepare(tmp_path / "in", True)
    again.release()
    assert (file.exists(), half.exists(), Status.of(again).refused) == (True, False, 1)


def test_a_damaged_ledger(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = Output(tmp_path / "out")
    output.prepare(tmp_path / "in", True)
    output.record(streaming=True, subscriptions="abc", remote=False)
    output.release()
    output.arrivals.write_bytes(b"garbage" * 1_000)
    assert run(["pipeline", "status", "--output", str(output.folder)]) == 74
    assert re.search(rf"{output.arrivals}: it cannot be used: file is not a database", capsys.readouterr().err)


def test_a_full_disk(tmp_path: Path) -> None:
    """SQLite says so in its own way, and the commands in one."""
    file = tmp_path / "ledger.sqlite"

    def fill() -> None:
        with connected(file, "CREATE TABLE given (text TEXT)") as ledger:
            ledger.execute("PRAGMA max_page_count = 2")
            ledger.execute("INSERT INTO given VALUES (?)", ["x" * 100_000])

    with pytest.raises(OSError, match="full") as raised:
        fill()
    assert (raised.value.errno, raised.value.filename) == (errno.ENOSPC, str(file))


def test_no_output_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pipeline", "status", "--output", str(tmp_path)]) == 2
    assert "it is no output folder of a run" in capsys.readouterr().err


def test_a_look_does_not_keep_a_run_from_starting(tmp_path: Path) -> None:
    """The lock is held for a moment by who asks for the status."""
    output = Output(tmp_path / "out")
    output.prepare(tmp_path / "in", True)
    output.release()
    for _ in range(20):
        Status.of(output)
        again = Output(output.folder)
        again.prepare(tmp_path / "in", True)
        again.release()
