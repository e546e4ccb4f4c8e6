"""Matches: a publication that satisfies a subscription, with its bindings (semantics, section 6)."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias

from triplewire.model.terms import IRI, Literal, Term, Triple, term_to_json

Binding: TypeAlias = Mapping[str, Term]


class SharedBinding(dict[str, Term]):
    """A dictionary that cannot be changed, because several matches may share it."""

    __slots__ = ()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("matches share their bindings: they cannot be changed; dict(binding) is a copy that can")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type[SharedBinding], tuple[dict[str, Term]]]:
        return SharedBinding, (dict(self),)


class _Slots:
    """The slots of `Match`, without its frozen constructor. Filling them and changing the class to `Match`, which adds
    no slots, takes a quarter of the time of `Match(...)`."""

    __slots__ = ("bindings", "construct", "matched_at", "publication", "subscription", "truncated")


@dataclass(frozen=True, slots=True)
class Match(_Slots):
    """One publication that satisfies one subscription.

    `bindings` are distinct assignments of the selected variables (an ASK query has one empty one), at most
    `Settings.max_bindings`, in the order of `row_key`. `truncated` says that there are, or may be, more: that many are
    not kept, or listing them passed `Settings.max_steps` (then there may be none at all), or an operator failed.
    `construct` is the graph that a CONSTRUCT query makes of the bindings.
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
    """The matches of rows, all with the same time."""
    match: Any
    for publication, subscription, bindings, truncated, construct in rows:
        match = _Slots()
        match.publication, match.subscription, match.bindings = publication, subscription, bindings
        match.truncated, match.matched_at, match.construct = truncated, matched_at, construct
        match.__class__ = Match
        yield match


def term_key(term: Term) -> tuple[str, str, str, str]:
    """A sort key for terms that depends on nothing but the term."""
    if isinstance(term, IRI):
        return "I", term.value, "", ""
    if isinstance(term, Literal):
        return "L", term.lexical, term.datatype, term.language
    return "B", term.label, "", ""


def row_key(row: Iterable[Term | None]) -> tuple[tuple[str, ...], ...]:
    """A sort key for the values of the selected variables in their order; None is one that is unbound, and comes
    first. Whatever finds the bindings of a match, they are in this order."""
    return tuple([("",) if term is None else term_key(term) for term in row])


def bindings_to_json(bindings: tuple[Binding, ...]) -> list[dict[str, dict[str, str]]]:
    """Bindings as a list of {variable: term}."""
    return [{name: term_to_json(term) for name, term in binding.items()} for binding in bindings]


def bindings_text(bindings: tuple[Binding, ...]) -> str:
    """Bindings as JSON text, a list of {variable: term}."""
    return json.dumps(bindings_to_json(bindings), ensure_ascii=False)
