"""Kernels are compiled once a node: of many workers that start at the same moment, one compiles and all others load."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from triplewire import kernel_cache
from triplewire.engine.tiers.kernels import TIER

WORKERS = 4


@pytest.mark.slow
def test_workers_that_start_together_compile_once(tmp_path: Path) -> None:
    environment = {**os.environ, kernel_cache.FOLDER: str(tmp_path / "cache"), TIER: "auto", "NUMBA_DISABLE_JIT": "0"}
    command = [sys.executable, str(Path(__file__).with_name("obtained.py"))]
    running = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(WORKERS)
    ]
    said = [process.communicate(timeout=300) for process in running]
    assert [process.returncode for process in running] == [0] * WORKERS, said
    counts = sorted(int(out) for out, _ in said)
    assert counts[:-1] == [0] * (WORKERS - 1), "only one of them compiles"
    assert counts[-1] >= 2
