"""The lock between processes that compile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from triplewire import kernel_cache
from triplewire.engine.tiers.kernels import BACKGROUND
from triplewire.folders import locked

HOLD = """
import sys, time
from pathlib import Path
from triplewire.folders import locked
with locked(Path(sys.argv[1])) as held:
    print(held, flush=True)
    time.sleep(600)
"""


STARTS_ANOTHER = """
import os, subprocess, sys
from triplewire.engine.tiers.kernels import BACKGROUND
code = BACKGROUND.replace("({parent})", "({parent}, 0)").format(parent=os.getpid())
subprocess.Popen([sys.executable, "-c", code])
sys.stdin.read()
"""


def test_one_holds_it_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with locked(path) as first, locked(path) as second:
        assert (first, second) == (True, False)
    with locked(path) as again:
        assert again


def test_no_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("dear")
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="lock"), locked(tmp_path / "lock"):
        pass
    assert (tmp_path / "elsewhere").read_text() == "dear"


def test_a_dead_owner_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "True\n"
        with locked(path) as held:
            assert not held
        owner.send_signal(signal.SIGKILL)
        owner.wait()
    path.write_text("dear")
    with locked(path) as held:
        assert held
    assert path.read_text() == "dear", "what is in the file is left alone"


@pytest.mark.parametrize("held", [False, True], ids=["all is compiled", "another process is at it"])
def test_a_background_process_ends_at_once_where_there_is_nothing_to_do(tmp_path: Path, held: bool) -> None:
    folder = kernel_cache.choose(iter([tmp_path]), kernel_cache.OURS.folder_name)
    assert folder is not None
    if not held:
        kernel_cache.mark_complete(folder)
    path = folder / kernel_cache.LOCK if held else tmp_path / "another"
    with locked(path):
        done = subprocess.run(
            [sys.executable, "-c", BACKGROUND.format(parent=os.getpid())],
            env={**os.environ, kernel_cache.FOLDER: str(tmp_path)},
            check=False,
            timeout=600,
        )
    assert done.returncode == 0
    assert not list(folder.glob("*.nbc"))


def test_a_background_process_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    folder = kernel_cache.choose(iter([tmp_path]), kernel_cache.OURS.folder_name)
    assert folder is not None
    lock, environment = folder / kernel_cache.LOCK, {**os.environ, kernel_cache.FOLDER: str(tmp_path)}
    command = [sys.executable, "-c", STARTS_ANOTHER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=environment) as parent:
        _wait_until(lambda: lock.exists() and _is_held(lock))
        assert parent.stdin is not None
        parent.stdin.close()
    _wait_until(lambda: not _is_held(lock))
    assert not kernel_cache.is_complete(folder), "it compiled to the end: this test is blind"


def _is_held(path: Path) -> bool:
    with locked(path) as mine:
        return not mine


def _wait_until(is_so: Callable[[], bool]) -> None:
    for _ in range(6_000):
        if is_so():
            return
        time.sleep(0.05)
    pytest.fail("nothing has changed in five minutes")
