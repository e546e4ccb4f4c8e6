"""The tables of a registry (SQLAlchemy Core), the same in every database.

Source: the MDV paper, section 3.3.4; figures 4, 7 and 8. What the paper calls FilterData is `md_statements` with
`md_types`; AtomicRules is `md_rules`; the tables FilterRulesOP are `md_triggers`, whose index begins with the operator;
RuleDependencies is `md_joins`, RuleGroups `md_groups`: rules of a group differ in their inputs only, and one statement
serves all groups of a kind. Results of rules are not stored: triggering rules have too many, and what a change does to
a join rule follows from the statements around it.

Terms are numbers. While a batch is applied, statements hold what was and what will be: `was` and `stays` are 1 or 0,
and both are 1 at any other time. Columns of text compare by code point.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Column, Index, Integer, MetaData, SmallInteger, Table, Text
from sqlalchemy.schema import SchemaItem

from triplewire.store.tables import BIG, facts_table

metadata = MetaData()

ByCodePoint = Text(collation="C").with_variant(Text(), "sqlite")
"""Text that is compared by code point. PostgreSQL uses an index only where both sides of a comparison are such."""

SUBJECT, ANY = 0, 0
"""In place of a property: that a resource is there, with itself as value (the paper's
rdf#subject). In place of a class: any resource."""


def _versions() -> tuple[Column[int], Column[int]]:
    return Column("was", SmallInteger, nullable=False), Column("stays", SmallInteger, nullable=False)


facts = facts_table("md_facts", metadata)
"""What there is once: the version of the registry, the schema as N-Triples."""

terms = Table(
    "md_terms",
    metadata,
    Column("number", BIG, primary_key=True, autoincrement=False),
    Column("digest", ByCodePoint, nullable=False, unique=True),
    Column("term", ByCodePoint, nullable=False),  # in N-Triples notation
    Column("label", ByCodePoint),  # what it is compared by; null: it fails every comparison
    Column("literal", ByCodePoint),  # the label of a literal, which has an order and contains text
    Column("number_key", ByCodePoint),  # `keys.number_key` of a literal
    Column("instant_key", ByCodePoint),
)
"""IRIs, literals and blank nodes."""

documents = Table(
    "md_documents",
    metadata,
    Column("number", BIG, primary_key=True, autoincrement=False),
    Column("iri", Text, nullable=False, unique=True),
    Column("version", BIG, nullable=False),  # of the registry, when it was last changed
    Column("digest", Text, nullable=False),  # of its bytes
)

statements = Table(
    "md_statements",
    metadata,
    Column("document", BIG, nullable=False),
    Column("resource", BIG, nullable=False),
    Column("property", BIG, nullable=False),
    Column("value", BIG, nullable=False),
    *_versions(),
    Index("md_statements_resource", "resource", "property"),
    Index("md_statements_value", "value", "property"),
    Index("md_statements_property", "property"),
    Index("md_statements_document", "document", "resource", "property", "value"),  # a value may be that of many
)

types = Table(
    "md_types",
    metadata,
    Column("document", BIG, nullable=False),
    Column("resource", BIG, nullable=False),
    Column("class", BIG, nullable=False, key="class_"),
    *_versions(),
    Index("md_types_resource", "resource", "class_"),
    Index("md_types_class", "class_"),
    Index("md_types_document", "document", "resource", "class_"),
)
"""The classes of each resource, and ANY."""

strong = Table("md_strong", metadata, Column("property", BIG, primary_key=True, autoincrement=False))
"""Properties that the schema calls strong."""

rules = Table(
    "md_rules",
    metadata,
    Column("rule", BIG, primary_key=True, autoincrement=False),
    Column("digest", ByCodePoint, nullable=False, unique=True),
    Column("text", Text, nullable=False),
    Column("level", Integer, nullable=False),  # 0: a triggering rule; a join rule: 1 more than the higher of its inputs
)
"""Atomic rules, each once; the text is canonical."""


def trigger_columns() -> Sequence[SchemaItem]:
    """The columns of triggering rules."""
    return (
        Column("rule", BIG, primary_key=True, autoincrement=False),
        Column("operator", Text, nullable=False),  # `filter.OPERATORS`
        Column("class", BIG, nullable=False, key="class_"),
        Column("property", BIG, nullable=False),
        Column("constant", ByCodePoint, nullable=False),  # the key of the constant
        Column("brief", ByCodePoint, nullable=False),  # its first characters; of `contains`, a gram of it
        Column("feeds", SmallInteger, nullable=False),  # 1: a join rule has it as an input
    )


def join_columns() -> Sequence[SchemaItem]:
    """The columns of join rules."""
    return (
        Column("rule", BIG, primary_key=True, autoincrement=False),
        Column("level", Integer, nullable=False),
        Column("kind", Text, nullable=False),  # `decompose.Kind`
        Column("driver", Text, nullable=False),  # "parent" or "child": the input that fewer join rules have
        Column("group_number", BIG, nullable=False),
        Column("parent", BIG, nullable=False),  # the input whose resources it registers
        Column("child", BIG, nullable=False),
    )


triggers = Table(
    "md_triggers",
    metadata,
    *trigger_columns(),
    Index("md_triggers_operator", "operator", "class_", "property", "brief"),
)

joins = Table(
    "md_joins",
    metadata,
    *join_columns(),
    Index("md_joins_parent", "parent", "driver", "kind", "level"),
    Index("md_joins_child", "child", "driver", "kind", "level"),
    Index("md_joins_level", "level", "kind", "driver"),
)

groups = Table(
    "md_groups",
    metadata,
    Column("number", BIG, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("property", BIG, nullable=False),  # of the link, or of the parent's value
    Column("comparison", Text, nullable=False),
    Column("other", BIG, nullable=False),  # the property of the child's value
)
"""Groups of join rules: rules of one group differ in their inputs only."""

subscriptions = Table(
    "md_subscriptions",
    metadata,
    Column("number", BIG, primary_key=True, autoincrement=False),
    Column("repository", Text, nullable=False),
    Column("id", ByCodePoint, nullable=False),
    Column("body", Text, nullable=False),  # a JSON object: query, prefixes, base
    Column("rule", BIG, nullable=False),  # its end rule
    Index("md_subscriptions_id", "repository", "id", unique=True),
    Index("md_subscriptions_rule", "rule"),
)

holdings = Table(
    "md_holdings",
    metadata,
    Column("repository", Text, primary_key=True),
    Column("resource", BIG, primary_key=True, autoincrement=False),
    Column("rules", BIG, nullable=False),
    Index("md_holdings_resource", "resource"),
)
"""How many rules of a repository hold a resource."""
