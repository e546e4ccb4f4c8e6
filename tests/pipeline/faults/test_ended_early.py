"""SIGTERM, with which systems end their services, while Spark starts and while it works.

Nothing is said of Spark, and no process is left. Workers import nothing from the folder that they are started in.
"""

from __future__ import annotations

import functools
import http.server
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from left_processes import left, left_after
from shared_data import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("spark"),
    pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc"),
]
PATIENCE = 300  # s


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
    assert not left_after(mark, PATIENCE)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing on standard error."""


def test_a_stream_of_feeds_ends_with_all_its_processes(tmp_path: Path) -> None:
    examples, out = ROOT / "examples", tmp_path / "out"
    (tmp_path / "tarfile.py").write_text("open('was-imported', 'w').close()")  # workers import this name
    serve = functools.partial(Quiet, directory=str(examples / "publications/feeds"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        root = f"http://127.0.0.1:{server.server_address[1]}/"
        (tmp_path / "list.feeds").write_text(f"{root}bird-log.atom\n")
        (tmp_path / "connect.toml").write_text(f'["{root}"]\nallow_private_addresses = true\n')
        command = ["--subscriptions", examples / "subscriptions/puffin-chicks.rq", "--input", "list.feeds"]
        command += ["--output", out, "--connect", "connect.toml", "--streaming", "--watch", "1"]
        with subprocess.Popen(
            [sys.executable, "-P", "-m", "triplewire", "pipeline", "run", *command],
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            text=True,
            start_new_session=True,
        ) as run:
            until = time.monotonic() + 6 * PATIENCE
            while not list(out.glob("matches/**/*.parquet")) and time.monotonic() < until and run.poll() is None:
                time.sleep(0.005)  # what is committed is counted, although all end in the same moment
            os.killpg(run.pid, signal.SIGTERM)
            assert run.stderr is not None
            said = run.stderr.read()
            assert run.wait(PATIENCE) == 0, said
        server.shutdown()
    assert len(said.splitlines()) == 3, said
    first, second, summary = said.splitlines()
    assert (first, second) == ("starting Spark", "reading and matching")
    assert summary.startswith("2 matches in 8 publications")
    assert not (tmp_path / "was-imported").exists()
