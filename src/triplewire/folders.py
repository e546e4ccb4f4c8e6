"""The files that a path stands for: those below a folder, with what is left out, and what a glob names. It is the same
for publications and subscriptions."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterator
from pathlib import Path

LINK = "it is a link to a folder, which is not followed: name that folder itself"


def named_by(path: str) -> list[str]:
    """The file or folder of this path, or else those that it names as a glob, sorted."""
    return [path] if os.path.exists(path) else sorted(filter(os.path.exists, glob.glob(path, recursive=True)))


def entries_below(folder: Path) -> Iterator[tuple[Path, str]]:
    """The files below a folder, sorted by path, each with "", and with a reason each folder that is left out: one that
    cannot be read, and a link, as links may lead in circles. What has a name that begins with a dot is passed over."""
    entries: list[tuple[Path, str]] = []

    def leave_out(error: OSError) -> None:
        entries.append((Path(error.filename), f"the folder cannot be read: {error.strerror}"))

    for place, folders, names in os.walk(folder, onerror=leave_out):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths = [Path(place, name) for name in names if not name.startswith(".")]
        entries += [(path, "") for path in paths if _may_be_file(path)]
        entries += [(path, LINK) for path in (Path(place, name) for name in folders) if is_linked_folder(path)]
    yield from sorted(entries)


def is_linked_folder(path: str | Path) -> bool:
    """Is it a link to a folder?"""
    return os.path.islink(path) and os.path.isdir(path)


def _may_be_file(path: Path) -> bool:
    """Is it a regular file, or something unknown, as the end of a broken link? Opening that says what is wrong."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return True
