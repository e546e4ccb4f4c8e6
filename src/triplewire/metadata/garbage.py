"""Garbage collection in a repository's cache (MDV paper, section 2.4), in statements over sets.

A cached resource stays while a rule holds it, or a cached resource that stays refers to it strongly. What may have lost
its last reason is a *suspect*: its rule let it go, or a referrer dropped the reference. References are counted first:

    repeat
        a suspect that a rule holds, or that a resource refers to that a rule holds, is none
        drop the suspects that nobody refers to; what these referred to strongly is suspected
    until nothing was dropped

What is left is referred to, but perhaps only by itself in a circle. It is marked from the rules: of the suspects and
all that leads to them, what no rule leads to is dropped, and counting goes on with what that referred to.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from triplewire.metadata.repository_tables import cached, garbage, held, statements, strong, suspects

_SUSPECTS = sa.select(suspects.c.uri)
_GARBAGE = sa.select(garbage.c.uri)


def suspect(connection: Connection, uris: sa.Select[Any]) -> None:
    """Suspect cached resources that may have lost their last reason. `uris`: a query of one column."""
    column = uris.subquery()
    fresh = sa.select(column.c[0]).where(column.c[0].not_in(_SUSPECTS)).distinct()
    connection.execute(suspects.insert().from_select(["uri"], fresh))


def collect(connection: Connection) -> None:
    """Drop the suspects that have no reason to stay, and all that only these were a reason for."""
    while _remain(connection):
        if not _dropped(connection, _unreferenced()) and not _dropped(connection, _unmarked()):
            connection.execute(suspects.delete())


def _remain(connection: Connection) -> bool:
    """Suspect no longer what is not cached, is held by a rule, or is referred to by what a rule holds. Does any suspect
    remain?"""
    uri, referrer = suspects.c.uri, strong.c.source
    is_held = sa.exists().where(held.c.resource == uri)
    is_kept = sa.exists().where(strong.c.target == uri, held.c.resource == referrer)
    is_cached = sa.exists().where(cached.c.uri == uri)
    connection.execute(suspects.delete().where(is_held | is_kept | ~is_cached))
    return bool(connection.execute(sa.select(sa.exists(_SUSPECTS))).scalar())


def _unreferenced() -> sa.Select[Any]:
    """The suspects that no other resource refers to: their count of references is 0."""
    is_referred = sa.exists().where(strong.c.target == suspects.c.uri, strong.c.source != suspects.c.uri)
    return sa.select(suspects.c.uri).where(~is_referred)


def _unmarked() -> sa.Select[Any]:
    """Of the suspects and all that refers to them over any number of references, what no rule leads to."""
    back = _SUSPECTS.cte("back", recursive=True)
    back = back.union(sa.select(strong.c.source).where(strong.c.target == back.c.uri))
    live = sa.select(back.c.uri).where(sa.exists().where(held.c.resource == back.c.uri)).cte("live", recursive=True)
    further = sa.select(strong.c.target).where(strong.c.source == live.c.uri, strong.c.target == back.c.uri)
    live = live.union(further)
    return sa.select(back.c.uri).where(back.c.uri.not_in(sa.select(live.c.uri)))


def _dropped(connection: Connection, uris: sa.Select[Any]) -> bool:
    """Drop these resources from the cache, and suspect what they referred to. Was there any?"""
    connection.execute(garbage.insert().from_select(["uri"], uris))
    if not connection.execute(sa.select(sa.exists(_GARBAGE))).scalar():
        return False
    connection.execute(suspects.delete().where(suspects.c.uri.in_(_GARBAGE)))
    targets = sa.select(strong.c.target).where(strong.c.source.in_(_GARBAGE), strong.c.target.not_in(_GARBAGE))
    suspect(connection, targets)
    forget(connection, _GARBAGE)
    connection.execute(garbage.delete())
    return True


def forget(connection: Connection, uris: sa.Select[Any]) -> None:
    """Delete these resources from the cache, with their statements and references."""
    connection.execute(statements.delete().where(statements.c.document == "", statements.c.resource.in_(uris)))
    connection.execute(strong.delete().where(strong.c.source.in_(uris)))
    connection.execute(cached.delete().where(cached.c.uri.in_(uris)))
