"""What repositories are told (MDV paper, sections 2.4 and 3.5): resources with all that they refer to strongly.

A resource is told where a rule begins to hold it, and where it is altered and some resource that a rule holds leads
to it by strong references (the reverse strong closure); with it all that it leads to itself. A blank node has no name
of its own: a reference to it is strong.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from triplewire.metadata.messages import Dropped, Notice, Told
from triplewire.metadata.tables import ANY, SUBJECT, holdings, statements, strong, subscriptions, terms, types
from triplewire.metadata.working import (
    altered,
    among,
    counted,
    emptying,
    ends,
    fill,
    in_order,
    is_in,
    leading,
    moved_rows,
    picked,
    told,
    turned,
)

Pairs = Mapping[tuple[str, int], list[str]]
"""Repository and resource, and the ids of rules."""


def pairs_of_ends(connection: Connection) -> tuple[Pairs, Pairs]:
    """`ends` as pairs: which rules begin to hold a resource, and which cease to."""
    listed, named = _ends_and_ids()
    ids: dict[int, str] = {row[0]: row[1] for row in connection.execute(named).all()}  # a rule has many ends
    begun: dict[tuple[str, int], list[str]] = defaultdict(list)
    ceased: dict[tuple[str, int], list[str]] = defaultdict(list)
    for repository, resource, stays, subscription in connection.execute(listed).all():
        (begun if stays else ceased)[repository, resource].append(ids[subscription])
    return begun, ceased


@cache
def _ends_and_ids() -> tuple[sa.Select[Any], sa.Select[Any]]:
    each = sa.select(ends.c.subscription).distinct().subquery()
    source = in_order(each, (subscriptions, subscriptions.c.number == each.c.subscription))
    named = sa.select(subscriptions.c.number, subscriptions.c.id).select_from(source)
    return sa.select(ends.c.repository, ends.c.resource, ends.c.stays, ends.c.subscription), named


def count(connection: Connection) -> None:
    """Bring `md_holdings` up to date with `ends`."""
    if connection.execute(_is_any_end()).scalar():
        connection.execute(emptying(turned))
        connection.execute(_turning())
        hold(connection)


@cache
def _is_any_end() -> sa.Select[Any]:
    return sa.select(sa.exists().select_from(ends))


@cache
def _turning() -> sa.Insert:
    more = sa.select(ends.c.repository, ends.c.resource, sa.func.sum(2 * ends.c.stays - 1))
    more = more.group_by(ends.c.repository, ends.c.resource)
    return turned.insert().from_select(["repository", "resource", "more"], more)


def hold(connection: Connection) -> None:
    """Bring `md_holdings` up to date with `turned`."""
    for statement in _holding():
        connection.execute(statement)


@cache
def _holding() -> tuple[sa.Executable, ...]:
    here = sa.and_(holdings.c.repository == turned.c.repository, holdings.c.resource == turned.c.resource)
    rules = turned.c.more + sa.func.coalesce(holdings.c.rules, 0)
    now = sa.select(turned.c.repository, turned.c.resource, rules).select_from(in_order(turned, left=(holdings, here)))
    names = ["repository", "resource", "rules"]
    is_counted = is_in(
        counted, counted.c.repository == holdings.c.repository, counted.c.resource == holdings.c.resource
    )
    of_these = among(holdings.c.resource, sa.select(counted.c.resource))
    return (
        counted.delete(),
        counted.insert().from_select(names, now),
        holdings.delete().where(of_these, is_counted),
        holdings.insert().from_select(names, sa.select(counted).where(counted.c.rules > 0)),
    )


def notices(connection: Connection, begun: Pairs, ceased: Pairs) -> dict[str, tuple[Notice, ...]]:
    """What to tell each repository, with what is in `altered`. `md_holdings` is up to date."""
    _lead(connection)
    fill(connection, told, ((repository, resource, 0) for repository, resource in begun))
    connection.execute(_told_of_leading())
    follow(connection)
    content = contents(connection)
    out: dict[str, list[Notice]] = defaultdict(list)
    for repository, resource in connection.execute(sa.select(told.c.repository, told.c.resource)).all():
        if (now := content.get(resource)) is not None:
            rules = begun.get((repository, resource), ())
            out[repository].append(Told(now.resource, now.statements, now.strong, tuple(sorted(rules))))
    names = names_of(connection, {resource for _, resource in ceased}) if ceased else {}
    for (repository, resource), rules in ceased.items():
        out[repository].append(Dropped(names[resource], tuple(sorted(rules))))
    return {
        name: tuple(sorted(items, key=lambda notice: (notice.resource, isinstance(notice, Told))))
        for name, items in out.items()
    }


@cache
def _told_of_leading() -> sa.Insert:
    source = in_order(leading, (holdings, holdings.c.resource == leading.c.root))
    new = sa.select(holdings.c.repository, leading.c.resource, sa.literal(0)).select_from(source).distinct()
    return _telling(new, holdings.c.repository, leading.c.resource)


def _is_strong() -> sa.ColumnElement[bool]:
    s = statements
    is_named = sa.or_(s.c.property.in_(sa.select(strong.c.property)), s.c.value < 0)
    return sa.and_(is_named, s.c.property != SUBJECT, s.c.stays == 1)


def _lead(connection: Connection) -> None:
    """Fill `leading` from `altered`, a step a reference."""
    connection.execute(emptying(leading))
    step = 0
    while moved_rows(connection, _leads(step)) > 0:
        step += 1


@cache
def _leads(step: int) -> sa.Insert:
    names, s, other = ["root", "resource", "step"], statements, leading.alias("other")
    if not step:
        return leading.insert().from_select(names, sa.select(altered.c.resource, altered.c.resource, sa.literal(0)))
    is_known = sa.exists().where(other.c.root == s.c.resource, other.c.resource == leading.c.resource)
    link = sa.and_(s.c.value == leading.c.root, _is_strong())
    new = sa.select(s.c.resource, leading.c.resource, sa.literal(step)).distinct()
    new = new.select_from(in_order(leading, (s, link))).where(leading.c.step == step - 1, ~is_known)
    return leading.insert().from_select(names, new)


def _telling(new: sa.Select[tuple[str, int, int]], repository: object, resource: object) -> sa.Insert:
    other = told.alias("other")
    is_known = sa.exists().where(other.c.repository == repository, other.c.resource == resource)
    return told.insert().from_select(["repository", "resource", "step"], new.where(~is_known))


def follow(connection: Connection) -> None:
    """Add to `told` what strong references lead to, a step a reference."""
    step = 1
    while moved_rows(connection, _follows(step)) > 0:
        step += 1


@cache
def _follows(step: int) -> sa.Insert:
    s = statements
    source = in_order(told, (s, sa.and_(s.c.resource == told.c.resource, _is_strong())))
    new = sa.select(told.c.repository, s.c.value, sa.literal(step)).select_from(source).distinct()
    return _telling(new.where(told.c.step == step - 1, _exists(s.c.value)), told.c.repository, s.c.value)


def _exists(resource: sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
    return is_in(types, types.c.resource == resource, types.c.class_ == ANY, types.c.stays == 1)


def contents(connection: Connection) -> dict[int, Told]:
    """The resources of `told` that there are, by their numbers, as they are now."""
    connection.execute(emptying(picked))
    pick, statements_of, references = _content()
    connection.execute(pick)
    stated: dict[int, list[tuple[str, str]]] = defaultdict(list)
    for number, property_, value in connection.execute(statements_of).all():
        stated[number].append((property_, value))
    strongly: dict[int, list[str]] = defaultdict(list)
    for number, name in connection.execute(references).all():
        strongly[number].append(name)
    names = names_of(connection, stated)
    return {
        number: Told(names[number], tuple(sorted(pairs)), tuple(sorted(strongly[number])))
        for number, pairs in stated.items()
    }


@cache
def _content() -> tuple[sa.Insert, sa.Select[Any], sa.Select[Any]]:
    pick = picked.insert().from_select(["number"], sa.select(told.c.resource).distinct())
    s, p, v = statements, terms.alias("p"), terms.alias("v")
    link = sa.and_(s.c.resource == picked.c.number, s.c.property != SUBJECT, s.c.stays == 1)
    source = in_order(picked, (s, link), (p, p.c.number == s.c.property), (v, v.c.number == s.c.value))
    statements_of = sa.select(picked.c.number, p.c.label, v.c.term).select_from(source).distinct()
    source = in_order(picked, (s, sa.and_(link, _is_strong())), (v, v.c.number == s.c.value))
    references = sa.select(picked.c.number, sa.func.coalesce(v.c.label, v.c.term)).select_from(source).distinct()
    return pick, statements_of, references.where(_exists(s.c.value))


def names_of(connection: Connection, resources: Iterable[int]) -> dict[int, str]:
    """The IRIs of resources, or names of blank nodes."""
    fill(connection, picked, ((number,) for number in resources))
    return {row[0]: row[1] for row in connection.execute(_names()).all()}


@cache
def _names() -> sa.Select[Any]:
    source = in_order(picked, (terms, terms.c.number == picked.c.number))
    return sa.select(terms.c.number, sa.func.coalesce(terms.c.label, terms.c.term)).select_from(source)
