"""Targets: where events of a subscription are delivered to, beside its feed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from triplewire.store.database import inserted_number, now
from triplewire.store.tables import changes, deliveries, targets


@dataclass(frozen=True)
class Target:
    """Where events are delivered to (`triplewire.deliver`). `form`: of the feed that is sent as a whole (WebSub), ""
    for each event by itself; `expires`: the end of a lease, None for none."""

    kind: str
    address: str
    secret: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    expires: float | None = None
    state: str = "active"
    form: str = ""


def add_target(connection: Connection, subscription: int, target: Target) -> int:
    """Write a target; one of the same kind, address and form is changed. Returns its number."""
    same = {"subscription": subscription, "kind": target.kind, "address": target.address, "form": target.form}
    values = {
        "secret": target.secret,
        "settings": json.dumps(dict(target.settings)),
        "state": target.state,
        "expires": target.expires,
        "failures": 0,
    }
    number = connection.execute(sa.select(targets.c.number).filter_by(**same)).scalar()
    if number is None:
        return inserted_number(connection, targets, {**same, **values, "created": now()})
    connection.execute(targets.update().where(targets.c.number == number).values(values))
    return int(number)


def end_target(connection: Connection, number: int, reason: str) -> None:
    """Deliver nothing there any more: what was on its way ends with this reason."""
    here = targets.c.number == number
    connection.execute(targets.update().where(here).values(state="gone"))
    waiting = deliveries.update().where(deliveries.c.target == number, deliveries.c.state == "pending")
    connection.execute(waiting.values(state="expired", due=now(), status=reason))
    subscription = connection.execute(sa.select(targets.c.subscription).where(here)).scalar()
    connection.execute(changes.insert().values(subscription=subscription))
