"""The processes that a command leaves, found by a mark in their environment."""

from __future__ import annotations

import time
from pathlib import Path


def left(mark: str) -> list[str]:
    """The command lines of processes with the mark."""
    lines = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (process / "environ").read_bytes():
                lines.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:200])
        except OSError:
            pass  # it has ended
    return lines


def left_after(mark: str, seconds: float) -> list[str]:
    """The same, once there are none, or at the end of so many seconds."""
    until = time.monotonic() + seconds
    while (lines := left(mark)) and time.monotonic() < until:
        time.sleep(0.2)
    return lines
