"""The running counts on standard error, where that is a terminal: with totals, where these are known."""

from __future__ import annotations

import gzip
import os
import pty
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from triplewire.languages.sources.files import count_rows

QUERY = "SELECT ?o { ?s <urn:p> ?o }"
ROW = '{"id": "%d", "language": "sparql", "query": "' + QUERY + '"}\n'


def on_terminal(*arguments: str) -> str:
    """What a command writes to standard error where that is a terminal, without what moves the cursor."""
    leader, follower = pty.openpty()
    environment = os.environ | {"TRIPLEWIRE_TIER": "interpreted", "COLUMNS": "120", "TERM": "xterm"}
    command = [sys.executable, "-m", "triplewire", *arguments]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=follower, env=environment) as process:
        os.close(follower)
        said = b""
        with suppress(OSError):  # Linux says so where the last writer has gone
            while part := os.read(leader, 1 << 16):
                said += part
    os.close(leader)
    assert process.returncode == 0, said
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", said.decode())


@pytest.mark.parametrize("command", ["match", "read"])
def test_totals_are_told(command: str, tmp_path: Path) -> None:
    """Of files, in bytes; of subscriptions, in rows."""
    queries, data = tmp_path / "queries.jsonl", tmp_path / "data"
    queries.write_text("".join(ROW % number for number in range(3)), encoding="utf-8")
    data.mkdir()
    (data / "a.nt").write_text('<urn:s> <urn:p> "a" .\n' * 30, encoding="utf-8")
    (data / "b.ttl").write_text('<urn:s> <urn:p> "b" .\n', encoding="utf-8")
    to = ("--subscriptions", str(queries), "--publications") if command == "match" else ()
    shown = on_terminal(command, *to, str(data))
    assert re.search(r"2 publications .*682/682 bytes", shown), shown
    assert ("3 of 3 subscriptions" in shown) == (command == "match")


def test_rows_are_counted_where_a_look_tells(tmp_path: Path) -> None:
    (tmp_path / "one.rq").write_text(QUERY, encoding="utf-8")
    (tmp_path / "some.jsonl").write_text(ROW % 1 + ROW % 2, encoding="utf-8")
    pq.write_table(pa.table({"id": ["a", "b", "c"]}), tmp_path / "more.parquet")
    assert count_rows([tmp_path]) == 6
    (tmp_path / "packed.jsonl.gz").write_bytes(gzip.compress((ROW % 3).encode()))
    assert count_rows([tmp_path]) == 0, "not known"
    assert count_rows([tmp_path / "missing.jsonl"]) == count_rows(["-"]) == 0
