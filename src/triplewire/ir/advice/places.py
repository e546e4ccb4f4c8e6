"""What a variable stands for by its place in patterns, and conditions that never hold of that.

A subject or predicate is no literal. An object of a property to which feeds give a type (`docs/feeds.md`) has that type
there: `dc:date` is an xsd:dateTime, which no text, day or number is compared with.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from triplewire.ir import nodes as ir
from triplewire.ir.advice.conditions import FLIPPED, IRI_KIND, NUMBER, OF_TEXT, TEXT, kind_of
from triplewire.ir.show import show
from triplewire.ir.values.compare import label_of
from triplewire.ir.values.dates import lenient_instant
from triplewire.ir.values.numbers import lenient_number
from triplewire.ir.walk import children
from triplewire.model.namespaces import PREDECLARED
from triplewire.model.terms import IRI, RDF_TYPE, Literal

DATE_TIME, DAY = "an xsd:dateTime", "an xsd:date"
_DAYS = "an xsd:dateTime or xsd:date"
_NAMES = {
    DATE_TIME: {"dc": "date"},
    _DAYS: {"dcterms": "available created date dateAccepted dateCopyrighted dateSubmitted issued modified valid"},
    NUMBER: {"geo": "lat long alt"},
    TEXT: {"rss": "title description link", "dc": "creator contributor language rights", "content": "encoded"},
}
FEED_TYPES: Mapping[str, str] = {
    PREDECLARED[prefix] + name: kind
    for kind, of_kind in _NAMES.items()
    for prefix, names in of_kind.items()
    for name in names.split()
} | {
    "http://purl.org/rss/1.0/modules/slash/comments": NUMBER,
    "http://purl.oclc.org/net/rss_2.0/enc#length": NUMBER,
}
"""What feeds make of the objects of properties, by IRI."""

_COMPARED = {DATE_TIME: (DATE_TIME,), _DAYS: (DATE_TIME, DAY), NUMBER: (NUMBER,)}
_OF_STRING = frozenset(
    ["STRLEN", "UCASE", "LCASE", "SUBSTR", "STRBEFORE", "STRAFTER", "ENCODE_FOR_URI", "REPLACE", "LANG", "CONCAT"]
)  # besides those that are true or false
_MOST = 4_096  # conditions and places that are looked at
_YEARS = range(1_000, 3_000)
_OBJECT = ir.Variable("o")  # stands for the literal of a pattern in what is told


@dataclass(frozen=True, slots=True)
class Placed:
    """A condition on a variable, which is a subject or predicate (`is_resource`) or an object of these predicates; or a
    literal that a pattern has for object, as the condition that it is equal (`is_pattern`)."""

    condition: ir.Expression
    variable: ir.Variable
    is_resource: bool
    predicates: tuple[IRI, ...]
    is_pattern: bool = False


@dataclass
class _Place:
    is_resource: bool = False
    predicates: list[IRI] = field(default_factory=list)


_Places: TypeAlias = dict[str, _Place]


def placed_conditions(where: ir.Where) -> Iterator[Placed]:
    """The conditions on one variable whose place in the patterns around is known, and the literals of patterns."""
    waiting: list[tuple[ir.Where, _Places]] = [(where, {})]
    room = _MOST
    while waiting and room > 0:
        group, around = waiting.pop()
        parts = list(ir.joined(group))
        places = _with(around, parts)
        room -= len(places)
        for part in parts:
            if isinstance(part, ir.Pattern):
                if is_of_literal(part):
                    yield Placed(ir.Compare("=", _OBJECT, part.object), _OBJECT, False, (part.predicate,), True)  # type: ignore[arg-type]  # as that says
            elif isinstance(part, ir.Or):
                waiting += [(branch, places) for branch in part.branches]
            elif isinstance(part, ir.Not | ir.Optional):
                waiting.append((part.group, places))
            elif isinstance(part, ir.Minus):
                waiting.append((part.group, {}))
            elif isinstance(part, ir.Filter):
                inner: list[object] = [part.condition]
                while inner:
                    node = inner.pop()
                    room -= 1
                    if isinstance(node, ir.Exists):
                        waiting.append((node.group, places))
                        continue
                    for condition in _alternatives(node):
                        variable = _asked(condition)
                        if variable is not None and (place := places.get(variable.name)) is not None:
                            yield Placed(condition, variable, place.is_resource, tuple(place.predicates))  # type: ignore[arg-type]  # a condition
                    inner += [child for child in children(node) if not isinstance(child, str)][::-1]


def is_of_literal(pattern: ir.Pattern) -> bool:
    """Does a pattern ask for a literal, of a predicate that it names?"""
    return isinstance(pattern.object, Literal) and isinstance(pattern.predicate, IRI)


def _with(around: _Places, parts: list[ir.Where]) -> _Places:
    """The places of variables in the patterns among these parts, and those around them."""
    places: defaultdict[str, _Place] = defaultdict(_Place)
    for name, place in around.items():
        places[name] = _Place(place.is_resource, list(place.predicates))
    for part in parts:
        if isinstance(part, ir.Pattern):
            for term in (part.subject, part.predicate):
                if isinstance(term, ir.Variable):
                    places[term.name].is_resource = True
            if isinstance(part.object, ir.Variable) and isinstance(part.predicate, IRI):
                places[part.object.name].predicates.append(part.predicate)
    return dict(places)


def _alternatives(node: object) -> Sequence[object]:
    """The comparisons that a list stands for; of another node, itself."""
    if isinstance(node, ir.In) and not node.negated:
        return [ir.Compare("=", node.operand, choice) for choice in node.choices]
    return (node,)


def _asked(node: object) -> ir.Variable | None:
    """The variable of which a condition says something that its place may exclude."""
    if isinstance(node, ir.FullText):
        return node.variable
    if isinstance(node, ir.TextTest):
        return node.operand
    if isinstance(node, ir.Function) and node.name in OF_TEXT | _OF_STRING:
        return node.arguments[0] if node.arguments and isinstance(node.arguments[0], ir.Variable) else None
    if isinstance(node, ir.Compare) and node.op != "!=":
        for side, other in ((node.left, node.right), (node.right, node.left)):
            if isinstance(side, ir.Variable) and isinstance(other, ir.Constant):
                return side
    return None


def may_be_misplaced(placed: Placed, varying: Container[str]) -> bool:
    """May something be said of the condition, if the predicates that are `varying`, and constants, may be others?"""
    if placed.is_pattern:  # of properties with texts nothing is said, so that their patterns cost nothing
        return any(FEED_TYPES.get(iri.value, TEXT) != TEXT or iri.value in varying for iri in placed.predicates)
    return placed.is_resource or any(iri.value in FEED_TYPES or iri.value in varying for iri in placed.predicates)


def misplaced(placed: Placed) -> str:
    """What to say of a condition that never holds of what the variable stands for; "" of any other."""
    node, variable = placed.condition, show(placed.variable)
    verb = "has no value" if isinstance(node, ir.Function) and node.name in _OF_STRING else "never holds"
    if placed.is_resource:
        if isinstance(node, ir.Compare):
            is_literal = node.coercion is ir.Coercion.STRICT and any(
                isinstance(side, Literal) for side in (node.left, node.right)
            )
            return f"{show(node)} never holds: {variable} is no literal, but a subject or predicate" * is_literal
        remedy = f"write STR({variable})" if isinstance(node, ir.Function) and node.name != "LANG" else ""
        remedy = remedy or "ask the object of a triple"
        return f"{show(node)} {verb}: {variable} is a subject or predicate, which has no text of its own; {remedy}"
    for predicate in placed.predicates:
        kind = FEED_TYPES.get(predicate.value)
        if kind is None or (placed.is_pattern and kind == TEXT):
            continue
        there = f"in a feed, where {show(predicate)} is {kind}"
        if isinstance(node, ir.Compare):
            if (remedy := _compared(node, variable, kind)) and placed.is_pattern:
                remedy = f"{variable} in its place, and FILTER ({remedy})"
                return f"{show(predicate)} {show(node.right)} never matches {there}; write {remedy}"
            if remedy:
                return f"{show(node)} never holds {there}; write {remedy}"
        elif isinstance(node, ir.Function) and kind != TEXT and node.name != "LANG":
            return f"{show(node)} {verb} {there}, and no text; write STR({variable})"
    return ""


def _compared(node: ir.Compare, variable: str, kind: str) -> str:
    """What to write in place of a comparison with a constant that is never compared with this kind; "" where it may
    be."""
    is_left = isinstance(node.left, ir.Variable)
    op, constant = (node.op, node.right) if is_left else (FLIPPED.get(node.op, node.op), node.left)
    assert isinstance(constant, ir.Constant)
    text = label_of(constant).strip()
    number, instant = lenient_number(text), lenient_instant(text)
    if node.coercion is ir.Coercion.LENIENT:
        if kind == TEXT or (instant if kind != NUMBER else number) is not None:
            return ""
        if op != "=" and number is None and instant is None:
            return ""  # it is compared as a text
        if kind == NUMBER:
            return "a number"
        return f"{variable} {op} {text}-01-01" if _is_year(text) else "a day, such as 2024-05-31"
    stated = kind_of(constant)
    if stated in ("", IRI_KIND) or stated in _COMPARED.get(kind, ()) or (kind == TEXT and stated.startswith(TEXT)):
        return ""
    if kind == TEXT:
        return f'{variable} = "{text}"' if op == "=" else f"xsd:decimal({variable}) {op} {text}" if number else ""
    if kind == NUMBER:
        return f"{variable} {op} {text}" if number is not None else "a number"
    if _is_year(text):
        return f"YEAR({variable}) {op} {text}"
    if instant is None or not (stated == DAY or stated.startswith(TEXT)):
        return f'{variable} {op} "2024-05-31T00:00:00Z"^^xsd:dateTime, or another instant'
    if "T" in text:
        zone = "" if text.endswith("Z") or "+" in text or text[-6:-5] == "-" else "Z"
        return f'{variable} {op} "{text}{zone}"^^xsd:dateTime'
    if op in ("<", ">="):
        return f'{variable} {op} "{text[:10]}T00:00:00Z"^^xsd:dateTime'
    return f'xsd:date({variable}) {op} "{text[:10]}"^^xsd:date'


def _is_year(text: str) -> bool:
    return text.isdecimal() and len(text) == 4 and int(text) in _YEARS


def is_text_for_class(pattern: ir.Pattern) -> bool:
    """Does a pattern ask for a class by a bare name that is a text, as it has no base to resolve against?"""
    return pattern.predicate == RDF_TYPE and isinstance(pattern.object, ir.Label) and not pattern.object.iri


def class_as_text(pattern: ir.Pattern) -> str:
    """What to say of such a pattern."""
    assert isinstance(pattern.object, ir.Label)
    name = pattern.object.text
    remedy = f"write :{name}" if name.isidentifier() else "write its IRI, <...>"
    return (
        f"{show(pattern.object)} is a text here, as no base is given, and rdf:type leads to classes, which are IRIs; "
        f"{remedy} for the class of that name (PREFIX : <...>)"
    )
