"""Events: what a subscription is told, and how they are read again.

An event has a `number`, which grows in the order of commits over all subscriptions, and a `sequence`, which counts 1,
2, ... within its own. Both are cursors: who asks for what comes behind one misses nothing, and gets nothing twice. So
no number is ever given twice. Where a database is put back from a copy, as others may have been given between the copy
and its loss, those to come begin far behind them (`skip_numbers`); numbers of subscriptions, too, of which addresses of
feeds are made.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from triplewire.broker.owners import held_by, name_of_user
from triplewire.broker.publications.kept_contents import restored
from triplewire.broker.subscriptions.followed import ENDED, SUSPENDED
from triplewire.model.publication import Publication
from triplewire.store.database import begins_with, fact, highest, now, state
from triplewire.store.tables import attachments, events, facts, publications, subscriptions

MATCHED, CHANGED, UNMATCHED, REPEATED = "matched", "changed", "unmatched", "repeated"
EXPIRING, EXPIRED, UNDELIVERED = "expiring", "expired", "undelivered"
TYPES = (MATCHED, CHANGED, UNMATCHED, EXPIRING, EXPIRED, REPEATED, SUSPENDED, UNDELIVERED)
"""`matched`: a publication matches; `changed`: it has another content, and still does; `unmatched`: it does not any
more; `expiring`: the subscription, which was valid for more than a day, ends within one; `expired`: it has ended;
`repeated`: another report of a story that was told (`Event.first`); `suspended`: it cost or matched too much
(`triplewire.broker.subscriptions.quarantine`), or ended processes; `Event.reason` says why, as long as it is so;
`undelivered`: deliveries to targets were given up, which its bindings name; it is delivered to no target."""

MOST = 1_000  # events of one page
_SKIPPED_EVENTS, _SKIPPED_SUBSCRIPTIONS = 10_000_000, 100_000  # more than were given between a copy and its loss


@dataclass(frozen=True, slots=True)
class Event:
    """An event with what people and programs are told of it."""

    number: int
    subscription: int
    id: str  # of the subscription, as its owner calls it
    owner: str
    sequence: int
    type: str
    at: float
    publication: str
    publication_number: int | None
    content: str
    title: str
    link: str
    published: float | None
    sources: str  # where it came from, a line each; the last one first
    bindings: str
    first: int | None
    reason: str = ""  # why its subscription is suspended or has ended

    @property
    def source(self) -> str:
        """Where the publication came from when this was told."""
        return self.sources.partition("\n")[0]

    @property
    def user(self) -> str:
        """The user of whom the subscription is, where an owner acts for it; else ""."""
        return name_of_user(self.owner)

    def to_json(self) -> dict[str, Any]:
        """The event as an object of JSON."""
        return {
            "number": self.number,
            "subscription": self.id,
            **({"user": self.user} if self.user else {}),
            "sequence": self.sequence,
            "type": self.type,
            "at": self.at,
            "publication": self.publication,
            "content": self.content,
            "title": self.title,
            "link": self.link,
            "source": self.source,
            "bindings": json.loads(self.bindings),
            **({"first": self.first} if self.first is not None else {}),
            **({"reason": self.reason} if self.type in (SUSPENDED, EXPIRED) and self.reason else {}),
        }

    def line(self) -> str:
        """The event as JSON in one line, which UTF-8 can hold."""
        return json.dumps(self.to_json(), ensure_ascii=False).encode("utf-8", "replace").decode()


_COLUMNS: sa.Select[Any] = (
    sa.select(
        events.c.number,
        events.c.subscription,
        subscriptions.c.id,
        subscriptions.c.owner,
        events.c.sequence,
        events.c.type,
        events.c.at,
        sa.func.coalesce(publications.c.id, ""),
        events.c.publication,
        sa.func.coalesce(publications.c.content, ""),
        sa.func.coalesce(publications.c.title, ""),
        sa.func.coalesce(publications.c.link, ""),
        publications.c.published,
        sa.func.coalesce(publications.c.source, ""),
        events.c.bindings,
        events.c.first,
        subscriptions.c.reason,
    )
    .join(subscriptions, subscriptions.c.number == events.c.subscription)
    .outerjoin(publications, publications.c.number == events.c.publication)
)


def _read(connection: Connection, query: sa.Select[Any]) -> list[Event]:
    return [Event(*row) for row in connection.execute(query)]


def of_owner(connection: Connection, owner: str | None, after: int, most: int = MOST, prefix: str = "") -> list[Event]:
    """The events of all subscriptions of an owner and of its users (None: of all owners) behind a number, in order.
    `prefix`: of those alone whose ids begin so."""
    here = _COLUMNS.where(events.c.number > after).order_by(events.c.number).limit(most)
    if owner is not None:
        here = here.where(held_by(subscriptions.c.owner, owner))
    if prefix:
        here = here.where(begins_with(subscriptions.c.id, prefix))
    return _read(connection, here)


def of_subscription(connection: Connection, number: int, after: int, most: int = MOST) -> list[Event]:
    """The events of one subscription behind a sequence, in order."""
    here = _COLUMNS.where(events.c.subscription == number, events.c.sequence > after)
    return _read(connection, here.order_by(events.c.sequence).limit(most))


def newest_of_subscription(connection: Connection, number: int, most: int, before: int = 2**62) -> list[Event]:
    """The newest events of one subscription, or those before a sequence; the newest first."""
    here = _COLUMNS.where(events.c.subscription == number, events.c.sequence < before)
    return _read(connection, here.order_by(events.c.sequence.desc()).limit(most))


def repeats_of(connection: Connection, subscription: int, numbers: Sequence[int]) -> dict[int, list[Event]]:
    """The events of a subscription that report again what these told, by the numbers of these."""
    repeats: dict[int, list[Event]] = {}
    here = _COLUMNS.where(events.c.subscription == subscription, events.c.first.in_(numbers))
    for event in _read(connection, here.order_by(events.c.sequence)):
        repeats.setdefault(event.first or 0, []).append(event)
    return repeats


def with_numbers(connection: Connection, numbers: list[int]) -> dict[int, Event]:
    """Events by their numbers."""
    return {event.number: event for event in _read(connection, _COLUMNS.where(events.c.number.in_(numbers)))}


def publication_of(connection: Connection, number: int) -> Publication | None:
    """The content of this number, with its attachments; None where it is not kept any more."""
    row = connection.execute(sa.select(publications).where(publications.c.number == number)).first()
    if row is None:
        return None
    files = connection.execute(sa.select(attachments).where(attachments.c.publication == number))
    return restored(row.body, row.id, row.source, {file.name: file.content for file in files})


# --- numbers that are never given again -------------------------------------------------------------------------------


def first_numbers(connection: Connection) -> tuple[int, int]:
    """The least number and the least sequence of an event to come."""
    number, sequence = (int(fact(connection, facts, name) or 1) for name in ("first_number", "first_sequence"))
    return max(number, highest(connection, events.c.number) + 1), sequence


def keep_numbers(connection: Connection) -> None:
    """Have no number of an event that is there now come again, be it removed."""
    state(connection, facts, first_number=str(first_numbers(connection)[0]))


def skip_numbers(connection: Connection) -> None:
    """Have the numbers of events and subscriptions to come begin behind all that may have been given."""
    first_number, first_sequence = first_numbers(connection)
    first_sequence = max(first_sequence, highest(connection, events.c.sequence) + 1) + _SKIPPED_EVENTS
    state(connection, facts, first_number=str(first_number + _SKIPPED_EVENTS), first_sequence=str(first_sequence))
    connection.execute(facts.delete().where(facts.c.name == "identity"))  # no engine that was saved is of this database
    number = highest(connection, subscriptions.c.number) + _SKIPPED_SUBSCRIPTIONS
    values: dict[str, Any] = dict.fromkeys(("owner", "language", "query", "title"), "")
    values |= {"id": f"skipped-{number}", "ticket": b"", "state": ENDED, "reason": "put back from a copy"}
    values |= {"once_per_story": False, "price": "{}", "revision": 1}
    row = subscriptions.insert().values(**values, number=number, created=now(), expires=now())
    connection.execute(row)  # the next number follows it
    if connection.dialect.name == "postgresql":
        sequence = sa.func.pg_get_serial_sequence("subscriptions", "number")
        connection.execute(sa.select(sa.func.setval(sequence, number)))
