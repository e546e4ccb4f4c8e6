"""The tables of a provider beside those of its registry: what repositories are told, and the log of documents."""

from __future__ import annotations

from sqlalchemy import Column, Index, LargeBinary, MetaData, Table, Text

from triplewire.store.tables import BIG, facts_table

metadata = MetaData()

facts = facts_table("provider_facts", metadata)
"""What there is once: the base IRI of documents, the address of the peer."""

sources = Table(
    "provider_sources",
    metadata,
    Column("name", Text, primary_key=True),
    Column("seq", BIG, nullable=False),
)
"""Lists of events that are applied in order, and the last event of each that was."""

streams = Table(
    "provider_streams",
    metadata,
    Column("repository", Text, primary_key=True),
    Column("stream", Text, nullable=False),  # a new random name with each snapshot
    Column("number", BIG, nullable=False),  # of the newest batch
    Column("acknowledged", BIG, nullable=False),  # up to which batches are deleted
)
"""Repositories that follow: each has taken a snapshot, and is told every change since."""

outbox = Table(
    "provider_outbox",
    metadata,
    Column("repository", Text, primary_key=True),
    Column("number", BIG, primary_key=True, autoincrement=False),
    Column("version", BIG, nullable=False),
    Column("items", Text, nullable=False),  # JSON: `batches.items_as_json`
)
"""Batches that a repository has not acknowledged."""

log = Table(
    "provider_log",
    metadata,
    Column("document", Text, primary_key=True),
    Column("version", BIG, nullable=False),  # of the registry, with which it was last changed
    Column("content", LargeBinary),  # null: it was deleted
    Index("provider_log_version", "version"),
)
"""The ordered log of documents: the newest entry of each, which is all that a peer needs that comes later."""
