"""The files that a path stands for, and how files are written and locked.

A path stands for the files below a folder, with what is left out, or those that a glob names, the same for publications
and subscriptions. Also: reading and replacing small files, having files written to disk, and locks between processes.
"""

from __future__ import annotations

import errno
import glob
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from triplewire.errors import BusyError

NO_PLAIN_FILE = "it is no plain file, but a pipe, a socket or a device"
LINK = "it is a link to a folder, which is not followed: name that folder itself"
NOWHERE = "it is a link to what is not there, or may not be looked at"
LOCK = ".lock"
"""The file in a directory that is locked by whoever writes there."""
WAIT_SECONDS = 60.0  # for another process that writes to the same directory
_LOOK_SECONDS = 0.02  # between two tries

MOST_TEXT = 16 << 20  # bytes of a file of settings or operators


def text_of_file(path: str | Path) -> str:
    """The text of a file of settings or operators, in UTF-8. Raises `UnicodeDecodeError` and `OSError`, also where it
    has more than `MOST_TEXT` bytes: a device may have no end."""
    with open(path, "rb") as stream:
        data = stream.read(MOST_TEXT + 1)
    if len(data) > MOST_TEXT:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return data.decode("utf-8")


def replace_text(file: Path, text: str) -> None:
    """Write a small file, in UTF-8, in one step: nobody reads half of it. Raises `OSError`."""
    aside = file.with_name(f".{file.name}.{os.getpid()}")
    aside.write_text(text, encoding="utf-8")
    os.replace(aside, file)


@contextmanager
def on_disk(path: Path) -> Iterator[IO[bytes]]:
    """A new file, which is written to in the block, and is on disk at its end. Raises `OSError`."""
    with path.open("wb") as stream:
        yield stream
        stream.flush()
        os.fsync(stream.fileno())


def sync(folder: Path) -> None:
    """Have the names in a folder written to disk."""
    with suppress(OSError):  # there are systems on which a folder cannot be opened
        file = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


@contextmanager
def locked(path: Path, wait: float = 0) -> Iterator[bool]:
    """Holds the lock in the block, if it can be had within so many seconds; says whether that is so. The operating
    system unlocks it when its owner ends in any way; the file stays, and what is in it.

    Raises `OSError` where the path is a link: what it leads to is not ours.
    """
    from filelock import FileLock, Timeout  # most programs neither save nor compile

    lock = FileLock(path, thread_local=False)
    with suppress(Timeout):
        lock.acquire(timeout=wait, poll_interval=_LOOK_SECONDS)
    try:
        yield lock.is_locked
    finally:
        lock.release()


@contextmanager
def alone(directory: Path) -> Iterator[None]:
    """A block in which no other process or thread writes to a directory. Waits for the others. Raises `BusyError`
    after `WAIT_SECONDS`."""
    with locked(directory / LOCK, WAIT_SECONDS) as held:
        if not held:
            what = f"another process has been writing to it for {WAIT_SECONDS:.0f} seconds"
            remedy = "wait until it has ended, or choose another directory"
            raise BusyError(what, source=str(directory), remedy=remedy)
        yield


def is_there(path: str) -> bool:
    """Is there such a file or folder, or a link? Raises `PermissionError` where a folder on the way to it may not be
    looked into."""
    try:
        os.lstat(path)
    except PermissionError:
        raise
    except (OSError, ValueError):  # also what is no name of a file
        return False
    return True


def named_by(path: str) -> list[str]:
    """The file or folder of this path, or else those that it names as a glob, sorted; also links that lead nowhere:
    to open them says so. Raises `PermissionError` as `is_there`."""
    return [path] if is_there(path) else sorted(glob.glob(path, recursive=True))


def entries_below(folder: Path) -> Iterator[tuple[Path, str]]:
    """The files below a folder, sorted by path, each with "", and with a reason what is left out: a folder that cannot
    be read, a link to one, as links may lead in circles, and what is no plain file, which may have no end. What has a
    name that begins with a dot is passed over."""
    entries: list[tuple[Path, str]] = []

    def leave_out(error: OSError) -> None:
        entries.append((Path(error.filename), f"the folder cannot be read: {error.strerror}"))

    for place, folders, names in os.walk(folder, onerror=leave_out):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths = [Path(place, name) for name in names if not name.startswith(".")]
        entries += [(path, reason_left_out(path)) for path in paths]
        entries += [(path, LINK) for path in (Path(place, name) for name in folders) if is_linked_folder(path)]
    yield from sorted(entries)


def entries_of(path: Path) -> Iterator[tuple[Path, str]]:
    """`entries_below` a folder; any other path is its only entry."""
    yield from entries_below(path) if os.path.isdir(path) else ((path, ""),)


def is_linked_folder(path: str | Path) -> bool:
    """Is it a link to a folder?"""
    return os.path.islink(path) and os.path.isdir(path)


def reason_left_out(path: str | Path) -> str:
    """Why something that is below a folder is left out; "" for a file, and for what cannot be opened: to open it says
    what is wrong."""
    if is_linked_folder(path):
        return LINK
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return ""
    return "" if stat.S_ISREG(mode) or stat.S_ISDIR(mode) else NO_PLAIN_FILE
