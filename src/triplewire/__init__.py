"""Standing queries over RDF and feeds: register subscriptions, hand over publications, get told what matches and why.

    from triplewire import Engine, read

    engine = Engine()
    engine.subscribe(
        'SELECT ?title WHERE { ?item rss:title ?title FILTER ftcontains(?title, "olympic" ftAND "games") }',
        id="olympics",
    )
    for publication in read("feeds/"):
        for match in engine.match(publication):
            print(match.publication, match.bindings)
            print(engine.explain("olympics", publication))

Subscriptions are written in SPARQL (with full text), GQL, MDV rules or operator predicates; all four compile to one
form with one meaning. `parse` compiles a text by itself, `load_taxonomy` reads a class hierarchy, `Settings` holds the
limits. Every error is a `TriplewireError`. How to add an operator, a language or a matcher: `triplewire.extend`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# not among the late ones below: the import of the package of the same name would take the function's place
from triplewire.read import read

if TYPE_CHECKING:
    from triplewire.config import Settings
    from triplewire.engine import Engine, Explanation, MatchResult
    from triplewire.errors import LanguageError, ReadError, Refusal, TriplewireError, UnsupportedQuery
    from triplewire.ir.subscription import Subscription
    from triplewire.ir.taxonomy import Taxonomy
    from triplewire.languages import parse
    from triplewire.model.match import Match
    from triplewire.model.publication import Publication
    from triplewire.model.terms import IRI, BlankNode, Literal, Triple
    from triplewire.read.taxonomy import load_taxonomy

__all__ = [  # noqa: RUF022  # in the order of the alphabet: IRI is a class here, not a constant
    "BlankNode",
    "Engine",
    "Explanation",
    "IRI",
    "LanguageError",
    "Literal",
    "Match",
    "MatchResult",
    "Publication",
    "ReadError",
    "Refusal",
    "Settings",
    "Subscription",
    "Taxonomy",
    "Triple",
    "TriplewireError",
    "UnsupportedQuery",
    "load_taxonomy",
    "parse",
    "read",
]

# imported when first asked for: a program that only reads needs no parser of queries, and `--version` nothing at all
_MODULES = {
    "config": "Settings",
    "engine": "Engine Explanation MatchResult",
    "errors": "LanguageError ReadError Refusal TriplewireError UnsupportedQuery",
    "ir.subscription": "Subscription",
    "ir.taxonomy": "Taxonomy",
    "languages": "parse",
    "model.match": "Match",
    "model.publication": "Publication",
    "model.terms": "IRI BlankNode Literal Triple",
    "read.taxonomy": "load_taxonomy",
}
_LATE = {name: f"triplewire.{module}" for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module 'triplewire' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_LATE[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
