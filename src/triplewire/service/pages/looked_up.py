"""What pages ask the store, beside what the broker's own methods answer."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from triplewire.broker.subscriptions import ENDED
from triplewire.store.tables import deliveries, events, publications, subscriptions, targets, tokens

Rows = Sequence[Row[Any]]

LISTED = 50
"""Rows of a list; what comes behind them has a page of its own."""

_NEWEST = 20


def subscriptions_of(connection: Connection, owner: str, before: int, word: str) -> Rows:
    """Subscriptions of an owner before a number, the newest first; only those with a word in their title, query or
    id."""
    table = subscriptions
    here = sa.select(table).where(table.c.owner == owner, table.c.number < before, table.c.state != ENDED)
    if word:
        texts = (table.c.title, table.c.query, table.c.id)
        here = here.where(sa.or_(*(text.icontains(word, autoescape=True) for text in texts)))
    return connection.execute(here.order_by(table.c.number.desc()).limit(LISTED + 1)).all()


def event_counts(connection: Connection, numbers: Sequence[int]) -> dict[int, tuple[int, float]]:
    """For each of these subscriptions that has events: how many, and when the last one was."""
    newest = sa.func.max(events.c.sequence), sa.func.max(events.c.at)
    here = sa.select(events.c.subscription, *newest).where(events.c.subscription.in_(numbers))
    return {row[0]: (row[1], row[2]) for row in connection.execute(here.group_by(events.c.subscription))}


def newest_events(connection: Connection, owner: str) -> list[list[Row[Any]]]:
    """The newest events of an owner, those of one publication together."""
    here = (
        sa.select(
            *(events.c[name] for name in ("number", "subscription", "type", "at", "publication")),
            *(subscriptions.c[name].label(f"of_{name}") for name in ("title", "query")),
            *(sa.func.coalesce(publications.c[name], "").label(name) for name in ("title", "link", "source")),
        )
        .join(subscriptions, subscriptions.c.number == events.c.subscription)
        .outerjoin(publications, publications.c.number == events.c.publication)
        .where(subscriptions.c.owner == owner)
    )
    rows = connection.execute(here.order_by(events.c.number.desc()).limit(_NEWEST))
    return [list(told) for _, told in groupby(rows, key=lambda row: (row.publication or row.number, row.type))]


def targets_of(connection: Connection, subscription: int) -> Rows:
    """Where the events of a subscription are delivered to."""
    return connection.execute(sa.select(targets).where(targets.c.subscription == subscription)).all()


def deliveries_of(
    connection: Connection, *, subscription: int | None = None, owner: str | None = None, state: str | None = None
) -> Rows:
    """The newest deliveries of a subscription or an owner, or those in a state, with event, target and title."""
    here = (
        sa.select(
            deliveries,
            events.c.type,
            events.c.sequence,
            events.c.subscription,
            targets.c.kind,
            targets.c.address,
            sa.func.coalesce(publications.c.title, "").label("title"),
        )
        .join(events, events.c.number == deliveries.c.event)
        .join(subscriptions, subscriptions.c.number == events.c.subscription)
        .outerjoin(targets, targets.c.number == deliveries.c.target)
        .outerjoin(publications, publications.c.number == events.c.publication)
    )
    if subscription is not None:
        here = here.where(events.c.subscription == subscription)
    if owner is not None:
        here = here.where(subscriptions.c.owner == owner)
    if state is not None:
        here = here.where(deliveries.c.state == state)
    return connection.execute(here.order_by(deliveries.c.number.desc()).limit(LISTED)).all()


def refused_publications(connection: Connection) -> Rows:
    """The newest publications that could not be matched."""
    table = publications
    columns: tuple[Any, ...] = (
        table.c.number,
        table.c.id,
        table.c.title,
        table.c.source,
        table.c.received,
        table.c.reason,
    )
    here = sa.select(*columns).where(table.c.state == "refused")
    return connection.execute(here.order_by(table.c.number.desc()).limit(LISTED)).all()


def tokens_of(connection: Connection, owner: str) -> Rows:
    """The tokens of an owner that count, the newest first."""
    here = sa.select(tokens).where(tokens.c.owner == owner, tokens.c.revoked.is_(None))
    return connection.execute(here.order_by(tokens.c.created.desc())).all()
