"""What a variable stands for by its place in patterns, and conditions that never hold of that.

A subject or predicate is no literal. An object of a property to which feeds give a type (`docs/feeds.md`) has that type
there: `dc:date` is an xsd:dateTime, which no text, day or number is compared with; `rss:link` is a text and
`dcterms:isPartOf` an IRI, and no text is an IRI.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping
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
from triplewire.model.references import is_absolute
from triplewire.model.terms import IRI, RDF_TYPE, XSD, Literal

DATE_TIME, DAY = "an xsd:dateTime", "an xsd:date"
_DAYS = "an xsd:dateTime or xsd:date"
_TEXT_OR_IRI = "a text or an IRI"
_NAMES = {
    DATE_TIME: {"dc": "date"},
    _DAYS: {"dcterms": "available created date dateAccepted dateCopyrighted dateSubmitted issued modified valid"},
    NUMBER: {"geo": "lat long alt"},
    TEXT: {"rss": "title description link comments", "content": "encoded"},
    _TEXT_OR_IRI: {"dc": "creator contributor language rights"},
    IRI_KIND: {"dcterms": "isPartOf hasFormat", "foaf": "page homepage mbox"},
}
FEED_TYPES: Mapping[str, str] = {
    PREDECLARED[prefix] + name: kind
    for kind, of_kind in _NAMES.items()
    for prefix, names in of_kind.items()
    for name in names.split()
} | {
    "http://purl.org/rss/1.0/modules/slash/comments": NUMBER,
    "http://purl.oclc.org/net/rss_2.0/enc#length": NUMBER,
    "http://purl.oclc.org/net/rss_2.0/enc#enclosure": IRI_KIND,
}
"""What feeds make of the objects of properties, by IRI."""

_RELATION = "http://www.iana.org/assignments/relation/"  # below it, links of Atom


def feed_type(iri: str) -> str:
    """What feeds make of the objects of this property; "" where that is not known."""
    return FEED_TYPES.get(iri) or (IRI_KIND if iri.startswith(_RELATION) else "")


_COMPARED = {
    DATE_TIME: (DATE_TIME,), _DAYS: (DATE_TIME, DAY), NUMBER: (NUMBER,),
    TEXT: (TEXT,), _TEXT_OR_IRI: (TEXT, IRI_KIND), IRI_KIND: (IRI_KIND,),
}  # fmt: skip
"""The kinds of constants that each is compared with."""
_OF_STRING = frozenset(
    ["STRLEN", "UCASE", "LCASE", "SUBSTR", "STRBEFORE", "STRAFTER", "ENCODE_FOR_URI", "REPLACE", "LANG", "CONCAT"]
)  # besides those that are true or false
_MOST = 4_096  # conditions and places that are looked at
_YEARS = range(1_000, 3_000)
_OBJECT = ir.Variable("o")  # stands for the literal of a pattern in what is told


@dataclass(frozen=True, slots=True)
class Placed:
    """What is asked of a variable that is a subject or predicate (`is_resource`) or an object of these predicates.

    `condition` is a condition on it; or that it equals the constant that a pattern has for object (`is_pattern`); or
    that it equals another variable, or (the variable itself) what it stands for elsewhere: then these are all places.
    """

    condition: ir.Expression
    variable: ir.Variable
    is_resource: bool
    predicates: tuple[IRI, ...]
    is_pattern: bool = False

    @property
    def is_join(self) -> bool:
        """Does one term stand in all these places?"""
        node = self.condition
        return isinstance(node, ir.Variable) or (isinstance(node, ir.Compare) and type(node.left) is type(node.right))

    @property
    def named(self) -> str:
        """The variable as it is told: one that has no name is the property that leads to it."""
        return show(self.predicates[-1] if self.variable.hidden and self.predicates else self.variable)

    @property
    def told(self) -> str:
        """The condition as it is told."""
        node = self.condition
        if isinstance(node, ir.Compare):  # whose coercion the reader did not write
            node = ir.Compare(node.op, node.left, node.right)
        return show(node).replace(show(self.variable), self.named, 1)


@dataclass
class _Place:
    is_resource: bool = False
    predicates: list[IRI] = field(default_factory=list)


_Places: TypeAlias = dict[str, _Place]


def placed_conditions(where: ir.Where) -> Iterator[Placed]:
    """The conditions on variables whose places in the patterns around are known, the variables that have several
    places, and the constants of patterns."""
    waiting: list[tuple[ir.Where, _Places]] = [(where, {})]
    room = _MOST
    while waiting and room > 0:
        group, around = waiting.pop()
        parts = list(ir.joined(group))
        places = _with(around, parts)
        room -= len(places)
        for name, place in places.items():
            if len(place.predicates) + place.is_resource > 1:
                yield _placed(variable := ir.Variable(name), variable, place)
        for part in parts:
            if isinstance(part, ir.Pattern):
                if is_of_constant(part):
                    yield Placed(ir.Compare("=", _OBJECT, part.object), _OBJECT, False, (part.predicate,), True)  # type: ignore[arg-type]  # as that says
            elif isinstance(part, ir.Values):
                constants = [(v, row[n]) for n, v in enumerate(part.variables) for row in part.rows[:room]]
                room -= len(constants)
                yield from (
                    _placed(ir.Compare("=", v, c), v, places[v.name]) for v, c in constants if c and v.name in places
                )
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
                    if isinstance(node, ir.Negate) and (equal := _equality(node.condition)) is not None:
                        node = ir.Compare("!=", equal.left, equal.right)
                    yield from _of_condition(node, places)
                    inner += [child for child in children(node) if not isinstance(child, str)][::-1]


def is_of_constant(pattern: ir.Pattern) -> bool:
    """Does a pattern ask for a constant, of a predicate that it names?"""
    return isinstance(pattern.object, ir.Constant) and isinstance(pattern.predicate, IRI)


def _placed(condition: ir.Expression, variable: ir.Variable, *places: _Place) -> Placed:
    predicates = dict.fromkeys(predicate for place in places for predicate in place.predicates)
    return Placed(condition, variable, any(place.is_resource for place in places), tuple(predicates))


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


def _of_condition(node: object, places: _Places) -> Iterator[Placed]:
    """What a condition says of variables with known places, apart from the conditions within it."""
    nodes = [_equality(node) or node]
    if isinstance(node, ir.In) and not node.negated:
        nodes = [ir.Compare("=", node.operand, choice) for choice in node.choices]
    for node in nodes:
        if isinstance(node, ir.Compare) and isinstance(node.left, ir.Variable) and isinstance(node.right, ir.Variable):
            both = [places[side.name] for side in (node.left, node.right) if side.name in places]
            if (node.op, node.coercion, len(both)) == ("=", ir.Coercion.STRICT, 2):
                yield _placed(node, node.left, *both)
        elif (variable := _asked(node)) is not None and variable.name in places:
            yield _placed(node, variable, places[variable.name])  # type: ignore[arg-type]  # a condition


def _equality(node: object) -> ir.Compare | None:
    """A condition that two sides are equal, or one term; None for another."""
    if isinstance(node, ir.Function) and node.name == "SAMETERM":
        return ir.Compare("=", node.arguments[0], node.arguments[1])
    return node if isinstance(node, ir.Compare) and node.op == "=" else None


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
    kinds = {feed_type(iri.value) or iri.value in varying for iri in placed.predicates}
    if placed.is_pattern:  # of what most patterns ask nothing is said, so that they cost nothing
        assert isinstance(placed.condition, ir.Compare)
        constant = placed.condition.right
        usual: tuple[str, ...] = (IRI_KIND, _TEXT_OR_IRI) if isinstance(constant, IRI) else (TEXT, _TEXT_OR_IRI)
        if isinstance(constant, Literal) and not constant.has_text:
            usual = ()
        return bool(kinds.difference((False, *usual)))
    return (placed.is_resource and not placed.is_join) or any(kinds)


def misplaced(placed: Placed) -> str:
    """What to say of a condition that never holds of what the variable stands for; "" of any other."""
    if placed.is_join:
        return _torn(placed)
    if placed.is_resource:
        return _of_resource(placed)
    kinds = ((predicate, feed_type(predicate.value)) for predicate in placed.predicates)
    return next(filter(None, (_of_object(placed, predicate, kind) for predicate, kind in kinds if kind)), "")


def _torn(placed: Placed) -> str:
    """Of a term that stands in several places: is it a literal in one, and none in another?"""
    kinds = {predicate: feed_type(predicate.value) for predicate in placed.predicates}
    literal = next((p for p, kind in kinds.items() if kind not in ("", _TEXT_OR_IRI, IRI_KIND)), None)
    named = next((p for p, kind in kinds.items() if kind == IRI_KIND), None)
    if literal is None or not (placed.is_resource or named):
        return ""
    other, also = (
        ("a subject or predicate", "") if named is None else (f"one of {show(named)}", f", and {show(named)} an IRI")
    )
    never = f"no value of {show(literal)} is {other} in a feed, where {show(literal)} is {kinds[literal]}{also}"
    if isinstance(placed.condition, ir.Variable):
        return f"{never}; give each a variable, and compare what STR gives of both"
    return f"{placed.told} never holds: {never}; compare what STR gives of both"


def _of_resource(placed: Placed) -> str:
    """Of a subject or predicate."""
    node, variable = placed.condition, placed.named
    if isinstance(node, ir.Compare):
        is_literal = node.coercion is ir.Coercion.STRICT and any(
            isinstance(side, Literal) for side in (node.left, node.right)
        )
        return f"{placed.told} never holds: {variable} is no literal, but a subject or predicate" * is_literal
    remedy = f"write STR({variable})" if isinstance(node, ir.Function) and node.name != "LANG" else ""
    remedy = remedy or "ask the object of a triple"
    return f"{placed.told} {_verb(node)}: {variable} is a subject or predicate, which has no text of its own; {remedy}"


def _of_object(placed: Placed, predicate: IRI, kind: str) -> str:
    """Of an object of this predicate, which is of this kind in feeds."""
    node, variable = placed.condition, placed.named
    there = f"in a feed, where {show(predicate)} is {kind}"
    if isinstance(node, ir.Compare):
        if placed.is_pattern:
            remedy = _asked_for(node.right, show(predicate), kind)
            return f"{show(predicate)} {show(node.right)} never matches {there}; write {remedy}" if remedy else ""
        remedy = _compared(node, variable, kind)
        return f"{placed.told} never holds {there}; write {remedy}" if remedy else ""
    if isinstance(node, ir.Function):
        has_text = kind in (TEXT, _TEXT_OR_IRI) or node.name == "LANG"
        return "" if has_text else f"{placed.told} {_verb(node)} {there}, and no text; write STR({variable})"
    if kind != IRI_KIND:
        return ""
    remedy = f"compare it with a whole IRI, or in SPARQL a piece of STR({variable})"
    return f"{placed.told} never holds {there}, and no text; {remedy}"


def _verb(node: ir.Expression) -> str:
    return "has no value" if isinstance(node, ir.Function) and node.name in _OF_STRING else "never holds"


def _asked_for(constant: ir.Expression, predicate: str, kind: str) -> str:
    """What to write in place of the object of a pattern that no literal or IRI of this kind is; "" where one may be."""
    text = label_of(constant)  # type: ignore[arg-type]  # a constant, as patterns have
    if isinstance(constant, ir.Label):
        if kind in (TEXT, _TEXT_OR_IRI) or (kind == IRI_KIND and constant.iri):
            return ""
        constant = Literal(text)
        if kind == NUMBER and lenient_number(text) is not None:
            return ""
        if (
            kind in (DATE_TIME, _DAYS)
            and lenient_instant(text) is not None
            and (text.endswith("Z") or (kind == _DAYS and "T" not in text))
        ):
            return ""
    equal = ir.Compare("=", _OBJECT, constant)
    remedy = _compared(equal, show(_OBJECT), kind)
    if isinstance(constant, Literal) and not remedy and _is_written_otherwise(constant, predicate):
        remedy = show(equal).strip("()")
    if kind in (TEXT, IRI_KIND):
        return remedy and f"{predicate} {remedy.removeprefix(f'{show(_OBJECT)} = ')}"
    return remedy and f"{show(_OBJECT)} in its place, and FILTER ({remedy})"


def _is_written_otherwise(constant: Literal, predicate: str) -> bool:
    """Do feeds write the same value otherwise? An instant in UTC, and a coordinate as no integer."""
    if constant.datatype == XSD + "dateTime":
        return not constant.lexical.endswith("Z")
    return constant.datatype == XSD + "integer" and predicate.startswith("geo:")


def _compared(node: ir.Compare, variable: str, kind: str) -> str:
    """What to write in place of a comparison with a constant that is never compared with this kind; "" where it may
    be."""
    is_left = isinstance(node.left, ir.Variable)
    op, constant = (node.op, node.right) if is_left else (FLIPPED.get(node.op, node.op), node.left)
    assert isinstance(constant, ir.Constant)
    text = label_of(constant).strip()
    number, instant = lenient_number(text), lenient_instant(text)
    if node.coercion is ir.Coercion.LENIENT:
        if kind in (TEXT, _TEXT_OR_IRI, IRI_KIND) or (instant if kind != NUMBER else number) is not None:
            return ""
        if op != "=" and number is None and instant is None:
            return ""  # it is compared as a text
        if kind == NUMBER:
            return "a number"
        return f"{variable} {op} {text}-01-01" if _is_year(text) else "a day, such as 2024-05-31"
    stated = kind_of(constant)
    if (
        stated in _COMPARED[kind]
        or (TEXT in _COMPARED[kind] and stated.startswith(TEXT))
        or (op != "=" and stated in ("", IRI_KIND))
    ):
        return ""
    if kind == IRI_KIND:
        return f"{variable} = <{text}>" if op == "=" and is_absolute(text) else f'STR({variable}) {op} "{text}"'
    if kind in (TEXT, _TEXT_OR_IRI):
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
    """Does a pattern ask for a class by a literal, or by a bare name that is one, as it has no base to resolve
    against?"""
    named = pattern.object
    return pattern.predicate == RDF_TYPE and (
        isinstance(named, Literal) or (isinstance(named, ir.Label) and not named.iri)
    )


def class_as_text(pattern: ir.Pattern) -> str:
    """What to say of such a pattern."""
    assert isinstance(pattern.object, ir.Label | Literal)
    name = label_of(pattern.object)
    is_bare = ", as no base is given," if isinstance(pattern.object, ir.Label) else ","
    told = f"{show(pattern.object)} is a text here{is_bare} and rdf:type leads to classes, which are IRIs"
    if is_absolute(name):
        return f"{told}; write <{name}>"
    remedy = f"write :{name}" if name.isidentifier() else "write its IRI, <...>"
    return f"{told}; {remedy} for the class of that name (PREFIX : <...>)"
