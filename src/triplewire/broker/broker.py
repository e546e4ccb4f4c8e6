"""The broker as its doors call it.

It has `subscribe`, `renew`, `unsubscribe` and `publish` of paper 002 (section 5.1), dry runs, and events.

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
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from triplewire import crash
from triplewire.broker import owners, tickets
from triplewire.broker.counts import Counts
from triplewire.broker.events import event_log
from triplewire.broker.events.delivery_log import DeliveryLog
from triplewire.broker.events.event_log import CHANGED, EXPIRED, MATCHED, UNMATCHED, Event
from triplewire.broker.events.matching import Batch, Matching
from triplewire.broker.events.removal import Retention, Sweeper
from triplewire.broker.events.stories import Stories
from triplewire.broker.incoming.registered_sources import Sources
from triplewire.broker.publications.accepted import Accepting, Once, Taken, accept
from triplewire.broker.publications.kept_contents import HANDED, row_of
from triplewire.broker.publications.window import Window
from triplewire.broker.subscriptions import registration
from triplewire.broker.subscriptions.followed import (
    ACTIVE,
    ENDED,
    PAUSED,
    SUSPENDED,
    Followed,
    parts,
    prefixes_of,
    rows_with,
    stored_taxonomy,
)
from triplewire.broker.subscriptions.quarantine import Limits, Quarantine
from triplewire.broker.subscriptions.registration import (
    LONGEST,
    SHORTEST,
    Made,
    Registration,
    Wanted,
    check_seconds,
    validity,
)
from triplewire.broker.subscriptions.targets import Target, Targets
from triplewire.broker.subscriptions.trial import Query, Trial
from triplewire.config import Settings
from triplewire.engine import Engine
from triplewire.engine.explain.why import reasons_of
from triplewire.errors import ArgumentError, SubscriptionError, TriplewireError
from triplewire.ir.taxonomy import EMPTY, Taxonomy
from triplewire.ir.walk import calls_in
from triplewire.model.origins import FROM_SOURCE
from triplewire.model.publication import Publication
from triplewire.store.database import DAY, Database, now, state
from triplewire.store.tables import (
    TAXONOMY,
    changes,
    events,
    facts,
    publications,
    subscriptions,
)

if TYPE_CHECKING:
    from triplewire.broker.scale_out.from_pipeline import Outside
    from triplewire.engine.explain.explanation import Explanation

_BY_TICKET = subscriptions.c.ticket == sa.bindparam("ticket")
_BY_OWNER = subscriptions.c.owner == sa.bindparam("owner")
_OF_ID = (
    sa.select(subscriptions)
    .where(
        subscriptions.c.id == sa.bindparam("id"),  # another's row is not read: that would take time
        _BY_TICKET | owners.held_by(subscriptions.c.owner, sa.bindparam("owner", type_=sa.Text)),
    )
    .order_by(sa.case((_BY_TICKET, 0), (_BY_OWNER, 1), else_=2))
    .limit(1)
)


class Broker:
    """A broker over one database. Make it with `open`."""

    def __init__(
        self,
        database: Database,
        secret: bytes,
        engine: Engine,
        warn: Callable[[str], None],
        retention: Retention,
        outside: Outside | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.database = database
        self.secret = secret
        self.holder = f"{socket.gethostname()}:{os.getpid()}"
        follow, match = _who_matches(outside)
        self.followed = follow(engine, database, warn)
        self.targets = Targets(database, self.followed)
        self.delivery_log = DeliveryLog(database)
        self.sources = Sources(database, self.followed.write)
        self.window = Window(database)
        judge = Quarantine(database, self.followed, limits or Limits()).judge
        self.matching = match(database, self.followed, self.holder, self._told, Stories(self.followed).choose, judge)
        self.sweeper = Sweeper(database, self.matching, retention)
        self.counts = Counts()
        self._matched = threading.Condition()
        self._counts: dict[int, int] = {}  # publications that were matched lately -> subscriptions
        self.most_subscriptions = 2**62  # of an owner, which have not ended
        self.listeners: list[Callable[[Batch], None]] = []
        """Called with each batch that this process has matched and written."""

    @classmethod
    def open(
        cls,
        url: str,
        secret: bytes,
        *,
        engine: Engine | None = None,
        outside: Outside | None = None,
        warn: Callable[[str], None] = lambda text: None,
        progress: Callable[[int], None] | None = None,
        retention: Retention | None = None,
        limits: Limits | None = None,
        folder: Path | None = None,
    ) -> Broker:
        """Open a database with the subscriptions in it, and begin to match. `secret`: what keys of feeds are made
        with; the same for all processes. `engine`: an engine without subscriptions; its settings are the limits.
        `retention`: for how long what was told is kept. `outside`: who matches in place of this engine. `limits`: from
        when a subscription is suspended. `folder`: where the engine is saved, for the next start. Raises what
        `Database.open` raises."""
        database = Database.open(url, warn=warn)
        try:
            broker = cls(database, secret, engine or Engine(), warn, retention or Retention(), outside, limits)
            given = broker.taxonomy
            broker.followed.load(progress, folder)
            if given != EMPTY and given != broker.keep_taxonomy():
                warn(
                    "the taxonomy that is given is not used: there is one in the database, which PUT /taxonomy changes"
                )
        except BaseException:
            database.close()
            raise
        broker.matching.start()
        broker.sweeper.start()
        return broker

    def __enter__(self) -> Broker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End what is under way, and close the database."""
        self.sweeper.stop()
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
        """Register many; in place of each that is refused, why. Each `registration.AT_ONCE` of them are written in one
        transaction and matched from then on, so that a long list takes little memory and holds up nobody."""
        return [made for part in parts(wanted, registration.AT_ONCE) for made in self._registered(part, owner)]

    def _registered(self, wanted: Sequence[Wanted], owner: str) -> list[Made | TriplewireError]:
        trial = Trial([Query(each.query, each.language, each.prefixes) for each in wanted], self.engine)
        answers = list(trial.answers)
        for place, each in enumerate(wanted):
            try:
                each.check()
            except TriplewireError as error:
                answers[place] = error
        prices = trial.prices(self.window.of(owner))
        new = Registration(owner, wanted, answers, prices, self.most_subscriptions, self.secret)
        return self.followed.write(new.write)

    def add_target(self, number: int, target: Target) -> int:
        """Deliver the events of a subscription there, too, from now on; returns the number of the target."""
        return self.targets.add(number, replace(target, secret=tickets.sealed(target.secret, self.secret)))

    def find(self, id: str, *, owner: str | None = None, ticket: str | None = None) -> Row[Any] | None:
        """The subscription of an owner or of its users, or the one that a ticket is of; None where there is none, or it
        is another's: who asks cannot tell these apart."""
        digest = tickets.digest(ticket) if ticket is not None else None
        with self.database.reading() as connection:
            return connection.execute(_OF_ID, {"id": id, "owner": owner, "ticket": digest}).first()

    def by_feed_key(self, key: str) -> Row[Any] | None:
        """The subscription whose feed has this key; None for another key."""
        number = tickets.number_of(key, self.secret)
        return None if number is None else self.by_number(number)

    def by_number(self, number: int) -> Row[Any] | None:
        """The subscription of this number."""
        here = sa.select(subscriptions).where(subscriptions.c.number == number, subscriptions.c.owner != "")
        return self.database.first(here)

    def subscriptions_of(self, owner: str, *, with_users: bool = False) -> Sequence[Row[Any]]:
        """All subscriptions of an owner, and where it is asked of its users, the newest first."""
        of = subscriptions.c.owner
        here = sa.select(subscriptions).where(owners.held_by(of, owner) if with_users else of == owner)
        return self.database.rows(here.order_by(subscriptions.c.number.desc()))

    def renew(self, number: int, seconds: float = DAY) -> float:
        """Have a subscription last for so many seconds from now; returns when it ends. Raises `SubscriptionError` where
        it has ended already, or the time is too short or too long."""
        check_seconds(seconds)
        begin = now()
        self._update(number, validity(begin, seconds))
        return begin + seconds

    def change(self, number: int, **values: Any) -> None:
        """Change the query, the language, the prefixes, the title, the state ("active", "paused") or `once_per_story`
        of a subscription; a new query has a new price, and so has one that was suspended and is active again. Raises
        what is wrong with the query, and `ArgumentError` for another state."""
        row = self.by_number(number)
        if row is None or row.state == ENDED:
            raise SubscriptionError("the subscription has ended", remedy="subscribe anew")
        if "state" in values:
            if values["state"] not in (ACTIVE, PAUSED):
                raise ArgumentError(f"{values['state']!r} is no state", remedy=f"known: {ACTIVE}, {PAUSED}")
            values["reason"] = ""
        is_new = bool({"query", "language", "prefixes"} & set(values))
        prefixes = values.get("prefixes", prefixes_of(row))
        if is_new or (row.state == SUSPENDED and "state" in values):
            query = Query(values.get("query", row.query), values.get("language", row.language), prefixes)
            trial = Trial([query], self.engine)
            if is_new and isinstance(trial.answers[0], TriplewireError):
                raise trial.answers[0]
            values["price"] = json.dumps(trial.prices(self.window.of(row.owner))[0])
        if is_new:
            values["revision"] = subscriptions.c.revision + 1
            values["prefixes"] = json.dumps(dict(prefixes)) if prefixes else None
        self._set(number, **values)

    def renew_all(self, owner: str, ids: Sequence[str], seconds: float = DAY) -> list[float | SubscriptionError]:
        """Have the subscriptions of these ids, of an owner or of its users, last for so many seconds from now, in one
        transaction; of each when it ends, or why it is refused. Raises `SubscriptionError` for a time that is too short
        or too long."""
        check_seconds(seconds)
        begin, table = now(), subscriptions
        lasting = table.c.state != ENDED, owners.held_by(table.c.owner, owner)

        def write(connection: Connection) -> set[str]:
            renewed: set[str] = set()
            for part in parts(ids):
                here = table.update().where(table.c.id.in_(part), *lasting).values(validity(begin, seconds))
                renewed.update(connection.execute(here.returning(table.c.id)).scalars())
            return renewed

        renewed = self.database.write(write)
        refused = SubscriptionError("there is no such subscription, or it has ended", remedy="subscribe anew")
        return [begin + seconds if id in renewed else refused for id in ids]

    def unsubscribe(self, number: int, reason: str = "unsubscribed") -> None:
        """End a subscription. Its feed stays, and says so; what is to be delivered is delivered."""
        with suppress(SubscriptionError):  # it has ended already
            self._set(number, state=ENDED, reason=reason)

    def _set(self, number: int, **values: Any) -> None:
        self._update(number, values, changes.insert().values(subscription=number))
        self.followed.follow()

    def _update(self, number: int, values: Mapping[str, Any], *more: sa.Insert) -> None:
        """Change a row and execute more statements with it. Raises `SubscriptionError` where the subscription has
        ended, be it at this moment: then nothing is changed."""
        here = subscriptions.update().where(subscriptions.c.number == number, subscriptions.c.state != ENDED)

        def write(connection: Connection) -> bool:
            lasts = connection.execute(here.values(values)).rowcount > 0
            for statement in more if lasts else ():
                connection.execute(statement)
            return lasts

        if not self.database.write(write):
            raise SubscriptionError("the subscription has ended", remedy="subscribe anew")

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
        held: Mapping[str, str] | None = None,
        once: Once | None = None,
        accepting: Accepting = accept,
    ) -> list[Taken]:
        """Accept publications; returns them once they are committed and synced. One that is there with the same content
        is not taken again. `source`: where they come from, in place of what they say; `readers`: the owners who may see
        them, None for all; `held`: ids of those that are not to be matched, with the reason why; `once`: for a request
        that may come again; `accepting`: what writes them. Raises `ArgumentError` where its key is that of another."""
        seen_by = None if readers is None else json.dumps(sorted(readers))
        rows = [(row_of(each, source=source or each.source, readers=seen_by), each.attachments) for each in given]
        crash.point("publish.received")
        for values, _ in rows:
            if held and values["id"] in held:
                values.update(state="refused", reason=held[values["id"]])
        taken = self.database.write(lambda connection: accepting(connection, rows, once))
        crash.point("publish.committed")
        new = sum(entry.is_new for entry in taken)
        self.counts.publications.labels("accepted").inc(new)
        self.counts.publications.labels("repeated").inc(len(taken) - new)
        if new:
            self.matching.wake()
        return taken

    def wait(self, numbers: Iterable[int], seconds: float, owner: str | None = None) -> dict[int, int]:
        """Wait until these publications are matched; returns by how many subscriptions each is: of all, or of an owner
        and its users. Those that are not matched in so many seconds, or are refused, are left out."""
        wanted, deadline = set(numbers), time.monotonic() + seconds
        matched: dict[int, int] = {}
        while wanted and (left := deadline - time.monotonic()) > 0:
            with self._matched:
                for number in wanted & self._counts.keys():
                    matched[number] = self._counts[number]
                wanted -= matched.keys()
                if wanted and not self._matched.wait(min(left, 2.0 if self.matching.is_ours else 0.25)):
                    waiting = set(wanted)
                else:
                    continue
            counts, done = self._counts_stored(waiting)  # another process may match
            matched |= counts
            wanted -= done
        return matched if owner is None else self._counts_stored(matched, owner)[0]

    def _counts_stored(self, numbers: Collection[int], owner: str | None = None) -> tuple[dict[int, int], set[int]]:
        """By how many subscriptions those of these publications are matched that are; and those that wait no more."""
        of_each = sa.select(events.c.publication, sa.func.count()).where(events.c.type != UNMATCHED)
        if owner is not None:
            whose = subscriptions.c.number == events.c.subscription, owners.held_by(subscriptions.c.owner, owner)
            of_each = of_each.join(subscriptions, sa.and_(*whose))
        with self.database.reading() as connection:
            here = sa.select(publications.c.number, publications.c.state)
            states = {
                row.number: row.state for row in rows_with(connection, here, publications.c.number, list(numbers))
            }
            matched = [number for number, state in states.items() if state == "matched"]
            told = of_each.group_by(events.c.publication)
            counts = {row[0]: row[1] for row in rows_with(connection, told, events.c.publication, matched)}
        done = {number for number, state in states.items() if state not in ("accepted", HANDED)}
        return {number: counts.get(number, 0) for number in matched}, done

    def _told(self, batch: Batch) -> None:
        if batch.matched or batch.refused:
            self.counts.match_seconds.observe(batch.seconds)
        self.counts.publications.labels("matched").inc(len(batch.matched))
        self.counts.publications.labels("refused").inc(len(batch.refused))
        for kind, count in Counter(event[3] for event in batch.events).items():
            self.counts.events.labels(kind).inc(count)
        with self._matched:
            if len(self._counts) > 100_000:
                self._counts.clear()
            self._counts.update((number, len(matches)) for number, matches in batch.matched.items())
            self._matched.notify_all()
        for listener in self.listeners:
            listener(batch)

    # --- dry runs ----------------------------------------------------------------------------------------------------

    def probe(self, query: str, language: str, prefixes: Mapping[str, str] | None = None) -> Engine:
        """An engine with this query alone, of the id "query", and the broker's taxonomy and operators."""
        engine = Engine(taxonomy=self.engine.taxonomy, operators=self.engine.operators, settings=self.settings)
        engine.subscribe(query, language, id="query", prefixes=prefixes)
        return engine

    def explain(self, row: Row[Any], publication: Publication) -> Explanation:
        """Why a subscription matches a publication, or not."""
        return self.probe(row.query, row.language, prefixes_of(row)).explain("query", publication, nearest=True)

    def reasons(self, told: Iterable[Event]) -> dict[int, list[str]]:
        """Why publications match, as sentences, by the numbers of events: of `matched` and `changed` ones whose content
        is kept. The query is that of today; of one that calls operators nothing is said, as they would be called."""
        why: dict[int, list[str]] = {}
        by_subscription: dict[int, list[Event]] = {}
        for event in told:
            if event.type in (MATCHED, CHANGED) and event.publication_number is not None:
                by_subscription.setdefault(event.subscription, []).append(event)
        for number, of_one in by_subscription.items():
            row = self.by_number(number)
            if row is None:
                continue
            engine = self.probe(row.query, row.language, prefixes_of(row))
            subscription = engine.get("query")
            if subscription is None or any(call.operator != FROM_SOURCE for call in calls_in(subscription.where)):
                continue
            for event in of_one:
                with self.database.reading() as connection:
                    content = event_log.publication_of(connection, event.publication_number or 0)
                for match in engine.match([content]) if content is not None else ():
                    why[event.number] = reasons_of(engine, match, content)
        return why

    # --- events ------------------------------------------------------------------------------------------------------

    def events(self, owner: str | None, after: int, most: int = event_log.MOST, prefix: str = "") -> list[Event]:
        """The events of the subscriptions of an owner and of its users behind a number; of all owners for None.
        `prefix`: what the ids of these subscriptions begin with."""
        with self.database.reading() as connection:
            return event_log.of_owner(connection, owner, after, most, prefix)

    def events_of(self, number: int, after: int, most: int = event_log.MOST) -> list[Event]:
        """The events of one subscription behind a sequence."""
        with self.database.reading() as connection:
            return event_log.of_subscription(connection, number, after, most)

    def newest_events(self, number: int, most: int, before: int = 2**62) -> list[Event]:
        """The newest events of one subscription before a sequence, the newest first."""
        with self.database.reading() as connection:
            return event_log.newest_of_subscription(connection, number, most, before)

    # --- sources, owners, taxonomy -----------------------------------------------------------------------------------

    def new_token(self, owner: str) -> str:
        """An API token of an owner; it is told this once."""
        return owners.new_token(self.database, owner)

    def owner_of(self, token: str) -> str | None:
        """Whose API token it is; None for another text."""
        return owners.owner_of(self.database, tickets.digest(token))

    @property
    def taxonomy(self) -> Taxonomy:
        """The taxonomy that matching uses."""
        return self.engine.taxonomy

    def keep_taxonomy(self) -> Taxonomy:
        """The taxonomy of the store; that of the engine becomes it where there is none."""
        with self.database.reading() as connection:
            there = stored_taxonomy(connection)
        return self.change_taxonomy(lambda today: today) if there is None else there

    def change_taxonomy(self, change: Callable[[Taxonomy], Taxonomy]) -> Taxonomy:
        """Put what `change` makes of today's taxonomy in its place, in all processes; publications that come later are
        matched with it. Raises what that raises: then the one before stays."""

        def write(connection: Connection) -> Taxonomy:
            if not self.database.is_sqlite:  # one change after the other
                connection.execute(sa.text("LOCK TABLE facts IN EXCLUSIVE MODE"))
            new = change(stored_taxonomy(connection) or self.taxonomy)
            state(connection, facts, taxonomy=json.dumps(new.to_json()))
            connection.execute(changes.insert().values(subscription=TAXONOMY))
            return new

        return self.followed.write(write)


def _who_matches(outside: Outside | None) -> tuple[Callable[..., Followed], Callable[..., Matching]]:
    """What makes the followed subscriptions, and what matches them."""
    if outside is None:
        return Followed, Matching
    from triplewire.broker.scale_out.from_pipeline import FromPipeline  # the pipeline is large
    from triplewire.broker.scale_out.pipeline_index import PipelineSubscriptions

    return PipelineSubscriptions, partial(FromPipeline, outside=outside)


__all__ = ["EXPIRED", "LONGEST", "SHORTEST", "Broker", "Made", "Taken", "Target", "Wanted"]
