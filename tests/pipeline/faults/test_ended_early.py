"""SIGTERM, with which systems end their services, while Spark starts and while it works: nothing is said of Spark, and
no process is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shared_data import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("spark"),
    pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc"),
]
PATIENCE = 30  # s


def left(mark: str) -> list[str]:
    """The command lines of processes with a mark in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:200])
        except OSError:
            pass  # it has ended
    return found


@pytest.mark.parametrize(("said", "is_for_group"), [("starting Spark", False), ("reading and matching", True)])
def test_sigterm(tmp_path: Path, said: str, is_for_group: bool) -> None:
    examples, mark = ROOT / "examples", f"ended early in {tmp_path}"
    command = ["--subscriptions", examples / "subscriptions", "--input", examples / "publications", "--output", "out"]
    with subprocess.Popen(
        [sys.executable, "-m", "triplewire", "pipeline", "run", *command],
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        text=True,
        start_new_session=True,
        env=os.environ | {"OF_TEST": mark},
    ) as run:
        assert run.stderr is not None
        before = []
        for line in run.stderr:
            before.append(line)
            if said in line:
                break
        time.sleep(1 if said == "starting Spark" else 0.3)
        assert left(mark)
        (os.killpg if is_for_group else os.kill)(run.pid, signal.SIGTERM)
        after = run.stderr.read()
        assert (run.wait(PATIENCE), after) == (130, ""), before
    until = time.monotonic() + PATIENCE
    while left(mark) and time.monotonic() < until:
        time.sleep(0.2)
    assert not left(mark)
