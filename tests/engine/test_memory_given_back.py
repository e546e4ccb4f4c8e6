"""Memory that was needed while subscriptions were loaded is the system's again."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from triplewire.memory import give_back

MEGABYTES = 64


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def columns() -> list[pa.Array]:
    """So many megabytes of Arrow's."""
    column = pa.array(range(62_500))
    return [pa.concat_arrays([column, column]) for _ in range(MEGABYTES)]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems tell resident memory otherwise")
def test_what_arrow_has_freed() -> None:
    columns()  # what is loaded at first use is there
    give_back()
    before = resident()
    kept = columns()
    held = resident() - before
    assert held > MEGABYTES * 900_000
    del kept
    give_back()
    assert resident() - before < held / 4
