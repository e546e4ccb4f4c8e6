"""The filter (MDV paper, section 3.4): which atomic rules register which resources, in statements over sets.

    changed(connection)            after a batch of documents: where rules register other resources than before
    evaluated(connection, rules)   rules over all documents, as for a new subscription

First the triggering rules: statements are joined with them through the index of operators, classes, properties and
constants. Then, level by level, the join rules: one statement for each kind and direction, whatever their number.

The paper stores what rules register, and joins what is new with what is old. Here each row says itself whether it
holds before the batch and after it, and join rules are evaluated on a *region* of resources that is large enough:
those with changes, those from which links lead to them, and those to which links lead from any of these. So nothing
has to be stored and mended, and what the paper's first pass (before) and its second and third pass (after) find is
found in one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from itertools import compress, groupby
from operator import itemgetter
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from triplewire.languages.mdv import CONTAINS
from triplewire.metadata.conditions import OPERATORS, compared
from triplewire.metadata.decompose import Kind
from triplewire.metadata.rule_graph import BOTH_WAYS, grams_of
from triplewire.metadata.tables import groups, joins, statements, terms, triggers, types
from triplewire.metadata.working import (
    among,
    asked,
    asked_joins,
    asked_properties,
    asked_triggers,
    batch,
    changes,
    dirty,
    empty,
    emptying,
    fill,
    filter_data,
    fulfilled,
    grams,
    hits,
    in_order,
    is_in,
    moved_rows,
    region,
    wanted,
)


class _Input(NamedTuple):
    """Which statements are joined with which triggering rules: those of `first` (a table that says which)."""

    first: sa.Table
    condition: sa.ColumnElement[bool]
    triggers: sa.Table
    only: sa.ColumnElement[bool]


_OF_DIRTY = _Input(
    dirty,
    sa.and_(statements.c.resource == dirty.c.resource, statements.c.property == dirty.c.property),
    triggers,
    sa.true(),
)
_OF_REGION = _Input(region, statements.c.resource == region.c.resource, triggers, triggers.c.feeds == 1)
_OF_ALL = _Input(asked_properties, statements.c.property == asked_properties.c.property, asked_triggers, sa.true())


def changed(connection: Connection) -> None:
    """Fill `changes` and `hits` with what the statements of the batch change that come and go."""
    for table in (dirty, region, changes, hits):
        connection.execute(emptying(table))
    connection.execute(_dirtied())
    _trigger(connection, _OF_DIRTY, changes, changes_only=True)
    kinds, depth = _kinds_and_depth(connection, groups, joins)
    if depth and _spread(connection, tuple(map(Kind, kinds)), depth) and _trigger(connection, _OF_REGION, hits):
        _join(connection, joins, kinds, depth)


@cache
def _dirtied() -> sa.Insert:
    s, of_batch = statements, sa.select(batch.c.document)
    moved = sa.select(s.c.resource, s.c.property).where(among(s.c.document, of_batch), s.c.was != s.c.stays)
    retyped = sa.select(types.c.resource).where(among(types.c.document, of_batch), types.c.was != types.c.stays)
    of_retyped = sa.select(s.c.resource, s.c.property).where(among(s.c.resource, retyped))
    return dirty.insert().from_select(["resource", "property"], moved.union(of_retyped))


def _kinds_and_depth(connection: Connection, of_kinds: sa.Table, of_levels: sa.Table) -> tuple[list[str], int]:
    """The kinds of join rules that there are, and their highest level."""
    of_each, highest = _kinds_and_highest(of_kinds, of_levels)
    return list(connection.execute(of_each).scalars()), connection.execute(highest).scalar() or 0


@cache
def _kinds_and_highest(of_kinds: sa.Table, of_levels: sa.Table) -> tuple[sa.Select[Any], sa.Select[Any]]:
    return sa.select(of_kinds.c.kind).distinct(), sa.select(sa.func.max(of_levels.c.level))


def evaluated(connection: Connection, rules: Iterable[int]) -> None:
    """Fill `hits` with what these rules register, and those that they depend on, of all documents."""
    fill(connection, asked, ((rule,) for rule in dict.fromkeys(rules)))
    rows = 1
    while rows > 0:
        is_asked, number = joins.c.rule.in_(sa.select(asked.c.rule)), sa.select(asked.c.rule)
        inputs = sa.union(*(sa.select(side.label("rule")).where(is_asked) for side in (joins.c.parent, joins.c.child)))
        new = sa.select(inputs.subquery().c.rule)
        rows = moved_rows(
            connection, asked.insert().from_select(["rule"], new.where(new.selected_columns.rule.not_in(number)))
        )
    for table, source in ((asked_triggers, triggers), (asked_joins, joins)):
        empty(connection, table)
        of_these = sa.select(*source.c).where(source.c.rule.in_(sa.select(asked.c.rule)))
        connection.execute(table.insert().from_select([column.key for column in table.c], of_these))
    connection.execute(asked_properties.delete())
    named = sa.select(asked_triggers.c.property).distinct()
    connection.execute(asked_properties.insert().from_select(["property"], named))
    empty(connection, hits)
    _trigger(connection, _OF_ALL, hits)
    _join(connection, asked_joins, *_kinds_and_depth(connection, asked_joins, asked_joins))


# --- triggering rules ------------------------------------------------------------------------------------------------


def _trigger(connection: Connection, given: _Input, into: sa.Table, *, changes_only: bool = False) -> int:
    """Join statements with triggering rules: those of a batch for all operators together, those of all documents for
    one operator after the other. Returns how many rows come of it."""
    used = tuple(compress(OPERATORS, connection.execute(_which_operators(given.triggers)).one()))
    if given is not _OF_ALL:
        empty(connection, filter_data)
        connection.execute(_gathered(given))
    rows = 0
    for operators in [(operator,) for operator in used] if given is _OF_ALL else [used] if used else []:
        if pieces := tuple(operator for operator in operators if operator.startswith(f"{CONTAINS} ")):
            _cut(connection, given, pieces)
        rows += _insert_hits(connection, into, _triggered(given, operators), changes_only=changes_only)
    return rows


@cache
def _which_operators(table: sa.Table) -> sa.Select[*tuple[Any, ...]]:
    return sa.select(*(sa.exists().where(table.c.operator == operator).label(operator) for operator in OPERATORS))


@cache
def _gathered(given: _Input) -> sa.Insert:
    return filter_data.insert().from_select(filter_data.c.keys(), _data(given))


def _data(given: _Input) -> sa.Select[Any]:
    """The statements as rows of `filter_data`."""
    s, y, v = statements, types, terms
    was, stays = (s.c[version] * y.c[version] for version in ("was", "stays"))
    return sa.select(
        *(s.c.resource, s.c.property, y.c.class_.label("class_"), s.c.value, was.label("was"), stays.label("stays")),
        *(v.c.label, v.c.literal, v.c.number_key, v.c.instant_key),
    ).select_from(
        in_order(given.first, (s, given.condition), (y, y.c.resource == s.c.resource), (v, v.c.number == s.c.value))
    )


def _data_of(given: _Input) -> Any:
    """All statements are too many to be gathered: they are joined as they come."""
    return _data(given).subquery("filter_data") if given is _OF_ALL else filter_data


@lru_cache(64)
def _triggered(given: _Input, operators: tuple[str, ...]) -> Any:
    return sa.union_all(*(_triggered_by(given, operator) for operator in operators))


def _triggered_by(given: _Input, operator: str) -> sa.Select[Any]:
    d, t = _data_of(given), given.triggers
    others: list[tuple[Any, Any]] = []
    is_found = sa.and_(t.c.operator == operator, t.c.class_ == d.c.class_, t.c.property == d.c.property, given.only)
    if operator.startswith(f"{CONTAINS} "):
        others.append((grams, grams.c.term == d.c.value))
        is_found = sa.and_(is_found, t.c.brief == grams.c.gram)
    others.append((t, sa.and_(is_found, OPERATORS[operator](d.c, t.c))))
    rows = sa.select(t.c.rule, d.c.resource, d.c.was, d.c.stays).select_from(in_order(d, *others))
    return rows if given is _OF_ALL else rows.where(_is_asked(given, t.c.operator == operator))


def _is_asked(given: _Input, of_operators: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    """Does some rule ask one of these operators of the class and property of a row? For a batch each pair of the two is
    looked up once, as no rule asks anything of most."""
    d, t = _data_of(given), given.triggers
    if given is _OF_ALL:
        return is_in(t, of_operators, t.c.class_ == d.c.class_, t.c.property == d.c.property)
    return sa.tuple_(d.c.class_, d.c.property).in_(_asked_pairs(given, of_operators))


def _asked_pairs(given: _Input, of_operators: sa.ColumnElement[bool]) -> sa.Select[tuple[int, int]]:
    t = given.triggers
    pair = sa.select(filter_data.c.class_, filter_data.c.property).distinct().subquery("pair")
    is_there = is_in(t, of_operators, t.c.class_ == pair.c.class_, t.c.property == pair.c.property)
    return sa.select(pair.c.class_, pair.c.property).where(is_there)


def _cut(connection: Connection, given: _Input, operators: tuple[str, ...]) -> None:
    """Cut the literals that are searched into pieces, and keep those that some rule is found by."""
    searched, known = _searched(given, operators)
    sizes = [int(operator.removeprefix(f"{CONTAINS} ")) for operator in operators]
    texts = connection.execute(searched).all()

    def cut(text: str) -> set[str]:
        return {gram for size in sizes for gram in grams_of(text, size)}

    if given is not _OF_ALL:  # then the rules are few, and so are the texts
        cut = cache(cut)
        fill(connection, wanted, ((gram,) for gram in {gram for _, text in texts for gram in cut(text)}))
    pieces = set(connection.execute(known).scalars())
    fill(connection, grams, ((term, gram) for term, text in texts for gram in cut(text) & pieces))


@lru_cache(64)
def _searched(given: _Input, operators: tuple[str, ...]) -> tuple[sa.Select[Any], sa.Select[Any]]:
    """Literals that are searched, and the pieces that rules are found by: of a batch, those that are `wanted`."""
    d, t = _data_of(given), given.triggers
    of_operators = t.c.operator.in_(operators)
    texts = sa.select(d.c.value, d.c.literal).where(d.c.literal.is_not(None), _is_asked(given, of_operators)).distinct()
    if given is _OF_ALL:
        return texts, sa.select(t.c.brief).where(of_operators).distinct()
    pair = _asked_pairs(given, of_operators).subquery("asked_pair")
    is_of_pair = sa.and_(t.c.class_ == pair.c.class_, t.c.property == pair.c.property)
    is_known = is_in(t, of_operators, is_of_pair, t.c.brief == wanted.c.digest)
    pieces = sa.select(wanted.c.digest).select_from(in_order(pair, (wanted, sa.true()))).where(is_known).distinct()
    return texts, pieces


def _insert_hits(connection: Connection, into: sa.Table, rows: Any, *, changes_only: bool = False) -> int:
    """Insert rows of rule, resource, was, stays: each pair once. Returns how many."""
    return moved_rows(connection, _insertion(into, rows, changes_only))


@lru_cache(128)
def _insertion(into: sa.Table, rows: Any, changes_only: bool) -> sa.Insert:
    each = rows.subquery()
    was, stays = sa.func.max(each.c.was), sa.func.max(each.c.stays)
    once = sa.select(each.c.rule, each.c.resource, was, stays).group_by(each.c.rule, each.c.resource)
    condition = was != stays if changes_only else was + stays > 0
    return into.insert().from_select(["rule", "resource", "was", "stays"], once.having(condition))


# --- the region of join rules ----------------------------------------------------------------------------------------


def _spread(connection: Connection, kinds: tuple[Kind, ...], depth: int) -> bool:
    """Fill the region: resources where an input of a join rule or a link changes, then upwards, then downwards.
    Returns whether there are any."""
    if not moved_rows(connection, _begun_region()):
        return False
    for is_upwards in (True, False):
        connection.execute(region.update().values(step=0))
        for step in range(depth):
            grown = _grown(kinds, step, is_upwards)
            if grown is None or not moved_rows(connection, grown):
                break
    return True


@cache
def _begun_region() -> sa.Insert:
    fed = sa.select(changes.c.resource).select_from(
        in_order(changes, (triggers, sa.and_(triggers.c.rule == changes.c.rule, triggers.c.feeds == 1)))
    )
    linked = sa.select(groups.c.property).union(sa.select(groups.c.other))
    at_link = sa.select(dirty.c.resource).where(dirty.c.property.in_(linked))
    seeds = fed.union(at_link).subquery()
    return region.insert().from_select(["resource", "step"], sa.select(seeds.c.resource, sa.literal(0)))


@lru_cache(64)
def _grown(kinds: tuple[Kind, ...], step: int, is_upwards: bool) -> sa.Insert | None:
    """Adds what links of these kinds lead to from the resources of a step; None: they lead nowhere else."""
    r = region.alias("r")
    reached = [rows for kind in kinds if (rows := _reached(kind, r, step + 1, is_upwards)) is not None]
    reached = [rows.where(r.c.step == step) for rows in reached]
    return region.insert().from_select(["resource", "step"], sa.union(*reached)) if reached else None


def _reached(kind: Kind, r: Any, step: int, is_upwards: bool) -> sa.Select[Any] | None:
    s, g = statements, groups
    of_kind = g.c.kind == kind.value
    if kind in (Kind.REFERS, Kind.MISSES, Kind.REFERRED):
        to_subject = is_upwards == (kind != Kind.REFERRED)
        here, there = (s.c.value, s.c.resource) if to_subject else (s.c.resource, s.c.value)
        others = [(g, of_kind), (s, sa.and_(s.c.property == g.c.property, here == r.c.resource))]
    elif kind == Kind.VALUES:
        there = s.c.resource
        others = [(g, of_kind), (s, s.c.property.in_((g.c.property, g.c.other)))]
    elif kind == Kind.ALL:
        there = types.c.resource
        others = [(types, sa.true())]
    else:
        return None
    rows = sa.select(there.label("resource"), sa.literal(step)).select_from(in_order(r, *others)).distinct()
    return rows.where(there.not_in(sa.select(region.c.resource)))


# --- join rules ------------------------------------------------------------------------------------------------------


def _join(connection: Connection, table: sa.Table, kinds: Iterable[str], depth: int) -> None:
    """Evaluate join rules level by level: of each kind that there is those that begin at their parent, and at their
    child, in one statement."""
    steps = tuple(
        (level, Kind(kind), driver)
        for level in range(1, depth + 1)
        for kind in kinds
        for driver in (("parent", "child") if Kind(kind) in BOTH_WAYS else ("parent",))
    )
    if not steps:
        return
    there_are = compress(steps, connection.execute(_which_steps(table, steps)).one())
    for _, of_level in groupby(there_are, key=itemgetter(0)):
        connection.execute(emptying(fulfilled))
        connection.execute(_fulfilled())
        _insert_hits(connection, hits, _joined(table, tuple(of_level)))


@cache
def _fulfilled() -> sa.Insert:
    return fulfilled.insert().from_select(["rule"], sa.select(hits.c.rule).distinct())


@lru_cache(64)
def _which_steps(table: sa.Table, steps: tuple[tuple[int, Kind, str], ...]) -> sa.Select[*tuple[Any, ...]]:
    of_step = (
        sa.and_(table.c.level == level, table.c.kind == kind.value, table.c.driver == driver)
        for level, kind, driver in steps
    )
    return sa.select(*(sa.exists().where(here) for here in of_step))


@lru_cache(64)
def _joined(table: sa.Table, steps: tuple[tuple[int, Kind, str], ...]) -> Any:
    """What join rules register, as a query."""
    either = ("parent", "child")
    sides = (
        (level, kind, side) for level, kind, driver in steps for side in (either if kind is Kind.OR else (driver,))
    )
    return sa.union_all(*(_JOINS[kind](table, level, side) for level, kind, side in sides))


def _begun(j: sa.Table, kind: Kind, level: int, side: str, *others: tuple[Any, Any]) -> tuple[Any, Any]:
    """Results of one input of the join rules of a level, and their join with these rules and `others`. A rule with
    results is looked up once, however many it has: most drive no join rule of the kind."""
    h = hits.alias("h")
    driver = "parent" if kind is Kind.OR else side
    # `+ 0`: without statistics, PostgreSQL would read all rules of a level by its index
    of_level = sa.and_(j.c.driver == driver, j.c.kind == kind.value, j.c.level + 0 == level)
    is_driven = sa.and_(j.c[side] == fulfilled.c.rule, of_level)
    return h, in_order(fulfilled, (j, is_driven), *others, (h, h.c.rule == fulfilled.c.rule))


def _group(j: sa.Table) -> tuple[Any, Any]:
    return groups, groups.c.number == j.c.group_number


def _other(driver: str) -> str:
    return "child" if driver == "parent" else "parent"


def _same(j: sa.Table, level: int, driver: str) -> sa.Select[Any]:
    h, begun = _begun(j, Kind.SAME, level, driver)
    o = hits.alias("o")
    meets = sa.and_(o.c.rule == j.c[_other(driver)], o.c.resource == h.c.resource)
    return _selected(j, h.c.resource, h, o).select_from(in_order(begun, (o, meets)))


def _either(j: sa.Table, level: int, side: str) -> sa.Select[Any]:
    h, begun = _begun(j, Kind.OR, level, side)
    return _selected(j, h.c.resource, h).select_from(begun)


def _without(j: sa.Table, level: int, driver: str) -> sa.Select[Any]:
    h, begun = _begun(j, Kind.WITHOUT, level, driver)
    o = hits.alias("o")
    meets = sa.and_(o.c.rule == j.c.child, o.c.resource == h.c.resource)
    return _lacking(j, h, o).select_from(in_order(begun, left=(o, meets)))


def _misses(j: sa.Table, level: int, driver: str) -> sa.Select[Any]:
    h, begun = _begun(j, Kind.MISSES, level, driver, _group(j))
    s, o = statements, hits.alias("o")
    link = sa.and_(s.c.resource == h.c.resource, s.c.property == groups.c.property)
    meets = sa.and_(o.c.rule == j.c.child, o.c.resource == s.c.value)
    source = in_order(begun, (s, link), left=(o, meets))
    return _lacking(j, h, o, s).select_from(source)


def _links(kind: Kind) -> Callable[[sa.Table, int, str], sa.Select[Any]]:
    """REFERS, where the parent has the link, or REFERRED, where the child has it."""
    owner = "parent" if kind is Kind.REFERS else "child"

    def query(j: sa.Table, level: int, driver: str) -> sa.Select[Any]:
        h, begun = _begun(j, kind, level, driver, _group(j))
        s, o = statements, hits.alias("o")
        here, there = (s.c.resource, s.c.value) if driver == owner else (s.c.value, s.c.resource)
        link = sa.and_(s.c.property == groups.c.property, here == h.c.resource)
        meets = sa.and_(o.c.rule == j.c[_other(driver)], o.c.resource == there)
        source = in_order(begun, (s, link), (o, meets))
        return _selected(j, h.c.resource if driver == "parent" else there, h, o, s).select_from(source)

    return query


def _values(j: sa.Table, level: int, driver: str) -> sa.Select[Any]:
    h, begun = _begun(j, Kind.VALUES, level, driver, _group(j))
    o = hits.alias("o")
    return _comparing(j, h, begun, o, [(o, o.c.rule == j.c.child)], o.c.resource)


def _own(j: sa.Table, level: int, driver: str) -> sa.Select[Any]:
    h, begun = _begun(j, Kind.OWN, level, driver, _group(j))
    return _comparing(j, h, begun, h, [], h.c.resource)


def _comparing(j: sa.Table, h: Any, begun: Any, o: Any, others: list[tuple[Any, Any]], resource: Any) -> sa.Select[Any]:
    """A value of the parent's resource beside one of another resource, or of its own."""
    left, right = statements.alias("left_statement"), statements.alias("right_statement")
    a, b = terms.alias("left_term"), terms.alias("right_term")
    is_same = sa.and_(groups.c.comparison == "same", left.c.value == right.c.value)
    source = in_order(
        begun,
        *others,
        (left, sa.and_(left.c.resource == h.c.resource, left.c.property == groups.c.property)),
        (right, sa.and_(right.c.resource == resource, right.c.property == groups.c.other)),
        (a, a.c.number == left.c.value),
        (b, sa.and_(b.c.number == right.c.value, sa.or_(is_same, compared(groups.c.comparison, a.c, b.c)))),
    )
    return _selected(j, h.c.resource, h, o, left, right).select_from(source)


def _all(j: sa.Table, level: int, driver: str) -> sa.Select[Any]:
    h, begun = _begun(j, Kind.ALL, level, driver)
    o = hits.alias("o")

    def is_there(version: str) -> Any:
        any_child = sa.exists().where(o.c.rule == j.c.child, o.c[version] == 1).correlate(j)
        return (h.c[version] * sa.case((any_child, 1), else_=0)).label(version)

    return sa.select(j.c.rule, h.c.resource, is_there("was"), is_there("stays")).select_from(begun)


_JOINS: dict[Kind, Callable[[sa.Table, int, str], sa.Select[Any]]] = {
    Kind.SAME: _same,
    Kind.OR: _either,
    Kind.WITHOUT: _without,
    Kind.MISSES: _misses,
    Kind.REFERS: _links(Kind.REFERS),
    Kind.REFERRED: _links(Kind.REFERRED),
    Kind.VALUES: _values,
    Kind.OWN: _own,
    Kind.ALL: _all,
}


def _product(version: str, tables: tuple[Any, ...]) -> Any:
    product = tables[0].c[version]
    for table in tables[1:]:
        product = product * table.c[version]
    return product


def _selected(j: sa.Table, resource: Any, *tables: Any) -> sa.Select[Any]:
    """A row of a join rule: it holds in a version where all that it is made of does."""
    was, stays = (_product(version, tables).label(version) for version in ("was", "stays"))
    return sa.select(j.c.rule, resource.label("resource"), was, stays)


def _lacking(j: sa.Table, h: Any, absent: Any, *tables: Any) -> sa.Select[Any]:
    """The same, where `absent`, of an outer join, must not hold."""
    was, stays = (
        (_product(version, (h, *tables)) * (1 - sa.func.coalesce(absent.c[version], 0))).label(version)
        for version in ("was", "stays")
    )
    return sa.select(j.c.rule, h.c.resource.label("resource"), was, stays)
