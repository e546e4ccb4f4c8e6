"""The schema of metadata (MDV paper, sections 2 and 2.4): RDF Schema, with marks of references and of sets.

    PREFIX mdv: <urn:triplewire:metadata:>
    :serverInformation rdfs:domain :CycleProvider ; rdfs:range :ServerInformation ; mdv:reference mdv:strong .
    :alias rdfs:domain :CycleProvider ; rdfs:range xsd:string ; mdv:setValued true .

References are weak and properties have one value unless they are marked. With a schema, each document says the class of
each of its resources, and uses no class or property that the schema does not have.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from triplewire.errors import LanguageError, ReadError, Refusal
from triplewire.ir.values.compare import value_of
from triplewire.ir.values.numbers import NUMERIC
from triplewire.languages.mdv import Rule
from triplewire.model.terms import (
    IRI,
    RDF,
    RDF_TYPE,
    XSD,
    XSD_STRING,
    BlankNode,
    Literal,
    Node,
    Term,
    Triple,
    made_literal,
)

RDFS = "http://www.w3.org/2000/01/rdf-schema#"
MARKS = "urn:triplewire:metadata:"

_REFERENCE, _STRONG, _SET_VALUED = IRI(MARKS + "reference"), IRI(MARKS + "strong"), IRI(MARKS + "setValued")
_WEAK = IRI(MARKS + "weak")
_DOMAIN, _RANGE, _SUBCLASS = (IRI(RDFS + name) for name in ("domain", "range", "subClassOf"))
_LITERAL = IRI(RDFS + "Literal")
_CLASSES = frozenset({IRI(RDFS + "Class"), IRI("http://www.w3.org/2002/07/owl#Class")})
_PROPERTIES = frozenset(
    {IRI(RDF + "Property")} | {IRI(f"http://www.w3.org/2002/07/owl#{kind}Property") for kind in ("Object", "Datatype")}
)


@dataclass(slots=True)
class Property:
    """What the schema says of a property. `ranges` and `domains`: all of them hold."""

    domains: set[IRI] = field(default_factory=set)
    ranges: set[IRI] = field(default_factory=set)
    is_strong: bool = False
    is_set_valued: bool = False


@dataclass
class Schema:
    """Classes with their superclasses, themselves among them, and properties."""

    classes: Mapping[IRI, frozenset[IRI]]
    properties: Mapping[IRI, Property]

    @classmethod
    def of(cls, triples: Iterable[Triple], source: str = "") -> Schema:
        """The schema that the triples state. Raises `ReadError` where they state none, or a mark has no meaning."""
        above: dict[IRI, set[IRI]] = {}
        properties: dict[IRI, Property] = defaultdict(Property)
        for subject, predicate, value in triples:
            if not isinstance(subject, IRI):
                continue
            if predicate == RDF_TYPE and value in _CLASSES:
                above.setdefault(subject, set())
            elif predicate == RDF_TYPE and value in _PROPERTIES:
                properties[subject]
            elif predicate == _SUBCLASS and isinstance(value, IRI):
                above.setdefault(subject, set()).add(value)
                above.setdefault(value, set())
            elif predicate in (_DOMAIN, _RANGE) and isinstance(value, IRI):
                (properties[subject].domains if predicate == _DOMAIN else properties[subject].ranges).add(value)
            elif predicate == _REFERENCE:
                if value not in (_STRONG, _WEAK):
                    raise ReadError(f"{subject} has the reference {value}", source=source, remedy="strong or weak")
                properties[subject].is_strong = value == _STRONG
            elif predicate == _SET_VALUED:
                properties[subject].is_set_valued = isinstance(value, Literal) and value.lexical in ("true", "1")
        for of_property in properties.values():
            for class_ in of_property.domains | {x for x in of_property.ranges if not _is_datatype(x)}:
                above.setdefault(class_, set())
        if not above:
            raise ReadError("the schema has no class", source=source, remedy="write it as RDF Schema: a rdfs:Class ...")
        return cls({class_: _ancestors(class_, above) for class_ in above}, dict(properties))

    def ranges(self) -> dict[IRI, IRI]:
        """The class of the values of each property that has one."""
        return {
            name: class_
            for name, known in self.properties.items()
            for class_ in sorted(known.ranges, key=str)[:1]
            if not _is_datatype(class_)
        }

    def strong(self) -> set[IRI]:
        """The properties that are strong references."""
        return {name for name, known in self.properties.items() if known.is_strong}

    # --- documents ---------------------------------------------------------------------------------------------------

    def violations(self, triples: Iterable[Triple]) -> Iterator[tuple[Triple, str]]:
        """What of a document violates the schema, and how, in the document's order."""
        distinct = list(dict.fromkeys(triples))
        classes: dict[Term, set[IRI]] = defaultdict(set)
        count: dict[tuple[Node, IRI], int] = defaultdict(int)
        for subject, predicate, value in distinct:
            if predicate == RDF_TYPE and isinstance(value, IRI):
                classes[subject] |= self.classes.get(value, frozenset())
        for triple in distinct:
            subject, predicate, value = triple
            count[subject, predicate] += 1
            wrong = self._wrong(triple, classes)
            known = self.properties.get(predicate)
            if not wrong and known is not None and not known.is_set_valued and count[subject, predicate] == 2:
                wrong = f"{subject} has two values of {predicate}, which is not set-valued"
            if wrong:
                yield triple, wrong

    def _wrong(self, triple: Triple, classes: Mapping[Term, set[IRI]]) -> str:
        subject, predicate, value = triple
        if predicate == RDF_TYPE:
            return "" if value in self.classes else f"the schema has no class {value}"
        known = self.properties.get(predicate)
        if known is None:
            return f"the schema has no property {predicate}"
        own = classes.get(subject, set())
        if not own:
            return f"the document says no class of {subject}"
        if missing := known.domains - own:
            return f"{predicate} is of {_listed(missing)}, and {subject} is none"
        for range_ in sorted(known.ranges, key=str):
            if _is_datatype(range_):
                if not isinstance(value, Literal) or not _has_datatype(value, range_):
                    return f"the value of {predicate} has to be {range_}, and {value} is none"
            elif isinstance(value, Literal) or (value in classes and range_ not in classes[value]):
                return f"the value of {predicate} has to be a {range_}, and {value} is none"
        return ""

    def refusal(self, document: str, triples: Iterable[Triple], content: bytes = b"") -> Refusal | None:
        """Why a document is refused, with the line and column of the first violation where `content` is its text."""
        violations = list(self.violations(triples))
        if not violations:
            return None
        triple, wrong = violations[0]
        more = f" (and {len(violations) - 1} more)" if len(violations) > 1 else ""
        line, column = _place(content.decode("utf-8", "replace"), triple)
        remedy = "correct the document, or change the schema"
        return Refusal.of(
            "publication", document, ReadError(wrong + more, source=document, line=line, column=column, remedy=remedy)
        )

    # --- rules -------------------------------------------------------------------------------------------------------

    def check_rule(self, rule: Rule, source: str) -> None:
        """Raises `LanguageError` with line and column for a class or property that the schema does not have, for `?` on
        a property that is not set-valued, and where a set-valued one has none."""
        for searched in rule.searched:
            if isinstance(searched.meaning, IRI) and searched.meaning not in self.classes:
                line, column = rule.place(searched)
                raise LanguageError(
                    f"the schema has no class {searched.meaning}", source=source, line=line, column=column
                )
        for path in rule.paths:
            for step in path.steps:
                line, column = rule.place(path)
                known = self.properties.get(step.property)
                if known is None and step.property != RDF_TYPE:
                    what, remedy = f"the schema has no property {step.property}", ""
                elif known is not None and known.is_set_valued != step.any_element:
                    what = f"{step.property} is {'' if known.is_set_valued else 'not '}set-valued"
                    remedy = "write ? behind it: any element" if known.is_set_valued else "write it without ?"
                else:
                    continue
                raise LanguageError(what, source=source, line=line, column=column, remedy=remedy)


def _ancestors(class_: IRI, above: Mapping[IRI, set[IRI]]) -> frozenset[IRI]:
    reached, waiting = {class_}, [class_]
    while waiting:
        new = above[waiting.pop()] - reached
        reached |= new
        waiting += new
    return frozenset(reached)


def _is_datatype(iri: IRI) -> bool:
    return iri == _LITERAL or iri.value.startswith(XSD) or iri.value == RDF + "langString"


def _has_datatype(literal: Literal, datatype: IRI) -> bool:
    """Is a literal a value of a datatype? Plain ones, and numbers of other datatypes, are where they read as one."""
    if datatype == _LITERAL or (datatype.value == XSD_STRING and literal.language):
        return True
    if literal.datatype != datatype.value and literal.datatype not in (XSD_STRING, *NUMERIC):
        return False
    return datatype.value == XSD_STRING or _reads(literal.lexical, datatype)


def _reads(lexical: str, datatype: IRI) -> bool:
    return value_of(made_literal(lexical, datatype.value)) is not None


def _listed(classes: Iterable[IRI]) -> str:
    return ", ".join(sorted(map(str, classes)))


def _place(text: str, triple: Triple) -> tuple[int, int]:
    """Where a statement stands in the text of its document: the property, behind the name of its resource. (0, 0) where
    the text does not write them so."""
    subject, predicate, value = triple
    sought = value if predicate == RDF_TYPE and isinstance(value, IRI) else predicate
    begin = 0 if isinstance(subject, BlankNode) else max(text.find(_local(subject.value)), 0)
    name = re.compile(rf"\b{re.escape(_local(sought.value))}\b")
    match = name.search(text, begin) or name.search(text)
    if match is None:
        return 0, 0
    start = match.start()
    return text.count("\n", 0, start) + 1, start - (text.rfind("\n", 0, start) + 1) + 1


def _local(iri: str) -> str:
    return re.split(r"[/#:]", iri)[-1] or iri
