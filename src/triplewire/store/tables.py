"""The tables of a broker (SQLAlchemy Core), the same in SQLite and PostgreSQL.

Instants are seconds since 1970 in UTC. What gives a right is kept as its SHA-256 only (`triplewire.broker.tickets`).
A change of these tables gets a revision in `migrations/versions`.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    false,
)

BIG = BigInteger().with_variant(Integer, "sqlite")  # which numbers rows by itself where the key is an INTEGER

metadata = MetaData()


def _number() -> Column[int]:
    return Column("number", BIG, primary_key=True, autoincrement=True)


def facts_table(name: str, of: MetaData) -> Table:
    """A table of what there is once: names and values (`database.fact`, `database.state`)."""
    return Table(name, of, Column("name", Text, primary_key=True), Column("value", Text, nullable=False))


facts = facts_table("facts", metadata)
"""What there is once: the taxonomy, the marks up to which something was done."""

terms = Table(
    "terms",
    metadata,
    Column("work", Text, primary_key=True),
    Column("term", BIG, nullable=False),
    Column("holder", Text, nullable=False),
)
"""Which process does a work that one does at a time, as matching: each that takes it over begins a new term."""

tokens = Table(
    "tokens",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("created", Float, nullable=False),
    Column("revoked", Float),
)
"""API tokens of owners."""

subscriptions = Table(
    "subscriptions",
    metadata,
    _number(),
    Column("owner", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("language", Text, nullable=False),
    Column("query", Text, nullable=False),
    Column("prefixes", Text),  # a JSON object
    Column("title", Text, nullable=False),
    Column("state", Text, nullable=False),  # "active", "paused" by its owner, "suspended" by the broker, "ended"
    Column("reason", Text, nullable=False),  # why it is suspended or has ended
    Column("once_per_story", Boolean, nullable=False),
    Column("price", Text, nullable=False),  # a JSON object, which is empty: nothing is predicted yet
    Column("revision", Integer, nullable=False),  # 1, and 1 more with each new query
    Column("created", Float, nullable=False),
    Column("expires", Float, nullable=False),
    Column("warns", Float),  # when its feed is to tell that it ends soon; null: it is not, or it was told
    Column("ticket", LargeBinary, nullable=False),
    Column("source", BIG),  # the number of the source of which an item asked for it
    UniqueConstraint("owner", "id"),
    Index("subscriptions_id", "id"),
    Index("subscriptions_expire", "state", "expires"),
    Index("subscriptions_source", "source"),
    Index("subscriptions_warn", "warns"),
)

changes = Table("changes", metadata, _number(), Column("subscription", BIG, nullable=False))
"""Each change that an engine has to follow: of a subscription's state or query; or `TAXONOMY` or `SOURCES` in place of
its number."""

TAXONOMY, SOURCES = 0, -1

publications = Table(
    "publications",
    metadata,
    _number(),
    Column("id", Text, nullable=False),
    Column("content", Text, nullable=False),  # the content hash
    Column("previous", BIG),  # the number of the content before, where there was one
    Column("source", Text, nullable=False),
    Column("published", Float),
    Column("received", Float, nullable=False),
    Column("readers", Text),  # a JSON array of owners who may see it; null: all
    Column("title", Text, nullable=False),
    Column("link", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),  # `triplewire.broker.publications.kept_contents`
    # "accepted", "handed" to the pipeline, "matched", "refused" (a dead letter), "dropped" (one that was given up)
    Column("state", Text, nullable=False),
    Column("tries", Integer, nullable=False),  # at matching it, that a crash may have ended
    Column("reason", Text, nullable=False),
    Column("culprit", BIG),  # the subscription that ended the process with it
    Index("publications_state", "state", "number"),
    Index("publications_received", "received"),
    Index("publications_source", "source", "number"),
)
"""Contents of publications: a publication that changes has several."""

attachments = Table(
    "attachments",
    metadata,
    Column("publication", BIG, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("content", LargeBinary, nullable=False),
)

current = Table(
    "current",
    metadata,
    Column("id", Text, primary_key=True),
    Column("publication", BIG, nullable=False),
    Column("content", Text, nullable=False),
)
"""The newest content of each publication."""

revisions = Table(
    "revisions",
    metadata,
    Column("owner", Text, primary_key=True),
    Column("page", Text, primary_key=True),
    Column("revision", BIG, nullable=False),
)
"""The newest revision of each page of a CMS that was taken, by who publishes it."""

events = Table(
    "events",
    metadata,
    Column("number", BIG, primary_key=True, autoincrement=False),  # in the order of commits
    Column("subscription", BIG, nullable=False),
    Column("sequence", BIG, nullable=False),  # 1, 2, ... of its subscription
    Column("type", Text, nullable=False),  # `triplewire.broker.events.event_log.TYPES`
    Column("publication", BIG),
    Column("at", Float, nullable=False),
    Column("bindings", Text, nullable=False),  # JSON text
    Column("first", BIG),  # the number of the event of the same story that was told
    UniqueConstraint("subscription", "sequence"),
    Index("events_publication", "publication"),
    Index("events_first", "first"),
)

targets = Table(
    "targets",
    metadata,
    _number(),
    Column("subscription", BIG, nullable=False),
    Column("kind", Text, nullable=False),  # `triplewire.deliver.channels`
    Column("address", Text, nullable=False),
    Column("form", Text, nullable=False),  # of the feed that is sent as a whole; "": each event by itself
    Column("host", Text, nullable=False),  # `triplewire.broker.subscriptions.targets.host_of`
    Column("secret", Text, nullable=False),  # which requests are signed with, sealed: `triplewire.broker.tickets`
    Column("settings", Text, nullable=False),  # a JSON object
    Column("state", Text, nullable=False),  # "active", "pending" (not verified yet), "gone"
    Column("expires", Float),  # of a lease; null: with its subscription
    Column("until", Float, nullable=False),  # it has asked not to be sent anything before
    Column("failures", Integer, nullable=False),  # since it took something last
    Column("created", Float, nullable=False),
    UniqueConstraint("subscription", "kind", "address", "form"),
)
"""Where events of a subscription are delivered to, beside its feed."""

deliveries = Table(
    "deliveries",
    metadata,
    _number(),
    Column("event", BIG, nullable=False),
    Column("target", BIG, nullable=False),
    Column("host", Text, nullable=False),  # of the target
    Column("state", Text, nullable=False),  # "pending", "delivered", "expired", "dead"
    Column("due", Float, nullable=False),  # when it is tried next; of what is not pending: when that ended
    Column("tries", Integer, nullable=False),
    Column("status", Text, nullable=False),  # what the receiver answered last, or why it was not asked
    Index("deliveries_due", "state", "host", "due"),
    Index("deliveries_target", "target", "state", "event"),
    Index("deliveries_event", "event"),
)
"""Events on their way to targets: `triplewire.deliver`."""

failing = Table(
    "failing",
    metadata,
    Column("target", BIG, primary_key=True, autoincrement=False),
    Column("subscription", BIG, nullable=False),
    Column("solution", Text, nullable=False),  # a JSON object: what its owner is told
    Column("is_told", Boolean, nullable=False),
)
"""Targets that a delivery was given up for since they took something last: their owners are told, once."""

hosts = Table("hosts", metadata, Column("name", Text, primary_key=True), Column("per_minute", Float))
"""The hosts of all targets, and how many deliveries a minute each allows, where it has said so."""

totals = Table("totals", metadata, Column("name", Text, primary_key=True), Column("count", BIG, nullable=False))
"""Deliveries that were ever owed ("matched"), and by state those whose rows are not kept any more."""

sources = Table(
    "sources",
    metadata,
    _number(),
    Column("id", Text, nullable=False, unique=True),
    Column("owner", Text, nullable=False),
    Column("kind", Text, nullable=False),  # `triplewire.broker.incoming.registered_sources.KINDS`
    Column("url", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("may_subscribe", Boolean, nullable=False),
    Column("anonymous", Boolean, nullable=False),  # may anybody publish to it?
    Column("full_sync", Boolean, nullable=False, server_default=false()),  # is who is missing in it unsubscribed?
    Column("ticket", LargeBinary, nullable=False),
    Column("state", Text, nullable=False),  # a JSON object: `triplewire.broker.incoming.registered_sources.State`
    Column("created", Float, nullable=False),
)

requests = Table(
    "requests",
    metadata,
    Column("key", LargeBinary, primary_key=True),  # SHA-256
    Column("content", LargeBinary, nullable=False),  # SHA-256
    Column("answer", Text, nullable=False),  # a JSON array
    Column("at", Float, nullable=False),
    Index("requests_at", "at"),
)
"""What was accepted by requests that may be sent again, by their keys."""

intents = Table(
    "intents",
    metadata,
    _number(),
    Column("subscription", BIG, nullable=False),
    Column("form", Text, nullable=False),
    Column("topic", Text, nullable=False),
    Column("callback", Text, nullable=False),
    Column("host", Text, nullable=False),  # of the callback
    Column("mode", Text, nullable=False),  # "subscribe", "unsubscribe", "denied" (the hub's own)
    Column("seconds", Float, nullable=False),  # of the lease
    Column("secret", Text, nullable=False),
    Column("reason", Text, nullable=False),  # why it is denied
    Column("state", Text, nullable=False),  # "waiting", "asked", "failed"
    Column("created", Float, nullable=False),
    Column("due", Float, nullable=False),
    Column("asked", Float),  # when the callback was asked
    Index("intents_host", "host", "asked"),
    Index("intents_callback", "callback", "topic"),
)
"""What subscribers have asked the hub for and their callbacks have not confirmed: `triplewire.broker.feeds.websub`."""

leases = Table(
    "leases",
    metadata,
    _number(),
    Column("source", BIG, nullable=False, unique=True),
    Column("hub", Text, nullable=False),
    Column("topic", Text, nullable=False),
    Column("state", Text, nullable=False),  # "none" (no hub), "subscribing", "active", "denied", "ending"
    Column("pending", Float),  # the hub may ask until then whether it is meant; null: it may not
    Column("expires", Float),
    Column("due", Float, nullable=False),  # when the hub is looked for, or the lease renewed
    Column("failures", Integer, nullable=False),
    Column("reason", Text, nullable=False),
)
"""Sources that foreign hubs push: `triplewire.broker.incoming.websub_subscriber`."""

stories = Table(
    "stories",
    metadata,
    Column("publication", BIG, primary_key=True, autoincrement=False),
    Column("signature", LargeBinary, nullable=False),  # MinHash: `triplewire.broker.events.stories`
    Column("at", Float, nullable=False),
)

bands = Table(
    "bands",
    metadata,
    Column("band", BIG, primary_key=True, autoincrement=False),
    Column("publication", BIG, primary_key=True, autoincrement=False),
    Index("bands_publication", "publication"),
)
"""Parts of signatures, by which those that are alike are found."""

origins = Table(
    "origins",
    metadata,
    Column("publication", BIG, primary_key=True, autoincrement=False),
    Column("broker", Text, primary_key=True),
    Column("number", BIG, nullable=False),  # of the publication at that broker
    Column("id", Text, nullable=False),  # of the publication
    Index("origins_id", "id", "broker", "number"),
)
"""Where publications that came from an upstream were accepted first: `triplewire.broker.network`."""
