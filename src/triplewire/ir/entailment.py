"""RDFS entailment, on request: entailed triples of publications, and subclasses of the classes in queries.

Standard: RDF 1.1 Semantics, section 9.2.1. Publications: patterns rdfs2, rdfs3, rdfs5 and rdfs7 (rdfs:domain,
rdfs:range, rdfs:subPropertyOf), and rdfs12 (members of containers, rdf:_1 and so on, are rdfs:member). Queries: rdfs9.
The subclasses come from the taxonomy when a query is evaluated (`triplewire.ir.taxonomy`), so the stated classes of a
publication remain its direct ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import count
from typing import TypeAlias

from triplewire.bounded_cache import BoundedCache
from triplewire.ir import nodes as ir
from triplewire.ir.subscription import Subscription
from triplewire.ir.values.compare import reads_as_text
from triplewire.ir.walk import rewrite
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, RDF, RDF_TYPE, RDFS, Literal, Triple, made_iri

Edges: TypeAlias = Mapping[str, frozenset[str]]
NONE: frozenset[str] = frozenset()
MEMBER = frozenset([RDFS + "member"])
_MEMBERSHIP = re.compile(re.escape(RDF) + "_[1-9][0-9]*+")  # the container membership properties (RDF Schema, 5.1.6)
MOST_ABOVE = 1 << 20
"""Names at or above others that are kept, each counted for each that it is above: some 60 MB."""


def reachable(starts: Iterable[str], edges: Callable[[str], frozenset[str]]) -> set[str]:
    """These, and all that can be reached from them by edges; there may be cycles."""
    seen = set(starts)
    waiting = list(seen)
    while waiting:
        fresh = edges(waiting.pop()) - seen
        seen |= fresh
        waiting.extend(fresh)
    return seen


@dataclass(frozen=True)
class Properties:
    """The direct superproperties of each property, by IRI, and the classes of its subjects and objects."""

    above: Edges = field(default_factory=dict)
    domains: Edges = field(default_factory=dict)
    ranges: Edges = field(default_factory=dict)

    def __getstate__(self) -> dict[str, object]:
        """Without what has been worked out of it."""
        return {part.name: getattr(self, part.name) for part in fields(self)}

    def entail(self, publication: Publication) -> Publication:
        """The publication with the entailed triples after its own; itself if there are none."""
        known = dict.fromkeys(publication.triples)  # which may state a triple twice
        stated, waiting = len(known), list(known)
        for triple in waiting:  # it grows by what follows, of which more may follow
            fresh = [entailed for entailed in self._entailed(triple) if entailed not in known]
            known.update(dict.fromkeys(fresh))
            waiting += fresh
        return publication if len(known) == stated else replace(publication, triples=tuple(known))

    def _entailed(self, triple: Triple) -> Iterator[Triple]:
        """What follows from one triple by one rule, itself among it."""
        for name in self._at_or_above(triple.predicate.value):
            yield Triple(triple.subject, made_iri(name), triple.object)
            for cls in sorted(self.domains.get(name, NONE)):
                yield Triple(triple.subject, RDF_TYPE, made_iri(cls))
            if not isinstance(triple.object, Literal):
                for cls in sorted(self.ranges.get(name, NONE)):
                    yield Triple(triple.object, RDF_TYPE, made_iri(cls))

    @cached_property
    def _closure(self) -> BoundedCache[str, tuple[str, ...]]:
        """Property to itself and all above it."""
        return BoundedCache()

    def _directly_above(self, name: str) -> frozenset[str]:
        above = self.above.get(name, NONE)
        return above | MEMBER if _MEMBERSHIP.fullmatch(name) else above

    def _at_or_above(self, name: str) -> tuple[str, ...]:
        if name not in self.above:  # any name of a publication, which is not kept
            return (name, *self._at_or_above(RDFS + "member")) if _MEMBERSHIP.fullmatch(name) else (name,)
        above = self._closure.get(name)
        if above is None:  # a cycle is legal here: its properties are equivalent
            names = reachable((name,), self._directly_above)
            above = tuple(sorted(names))
            self._closure.put(name, above, len(above), MOST_ABOVE)
        return above


def with_subclasses(subscription: Subscription) -> Subscription:
    """The subscription in which each pattern `?x rdf:type C` with a constant class also matches the subclasses of C."""
    numbers = count(1)

    def widen(pattern: ir.Pattern) -> ir.Where:
        cls = pattern.object
        iri = cls if isinstance(cls, IRI) else made_iri(cls.iri) if isinstance(cls, ir.Label) and cls.iri else None
        if pattern.predicate != RDF_TYPE or iri is None:
            return pattern
        stated = ir.Variable(f".class{next(numbers)}")
        below: ir.Expression = ir.InstanceOf(stated, ir.Relation.SUBCLASS, iri)
        if isinstance(cls, ir.Label):
            # or a literal with the text of the label; no IRI in a publication has that text, as it would be absolute
            if reads_as_text(cls.text):  # an index answers this comparison
                same: ir.Expression = ir.Compare("=", stated, cls, ir.Coercion.LENIENT)
            else:
                same = ir.Compare("=", ir.Function("STR", (stated,)), Literal(cls.text))
            below = ir.AnyOf((below, same))
        return ir.And((replace(pattern, object=stated), ir.Filter(below)))

    return replace(subscription, where=rewrite(subscription.where, (ir.Pattern,), widen))
