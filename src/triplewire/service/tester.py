"""The live tester: which of the last publications would a query have matched? Asked while it is being typed.

The last publications are read once and kept, so that a question costs what `Engine.match` of them costs.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import sqlalchemy as sa
from fastapi import APIRouter, Request
from pydantic import Field
from sqlalchemy.engine import Row

from triplewire.broker.broker import DAY, Broker
from triplewire.broker.publications import restored
from triplewire.ir.show import show
from triplewire.model.publication import Publication
from triplewire.service.access import OWNER, Body, allowed, broker, owner_or_none
from triplewire.service.pages.sessions import CODE_HEADER, check_code, person
from triplewire.store.database import Database
from triplewire.store.tables import publications

router = APIRouter(tags=["publications"])

MOST, MOST_BYTES = 1_000, 64 << 20  # publications that are kept, and their bytes
_AT_ONCE = 100  # publications between looks at the clock, at least
_SECONDS = 3.0  # after which no more are asked: `Tried.of` says how many were
_TOLD = 50  # publications that an answer describes

_at_a_time = threading.Semaphore(2)  # so that typing leaves a processor to matching


class Kept(NamedTuple):
    """A publication with what a page shows of it."""

    number: int
    publication: Publication
    title: str
    link: str
    source: str
    received: float
    readers: frozenset[str] | None
    size: int

    def may_be_seen_by(self, owner: str) -> bool:
        """Is the owner among its readers?"""
        return self.readers is None or owner in self.readers


def _kept(row: Row[Any]) -> Kept:
    readers = None if row.readers is None else frozenset(json.loads(row.readers))
    publication = restored(row.body, row.id, row.source)
    return Kept(row.number, publication, row.title, row.link, row.source, row.received, readers, len(row.body))


class Window:
    """The last publications of a store, the newest first."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._kept: deque[Kept] = deque()
        self._bytes = 0

    def of(self, owner: str) -> list[Kept]:
        """Those that an owner may see, with what has come since the last question."""
        with self._lock:
            self._read()
            newest: dict[str, Kept] = {}  # of a publication that has changed, the content that it has now
            for seen in self._kept:
                newest.setdefault(seen.publication.id, seen)
        return [seen for seen in newest.values() if seen.may_be_seen_by(owner)]

    def _read(self) -> None:
        table, last = publications, self._kept[0].number if self._kept else 0
        here = sa.select(table).where(table.c.number > last, table.c.state != "refused")
        with self._database.reading() as connection:
            portions = connection.execution_options(yield_per=50)
            new: list[Kept] = []
            size = 0
            with portions.execute(here.order_by(table.c.number.desc()).limit(MOST)) as rows:
                for row in rows:
                    new.append(_kept(row))
                    size += len(row.body)
                    if size > MOST_BYTES:
                        break
        self._kept.extendleft(reversed(new))
        self._bytes += sum(seen.size for seen in new)
        while len(self._kept) > MOST or (self._bytes > MOST_BYTES and len(self._kept) > 1):
            self._bytes -= self._kept.pop().size


@dataclass(frozen=True)
class Tried:
    """What a query matches of the last publications: their numbers, of how many, and how many that is a day. `asks`:
    the query as a graph; `undecided`: pairs that passed a limit."""

    matched: list[int] = field(default_factory=list)
    of: int = 0
    a_day: float = 0.0
    asks: str = ""
    warnings: tuple[str, ...] = ()
    undecided: int = 0

    @property
    def share(self) -> float:
        """The share that it matches."""
        return len(self.matched) / self.of if self.of else 0.0


def tried(of: Broker, window: list[Kept], query: str, language: str, prefixes: dict[str, str] | None = None) -> Tried:
    """Match a query with publications. Raises what is wrong with it: `LanguageError`, with line and column."""
    matched: list[int] = []
    asked = undecided = 0
    with of.probe(query, language, prefixes) as engine, _at_a_time:
        subscription = engine.get("query")
        assert subscription is not None
        begun, size = time.monotonic(), _AT_ONCE
        while asked < len(window) and (left := begun + _SECONDS - time.monotonic()) > 0:
            if asked:  # as many as there is time for, so far as those before can tell
                size = max(_AT_ONCE, int(asked * left / max(_SECONDS - left, 1e-6)))
            part = window[asked : asked + size]
            asked += len(part)
            numbers = {each.publication.id: each.number for each in part}
            result = engine.match([each.publication for each in part])
            matched += sorted((numbers[match.publication] for match in result), reverse=True)
            undecided += len(result.refusals)
    received = [each.received for each in window[:asked]]
    days = max((received[0] - received[-1]) / DAY, 1 / 24) if received else 1.0
    return Tried(matched, asked, len(matched) / days, show(subscription.where), subscription.warnings, undecided)


class Attempt(Body):
    """A query that is kept nowhere."""

    query: str
    language: str = "sparql"
    prefixes: dict[str, str] = Field({})


@router.post("/try")
@allowed(OWNER)
def try_query(request: Request, body: Attempt) -> dict[str, Any]:
    """Which of the last publications does a query match? Nothing is seen."""
    by = owner_or_none(request)
    if by is None:  # the page asks with its cookie
        who = person(request)
        check_code(who, request.headers.get(CODE_HEADER, ""))
        by = who.owner
    window = request.app.state.window.of(by)
    outcome = tried(broker(request), window, body.query, body.language, body.prefixes or None)
    by_number = {each.number: each for each in window}
    told = [by_number[number] for number in outcome.matched[:_TOLD]]
    places = {each.number: place for place, each in enumerate(window)}
    return {
        "matched": outcome.matched,
        "places": [places[number] for number in outcome.matched],
        "count": len(outcome.matched),
        "of": outcome.of,
        "share": outcome.share,
        "a_day": outcome.a_day,
        "asks": outcome.asks,
        "warnings": list(outcome.warnings),
        "undecided": outcome.undecided,
        "publications": [{"number": each.number, "title": each.title, "at": each.received} for each in told],
    }
