"""What repositories are told (MDV paper, sections 2.4 and 3.5): resources with all that they refer to strongly.

A resource is told where a rule begins to hold it, and where it is altered and some resource that a rule holds leads
to it by strong references (the reverse strong closure); with it all that it leads to itself. A blank node has no name
of its own: a reference to it is strong.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from triplewire.metadata.messages import Dropped, Notice, Told
from triplewire.metadata.tables import ANY, SUBJECT, holdings, statements, strong, subscriptions, terms, types
from triplewire.metadata.working import altered, counted, ends, fill, in_order, is_in, leading, moved_rows, picked, told

Pairs = Mapping[tuple[str, int], list[str]]
"""Repository and resource, and the ids of rules."""


def pairs_of_ends(connection: Connection) -> tuple[Pairs, Pairs]:
    """`ends` as pairs: which rules begin to hold a resource, and which cease to."""
    source = in_order(ends, (subscriptions, subscriptions.c.number == ends.c.subscription))
    query = sa.select(ends.c.repository, ends.c.resource, ends.c.stays, subscriptions.c.id).select_from(source)
    begun: dict[tuple[str, int], list[str]] = defaultdict(list)
    ceased: dict[tuple[str, int], list[str]] = defaultdict(list)
    for repository, resource, stays, rule in connection.execute(query):
        (begun if stays else ceased)[repository, resource].append(rule)
    return begun, ceased


def count(connection: Connection) -> None:
    """Bring `md_holdings` up to date with `ends`."""
    if not connection.execute(sa.select(sa.exists().select_from(ends))).scalar():
        return
    here = sa.and_(holdings.c.repository == ends.c.repository, holdings.c.resource == ends.c.resource)
    rules = sa.func.sum(2 * ends.c.stays - 1) + sa.func.coalesce(sa.func.max(holdings.c.rules), 0)
    now = sa.select(ends.c.repository, ends.c.resource, rules).select_from(in_order(ends, left=(holdings, here)))
    names = ["repository", "resource", "rules"]
    connection.execute(counted.delete())
    connection.execute(counted.insert().from_select(names, now.group_by(ends.c.repository, ends.c.resource)))
    is_counted = sa.exists().where(
        counted.c.repository == holdings.c.repository, counted.c.resource == holdings.c.resource
    )
    of_these = holdings.c.resource.in_(sa.select(counted.c.resource))
    connection.execute(holdings.delete().where(of_these, is_counted))
    connection.execute(holdings.insert().from_select(names, sa.select(counted).where(counted.c.rules > 0)))


def notices(connection: Connection, begun: Pairs, ceased: Pairs) -> dict[str, tuple[Notice, ...]]:
    """What to tell each repository, with what is in `altered`. `md_holdings` is up to date."""
    _lead(connection)
    fill(connection, told, ((repository, resource, 0) for repository, resource in begun))
    source = in_order(leading, (holdings, holdings.c.resource == leading.c.root))
    new = sa.select(holdings.c.repository, leading.c.resource, sa.literal(0)).select_from(source).distinct()
    _tell(connection, new, holdings.c.repository, leading.c.resource)
    follow(connection)
    content = contents(connection, sa.select(told.c.resource).distinct())
    out: dict[str, list[Notice]] = defaultdict(list)
    for repository, resource in connection.execute(sa.select(told.c.repository, told.c.resource)):
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


def _is_strong() -> sa.ColumnElement[bool]:
    s = statements
    is_named = sa.or_(s.c.property.in_(sa.select(strong.c.property)), s.c.value < 0)
    return sa.and_(is_named, s.c.property != SUBJECT, s.c.stays == 1)


def _lead(connection: Connection) -> None:
    """Fill `leading` from `altered`, a step a reference."""
    connection.execute(leading.delete())
    first = sa.select(altered.c.resource, altered.c.resource, sa.literal(0))
    connection.execute(leading.insert().from_select(["root", "resource", "step"], first))
    step, s, other = 0, statements, leading.alias("other")
    while True:
        is_known = sa.exists().where(other.c.root == s.c.resource, other.c.resource == leading.c.resource)
        link = sa.and_(s.c.value == leading.c.root, _is_strong())
        new = sa.select(s.c.resource, leading.c.resource, sa.literal(step + 1)).distinct()
        new = new.select_from(in_order(leading, (s, link))).where(leading.c.step == step, ~is_known)
        if moved_rows(connection, leading.insert().from_select(["root", "resource", "step"], new)) <= 0:
            break
        step += 1


def _tell(connection: Connection, new: sa.Select[tuple[str, int, int]], repository: object, resource: object) -> int:
    other = told.alias("other")
    is_known = sa.exists().where(other.c.repository == repository, other.c.resource == resource)
    query = told.insert().from_select(["repository", "resource", "step"], new.where(~is_known))
    return moved_rows(connection, query)


def follow(connection: Connection) -> None:
    """Add to `told` what strong references lead to, a step a reference."""
    step, s = 0, statements
    while True:
        source = in_order(told, (s, sa.and_(s.c.resource == told.c.resource, _is_strong())))
        new = sa.select(told.c.repository, s.c.value, sa.literal(step + 1)).select_from(source).distinct()
        if _tell(connection, new.where(told.c.step == step, _exists(s.c.value)), told.c.repository, s.c.value) <= 0:
            break
        step += 1


def _exists(resource: sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
    return is_in(types, types.c.resource == resource, types.c.class_ == ANY, types.c.stays == 1)


def contents(connection: Connection, resources: sa.Select[tuple[int]]) -> dict[int, Told]:
    """The resources of a query that there are, by their numbers, as they are now."""
    connection.execute(picked.delete())
    connection.execute(picked.insert().from_select(["number"], resources))
    s, p, v = statements, terms.alias("p"), terms.alias("v")
    link = sa.and_(s.c.resource == picked.c.number, s.c.property != SUBJECT, s.c.stays == 1)
    source = in_order(picked, (s, link), (p, p.c.number == s.c.property), (v, v.c.number == s.c.value))
    query = sa.select(picked.c.number, p.c.label, v.c.term).select_from(source).distinct()
    stated: dict[int, list[tuple[str, str]]] = defaultdict(list)
    for number, property_, value in connection.execute(query):
        stated[number].append((property_, value))
    source = in_order(picked, (s, sa.and_(link, _is_strong())), (v, v.c.number == s.c.value))
    references = sa.select(picked.c.number, sa.func.coalesce(v.c.label, v.c.term)).select_from(source).distinct()
    strongly: dict[int, list[str]] = defaultdict(list)
    for number, name in connection.execute(references.where(_exists(s.c.value))):
        strongly[number].append(name)
    names = names_of(connection, stated)
    return {
        number: Told(names[number], tuple(sorted(pairs)), tuple(sorted(strongly[number])))
        for number, pairs in stated.items()
    }


def names_of(connection: Connection, resources: Iterable[int]) -> dict[int, str]:
    """The IRIs of resources, or names of blank nodes."""
    fill(connection, picked, ((number,) for number in resources))
    source = in_order(picked, (terms, terms.c.number == picked.c.number))
    query = sa.select(terms.c.number, sa.func.coalesce(terms.c.label, terms.c.term)).select_from(source)
    return {row[0]: row[1] for row in connection.execute(query)}
