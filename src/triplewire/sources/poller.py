"""Polls feeds into an inbox, politely: no feed before it is due, few requests at once, and what servers ask for.

When a feed is due, and what is known of it, lies in a SQLite file beside the inbox, from start to start. A document
goes to the inbox first. A process that is killed in between fetches it once more, and a stream tells its items once.
"""

from __future__ import annotations

import hashlib
import math
import random
import re
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from triplewire.errors import ReadError, RequestError, TriplewireError
from triplewire.net.addresses import Connections
from triplewire.sources.fetch import LONGEST, Answered, Known, fetch
from triplewire.sources.inbox import FOLDER, Delivered, Inbox
from triplewire.state_file import connected

INTERVAL = 900.0
"""Seconds between two requests for a feed, unless its table of connections has another `interval`."""

LEAST = 10.0
"""The shortest interval, in seconds."""

AT_ONCE = 8
"""How many servers are asked at once, usually; of one server, one feed at a time."""

_SECONDS = 20.0  # for one answer
_BETWEEN = 0.2  # seconds between two requests to a server
_PAUSE = 10.0  # seconds after a failure of the inbox, doubled for each in a row
_TURN = 30.0  # seconds that a server is asked for its feeds, until others have their turn
_PIECE = 16 << 20  # bytes of documents that are written together, about; one document more may come
_TIDY = 3600.0  # seconds between two calls of `tidy`
_LOOK = 0.5  # seconds between looks at what is due
_JITTER = 0.1  # of a pause, so that feeds do not stay in step
_OVERLOADED, _GONE = {429, 503}, 410
_TABLE = """
CREATE TABLE IF NOT EXISTS feeds (address TEXT PRIMARY KEY, url TEXT NOT NULL, etag TEXT NOT NULL,
modified TEXT NOT NULL, of TEXT NOT NULL, due REAL NOT NULL, failures INTEGER NOT NULL, status INTEGER NOT NULL,
digest BLOB NOT NULL) WITHOUT ROWID
"""
_FIELDS = "address, url, etag, modified, of, due, failures, status, digest"


@dataclass(frozen=True)
class Feed:
    """A feed as it is known: its address in the list, the `url` that is asked, when it is `due` (seconds since 1970),
    how often it failed in a row, the last status, and the SHA-256 of what it gave."""

    address: str
    url: str
    known: Known = field(default_factory=Known)
    due: float = 0.0
    failures: int = 0
    status: int = 0
    digest: bytes = b""

    @property
    def is_gone(self) -> bool:
        """Did its server say that it is gone for good?"""
        return self.status == _GONE


@dataclass
class Poller:
    """The feeds of a list. What is known of them lies in a folder. `on_note` is told what is wrong here; `tidy` is
    called as polling begins, and each hour; `at_once`: how many servers are asked at once.

    What came goes to `receive`, from several threads but from one at a time. It returns once that is kept; what it
    raises has the feeds asked again. Without it, there is an inbox in the folder.

    Raises `TriplewireError` for an interval that is no number, and where what is known of feeds is damaged or in use.
    """

    addresses: Sequence[str]
    folder: Path
    connections: Connections = field(default_factory=Connections)
    clock: Callable[[], float] = time.time
    stop: threading.Event = field(default_factory=threading.Event)
    on_note: Callable[[str], None] = lambda note: None
    tidy: Callable[[], object] = lambda: None
    receive: Callable[[Sequence[Delivered]], object] | None = None
    at_once: int = AT_ONCE

    def __post_init__(self) -> None:
        for beginning, settings in self.connections.tables.items():  # a feed may move to any of them
            text = settings.get("interval", "0")
            if not re.fullmatch(r"\d{1,9}(\.\d+)?", text):
                raise TriplewireError(f"the interval {text!r} is no number of seconds", source=beginning)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._receive = self.receive or Inbox(self.folder / FOLDER).append
        self._file = self.folder / "feeds.sqlite"
        with connected(self._file, _TABLE) as connection:
            rows = connection.execute(f"SELECT {_FIELDS} FROM feeds").fetchall()
        before = {row[0]: Feed(row[0], row[1], Known(*row[2:5]), *row[5:]) for row in rows}
        self.feeds = {address: before.get(address, Feed(address, address)) for address in self.addresses}
        for feed in self.feeds.values():  # a clock that was wrong may have put it off for years
            latest = self.clock() + max(LONGEST, self._interval(feed)) * (1 + _JITTER)
            self.feeds[feed.address] = replace(feed, due=min(feed.due, latest))
        self._writing = threading.Lock()

    def begin(self, watch: bool) -> Callable[[], None]:
        """Poll what is due: once, or, to `watch`, in a thread. Returns what ends it."""
        if not watch:
            self.tidy()
            self.poll()
            return lambda: None
        thread = threading.Thread(target=self._watch, name="feeds", daemon=True)
        thread.start()

        def end() -> None:
            self.stop.set()
            thread.join(_SECONDS)

        return end

    def _watch(self) -> None:
        """Poll until `stop` is set. A server that is slow holds up none but its own feeds, and has its turn for
        `_TURN` seconds."""
        was_wrong, pause, under_way = "", _PAUSE, dict[str, Future[int]]()
        tidied = -math.inf
        with ThreadPoolExecutor(self.at_once) as pool:
            while not self.stop.is_set():
                try:
                    if time.monotonic() - tidied >= _TIDY:
                        tidied = time.monotonic()
                        self.tidy()
                    for server in [server for server, turn in under_way.items() if turn.done()]:
                        under_way.pop(server).result()
                        was_wrong, pause = "", _PAUSE
                    for server, feeds in self._due().items():
                        if server not in under_way:
                            under_way[server] = pool.submit(self._of_server, feeds, _TURN)
                except Exception as error:  # a full disk, say: nobody would see that the thread has ended
                    if str(error) != was_wrong:
                        was_wrong = str(error)
                        self.on_note(f"polling failed, and is tried again: {type(error).__name__}: {error}")
                    self.stop.wait(pause)
                    pause = min(2 * pause, INTERVAL)  # what could not be written is fetched again
                self.stop.wait(_LOOK)

    def poll(self) -> int:
        """Ask for each feed that is due, once; returns how many documents came."""
        servers = self._due()
        if not servers:
            return 0
        with ThreadPoolExecutor(min(self.at_once, len(servers))) as pool:
            return sum(pool.map(self._of_server, servers.values()))

    def _due(self) -> dict[str, list[Feed]]:
        """The feeds that are due, by their servers: those first that have waited longest."""
        now, servers = self.clock(), dict[str, list[Feed]]()
        for feed in sorted(self.feeds.values(), key=lambda feed: feed.due):
            if feed.due <= now and not feed.is_gone:
                servers.setdefault(urlsplit(feed.url).netloc, []).append(feed)
        return servers

    def _of_server(self, feeds: Sequence[Feed], seconds: float = math.inf) -> int:
        """Ask one server for its feeds, one after the other, for so many seconds; the others stay due. What came is
        written in pieces, as it comes. Returns how many documents these were."""
        after: list[Feed] = []  # the feeds as they are known afterwards
        came: list[Delivered] = []
        count, begun = 0, time.monotonic()
        for number, feed in enumerate(feeds):
            if time.monotonic() - begun > seconds or self.stop.wait(_BETWEEN if number else 0):
                break
            after.append(self._fetched(feed, came))
            if after[-1].status in _OVERLOADED:  # it holds for the other feeds of the server as well
                due = after[-1].due
                after += (replace(other, due=max(other.due, due)) for other in feeds[number + 1 :])
                break
            if sum(len(entry.content or b"") for entry in came) >= _PIECE:
                count += self._write(after, came)
                after, came = [], []
        return count + self._write(after, came)

    def _write(self, feeds: Sequence[Feed], came: Sequence[Delivered]) -> int:
        """Write down what came, and then how the feeds are known; returns how many documents came."""
        with self._writing:
            if came:
                self._receive(came)
            self._store(feeds)
        return sum(entry.content is not None for entry in came)

    def _fetched(self, feed: Feed, came: list[Delivered]) -> Feed:
        """Ask for one feed: how it is known from now on, and what came."""
        try:
            answer = fetch(feed.url, feed.known, self.connections, _SECONDS)
        except (RequestError, ReadError) as error:
            return self._failed(feed, Answered(0), f"the feed cannot be fetched: {error.what}", came)
        except Exception as error:  # what no one thought of: one feed must not keep the others from being asked
            what = f"the feed cannot be fetched: {type(error).__name__}: {error}"
            return self._failed(feed, Answered(0), what, came)
        feed = replace(feed, url=answer.moved or feed.url)
        if answer.status == 200:
            body = answer.body
            if body[:2] == b"\x1f\x8b":  # without the time at which it was compressed (MTIME of RFC 1952, section 2.3)
                body = body[:4] + bytes(4) + body[8:]
            digest = hashlib.sha256(body).digest()
            if digest != feed.digest:
                came.append(Delivered(answer.address, answer.body, "", self.clock()))
            due = self._due_again(feed, answer)
            return replace(feed, known=answer.known, due=due, failures=0, status=200, digest=digest)
        if answer.status == 304:
            return replace(feed, due=self._due_again(feed, answer), failures=0, status=304)
        return self._failed(feed, answer, f"the feed's server answers {answer.status}", came)

    def _failed(self, feed: Feed, answer: Answered, reason: str, came: list[Delivered]) -> Feed:
        """A feed that gave nothing: it is told of at the first time in a row, and asked less and less often."""
        failures, is_gone = feed.failures + 1, answer.status == _GONE and answer.is_lasting
        if failures == 1 or is_gone:
            ending = ": it is not asked again" if is_gone else ""
            came.append(Delivered(feed.url, None, reason + ending, self.clock()))
        due = self._due_again(feed, answer, 2 ** min(failures, 10))
        status = 0 if answer.status == _GONE and not is_gone else answer.status  # see `Feed.is_gone`
        return replace(feed, due=due, failures=failures, status=status)

    def _due_again(self, feed: Feed, answer: Answered, factor: int = 1) -> float:
        """When a feed is due again: after its interval, or later, as its server asks for or as it has failed; a day
        later at most, where the interval is no longer than that."""
        interval = self._interval(feed)
        pause = min(max(interval * factor, answer.wait), max(LONGEST, interval))
        return self.clock() + pause * (1 + random.uniform(0, _JITTER))

    def _interval(self, feed: Feed) -> float:
        return max(float(self.connections.of(feed.url).get("interval", INTERVAL)), LEAST)

    def _store(self, feeds: Sequence[Feed]) -> None:
        self.feeds.update((feed.address, feed) for feed in feeds)
        rows = [
            (f.address, f.url, f.known.etag, f.known.modified, f.known.address, f.due, f.failures, f.status, f.digest)
            for f in feeds
        ]
        with connected(self._file, _TABLE) as connection:
            connection.executemany(f"INSERT OR REPLACE INTO feeds VALUES ({', '.join('?' * 9)})", rows)
