"""Rules of repositories: registered and removed, with what they hold then (MDV paper, sections 2.3 and 3.3)."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from triplewire.config import Settings
from triplewire.errors import Refusal, SubscriptionError, TriplewireError
from triplewire.ir.subscription import Subscription
from triplewire.languages import parse
from triplewire.languages.context import Context
from triplewire.languages.mdv import Rule, parse_rule
from triplewire.metadata import filter as matching
from triplewire.metadata.batches import rule_of
from triplewire.metadata.decompose import Decomposition, check_supported
from triplewire.metadata.keys import check_constants
from triplewire.metadata.messages import Applied, RuleText, Told, check_name, is_name
from triplewire.metadata.normal import Branch, normalised
from triplewire.metadata.notices import Pairs, contents, follow, hold
from triplewire.metadata.rule_graph import merge, remove_unreferenced
from triplewire.metadata.schema import Schema
from triplewire.metadata.tables import subscriptions, terms
from triplewire.metadata.working import fill, hits, in_order, picked, told, turned, wanted
from triplewire.store.database import insert_rows

AT_ONCE = 1_000
"""Subscriptions that are evaluated together: their results lie in a table of the transaction."""

_DEEPEST = 100  # rules that name rules that name rules, and so on


class _Registered(Mapping[str, Subscription]):
    """The rules of a repository that a search clause may name; new ones among them. `names`: those that are looked up
    together, others are when they are named."""

    def __init__(self, connection: Connection, repository: str, names: Iterable[str]) -> None:
        self._connection, self._repository = connection, repository
        self.texts: dict[str, RuleText | None] = {}
        self._parsed: dict[str, Subscription] = {}
        self._look_up(names)

    def _look_up(self, names: Iterable[str]) -> None:
        self.texts |= dict.fromkeys(names)
        fill(self._connection, wanted, ((name,) for name in dict.fromkeys(names) if is_name(name)))
        is_of = sa.and_(subscriptions.c.repository == self._repository, subscriptions.c.id == wanted.c.digest)
        query = sa.select(subscriptions.c.id, subscriptions.c.body).select_from(
            in_order(wanted, (subscriptions, is_of))
        )
        for name, body in self._connection.execute(query):
            self.texts[name] = _text(name, body)

    def text(self, name: str) -> RuleText | None:
        """The rule of that id."""
        if name not in self.texts:
            self._look_up([name])
        return self.texts[name]

    def __getitem__(self, name: str) -> Subscription:
        rule = self.text(name)
        if rule is None:
            raise KeyError(name)
        if name not in self._parsed:
            self._parsed[name] = self._subscription(rule)
        return self._parsed[name]

    def named_by(self, rule: RuleText) -> Mapping[str, Subscription]:
        """The rules that its search clause may name: as they were when it was registered. They may be gone by now."""
        return self if rule.rules is None else {id: self._subscription(each) for id, each in rule.rules.items()}

    def _subscription(self, rule: RuleText) -> Subscription:
        how: Any = {"prefixes": rule.prefixes, "base": rule.base, "rules": self.named_by(rule)}
        return parse(rule.query, "mdv", id=rule.id, **how)

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)

    def __len__(self) -> int:
        return len(self.texts)


def _read(
    rule: RuleText, known: _Registered, schema: Schema | None, settings: Settings
) -> tuple[RuleText, tuple[Branch, ...], Sequence[str]]:
    """A rule with those that it names, its normal form, and warnings; it is known from now on. Raises `TriplewireError`
    where it cannot be registered."""
    check_name("rule", rule.id)
    context = Context(rule.id, rule.prefixes, rule.base, rules=known.named_by(rule), settings=settings)
    stated = parse_rule(rule.query, context)
    check_constants(stated, rule.id)
    complete = _with_named(rule, stated, known)
    if schema is not None:
        schema.check_rule(stated, rule.id)
    branches = normalised(stated, context, schema.ranges() if schema is not None else None)
    check_supported(branches, rule.id)
    known.texts[rule.id] = complete
    return complete, branches, stated.warnings


def added(
    connection: Connection,
    repository: str,
    rules: Sequence[RuleText],
    schema: Schema | None,
    settings: Settings,
    *,
    replacing: bool,
) -> tuple[Applied, Pairs, Pairs]:
    """Register rules: see `Registry.subscribe`. Returns what was registered or refused, which resources they begin to
    hold, and which those that are replaced hold no longer."""
    known = _Registered(connection, repository, [rule.id for rule in rules])
    before = dict(known.texts)
    if replacing:
        rules = [rule for rule in rules if before[rule.id] != rule]
        known.texts |= {rule.id: None for rule in rules}
    decomposition, refused = Decomposition(), list[Refusal]()
    new: list[tuple[RuleText, int]] = []
    again: list[str] = []
    for rule in rules:
        try:
            registered = known.text(rule.id)
            if registered is not None:
                if registered != rule:
                    what = "the id is that of another rule of the repository"
                    raise SubscriptionError(what, source=rule.id, remedy="remove that one first")
                again.append(rule.id)
                continue
            complete, branches, warnings = _read(rule, known, schema, settings)
            new.append((complete, decomposition.add(branches)))
            refused += (Refusal("warning", rule.id, "", text) for text in warnings)
        except TriplewireError as error:
            refused.append(Refusal.of("subscription", rule.id, error))
    replaced = [rule.id for rule, _ in new if before[rule.id] is not None]
    gone = removed(connection, repository, replaced) if replaced else {}
    numbers = merge(connection, decomposition)
    following = (connection.execute(sa.select(sa.func.max(subscriptions.c.number))).scalar() or 0) + 1
    rows = [
        (number, repository, rule.id, _body(rule), numbers[place])
        for number, (rule, place) in enumerate(new, following)
    ]
    insert_rows(connection, subscriptions, rows)
    begun: dict[tuple[str, int], list[str]] = defaultdict(list)
    _collect(connection, repository, [(row[0], row[2], row[4]) for row in rows], begun, counts=1)
    _collect(connection, repository, _listed(connection, repository, again), begun, counts=None)
    ceased = {pair: rest for pair, ids in gone.items() if (rest := sorted({*ids}.difference(begun.get(pair, ()))))}
    return Applied(0 if new else -1, tuple(refused), ids=tuple([rule.id for rule, _ in new] + again)), begun, ceased


def removed(connection: Connection, repository: str, ids: Sequence[str]) -> Pairs:
    """Remove rules; returns which resources they held. Raises `SubscriptionError` where one is not there."""
    listed = _listed(connection, repository, ids)
    if missing := set(ids) - {row[1] for row in listed}:
        remedy = "`triplewire metadata results` shows its rules"
        raise SubscriptionError(f"the repository has no rule {min(missing)!r}", source=repository, remedy=remedy)
    ceased: dict[tuple[str, int], list[str]] = defaultdict(list)
    _collect(connection, repository, listed, ceased, counts=-1)
    fill(connection, picked, ((number,) for number, _, _ in listed))
    connection.execute(subscriptions.delete().where(subscriptions.c.number.in_(sa.select(picked.c.number))))
    remove_unreferenced(connection, [rule for _, _, rule in listed])
    return ceased


def registered(connection: Connection, repository: str | None) -> Iterator[tuple[str, RuleText]]:
    """Repositories and their rules."""
    query = sa.select(subscriptions.c.repository, subscriptions.c.id, subscriptions.c.body)
    if repository is not None:
        query = query.where(subscriptions.c.repository == repository)
    for owner, name, body in connection.execute(query.order_by(subscriptions.c.number)):
        yield owner, _text(name, body)


def texts(connection: Connection, repository: str, ids: Iterable[str]) -> list[RuleText]:
    """Rules of a repository, with those that they name."""
    known = _Registered(connection, repository, list(ids))
    return [text for text in known.texts.values() if text is not None]


def results(
    connection: Connection, repository: str | None, ids: Sequence[str] | None
) -> Iterator[tuple[str, str, list[str]]]:
    """Repository, id and resources of each rule, by code point."""
    all_owners = sa.select(subscriptions.c.repository).distinct().order_by(subscriptions.c.repository)
    owners = [repository] if repository is not None else list(connection.execute(all_owners).scalars())
    names: dict[int, str] = {}
    for owner in owners:
        for rule, resources in _held(connection, _listed(connection, owner, ids)):
            if missing := [number for number in resources if number not in names]:
                fill(connection, picked, ((number,) for number in missing))
                source = in_order(picked, (terms, terms.c.number == picked.c.number))
                query = sa.select(terms.c.number, terms.c.label).select_from(source)
                names |= {row[0]: row[1] for row in connection.execute(query).all()}
            yield owner, rule, sorted(map(names.__getitem__, resources))


def snapshot(connection: Connection, repository: str) -> Iterator[Told]:
    """All that belongs into the cache of a repository."""
    begun: dict[int, list[str]] = defaultdict(list)
    for rule, resources in _held(connection, _listed(connection, repository, None)):
        for resource in resources:
            begun[resource].append(rule)
    fill(connection, told, ((repository, resource, 0) for resource in begun))
    follow(connection)
    for number, now in contents(connection).items():
        yield replace(now, rules=tuple(sorted(begun.get(number, ()))))


def _with_named(rule: RuleText, stated: Rule, known: _Registered) -> RuleText:
    """The rule with those that it names. Raises `SubscriptionError` where these name rules, and so on, too deep."""
    ids = [each.meaning.id for each in stated.searched if isinstance(each.meaning, Subscription)]
    named = known.texts if rule.rules is None else rule.rules
    complete = replace(rule, rules={id: text for id in ids if (text := named[id]) is not None})
    if _depth(complete) > _DEEPEST:
        what = f"the rules that it names name rules, and so on, more than {_DEEPEST} deep"
        raise SubscriptionError(what, source=rule.id, remedy="write some of them out")
    return complete


def _depth(rule: RuleText) -> int:
    return 1 + max(map(_depth, (rule.rules or {}).values()), default=0)


def _body(rule: RuleText) -> str:
    return json.dumps({name: value for name, value in asdict(rule).items() if name != "id"})


def _text(name: str, body: str) -> RuleText:
    return rule_of({"id": name, **json.loads(body)})


def _listed(connection: Connection, repository: str, ids: Sequence[str] | None) -> list[tuple[int, str, int]]:
    """Number, id and end rule of rules of a repository (None: of all)."""
    query = sa.select(subscriptions.c.number, subscriptions.c.id, subscriptions.c.rule)
    query = query.where(subscriptions.c.repository == repository).order_by(subscriptions.c.number)
    if ids is None:
        return [tuple(row) for row in connection.execute(query).all()]
    rows: list[tuple[int, str, int]] = []
    for start in range(0, len(ids), 500):
        part = query.where(subscriptions.c.id.in_(ids[start : start + 500]))
        rows += (tuple(row) for row in connection.execute(part).all())
    return rows


def _held(connection: Connection, listed: Sequence[tuple[int, str, int]]) -> Iterator[tuple[str, list[int]]]:
    for start in range(0, len(listed), AT_ONCE):
        part = listed[start : start + AT_ONCE]
        matching.evaluated(connection, (rule for _, _, rule in part))
        fill(connection, picked, ((rule,) for rule in {rule for _, _, rule in part}))
        source = in_order(picked, (hits, hits.c.rule == picked.c.number))
        query = sa.select(hits.c.rule, hits.c.resource).select_from(source).where(hits.c.resource > 0)
        by_rule: dict[int, list[int]] = defaultdict(list)
        for rule, resource in connection.execute(query).all():
            by_rule[rule].append(resource)
        for _, name, rule in part:
            yield name, by_rule.get(rule, [])


def _collect(
    connection: Connection,
    repository: str,
    listed: Sequence[tuple[int, str, int]],
    pairs: dict[tuple[str, int], list[str]],
    *,
    counts: int | None,
) -> None:
    """Add to `pairs` what rules hold. `counts`: they begin (1) or cease (-1) to hold it, or nothing changes (None)."""
    rules_of: Counter[int] = Counter()
    for name, resources in _held(connection, listed):
        rules_of.update(resources)
        for resource in resources:
            pairs[repository, resource].append(name)
    if counts is not None and rules_of:
        fill(connection, turned, ((repository, resource, counts * rules) for resource, rules in rules_of.items()))
        hold(connection)
