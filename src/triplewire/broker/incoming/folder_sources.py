"""Sources that are folders: each file in one is taken once, and again where it has changed.

A file is taken once it has stayed the same from one look to the next, so that one that is being written is not taken by
halves. Hidden files are passed over, and so is what does not lie below the folder that is allowed, as by a link.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy.engine import Row

from triplewire.broker.incoming.registered_sources import Noted, State, Take
from triplewire.errors import ArgumentError
from triplewire.net.client import MOST_BYTES

_MOST_FILES = 10_000  # that are looked at in one folder


def below(allowed: str, url: str) -> Path:
    """The folder of a source. Raises `ArgumentError` where it does not lie below the one that is allowed; "" for
    none."""
    if not allowed:
        raise ArgumentError("no source may be a folder here", remedy="name the folder below which they are allowed")
    folder = Path(allowed, url).resolve()
    if not folder.is_relative_to(Path(allowed).resolve()) or not folder.is_dir():
        raise ArgumentError(f"there is no folder {url!r} below the one that is allowed")
    return folder


class Folders:
    """The folders of sources, which are looked at from time to time."""

    def __init__(self, allowed: str, take: Take, noted: Noted) -> None:
        self._rows: Sequence[Row[Any]] = ()
        self._allowed, self._take, self._noted = allowed, take, noted
        self._marks: dict[int, dict[str, list[int]]] = {}
        self._seen: dict[int, dict[str, list[int]]] = {}

    def follow(self, rows: Sequence[Row[Any]]) -> None:
        """Look at these folders from now on."""
        self._rows = rows
        self._marks = {row.number: State.of(row).marks for row in rows}

    def look(self) -> None:
        """Take what is new in each folder, and has not changed since the look before."""
        for row in self._rows:
            try:
                folder = below(self._allowed, row.url)
            except ArgumentError as error:
                self._tell(row, str(error))
                continue
            marks, files = self._marks[row.number], _files(folder)
            before, self._seen[row.number] = self._seen.get(row.number, {}), files
            new = [name for name, mark in files.items() if mark == before.get(name) and mark != marks.get(name)]
            for name in sorted(new, key=lambda name: (files[name][1], name)):
                self._take_file(row, folder / name, files)

    def _take_file(self, row: Row[Any], file: Path, files: dict[str, list[int]]) -> None:
        mark = files[file.name]
        try:
            content = _content(file)
        except OSError as error:
            self._tell(row, f"{file.name} cannot be read: {error.strerror or error}")
        else:
            if len(content) > MOST_BYTES:
                self._tell(row, f"{file.name} has more than {MOST_BYTES} bytes")
            else:
                self._take([row], content, f"folder:{row.url}/{file.name}")
        marks = {name: other for name, other in self._marks[row.number].items() if name in files}
        marks[file.name] = mark
        self._noted(row, partial(State.mark, marks=marks))
        self._marks[row.number] = marks

    def _tell(self, row: Row[Any], what: str) -> None:
        def note(state: State) -> None:
            if what not in state.told:
                state.tell([what])

        self._noted(row, note)


def _content(file: Path) -> bytes:
    """What a file holds, up to one byte more than it may. Raises `OSError`, also where it is a link by now."""
    with open(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise OSError("it is no file any more")
        return stream.read(MOST_BYTES + 1)


def _files(folder: Path) -> dict[str, list[int]]:
    """The files in a folder: name -> size and time of the last change in nanoseconds."""
    files: dict[str, list[int]] = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.name.startswith(".") and entry.is_file(follow_symlinks=False):
                status = entry.stat(follow_symlinks=False)
                files[entry.name] = [status.st_size, status.st_mtime_ns]
            if len(files) == _MOST_FILES:
                break
    return files
