"""A lock between processes: a file that the operating system locks, and unlocks when its owner ends in any way."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from triplewire.errors import StoreError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


LOCK = ".lock"
"""The file in a directory that is locked by whoever writes there."""
WAIT_SECONDS = 60.0  # for another process that writes to the same directory
_LOOK_SECONDS = 0.02
_OWNER = re.compile(rb"[0-9\0]{0,20}\n?")  # zeros where a machine stopped before the number was on disk


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Holds the lock inside the `with` block if nobody else does; says whether that is so. Never waits.

    The file holds the id of its last owner, for people who look. Where a file system knows no locks, everybody gets it.
    Raises `OSError` where the path is a link: what it leads to is not ours to write to.
    """
    with open(path, "a+b", opener=_opened) as stream:
        held = _lock(stream.fileno())
        if held:
            stream.truncate(0)
            stream.write(f"{os.getpid()}\n".encode())
            stream.flush()
        yield held  # closing the file unlocks it


@contextmanager
def alone(directory: Path) -> Iterator[None]:
    """A block in which no other process or thread writes to a directory. Waits for the others. Raises `StoreError`
    after `WAIT_SECONDS`."""
    begun = time.monotonic()
    while True:
        with locked(directory / LOCK) as held:
            if held:
                yield
                return
        if time.monotonic() - begun > WAIT_SECONDS:
            what = f"another process has been writing to it for {WAIT_SECONDS:.0f} seconds"
            remedy = f"wait until it has ended ({LOCK} has its number), or choose another directory"
            raise StoreError(what, source=str(directory), remedy=remedy)
        time.sleep(_LOOK_SECONDS)


def is_lock(path: Path) -> bool:
    """Is it a file that `locked` may have made? Its content is the id of an owner, or nothing."""
    with open(path, "rb", opener=_opened) as stream:
        return _OWNER.fullmatch(stream.read(64)) is not None


def _opened(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


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
