"""A batch of documents (MDV paper, section 3.5): what goes and comes, what rules say to it, and then only what stays.

While the filter runs, statements of the version before and of the new one stand side by side, and say of which they
are: `was` and `stays`. A row of both stays untouched.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from triplewire.metadata import filter as matching
from triplewire.metadata.documents import Rows
from triplewire.metadata.tables import SUBJECT, documents, joins, statements, strong, subscriptions, types
from triplewire.metadata.working import (
    altered,
    among,
    batch,
    changes,
    dirty,
    ends,
    fill,
    hits,
    in_order,
    incoming,
    incoming_types,
    is_in,
    moved_rows,
)


def written(connection: Connection, documents: Sequence[int], rows: Rows) -> bool:
    """Mark what goes and add what comes of these documents, whose new versions say `rows`. Returns whether anything
    does."""
    fill(connection, batch, ((number,) for number in documents))
    fill(connection, incoming, rows.statements)
    fill(connection, incoming_types, rows.types)
    return moved_rows(connection, *_moves(statements, incoming), *_moves(types, incoming_types)) > 0


@cache
def _moves(table: sa.Table, new: sa.Table) -> tuple[sa.Update, sa.Insert]:
    """What goes, and what comes."""
    is_equal = sa.and_(*(table.columns[_key(table, column)] == column for column in new.c))
    of_batch = among(table.c.document, sa.select(batch.c.document))
    gone = table.update().where(of_batch, ~is_in(new, is_equal)).values(stays=0)
    before = in_order(batch, (table, table.c.document == batch.c.document))
    known = sa.select(*(table.columns[_key(table, column)] for column in new.c)).select_from(before)
    added = sa.select(new).except_(known).subquery()
    return gone, table.insert().from_select([c.key for c in table.c], sa.select(added, sa.literal(0), sa.literal(1)))


def _key(table: sa.Table, column: sa.Column[int]) -> str:
    return next(key for key, other in table.columns.items() if other.name == column.name)


def compared(connection: Connection) -> None:
    """Fill `ends` with the resources that subscriptions begin and cease to hold, and `altered` with those that are
    others now; of these, too, who refers strongly to what goes or comes."""
    matching.changed(connection)
    for statement in _comparison():
        connection.execute(statement)


@cache
def _comparison() -> tuple[sa.Executable, ...]:
    pair, ends_of = (
        ["subscription", "resource", "repository", "stays"],
        (subscriptions.c.number, subscriptions.c.repository),
    )
    of_triggers = sa.select(ends_of[0], changes.c.resource, ends_of[1], changes.c.stays).select_from(
        in_order(changes, (subscriptions, subscriptions.c.rule == changes.c.rule))
    )
    of_joins = sa.select(ends_of[0], hits.c.resource, ends_of[1], hits.c.stays).select_from(
        in_order(hits, (subscriptions, subscriptions.c.rule == hits.c.rule), (joins, joins.c.rule == hits.c.rule))
    )
    of_joins = of_joins.where(hits.c.was != hits.c.stays, hits.c.resource > 0)
    both = of_triggers.where(changes.c.resource > 0).union_all(of_joins)
    s = statements
    is_strong = sa.or_(s.c.property.in_(sa.select(strong.c.property)), s.c.value < 0)
    link = sa.and_(s.c.value == dirty.c.resource, s.c.property != SUBJECT, is_strong)
    referring = sa.select(s.c.resource).select_from(in_order(dirty, (s, link))).where(dirty.c.property == SUBJECT)
    return (
        ends.delete(),
        ends.insert().from_select(pair, both),
        altered.delete(),
        altered.insert().from_select(["resource"], sa.select(dirty.c.resource).union(referring)),
    )


def settled(connection: Connection) -> None:
    """Remove what goes; what comes is as all else."""
    for statement in (*_settling(statements), *_settling(types)):
        connection.execute(statement)


@cache
def _settling(table: sa.Table) -> tuple[sa.Executable, ...]:
    of_batch = among(table.c.document, sa.select(batch.c.document))
    return (
        table.delete().where(of_batch, table.c.stays == 0),
        table.update().where(of_batch, table.c.was == 0).values(was=1),
    )


def numbered(connection: Connection, iris: Sequence[str]) -> dict[str, tuple[int, str]]:
    """Number and digest of those of the documents that are there."""
    rows: dict[str, tuple[int, str]] = {}
    for start in range(0, len(iris), 500):
        query = sa.select(documents.c.iri, documents.c.number, documents.c.digest)
        query = query.where(documents.c.iri.in_(iris[start : start + 500]))
        rows |= {row[0]: (row[1], row[2]) for row in connection.execute(query).all()}
    return rows
