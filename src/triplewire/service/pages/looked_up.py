"""What pages ask the store, beside what the broker's own methods answer."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from triplewire.broker.subscriptions.followed import ENDED
from triplewire.store.tables import events, publications, subscriptions, tokens

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


def tokens_of(connection: Connection, owner: str) -> Rows:
    """The tokens of an owner that count, the newest first."""
    here = sa.select(tokens).where(tokens.c.owner == owner, tokens.c.revoked.is_(None))
    return connection.execute(here.order_by(tokens.c.created.desc())).all()
