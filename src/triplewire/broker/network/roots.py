"""Which subscriptions of a broker stand for all at an upstream, and how each is asked there.

They are the roots of their containment (001, section 4.2). An upstream may have another taxonomy, other sources and
other operators. What depends on those is left out of what it is asked, so that it tells too much rather than too
little; what cannot be asked at all has everything asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from triplewire.broker.subscriptions.followed import ACTIVE, prefixes_of, rows_with
from triplewire.config import Settings
from triplewire.engine import Engine
from triplewire.errors import TriplewireError
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.nodes import Call, InstanceOf
from triplewire.ir.normal_form import normal_form
from triplewire.ir.subscription import Subscription
from triplewire.ir.walk import walk
from triplewire.languages import parse
from triplewire.partition.containment import MOST_CLAUSES, ContainmentPartitioner
from triplewire.partition.merging import written_clause
from triplewire.partition.placement import SERVER
from triplewire.store.database import Database
from triplewire.store.tables import TAXONOMY, changes, subscriptions

PREFIX = "net."
"""What ids of subscriptions begin with that a broker has at its upstreams."""

EVERYTHING = "all"
"""The key of the root that asks for each publication."""


class Asked(NamedTuple):
    """A query as it is asked at an upstream."""

    query: str
    language: str
    prefixes: dict[str, str]


_ALL = Asked("ASK { ?s ?p ?o }", "sparql", {})


def asked_for(row: Row[Any], engine: Engine) -> Asked | None:
    """How a subscription of the store is asked elsewhere: as it is, where it means the same there; else by what its
    clauses need (`triplewire.ir.normal_form`). None where that cannot be said."""
    try:
        subscription = _parsed(row, engine)
        if not subscription.rules and not any(isinstance(node, Call | InstanceOf) for node in walk(subscription.where)):
            return Asked(row.query, row.language, prefixes_of(row) or {})
        return _widened(subscription, engine.settings)
    except TriplewireError:
        return None


def _parsed(row: Row[Any], engine: Engine) -> Subscription:
    prefixes, operators, settings = prefixes_of(row), engine.operators, engine.settings
    return parse(row.query, row.language, id=_key(row), prefixes=prefixes, operators=operators, settings=settings)


def _widened(subscription: Subscription, limits: Settings) -> Asked | None:
    clauses = normal_form(subscription, most=min(MOST_CLAUSES, limits.max_branches)).clauses
    texts = [written_clause(clause) for clause in clauses]
    if not texts or not all(texts):
        return None
    query = f"ASK WHERE {{ {' UNION '.join(f'{{ {text} }}' for text in texts)} }}"
    parse(query, "sparql", settings=limits)
    return Asked(query, "sparql", {})


def _key(row: Row[Any]) -> str:
    return f"{row.number}.{row.revision}"


class Roots:
    """The roots of the active subscriptions of a store, by keys NUMBER.REVISION, without those whose ids begin with
    `without`: what an upstream asks for need not be asked there."""

    def __init__(self, database: Database, engine: Engine, without: str) -> None:
        self._database = database
        self._engine = engine
        self._without = without
        self._last = -1  # the number of the last change that was taken over; -1: none yet
        self._begin()

    def _begin(self) -> None:
        world = World(self._engine.taxonomy, self._engine.operators, self._engine.settings)
        self._placed = ContainmentPartitioner(1, world)
        self._keys: dict[int, str] = {}
        self._unreadable: set[str] = set()  # keys of what cannot be compared: it names rules of this broker
        self._refused: set[str] = set()  # keys of what cannot be asked for

    def follow(self) -> bool:
        """Take over what has changed; returns whether anything has."""
        with self._database.reading() as connection:
            new = connection.execute(sa.select(changes).where(changes.c.number > self._last)).all()
            if not new and self._last >= 0:
                return False
            numbers = {row.subscription for row in new}
            if self._last < 0 or TAXONOMY in numbers:
                self._begin()
                self._take_over(connection, None)
            else:
                self._take_over(connection, sorted(number for number in numbers if number > 0))
            self._last = max((row.number for row in new), default=0)
        return True

    def _take_over(self, connection: Connection, numbers: list[int] | None) -> None:
        here = sa.select(subscriptions).where(subscriptions.c.state == ACTIVE)
        of = subscriptions.c.number
        rows = connection.execute(here).all() if numbers is None else list(rows_with(connection, here, of, numbers))
        for number in numbers or ():
            if (key := self._keys.pop(number, None)) is not None:
                self._forget(key)
        compared: list[Subscription] = []
        for row in rows:
            if row.id.startswith(self._without):
                continue
            self._keys[row.number] = _key(row)
            try:
                compared.append(_parsed(row, self._engine))
            except TriplewireError:
                self._unreadable.add(_key(row))
        self._placed.subscribe(compared)

    def _forget(self, key: str) -> None:
        self._refused.discard(key)
        if key in self._unreadable:
            self._unreadable.discard(key)
        else:
            self._placed.unsubscribe(key)

    def keys(self) -> set[str]:
        """The keys of the roots; `EVERYTHING` alone where one of them cannot be asked for."""
        roots = {key for key, place in self._placed.placement.place.items() if place == SERVER}
        has_others = bool(self._unreadable or self._placed.placement.everywhere or roots & self._refused)
        return {EVERYTHING} if has_others else roots

    def refuse(self, keys: Iterable[str]) -> None:
        """These cannot be asked for at the upstream."""
        self._refused.update(keys)

    def knows(self, key: str) -> bool:
        """Is it that of a subscription which is active?"""
        return key in self._placed.placement.place or key in self._unreadable

    def over(self, key: str) -> set[str]:
        """The roots that bring what a former root would bring now; none where nobody wants that any more."""
        roots = self.keys()
        if key == EVERYTHING or EVERYTHING in roots:
            return roots
        return roots & {self._placed.placement.above.get(key, key)} if self.knows(key) else set()

    def expires(self) -> dict[str, tuple[float, bool]]:
        """Of each root when the last of the subscriptions that it stands for ends, and whether all of these are other
        brokers' own."""
        with self._database.reading() as connection:
            here = sa.select(subscriptions.c.number, subscriptions.c.id, subscriptions.c.expires)
            rows = connection.execute(here.where(subscriptions.c.state == ACTIVE)).all()
        above, ends = self._placed.placement.above, dict[str, tuple[float, bool]]()
        for row in rows:
            if (key := self._keys.get(row.number)) is not None:
                for root in (above.get(key, key), EVERYTHING):
                    last, is_link = ends.get(root, (0.0, True))
                    ends[root] = max(last, row.expires), is_link and row.id.startswith(PREFIX)
        return ends

    def asked(self, keys: Collection[str]) -> dict[str, Asked | None]:
        """How each of these roots is asked; None where it cannot be."""
        numbers = sorted(int(key.partition(".")[0]) for key in keys if key != EVERYTHING)
        with self._database.reading() as connection:
            rows = list(rows_with(connection, sa.select(subscriptions), subscriptions.c.number, numbers))
        asked = {key: asked_for(row, self._engine) for row in rows if (key := _key(row)) in keys}
        return asked | ({EVERYTHING: _ALL} if EVERYTHING in keys else {})
