"""What forms change in the store, beside what the broker's own methods do. Each change is only of what an owner has."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from triplewire.broker.broker import Broker
from triplewire.errors import ArgumentError
from triplewire.store.database import now
from triplewire.store.tables import changes, deliveries, events, publications, subscriptions, targets, tokens


def resend(of: Broker, owner: str, number: int) -> None:
    """Have a delivery of an owner tried again at once."""
    _change_delivery(of, owner, number, state="pending", due=now(), tries=0)


def drop(of: Broker, owner: str, number: int) -> None:
    """Give a delivery of an owner up for good; the log still has it."""
    _change_delivery(of, owner, number, state="expired", status="dropped by its owner")


def _change_delivery(of: Broker, owner: str, number: int, **values: Any) -> None:
    own = (
        sa.select(events.c.number)
        .join(subscriptions, subscriptions.c.number == events.c.subscription)
        .where(subscriptions.c.owner == owner, events.c.number == deliveries.c.event)
    )
    here = deliveries.update().where(deliveries.c.number == number, deliveries.c.state != "delivered", own.exists())
    of.database.write(lambda connection: connection.execute(here.values(values)))


def accept_again(of: Broker, number: int) -> None:
    """Have a refused publication matched after all."""
    here = publications.update().where(publications.c.number == number, publications.c.state == "refused")
    again = here.values(state="accepted", tries=0, reason="")
    of.database.write(lambda connection: connection.execute(again))
    of.matching.wake.set()


def remove_target(of: Broker, subscription: int, number: int) -> None:
    """Deliver the events of a subscription there no more."""

    def write(connection: Connection) -> None:
        here = targets.c.number == number, targets.c.subscription == subscription
        connection.execute(targets.update().where(*here).values(state="gone"))
        connection.execute(changes.insert().values(subscription=subscription))

    of.database.write(write)
    of.followed.follow()


def remove_source(of: Broker, owner: str, number: int) -> None:
    """Take a source away. What came from it stays. Raises `ArgumentError` for another's."""
    if number not in {source.number for source in of.sources.of_owner(owner)}:
        raise ArgumentError(f"there is no source {number}")
    of.sources.remove(number)


def revoke(of: Broker, owner: str, digest: str) -> None:
    """End a token of an owner."""
    here = tokens.update().where(tokens.c.owner == owner, tokens.c.digest == bytes.fromhex(digest))
    of.database.write(lambda connection: connection.execute(here.values(revoked=now())))
