"""A lock between processes: a file that the operating system locks, and unlocks when its owner ends in any way."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Holds the lock inside the `with` block if nobody else does; says whether that is so. Never waits.

    The file holds the id of its last owner, for people who look. Where a file system knows no locks, everybody gets it.
    """
    with open(path, "a+b") as stream:
        held = _lock(stream.fileno())
        if held:
            stream.truncate(0)
            stream.write(f"{os.getpid()}\n".encode())
            stream.flush()
        yield held  # closing the file unlocks it


def _lock(file: int) -> bool:
    try:
        if sys.platform == "win32":
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return True  # a file system without locks: at worst, two processes compile the same
    return True
