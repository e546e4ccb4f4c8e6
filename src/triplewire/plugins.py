"""Find a plug-in by family and name: the built-in table first, then installed entry points.

Families: "language", "matcher", "operator". A built-in is named by "module:attribute" and imported when it is asked
for, so that nothing is loaded at import time. A package adds its own through the entry-point group
`triplewire.<family>`; a built-in cannot be shadowed. What a plug-in has to look like: `triplewire.extend`.
"""

from __future__ import annotations

import importlib
import re
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

from triplewire.errors import ArgumentError, text_of_raised

DEFAULT_MATCHER = "trie"

BUILT_IN: dict[str, dict[str, str]] = {
    "language": {
        "gql": "triplewire.languages.gql:parse",
        "sparql": "triplewire.languages.sparql:parse",
        "rdql": "triplewire.languages.rdql:parse",
        "mdv": "triplewire.languages.mdv:parse",
        "predicates": "triplewire.languages.predicates:parse",
        "keywords": "triplewire.languages.keywords:parse",
    },
    "matcher": {
        "reference": "triplewire.engine.reference:REFERENCE",
        "everything": "triplewire.select.everything:EVERYTHING",
        "trie": "triplewire.select.trie.maker:TRIE",
        "naive": "triplewire.select.papers.makers:NAIVE",
        "ops": "triplewire.select.papers.makers:OPS",
        "gtopss": "triplewire.select.papers.makers:GTOPSS",
        "constraint-tables": "triplewire.select.papers.makers:CONSTRAINT_TABLES",
        "ibroker": "triplewire.select.papers.makers:IBROKER",
        "rtf-m": "triplewire.select.papers.makers:RTF_M",
        "rtf-s": "triplewire.select.papers.makers:RTF_S",
        "gtopss-greedy": "triplewire.select.papers.makers:GTOPSS_GREEDY",
    },
    "operator": {
        "locIn": "triplewire.operators.built_in:LOC_IN",
        "language": "triplewire.operators.built_in:LANGUAGE",
        "fromSource": "triplewire.model.origins:BUILT_IN",
        "locWithin": "triplewire.operators.families.spatial:LOC_WITHIN",
        "distanceFrom": "triplewire.operators.families.spatial:DISTANCE_FROM",
        "within": "triplewire.operators.families.spatial:WITHIN",
        "inPlace": "triplewire.operators.families.spatial:IN_PLACE",
        "textLanguage": "triplewire.operators.families.texts:TEXT_LANGUAGE",
        "ftsim": "triplewire.operators.families.similarity:FTSIM",
        "namesEntity": "triplewire.operators.families.texts:MENTIONS",
        "imageSize": "triplewire.operators.families.images:IMAGE_SIZE",
        "imageHash": "triplewire.operators.families.images:IMAGE_HASH",
        "looksLike": "triplewire.operators.families.images:LOOKS_LIKE",
        "imagePosition": "triplewire.operators.families.images:IMAGE_POSITION",
        "entails": "triplewire.operators.families.graphs:ENTAILS",
        "conforms": "triplewire.operators.families.graphs:CONFORMS",
    },
}


def names(family: str) -> list[str]:
    """The names of a family, built-in ones first."""
    from importlib.metadata import entry_points  # it takes 20 ms, which the completion of a command line does without

    built_in = list(BUILT_IN[family])
    return built_in + sorted({e.name for e in entry_points(group=f"triplewire.{family}")} - set(built_in))


def registered(family: str, name: str) -> str:
    """The name as it is registered, which may be given in any case of letters; as given where there is none."""
    if name in BUILT_IN[family]:
        return name
    return next((known for known in names(family) if known.casefold() == name.casefold()), name)


def find(family: str, name: str) -> Any:
    """The plug-in itself. Raises `ArgumentError` that has the nearest of the known names, and lists them."""
    place = BUILT_IN[family].get(name)
    if place is not None:
        return attribute(place)
    if re.fullmatch(r"[A-Za-z0-9_-]+", name):
        from importlib.metadata import entry_points  # as in `names`

        for entry in entry_points(group=f"triplewire.{family}", name=name):
            return entry.load()
    from difflib import get_close_matches  # only where a name is wrong

    known = names(family)
    near = get_close_matches(name.casefold()[:80], known, 1)
    remedy = (f"did you mean {near[0]}? " if near else "") + f"known: {', '.join(known)}"
    raise ArgumentError(f"there is no {family} named {name!r}", remedy=remedy)


def loaded(family: str) -> Iterator[tuple[str, Any]]:
    """All plug-ins of a family that are installed, with their names. One that cannot be imported is a warning."""
    for name in names(family):
        try:
            yield name, find(family, name)
        except Exception as error:
            warn_of(family, name, error)


def warn_of(family: str, name: str, error: Exception) -> None:
    """Tell that a plug-in has failed where the others go on."""
    warnings.warn(f"the {family} {name!r} is left out: {text_of_raised(error)}", RuntimeWarning, stacklevel=3)


@cache
def attribute(place: str) -> Any:
    """What "module:attribute" names; the import system takes longer to find it again than a short query to parse."""
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(module), attribute)
