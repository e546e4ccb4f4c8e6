"""A provider and a repository that are killed at named points, and at random moments.

The points lie between the filter's first pass and the acknowledgement. No batch is lost, none is applied twice, and the
cache is the answer of its rules.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from amounts import usually

TESTS = Path(__file__).parents[1]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(usually(1, 5)))
def test_kills_lose_and_double_nothing(seed: int, new_database: Callable[[], str]) -> None:
    command = [sys.executable, "-m", "metadata.killed_metadata", new_database(), new_database(), str(seed)]
    environment = {**os.environ, "PYTHONPATH": f"{TESTS}:{TESTS.parent}", "TRIPLEWIRE_TIER": "interpreted"}
    done = subprocess.run(
        [*command, str(usually(12, 100))],
        env=environment, cwd=TESTS, capture_output=True, text=True, check=False, timeout=usually(300, 3_000),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3_000:]
    batches, _, of_provider, _, of_repository = done.stdout.split()
    assert int(batches) > 1
    assert int(of_provider) > 0
    assert int(of_repository) > 0
