"""Deliveries that are owed: their log, dead letters, and the law that none is lost.

    matched = delivered + pending + expired + dead

`matched` is counted where deliveries are made, in the transaction of their events; the others are what became of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from triplewire.broker.owners import held_by
from triplewire.errors import ArgumentError
from triplewire.store.database import Database, now
from triplewire.store.tables import deliveries, events, publications, subscriptions, targets, totals

STATES = ("delivered", "pending", "expired", "dead")
_FORGOTTEN = ("delivered", "expired")  # a dead letter stays as long as its event
_AT_ONCE = 1_000


def add_total(connection: Connection, name: str, count: int) -> None:
    """Count deliveries."""
    text = "INSERT INTO totals (name, count) VALUES (:name, :count) ON CONFLICT (name) DO UPDATE SET count = "
    connection.execute(sa.text(text + "totals.count + excluded.count"), {"name": name, "count": count})


def remove_deliveries(connection: Connection, which: sa.ColumnElement[bool]) -> int:
    """Remove rows of deliveries, and count what became of them: what was not delivered has expired. Returns how
    many."""
    states = connection.execute(deliveries.delete().where(which).returning(deliveries.c.state)).scalars().all()
    counts = Counter("delivered" if state == "delivered" else "expired" for state in states)
    for name, count in counts.items():
        add_total(connection, name, count)
    return len(states)


def tally(connection: Connection) -> dict[str, int]:
    """How many deliveries were ever owed ("matched"), and in which states they are."""
    counts = dict.fromkeys(("matched", *STATES), 0)
    of_each = sa.select(deliveries.c.state, sa.func.count()).group_by(deliveries.c.state)
    both = of_each.union_all(sa.select(totals.c.name, totals.c.count))  # one statement sees one moment
    for name, count in connection.execute(both):
        counts[name] += count
    return counts


_LETTERS = (
    sa.select(
        deliveries,
        events.c.sequence,
        events.c.type,
        events.c.at,
        events.c.publication,
        targets.c.subscription,
        targets.c.kind,
        targets.c.address,
        subscriptions.c.id,
        sa.func.coalesce(publications.c.title, "").label("title"),
    )
    .join(targets, targets.c.number == deliveries.c.target)
    .join(subscriptions, subscriptions.c.number == targets.c.subscription)
    .outerjoin(events, events.c.number == deliveries.c.event)
    .outerjoin(publications, publications.c.number == events.c.publication)
)


class DeliveryLog:
    """The deliveries of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def tally(self) -> dict[str, int]:
        """How many deliveries were ever owed ("matched"), and in which states they are now."""
        with self._database.reading() as connection:
            return tally(connection)

    def of_subscription(self, number: int, most: int = 100, before: int = 2**62) -> Sequence[Row[Any]]:
        """The newest deliveries of a subscription before a number, the newest first."""
        here = _LETTERS.where(targets.c.subscription == number, deliveries.c.number < before)
        return self._database.rows(here.order_by(deliveries.c.number.desc()).limit(most))

    # --- dead letters ------------------------------------------------------------------------------------------------

    def dead(self, owner: str | None, most: int = 1_000, number: int | None = None) -> Sequence[Row[Any]]:
        """Deliveries that were given up, of an owner's and of its users' subscriptions, or of all for None; the newest
        first. Of one `number`: that one, if it is among them."""
        here = _LETTERS.where(deliveries.c.state == "dead").order_by(deliveries.c.number.desc()).limit(most)
        if owner is not None:
            here = here.where(held_by(subscriptions.c.owner, owner))
        if number is not None:
            here = here.where(deliveries.c.number == number)
        return self._database.rows(here)

    def resend(self, number: int) -> None:
        """Try a dead delivery again, from the beginning. Raises `ArgumentError` where its target is gone."""
        here = deliveries.c.number == number
        active = sa.exists().where(targets.c.number == deliveries.c.target, targets.c.state == "active")
        again = deliveries.update().where(here, deliveries.c.state == "dead", active)
        values = {"state": "pending", "due": now(), "tries": 0}
        if not self._database.execute(again.values(values)):
            raise ArgumentError("the target is gone", remedy="add it again, then resend")

    def drop(self, number: int) -> None:
        """Give a dead delivery up for good; the log still has it."""
        here = deliveries.update().where(deliveries.c.number == number, deliveries.c.state == "dead")
        values = {"state": "expired", "due": now(), "status": "dropped by its owner"}
        self._database.execute(here.values(values))

    def refused(self, most: int = 1_000) -> Sequence[Row[Any]]:
        """Publications that could not be matched, the newest first."""
        table = publications
        here = sa.select(table.c.number, table.c.id, table.c.title, table.c.received, table.c.reason)
        return self._database.rows(here.where(table.c.state == "refused").order_by(table.c.number.desc()).limit(most))

    def settle_publication(self, number: int, state: str) -> bool:
        """Have a refused publication matched after all ("accepted"; wake the matching after it), or give it up for good
        ("dropped"); False where there is none."""
        here = publications.update().where(publications.c.number == number, publications.c.state == "refused")
        values = {"state": state, "tries": 0, "reason": ""}
        return bool(self._database.execute(here.values(values)))

    # --- the past ----------------------------------------------------------------------------------------------------

    def forget(self, before: float) -> int:
        """Remove some rows of deliveries that ended before an instant, but for dead letters; returns how many."""
        ended = sa.select(deliveries.c.number).where(deliveries.c.state.in_(_FORGOTTEN), deliveries.c.due < before)
        next_ones = deliveries.c.number.in_(ended.limit(_AT_ONCE))
        return self._database.write(lambda connection: remove_deliveries(connection, next_ones))
