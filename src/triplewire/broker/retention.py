"""What ends and what is removed as time goes by, in small steps beside the work: in the process that matches.

Subscriptions end, and are told of before. Events are removed where they are older than is kept, or a subscription has
had so many since; those that are still to be delivered stay, those of a day for another broker
(`triplewire.broker.network`), and the newest of each subscription, so that a sequence is never used again. Publications
are removed where no event names them any more, after a shorter time; which content each had last is still known, so
that one that comes again is no new one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from triplewire.broker.matching import Matching
from triplewire.broker.network.roots import PREFIX
from triplewire.broker.repeating import Repeating
from triplewire.broker.subscriptions import parts
from triplewire.store.database import Database, now
from triplewire.store.tables import (
    attachments,
    bands,
    deliveries,
    events,
    origins,
    publications,
    stories,
    subscriptions,
)

DAY = 86_400.0

_LOOK = 1.0  # seconds between looks at what has ended
_FIRST = 60.0  # seconds until the first pass over what is kept
_BETWEEN = 3_600.0  # seconds between two passes
_AT_ONCE = 100  # subscriptions that one step looks at
_REMOVED = 250  # rows that one step removes, which others wait for


@dataclass(frozen=True)
class Retention:
    """For how long what was told is kept. `seconds` and `events`: events, and so many of each subscription;
    `window_seconds`: publications that no event names."""

    seconds: float = 30 * DAY
    events: int = 1_000
    window_seconds: float = 7 * DAY


class Sweeper(Repeating):
    """Removes in a thread, while this process matches."""

    def __init__(self, database: Database, matching: Matching, retention: Retention) -> None:
        super().__init__("retention")
        self._database = database
        self._matching = matching
        self._retention = retention
        self._due = time.monotonic() + _FIRST

    def _turn(self) -> float:
        if time.monotonic() >= self._due and self._matching.is_ours:
            self._due = time.monotonic() + _BETWEEN
            self.sweep()
        return _LOOK

    def sweep(self) -> tuple[int, int]:
        """Remove what is not kept any more, step by step; returns how many events and publications."""
        removed_events, removed_publications = 0, 0
        last = 0
        while not self._stop.is_set():
            with self._database.reading() as connection:
                here = sa.select(subscriptions.c.number).where(subscriptions.c.number > last)
                page = connection.execute(here.order_by(subscriptions.c.number).limit(_AT_ONCE)).scalars().all()
            if not page:
                break
            step = _events_step(page[0], page[-1], self._retention)
            while not self._stop.is_set() and (count := self._database.write(step)):
                removed_events += count
            last = page[-1]
        last = 0
        while not self._stop.is_set():
            with self._database.reading() as connection:
                unneeded = connection.execute(_unneeded(last, self._retention)).scalars().all()
            if not unneeded:
                break
            self._database.write(_removal(unneeded))
            last = unneeded[-1]
            removed_publications += len(unneeded)
        return removed_events, removed_publications


def _events_step(first: int, last: int, retention: Retention) -> Callable[[Connection], int]:
    """A write that removes some events of the subscriptions of these numbers; it returns how many."""
    before, of_brokers = now() - retention.seconds, subscriptions.c.id.startswith(PREFIX, autoescape=True)
    of_links = sa.select(subscriptions.c.number).where(subscriptions.c.number.between(first, last), of_brokers)

    def step(connection: Connection) -> int:
        newest = (
            sa.select(events.c.subscription, sa.func.max(events.c.sequence).label("sequence"))
            .where(events.c.subscription.between(first, last))
            .group_by(events.c.subscription)
            .subquery()
        )
        pending = sa.select(deliveries.c.event).where(
            deliveries.c.event == events.c.number, deliveries.c.state == "pending"
        )
        over = (
            sa.select(events.c.number)
            .join(newest, newest.c.subscription == events.c.subscription)
            .where(
                events.c.sequence < newest.c.sequence,
                sa.or_(events.c.sequence <= newest.c.sequence - retention.events, events.c.at < before),
                sa.or_(events.c.at < now() - DAY, events.c.subscription.not_in(of_links)),
                ~pending.exists(),
            )
        )
        numbers = connection.execute(over.limit(_REMOVED)).scalars().all()
        for part in parts(numbers):
            connection.execute(deliveries.delete().where(deliveries.c.event.in_(part)))
            connection.execute(events.delete().where(events.c.number.in_(part)))
        return len(numbers)

    return step


def _unneeded(last: int, retention: Retention) -> sa.Select[int]:
    """The next publications behind a number that no event names and that are older than is kept. The newest is always
    kept, so that a number is never used again."""
    table, at = publications, now()
    before = at - retention.window_seconds
    bound = sa.select(table.c.number).where(table.c.received < before).order_by(table.c.received.desc()).limit(1)
    named = sa.select(events.c.number).where(events.c.publication == table.c.number)
    return (
        sa.select(table.c.number)
        .where(
            table.c.number > last,
            table.c.number <= bound.scalar_subquery(),
            table.c.number < sa.select(sa.func.max(table.c.number)).scalar_subquery(),
            table.c.received < sa.case((table.c.state == "refused", at - retention.seconds), else_=before),
            table.c.state != "accepted",
            ~named.exists(),
        )
        .order_by(table.c.number)
        .limit(_REMOVED)
    )


def _removal(numbers: Sequence[int]) -> Callable[[Connection], None]:
    """A write that removes these publications."""

    def remove(connection: Connection) -> None:
        for part in parts(numbers):
            connection.execute(publications.delete().where(publications.c.number.in_(part)))
            for table in (attachments, stories, bands, origins):
                connection.execute(table.delete().where(table.c.publication.in_(part)))

    return remove
