"""Subscriptions as rows of a saved engine, and back.

A row is a line of a subscription file. What a name in the search clause of an MDV rule means depends on the rules that
were there when it was registered; those that it found are written down as its `rules`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from triplewire.engine.compiler import Compiler, line_of, row_of
from triplewire.engine.rules import Seen
from triplewire.engine.store.directory import damaged
from triplewire.errors import StoreError, TriplewireError
from triplewire.ir.subscription import Subscription

_FIELDS = {"id", "language", "query", "prefixes", "base"}


def rows(subscriptions: Iterable[Subscription], compiler: Compiler) -> Iterator[bytes]:
    """The subscriptions as rows, each proved to give the same one again. Raises `StoreError` for one that does not."""
    subscriptions = tuple(subscriptions)
    rules = {subscription.id: subscription for subscription in subscriptions if subscription.language == "mdv"}
    before: dict[str, Subscription] = {}
    for subscription in subscriptions:
        yield proved_row(subscription, rules, before, compiler)
        if subscription.language == "mdv":
            before[subscription.id] = subscription


def proved_row(
    subscription: Subscription,
    rules: Mapping[str, Subscription],
    before: Mapping[str, Subscription],
    compiler: Compiler,
) -> bytes:
    """A subscription as a row that is proved to give it again, with some of the `rules` there are now, or of those
    `before` it. Raises `StoreError` where it does not."""
    row = row_of(subscription)
    for visible in (rules, before) if subscription.language == "mdv" else (before,):
        seen = Seen(visible)
        if _compiled(row, seen, compiler, subscription.id) == subscription:
            break
    else:
        raise StoreError(
            "its text does not give the registered subscription any more",
            source=subscription.id,
            remedy="register it again from its text; a rule that it names may have changed",
        )
    if seen.used:
        row["rules"] = sorted(seen.used)
    return line_of(row)


def parsed_row(line: bytes, source: str) -> dict[str, Any]:
    """A line as a row. Raises `StoreError`."""
    try:
        row = json.loads(line.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise damaged(Path(source), "a row of its subscriptions is no JSON") from error
    if not isinstance(row, dict) or not row.keys() >= _FIELDS:
        raise damaged(Path(source), "a row of its subscriptions lacks a field")
    return row


def compiled_rows(rows: Mapping[str, Mapping[str, Any]], compiler: Compiler, source: str) -> Iterator[Subscription]:
    """The subscriptions of rows, by id, in their order; a rule is compiled after those that it names."""
    done: dict[str, Subscription] = {}
    for first in rows:
        way = [first]  # each rule on it names the next
        while way:
            id_ = way[-1]
            if id_ not in done:
                try:
                    named = _Named(done, rows[id_].get("rules", ()))
                    done[id_] = _compiled(rows[id_], named, compiler, source)
                except _Wait as wait:
                    name = str(wait)
                    if name in way or name not in rows:
                        raise damaged(Path(source), f"the rule {id_!r} names {name!r} in vain") from None
                    way.append(name)
                    continue
            way.pop()
        yield done[first]


def checked(subscription: Subscription, compiler: Compiler, source: str) -> Subscription:
    """The subscription with the warnings of this engine. Raises `StoreError` where an operator is missing."""
    try:
        return compiler.checked(subscription)
    except TriplewireError as error:
        raise StoreError(f"the subscription {subscription.id!r} cannot be used: {error}", source=source) from error


class _Wait(Exception):
    """A rule names another that is not compiled yet."""


class _Named(Seen):
    """Those of the compiled rules that a row names."""

    def __init__(self, rules: Mapping[str, Subscription], names: Iterable[str]) -> None:
        super().__init__(rules)
        self.names = frozenset(names)

    def __getitem__(self, name: str) -> Subscription:
        if name in self.names and name not in self.rules:
            raise _Wait(name)
        if name not in self.names:
            raise KeyError(name)
        return self.rules[name]

    def __len__(self) -> int:
        return len(self.names)


def _compiled(
    row: Mapping[str, Any], rules: Mapping[str, Subscription], compiler: Compiler, source: str
) -> Subscription:
    try:
        return compiler.compiled(row, rules, full=False)
    except (TriplewireError, TypeError, ValueError, AttributeError) as error:
        raise StoreError(f"the subscription {row['id']!r} cannot be compiled again: {error}", source=source) from error
