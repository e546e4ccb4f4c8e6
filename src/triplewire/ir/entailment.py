"""RDFS entailment, on request: what follows from a publication by rdfs:subPropertyOf, rdfs:domain and rdfs:range, and
queries in which a class takes in its subclasses.

Standard: RDF 1.1 Semantics, section 9.2.1, patterns rdfs2, rdfs3, rdfs5 and rdfs7 for publications, rdfs9 for queries.
The subclasses come from the taxonomy when a query is evaluated (`triplewire.ir.taxonomy`), so that the classes of a
publication stay its direct ones.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from typing import TypeAlias, TypeVar

from triplewire.ir.nodes import And, Filter, InstanceOf, Pattern, Relation, Variable, Where
from triplewire.ir.subscription import Subscription
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, RDF_TYPE, Literal, Triple

T = TypeVar("T")
Edges: TypeAlias = Mapping[str, frozenset[str]]
NONE: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Properties:
    """Of each property, by IRI: the properties directly above it, and the classes of its subjects and objects."""

    above: Edges = field(default_factory=dict)
    domains: Edges = field(default_factory=dict)
    ranges: Edges = field(default_factory=dict)

    def entail(self, publication: Publication) -> Publication:
        """The publication with all triples that follow behind its own; itself where none does."""
        known = dict.fromkeys(publication.triples)
        for triple in publication.triples:
            for name in self._at_or_above(triple.predicate.value):
                known[Triple(triple.subject, IRI(name), triple.object)] = None
                for cls in sorted(self.domains.get(name, NONE)):
                    known[Triple(triple.subject, RDF_TYPE, IRI(cls))] = None
                if not isinstance(triple.object, Literal):
                    for cls in sorted(self.ranges.get(name, NONE)):
                        known[Triple(triple.object, RDF_TYPE, IRI(cls))] = None
        return publication if len(known) == len(publication.triples) else replace(publication, triples=tuple(known))

    @cached_property
    def _closure(self) -> dict[str, tuple[str, ...]]:
        """A cache: property to itself and all above it."""
        return {}

    def _at_or_above(self, name: str) -> tuple[str, ...]:
        found = self._closure.get(name)
        if found is None:
            seen, todo = {name}, [name]
            while todo:  # a cycle is legal here: its properties are equivalent
                fresh = self.above.get(todo.pop(), NONE) - seen
                seen |= fresh
                todo.extend(fresh)
            found = self._closure[name] = tuple(sorted(seen))
        return found


def with_subclasses(subscription: Subscription) -> Subscription:
    """The subscription in which each `?x rdf:type C` with a constant class is true of the classes below C, too."""
    numbers = count(1)

    def widen(pattern: Pattern) -> Where:
        if pattern.predicate != RDF_TYPE or not isinstance(pattern.object, IRI):
            return pattern
        stated = Variable(f".class{next(numbers)}")
        below = Filter(InstanceOf(stated, Relation.SUBCLASS, pattern.object))
        return And((replace(pattern, object=stated), below))

    return replace(subscription, where=_mapped(subscription.where, widen))


def _mapped(node: T, change: Callable[[Pattern], Where]) -> T:
    """A tree of any kind of node, its patterns changed. Registered trees are shallow, so recursion is safe."""
    if isinstance(node, Pattern):
        return change(node)  # type: ignore[return-value]  # a part of a group takes the place of a part of a group
    if isinstance(node, tuple):
        return tuple(_mapped(part, change) for part in node)  # type: ignore[return-value]  # the same kinds as before
    if not dataclasses.is_dataclass(node) or isinstance(node, type):
        return node
    parts = {f.name: getattr(node, f.name) for f in dataclasses.fields(node)}
    changed = {name: _mapped(part, change) for name, part in parts.items()}
    return node if changed == parts else replace(node, **changed)
