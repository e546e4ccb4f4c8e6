"""The events of one subscription as they come, or as a list; and a list of all of an owner.

They come as Server-Sent Events (HTML standard, section 9.2). A list is there to catch up. A stream begins behind the
sequence that its client names and is told of each event since, in order: what this process matches at once, what
another one does within seconds. So who comes back with `Last-Event-ID` misses nothing and gets nothing twice. It ends
with its subscription, and at the end of the service (`Streams.end`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Collection, Hashable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response, StreamingResponse
from starlette.concurrency import run_in_threadpool

from triplewire.broker.broker import Broker
from triplewire.broker.events.event_log import EXPIRED, MOST
from triplewire.broker.network.crossing import identity_of, page_of
from triplewire.broker.subscriptions.followed import ENDED
from triplewire.service.access import KEY, OWNER, allowed, broker, owner, settings
from triplewire.service.problems import Problem

router = APIRouter(tags=["events"])

LOOK = 2.0  # seconds between looks at what another process has written
PING = 15.0  # seconds without an event until a comment is sent, so that nobody in between closes the connection
RETRY = 3_000  # milliseconds until a client comes back

News = TypeVar("News")


class Streams:
    """The streams of a service that are open, by what they tell of: the number of a subscription, the name of a
    repository. Only its event loop adds and removes them."""

    def __init__(self) -> None:
        self._open: dict[Hashable, list[tuple[asyncio.AbstractEventLoop, asyncio.Event]]] = {}
        self.is_ending = False

    @contextmanager
    def waiting(self, topic: Hashable) -> Iterator[asyncio.Event]:
        """What is set whenever there may be news of a topic."""
        entry = asyncio.get_running_loop(), asyncio.Event()
        self._open.setdefault(topic, []).append(entry)
        try:
            yield entry[1]
        finally:
            self._open[topic].remove(entry)
            if not self._open[topic]:
                del self._open[topic]

    async def awaited(self, topic: Hashable, look: Callable[[], News], seconds: float, every: float = LOOK) -> News:
        """What a look finds: at once, or what is the first within so many seconds, as soon as it is there. `every`:
        seconds between looks at what another process has written. None, in place of an empty list, does not wait."""
        clock = asyncio.get_running_loop().time
        until = clock() + seconds
        with self.waiting(topic) as woken:
            while True:
                woken.clear()
                news = await run_in_threadpool(look)
                left = until - clock()
                if news or news is None or left <= 0 or self.is_ending:
                    return news
                with suppress(TimeoutError):
                    await asyncio.wait_for(woken.wait(), min(left, every))

    def end(self) -> None:
        """Have all streams end, as their clients would wait for ever. Any thread may call it, also in a handler of a
        signal."""
        self.is_ending = True
        self.wake(set(self._open))

    def wake(self, topics: Collection[Hashable]) -> None:
        """Have the streams of these topics look for news. Any thread may call it."""
        for topic in list(self._open):
            for loop, woken in list(self._open.get(topic, ())) if topic in topics else ():
                with suppress(RuntimeError):  # its loop has ended
                    loop.call_soon_threadsafe(woken.set)


@router.get("/s/{key}/events")
@allowed(KEY)
def events(
    request: Request, key: str, after: Annotated[int | None, Query(ge=0, lt=2**62)] = None, format: str = "sse"
) -> Response:
    """The events of a subscription behind a sequence: `format=sse`, a stream that goes on, or `ndjson`, those that are
    there. Without `after` and `Last-Event-ID` a stream begins with the next event, and the list with the first."""
    of = broker(request)
    row: Any = of.by_feed_key(key)
    if row is None:
        raise Problem(404, "there is no such feed")
    if format == "ndjson":
        return StreamingResponse(_lines(of, row.number, after or 0), media_type="application/x-ndjson")
    if format != "sse":
        raise Problem(400, f"there is no format {format[:20]!r}", "known: sse, ndjson")
    begin = _begin(of, row.number, request.headers.get("last-event-id"), after)
    if row.state == ENDED and not of.events_of(row.number, begin, 1):
        return Response(status_code=204)  # nothing will come: a browser does not ask again
    headers = {"Cache-Control": "private, no-store", "X-Accel-Buffering": "no"}
    stream = _stream(request.app.state.streams, of, row.number, begin)
    return StreamingResponse(stream, media_type="text/event-stream", headers=headers)


def _begin(of: Broker, number: int, last_id: str | None, after: int | None) -> int:
    """The sequence that a stream begins behind. One that there was never is that of the newest event."""
    newest = next((event.sequence for event in of.newest_events(number, 1)), 0)
    if last_id is not None:  # of a client that comes back to the same address, so it counts before `after`
        if not (last_id.isascii() and last_id.isdecimal() and len(last_id) < 19):
            raise Problem(400, "Last-Event-ID is no sequence of an event", "send the id of the last event, or none")
        after = int(last_id)
    return newest if after is None else min(after, newest)


def _lines(of: Broker, number: int, after: int) -> Iterator[str]:
    while page := of.events_of(number, after):
        yield "".join(event.line() + "\n" for event in page)
        after = page[-1].sequence


async def _stream(streams: Streams, of: Broker, number: int, last: int) -> AsyncIterator[str]:
    yield f"retry: {RETRY}\n\n"
    while not streams.is_ending:
        every = PING if of.matching.is_ours else LOOK
        page = await streams.awaited(number, partial(of.events_of, number, last), PING, every)
        for event in page:  # a line of JSON holds no end of a line, so its text cannot add a field
            yield f"id: {event.sequence}\ndata: {event.line()}\n\n"
        if page:
            last = page[-1].sequence
            if page[-1].type == EXPIRED:
                return
            continue
        row = await run_in_threadpool(of.by_number, number)
        if row is None or row.state == ENDED:
            return
        yield ": ping\n\n"


@router.get("/events")
@allowed(OWNER)
def events_of_owner(
    request: Request, after: int = 0, format: str = "ndjson", subscriptions: str = "", documents: bool = False
) -> StreamingResponse:
    """The events of all subscriptions of an owner behind a number, one JSON object a line. `subscriptions`: of those
    alone whose ids begin so. With `documents` a page of them, in which the publication of an event comes with it as
    N-Quads, once, in place of bindings (`docs/network.md`); the owner of the service gets those of its own alone."""
    by, of = owner(request), broker(request)
    if documents:
        me = identity_of(of.database)
        with of.database.reading() as connection:
            told = [json.dumps(line) + "\n" for line in page_of(connection, me, by, after, subscriptions)]
        return StreamingResponse(iter(told), media_type="application/x-ndjson", headers={"Triplewire-Broker": me})
    # the owner of the service sees the events of all
    whose = None if by == settings(request).owner else by

    first = of.events(whose, after, prefix=subscriptions)  # where they cannot be read, the answer says so

    def lines() -> Iterator[str]:
        page = first
        while page:
            yield "".join(event.line() + "\n" for event in page)
            page = of.events(whose, page[-1].number, prefix=subscriptions) if len(page) == MOST else []

    return StreamingResponse(lines(), media_type="application/x-ndjson")
