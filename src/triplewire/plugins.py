"""Find a plug-in by family and name: the built-in table first, then installed entry points.

Families: "language", "matcher", "operator". A built-in is named by "module:attribute" and imported when it is asked
for, so that nothing is loaded at import time. A package adds its own through the entry-point group
`triplewire.<family>`; a built-in cannot be shadowed. What a plug-in has to look like: `triplewire.extend`.
"""

from __future__ import annotations

import importlib
import re
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from triplewire.errors import TriplewireError

BUILT_IN: dict[str, dict[str, str]] = {
    "language": {
        "gql": "triplewire.languages.gql:parse",
        "sparql": "triplewire.languages.sparql:parse",
        "mdv": "triplewire.languages.mdv:parse",
        "predicates": "triplewire.languages.predicates:parse",
    },
    "matcher": {
        "reference": "triplewire.matchers:REFERENCE",
        "everything": "triplewire.select.everything:EVERYTHING",
        "trie": "triplewire.select.trie.maker:TRIE",
    },
    "operator": {"locIn": "triplewire.operators.location:LOC_IN", "language": "triplewire.operators.language:LANGUAGE"},
}


def names(family: str) -> list[str]:
    """The names of a family, built-in ones first."""
    built_in = list(BUILT_IN[family])
    return built_in + sorted({e.name for e in entry_points(group=f"triplewire.{family}")} - set(built_in))


def find(family: str, name: str) -> Any:
    """The plug-in itself. Raises `TriplewireError` that lists the known names."""
    place = BUILT_IN[family].get(name)
    if place is not None:
        return attribute(place)
    if re.fullmatch(r"[A-Za-z0-9_-]+", name):
        for entry in entry_points(group=f"triplewire.{family}", name=name):
            return entry.load()
    raise TriplewireError(f"there is no {family} named {name!r}", remedy=f"known: {', '.join(names(family))}")


@cache
def attribute(place: str) -> Any:
    """What "module:attribute" names; the import system takes longer to find it again than a short query to parse."""
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(module), attribute)
