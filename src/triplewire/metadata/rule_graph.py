"""The global graph of atomic rules (MDV paper, sections 3.3.2 to 3.3.4): rules are merged into it and go out of it.

A rule that is there already, of whichever subscription, is found by its canonical text, level by level, as the text
of a join rule names its inputs by their numbers. What no subscription and no join rule refers to any more is removed,
level by level from above: references are counted where they are, in the tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from triplewire.languages.mdv import CONTAINS
from triplewire.metadata.decompose import GRAM, Atomic, Decomposition, Join, Kind, Trigger
from triplewire.metadata.dictionary import digest_of, numbers_of
from triplewire.metadata.keys import BRIEF
from triplewire.metadata.tables import ANY, SUBJECT, groups, joins, rules, subscriptions, triggers
from triplewire.metadata.working import fill, removable, wanted
from triplewire.model.terms import IRI
from triplewire.store.database import insert_rows

BOTH_WAYS = (Kind.SAME, Kind.REFERS, Kind.REFERRED)
"""Kinds of join rules that are evaluated from either input; others begin with what their parent registers."""


def merge(connection: Connection, decomposition: Decomposition) -> list[int]:
    """Add atomic rules that are not there yet; returns the numbers of all, by their places."""
    iris = {x for rule in decomposition.rules for x in rule if isinstance(x, IRI)}
    terms = numbers_of(connection, iris)
    numbers = [0] * len(decomposition.rules)
    by_level: dict[int, list[int]] = {}
    for place, level in enumerate(decomposition.levels):
        by_level.setdefault(level, []).append(place)
    group_of = _groups(connection, decomposition.rules, terms)
    for level, places in sorted(by_level.items()):
        texts = {place: text_of(decomposition.rules[place], numbers) for place in places}
        digests = {place: digest_of(text) for place, text in texts.items()}
        known = _known(connection, rules.c.rule, rules.c.digest, list(digests.values()))
        following = (connection.execute(sa.select(sa.func.max(rules.c.rule))).scalar() or 0) + 1
        new: list[int] = []
        for place in places:
            if (number := known.get(digests[place])) is None:
                number = known[digests[place]] = following
                following += 1
                new.append(place)
            numbers[place] = number
        insert_rows(connection, rules, [(numbers[x], digests[x], texts[x], level) for x in new])
        if level:
            _insert_joins(connection, decomposition, new, numbers, level, group_of)
        else:
            _insert_triggers(connection, decomposition, new, numbers, terms)
    return numbers


def text_of(rule: Atomic, numbers: Sequence[int]) -> str:
    """The canonical text of an atomic rule, after figure 7 of the paper. `numbers`: of its inputs, by place."""
    if isinstance(rule, Trigger):
        of = "s" if rule.property is None else f"s.{rule.property}"
        return f"search {rule.class_ or 'any'} s register s where {of} {rule.operator} '{rule.constant}'"
    return (
        f"search view({numbers[rule.parent]}) a, view({numbers[rule.child]}) b register a where "
        f"{_condition(rule.kind, str(rule.property), rule.comparison, str(rule.other))}"
    )


def _condition(kind: Kind, property_: str, comparison: str, other: str) -> str:
    return {
        Kind.SAME: "a = b",
        Kind.OR: "a or b",
        Kind.WITHOUT: "a and not b",
        Kind.REFERS: f"a.{property_} = b",
        Kind.REFERRED: f"b.{property_} = a",
        Kind.MISSES: f"not a.{property_} = b",
        Kind.VALUES: f"a.{property_} {comparison} b.{other}",
        Kind.OWN: f"a.{property_} {comparison} a.{other}",
        Kind.ALL: "b",
    }[kind]


def _known(
    connection: Connection, number: sa.Column[Any], digest: sa.Column[Any], digests: list[str]
) -> dict[str, int]:
    """The numbers of those that are there, by their digests."""
    fill(connection, wanted, ((x,) for x in dict.fromkeys(digests)))
    query = sa.select(digest, number).select_from(wanted.join(number.table, digest == wanted.c.digest))
    return {row[0]: row[1] for row in connection.execute(query).all()}


def _groups(connection: Connection, atomic: Sequence[Atomic], terms: Mapping[IRI, int]) -> dict[tuple[Any, ...], int]:
    """The numbers of the groups of join rules, made where they are new. There are few."""
    known: dict[tuple[Any, ...], int] = {
        (row.kind, row.property, row.comparison, row.other): row.number for row in connection.execute(sa.select(groups))
    }
    new = dict.fromkeys(key for rule in atomic if isinstance(rule, Join) and (key := _group(rule, terms)) not in known)
    first = max(known.values(), default=0) + 1
    insert_rows(connection, groups, [(number, *key) for number, key in enumerate(new, first)])
    return known | {key: number for number, key in enumerate(new, first)}


def _group(rule: Join, terms: Mapping[IRI, int]) -> tuple[Any, ...]:
    numbers = (SUBJECT if x is None else terms[x] for x in (rule.property, rule.other))
    property_, other = numbers
    return rule.kind.value, property_, rule.comparison, other


def _insert_joins(
    connection: Connection,
    decomposition: Decomposition,
    new: Sequence[int],
    numbers: Sequence[int],
    level: int,
    group_of: Mapping[tuple[Any, ...], int],
) -> None:
    made = [(place, rule) for place in new if isinstance(rule := decomposition.rules[place], Join)]
    inputs = [numbers[x] for _, rule in made for x in (rule.parent, rule.child)]
    fan_out = Counter(inputs)
    fill(connection, removable, ((x,) for x in fan_out))
    for column in (joins.c.parent, joins.c.child):
        query = sa.select(column, sa.func.count()).select_from(removable.join(joins, column == removable.c.rule))
        fan_out.update({row[0]: row[1] for row in connection.execute(query.group_by(column))})
    iris = {iri for _, rule in made for iri in (rule.property, rule.other) if iri is not None}
    terms = numbers_of(connection, iris)
    rows = []
    for place, rule in made:
        parent, child = numbers[rule.parent], numbers[rule.child]
        drives = "child" if rule.kind in BOTH_WAYS and fan_out[child] < fan_out[parent] else "parent"
        rows.append((numbers[place], level, rule.kind.value, drives, group_of[_group(rule, terms)], parent, child))
    insert_rows(connection, joins, rows)
    is_input = triggers.c.rule.in_(sa.select(removable.c.rule))
    connection.execute(triggers.update().where(is_input, triggers.c.feeds == 0).values(feeds=1))


def _insert_triggers(
    connection: Connection,
    decomposition: Decomposition,
    new: Sequence[int],
    numbers: Sequence[int],
    terms: Mapping[IRI, int],
) -> None:
    made = [(numbers[place], rule) for place in new if isinstance(rule := decomposition.rules[place], Trigger)]
    grams = Counter(
        gram for _, rule in made if rule.operator == f"{CONTAINS} {GRAM}" for gram in grams_of(rule.constant)
    )
    fill(connection, wanted, ((x,) for x in grams))
    brief_, of_grams = triggers.c.brief, triggers.c.operator == f"{CONTAINS} {GRAM}"
    query = sa.select(brief_, sa.func.count()).where(of_grams, brief_.in_(sa.select(wanted.c.digest)))
    grams.update({row[0]: row[1] for row in connection.execute(query.group_by(brief_))})
    rows = []
    for number, rule in made:
        class_ = ANY if rule.class_ is None else terms[rule.class_]
        property_ = SUBJECT if rule.property is None else terms[rule.property]
        brief = rule.constant[:BRIEF]
        if rule.operator == f"{CONTAINS} {GRAM}":
            brief = min(grams_of(rule.constant), key=lambda gram: (grams[gram], gram))
        rows.append((number, rule.operator, class_, property_, rule.constant, brief, 0))
    insert_rows(connection, triggers, rows)


def grams_of(text: str, size: int = GRAM) -> set[str]:
    """The pieces of so many characters of a text."""
    return {text[start : start + size] for start in range(len(text) - size + 1)}


# --- rules that go ---------------------------------------------------------------------------------------------------


def remove_unreferenced(connection: Connection, ends: Sequence[int]) -> None:
    """Remove those of the end rules that nothing refers to, and what only they referred to."""
    fill(connection, removable, ((x,) for x in dict.fromkeys(ends)))
    while True:
        number = removable.c.rule
        is_input = sa.exists().where(joins.c.parent == number) | sa.exists().where(joins.c.child == number)
        is_end = sa.exists().where(subscriptions.c.rule == number)
        connection.execute(removable.delete().where(is_input | is_end))
        gone = sa.select(number)
        inputs = sa.select(joins.c.parent).where(joins.c.rule.in_(gone))
        inputs = inputs.union(sa.select(joins.c.child).where(joins.c.rule.in_(gone)))  # type: ignore[assignment]
        following = [row[0] for row in connection.execute(inputs)]
        for table in (rules, triggers, joins):
            connection.execute(table.delete().where(table.c.rule.in_(gone)))
        fed = sa.exists().where(joins.c.parent == triggers.c.rule) | sa.exists().where(joins.c.child == triggers.c.rule)
        fill(connection, removable, ((x,) for x in following))
        of_these = triggers.c.rule.in_(sa.select(removable.c.rule))
        connection.execute(triggers.update().where(of_these, ~fed).values(feeds=0))
        if not following:
            break
