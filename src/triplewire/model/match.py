"""A match: which publication satisfied which subscription, and how (semantics, section 6)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias

from triplewire.model.terms import IRI, Literal, Term, Triple, term_to_json

Binding: TypeAlias = Mapping[str, Term]


class SharedBinding(dict[str, Term]):
    """A binding that matches may share: a dictionary that cannot be changed."""

    __slots__ = ()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("matches share their bindings: they cannot be changed; dict(binding) is a copy that can")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type[SharedBinding], tuple[dict[str, Term]]]:
        return SharedBinding, (dict(self),)


class _Slots:
    """A match while it is made. Filling its slots takes a quarter of the time that `Match(...)` does; and as `Match` is
    derived from it and adds none, it becomes one by a change of its class."""

    __slots__ = ("bindings", "construct", "matched_at", "publication", "subscription", "truncated")


@dataclass(frozen=True, slots=True)
class Match(_Slots):
    """One publication that satisfies one subscription.

    `bindings` are distinct assignments of the selected variables (an ASK query has one empty one), at most
    `Settings.max_bindings`; `truncated` says that there are more. `construct` is the graph that a CONSTRUCT query
    makes of them.
    """

    publication: str
    subscription: str
    bindings: tuple[Binding, ...]
    truncated: bool = False
    matched_at: dt.datetime | None = field(default=None, compare=False)
    construct: tuple[Triple, ...] | None = None

    def to_json(self, bindings: bool = True) -> dict[str, Any]:
        """The row of the JSON Lines output; terms as in SPARQL 1.1 JSON results."""
        row: dict[str, Any] = {"publication": self.publication, "subscription": self.subscription}
        if bindings:
            row["bindings"] = bindings_to_json(self.bindings)
        row["truncated"] = self.truncated
        return row


MatchRow: TypeAlias = tuple[str, str, tuple[Binding, ...], bool, tuple[Triple, ...] | None]
"""Publication, subscription, bindings, truncated, construct."""


def matches_of(rows: Iterable[MatchRow], matched_at: dt.datetime) -> Iterator[Match]:
    """Matches of rows."""
    match: Any
    for publication, subscription, bindings, truncated, construct in rows:
        match = _Slots()
        match.publication, match.subscription, match.bindings = publication, subscription, bindings
        match.truncated, match.matched_at, match.construct = truncated, matched_at, construct
        match.__class__ = Match
        yield match


def term_key(term: Term) -> tuple[str, str, str, str]:
    """What terms are ordered by where the order must depend on them alone."""
    if isinstance(term, IRI):
        return "I", term.value, "", ""
    if isinstance(term, Literal):
        return "L", term.lexical, term.datatype, term.language
    return "B", term.label, "", ""


def bindings_to_json(bindings: tuple[Binding, ...]) -> list[dict[str, dict[str, str]]]:
    """Bindings as a list of {variable: term}."""
    return [{name: term_to_json(term) for name, term in binding.items()} for binding in bindings]
