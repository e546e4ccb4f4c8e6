"""Subscriptions as rows of a saved engine, and back.

A row is a line of a subscription file. What a name in the search clause of an MDV rule means depends on the rules that
were there when it was registered; those that it found are written down as its `rules`: by their ids or, where there is
no such rule any more, or another one of that id, as rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from triplewire.engine.compiler import Compiler, row_of
from triplewire.engine.store.directory import MANIFEST, damaged, read_manifest
from triplewire.errors import StoreError, TriplewireError
from triplewire.ir.subscription import Subscription
from triplewire.languages.sources.tables import line_of
from triplewire.model.operator import Operator

MOST_GONE = 100  # rows that stand in each other
UNITS = "units"  # of the parameters of the operators that are called: a field of the manifest
_FIELDS = {"id", "language", "query", "prefixes", "base"}
_OF_POINTERS = {"id", "table", "revision"}  # (`triplewire.languages.sources.tables`)


def rows(subscriptions: Iterable[Subscription], compiler: Compiler) -> Iterator[bytes]:
    """The subscriptions as rows, each proved to give the same one again. Raises `StoreError` for one that does not."""
    subscriptions = tuple(subscriptions)
    rules = {subscription.id: subscription for subscription in subscriptions if subscription.language == "mdv"}
    before: dict[str, Subscription] = {}
    for subscription in subscriptions:
        yield line_of(proved_row(subscription, rules, (rules, before), compiler))
        if subscription.language == "mdv":
            before[subscription.id] = subscription


def proved_row(
    subscription: Subscription,
    rules: Mapping[str, Subscription],
    visible: Iterable[Mapping[str, Subscription]],
    compiler: Compiler,
    depth: int = 0,
) -> dict[str, Any]:
    """A subscription as a row that is proved to give it again, with some of the `rules` there are now, or of others
    that are `visible` to it, or of those that were there when it was registered. Raises `StoreError` where it does not.

    Its "rules" are those that it names: the id where that is still the same rule, else the whole row of the rule as it
    was. `depth`: how many rows it stands in."""
    if depth > MOST_GONE:
        what = f"it names a rule that is gone, which names another that is, and so on, more than {MOST_GONE} times"
        raise StoreError(what, source=subscription.id, remedy="register one of them again")
    row = row_of(subscription)
    for seen in (*visible, {rule.id: rule for rule in subscription.rules}):
        with suppress(StoreError):
            if (again := _compiled(row, seen, compiler, subscription.id)) == subscription:
                break
    else:
        what = "its text does not give the registered subscription any more"
        raise StoreError(what, source=subscription.id, remedy="register it again from its text")
    if again.rules:
        row["rules"] = [
            rule.id if rules.get(rule.id) == rule else proved_row(rule, rules, (), compiler, depth + 1)
            for rule in sorted(again.rules, key=lambda rule: rule.id)
        ]
    return row


def parsed_row(line: bytes, source: str) -> dict[str, Any]:
    """A line as a row. Raises `StoreError`."""
    try:
        row = json.loads(line.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise damaged(Path(source), "a row of its subscriptions is no JSON") from error
    if not isinstance(row, dict) or not (row.keys() >= _FIELDS or row.keys() >= _OF_POINTERS):
        raise damaged(Path(source), "a row of its subscriptions lacks a field")
    return row


def named_by(row: Mapping[str, Any]) -> Iterator[str]:
    """The ids of the rules that a row names, or that rules name which stand in it."""
    for rule in row.get("rules", ()):
        if isinstance(rule, Mapping):
            yield from named_by(rule)
        else:
            yield str(rule)


def compiled_rows(rows: Mapping[str, Mapping[str, Any]], compiler: Compiler, source: str) -> Iterator[Subscription]:
    """The subscriptions of rows, by id, in their order; a rule is compiled after those that it names."""
    done: dict[str, Subscription] = {}
    for first in rows:
        way = [first]  # each rule on it names the next
        while way:
            id_ = way[-1]
            if id_ not in done:
                name = next((name for name in named_by(rows[id_]) if name not in done), None)
                if name is not None:
                    if name in way or name not in rows:
                        raise damaged(Path(source), f"the rule {id_!r} names {name!r} in vain")
                    way.append(name)
                    continue
                done[id_] = _compiled_row(rows[id_], done, compiler, source)
            way.pop()
        yield done[first]


def _compiled_row(
    row: Mapping[str, Any], done: Mapping[str, Subscription], compiler: Compiler, source: str
) -> Subscription:
    """The subscription of a row, with those rules that it names, which are `done`, and those that stand in it."""
    named: dict[str, Subscription] = {}
    for rule in row.get("rules", ()):
        if isinstance(rule, Mapping):
            named[rule["id"]] = _compiled_row(rule, done, compiler, source)
        else:
            named[rule] = done[rule]
    return _compiled(row, named, compiler, source)


def checked(subscription: Subscription, compiler: Compiler, source: str) -> Subscription:
    """The subscription with the warnings of this engine. Raises `StoreError` where an operator is missing."""
    try:
        return compiler.checked(subscription)
    except TriplewireError as error:
        raise StoreError(f"the subscription {subscription.id!r} cannot be used: {error}", source=source) from error


def _compiled(
    row: Mapping[str, Any], rules: Mapping[str, Subscription], compiler: Compiler, source: str
) -> Subscription:
    try:
        return compiler.compiled(row, rules, full=False)
    except StoreError:  # of a table
        raise
    except (TriplewireError, TypeError, ValueError, AttributeError) as error:
        what = f"the subscription {row['id']!r} cannot be compiled again: {error}"
        remedy = "open it with the operators and limits that it was saved with (--operators FILE)"
        raise StoreError(what, source=source, remedy=remedy) from error


def units_of(names: Iterable[str], operators: Mapping[str, Operator]) -> dict[str, list[str]]:
    """The units of the parameters of those operators that are there."""
    return {name: [each.unit for each in operators[name].parameters] for name in sorted(names) if name in operators}


def units_of_called(directory: Path) -> dict[str, tuple[str, ...]]:
    """The operators that the subscriptions of a saved engine call, each with the units of its parameters; none where an
    earlier version saved it without an index. Raises `StoreError`."""
    manifest = read_manifest(directory)
    entry = manifest.get("index", manifest)
    units = entry.get(UNITS, {}) if isinstance(entry, Mapping) else {}
    try:
        return {str(name): tuple(map(str, of_parameters)) for name, of_parameters in units.items()}
    except (AttributeError, TypeError) as error:
        raise damaged(directory / MANIFEST, f"it does not say which operators are called ({error})") from error
