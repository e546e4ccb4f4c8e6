"""The memory of a process, for the engine and for systems beside it: it loads nothing of the engine."""

from __future__ import annotations

import gc
import os
from contextlib import suppress
from pathlib import Path

from triplewire.memory import give_back


def resident_bytes() -> int:
    """Resident memory of this process, after freed memory is returned; 0 where the system does not say."""
    gc.collect()
    give_back()
    with suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0
