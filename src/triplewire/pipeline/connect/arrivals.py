"""The files that a stream reads: which are new, which have changed, which wait until they are complete.

Spark's own file source takes a file once, as it is when it is first seen: an empty one for good, one that is still
being written in part, one that is overwritten not again. So a stream over local files looks itself, and writes down
which files a micro-batch reads before it begins: each file is read exactly once, and a micro-batch that is repeated has
the files that it had, as they are now. What is known lies in a SQLite file. Decision 036.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeAlias

from triplewire.errors import ReadError, Refusal, TriplewireError
from triplewire.folders import LINK, NO_PLAIN_FILE, NOWHERE
from triplewire.pipeline.connect.documents import assign_tasks
from triplewire.pipeline.sources import local_roots, refused_entry
from triplewire.state_file import connected

SETTLE = 2.0
"""Seconds that a file has not changed for, until it counts as complete."""

_LATEST = 2**63 - 1  # nanoseconds, which SQLite holds: in the year 2262
_OF_A_BATCH = 16_384  # files, at most: what is repeated after a crash
_REMEDY = "give it a name (and content) that a stream takes"
_TABLES = """
CREATE TABLE IF NOT EXISTS files
(path BLOB PRIMARY KEY, size INTEGER NOT NULL, changed INTEGER NOT NULL, batch INTEGER, task INTEGER, taken REAL)
WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS files_by_batch ON files (batch);
CREATE TABLE IF NOT EXISTS last (batch INTEGER NOT NULL);
"""


class State(NamedTuple):
    """A file as it was seen: its size in bytes, and when it changed, in nanoseconds."""

    size: int
    changed: int


File: TypeAlias = "tuple[str, tuple[str, ...], os.stat_result]"
"""A file: its path, the names below the root, and what the system says of it. A hidden folder, or a link to a folder,
counts as one, which stands for all that is in it."""


class Seen(NamedTuple):
    """What was done with a file: as it was then, and the micro-batch that took it; None where it was passed over."""

    state: State
    batch: int | None


class MicroBatch(NamedTuple):
    """The files that a micro-batch reads, task by task: the path and size in bytes of each."""

    number: int
    tasks: list[list[tuple[str, int]]]


@dataclass
class ScanResult:
    """What a scan of the source found to do."""

    ready: list[tuple[str, State]] = field(default_factory=list)  # files to read
    changed: list[str] = field(default_factory=list)  # those of them that were read before and have changed since
    repeated: list[tuple[str, State]] = field(default_factory=list)  # changed, and in a micro-batch to be repeated
    passed: list[tuple[str, State]] = field(default_factory=list)  # files to pass over
    refusals: list[Refusal] = field(default_factory=list)  # of files that a stream does not take
    pending: list[str] = field(default_factory=list)  # files that still change


class Arrivals:
    """The files of a source (file, folder or glob), as one stream knows them.

    `file` holds what is known, from start to start. `settle` are the seconds that a file has not changed for before it
    counts; `tasks` is how many Spark does at a time.
    """

    def __init__(self, source: str, file: Path, settle: float = SETTLE, tasks: int = 1) -> None:
        self._source = source
        self._settle = settle
        self._tasks = tasks
        self._file = file
        # file that still changes -> its last state, and since when it is in that state
        self._watched: dict[str, tuple[State, float]] = {}
        self._unreadable: set[str] = set()
        with connected(self._file, _TABLES) as connection:
            rows = connection.execute("SELECT path, size, changed, batch FROM files").fetchall()
        self._seen = {os.fsdecode(path): Seen(State(size, changed), batch) for path, size, changed, batch in rows}

    def scan(self, committed: int) -> ScanResult:
        """What has come or changed since the last `take`. Nothing is written down. `committed` is the number of the
        last micro-batch that was committed, -1 for none: files of later ones stay in them."""
        out = ScanResult()
        watched: dict[str, tuple[State, float]] = {}
        for path, names, status in self._files(out):
            state = State(status.st_size, min(status.st_mtime_ns, _LATEST))
            seen = self._seen.get(path)
            if seen is not None and seen.state == state:
                continue
            batch = None if seen is None else seen.batch
            left_out = _reason_left_out(names, status.st_mode)
            why = left_out or _reason_to_pass(names, status.st_size)
            if seen is not None and batch is None and why:
                continue  # it was passed over before, which is recorded once
            if not self._is_complete(path, state, watched):
                out.pending.append(path)
                continue
            if batch is not None and batch > committed:
                out.repeated.append((path, state))  # also where it has been emptied: the micro-batch stays as it is
            elif why:
                out.passed.append((path, state))
            else:
                out.ready.append((path, state))
                if batch is not None:
                    out.changed.append(path)
            if why:
                error = TriplewireError(f"a stream passes over {why}", remedy=_REMEDY)
                out.refusals.append(
                    refused_entry(path, left_out) if left_out else Refusal.of("publication", path, error)
                )
        self._watched = watched
        return out

    def take(self, result: ScanResult) -> None:
        """Write down what `scan` gave: which files are passed over, and which micro-batches read the others."""
        passed = [(path, state, None, None) for path, state in result.passed]
        if not (result.ready or passed or result.repeated):
            return
        now = time.time()
        with connected(self._file, _TABLES) as connection:
            (last,) = connection.execute("SELECT max(batch) FROM last").fetchone()
            first = 0 if last is None else last + 1
            places = self._places([state.size for _, state in result.ready], first)
            taken = [(path, state, *place) for (path, state), place in zip(result.ready, places, strict=True)]
            rows = ((os.fsencode(path), *state, batch, task, now) for path, state, batch, task in (*taken, *passed))
            connection.executemany("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?)", rows)
            repeated = ((*state, os.fsencode(path)) for path, state in result.repeated)
            connection.executemany("UPDATE files SET size = ?, changed = ? WHERE path = ?", repeated)
            if taken:
                connection.execute("DELETE FROM last")
                connection.execute("INSERT INTO last VALUES (?)", (taken[-1][2],))
        self._seen.update((path, Seen(state, batch)) for path, state, batch, _ in (*taken, *passed))
        self._seen.update((path, self._seen[path]._replace(state=state)) for path, state in result.repeated)

    def _places(self, sizes: Sequence[int], first: int) -> Iterator[tuple[int, int]]:
        """The micro-batch and the task of each file, by their sizes. `first`: the number of the first micro-batch."""
        for number, begin in enumerate(range(0, len(sizes), _OF_A_BATCH), first):
            yield from ((number, task) for task in assign_tasks(sizes[begin : begin + _OF_A_BATCH], self._tasks))

    def batches(self, after: int) -> list[MicroBatch]:
        """The micro-batches with a higher number than `after`, in their order."""
        query = "SELECT batch, task, path, size FROM files WHERE batch > ? ORDER BY batch, task, path"
        with connected(self._file, _TABLES) as connection:
            rows = connection.execute(query, (after,)).fetchall()
        out = []
        for number, own in itertools.groupby(rows, key=lambda row: int(row[0])):
            tasks = itertools.groupby(own, key=lambda row: row[1])
            out.append(MicroBatch(number, [[(os.fsdecode(row[2]), row[3]) for row in task] for _, task in tasks]))
        return out

    def _is_complete(self, path: str, state: State, watched: dict[str, tuple[State, float]]) -> bool:
        """Has the file not changed for long enough? By its own time, or, where that is ahead, by what was seen."""
        if time.time() - state.changed / 1e9 >= self._settle:
            return True
        before, since = self._watched.get(path, (state, time.monotonic()))
        if before != state:
            since = time.monotonic()
        watched[path] = state, since
        return time.monotonic() - since >= self._settle

    def _files(self, out: ScanResult) -> Iterator[File]:
        """All files there are. A stream looks many times a second, so no path objects are made."""
        for root in map(Path, local_roots(self._source)):
            if not root.is_dir():
                with contextlib.suppress(FileNotFoundError):  # removed meanwhile
                    status = _status(root)
                    if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
                        yield str(root), (root.name,), status
                continue
            folders: list[tuple[str, tuple[str, ...]]] = [(str(root), ())]
            while folders:
                folder, above = folders.pop()
                below = []
                for entry, status in self._entries(folder, out):
                    is_folder = stat.S_ISDIR(status.st_mode)
                    is_passed = is_folder and (entry.name.startswith(".") or entry.is_symlink())
                    if not is_folder or is_passed:
                        yield entry.path, (*above, entry.name), status
                    else:
                        below.append((entry.path, (*above, entry.name)))
                folders += reversed(below)

    def _entries(self, folder: str, out: ScanResult) -> Iterator[tuple[os.DirEntry[str], os.stat_result]]:
        """What is in a folder, by name."""
        try:
            with os.scandir(folder) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except OSError as error:
            self._refuse_once(folder, f"the folder cannot be read: {error.strerror or error}", out)
            return
        for entry in entries:
            try:
                status = _status(entry)
            except FileNotFoundError:  # removed meanwhile
                continue
            except OSError as error:  # the folder can be listed, and not entered
                self._refuse_once(entry.path, f"it cannot be looked at: {error.strerror or error}", out)
                continue
            yield entry, status

    def _refuse_once(self, path: str, what: str, out: ScanResult) -> None:
        """Refuse what cannot be looked at, in the first scan that comes upon it."""
        if path not in self._unreadable:
            self._unreadable.add(path)
            out.refusals.append(Refusal.of("publication", path, ReadError(what, source=path)))


def _status(entry: os.DirEntry[str] | Path) -> os.stat_result:
    """What the system says of a file, or of the link itself where it leads nowhere. Raises `OSError`."""
    try:
        return entry.stat()
    except OSError:
        if not entry.is_symlink():
            raise
        return entry.stat(follow_symlinks=False)


def _reason_left_out(names: Sequence[str], mode: int) -> str:
    """Why neither a stream nor a batch reads it, as `triplewire.folders.reason_left_out` says."""
    if stat.S_ISREG(mode) or names[-1].startswith("."):
        return ""
    if stat.S_ISLNK(mode):
        return NOWHERE
    return LINK if stat.S_ISDIR(mode) else NO_PLAIN_FILE


def _reason_to_pass(names: Sequence[str], size: int) -> str:
    """Why a stream leaves out a file, "" where it does not. `names` are those from the root on."""
    if any(name.startswith(".") for name in names):
        return "hidden files and folders"
    if any(name.endswith("._COPYING_") or (name.startswith("_") and "=" not in name) for name in names):
        return "such names"
    return "" if size else "empty files, until they have content"
