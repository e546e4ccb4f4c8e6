"""What is known of feeds from start to start: when each was asked and is due, and why it waits. A SQLite file."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from triplewire.net.addresses import shown
from triplewire.sources.fetch import Known
from triplewire.state_file import connected

NAME = "feeds.sqlite"
"""The file, beside the inbox."""

_GONE = 410
_TABLE = """
CREATE TABLE IF NOT EXISTS feeds (address TEXT PRIMARY KEY, url TEXT NOT NULL, etag TEXT NOT NULL,
modified TEXT NOT NULL, of TEXT NOT NULL, due REAL NOT NULL, failures INTEGER NOT NULL, status INTEGER NOT NULL,
digest BLOB NOT NULL, asked REAL NOT NULL DEFAULT 0, reason TEXT NOT NULL DEFAULT '', setup BLOB NOT NULL DEFAULT x'')
WITHOUT ROWID
"""
_FIELDS = "address, url, etag, modified, of, due, failures, status, digest, asked, reason, setup"
_LATER = {
    "asked": "REAL NOT NULL DEFAULT 0",
    "reason": "TEXT NOT NULL DEFAULT ''",
    "setup": "BLOB NOT NULL DEFAULT x''",
}
"""Columns that a file of an earlier version of this program does not have."""


@dataclass(frozen=True)
class Feed:
    """A feed as it is known: its address in the list, the `url` that is asked, when it is `due` and was `asked` (in
    seconds since 1970; 0: never), how often it failed in a row, the last status (0: no answer), the SHA-256 of what it
    gave, the `reason` why it waits for longer than its interval, a hash of the settings that it was asked with, and the
    seconds of its own `interval`, 0 where it has that of the settings."""

    address: str
    url: str
    known: Known = field(default_factory=Known)
    due: float = 0.0
    failures: int = 0
    status: int = 0
    digest: bytes = b""
    asked: float = 0.0
    reason: str = ""
    setup: bytes = b""
    interval: float = 0.0

    @property
    def is_gone(self) -> bool:
        """Did its server say that it is gone for good?"""
        return self.status == _GONE

    @property
    def state(self) -> str:
        """In a word or two: "new", "ok", "gone", or how often it failed in a row."""
        if self.is_gone:
            return "gone"
        if self.failures:
            return f"failed {self.failures} time{'s' * (self.failures > 1)}"
        return "ok" if self.asked or self.status else "new"


@dataclass(frozen=True)
class FeedStatus:
    """A feed as people and programs are told of it, without secrets: instants of UTC in ISO 8601, "" for none. `reason`
    says why it waits for longer than its interval."""

    address: str
    state: str
    last: str
    next: str
    status: int
    failures: int
    reason: str


class States(Protocol):
    """Where feeds are known from start to start."""

    def load(self) -> Mapping[str, Feed]:
        """The feeds by their addresses."""

    def store(self, feeds: Iterable[Feed], *, alone: bool = False) -> None:
        """Write down how feeds are known; `alone`: and forget all others."""


class FeedStates:
    """The file in which feeds are known; only its owner may read it, as addresses may hold secrets."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / NAME

    def load(self) -> dict[str, Feed]:
        """The feeds by their addresses. Raises `TriplewireError` where the file is damaged or in use."""
        with suppress(FileExistsError):
            self._file.touch(0o600, exist_ok=False)
        with connected(self._file, _TABLE) as connection:
            there = {row[1] for row in connection.execute("PRAGMA table_info(feeds)")}
            for name in [name for name in _LATER if name not in there]:
                connection.execute(f"ALTER TABLE feeds ADD COLUMN {name} {_LATER[name]}")
            rows = connection.execute(f"SELECT {_FIELDS} FROM feeds").fetchall()
        return {row[0]: Feed(row[0], row[1], Known(*row[2:5]), *row[5:]) for row in rows}

    def store(self, feeds: Iterable[Feed], *, alone: bool = False) -> None:
        """Write down how feeds are known; `alone`: and forget all others."""
        rows = [
            (f.address, f.url, f.known.etag, f.known.modified, f.known.address, f.due, f.failures, f.status, f.digest,
             f.asked, f.reason, f.setup)
            for f in feeds
        ]  # fmt: skip
        marks = ", ".join("?" * 12)
        with connected(self._file, _TABLE) as connection:
            if alone:
                connection.execute("DELETE FROM feeds")
            connection.executemany(f"INSERT OR REPLACE INTO feeds ({_FIELDS}) VALUES ({marks})", rows)


def feeds_of(folder: Path) -> list[FeedStatus]:
    """The feeds that are known in a folder, by their addresses; none where none were polled."""
    if not (folder / NAME).exists():
        return []
    return [
        FeedStatus(
            shown(feed.address), feed.state, _instant(feed.asked), "" if feed.is_gone else _instant(feed.due),
            feed.status, feed.failures, feed.reason,
        )
        for feed in sorted(FeedStates(folder).load().values(), key=lambda feed: feed.address)
    ]  # fmt: skip


def _instant(seconds: float) -> str:
    """An instant in ISO 8601; "" for none, or for what is none."""
    with suppress(OverflowError, ValueError, OSError):
        return dt.datetime.fromtimestamp(seconds, dt.UTC).isoformat(timespec="seconds") if seconds else ""
    return ""
