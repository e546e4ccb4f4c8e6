"""Where publications come from: feeds that are polled, publishers that push, folders, topics of Kafka.

A source has an owner and an id. What was seen of it lately is its `State`, which is kept beside it and makes its
health. How feeds are asked: `triplewire.broker.incoming.polling`; what becomes of what comes:
`triplewire.broker.incoming.intake`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from triplewire.broker import tickets
from triplewire.broker.owners import held_by
from triplewire.errors import ArgumentError, SubscriptionError
from triplewire.model.terms import IRI
from triplewire.net.addresses import shown
from triplewire.sources.feed_states import Feed
from triplewire.sources.fetch import Known
from triplewire.store.database import Database, now
from triplewire.store.tables import SOURCES, changes, sources

POLL, PUSH, FOLDER, KAFKA = "poll", "push", "folder", "kafka"
KINDS = (POLL, PUSH, FOLDER, KAFKA)
BROKEN = 3
"""Failures in a row after which a source is called broken."""

_ID = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._~-]{1,100}")
_MOST_TOLD = 10  # records of what was refused
_LONGEST = 300  # characters of such a record


@dataclass(frozen=True)
class WantedSource:
    """A source as somebody asks for it. `url`: where it is asked, or, of one that is pushed to, an IRI by which queries
    name it (`FROM`); `may_subscribe`: its items may be subscriptions; `full_sync`: each of its documents
    names all subscriptions that it asks for, and who is missing is unsubscribed; `anonymous`: anybody may push to
    it."""

    url: str = ""
    kind: str = POLL
    id: str = ""
    title: str = ""
    may_subscribe: bool = False
    full_sync: bool = False
    anonymous: bool = False


@dataclass
class State:
    """What was seen of a source. `feed`: how the poller knows it; `failures`: documents in a row that could not be
    read, `reason`: why; `told`: what was refused or held back lately, the newest last; `marks`: what was taken: by the
    names of files, their sizes and times in nanoseconds; `resets`: how often all this was forgotten."""

    feed: dict[str, Any] = field(default_factory=dict)
    last: float = 0.0
    failures: int = 0
    reason: str = ""
    told: list[str] = field(default_factory=list)
    marks: dict[str, list[int]] = field(default_factory=dict)
    resets: int = 0

    @classmethod
    def of(cls, row: Row[Any]) -> State:
        """That of a row."""
        return cls(**json.loads(row.state))

    def tell(self, what: Iterable[str]) -> None:
        """Add records of what was refused."""
        self.told = [*self.told, *(text[:_LONGEST] for text in what)][-_MOST_TOLD:]

    def mark(self, marks: dict[str, list[int]]) -> None:
        """Keep what was taken."""
        self.marks = marks

    def known(self) -> Feed | None:
        """How the poller knows it; None before it was asked."""
        if not self.feed:
            return None
        values = dict(self.feed)
        values.update((name, bytes.fromhex(values[name])) for name in ("digest", "setup"))
        values["known"] = Known(**values["known"])
        return Feed(**values)

    def know(self, feed: Feed, resets: int) -> None:
        """Keep how the poller knows it, unless that was forgotten since."""
        if self.resets != resets:
            return
        values = asdict(feed)
        self.feed = {name: value.hex() if isinstance(value, bytes) else value for name, value in values.items()}


Take = Callable[[Sequence[Row[Any]], bytes, str], object]
"""Takes over a document of these sources, which came from a place."""

Noted = Callable[[Row[Any], Callable[[State], None]], None]
"""Changes what was seen of a source."""


def health(row: Row[Any]) -> dict[str, Any]:
    """How a source is: `state` is "new", "ok", "failing", "broken" or "gone"; `last` and `next`, in seconds since 1970:
    when it was asked, and is asked again; `reason`: why it fails or waits."""
    state = State.of(row)
    feed = state.known() or Feed("", "")
    failures = max(feed.failures, state.failures)
    word = "gone" if feed.is_gone else "broken" if failures >= BROKEN else "failing" if failures else ""
    last = max(feed.asked, state.last)
    return {
        "state": word or ("ok" if last else "new"),
        "last": last or None,
        "next": feed.due if feed.due and not feed.is_gone else None,
        "interval": feed.interval or None,
        "failures": failures,
        "status": feed.status or None,
        "reason": state.reason or feed.reason,
        "refused": state.told,
    }


def name_of(row: Row[Any]) -> str:
    """What publications say of where they come from: the address, without what may be a secret, else the id."""
    return shown(row.url) if row.url else str(row.id)


def _new(wanted: WantedSource, owner: str) -> tuple[dict[str, Any], str]:
    """The row of a new source, and its ticket."""
    ticket = tickets.new_ticket(tickets.PUBLISH)
    digest = tickets.digest(ticket)
    id = wanted.id or f"src-{digest.hex()[:12]}"
    return {**asdict(wanted), "id": id, "owner": owner, "ticket": digest, "state": "{}", "created": now()}, ticket


class Sources:
    """The sources of a broker."""

    def __init__(self, database: Database, write: Callable[[Callable[[Connection], None]], None]) -> None:
        self._database = database
        self._write = write  # a change, which is then taken over (`Followed.write`)

    def add(self, wanted: WantedSource, owner: str) -> tuple[Row[Any], str]:
        """Register a source; returns it, and the ticket with which one may push to it, which is told this once. Raises
        `ArgumentError` for what is no id, and `SubscriptionError` for one that is taken."""
        if wanted.kind not in KINDS:
            raise ArgumentError(f"{wanted.kind!r} is no kind of a source", remedy=f"known: {', '.join(KINDS)}")
        if wanted.kind == PUSH:
            check_name(wanted.url)
        elif not wanted.url:
            raise ArgumentError(f"a source of kind {wanted.kind} has a url", remedy="give url, or kind: push")
        if wanted.id and not _ID.fullmatch(wanted.id):
            what, remedy = f"{wanted.id!r} is no id of a source", "1 to 100 of A-Z a-z 0-9 . _ ~ -, and not . or .."
            raise ArgumentError(what, remedy=remedy)
        _check_rights(asdict(wanted))
        values, ticket = _new(wanted, owner)
        id = values["id"]

        def write(connection: Connection) -> None:
            if connection.execute(sa.select(sources.c.number).where(sources.c.id == id)).first():
                raise SubscriptionError(f"the id {id!r} is taken", remedy="choose another")
            connection.execute(sources.insert().values(values))
            connection.execute(changes.insert().values(subscription=SOURCES))

        self._write(write)
        row = self.find(id)
        assert row is not None
        return row, ticket if wanted.kind == PUSH else ""

    def add_feeds(self, titles: Mapping[str, str], owner: str) -> dict[str, str]:
        """Have feeds polled, of which these are the titles by their addresses; returns the ids of the sources by these.
        All are written in one transaction."""
        rows = {url: _new(WantedSource(url, title=title), owner)[0] for url, title in titles.items()}

        def write(connection: Connection) -> None:
            connection.execute(sources.insert(), list(rows.values()))
            connection.execute(changes.insert().values(subscription=SOURCES))

        if rows:
            self._write(write)
        return {url: row["id"] for url, row in rows.items()}

    def find(self, id: str, owner: str | None = None) -> Row[Any] | None:
        """The source of this id; None where there is none, or it is of another owner and of none of its users."""
        here = sa.select(sources).where(sources.c.id == id)
        return self._database.first(here if owner is None else here.where(held_by(sources.c.owner, owner)))

    def open_to_anybody(self, id: str) -> Row[Any] | None:
        """The source of this id, if anybody may publish to it."""
        return self._database.first(sa.select(sources).where(sources.c.id == id, sources.c.anonymous))

    def by_ticket(self, ticket: str) -> Row[Any] | None:
        """The source whose ticket it is; None for another text."""
        return self._database.first(sa.select(sources).where(sources.c.ticket == tickets.digest(ticket)))

    def of_owner(self, owner: str) -> Sequence[Row[Any]]:
        """All sources of an owner and of its users, the newest first."""
        here = sa.select(sources).where(held_by(sources.c.owner, owner))
        return self._database.rows(here.order_by(sources.c.number.desc()))

    def of_kind(self, kind: str) -> Sequence[Row[Any]]:
        """All sources of a kind, in the order in which they were made."""
        return self._database.rows(sa.select(sources).where(sources.c.kind == kind).order_by(sources.c.number))

    def change(self, number: int, *, reset: bool = False, **values: Any) -> None:
        """Change the url, the title, `may_subscribe`, `full_sync` or `anonymous` of a source. With a new address or
        right, or `reset`, it is as if it was never asked. Raises `ArgumentError` where anybody could subscribe."""

        def write(connection: Connection) -> None:
            row = connection.execute(sa.select(sources).where(sources.c.number == number)).first()
            if row is None:
                return
            rights = row._asdict() | values
            _check_rights(rights)
            if reset or {"url", "may_subscribe"} & values.keys():
                values["state"] = json.dumps({"resets": State.of(row).resets + 1})
            connection.execute(sources.update().where(sources.c.number == number).values(values))
            connection.execute(changes.insert().values(subscription=SOURCES))

        self._write(write)

    def reset(self, number: int) -> None:
        """Forget how a source was, so that it is asked at once."""
        self.change(number, reset=True)

    def remove(self, number: int) -> None:
        """Take a source away. What came from it stays."""

        def write(connection: Connection) -> None:
            connection.execute(sources.delete().where(sources.c.number == number))
            connection.execute(changes.insert().values(subscription=SOURCES))

        self._write(write)

    def note(
        self, number: int, update: Callable[[State], None], check: Callable[[Connection], None] | None = None
    ) -> None:
        """Change what is kept of a source. `check` may raise in the same transaction."""

        def write(connection: Connection) -> None:
            if check is not None:
                check(connection)
            here = sources.c.number == number
            row = connection.execute(sa.select(sources).where(here).with_for_update()).first()
            if row is not None:
                state = State.of(row)
                update(state)
                text = json.dumps(asdict(state))
                if text != row.state:
                    connection.execute(sources.update().where(here).values(state=text))

        self._database.write(write)


def check_name(url: str) -> None:
    """Raises `ArgumentError` where this is no IRI by which a source that is pushed to can be named."""
    if url:
        IRI(url)


def _check_rights(of_source: Mapping[str, Any]) -> None:
    if of_source["full_sync"] and not (of_source["may_subscribe"] and of_source["kind"] in (POLL, PUSH)):
        what = "documents of this source do not name all subscriptions that it asks for"
        raise ArgumentError(what, remedy="full_sync is for sources of kind poll and push that may subscribe")
    if of_source["may_subscribe"] and of_source["anonymous"]:
        raise ArgumentError("anybody could subscribe", remedy="a source is anonymous, or it may subscribe")


def names_by_source(connection: Connection) -> dict[str, set[str]]:
    """What publications say of where they come from -> the ids and titles of such sources, for FROM."""
    names: dict[str, set[str]] = {}
    for row in connection.execute(sa.select(sources)):
        topic = row.url.rpartition("/")[2] if row.kind == KAFKA else ""
        given = (name for name in (row.id, row.title, row.url, topic) if name)
        names.setdefault(name_of(row), set()).update(given)
    return names
