"""Subscriptions: standing queries in the intermediate representation (semantics, section 2)."""

from __future__ import annotations

from dataclasses import dataclass, field

from triplewire.ir.nodes import PatternTerm, Where
from triplewire.model.terms import shortened


@dataclass(frozen=True, repr=False)
class Subscription:
    """A standing query, compiled by `triplewire.parse`. Two are equal if all fields except the warnings are.

    `select` names the variables that the bindings hold, in order; `construct` is the template of a CONSTRUCT query;
    `ask` marks a query whose one binding is empty; `warnings` are messages to the author; the text was
    parsed with `prefixes` and `base`, which are kept so that it can be parsed again.
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

    def __repr__(self) -> str:
        text = shortened(" ".join(self.text.split()), 160)
        return f"<Subscription {shortened(self.id, 60)!r} in {self.language}: {text}>"
