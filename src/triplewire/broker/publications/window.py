"""The window: the newest publications that are kept, as far as somebody may see them, and what a query finds there.

They are read once and kept, so that a question costs what `Engine.match` of them costs.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Row

from triplewire.broker.publications.kept_contents import restored
from triplewire.engine import Engine, MatchResult
from triplewire.errors import LimitError
from triplewire.model.match import bindings_to_json
from triplewire.model.publication import Publication
from triplewire.model.terms import Term
from triplewire.store.database import Database
from triplewire.store.tables import publications

MOST, MOST_BYTES = 1_000, 64 << 20
"""Publications of the window, and their bytes."""

TOGETHER = 25  # publications that are matched between looks at the clock: each may take all steps of a pair
_SECONDS = 10.0  # that a query may take

CAN_BE_MATCHED = publications.c.state.not_in(("refused", "dropped"))
"""Of a publication: may a query be asked of it? One that was refused may have ended a process."""

FOR_NOBODY = "[]"
"""The readers of what nobody may see, as the store has them."""


class Kept(NamedTuple):
    """A publication with what is shown of it."""

    number: int
    publication: Publication
    title: str
    link: str
    source: str
    received: float
    published: float | None
    readers: str | None
    size: int


class Result(NamedTuple):
    """A publication that a query matches, with the bindings as JSON has them."""

    seen: Kept
    bindings: list[dict[str, dict[str, str]]]


def may_see(owner: str, readers: str | None) -> bool:
    """May an owner see a publication with these readers, as the store has them?"""
    return readers is None or owner in json.loads(readers)


def _kept(row: Row[Any]) -> Kept:
    publication = restored(row.body, row.id, row.source)
    shown = (row.title, row.link, row.source.partition("\n")[0], row.received, row.published, row.readers)
    return Kept(row.number, publication, *shown, len(row.body))


class Window:
    """The newest publications of a store, the newest first."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._kept: deque[Kept] = deque()
        self._bytes = 0

    def of(self, owner: str) -> list[Kept]:
        """Those that an owner may see, with what has come since the last question; of one that has changed, the newest
        content that the owner may see, and none where the newest is for nobody: it was taken away."""
        with self._lock:
            self._read()
            all_kept = list(self._kept)
        newest: dict[str, Kept] = {}
        for seen in all_kept:
            if may_see(owner, seen.readers) or seen.readers == FOR_NOBODY:
                newest.setdefault(seen.publication.id, seen)
        return [seen for seen in newest.values() if seen.readers != FOR_NOBODY]

    def _read(self) -> None:
        table, last = publications, self._kept[0].number if self._kept else 0
        here = sa.select(table).where(table.c.number > last, CAN_BE_MATCHED)
        oldest = self._kept[-1].number if self._kept else 0
        restricted = sa.select(table.c.number, table.c.readers).where(
            table.c.number.between(oldest, last), table.c.readers.is_not(None)
        )
        with self._database.reading() as connection:
            readers = {row.number: row.readers for row in connection.execute(restricted)}
            portions = connection.execution_options(yield_per=50)
            new: list[Kept] = []
            size = 0
            with portions.execute(here.order_by(table.c.number.desc()).limit(MOST)) as rows:
                for row in rows:
                    new.append(_kept(row))
                    size += len(row.body)
                    if size > MOST_BYTES:
                        break
        self._kept = deque(  # an owner may have been removed since: another one of this name may read nothing of it
            seen if seen.readers is None else seen._replace(readers=readers.get(seen.number, FOR_NOBODY))
            for seen in self._kept
        )
        self._kept.extendleft(reversed(new))
        self._bytes += sum(seen.size for seen in new)
        while len(self._kept) > MOST or (self._bytes > MOST_BYTES and len(self._kept) > 1):
            self._bytes -= self._kept.pop().size


def results_within(engine: Engine, given: Sequence[Publication], seconds: float = _SECONDS) -> Iterator[MatchResult]:
    """The results of an engine for all that is given, `TOGETHER` at a time. Raises `LimitError` where they take longer
    than so many seconds."""
    end = time.monotonic() + seconds
    for begin in range(0, len(given), TOGETHER):
        if time.monotonic() > end:
            what = f"{begin:,} of {len(given):,} publications were asked in {seconds:g} s"
            raise LimitError(what, remedy="ask for less: the query goes with each in too many ways")
        yield engine.match(given[begin : begin + TOGETHER])


def asked(engine: Engine, window: Sequence[Kept]) -> list[Result]:
    """Those of the window that the one query of an engine matches. Raises what `results_within` raises."""
    bindings: dict[str, tuple[Mapping[str, Term], ...]] = {}
    for result in results_within(engine, [seen.publication for seen in window]):
        bindings |= {match.publication: match.bindings for match in result}
    return [
        Result(seen, bindings_to_json(bindings[seen.publication.id]))
        for seen in window
        if seen.publication.id in bindings
    ]
