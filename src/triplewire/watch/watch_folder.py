"""The folder of a watch: who writes there, what was told, how far it is.

_lock            held while a watch runs
_watch.json      how many parts were told, and what was counted
_stream          the name of the watch in sinks
_told.sqlite     which matches were told (`triplewire.pipeline.match_ledger`)
_arrivals.sqlite which files were read (`triplewire.pipeline.connect.arrivals`)
_inbox           what came and was not told yet, and what is known of feeds (`triplewire.sources`)
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from triplewire.errors import TriplewireError, WriteError
from triplewire.folders import locked, replace_text
from triplewire.pipeline.connect.delivery import stream_of
from triplewire.sources.feed_states import FeedStatus, feeds_of
from triplewire.sources.inbox import FOLDER, Inbox

_LOOK = 0.5  # seconds to wait for one that only looks at the lock


@dataclass(frozen=True)
class Progress:
    """How far a watch is: the number of the last part that was told, and of the last that was handed to sinks; the
    publications, matches, refusals and matches told before of all parts; when the last one was told; and a hash of what
    the last start refused of the subscriptions."""

    done: int = 0
    delivering: int = 0
    publications: int = 0
    matches: int = 0
    refused: int = 0
    repeats: int = 0
    last: str = ""
    start: str = ""

    def after(self, publications: int, matches: int, refused: int, repeats: int) -> Progress:
        """With what was counted of the part that is being told."""
        now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        return replace(
            self, done=self.delivering, publications=self.publications + publications, matches=self.matches + matches,
            refused=self.refused + refused, repeats=self.repeats + repeats, last=now,
        )  # fmt: skip


class WatchFolder:
    """The folder of a watch."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.inbox = folder / "_inbox"
        self.told = folder / "_told.sqlite"
        self.arrivals = folder / "_arrivals.sqlite"
        self._file = folder / "_watch.json"
        self._lock = folder / "_lock"

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Makes the folder and holds its lock in the block, if it can be had; says whether that is so. Raises
        `TriplewireError` where something else lies there, and `WriteError`."""
        if (self.folder / "_run.json").exists():
            what = "a run of the pipeline wrote it"
            raise TriplewireError(what, source=str(self.folder), remedy="choose another output")
        with ExitStack() as holding:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                held = holding.enter_context(locked(self._lock, _LOOK))
            except OSError as error:
                what = f"it cannot be written: {error.strerror or error}"
                raise WriteError(what, source=str(self.folder), remedy="choose another output") from error
            yield held

    @property
    def stream(self) -> str:
        """The name of the watch in sinks, made by chance."""
        return stream_of(self.folder)

    def opened_inbox(self) -> Inbox:
        """The inbox, whose parts have numbers that none had before."""
        return Inbox(self.inbox / FOLDER, self.progress().done)

    def progress(self) -> Progress:
        """How far the watch is. Raises `TriplewireError` where the record is damaged."""
        try:
            text = self._file.read_text(encoding="utf-8")
        except FileNotFoundError:
            return Progress()
        try:
            return Progress(**json.loads(text))
        except (ValueError, TypeError):
            remedy = "put it back as it was, or choose another output"
            raise TriplewireError("it is no record of a watch", source=str(self._file), remedy=remedy) from None

    def record(self, progress: Progress) -> None:
        """Write down how far the watch is, in one step."""
        replace_text(self._file, json.dumps(asdict(progress)) + "\n")

    def status(self) -> WatchStatus:
        """What the watch has done, and what it waits for. Raises `TriplewireError` where there is none."""
        if not self._file.exists():
            remedy = "start one: triplewire watch --subscriptions ... --sources ... --output ..."
            raise TriplewireError("no watch has written to it", source=str(self.folder), remedy=remedy)
        progress, waiting = self.progress(), len(list((self.inbox / FOLDER).glob("[0-9]*.parquet")))
        with locked(self._lock) as held:
            running = not held
        return WatchStatus(
            running, progress.done, progress.publications, progress.matches, progress.refused, progress.repeats,
            progress.last, waiting, feeds_of(self.inbox),
        )  # fmt: skip


@dataclass(frozen=True)
class WatchStatus:
    """What a watch has done: whether it runs, the parts that it told, what was counted in them, when the last one was
    told (an instant of UTC in ISO 8601), the parts that wait in the inbox, and its feeds."""

    running: bool
    parts: int
    publications: int
    matches: int
    refused: int
    repeats: int
    last: str
    waiting: int
    feeds: list[FeedStatus] = field(default_factory=list)
