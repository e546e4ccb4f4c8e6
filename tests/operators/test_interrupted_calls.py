"""Ctrl-C and what ends services, while operators in processes of their own are called: none of these is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cli.runner import HEEDS_HANGUPS
from left_processes import left, left_after

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")]
OPERATOR = """
import subprocess
from triplewire.extend import Parameter

class Sleeps:
    name, parameters, isolated, timeout, concurrency = "sleeps", (Parameter("n"),), True, 300, {}
    def evaluate(self, publication, arguments):
        subprocess.run(["sleep", "300"])

operators = (Sleeps(),)
"""


@pytest.mark.parametrize(
    ("concurrency", "number"), [(1, signal.SIGINT), (3, signal.SIGINT), (3, signal.SIGTERM), (3, signal.SIGHUP)]
)
def test_calls_end_with_the_command(tmp_path: Path, concurrency: int, number: signal.Signals) -> None:
    mark = f"interrupted in {tmp_path}"
    (tmp_path / "sleeps.py").write_text(OPERATOR.format(concurrency))
    (tmp_path / "a.nq").write_text("".join(f'<urn:s> <urn:p> "{n}" <urn:g{n}> .\n' for n in range(9)))
    query = ["--query", "sleeps(1), sleeps(2), sleeps(3), sleeps(4)", "--language", "predicates"]
    code = f"{HEEDS_HANGUPS}; from triplewire.cli import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, "match", *query, "--operators", "sleeps.py", "--publications", "a.nq"],
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        text=True,
        start_new_session=True,
        env=os.environ | {"OF_TEST": mark},
    ) as run:
        until = time.monotonic() + 240
        while sum("sleep 300" in line for line in left(mark)) < concurrency and time.monotonic() < until:
            time.sleep(0.1)
        begun = sum("sleep 300" in line for line in left(mark))
        run.send_signal(number)
        try:
            assert begun >= concurrency
            assert (run.wait(300), run.stderr.read() if run.stderr else "") == (130, "")
        finally:
            run.kill()
    assert not left_after(mark, 300)
