"""The files that a stream reads: which are new, which have changed, which wait until they are complete.

Spark's own file source takes a file once, as it is when it is first seen: an empty one for good, one that is still
being written in part, one that is overwritten not again. So a stream over local files looks itself, writes down what is
to be read (a listing), and Spark streams the listings. Those never change, so each file of each listing is read exactly
once. What is known of the files lies in a SQLite file beside the listings. Decision 034.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeAlias

from triplewire.errors import ReadError, Refusal, TriplewireError
from triplewire.pipeline.sources import local_roots, reason_to_pass

SETTLE = 2.0
"""Seconds that a file has not changed for, until it counts as complete."""

_TOGETHER = 256  # files of one task, at most
_REMEDY = "run without --streaming, or give it a name (and content) that a stream takes"
_TABLE = """
CREATE TABLE IF NOT EXISTS files
(path BLOB PRIMARY KEY, size INTEGER NOT NULL, changed INTEGER NOT NULL, listing TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS files_by_listing ON files (listing);
"""


class State(NamedTuple):
    """A file as it was seen: its size in bytes, and when it changed, in nanoseconds."""

    size: int
    changed: int


File: TypeAlias = "tuple[str, tuple[str, ...], os.stat_result]"
"""A file: its path, the names below the root, and what the system says of it. A hidden folder counts as one, which
stands for all that is in it."""


class Seen(NamedTuple):
    """What was done with a file: as it was then, and the listing it went to, "" where it was passed over."""

    state: State
    listing: str


@dataclass
class Look:
    """What is to be done: files to read, those of them that were read before and have changed since, files that are
    passed over with their refusals, and those that still change."""

    ready: list[tuple[str, State]] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    passed: list[tuple[str, State]] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    pending: list[str] = field(default_factory=list)


class Arrivals:
    """The files of a source (file, folder or glob), as one stream knows them.

    `folder` holds what is known, from start to start; `listings` in it is what Spark reads. `settle` are the seconds
    that a file has not changed for before it counts; `tasks` is how many Spark does at a time.
    """

    def __init__(self, source: str, folder: Path, settle: float = SETTLE, tasks: int = 1) -> None:
        self.listings = folder / "listings"
        self._source = source
        self._settle = settle
        self._tasks = tasks
        self._file = folder / "files.sqlite"
        self._watched: dict[
            str, tuple[State, float]
        ] = {}  # those that still change, and since when they are as they are
        self._unreadable: set[str] = set()
        self.listings.mkdir(parents=True, exist_ok=True)
        with self._connected() as connection:
            rows = connection.execute("SELECT path, size, changed, listing FROM files").fetchall()
        self._seen = {os.fsdecode(path): Seen(State(size, changed), listing) for path, size, changed, listing in rows}
        last = max((seen.listing for seen in self._seen.values()), default="")
        self._count = int(last.partition("-")[0]) if last else 0
        if last:  # the process may have ended before it was written
            number = f"{self._count:010}-"
            self._write([(path, seen) for path, seen in self._seen.items() if seen.listing.startswith(number)])

    def look(self) -> Look:
        """What has come or changed since the last `take`. Nothing is written down."""
        out = Look()
        watched: dict[str, tuple[State, float]] = {}
        for path, names, status in self._files(out):
            state = State(status.st_size, status.st_mtime_ns)
            seen = self._seen.get(path)
            if seen is not None and seen.state == state:
                continue
            why = reason_to_pass(names, path, status.st_size)
            if seen is not None and not seen.listing and why and status.st_size:
                continue  # passed over for its name, which is recorded once
            if not self._is_complete(path, state, watched):
                out.pending.append(path)
            elif why:
                out.passed.append((path, state))
                error = TriplewireError(f"a stream passes over {why}", remedy=_REMEDY)
                out.refusals.append(Refusal.of("publication", path, error))
            else:
                out.ready.append((path, state))
                if seen is not None and seen.listing:
                    out.changed.append(path)
        self._watched = watched
        return out

    def take(self, look: Look) -> None:
        """Write down what `look` found, and hand over to Spark what is to be read."""
        groups = max(-(-len(look.ready) // _TOGETHER), min(len(look.ready), 2 * self._tasks), 1)
        self._count += bool(look.ready)
        taken = [
            (path, Seen(state, f"{self._count:010}-{number % groups:05}"))
            for number, (path, state) in enumerate(look.ready)
        ]
        passed = [(path, Seen(state, "")) for path, state in look.passed]
        if not taken and not passed:
            return
        rows = [(os.fsencode(path), *seen.state, seen.listing) for path, seen in (*taken, *passed)]
        with self._connected() as connection:
            connection.executemany("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?)", rows)
        self._seen.update((*taken, *passed))
        self._write(taken)

    def _write(self, taken: Sequence[tuple[str, Seen]]) -> None:
        """Write the listings of these files that are not there. One that Spark has read it does not read again."""
        lines: dict[str, list[str]] = {}
        for path, seen in taken:
            line = json.dumps({"path": f"file:{path}", "length": seen.state.size}, ensure_ascii=False)
            lines.setdefault(seen.listing, []).append(line + "\n")
        for name, texts in lines.items():
            file = self.listings / f"{name}.json"
            if not file.exists():
                part = self.listings / f".{name}.part"
                part.write_text("".join(texts), encoding="utf-8")
                os.replace(part, file)

    def _is_complete(self, path: str, state: State, watched: dict[str, tuple[State, float]]) -> bool:
        """Has the file not changed for long enough? By its own time, or, where that is ahead, by what was seen."""
        if time.time() - state.changed / 1e9 >= self._settle:
            return True
        before, since = self._watched.get(path, (state, time.monotonic()))
        if before != state:
            since = time.monotonic()
        watched[path] = state, since
        return time.monotonic() - since >= self._settle

    def _files(self, out: Look) -> Iterator[File]:
        """All files there are. A stream looks many times a second, so no path objects are made."""
        for root in map(Path, local_roots(self._source)):
            if not root.is_dir():
                with contextlib.suppress(OSError):  # removed meanwhile, or a link to nothing
                    status = root.stat()
                    if stat.S_ISREG(status.st_mode):
                        yield str(root), (root.name,), status
                continue
            folders: list[tuple[str, tuple[str, ...]]] = [(str(root), ())]
            while folders:
                folder, above = folders.pop()
                below = []
                for entry, status in self._entries(folder, out):
                    is_folder = stat.S_ISDIR(status.st_mode)
                    if stat.S_ISREG(status.st_mode) or (is_folder and entry.name.startswith(".")):
                        yield entry.path, (*above, entry.name), status
                    elif is_folder and not entry.is_symlink():
                        below.append((entry.path, (*above, entry.name)))
                folders += reversed(below)

    def _entries(self, folder: str, out: Look) -> Iterator[tuple[os.DirEntry[str], os.stat_result]]:
        """What is in a folder, by name."""
        try:
            with os.scandir(folder) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except OSError as error:
            self._refuse_folder(error, out)
            return
        for entry in entries:
            try:
                status = entry.stat()
            except OSError:  # removed meanwhile, or a link to nothing
                continue
            yield entry, status

    def _refuse_folder(self, error: OSError, out: Look) -> None:
        name = str(error.filename)
        if name not in self._unreadable:
            self._unreadable.add(name)
            what = f"the folder cannot be read: {error.strerror or error}"
            out.refusals.append(Refusal.of("publication", name, ReadError(what, source=name)))

    @contextlib.contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        with contextlib.closing(sqlite3.connect(self._file)) as connection, connection:
            connection.executescript(_TABLE)
            yield connection
