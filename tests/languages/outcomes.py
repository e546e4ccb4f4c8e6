"""What becomes of a text of a language other than SPARQL, as one line of a case file; and what those cases assume."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from triplewire import plugins
from triplewire.errors import TriplewireError
from triplewire.ir.show import show
from triplewire.languages import parse
from triplewire.languages.context import Context, Language
from triplewire.languages.templates import Templates
from triplewire.languages.templates.splitting import Queries
from triplewire.languages.templates.template import Parameters, ParsedForm
from triplewire.model.operator import Argument, Parameter, Verdict
from triplewire.model.publication import Publication


@dataclass(frozen=True)
class Named:
    """An operator that is named here; what it answers does not matter."""

    name: str
    parameters: tuple[Parameter, ...]

    def evaluate(self, publication: Publication, arguments: tuple[Argument, ...]) -> Verdict:
        return False


def _operator(name: str, *parameters: str) -> Named:
    """Parameters are written as "name" or "name in unit"."""
    parts = (parameter.partition(" in ") for parameter in parameters)
    return Named(name, tuple(Parameter(name, unit) for name, _, unit in parts))


OPERATORS = {
    "rdql": [],
    "gql": [_operator("locIn", "where", "place"), _operator("mobPattern", "people")],
    "mdv": [],
    "keywords": [],
    "predicates": [
        _operator("locIn", "place"),
        _operator("chasePattern", "chaser", "chased"),
        _operator("locWithin", "place", "distance in m"),
        _operator("speed", "speed in m/s"),
        _operator("heat", "temperature in K"),
        _operator("load", "size in B"),
        _operator("span", "time in h"),
        _operator("crowd", "people in heads"),
        *(
            _operator(name, "count")
            for name in ("mobPattern", "trafficPattern", "tourBoatCount", "coastGuardBoatCount")
        ),
    ],
}
SHARED = _operator("distanceFrom", "place", "distance in m")

BASE = "http://example.org/base/"
PREFIXES = {"ex": "http://example.org/", "": "http://example.org/terms#"}
RULES = {
    "Big": ("mdv", "search Server s register s where s.memory > 64 and s.rack.row = 3"),
    "Fast": ("mdv", "search Server s register s where s.cpu > 500"),
    "Either": ("mdv", "search Big b, Fast f register f where f.memory > 64 or f.cpu > 500"),
    "own": ("mdv", "search Server s register s"),
    "12": ("mdv", "search Server s register s"),
    "query": ("gql", "SELECT ?x WHERE (?x, p, ?y)"),
}


def context(language: str, file: str) -> Context:
    """What the cases of a file assume: base, prefixes, operators and, for MDV, other rules."""
    operators = {operator.name: operator for operator in [*OPERATORS[language], SHARED]}
    whole = Context(prefixes=PREFIXES, base=BASE, operators=operators)
    if file == "bare":
        return replace(whole, prefixes={}, base="")
    if file == "based":
        return replace(whole, prefixes={})
    if file == "over_rules":
        rules = {}
        for id, (other, text) in RULES.items():
            rules[id] = parse(text, other, id=id, prefixes=PREFIXES, base=BASE, rules=rules)
        return replace(whole, source="own", rules=rules)
    return whole


def outcome(text: str, language: str, file: str) -> str:
    """The line of a case file: variables and tree, warnings, or the error."""
    compile_text: Language = plugins.find("language", language)
    try:
        parsed = compile_text(text, context(language, file))
    except TriplewireError as error:
        return f"=! {type(error).__name__} {error}"
    words = [*(f"?{name}" for name in parsed.select), show(parsed.where)]
    return "=> " + " ".join(words) + "".join(f" -- {warning}" for warning in parsed.warnings)


def by_template(
    templates: Templates, text: str, language: str, prefixes: Mapping[str, str] | None = None, base: str = ""
) -> tuple[ParsedForm, Parameters] | None:
    """What templates make of a text, and its parameters; None where it has to be parsed in full."""
    try:
        queries = Queries.of([text.encode()], [(language, base, tuple((prefixes or {}).items()))])
    except UnicodeEncodeError:
        return None
    forms = templates.find_all(queries)
    return forms.form(0) if forms.has_form[0] else None
