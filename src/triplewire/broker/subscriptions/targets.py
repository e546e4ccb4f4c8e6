"""Targets: where events of a subscription are delivered to, beside its feed. How: `triplewire.deliver`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from triplewire.broker.subscriptions.followed import Followed
from triplewire.store.database import DAY, Database, inserted_number, now
from triplewire.store.tables import changes, deliveries, failing, hosts, targets

PENDING = "pending"
"""The state of a target whose receiver has to allow it first."""

DIGESTS: Mapping[str, float] = {"hourly": 3_600.0, "daily": DAY}
"""The periods of digests, in seconds; they begin with the hours and days of UTC."""

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Target:
    """Where events are delivered to (`triplewire.deliver.channels`). `secret`: what is signed with; `expires`: the end
    of a lease, None for none; `form`: of the feed that is sent as a whole (WebSub), "" for each event by itself.
    `settings`: `{"ordered": true}` has each event wait for the one before, `{"digest": "daily"}` for the end of its
    day, when all of them are told together."""

    kind: str
    address: str
    secret: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    expires: float | None = None
    state: str = "active"
    form: str = ""


def host_of(address: str) -> str:
    """Whose resources a delivery takes: HOST:PORT of a web address, the domain of a mailbox, the servers of a topic.
    Of other addresses it may hold a secret, so a digest stands for it."""
    try:
        parts = urlsplit(address)
        if parts.scheme in _PORTS:
            return f"{(parts.hostname or '').lower()}:{parts.port or _PORTS[parts.scheme]}"
    except ValueError:
        return address
    if parts.scheme == "mailto":
        return f"mailto:{parts.path.rpartition('@')[2].lower()}"
    if parts.scheme == "kafka":
        return f"kafka:{parts.netloc}"
    return f"{parts.scheme}:{hashlib.sha256(parts.netloc.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def add_target(connection: Connection, subscription: int, target: Target) -> int:
    """Write a target; one of the same kind, address and form is changed. Returns its number."""
    same = {"subscription": subscription, "kind": target.kind, "address": target.address, "form": target.form}
    host = host_of(target.address)
    values = {
        "secret": target.secret,
        "settings": json.dumps(dict(target.settings)),
        "state": target.state,
        "expires": target.expires,
        "until": 0.0,
        "failures": 0,
    }
    there = sa.text("INSERT INTO hosts (name) VALUES (:name) ON CONFLICT (name) DO NOTHING")
    connection.execute(there, {"name": host})
    number = connection.execute(sa.select(targets.c.number).filter_by(**same)).scalar()
    if number is not None:
        connection.execute(targets.update().where(targets.c.number == number).values(values))
        connection.execute(failing.delete().where(failing.c.target == number, failing.c.is_told))
        return int(number)
    return inserted_number(connection, targets, {**same, **values, "host": host, "created": now()})


def due_at(settings: str, at: float) -> float:
    """When an event of this instant is sent to a target of these settings: at once, or at the end of its period."""
    period = DIGESTS.get(json.loads(settings).get("digest", "")) if settings != "{}" else None
    return at if period is None else (at // period + 1) * period


def end_target(connection: Connection, number: int, reason: str) -> None:
    """Deliver nothing there any more: what was on its way ends with this reason."""
    here = targets.c.number == number
    connection.execute(targets.update().where(here).values(state="gone"))
    waiting = deliveries.update().where(deliveries.c.target == number, deliveries.c.state == "pending")
    connection.execute(waiting.values(state="expired", due=now(), status=reason))
    subscription = connection.execute(sa.select(targets.c.subscription).where(here)).scalar()
    connection.execute(changes.insert().values(subscription=subscription))


class Targets:
    """The targets of the store."""

    def __init__(self, database: Database, followed: Followed) -> None:
        self._database = database
        self._followed = followed

    def add(self, subscription: int, target: Target) -> int:
        """Deliver the events of a subscription there, too, from now on; returns the number of the target."""

        def write(connection: Connection) -> int:
            number = add_target(connection, subscription, target)
            connection.execute(changes.insert().values(subscription=subscription))
            return number

        return self._followed.write(write)

    def of(self, subscription: int) -> Sequence[Row[Any]]:
        """All targets that a subscription has or had, in the order in which they came."""
        here = sa.select(targets).where(targets.c.subscription == subscription)
        return self._database.rows(here.order_by(targets.c.number))

    def grant(self, number: int, per_minute: float | None) -> bool:
        """A receiver allows deliveries to a target, and so many a minute (None: it does not say how many). False where
        the target is not there any more."""

        def write(connection: Connection) -> bool:
            here = targets.c.number == number, targets.c.state != "gone"
            connection.execute(targets.update().where(*here, targets.c.state == PENDING).values(state="active"))
            row = connection.execute(sa.select(targets.c.subscription, targets.c.host).where(*here)).first()
            if row is None:
                return False
            if per_minute is not None:
                connection.execute(hosts.update().where(hosts.c.name == row.host).values(per_minute=per_minute))
            connection.execute(changes.insert().values(subscription=row.subscription))
            return True

        return self._followed.write(write)

    def mute(self, subscription: int, seconds: float) -> float:
        """Have the targets that a subscription has now get nothing for so many seconds: what is owed waits. 0 ends
        that. Returns until when."""
        at = now()
        own = targets.c.subscription == subscription, targets.c.form == ""
        waiting = deliveries.c.target.in_(sa.select(targets.c.number).where(*own)), deliveries.c.state == "pending"

        def write(connection: Connection) -> None:
            connection.execute(targets.update().where(*own).values(until=at + seconds))
            if not seconds:
                connection.execute(deliveries.update().where(*waiting, deliveries.c.due > at).values(due=at))

        self._database.write(write)
        return at + seconds

    def end(self, number: int, reason: str = "the target was removed") -> None:
        """Deliver nothing there any more."""
        self._followed.write(lambda connection: end_target(connection, number, reason))
