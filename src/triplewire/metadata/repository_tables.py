"""The tables of a repository (SQLAlchemy Core), the same in SQLite and PostgreSQL.

What a provider has told (`cached`, `held`, `strong`, and the statements of the document "") is what the rules ask for,
no more; local metadata are the statements of other documents.
"""

from __future__ import annotations

from sqlalchemy import Column, Index, MetaData, Table, Text

from triplewire.metadata.tables import ByCodePoint
from triplewire.store.tables import BIG, facts_table

metadata = MetaData()

facts = facts_table("repository_facts", metadata)
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

statements = Table(
    "repository_statements",
    metadata,
    Column("document", Text, nullable=False),  # of local metadata; "" of what is cached
    Column("resource", Text, nullable=False),
    Column("property", Text, nullable=False),
    Column("value", Text, nullable=False),  # in N-Triples notation
    Column("refers", Text),  # the resource that the value is; null of a literal
    Column("label", ByCodePoint),  # what the value is compared by; null: it fails every comparison
    Column("literal", ByCodePoint),  # the label of a literal, which has an order and contains text
    Column("number_key", ByCodePoint),  # `keys.number_key`
    Column("instant_key", ByCodePoint),
    Index("repository_statements_resource", "resource", "property"),
    Index("repository_statements_refers", "property", "refers"),
    Index("repository_statements_document", "document"),
)
"""Statements of cached resources and of local documents; queries see both."""
