"""The tables of a repository (SQLAlchemy Core), the same in SQLite and PostgreSQL.

What a provider has told (`cached`, `held`, `strong`, and the statements of the document "") is what the rules ask for,
no more; local metadata are the statements of other documents.
"""

from __future__ import annotations

from sqlalchemy import Column, Index, Integer, MetaData, Table, Text

from triplewire.store.tables import BIG

metadata = MetaData()

facts = Table(
    "repository_facts",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
"""What there is once: the name, the provider that is followed, the stream and the number of the last batch of it."""

rules = Table(
    "repository_rules",
    metadata,
    Column("id", Text, primary_key=True),
    Column("body", Text, nullable=False),  # a JSON object: query, prefixes, base
)
"""The rules that the repository has at its provider, so that it may take them to another."""

cached = Table(
    "repository_cached",
    metadata,
    Column("uri", Text, primary_key=True),
    Column("version", BIG, nullable=False),  # of the provider's documents, when it was told
)

held = Table(
    "repository_held",
    metadata,
    Column("resource", Text, primary_key=True),
    Column("rule", Text, primary_key=True),
    Index("repository_held_rule", "rule", "resource"),
)
"""Which rule holds which resource in the cache (the paper's rule-resource pairs)."""

strong = Table(
    "repository_strong",
    metadata,
    Column("source", Text, primary_key=True),
    Column("target", Text, primary_key=True),
    Index("repository_strong_target", "target", "source"),
)
"""Strong references from cached resources; what they lead to may come later."""

suspects = Table("repository_suspects", metadata, Column("uri", Text, primary_key=True))
garbage = Table("repository_garbage", metadata, Column("uri", Text, primary_key=True))
changing = Table("repository_changing", metadata, Column("uri", Text, primary_key=True))
"""These three are empty but within a transaction: `triplewire.metadata.garbage`."""
