"""Matches what lies in the inbox and tells sinks, part by part; a part is a file of the inbox.

    what came -> inbox -> matches -> those that are new, by the ledger -> sinks -> the part is done, and removed

A process may be killed at any moment. Then the part is there at the next start, under the same number: the ledger takes
back what the earlier try wrote, so the same matches are new, and sinks get them again, under the same names.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from triplewire.engine import Engine
from triplewire.engine.explain.why import reasons_of
from triplewire.errors import ReadError, Refusal
from triplewire.model.publication import Publication
from triplewire.model.same import Same
from triplewire.notify.rows import (
    LETTER,
    MATCH,
    LetterRecord,
    MatchRecord,
    Part,
    Record,
    Sink,
    compact_json,
)
from triplewire.pipeline.match_ledger import MatchLedger
from triplewire.read import read_document
from triplewire.read.rdf.contexts import Loader
from triplewire.sources.inbox import Delivered, Inbox, delivered
from triplewire.watch.watch_folder import Progress, WatchFolder

_LOOK = 0.2  # seconds between two looks at the inbox


class Source(Protocol):
    """What fills the inbox: `triplewire.sources.Poller`, `triplewire.watch.FileSource`."""

    def begin(self, watch: bool) -> Callable[[], None]:
        """Once, or, to `watch`, in a thread. Returns what ends it, once the event that both share is set."""


@dataclass
class Watch:
    """What is matched and who is told. `matches` and `letters` are sinks; with `why`, sinks of matches get the reasons
    of each. `same` says which matches are told once. `on_refusal` is called with each refusal; `at` at named points, so
    that a test can end the process."""

    engine: Engine
    folder: WatchFolder
    inbox: Inbox
    matches: Sequence[Sink]
    letters: Sequence[Sink]
    why: bool = False
    same: Same = Same.ITEM
    split: str = "item"
    as_written: bool = False
    loader: Loader | None = None
    on_refusal: Callable[[Refusal], None] = lambda refusal: None
    at: Callable[[str], None] = lambda point: None
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._stream = self.folder.stream
        self._ledger = MatchLedger(self.folder.told, at=self.at, same=self.same)
        self._progress = self.folder.progress()
        self.begun = self._progress  # what was counted before this start
        for sink in (*self.matches, *self.letters):
            sink.check(self._stream, self.stop)
        self.folder.record(self._progress)
        if note := self._ledger.begin():
            self.on_refusal(Refusal("warning", str(self.folder.folder), "", note))

    @property
    def told(self) -> Progress:
        """What was counted, with all starts before."""
        return self._progress

    def start(self, refusals: Sequence[Refusal]) -> None:
        """Tell what was refused of the subscriptions, unless the last start refused the same."""
        name = hashlib.sha256(repr(refusals).encode("utf-8", "replace")).hexdigest()[:16] if refusals else ""
        if name != self._progress.start:
            self._deliver(self.letters, map(LetterRecord.of, refusals), Part(self._stream, 0, LETTER, True, self.stop))
            self._progress = replace(self._progress, start=name)
            self.folder.record(self._progress)

    def run(self, source: Source, watch: bool) -> None:
        """Tell what is new: once, or, to `watch`, until `stop` is set. Raises `TriplewireError` where a sink cannot be
        reached: nothing is lost, the next start tells it."""
        with ThreadPoolExecutor(1) as pool:
            gathering = pool.submit(source.begin, watch)
            try:
                while not self.stop.is_set():
                    ended = gathering.done() and not watch  # before the look: what came before is there
                    self._work_off()
                    if ended:
                        break
                    if watch and gathering.done() and (raised := gathering.exception()) is not None:
                        raise raised
                    self.stop.wait(_LOOK if watch else 0.02)
            finally:
                if watch or not gathering.done():
                    self.stop.set()
            gathering.result()()

    def _work_off(self) -> None:
        """Tell the parts that are in the inbox."""
        for number, file in self.inbox.files():
            if self.stop.is_set():
                return
            if number > self._progress.done:
                self._tell(number, file)
            file.unlink(missing_ok=True)
            self.at("removed")

    def _tell(self, number: int, file: Path) -> None:
        """Match a part and tell what is new in it."""
        refusals: list[Refusal] = []
        publications = self._publications(delivered(file), refusals.append)
        result = self.engine.match(publications)
        refusals += result.refusals
        rows = [(MatchRecord.of(match), match) for match in result]
        is_new, repeats = self._ledger.new([match.told_as(self.same) for _, match in rows], number)
        records = [
            record._replace(why=compact_json(reasons_of(self.engine, match))) if self.why else record
            for (record, match), new in zip(rows, is_new.tolist(), strict=True)
            if new
        ]
        replaces = self._progress.delivering == number
        self._progress = replace(self._progress, delivering=number)
        self.folder.record(self._progress)
        self.at("delivering")
        unsent = self._deliver(self.matches, records, Part(self._stream, number, MATCH, replaces, self.stop))
        letters = [LetterRecord.of(refusal) for refusal in (*refusals, *unsent)]
        unsent += self._deliver(self.letters, letters, Part(self._stream, number, LETTER, replaces, self.stop))
        self.at("delivered")
        refused = [refusal for refusal in (*refusals, *unsent) if not refusal.is_warning]
        self._progress = self._progress.after(len(publications), len(records), len(refused), repeats)
        self.folder.record(self._progress)
        self.at("done")
        for refusal in (*refusals, *unsent):
            self.on_refusal(refusal)

    def _publications(self, came: Iterable[Delivered], refuse: Callable[[Refusal], None]) -> list[Publication]:
        """The publications of what came; what gives none is refused."""
        publications: list[Publication] = []
        for entry in came:
            if entry.content is None:
                refuse(Refusal.of("publication", entry.place, ReadError(entry.reason, source=entry.place)))
                continue
            publications += read_document(
                entry.content,
                entry.place,
                split=self.split,
                settings=self.engine.settings,
                on_refusal=refuse,
                loader=self.loader,
                as_written=self.as_written,
            )
        return publications

    def _deliver(self, sinks: Sequence[Sink], rows: Iterable[Record], part: Part) -> list[Refusal]:
        """Deliver rows to sinks; returns what no receiver will take."""
        rows = list({row.identity: row for row in rows}.values())
        if not (rows or part.replaces):
            return []
        return [replace(refusal, where=str(sink)) for sink in sinks for refusal in sink.deliver(rows, part)]
