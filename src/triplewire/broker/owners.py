"""How all of an owner is removed: subscriptions, events, deliveries, sources, tokens."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from triplewire.broker import granted_namespaces
from triplewire.broker.delivery_log import add_total
from triplewire.broker.numbering import keep_numbers
from triplewire.broker.subscriptions import ENDED, parts
from triplewire.broker.users import acts_for, held_by
from triplewire.store.database import Database
from triplewire.store.tables import (
    SOURCES,
    changes,
    current,
    deliveries,
    events,
    failing,
    intents,
    leases,
    publications,
    revisions,
    sources,
    subscriptions,
    targets,
    terms,
    tokens,
)

_AT_ONCE = 1_000  # rows that one step removes, which others wait for


def forget(database: Database, owner: str) -> dict[str, int]:
    """Remove what is of an owner and of its users for good; returns how many rows of what. What they have published
    stays. Numbers never come again, so that no address and no cursor leads to what is another's."""
    numbers, counts = database.write(lambda connection: _ended(connection, owner))
    for part in parts(numbers):
        while removed := database.write(partial(_removed, numbers=part)):
            counts.update(removed)
    return {**dict.fromkeys(("subscriptions", "events", "deliveries", "sources", "tokens"), 0), **counts}


def _ended(connection: Connection, owner: str) -> tuple[list[int], Counter[str]]:
    """End the subscriptions of an owner and leave nothing of them but their numbers; remove tokens and sources.
    Returns the numbers of what may still have events."""
    here = held_by(subscriptions.c.owner, owner)
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
    of_sources = sa.select(sources.c.number).where(held_by(sources.c.owner, owner))
    connection.execute(leases.delete().where(leases.c.source.in_(of_sources)))
    for table in (sources, tokens, revisions):
        rows = connection.execute(table.delete().where(held_by(table.c.owner, owner)))
        counts[table.name] += rows.rowcount
    connection.execute(changes.insert().values(subscription=SOURCES))
    granted_namespaces.give_up(connection, owner)
    _without_reader(connection, owner)
    del counts["revisions"]
    return numbers, counts


def _without_reader(connection: Connection, owner: str) -> None:
    """Take an owner out of those who may read publications; what others may read is not told to them again."""
    table = publications
    named = table.c.readers.contains(json.dumps(owner)[1:-1], autoescape=True)
    here = sa.select(table.c.number, table.c.readers).where(named)
    for row in connection.execute(here).all():
        readers = [name for name in json.loads(row.readers) if not acts_for(owner, name)]
        text = json.dumps(readers)
        connection.execute(table.update().where(table.c.number == row.number).values(readers=text))
        newest = current.update().where(current.c.publication == row.number)
        connection.execute(newest.values(content=sa.func.replace(current.c.content, row.readers, text)))


def _removed(connection: Connection, numbers: Sequence[int]) -> Counter[str]:
    """Remove some deliveries, targets and events of subscriptions of these numbers; nothing once there are none."""
    for table in (failing, intents):
        connection.execute(table.delete().where(table.c.subscription.in_(numbers)))
    of_targets = sa.select(targets.c.number).where(targets.c.subscription.in_(numbers))
    here = sa.select(deliveries.c.number, deliveries.c.state).where(deliveries.c.target.in_(of_targets))
    if rows := connection.execute(here.limit(_AT_ONCE)).all():
        newest = _delete(connection, deliveries, [row.number for row in rows], target=0, state="expired", status="")
        delivered = sum(row.state == "delivered" and row.number != newest for row in rows)
        add_total(connection, "delivered", delivered)
        add_total(connection, "expired", sum(row.number != newest for row in rows) - delivered)
        return Counter(deliveries=len(rows))
    blank = {"subscription": 0, "address": "", "secret": "", "settings": "{}", "state": "gone", "host": ""}
    before = targets.c.subscription == 0, targets.c.number != _newest(connection, targets)
    connection.execute(targets.delete().where(*before))
    _delete(connection, targets, connection.execute(of_targets).scalars().all(), **blank)
    told = connection.execute(sa.select(events.c.number).where(events.c.subscription.in_(numbers)).limit(_AT_ONCE))
    these_events = told.scalars().all()
    for part in parts(these_events):
        connection.execute(events.delete().where(events.c.number.in_(part)))
    return +Counter(events=len(these_events))


def _delete(connection: Connection, table: sa.Table, numbers: Sequence[int], **blank: Any) -> int:
    """Remove rows. The newest of the table, by which the next is numbered, is kept without what it says: returns its
    number."""
    newest = _newest(connection, table)
    for part in parts(numbers):
        connection.execute(table.delete().where(table.c.number.in_(part), table.c.number != newest))
    if newest in numbers:
        connection.execute(table.update().where(table.c.number == newest).values(blank))
    return newest


def _newest(connection: Connection, table: sa.Table) -> int:
    return int(connection.execute(sa.select(sa.func.max(table.c.number))).scalar() or 0)
