"""The feed of a subscription as digests: an entry for each hour or day that is over, with what came in it.

It is made of the events that are kept, and has its id for good once its period is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from sqlalchemy.engine import Connection, Row

from triplewire.broker.events.event_log import MOST, REPEATED, Event, newest_of_subscription
from triplewire.broker.feeds.cleaning import one_line, rendered
from triplewire.broker.feeds.entries import Address, Entry, Feed, entry_of, instant, urn_of
from triplewire.broker.subscriptions.followed import ENDED
from triplewire.broker.subscriptions.targets import DIGESTS
from triplewire.store.database import now

_DIGESTS = 30  # entries of the feed


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
    entries = [_entry(row, secret, digest, begin, of) for begin, of in digests[:_DIGESTS]]
    return Feed(
        id=urn_of(secret, f"{digest} {row.number} {row.created!r}"),
        title=one_line(row.title or row.id),
        subtitle=f"Digests, {digest}.",
        updated=entries[0].updated if entries else row.created,
        address=address,
        entries=entries,
        has_ended=row.state == ENDED,
    )


def _entry(row: Row[Any], secret: bytes, digest: str, begin: float, told: Sequence[Event]) -> Entry:
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
