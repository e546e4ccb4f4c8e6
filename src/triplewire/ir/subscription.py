"""Subscriptions: standing queries in the intermediate representation (semantics, section 2)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from triplewire.ir.nodes import PatternTerm, Where
from triplewire.ir.show import show
from triplewire.model.terms import shortened

REVISION_DIGITS = 16


@dataclass(frozen=True, repr=False)
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

    @property
    def revision(self) -> str:
        """What changes when another text takes the place of this one, or of a rule that it names: `revision_of`. Of a
        subscription without a text, which a program made, its tree counts."""
        return revision_of(self.language, self._stated, dict(self.prefixes), self.base, self.rules)

    @property
    def _stated(self) -> str:
        return self.text or f"{self.select} {self.ask} {self.construct} {show(self.where)}"

    # --- a tree that is made when it is first asked for

    @classmethod
    def deferred(cls, make_where: Callable[[], object], **fields: Any) -> Self:
        """The subscription with these fields, and those that have a default, whose `where` is made when it is first
        asked for. It equals the one that has it from the start."""
        subscription = object.__new__(cls)
        vars(subscription).update(fields, _make_where=make_where)
        return subscription

    @property
    def make_where(self) -> Callable[[], object] | None:
        """What makes the tree of a deferred subscription; None of any other."""
        return vars(self).get("_make_where")

    def but(self, **fields: Any) -> Self:
        """The same subscription with these fields in place of its own, deferred where this one is."""
        other = object.__new__(type(self))
        vars(other).update(vars(self), **fields)
        return other

    if not TYPE_CHECKING:  # for which any name would be an attribute

        def __getattr__(self, name: str) -> Where:
            if name != "where" or "_make_where" not in vars(self):
                raise AttributeError(f"a subscription has no {name!r}")
            where = vars(self)["where"] = vars(self)["_make_where"]()
            return where

    def __getstate__(self) -> dict[str, object]:
        _ = self.where
        return {name: value for name, value in vars(self).items() if name != "_make_where"}

    def __repr__(self) -> str:
        text = shortened(" ".join(self.text.split()), 160)
        return f"<Subscription {shortened(self.id, 60)!r} in {self.language}: {text}>"


def revision_of(
    language: str, text: str, prefixes: Mapping[str, str], base: str, rules: Iterable[Subscription] = ()
) -> str:
    """The revision of a subscription: the first 16 hexadecimal digits of a SHA-256 of its text and of what the text was
    parsed with: the MDV `rules` that it names, and those that these name, as they were then.

    It is the same in every process, on Spark, and after saving and loading.
    """
    whole: list[object] = [language.lower(), text, sorted(prefixes.items()), base]
    waiting = list(rules)
    while waiting:
        rule = waiting.pop()
        whole.append([rule.id, rule.language, rule._stated, sorted(rule.prefixes), rule.base, len(rule.rules)])
        waiting += rule.rules
    return hashlib.sha256(json.dumps(whole).encode("ascii")).hexdigest()[:REVISION_DIGITS]
