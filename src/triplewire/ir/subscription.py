"""Subscriptions: standing queries in the intermediate representation (semantics, section 2)."""

from __future__ import annotations

from dataclasses import dataclass, field

from triplewire.ir.nodes import PatternTerm, Where


@dataclass(frozen=True)
class Subscription:
    """A standing query, compiled by `triplewire.parse`. Two are equal if all fields except the warnings and rules are.

    `select` names the variables that the bindings hold, in order; `construct` is the template of a CONSTRUCT query;
    `ask` marks a query whose one binding is empty; `warnings` are messages to the author; the text was
    parsed with `prefixes` and `base`, which are kept so that it can be parsed again; so are the `rules` that an MDV
    rule names, as they were then.
    """

    id: str
    language: str
    text: str
    select: tuple[str, ...]
    where: Where
    ask: bool = False
    construct: tuple[tuple[PatternTerm, PatternTerm, PatternTerm], ...] | None = None
    prefixes: tuple[tuple[str, str], ...] = ()
    base: str = ""
    warnings: tuple[str, ...] = field(default=(), compare=False)
    rules: tuple[Subscription, ...] = field(default=(), compare=False, repr=False)
