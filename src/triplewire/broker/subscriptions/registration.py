"""Registering subscriptions: what is asked for, what is answered, and what is written, of many in one transaction."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from triplewire.broker import owners, tickets
from triplewire.broker.subscriptions.followed import ACTIVE, ENDED, rows_with
from triplewire.broker.subscriptions.targets import Target, add_target
from triplewire.errors import ArgumentError, LimitError, SubscriptionError, TriplewireError
from triplewire.store.database import DAY, inserted_numbers, now
from triplewire.store.tables import changes, subscriptions

AT_ONCE = 20_000
"""Subscriptions of one transaction: of fewer, an engine would be made anew too often."""

SHORTEST, LONGEST = 60.0, 30 * DAY
"""Seconds that a subscription is valid for."""


@dataclass(frozen=True)
class Wanted:
    """A subscription as somebody asks for it. `seconds`: how long it is valid; `source`: the number of the source of
    which an item asks for it."""

    query: str
    language: str = "sparql"
    id: str = ""
    seconds: float = DAY
    prefixes: Mapping[str, str] | None = None
    title: str = ""
    once_per_story: bool = False
    targets: Sequence[Target] = ()
    source: int | None = None

    def check(self) -> None:
        """Raises what is wrong with its id or its time."""
        if self.id and not owners.NAME_IN_PATH.fullmatch(self.id):
            raise ArgumentError(f"{self.id!r} is no id of a subscription", remedy=owners.RULE_OF_NAMES)
        check_seconds(self.seconds)


@dataclass(frozen=True)
class Made:
    """A subscription as it was registered. The ticket is told this once."""

    number: int
    id: str
    ticket: str
    feed_key: str
    expires: float
    warnings: tuple[str, ...]
    price: Mapping[str, Any]


def check_seconds(seconds: float) -> None:
    """Raises `SubscriptionError` where a subscription may not be valid for so long."""
    if not SHORTEST <= seconds <= LONGEST:
        what = f"{seconds:g} seconds are not from {SHORTEST:.0f} to {LONGEST:.0f}"
        raise SubscriptionError(what, remedy="renew it before it ends")


def validity(begin: float, seconds: float) -> dict[str, float | None]:
    """When a subscription ends, and when its feed tells so: a day before, where it is valid for longer."""
    expires = begin + seconds
    return {"expires": expires, "warns": expires - DAY if seconds > DAY else None}


@dataclass(frozen=True)
class Registration:
    """Subscriptions of one owner that are to be written. `answers`: of each its warnings, or why it is refused;
    `most`: subscriptions that the owner may have; `secret`: what keys of feeds are made with."""

    owner: str
    wanted: Sequence[Wanted]
    answers: Sequence[tuple[str, ...] | TriplewireError]
    prices: Sequence[Mapping[str, Any]]
    most: int
    secret: bytes

    def write(self, connection: Connection) -> list[Made | TriplewireError]:
        """Write those that are right; in place of each other one, why it is refused."""
        refusals = self._refusals(connection)
        made: list[Any] = list(refusals)
        new = [place for place, refusal in enumerate(refusals) if refusal is None]
        issued = [tickets.new_ticket(tickets.CONTROL) for _ in new]
        at = now()
        rows = [self._row(place, ticket, at) for place, ticket in zip(new, issued, strict=True)]
        numbers = inserted_numbers(connection, subscriptions, rows)
        for place, number, ticket, row in zip(new, numbers, issued, rows, strict=True):
            for target in self.wanted[place].targets:
                add_target(connection, number, replace(target, secret=tickets.sealed(target.secret, self.secret)))
            told = (self.answers[place], self.prices[place])
            made[place] = Made(number, row["id"], ticket, tickets.feed_key(number, self.secret), row["expires"], *told)  # type: ignore[arg-type]  # a tuple
        inserted_numbers(connection, changes, [{"subscription": number} for number in numbers])
        return made

    def _refusals(self, connection: Connection) -> list[TriplewireError | None]:
        """Why each is refused; None for those that are right."""
        taken = self._taken(connection)
        of_owner = sa.select(sa.func.count()).where(subscriptions.c.owner == self.owner, subscriptions.c.state != ENDED)
        room = self.most - connection.execute(of_owner).scalar_one()
        refusals: list[TriplewireError | None] = []
        for wanted, answer in zip(self.wanted, self.answers, strict=True):
            refusal = answer if isinstance(answer, TriplewireError) else None
            if refusal is None and room <= 0:
                what, remedy = f"{self.owner} has {self.most:,} subscriptions", "end some of them"
                refusal = LimitError(what, remedy=f"{remedy}, or raise most_subscriptions")
            elif refusal is None and wanted.id in taken:
                remedy = "choose another, or change that one: PATCH /subscriptions/{id}"
                refusal = SubscriptionError(f"the id {wanted.id!r} is taken", remedy=remedy)
            if refusal is None:
                taken.update(filter(None, [wanted.id]))
                room -= 1
            refusals.append(refusal)
        return refusals

    def _taken(self, connection: Connection) -> set[str]:
        of_owner = sa.select(subscriptions.c.id).where(subscriptions.c.owner == self.owner)
        ids = [each.id for each in self.wanted if each.id]
        return {row.id for row in rows_with(connection, of_owner, subscriptions.c.id, ids)}

    def _row(self, place: int, ticket: str, at: float) -> dict[str, Any]:
        wanted, digest = self.wanted[place], tickets.digest(ticket)
        return {
            "owner": self.owner,
            "id": wanted.id or f"s-{digest.hex()[:12]}",
            "language": wanted.language,
            "query": wanted.query,
            "prefixes": json.dumps(dict(wanted.prefixes)) if wanted.prefixes else None,
            "title": wanted.title,
            "state": ACTIVE,
            "reason": "",
            "once_per_story": wanted.once_per_story,
            "price": json.dumps(self.prices[place]),
            "revision": 1,
            "created": at,
            **validity(at, wanted.seconds),
            "ticket": digest,
            "source": wanted.source,
        }
