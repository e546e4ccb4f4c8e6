"""A match: which publication satisfied which subscription, and how (semantics, section 6)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from triplewire.model.terms import Term, Triple, term_to_json

Binding: TypeAlias = Mapping[str, Term]


@dataclass(frozen=True, slots=True)
class Match:
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


def bindings_to_json(bindings: tuple[Binding, ...]) -> list[dict[str, dict[str, str]]]:
    """Bindings as a list of {variable: term}."""
    return [{name: term_to_json(term) for name, term in binding.items()} for binding in bindings]
