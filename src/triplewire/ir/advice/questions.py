"""What of a query has to be looked at for warnings, picked out of its tree once, for all texts of a template.

`Questions` are a tree of nodes: with other constants in their place (`triplewire.ir.walk.rewrite`), they are those of
another text of the same form.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import TypeAlias

from triplewire.bounded_cache import cached_if_short
from triplewire.ir import nodes as ir
from triplewire.ir.advice.conditions import constrained, contradictions, incomparable
from triplewire.ir.advice.places import (
    Placed,
    class_as_text,
    is_text_for_class,
    misplaced,
    placed_conditions,
)
from triplewire.ir.alike import AlikeNames
from triplewire.ir.show import show
from triplewire.model.namespaces import PREDECLARED
from triplewire.model.terms import IRI, Literal, made_iri

# --- vocabularies: terms that a known one does not have, and the two namespaces of schema.org ------------------------


TERMS = Path(__file__).with_name("vocabularies.txt")
SCHEMAS = (PREDECLARED["schema"], PREDECLARED["schemas"])
_NAMESPACE = re.compile(r"[^#]*[/#]")
_IN_FEEDS = {
    "dc:date": "date pubdate published issued",
    "dcterms:modified": "updated modified lastbuilddate",
    "dc:subject": "subject category categories tag tags",
    "dc:creator": "creator author authors managingeditor",
    "rss:description": "summary",
    "content:encoded": "content",
    "dc:contributor": "contributor webmaster",
    "dc:language": "language",
    "dc:rights": "rights copyright",
    "<http://purl.oclc.org/net/rss_2.0/enc#enclosure>": "enclosure enclosures attachments",
    "dcterms:source": "source",
    "dcterms:valid": "expirationdate",
    "the item itself, the subject of its triples": "guid id",
}
_READ_AS = {name: meant for meant, names in _IN_FEEDS.items() for name in names.split()}
"""What elements of RSS and Atom become that are no term of RSS 1.0 (`docs/feeds.md`), by their names in lower case."""
_MEMBER = re.compile(r"_[1-9][0-9]*")  # of a container of RDF
_ALIKE = 0.75  # of 1: how much of two names has to be the same


@dataclass(frozen=True)
class _Vocabulary:
    """The terms behind a prefix. `grows`: it has more than are listed, so only what is nearly one of these is taken
    for a mistake."""

    prefix: str
    terms: frozenset[str]
    grows: bool

    def nearest(self, name: str) -> str:
        """The term that is nearly the name; "" where none is."""
        return self._folded.get(name.casefold()) or self._alike.nearest(name[:80])

    @cached_property
    def _folded(self) -> Mapping[str, str]:
        return {term.casefold(): term for term in self.terms}

    @cached_property
    def _alike(self) -> AlikeNames:
        return AlikeNames(self.terms, _ALIKE)


@cache
def _vocabularies() -> Mapping[str, _Vocabulary]:
    """The known vocabularies by namespace."""
    text = re.sub(r"^#.*\n", "", TERMS.read_text(encoding="utf-8"), flags=re.MULTILINE).replace("\n  ", " ")
    known: dict[str, _Vocabulary] = {}
    for line in text.splitlines():
        prefix, _, terms = line.partition(": ")
        name = prefix.rstrip("~")
        known[PREDECLARED[name]] = _Vocabulary(name, frozenset(terms.split()), prefix.endswith("~"))
    known[PREDECLARED["schemas"]] = replace(known[PREDECLARED["schema"]], prefix="schemas")
    return known


@cached_if_short(1 << 16, 256)
def term_warning(iri: str) -> str:
    """What to say of an IRI that a known vocabulary does not have; "" of any other."""
    namespace = _NAMESPACE.match(iri)
    vocabulary = None if namespace is None else _vocabularies().get(namespace[0])
    if namespace is None or vocabulary is None:
        return ""
    name, prefix = iri[namespace.end() :], vocabulary.prefix
    if not name or name in vocabulary.terms or (prefix == "rdf" and _MEMBER.fullmatch(name)):
        return ""
    read_as = _READ_AS.get(name.casefold(), "") if prefix == "rss" else ""
    near = "" if read_as else vocabulary.nearest(name)
    if not (near or read_as) and vocabulary.grows:
        return ""
    others = ((other, _vocabularies()[PREDECLARED[other]]) for other in ("dcterms", "dc", "rdfs"))
    owner = next((other for other, vocabulary in others if name in vocabulary.terms), "")
    meant = f"{prefix}:{near}" if near else f"{owner}:{name}" if owner else ""
    meant = read_as or meant
    if (prefix, name) == ("rdf", "li"):  # RDF/XML's way to write the next rdf:_n
        meant = "rdf:_1, or rdfs:member under RDFS entailment"
    return f"{prefix}:{name} is no term of that vocabulary" + (f"; did you mean {meant}?" if meant else "")


def schema_of(iri: str) -> int:
    """1 for a term of http://schema.org/, 2 for one of https://schema.org/, else 0."""
    return next((number for number, namespace in enumerate(SCHEMAS, 1) if iri.startswith(namespace)), 0)


def schema_warning(named: Iterable[int]) -> str:
    """What to say of a query that names terms of one of schema.org's namespaces only. `named` as `schema_of` gives."""
    only = set(named) - {0}
    if len(only) != 1:
        return ""
    mine, other = SCHEMAS if only == {1} else SCHEMAS[::-1]
    prefix = "schemas" if only == {1} else "schema"
    return (
        f"this names terms of {mine} only: publications that use {other} are missed, as these are different IRIs; "
        f"name both where both may come ({prefix}: stands for {other})"
    )


# --- questions -------------------------------------------------------------------------------------------------------

Scope: TypeAlias = tuple[ir.Expression, ...]
"""Conditions that must hold together."""

_BINDERS = frozenset((ir.Pattern, ir.Bind, ir.Values, ir.Call))
CONDITIONS = frozenset((ir.Compare, ir.FullText, ir.Function, ir.TextTest))
"""The kinds of nodes that say something of a value."""
_datatype = lru_cache(maxsize=1_024)(made_iri)
_MOST_CONDITIONS = 4_096  # in scopes other than the first, all together


@dataclass(frozen=True, slots=True)
class Questions:
    """`unbound`: variables that are used, and bound nowhere. `comparisons`: strict ones with a constant or between
    functions. `empty`: lists without a member, in which nothing is. `placed`: conditions on variables whose places in
    patterns are known. `texts_for_classes`: patterns that ask for a class by a text."""

    unbound: tuple[ir.Variable, ...]
    iris: tuple[IRI, ...]
    comparisons: tuple[ir.Compare, ...]
    scopes: tuple[Scope, ...]
    empty: tuple[ir.In, ...] = ()
    placed: tuple[Placed, ...] = ()
    texts_for_classes: tuple[ir.Pattern, ...] = ()

    def warnings(self) -> Iterator[str]:
        """All warnings; one may come twice."""
        for variable in self.unbound:
            yield f"?{variable.name} is used, but nothing binds it"
        values = [iri.value for iri in self.iris]
        yield from filter(None, map(term_warning, values))
        schema = schema_warning(map(schema_of, values))
        if schema:
            yield schema
        yield from self.of_conditions()

    def of_conditions(self) -> Iterator[str]:
        """Those of conditions alone."""
        yield from filter(None, map(incomparable, self.comparisons))
        for scope in self.scopes:
            yield from contradictions(scope)
        for choice in self.empty:
            yield f"{show(choice)} never holds: the list is empty"
        yield from filter(None, map(misplaced, self.placed))
        yield from map(class_as_text, self.texts_for_classes)


def questions_of(where: ir.Where, nodes: Sequence[object], template: Iterable[ir.PatternTerm] = ()) -> Questions:
    """The questions about a query. `nodes`: all of its tree (`triplewire.ir.walk.walk`); `template`: the terms of a
    CONSTRUCT query's triples."""
    used: dict[str, ir.Variable] = {}
    bound: set[str] = set()
    iris: dict[IRI, None] = {}
    comparisons: list[ir.Compare] = []
    empty: list[ir.In] = []
    texts_for_classes: list[ir.Pattern] = []
    conditions, has_places = 0, False
    for node in nodes:  # by type alone, as each registration comes by here
        kind = type(node)
        if kind is ir.Variable:
            used[node.name] = node  # type: ignore[attr-defined, assignment]  # it is one
        elif kind is IRI:
            iris[node] = None  # type: ignore[index]  # as above
        elif kind is Literal:
            iris[_datatype(node.datatype)] = None  # type: ignore[attr-defined]  # as above
        elif kind in _BINDERS:
            bound.update(ir.names_bound(node))
            if isinstance(node, ir.Pattern):
                has_places |= isinstance(node.predicate, IRI)
                texts_for_classes += (node,) if is_text_for_class(node) else ()
        elif kind in CONDITIONS:
            conditions += 1
            if isinstance(node, ir.Compare) and node.coercion is ir.Coercion.STRICT:
                comparisons.append(node)
        elif isinstance(node, ir.In) and not node.negated:
            empty += () if node.choices else (node,)
    for term in template:  # its other terms are made, not asked for
        if isinstance(term, ir.Variable):
            used.setdefault(term.name, term)
    unbound = tuple([variable for name, variable in used.items() if name not in bound and not variable.hidden])
    scopes = tuple(filter(_has_two_on_one, _scopes(where))) if conditions > 1 else ()
    placed = tuple(placed_conditions(where)) if conditions or has_places else ()
    return Questions(unbound, tuple(iris), tuple(comparisons), scopes, tuple(empty), placed, tuple(texts_for_classes))


def conditions_of(where: ir.Where) -> Scope:
    """The conditions of the whole query that must hold together, and of which something is asked."""
    return next(_scopes(where))


def _has_two_on_one(scope: Scope) -> bool:
    """Are there two conditions on one variable?"""
    names = [variable.name for variable in map(constrained, scope) if variable is not None]
    return len(set(names)) < len(names)


def _scopes(where: ir.Where) -> Iterator[Scope]:
    """The conditions that must hold together: those of a group, with those around its alternatives.

    First those of the whole query. The conditions around stand in the scope of each alternative again; where that makes
    too many of them, the alternatives that are left are not looked at.
    """
    waiting: list[tuple[ir.Where, Scope]] = [(where, ())]
    room = _MOST_CONDITIONS
    while waiting and room > 0:
        group, around = waiting.pop()
        parts = list(ir.joined(group))
        filters = [part.condition for part in parts if isinstance(part, ir.Filter)]
        conditions = [condition for whole in filters for condition in ir.conjuncts(whole)]
        scope = (*around, *(condition for condition in conditions if constrained(condition) is not None))
        yield scope
        if group is not where:
            room -= 1 + len(scope)
        for condition in conditions:
            if isinstance(condition, ir.AnyOf):
                for choice in condition.conditions:
                    room -= 1 + len(scope)
                    if room <= 0:
                        return
                    yield (*scope, *ir.conjuncts(choice))
            elif isinstance(condition, ir.Exists):
                waiting.append((condition.group, ()))
        for part in parts:
            if isinstance(part, ir.Or):
                waiting.extend((branch, scope) for branch in part.branches)
            elif isinstance(part, ir.Not | ir.Optional | ir.Minus):
                waiting.append((part.group, ()))
