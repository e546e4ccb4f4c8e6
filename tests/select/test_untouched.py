"""Scratch arrays as large as an index: only what is touched takes memory, and forked processes have their own."""

from __future__ import annotations

import multiprocessing
import sys
from pathlib import Path

import numpy as np
import pytest

from triplewire.clauses.clauses import mapped_zeros

MEGABYTES = 64


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the system does not say what is resident")
def test_only_what_is_touched_is_resident() -> None:
    before = resident()
    array = mapped_zeros((MEGABYTES << 18, 1), np.int32)
    assert not array[:: 1 << 20].any()
    array[0] = array[-1] = 7
    assert resident() - before < MEGABYTES / 8
    array[:] = 1
    assert resident() - before > MEGABYTES * 7 / 8
    del array
    assert resident() - before < MEGABYTES / 8, "all of it is given back"


def resident() -> float:
    """Megabytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / (1 << 20)


@pytest.mark.parametrize("length", [10, 1 << 20])
def test_a_forked_process_has_its_own(length: int) -> None:
    array = mapped_zeros(length, np.int64)
    process = multiprocessing.get_context("fork").Process(target=array.fill, args=(3,))
    process.start()
    process.join()
    assert process.exitcode == 0
    assert not array.any()
