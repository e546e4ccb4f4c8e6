"""A stream that is killed with -9 at each named point of a commit, and goes on: nothing is lost, nothing is twice.

One process a point, and one that ends the work: each starts Spark. So it is for `make full`. With an index, where one
of the points is always tried, and at random moments: `faults`; with sinks: `connect`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from amounts import IN_FULL
from pipeline.runs import committed
from triplewire.pipeline.committed import Status
from triplewire.pipeline.output import Output

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

POINTS = ("in the ledger", "after the ledger", "before the commit", "between the renames", "after the commit")


@pytest.mark.skipif(not IN_FULL, reason="make full tries all points; by default, one with an index, in faults")
def test_killed_at_each_point_of_the_commit(tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    script, environment = Path(__file__).with_name("killed.py"), {**os.environ, "TRIPLEWIRE_TIER": "interpreted"}
    wanted: Counter[str] = Counter()
    for number, point in enumerate((*POINTS, "")):
        lines = [f'<urn:s> <urn:p> "{number}" <urn:g{number}-{graph}> .\n' for graph in range(3)]
        lines.append('<urn:s> <urn:p> "the same" <urn:again> .\n')  # told once, whatever is repeated
        (source / f"{number}.nq").write_text("".join(lines) + "no quad\n", encoding="utf-8")
        wanted.update({f"urn:g{number}-{graph}": 1 for graph in range(3)} | ({"urn:again": 1} if not number else {}))
        command = [sys.executable, str(script), str(source), str(out), point]
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
    status = Status.of(Output(out))
    assert (status.matches, status.waiting, status.running) == (len(wanted), 0, False)
    letters = [name for file in out.glob("dead-letter/batch=[0-9]*/*.parquet") for name in
               pq.read_table(file)["subject"].to_pylist()]  # fmt: skip
    assert len(letters) == len(set(letters)) == len(POINTS) + 1
