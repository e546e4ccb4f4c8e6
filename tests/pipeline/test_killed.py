"""A stream that is killed with -9 at each named point of a commit, and goes on: nothing is lost, nothing is twice.

The same holds for tables in databases. Kafka and webhooks get some matches twice, under the same name.

One process a point, and one that ends the work: each starts Spark. So by default only the points on both sides of the
rename of the matches are tried; `TRIPLEWIRE_DAMAGE=all` in the environment tries all.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from pipeline.connect import servers
from pipeline.connect.received import in_kafka, in_postgres, in_sqlite
from pipeline.connect.servers import Receiver
from triplewire.pipeline.connect.addresses import Connections
from triplewire.pipeline.results.committed import committed_files
from triplewire.pipeline.results.status import Status
from triplewire.pipeline.sinks import Output

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

ALL = (
    "in the ledger",
    "after the ledger",
    "delivered",
    "before the commit",
    "between the renames",
    "after the commit",
)
POINTS = ALL if os.environ.get("TRIPLEWIRE_DAMAGE") == "all" else ALL[-2:]


def committed(out: Path) -> Counter[str]:
    files = committed_files(Output(out))
    return Counter(name for file in files for name in pq.read_table(file)["publication"].to_pylist())


class Sinks:
    """Where the stream delivers to beside its output folder: what of it can be had here."""

    def __init__(self, request: pytest.FixtureRequest, receiver: Receiver, connect: Path, folder: Path) -> None:
        self.database, self.receiver = folder / "found.sqlite", receiver
        self.connections = Connections.read(connect)
        self.postgres, self.kafka = self._had(request, "postgres"), self._had(request, "kafka")
        given = [f"{self.postgres}#killed"] * bool(self.postgres) + [f"kafka://{self.kafka}/killed"] * bool(self.kafka)
        self.file = folder / "sinks.json"
        jars = servers.jars("connector") if given else []
        self.spark: SparkSession = request.getfixturevalue("linked") if given else None
        matches = [f"sqlite:{self.database}", receiver.url, *given]
        said = {
            "matches": matches,
            "letters": matches[:1],
            "connect": str(connect),
            "jars": list(map(str, jars)),
        }
        self.file.write_text(json.dumps(said))

    def _had(self, request: pytest.FixtureRequest, name: str) -> str:
        try:
            return str(request.getfixturevalue(name))
        except pytest.skip.Exception:  # the tests of connect/ say so
            return ""

    def check(self, wanted: Counter[str], letters: int) -> None:
        """Each match is there: once in databases, more than once elsewhere where it was repeated."""
        rows = in_sqlite(self.database, "matches")
        assert Counter(row["publication"] for row in rows) == wanted
        assert len(in_sqlite(self.database, "dead_letters")) == letters
        if self.postgres:
            there = in_postgres(self.spark, self.connections, self.postgres, "killed")
            assert Counter(row["publication"] for row in there) == wanted
        keys = {f"{row['stream']}-{row['batch']}-{row['identity']}" for row in rows}
        posted = Counter(headers["idempotency-key"] for headers, _ in self.receiver.requests)
        assert set(posted) == keys
        assert max(posted.values()) > 1
        if self.kafka:
            sent = Counter(key for key, _, _ in in_kafka(self.spark, self.kafka, "killed"))
            assert set(sent) == {row["identity"] for row in rows}
            assert max(sent.values()) > 1


def test_killed_at_each_point_of_the_commit(
    tmp_path: Path, request: pytest.FixtureRequest, receiver: Receiver, secrets_file: Path
) -> None:
    sinks = Sinks(request, receiver, secrets_file, tmp_path)
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    script, environment = Path(__file__).with_name("killed.py"), {**os.environ, "TRIPLEWIRE_TIER": "interpreted"}
    wanted: Counter[str] = Counter()
    for number, point in enumerate((*POINTS, "")):
        lines = [f'<urn:s> <urn:p> "{number}" <urn:g{number}-{graph}> .\n' for graph in range(3)]
        lines.append('<urn:s> <urn:p> "the same" <urn:again> .\n')  # told once, whatever is repeated
        (source / f"{number}.nq").write_text("".join(lines) + "no quad\n", encoding="utf-8")
        wanted.update({f"urn:g{number}-{graph}": 1 for graph in range(3)} | ({"urn:again": 1} if not number else {}))
        command = [sys.executable, str(script), str(source), str(out), point, str(sinks.file)]
        process = subprocess.Popen(
            command, env=environment, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        try:
            _, said = process.communicate(timeout=300)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        if not point:
            assert process.returncode == 0, said.decode()
            break
        assert process.returncode == -signal.SIGKILL, f"{point} was not reached: {said.decode()}"
        seen = committed(out)
        assert max(seen.values(), default=1) == 1
        assert set(seen) == (
            {f"urn:g0-{graph}" for graph in range(3)} | {"urn:again"} if point == POINTS[-1] else set()
        )
    assert committed(out) == wanted
    sinks.check(wanted, len(POINTS) + 1)
    status = Status.of(Output(out))
    assert (status.matches, status.waiting, status.running) == (len(wanted), 0, False)
    letters = [name for file in out.glob("dead-letter/batch=[0-9]*/*.parquet") for name in
               pq.read_table(file)["subject"].to_pylist()]  # fmt: skip
    assert len(letters) == len(set(letters)) == len(POINTS) + 1
