"""What is removed, in small steps beside the work: what is kept for some time only, and all of an owner that has gone.

Events are removed where they are older than is kept, or a subscription has had so many since. Those that are still to
be delivered stay, those of a day for another broker (`triplewire.broker.network`), and the newest of each
subscription, so that a sequence is never used again; dead letters stay until they are older than is kept. Publications
are removed where no event names them any more, after a shorter time; which content each had last is still known, so
that one that comes again is no new one.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from triplewire.broker import owners
from triplewire.broker.events.delivery_log import remove_deliveries
from triplewire.broker.events.event_log import keep_numbers
from triplewire.broker.events.matching import Matching
from triplewire.broker.network.roots import PREFIX
from triplewire.broker.repeating import Repeating
from triplewire.broker.subscriptions.followed import ENDED, parts
from triplewire.store.database import DAY, Database, begins_with, highest, now
from triplewire.store.tables import (
    SOURCES,
    attachments,
    bands,
    changes,
    current,
    deliveries,
    events,
    failing,
    intents,
    leases,
    origins,
    publications,
    revisions,
    sources,
    stories,
    subscriptions,
    targets,
    terms,
    tokens,
)

_LOOK = 1.0  # seconds between looks whether it is time
_FIRST = 60.0  # seconds until the first pass over what is kept
_BETWEEN = 3_600.0  # seconds between two passes
_AT_ONCE = 100  # subscriptions that one step looks at
_REMOVED = 250  # rows that one step removes, which others wait for
_OF_OWNER = 1_000  # the same of an owner that has gone


@dataclass(frozen=True)
class Retention:
    """For how long what was told is kept. `seconds` and `events`: events, and so many of each subscription;
    `window_seconds`: publications that no event names."""

    seconds: float = 30 * DAY
    events: int = 1_000
    window_seconds: float = 7 * DAY


class Sweeper(Repeating):
    """Removes what is not kept any more in a thread, while this process matches."""

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
        number = subscriptions.c.number
        for page in self._pages(lambda last: sa.select(number).where(number > last).order_by(number).limit(_AT_ONCE)):
            step = partial(self._remove_events, first=page[0], last=page[-1])
            while not self._stop.is_set() and (count := self._database.write(step)):
                removed_events += count
        for page in self._pages(self._unneeded):
            self._database.write(partial(_remove_publications, numbers=page))
            removed_publications += len(page)
        return removed_events, removed_publications

    def _pages(self, behind: Callable[[int], sa.Select[int]]) -> Iterator[list[int]]:
        """The numbers that a query finds, page by page, each behind the last number of the one before."""
        last = 0
        while not self._stop.is_set() and (page := [row[0] for row in self._database.rows(behind(last))]):
            yield page
            last = page[-1]

    def _remove_events(self, connection: Connection, first: int, last: int) -> int:
        """Remove some events of the subscriptions of these numbers; returns how many."""
        newest = (
            sa.select(events.c.subscription, sa.func.max(events.c.sequence).label("sequence"))
            .where(events.c.subscription.between(first, last))
            .group_by(events.c.subscription)
            .subquery()
        )
        retention = self._retention
        is_old = events.c.at < now() - retention.seconds
        is_owed = (deliveries.c.state == "pending") | ((deliveries.c.state == "dead") & ~is_old)
        of_brokers = begins_with(subscriptions.c.id, PREFIX)
        of_links = sa.select(subscriptions.c.number).where(subscriptions.c.number.between(first, last), of_brokers)
        over = (
            sa.select(events.c.number)
            .join(newest, newest.c.subscription == events.c.subscription)
            .where(
                events.c.sequence < newest.c.sequence,
                is_old | (events.c.sequence <= newest.c.sequence - retention.events),
                sa.or_(events.c.at < now() - DAY, events.c.subscription.not_in(of_links)),
                ~sa.exists().where(deliveries.c.event == events.c.number, is_owed),
            )
        )
        numbers = connection.execute(over.limit(_REMOVED)).scalars().all()
        remove_deliveries(connection, deliveries.c.event.in_(numbers))
        connection.execute(events.delete().where(events.c.number.in_(numbers)))
        return len(numbers)

    def _unneeded(self, last: int) -> sa.Select[int]:
        """The next publications behind a number that no event names and that are older than is kept. The newest is
        always kept, so that a number is never used again."""
        table, at = publications.c, now()
        before = at - self._retention.window_seconds
        bound = sa.select(table.number).where(table.received < before).order_by(table.received.desc()).limit(1)
        here = sa.select(table.number).where(
            table.number > last,
            table.number <= bound.scalar_subquery(),
            table.number < sa.select(sa.func.max(table.number)).scalar_subquery(),
            table.received < sa.case((table.state == "refused", at - self._retention.seconds), else_=before),
            table.state != "accepted",
            ~sa.exists().where(events.c.publication == table.number),
        )
        return here.order_by(table.number).limit(_REMOVED)


def _remove_publications(connection: Connection, numbers: Sequence[int]) -> None:
    connection.execute(publications.delete().where(publications.c.number.in_(numbers)))
    for table in (attachments, stories, bands, origins):
        connection.execute(table.delete().where(table.c.publication.in_(numbers)))


# --- an owner that has gone -------------------------------------------------------------------------------------------


def forget(database: Database, owner: str) -> dict[str, int]:
    """Remove what is of an owner and of its users for good; returns how many rows of what. What they have published
    stays. Numbers never come again, so that no address and no cursor leads to what is another's."""
    numbers, counts = database.write(lambda connection: _ended(connection, owner))
    for part in parts(numbers):
        while removed := database.write(partial(_remove_of_owner, numbers=part)):
            counts.update(removed)
    return {**dict.fromkeys(("subscriptions", "events", "deliveries", "sources", "tokens"), 0), **counts}


def _ended(connection: Connection, owner: str) -> tuple[list[int], Counter[str]]:
    """End the subscriptions of an owner and leave nothing of them but their numbers; remove tokens and sources.
    Returns the numbers of what may still have events."""
    here = owners.held_by(subscriptions.c.owner, owner)
    numbers = list(connection.execute(sa.select(subscriptions.c.number).where(here)).scalars())
    blank = dict.fromkeys(("owner", "query", "title", "language"), "")
    gone = subscriptions.update().where(here).values(
        **blank, id=sa.literal("forgotten-") + sa.cast(subscriptions.c.number, sa.Text), prefixes=None, state=ENDED,
        reason="its owner is gone", price="{}", ticket=b"", source=None, warns=None,
    )  # fmt: skip
    connection.execute(gone)
    if numbers:
        connection.execute(changes.insert(), [{"subscription": number} for number in numbers])
    # a batch that is being matched would still tell them: in a new term it is matched again
    connection.execute(terms.update().where(terms.c.work == "matching").values(term=terms.c.term + 1))
    keep_numbers(connection)
    counts = Counter({"subscriptions": len(numbers)})
    of_sources = sa.select(sources.c.number).where(owners.held_by(sources.c.owner, owner))
    connection.execute(leases.delete().where(leases.c.source.in_(of_sources)))
    for table in (sources, tokens, revisions):
        rows = connection.execute(table.delete().where(owners.held_by(table.c.owner, owner)))
        counts[table.name] += rows.rowcount
    connection.execute(changes.insert().values(subscription=SOURCES))
    owners.take_back(connection, owner)
    _without_reader(connection, owner)
    del counts["revisions"]
    return numbers, counts


def _without_reader(connection: Connection, owner: str) -> None:
    """Take an owner out of those who may read publications; what others may read is not told to them again."""
    table = publications
    named = table.c.readers.contains(json.dumps(owner)[1:-1], autoescape=True)
    here = sa.select(table.c.number, table.c.readers).where(named)
    for row in connection.execute(here).all():
        readers = [name for name in json.loads(row.readers) if not owners.acts_for(owner, name)]
        text = json.dumps(readers)
        connection.execute(table.update().where(table.c.number == row.number).values(readers=text))
        newest = current.update().where(current.c.publication == row.number)
        connection.execute(newest.values(content=sa.func.replace(current.c.content, row.readers, text)))


def _remove_of_owner(connection: Connection, numbers: Sequence[int]) -> Counter[str]:
    """Remove some deliveries, targets and events of subscriptions of these numbers; nothing once there are none."""
    for table in (failing, intents):
        connection.execute(table.delete().where(table.c.subscription.in_(numbers)))
    of_targets = sa.select(targets.c.number).where(targets.c.subscription.in_(numbers))
    of_these = sa.select(deliveries.c.number).where(deliveries.c.target.in_(of_targets)).limit(_OF_OWNER)
    if these := connection.execute(of_these).scalars().all():
        _blank_newest(connection, deliveries, these, target=0, state="expired", status="")
        remove_deliveries(connection, deliveries.c.number.in_(these) & (deliveries.c.target != 0))
        return Counter(deliveries=len(these))
    blank = {"subscription": 0, "address": "", "secret": "", "settings": "{}", "state": "gone", "host": ""}
    before = targets.c.subscription == 0, targets.c.number != highest(connection, targets.c.number)
    connection.execute(targets.delete().where(*before))
    _blank_newest(connection, targets, connection.execute(of_targets).scalars().all(), **blank)
    connection.execute(targets.delete().where(targets.c.subscription.in_(numbers)))
    told = connection.execute(sa.select(events.c.number).where(events.c.subscription.in_(numbers)).limit(_OF_OWNER))
    gone = events.delete().where(events.c.number.in_(told.scalars().all()))
    return +Counter(events=connection.execute(gone).rowcount)


def _blank_newest(connection: Connection, table: sa.Table, numbers: Sequence[int], **blank: Any) -> None:
    """Have the newest row of a table, by which the next is numbered, say nothing, if it is among these: it stays."""
    newest = highest(connection, table.c.number)
    if newest in numbers:
        connection.execute(table.update().where(table.c.number == newest).values(blank))
