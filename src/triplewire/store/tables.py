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
)

BIG = BigInteger().with_variant(Integer, "sqlite")  # which numbers rows by itself where the key is an INTEGER

metadata = MetaData()


def _number() -> Column[int]:
    return Column("number", BIG, primary_key=True, autoincrement=True)


facts = Table(
    "facts",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
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
    Column("price", Text, nullable=False),  # a JSON object: what registration predicted
    Column("revision", Integer, nullable=False),  # 1, and 1 more with each new query
    Column("created", Float, nullable=False),
    Column("expires", Float, nullable=False),
    Column("ticket", LargeBinary, nullable=False),
    UniqueConstraint("owner", "id"),
    Index("subscriptions_expire", "state", "expires"),
)

changes = Table("changes", metadata, _number(), Column("subscription", BIG, nullable=False))
"""Each change of a subscription that an engine has to follow: its state or its query."""

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
    Column("state", Text, nullable=False),  # "accepted", "matched", "refused" (a dead letter)
    Column("tries", Integer, nullable=False),  # at matching it, that a crash may have ended
    Column("reason", Text, nullable=False),
    # last, as SQLite reads through a long column to get at those behind it: `triplewire.broker.publications`
    Column("body", LargeBinary, nullable=False),
    Index("publications_state", "state", "number"),
    Index("publications_received", "received"),
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
    Column("content", Text, nullable=False),  # its hash, and who may read it where not all may
)
"""The newest content of each publication."""

events = Table(
    "events",
    metadata,
    Column("number", BIG, primary_key=True, autoincrement=False),  # in the order of commits
    Column("subscription", BIG, nullable=False),
    Column("sequence", BIG, nullable=False),  # 1, 2, ... of its subscription
    Column("type", Text, nullable=False),  # `triplewire.broker.events.TYPES`
    Column("publication", BIG),
    Column("at", Float, nullable=False),
    Column("bindings", Text, nullable=False),  # JSON text
    Column("first", BIG),  # the number of the event of the same story that was told
    UniqueConstraint("subscription", "sequence"),
    Index("events_publication", "publication"),
)

targets = Table(
    "targets",
    metadata,
    _number(),
    Column("subscription", BIG, nullable=False),
    Column("kind", Text, nullable=False),  # `triplewire.broker.delivery`
    Column("address", Text, nullable=False),
    Column("secret", Text, nullable=False),  # which requests are signed with
    Column("settings", Text, nullable=False),  # a JSON object
    Column("state", Text, nullable=False),  # "active", "pending" (not verified yet), "gone"
    Column("expires", Float),  # of a lease; null: with its subscription
    Column("failures", Integer, nullable=False),
    Column("created", Float, nullable=False),
    UniqueConstraint("subscription", "kind", "address"),
)
"""Where events of a subscription are delivered to, beside its feed."""

deliveries = Table(
    "deliveries",
    metadata,
    _number(),
    Column("event", BIG, nullable=False),
    Column("target", BIG, nullable=False),
    Column("state", Text, nullable=False),  # "pending", "delivered", "expired", "dead"
    Column("due", Float, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("status", Text, nullable=False),  # what the receiver answered last
    Index("deliveries_due", "state", "due"),
    Index("deliveries_target", "target", "state"),
)

sources = Table(
    "sources",
    metadata,
    _number(),
    Column("id", Text, nullable=False, unique=True),
    Column("owner", Text, nullable=False),
    Column("kind", Text, nullable=False),  # "poll", "push"
    Column("url", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("may_subscribe", Boolean, nullable=False),
    Column("anonymous", Boolean, nullable=False),  # may anybody publish to it?
    Column("ticket", LargeBinary, nullable=False),
    Column("state", Text, nullable=False),  # a JSON object: the last fetch, the next one, failures
    Column("created", Float, nullable=False),
)

stories = Table(
    "stories",
    metadata,
    Column("publication", BIG, primary_key=True, autoincrement=False),
    Column("signature", LargeBinary, nullable=False),  # MinHash: `triplewire.broker.stories`
    Column("at", Float, nullable=False),
    Index("stories_at", "at"),
)

bands = Table(
    "bands",
    metadata,
    Column("band", BIG, primary_key=True, autoincrement=False),
    Column("publication", BIG, primary_key=True, autoincrement=False),
    Index("bands_publication", "publication"),
)
"""Parts of signatures, by which those that are alike are found."""
