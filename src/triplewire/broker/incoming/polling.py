"""Gets what sources have: feeds are asked as they are due, folders looked at, topics of Kafka read.

One process does it at a time; where it is killed, another goes on. What came is accepted before it is marked as taken,
so that it comes again rather than never: the same publication with the same content is taken once.

    with Broker.open(url, secret) as broker, Polling(broker, ServiceSettings()):
        ...
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy.engine import Row

from triplewire.broker.broker import Broker
from triplewire.broker.incoming.folder_sources import Folders
from triplewire.broker.incoming.intake import Intake, take
from triplewire.broker.incoming.item_subscriptions import renew_all
from triplewire.broker.incoming.registered_sources import FOLDER, KAFKA, POLL, Noted, State, Take
from triplewire.broker.incoming.topic_sources import Topics
from triplewire.broker.publications.kept_contents import Came, read_body
from triplewire.broker.repeating import Repeating
from triplewire.config import ServiceSettings
from triplewire.errors import BusyError, ReadError, StoreError, TriplewireError, UnavailableError
from triplewire.net.addresses import Connections
from triplewire.sources.feed_states import Feed
from triplewire.sources.inbox import Delivered
from triplewire.sources.poller import Poller

WORK = "polling"
_LOOK = 0.5  # seconds between looks at what has changed
_TAKE_OVER = 2.0  # seconds between tries to become the process that polls

_log = logging.getLogger("triplewire.broker")


class Polling(Repeating):
    """Gets what the sources of a broker have, for as long as the block lasts."""

    def __init__(self, broker: Broker, settings: ServiceSettings, clock: Callable[[], float] = time.time) -> None:
        super().__init__("polling")
        self._broker = broker
        self._how = settings
        self._clock = clock
        self._term = 0

    def _turn(self) -> float:
        try:
            if (term := self._broker.database.alone_at(WORK, self._broker.holder)) is not None:
                self._term = term
                self._poll()
        except BusyError:
            _log.info("another process polls now")
        return _TAKE_OVER

    def _poll(self) -> None:
        """Poll until the end, or until another process does."""
        of, lost = self._broker, threading.Event()
        feeds = _Feeds(of, self.take, self._noted, lost)
        settings = {"allow_private_addresses": str(self._how.allow_private_addresses).lower()}
        poller = Poller(
            [], Path(), Connections({"http://": settings, "https://": settings}), self._clock, on_note=_log.warning,
            receive=feeds.receive, states=feeds, adapts=(self._how.shortest_poll, self._how.longest_poll),
        )  # fmt: skip
        folders, topics = Folders(self._how.source_folder, self.take, self._noted), Topics(self.take)
        seen, end = -1, poller.begin(True)
        try:
            while not (self._stop.is_set() or lost.is_set()):
                of.followed.follow()
                if of.followed.sources_seen != seen:
                    seen = of.followed.sources_seen
                    poller.follow(feeds.load())
                    folders.follow(of.sources.of_kind(FOLDER))
                    topics.follow(of.sources.of_kind(KAFKA))
                folders.look()
                topics.look()
                self._stop.wait(_LOOK)
        finally:
            topics.close()
            end()

    def take(self, rows: Sequence[Row[Any]], body: bytes, place: str) -> Intake:
        """Take over a document of these sources, and note how it was. Raises where it cannot be kept; one that cannot
        be read is noted."""
        done, reason = Intake(), ""
        try:
            done = take(self._broker, self._read(body, place), rows, most_new=self._how.most_new)
        except (StoreError, UnavailableError):
            raise
        except TriplewireError as error:
            reason = str(error)
        if not (done.taken or done.subscribed) and done.refusals:
            reason = reason or str(done.refusals[0])

        def note(state: State) -> None:
            state.failures, state.reason = (state.failures + 1 if reason else 0), reason
            state.last = self._clock()
            state.tell(str(refusal) for refusal in done.refusals if not refusal.is_warning)

        self._broker.counts.documents.labels("refused" if reason else "taken").inc()
        for row in rows:
            self._noted(row, note)
        return done

    def _read(self, body: bytes, place: str) -> Came:
        """The publications of a document. Whatever is raised is about it: it must not keep others from being read."""
        try:
            return read_body(body, place, self._broker.settings)
        except TriplewireError:
            raise
        except Exception as error:
            _log.exception("a document cannot be read: %s", place)
            raise ReadError(f"it cannot be read: {type(error).__name__}: {error}", source=place) from error

    def _noted(self, row: Row[Any], update: Callable[[State], None]) -> None:
        """Change what is kept of a source, as long as this is the process that polls. Raises `BusyError`."""
        database, term = self._broker.database, self._term
        self._broker.sources.note(row.number, update, lambda connection: database.check_term(connection, WORK, term))


class _Feeds:
    """The feeds of the store, as the poller asks for them. Several sources may have one address: it is asked once."""

    def __init__(self, broker: Broker, take: Take, noted: Noted, lost: threading.Event) -> None:
        self._broker, self._take, self._noted, self._lost = broker, take, noted, lost
        self._rows: dict[str, list[Row[Any]]] = {}

    def load(self) -> dict[str, Feed]:
        """The feeds by their addresses; where one source was not asked yet, the feed is new."""
        rows: dict[str, list[Row[Any]]] = {}
        for row in self._broker.sources.of_kind(POLL):
            rows.setdefault(row.url, []).append(row)
        self._rows = rows
        known = {url: [State.of(row).known() for row in of] for url, of in rows.items()}
        return {url: next((feed for feed in feeds if feed), Feed(url, url)) if all(feeds) else Feed(url, url)
                for url, feeds in known.items()}  # fmt: skip

    def store(self, feeds: Iterable[Feed], *, alone: bool = False) -> None:
        """Note how feeds are known. Subscriptions that came with one last as long as it is there."""
        for feed in feeds:
            for row in self._rows.get(feed.address, ()):
                self._or_lost(partial(self._noted, row, partial(State.know, feed=feed, resets=State.of(row).resets)))
                if row.may_subscribe and not feed.failures:
                    renew_all(self._broker, row)

    def receive(self, came: Sequence[Delivered]) -> None:
        """Take over what came."""
        for entry in came:
            rows = self._rows.get(entry.feed, [])
            if entry.content is None:
                _log.info("%s: %s", entry.place, entry.reason)
            elif rows:
                self._or_lost(partial(self._take, rows, entry.content, entry.place))

    def _or_lost(self, do: Callable[[], object]) -> None:
        try:
            do()
        except BusyError:
            self._lost.set()
            raise
