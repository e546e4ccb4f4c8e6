"""What is in the feed of a subscription: a page of its events, as people and programs are told of them.

The newest page has the newest `PAGE` entries and those since: the pages behind it are archives (RFC 5005, section 4),
which hold the same sequences of events for ever, so no entry is on two pages. The id of an entry is made of its
subscription, its sequence and its time with the secret of the service, and never used again, even where an older copy
of the database is taken up. The feed as digests has an entry for each hour or day that is over, with what came in it,
of the events that are kept.
"""

from __future__ import annotations

import datetime as dt
import hmac
import json
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from triplewire.broker.events.event_log import (
    EXPIRED,
    EXPIRING,
    MATCHED,
    MOST,
    REPEATED,
    UNDELIVERED,
    UNMATCHED,
    Event,
    newest_of_subscription,
    of_subscription,
    repeats_of,
)
from triplewire.broker.feeds.cleaning import one_line, rendered, web_address
from triplewire.broker.publications.kept_contents import origins_of, restored, text_of
from triplewire.broker.publications.window import Result
from triplewire.broker.subscriptions.followed import ACTIVE, ENDED, PAUSED, SUSPENDED
from triplewire.broker.subscriptions.targets import DIGESTS
from triplewire.broker.tickets import identity
from triplewire.model.publication import Publication
from triplewire.store.database import now
from triplewire.store.tables import events, publications

PAGE = 50
"""Entries of an archived page; the newest page has up to twice as many."""

_DIGESTS = 30  # entries of the feed of digests
_LONGEST = 20_000  # characters of the contents of an entry
_ROWS = 20  # of its table of bindings
_TITLES = {
    EXPIRING: "The subscription ends within a day: renew it to keep it",
    EXPIRED: "The subscription has ended",
    SUSPENDED: "The subscription is suspended",
    UNDELIVERED: "Events could not be delivered, and are dead letters",
}

Address = Callable[..., str]
"""The address of a feed in a format, and of the page before a sequence: `address("atom", before=51)`."""


@dataclass(frozen=True)
class Entry:
    """An entry of a feed. `markup` is harmless HTML (`Markup`), or a text; times are seconds since 1970."""

    id: str
    title: str
    link: str  # "" for none
    updated: float  # when it was told
    published: float  # what its publication says, else the same
    markup: str
    type: str = MATCHED
    more: Mapping[str, Any] = field(default_factory=dict)  # what only programs read
    others: Sequence[tuple[str, str]] = ()  # titles and links of other reports of the same story
    origins: Sequence[str] = ()  # identities of the services that have told it
    publication: str = ""  # the id of what has matched
    content: Publication | None = None  # the same, where it is kept
    why: Sequence[str] = ()


@dataclass(frozen=True)
class Feed:
    """A page of a feed. `before`: the sequence that the page ends before, None for the newest; `older`: the same of the
    next page, None where there is none."""

    id: str
    title: str
    subtitle: str
    updated: float
    address: Address
    entries: Sequence[Entry]
    hub: str = ""
    has_ended: bool = False
    before: int | None = None
    older: int | None = None
    about: Mapping[str, str] = field(default_factory=dict)  # query, language and expires of its subscription


def bounds_of(connection: Connection, subscription: int) -> tuple[int, int]:
    """The oldest and the newest sequence that are kept of a subscription; (1, 0) for none."""
    bounds = sa.select(sa.func.min(events.c.sequence), sa.func.max(events.c.sequence))
    oldest, newest = connection.execute(bounds.where(events.c.subscription == subscription)).one()
    return oldest or 1, newest or 0


def feed_of(
    connection: Connection,
    row: Row[Any],
    secret: bytes,
    address: Address,
    hub: str = "",
    before: int | None = None,
    after: int | None = None,
) -> Feed:
    """A page of the feed of a subscription: the newest, or the one before a sequence, or up to `MOST` entries behind
    one."""
    number = row.number
    oldest, newest = bounds_of(connection, number)
    end = min(newest + 1, 2**62 if before is None else max(before, 1))
    begin = max(1, end - PAGE if before is not None else ((end - 1) // PAGE - 1) * PAGE + 1)
    if after is not None:
        begin, end = after + 1, after + 1 + MOST
    page = of_subscription(connection, number, begin - 1, end - begin)
    told = [event for event in page if event.type != REPEATED]
    others = repeats_of(connection, number, [event.number for event in told])
    contents = _contents(connection, told)
    entries = [
        entry_of(event, row, secret, contents.get(event.publication_number or 0), others.get(event.number, ()))
        for event in reversed(told)
    ]
    said = {
        ACTIVE: f"It ends on {instant(row.expires):%Y-%m-%d at %H:%M} UTC, unless it is renewed.",
        PAUSED: "It is paused.",
    }
    state = said.get(row.state, f"It {'has ended' if row.state == ENDED else 'is suspended'}: {row.reason}.")
    return Feed(
        id=urn_of(secret, f"feed {number}"),
        title=one_line(row.title or row.id),
        subtitle=one_line(f"What matches a standing query. {state}"),
        updated=max([row.created, *(entry.updated for entry in entries)]),
        address=address,
        entries=entries,
        hub=hub,
        has_ended=row.state == ENDED,
        before=before,
        about={"query": row.query, "language": row.language, "expires": written(row.expires)},
        older=begin if oldest < begin and after is None else None,
    )


def entry_of(
    event: Event, row: Row[Any], secret: bytes, content: Publication | None, others: Iterable[Event] = ()
) -> Entry:
    """What is said of an event; `others` are events of other reports of its story."""
    title = one_line(event.title or event.publication)
    if event.publication_number is None:
        title = _TITLES.get(event.type, event.type)
    elif event.type == UNMATCHED:
        title = f"No longer matches: {title}"
    entry = Entry(
        id=urn_of(secret, f"event {event.subscription} {event.sequence} {event.at!r}"),
        title=title,
        link=web_address(event.link),
        updated=event.at,
        published=event.published or event.at,
        markup=row.reason if event.type in (EXPIRED, SUSPENDED) else "",
        type=event.type,
        more=event.to_json(),
        origins=[identity(secret), *sorted(origins_of(content) if content is not None else ())],
        publication=event.publication,
        content=content if event.type != UNMATCHED else None,
        others=[(one_line(other.title or other.publication), web_address(other.link)) for other in others],
    )
    return with_markup(entry, content, json.loads(event.bindings))


def with_markup(entry: Entry, content: Publication | None, bindings: Sequence[Mapping[str, Any]]) -> Entry:
    """The entry with the text of its publication, a table of bindings, and other reports of its story."""
    text, is_markup = ("", False) if content is None else text_of(content)
    names = list(dict.fromkeys(name for binding in bindings for name in binding))
    markup = rendered(
        "entry.html",
        before=entry.markup,
        text=text if len(text) <= _LONGEST else text[:_LONGEST] + " ...",
        is_markup=is_markup,
        names=names,
        rows=[[str(row.get(name, {}).get("value", ""))[:_LONGEST] for name in names] for row in bindings[:_ROWS]],
        more=max(len(bindings) - _ROWS, 0),
        others=entry.others,
    )
    return replace(entry, markup=markup)


def _contents(connection: Connection, told: Iterable[Event]) -> dict[int, Publication]:
    """The publications of events, by their numbers; without those whose bytes cannot be read any more."""
    numbers = {event.publication_number for event in told if event.publication_number is not None}
    here = sa.select(publications.c.number, publications.c.id, publications.c.source, publications.c.body)
    contents: dict[int, Publication] = {}
    for row in connection.execute(here.where(publications.c.number.in_(numbers))):
        try:
            contents[row.number] = restored(row.body, row.id, row.source)
        except ValueError:  # the entry has its title and bindings still
            continue
    return contents


def feed_of_results(results: Iterable[Result], title: str, secret: bytes, address: Address) -> Feed:
    """A feed of publications that a query matches."""
    entries = [
        with_markup(
            Entry(
                id=urn_of(secret, f"publication {seen.number}"),
                title=one_line(seen.title or seen.publication.id),
                link=web_address(seen.link),
                updated=seen.received,
                published=seen.published or seen.received,
                origins=[identity(secret), *sorted(origins_of(seen.publication))],
                publication=seen.publication.id,
                content=seen.publication,
                markup="",
                more={
                    "id": seen.publication.id,
                    **{name: getattr(seen, name) for name in ("title", "link", "source")},
                    "bindings": bindings,
                },
            ),
            seen.publication,
            bindings,
        )
        for seen, bindings in results
    ]
    updated = max((entry.updated for entry in entries), default=0.0)
    id = urn_of(secret, f"query {title}")
    subtitle = "What matches a query among the publications that are kept."
    return Feed(id, one_line(title), subtitle, updated, address, entries)


def feed_of_digests(connection: Connection, row: Row[Any], secret: bytes, address: Address, digest: str) -> Feed:
    """The newest digests of a subscription: `digest` is a name of `DIGESTS`."""
    period = DIGESTS[digest]
    over = now() // period * period
    newest = newest_of_subscription(connection, row.number, MOST)
    told = [event for event in newest if event.at < over and event.type != REPEATED]
    told.sort(key=lambda event: -event.at)  # a clock may have been set back
    digests = [(begin * period, list(of)) for begin, of in groupby(told, key=lambda event: event.at // period)]
    if len(newest) == MOST:
        digests.pop()  # it may have begun before the first of them
    entries = [_digest(row, secret, digest, begin, of) for begin, of in digests[:_DIGESTS]]
    return Feed(
        id=urn_of(secret, f"{digest} {row.number} {row.created!r}"),
        title=one_line(row.title or row.id),
        subtitle=f"Digests, {digest}.",
        updated=entries[0].updated if entries else row.created,
        address=address,
        entries=entries,
        has_ended=row.state == ENDED,
    )


def _digest(row: Row[Any], secret: bytes, digest: str, begin: float, told: Sequence[Event]) -> Entry:
    end = begin + DIGESTS[digest]
    return Entry(
        id=urn_of(secret, f"{digest} {row.number} {row.created!r} {begin}"),
        title=f"{len(told)} events, {instant(begin):%Y-%m-%d %H:%M} to {instant(end):%Y-%m-%d %H:%M} UTC",
        link="",
        updated=end,
        published=end,
        markup=rendered("digest.html", entries=[entry_of(event, row, secret, None) for event in told]),
        more={"events": [event.to_json() for event in told]},
    )


def urn_of(secret: bytes, what: str) -> str:
    """The id of what is in a feed: the same for the same service, and told from that of others."""
    return uuid.UUID(bytes=hmac.digest(secret, what.encode("utf-8", "replace"), "sha256")[:16], version=5).urn


def written(seconds: float) -> str:
    """A time as RFC 3339 has it."""
    return f"{instant(seconds).replace(tzinfo=None).isoformat()}Z"


def instant(seconds: float) -> dt.datetime:
    """A time in UTC, in whole seconds; 1970 for one that no calendar has."""
    try:
        return dt.datetime.fromtimestamp(int(seconds), dt.UTC)
    except (OverflowError, ValueError, OSError):
        return dt.datetime.fromtimestamp(0, dt.UTC)
