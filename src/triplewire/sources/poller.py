"""Polls feeds into an inbox, politely: no feed before it is due, few requests at once, and what servers ask for.

When a feed is due, and what is known of it, lies in a file beside the inbox (`feed_states`), from start to start. A
time that lies in the future by more than the interval comes from a clock that was wrong, and is not believed. Of
addresses, only what is no secret is handed on (`net.addresses.shown`). A document goes to the inbox first. A process
that is killed in between fetches it once more, and a stream tells its items once.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from triplewire.errors import ReadError, RequestError, TriplewireError
from triplewire.net.addresses import WEBHOOK, Connections, kind_of, shown, timeout_of
from triplewire.sources.feed_states import Feed, FeedStates, States
from triplewire.sources.fetch import LONGEST, Answered, fetch
from triplewire.sources.inbox import FOLDER, Delivered, Inbox

INTERVAL = 900.0
"""Seconds between two requests for a feed, unless its table of connections has another `interval`."""

LEAST = 10.0
"""The shortest interval, in seconds."""

AT_ONCE = 8
"""How many servers are asked at once, usually; of one server, one feed at a time."""

_SECONDS = 20.0  # for one answer, unless its table says otherwise
_ENDING = 3.0  # seconds for answers that are under way at the end
_BETWEEN = 0.2  # seconds between two requests to a server
_PAUSE = 10.0  # seconds after a failure of the inbox, doubled for each in a row
_TURN = 30.0  # seconds that a server is asked for its feeds, until others have their turn
_PIECE = 16 << 20  # bytes of documents that are written together, about; one document more may come
_TIDY = 3600.0  # seconds between two calls of `tidy`
_LOOK = 0.5  # seconds between looks at what is due
_JITTER = 0.1  # of a pause, so that feeds do not stay in step
_OVERLOADED, _GONE = {429, 503}, 410
_SETUP_BYTES = 2
"""Of the hash of a feed's settings, of which some are secret: enough to see that they have changed, too few to find out
what they are."""


@dataclass
class Poller:
    """The feeds of a list. What is known of them lies in a folder. `on_note` is told what is wrong here; `tidy` is
    called as polling begins, and each hour; `at_once`: how many servers are asked at once.

    What came goes to `receive`, from several threads but from one at a time. It returns once that is kept; what it
    raises has the feeds asked again. Without it, there is an inbox in the folder. `states`: where feeds are known, in
    place of a file in the folder. `adapts`: the shortest and the longest interval, in seconds, between which each feed
    gets one of its own: half of that before where it has changed, half as long again where it has not.

    Raises `TriplewireError` for a wrong setting of feeds, and where what is known of them is damaged or in use.
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
    states: States | None = None
    adapts: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        for beginning, settings in self.connections.tables.items():  # a feed may move to any of them
            text = settings.get("interval", "0")
            if not re.fullmatch(r"\d{1,9}(\.\d+)?", text):
                raise TriplewireError(f"the interval {text!r} is no number of seconds", source=beginning)
            try:
                _ = kind_of(beginning) != WEBHOOK or timeout_of(settings, _SECONDS)
            except ValueError as error:
                raise TriplewireError(shown(str(error)), source=beginning) from None
            if not (settings.get("authorization", "").isascii() and settings.get("authorization", " ").isprintable()):
                what = "authorization has a character, such as the end of a line, that no header may have"
                raise TriplewireError(what, source=beginning)
        if self.states is None or self.receive is None:
            self.folder.mkdir(parents=True, exist_ok=True)
        self._receive = self.receive or Inbox(self.folder / FOLDER).append
        self._states = self.states or FeedStates(self.folder)
        before = self._states.load()
        known = (before.get(address, Feed(address, address)) for address in self.addresses)
        self.feeds = {feed.address: self._as_set_up(feed) for feed in known}
        self._states.store(self.feeds.values(), alone=True)
        self._writing = threading.Lock()
        self._has_ended = False

    def _as_set_up(self, feed: Feed) -> Feed:
        """The feed with the settings of this start. Where they have changed, it is due at once, however it failed or
        waited with those before."""
        settings = [sorted(self.connections.of(address).items()) for address in (feed.address, feed.url)]
        setup = hashlib.sha256(json.dumps(settings).encode()).digest()[:_SETUP_BYTES]
        if feed.setup not in (b"", setup):
            return replace(feed, due=0.0, failures=0, status=0, reason="", setup=setup)
        return replace(feed, setup=setup)

    def follow(self, addresses: Iterable[str]) -> None:
        """Have these be the feeds from now on, as they are known in `states`; those that are new there are due."""
        known = self._states.load()
        with self._writing:
            feeds = (known.get(address, Feed(address, address)) for address in addresses)
            self.feeds = {feed.address: self._as_set_up(feed) for feed in feeds}

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
            thread.join()

        return end

    def _watch(self) -> None:
        """Poll until `stop` is set. A server that is slow holds up none but its own feeds, and has its turn for
        `_TURN` seconds."""
        was_wrong, pause, under_way = "", _PAUSE, dict[str, _Turn]()
        tidied = -math.inf
        while not self.stop.is_set():
            try:
                if time.monotonic() - tidied >= _TIDY:
                    tidied = time.monotonic()
                    self.tidy()
                for server in [server for server, turn in under_way.items() if not turn.is_alive()]:
                    under_way.pop(server).check()
                    was_wrong, pause = "", _PAUSE
                for server, feeds in self._due().items():
                    if server not in under_way and len(under_way) < self.at_once:
                        under_way[server] = _Turn(partial(self._of_server, feeds, _TURN))
            except Exception as error:  # a full disk, say: nobody would see that the thread has ended
                if str(error) != was_wrong:
                    was_wrong = str(error)
                    what = shown(f"{type(error).__name__}: {error}")
                    self.on_note(f"polling failed, and is tried again: {what}")
                self.stop.wait(pause)
                pause = min(2 * pause, INTERVAL)  # what could not be written is fetched again
            self.stop.wait(_LOOK)
        latest = time.monotonic() + _ENDING
        for turn in under_way.values():
            turn.join(max(latest - time.monotonic(), 0.0))
        with self._writing:
            self._has_ended = True

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
            was_ahead = feed.asked > now + self._interval(feed) or feed.due > self._latest(feed, now)  # the clock
            if (feed.due <= now or was_ahead) and not feed.is_gone:
                servers.setdefault(urlsplit(feed.url).netloc, []).append(feed)
        return servers

    def _of_server(self, feeds: Sequence[Feed], seconds: float = math.inf) -> int:
        """Ask one server for its feeds, one after the other, for so many seconds; the others stay due. What came is
        written in pieces, as it comes. Returns how many documents these were."""
        after: list[Feed] = []  # the feeds as they are known afterwards
        came: list[Delivered] = []
        asked = {feed.address: feed for feed in feeds}
        count, begun = 0, time.monotonic()
        for number, feed in enumerate(feeds):
            if time.monotonic() - begun > seconds or self.stop.wait(_BETWEEN if number else 0):
                break
            after.append(self._fetched(feed, came))
            if after[-1].status in _OVERLOADED:  # it holds for the other feeds of the server as well
                due, now = after[-1].due, self.clock()
                why = f"its server is overloaded: it answers {after[-1].status} to {shown(feed.address)}"
                # not asked, but put off by the clock of today
                after += (
                    replace(other, due=max(min(other.due, now), due), reason=why, asked=min(other.asked, now))
                    for other in feeds[number + 1 :]
                )
                break
            if sum(len(entry.content or b"") for entry in came) >= _PIECE:
                count += self._write(asked, after, came)
                after, came = [], []
        return count + self._write(asked, after, came)

    def _write(self, asked: Mapping[str, Feed], feeds: Sequence[Feed], came: Sequence[Delivered]) -> int:
        """Write down what came, and then how the feeds are known; returns how many documents came. What comes after
        the end is left, to be fetched again. `asked`: the feeds as they were known before, by their addresses."""
        with self._writing:
            if self._has_ended:
                return 0
            if came:
                self._receive(came)
            # others are not polled any more, or are to be asked anew
            feeds = [feed for feed in feeds if self.feeds.get(feed.address) == asked[feed.address]]
            self.feeds.update((feed.address, feed) for feed in feeds)
            self._states.store(feeds)
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
        if answer.status == 200 and not answer.body:
            return self._failed(feed, answer, "the feed's server answers 200 without a byte", came)
        feed = replace(feed, url=answer.moved or feed.url, asked=self.clock(), reason=self._pause_of(feed, answer))
        if answer.status == 200:
            body = answer.body
            if body[:2] == b"\x1f\x8b":  # without the time at which it was compressed (MTIME of RFC 1952, section 2.3)
                body = body[:4] + bytes(4) + body[8:]
            digest = hashlib.sha256(body).digest()
            if digest != feed.digest:
                came.append(Delivered(shown(answer.address), answer.body, "", self.clock(), feed.address))
            feed = self._adapted(feed, digest != feed.digest)
            due = self._due_again(feed, answer)
            return replace(feed, known=answer.known, due=due, failures=0, status=200, digest=digest)
        if answer.status == 304:
            feed = self._adapted(feed, False)
            return replace(feed, due=self._due_again(feed, answer), failures=0, status=304)
        return self._failed(feed, answer, f"the feed's server answers {answer.status}", came)

    def _failed(self, feed: Feed, answer: Answered, reason: str, came: list[Delivered]) -> Feed:
        """A feed that gave nothing: it is told of at the first time in a row, and asked less and less often."""
        failures, is_gone = feed.failures + 1, answer.status == _GONE and answer.is_lasting
        reason = shown(reason) + (": it is not asked again" if is_gone else "")
        if failures == 1 or is_gone:
            came.append(Delivered(shown(feed.url), None, reason, self.clock(), feed.address))
        due = self._due_again(feed, answer, 2 ** min(failures, 10))
        status = 0 if answer.status == _GONE and not is_gone else answer.status  # see `Feed.is_gone`
        return replace(feed, due=due, failures=failures, status=status, asked=self.clock(), reason=reason)

    def _due_again(self, feed: Feed, answer: Answered, factor: int = 1) -> float:
        """When a feed is due again: after its interval, or later, as its server asks for or as it has failed; a day
        later at most, where the interval is no longer than that."""
        interval = self._interval(feed)
        pause = min(max(interval * factor, answer.wait), max(LONGEST, interval))
        return self.clock() + pause * (1 + random.uniform(0, _JITTER))

    def _pause_of(self, feed: Feed, answer: Answered) -> str:
        """Why a feed that was answered waits for longer than its interval; "" where it does not."""
        is_long = answer.wait > self._interval(feed)
        return f"its server asks for a pause of {answer.wait:,.0f} s" if is_long else ""

    def _latest(self, feed: Feed, now: float) -> float:
        """The latest time at which a feed may be due that is asked now."""
        return now + max(LONGEST, self._interval(feed)) * (1 + _JITTER)

    def _interval(self, feed: Feed) -> float:
        return max(feed.interval or float(self.connections.of(feed.url).get("interval", INTERVAL)), LEAST)

    def _adapted(self, feed: Feed, has_changed: bool) -> Feed:
        """The feed with the interval that follows from whether it has changed since it was asked before."""
        if self.adapts is None:
            return feed
        least, most = self.adapts
        interval = self._interval(feed)
        if feed.digest:
            interval = next_interval(interval, has_changed, least, most)
        return replace(feed, interval=min(max(interval, least), most))


def next_interval(seconds: float, has_changed: bool, least: float, most: float) -> float:
    """The seconds to wait after an interval: half of it where the feed has changed, half as much again where not."""
    return min(max(seconds * (0.5 if has_changed else 1.5), least), most)


class _Turn(threading.Thread):
    """The turn of one server, in a thread that nobody has to wait for: a server may take long to answer."""

    def __init__(self, ask: Callable[[], object]) -> None:
        super().__init__(name="feeds of a server", daemon=True)
        self._ask = ask
        self._error: Exception | None = None
        self.start()

    def run(self) -> None:
        """Ask it for its feeds."""
        try:
            self._ask()
        except Exception as error:
            self._error = error

    def check(self) -> None:
        """Raises what was raised in it."""
        if self._error is not None:
            raise self._error
