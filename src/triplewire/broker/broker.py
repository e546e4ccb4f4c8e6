"""The broker as its doors call it: `subscribe`, `renew`, `unsubscribe` and `publish` of paper 002 (section 5.1), dry
runs, and events.

    with Broker.open("sqlite:///data/broker.db", secret) as broker:
        made = broker.subscribe(Wanted("SELECT ?t { ?s rss:title ?t }"), owner="ann")
        numbers = broker.publish(publications)
        broker.wait(numbers, 10)
        broker.events("ann", after=0)

All methods may be called by any thread. What changes something returns once it is committed and synced.
"""

from __future__ import annotations

import json
import os
import re
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from triplewire.broker import events as events_
from triplewire.broker import tickets
from triplewire.broker.events import EXPIRED, Event
from triplewire.broker.matching import Batch, Matching
from triplewire.broker.price import prices
from triplewire.broker.publications import link_of, stored, title_of
from triplewire.broker.quarantine import Limits, Quarantine
from triplewire.broker.stories import Stories
from triplewire.broker.subscriptions import ACTIVE, ENDED, PAUSED, SUSPENDED, Followed
from triplewire.config import Settings
from triplewire.engine import Engine
from triplewire.errors import ArgumentError, SubscriptionError, TriplewireError
from triplewire.ir.taxonomy import Taxonomy
from triplewire.model.publication import Publication
from triplewire.store.database import Database, inserted_number, now
from triplewire.store.tables import (
    attachments,
    changes,
    current,
    events,
    publications,
    subscriptions,
    targets,
    tokens,
)

if TYPE_CHECKING:
    from triplewire.engine.explain.explanation import Explanation

DAY = 86_400.0
SHORTEST, LONGEST = 60.0, 30 * DAY
"""Seconds that a subscription is valid for."""

_LOOK, _LOOK_OURS = 0.25, 2.0  # seconds between looks at what was matched: by another process, or by this one

_ID = re.compile(r"[^\x00-\x1f\x7f/?#]{1,200}")


@dataclass(frozen=True)
class Wanted:
    """A subscription as somebody asks for it. `seconds`: how long it is valid."""

    query: str
    language: str = "sparql"
    id: str = ""
    seconds: float = DAY
    prefixes: Mapping[str, str] | None = None
    title: str = ""
    once_per_story: bool = False
    targets: Sequence[Target] = ()


@dataclass(frozen=True)
class Target:
    """Where events are delivered to (`triplewire.deliver`). `expires`: the end of a lease, None for none."""

    kind: str
    address: str
    secret: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    expires: float | None = None
    state: str = "active"


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


class Taken(NamedTuple):
    """A publication as it was accepted. `is_new`: it was not there with this content."""

    number: int
    id: str
    is_new: bool


class Broker:
    """A broker over one database. Make it with `open`."""

    def __init__(
        self,
        database: Database,
        secret: bytes,
        engine: Engine,
        warn: Callable[[str], None],
        limits: Limits | None = None,
    ) -> None:
        self.database = database
        self.secret = secret
        self.holder = f"{socket.gethostname()}:{os.getpid()}"
        self.followed = Followed(engine, database, warn)
        self.matching = Matching(database, self.followed, self.holder, self._told, Stories(self.followed).choose)
        self.matching.judge = Quarantine(database, self.followed, limits or Limits(), self.matching.suspend).judge
        self._matched = threading.Condition()
        self._counts: dict[int, int] = {}  # publications that were matched lately -> subscriptions
        self.listeners: list[Callable[[Batch], None]] = []
        """Called with each batch that this process has matched and written."""

    @classmethod
    def open(
        cls,
        url: str,
        secret: bytes,
        *,
        engine: Engine | None = None,
        limits: Limits | None = None,
        folder: Path | None = None,
        warn: Callable[[str], None] = lambda text: None,
        progress: Callable[[int], None] | None = None,
    ) -> Broker:
        """Open a database with the subscriptions in it, and begin to match. `secret`: what keys of feeds are made
        with; the same for all processes. `engine`: an engine without subscriptions; its settings are the limits.
        `limits`: from when a subscription is suspended. `folder`: where the engine is saved, for the next start.
        Raises what `Database.open` raises."""
        database = Database.open(url, warn=warn)
        try:
            broker = cls(database, secret, engine or Engine(), warn, limits)
            broker.followed.load(progress, folder)
        except BaseException:
            database.close()
            raise
        broker.matching.start()
        return broker

    def __enter__(self) -> Broker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End what is under way, and close the database."""
        self.matching.stop()
        self.followed.save()
        self.database.close()

    @property
    def engine(self) -> Engine:
        """The engine with the active subscriptions, by the texts of their numbers."""
        return self.followed.engine

    @property
    def settings(self) -> Settings:
        """The limits."""
        return self.engine.settings

    # --- subscriptions -----------------------------------------------------------------------------------------------

    def subscribe(self, wanted: Wanted, owner: str) -> Made:
        """Register a subscription. Raises `LanguageError` for its text, `SubscriptionError` where its id is taken or
        its time is too short or too long."""
        made = self.subscribe_all([wanted], owner)[0]
        if isinstance(made, TriplewireError):
            raise made
        return made

    def subscribe_all(self, wanted: Sequence[Wanted], owner: str) -> list[Made | TriplewireError]:
        """Register many in one transaction; in place of each that is refused, why."""
        checked: list[tuple[str, ...] | TriplewireError] = []
        for each in wanted:
            try:
                checked.append(self._checked(each))
            except TriplewireError as error:
                checked.append(error)

        right = [place for place, each in enumerate(checked) if not isinstance(each, TriplewireError)]
        queries = [(wanted[place].query, wanted[place].language, wanted[place].prefixes) for place in right]
        priced = dict(zip(right, prices(queries, owner, self.database, self.engine), strict=True))

        def write(connection: Connection) -> list[Made | TriplewireError]:
            taken = self._taken(connection, owner, [each.id for each in wanted if each.id])
            made: list[Made | TriplewireError] = []
            for place, (each, warnings) in enumerate(zip(wanted, checked, strict=True)):
                if isinstance(warnings, TriplewireError):
                    made.append(warnings)
                elif each.id and each.id in taken:
                    remedy = "choose another, or change that one: PATCH /subscriptions/{id}"
                    made.append(SubscriptionError(f"the id {each.id!r} is taken", remedy=remedy))
                else:
                    made.append(self._register(connection, each, owner, warnings, priced[place]))
                    taken.add(each.id)
            return made

        made = self.database.write(write)
        self.followed.follow()
        return made

    def _checked(self, wanted: Wanted) -> tuple[str, ...]:
        """The warnings of a text. Raises what is wrong with it."""
        if wanted.id and not _ID.fullmatch(wanted.id):
            what = f"{wanted.id!r} is no id of a subscription"
            raise ArgumentError(what, remedy="up to 200 characters, none of / ? # or the end of a line")
        self.check_seconds(wanted.seconds)
        return self.compiled(wanted.query, wanted.language, wanted.prefixes)

    @staticmethod
    def check_seconds(seconds: float) -> None:
        """Raises `SubscriptionError` where a subscription may not be valid for so long."""
        if not SHORTEST <= seconds <= LONGEST:
            what = f"{seconds:g} seconds are not from {SHORTEST:.0f} to {LONGEST:.0f}"
            raise SubscriptionError(what, remedy="renew it before it ends")

    def compiled(self, query: str, language: str, prefixes: Mapping[str, str] | None = None) -> tuple[str, ...]:
        """The warnings of a query. Raises `LanguageError`, with line and column, and `SubscriptionError`."""
        probe = Engine(matcher="reference", settings=self.settings, taxonomy=self.engine.taxonomy)
        return probe.subscribe(query, language, id="query", prefixes=prefixes).warnings

    @staticmethod
    def _taken(connection: Connection, owner: str, ids: list[str]) -> set[str]:
        taken: set[str] = set()
        for begin in range(0, len(ids), 500):
            here = sa.select(subscriptions.c.id).where(
                subscriptions.c.owner == owner, subscriptions.c.id.in_(ids[begin : begin + 500])
            )
            taken.update(connection.execute(here).scalars())
        return taken

    def _register(
        self, connection: Connection, wanted: Wanted, owner: str, warnings: tuple[str, ...], price: Mapping[str, Any]
    ) -> Made:
        ticket, created = tickets.new_ticket(tickets.CONTROL), now()
        prefixes = json.dumps(dict(wanted.prefixes)) if wanted.prefixes else None
        values = {
            "owner": owner,
            "id": wanted.id or f"s-{tickets.digest(ticket).hex()[:12]}",
            "language": wanted.language,
            "query": wanted.query,
            "prefixes": prefixes,
            "title": wanted.title,
            "state": ACTIVE,
            "reason": "",
            "once_per_story": wanted.once_per_story,
            "price": json.dumps(price),
            "revision": 1,
            "created": created,
            "expires": created + wanted.seconds,
            "ticket": tickets.digest(ticket),
        }
        number = inserted_number(connection, subscriptions, values)
        for target in wanted.targets:
            self._add_target(connection, number, target)
        connection.execute(changes.insert().values(subscription=number))
        key = tickets.feed_key(number, self.secret)
        return Made(number, str(values["id"]), ticket, key, created + wanted.seconds, warnings, price)

    def _add_target(self, connection: Connection, number: int, target: Target) -> None:
        same = (
            targets.c.subscription == number,
            targets.c.kind == target.kind,
            targets.c.address == target.address,
        )
        connection.execute(targets.delete().where(*same))
        connection.execute(
            targets.insert().values(
                subscription=number,
                kind=target.kind,
                address=target.address,
                secret=target.secret,
                settings=json.dumps(dict(target.settings)),
                state=target.state,
                expires=target.expires,
                failures=0,
                created=now(),
            )
        )

    def add_target(self, number: int, target: Target) -> None:
        """Deliver the events of a subscription there, too, from now on; in place of a target of the same kind and
        address."""

        def write(connection: Connection) -> None:
            self._add_target(connection, number, target)
            connection.execute(changes.insert().values(subscription=number))

        self.database.write(write)
        self.followed.follow()

    def find(self, id: str, *, owner: str | None = None, ticket: str | None = None) -> Row[Any] | None:
        """The subscription of an owner, or the one that a ticket is of; None where there is none, or it is another's:
        who asks cannot tell these apart."""
        with self.database.reading() as connection:
            rows = connection.execute(sa.select(subscriptions).where(subscriptions.c.id == id)).all()
        digest = tickets.digest(ticket) if ticket is not None else b""
        for row in rows:
            if (owner is not None and row.owner == owner) or (ticket is not None and row.ticket == digest):
                return row
        return None

    def by_feed_key(self, key: str) -> Row[Any] | None:
        """The subscription whose feed has this key; None for another key."""
        number = tickets.number_of_feed(key, self.secret)
        return None if number is None else self.by_number(number)

    def by_number(self, number: int) -> Row[Any] | None:
        """The subscription of this number."""
        with self.database.reading() as connection:
            return connection.execute(sa.select(subscriptions).where(subscriptions.c.number == number)).first()

    def subscriptions_of(self, owner: str) -> Sequence[Row[Any]]:
        """All subscriptions of an owner, the newest first."""
        with self.database.reading() as connection:
            here = sa.select(subscriptions).where(subscriptions.c.owner == owner)
            return connection.execute(here.order_by(subscriptions.c.number.desc())).all()

    def renew(self, number: int, seconds: float = DAY) -> float:
        """Have a subscription last for so many seconds from now; returns when it ends. Raises `SubscriptionError` where
        it has ended already, or the time is too short or too long."""
        self.check_seconds(seconds)
        expires = now() + seconds
        here = subscriptions.update().where(subscriptions.c.number == number, subscriptions.c.state != ENDED)
        if not self.database.write(lambda connection: connection.execute(here.values(expires=expires)).rowcount):
            raise SubscriptionError("the subscription has ended", remedy="subscribe anew")
        return expires

    def change(self, number: int, **values: Any) -> None:
        """Change the query, the language, the prefixes, the title, the state ("active", "paused") or `once_per_story`
        of a subscription; one that was suspended gets a new price. Raises what is wrong with the query, and
        `ArgumentError` for another state."""
        row = self.by_number(number)
        if row is None or row.state == ENDED:
            raise SubscriptionError("the subscription has ended", remedy="subscribe anew")
        if "state" in values and values["state"] not in (ACTIVE, PAUSED):
            raise ArgumentError(f"{values['state']!r} is no state", remedy=f"known: {ACTIVE}, {PAUSED}")
        if "state" in values:
            values["reason"] = ""
        prefixes = values.get("prefixes", json.loads(row.prefixes) if row.prefixes else None)
        query = values.get("query", row.query), values.get("language", row.language), prefixes
        is_new = bool({"query", "language", "prefixes"} & set(values))
        if is_new or row.state == SUSPENDED:
            values["price"] = json.dumps(prices([query], row.owner, self.database, self.engine)[0])
        if is_new:
            self.compiled(*query)
            values["revision"] = row.revision + 1
            values["prefixes"] = json.dumps(dict(prefixes)) if prefixes else None
        self._set(number, **values)

    def unsubscribe(self, number: int, reason: str = "unsubscribed") -> None:
        """End a subscription. Its feed stays, and says so; what is to be delivered is delivered."""
        self._set(number, state=ENDED, reason=reason)

    def _set(self, number: int, **values: Any) -> None:
        def write(connection: Connection) -> None:
            connection.execute(subscriptions.update().where(subscriptions.c.number == number).values(values))
            connection.execute(changes.insert().values(subscription=number))

        self.database.write(write)
        self.followed.follow()

    def expire(self) -> int:
        """End the subscriptions whose time is over, with an event; returns how many. One process does it."""
        return self.matching.expire()

    # --- publications ------------------------------------------------------------------------------------------------

    def publish(
        self,
        given: Iterable[Publication],
        *,
        source: str = "",
        readers: Iterable[str] | None = None,
    ) -> list[Taken]:
        """Accept publications; returns them once they are committed and synced. One that is there with the same content
        is not taken again. `source`: where they come from, in place of what they say; `readers`: the owners who may see
        them, None for all."""
        rows = [self._prepared(publication, source, readers) for publication in given]
        taken = self.database.write(lambda connection: _accept(connection, rows))
        if any(entry.is_new for entry in taken):
            self.matching.wake.set()
        return taken

    @staticmethod
    def _prepared(
        publication: Publication, source: str, readers: Iterable[str] | None
    ) -> tuple[dict[str, Any], Mapping[str, bytes]]:
        values = {
            "id": publication.id,
            "content": publication.content_hash,
            "source": source or publication.source,
            "published": publication.published.timestamp() if publication.published else None,
            "received": now(),
            "readers": None if readers is None else json.dumps(sorted(readers)),
            "title": title_of(publication),
            "link": link_of(publication),
            "body": stored(publication),
            "state": "accepted",
            "tries": 0,
            "reason": "",
        }
        return values, publication.attachments

    def wait(self, numbers: Iterable[int], seconds: float) -> dict[int, int]:
        """Wait until these publications are matched; returns by how many subscriptions each is. Those that are not
        matched in so many seconds, or are refused, are left out."""
        wanted, deadline = set(numbers), now() + seconds
        found: dict[int, int] = {}
        while wanted and (left := deadline - now()) > 0:
            with self._matched:
                for number in wanted & self._counts.keys():
                    found[number] = self._counts[number]
                wanted -= found.keys()
                if wanted and not self._matched.wait(min(left, _LOOK_OURS if self.matching.is_ours else _LOOK)):
                    waiting = set(wanted)
                else:
                    continue
            counts, done = self._counts_stored(waiting)  # another process may match
            found |= counts
            wanted -= done
        return found

    def _counts_stored(self, numbers: set[int]) -> tuple[dict[int, int], set[int]]:
        with self.database.reading() as connection:
            here = sa.select(publications.c.number, publications.c.state).where(publications.c.number.in_(numbers))
            states = {row.number: row.state for row in connection.execute(here)}
            matched = [number for number, state in states.items() if state == "matched"]
            of_each = sa.select(events.c.publication, sa.func.count()).where(
                events.c.publication.in_(matched), events.c.type != events_.UNMATCHED
            )
            counts = {row[0]: row[1] for row in connection.execute(of_each.group_by(events.c.publication))}
        done = {number for number, state in states.items() if state != "accepted"}
        return {number: counts.get(number, 0) for number in matched}, done

    def _told(self, batch: Batch) -> None:
        with self._matched:
            if len(self._counts) > 100_000:
                self._counts.clear()
            self._counts.update(batch.matched)
            self._matched.notify_all()
        for listener in self.listeners:
            listener(batch)

    # --- dry runs ----------------------------------------------------------------------------------------------------

    @contextmanager
    def probe(self, query: str, language: str, prefixes: Mapping[str, str] | None = None) -> Iterator[Engine]:
        """An engine with this query alone, of the id "query", and the broker's taxonomy and operators."""
        engine = Engine(taxonomy=self.engine.taxonomy, settings=self.settings)
        engine.subscribe(query, language, id="query", prefixes=prefixes)
        yield engine

    def explain(self, row: Row[Any], publication: Publication) -> Explanation:
        """Why a subscription matches a publication, or not, and the nearest query that does."""
        prefixes = json.loads(row.prefixes) if row.prefixes else None
        with self.probe(row.query, row.language, prefixes) as engine:
            return engine.explain("query", publication, nearest=True)

    # --- events ------------------------------------------------------------------------------------------------------

    def events(self, owner: str | None, after: int, most: int = events_.MOST) -> list[Event]:
        """The events of an owner's subscriptions behind a number; of all owners for None."""
        with self.database.reading() as connection:
            return events_.of_owner(connection, owner, after, most)

    def events_of(self, number: int, after: int, most: int = events_.MOST) -> list[Event]:
        """The events of one subscription behind a sequence."""
        with self.database.reading() as connection:
            return events_.of_subscription(connection, number, after, most)

    def newest_events(self, number: int, most: int, before: int = 2**62) -> list[Event]:
        """The newest events of one subscription before a sequence, the newest first."""
        with self.database.reading() as connection:
            return events_.newest_of_subscription(connection, number, most, before)

    # --- owners, taxonomy --------------------------------------------------------------------------------------------

    def new_token(self, owner: str) -> str:
        """An API token of an owner; it is told this once."""
        token = tickets.new_ticket(tickets.API)
        self.keep_token(token, owner)
        return token

    def keep_token(self, token: str, owner: str) -> None:
        """Take a token that an owner has chosen."""
        values = {"digest": tickets.digest(token), "owner": owner, "created": now()}

        def write(connection: Connection) -> None:
            connection.execute(tokens.delete().where(tokens.c.digest == values["digest"]))
            connection.execute(tokens.insert().values(values))

        self.database.write(write)

    def owner_of(self, token: str) -> str | None:
        """Whose API token it is; None for another text."""
        here = sa.select(tokens.c.owner).where(tokens.c.digest == tickets.digest(token), tokens.c.revoked.is_(None))
        with self.database.reading() as connection:
            return connection.execute(here).scalar()

    @property
    def taxonomy(self) -> Taxonomy:
        """The taxonomy that matching uses."""
        return self.engine.taxonomy


def _accept(connection: Connection, rows: Sequence[tuple[dict[str, Any], Mapping[str, bytes]]]) -> list[Taken]:
    """Write publications that are not there with the same content."""
    ids = list({values["id"] for values, _ in rows})
    there: dict[str, tuple[int, str]] = {}
    for begin in range(0, len(ids), 500):
        here = sa.select(current).where(current.c.id.in_(ids[begin : begin + 500]))
        there.update((row.id, (row.publication, row.content)) for row in connection.execute(here))
    taken: list[Taken] = []
    for portion in _without_repetition(rows):
        new: list[tuple[dict[str, Any], Mapping[str, bytes], str]] = []
        places: list[int] = []
        for values, files in portion:
            id, content = values["id"], values["content"]
            if values["readers"] is not None:
                content = f"{content} for {values['readers']}"  # for others to read, it is told anew
            before = there.get(id)
            if before is not None and before[1] == content:
                taken.append(Taken(before[0], id, False))
                continue
            new.append(({"previous": before[0] if before is not None else None, **values}, files, content))
            places.append(len(taken))
            taken.append(Taken(0, id, True))
        for place, number, (values, _, content) in zip(places, _insert(connection, new), new, strict=True):
            taken[place] = Taken(number, values["id"], True)
            there[values["id"]] = number, content
    return taken


def _without_repetition(
    rows: Sequence[tuple[dict[str, Any], Mapping[str, bytes]]],
) -> Iterator[list[tuple[dict[str, Any], Mapping[str, bytes]]]]:
    """The rows in portions in which no id is there twice."""
    portion: dict[str, tuple[dict[str, Any], Mapping[str, bytes]]] = {}
    for row in rows:
        if row[0]["id"] in portion:
            yield list(portion.values())
            portion = {}
        portion[row[0]["id"]] = row
    yield list(portion.values())


def _insert(connection: Connection, new: Sequence[tuple[dict[str, Any], Mapping[str, bytes], str]]) -> Sequence[int]:
    """Write new contents of publications; returns their numbers."""
    if not new:
        return []
    inserting = publications.insert().returning(publications.c.number, sort_by_parameter_order=True)
    numbers = connection.execute(inserting, [values for values, _, _ in new]).scalars().all()
    newest: list[dict[str, Any]] = []
    named: list[dict[str, Any]] = []
    for number, (values, files, content) in zip(numbers, new, strict=True):
        if values["previous"] is None:
            newest.append({"id": values["id"], "publication": number, "content": content})
        else:
            changed = current.update().where(current.c.id == values["id"])
            connection.execute(changed.values(publication=number, content=content))
        named += [{"publication": number, "name": name, "content": data} for name, data in files.items()]
    if newest:
        connection.execute(current.insert(), newest)
    if named:
        connection.execute(attachments.insert(), named)
    return numbers


__all__ = ["DAY", "EXPIRED", "LONGEST", "SHORTEST", "Broker", "Made", "Taken", "Target", "Wanted"]
