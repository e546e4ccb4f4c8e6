"""A stream that is killed with -9 when its sinks have a micro-batch and Spark does not know of it, and goes on.

Tables have each match once. Kafka and the webhook have it twice, under the same name. It starts Spark twice, so it is
for `make full`; by default `test_delivery` repeats a micro-batch in the session that is there, and `faults` kills a
stream.
Other points of the commit: `tests/pipeline/test_killed.py`.
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

from amounts import IN_FULL
from pipeline.connect import servers
from pipeline.connect.received import in_kafka, in_postgres, in_sqlite
from triplewire.net.addresses import Connections
from triplewire.pipeline.committed import committed_files
from triplewire.pipeline.output import Output

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

SCRIPT = Path(__file__).parents[1] / "killed.py"


@pytest.mark.skipif(not IN_FULL, reason="two starts of Spark: TRIPLEWIRE_DAMAGE=all")
def test_killed_after_the_sinks_and_before_the_commit(
    linked: SparkSession,
    postgres: str,
    kafka: str,
    receiver: servers.Receiver,
    secrets_file: Path,
    tmp_path: Path,
) -> None:
    source, out, database, sinks = (tmp_path / name for name in ("in", "out", "found.sqlite", "sinks.json"))
    source.mkdir()
    given = {
        "matches": [f"sqlite:{database}", f"{postgres}#killed", f"kafka://{kafka}/killed", receiver.url],
        "letters": [f"sqlite:{database}"],
        "connect": str(secrets_file),
        "jars": list(map(str, servers.jars("connector"))),
    }
    sinks.write_text(json.dumps(given))
    (source / "0.nq").write_text('<urn:s> <urn:p> "0" <urn:g0> .\n<urn:s> <urn:p> "1" <urn:g1> .\nno quad\n')
    codes, environment = [], {**os.environ, "TRIPLEWIRE_TIER": "interpreted"}
    for number, point in enumerate(("delivered", "")):
        if number:
            (source / "1.nq").write_text('<urn:s> <urn:p> "2" <urn:g2> .\n')
        command = [sys.executable, str(SCRIPT), str(source), str(out), point, str(sinks)]
        process = subprocess.Popen(command, env=environment, start_new_session=True, stderr=subprocess.PIPE)
        try:
            _, said = process.communicate(timeout=300)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        codes.append(process.returncode)
    assert codes == [-signal.SIGKILL, 0], said.decode()

    wanted = {"urn:g0": 1, "urn:g1": 1, "urn:g2": 1}
    files = committed_files(Output(out))
    assert Counter(name for file in files for name in pq.read_table(file)["publication"].to_pylist()) == wanted
    rows = in_sqlite(database, "matches")
    there = in_postgres(linked, Connections.read(secrets_file), postgres, "killed")
    for table in (rows, there):
        assert Counter(row["publication"] for row in table) == wanted
    assert [row["subject"] for row in in_sqlite(database, "dead_letters")] == [str(source / "0.nq")]
    times = {f"{row['stream']}-{row['batch']}-{row['identity']}": 1 + (row["batch"] == 0) for row in rows}
    assert sorted(times.values()) == [1, 2, 2]
    assert Counter(headers["idempotency-key"] for headers, _ in receiver.requests) == times
    sent = in_kafka(linked, kafka, "killed")
    assert Counter(f"{own['stream']}-{own['batch']}-{own['identity']}" for _, _, own in sent) == times
