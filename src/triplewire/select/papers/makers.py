"""The papers' matchers by their names. Their indexes bring compiled kernels along, and come when the first is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from triplewire.plugins import attribute
from triplewire.select.index import Index, WarmUp

if TYPE_CHECKING:
    from triplewire.clauses.clauses import Clauses

_SUBSCRIPTIONS = (
    (
        "sparql",
        "SELECT * { ?s <urn:p> ?o ; <urn:q> ?n FILTER ftcontains(?o, 'one' ftAND 'two') FILTER(?n > 1) }",
    ),
    ("sparql", "SELECT * { ?s ?p <urn:t> . ?s <urn:q> ?n FILTER ftcontains(?n, 'three') }"),
    ("gql", "SELECT ?s WHERE ((?s, <urn:q>, ?n) SUCHTHAT (?s ISA <= <urn:c> AND ?n != 3))"),
)
_DOCUMENT = b"""<urn:s> <urn:p> "one two" <urn:g> .
<urn:s> <urn:q> "2"^^<http://www.w3.org/2001/XMLSchema#integer> <urn:g> .
<urn:s> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <urn:c> <urn:g> .
"""
_WARM_UP = WarmUp(_SUBSCRIPTIONS, (_DOCUMENT,))


@dataclass(frozen=True)
class PaperMaker:
    """A matcher of a paper: its index class as "module:class", and the mode of it."""

    name: str
    place: str
    mode: int = 0
    version: int = 1
    warm_up: WarmUp = _WARM_UP

    def build(self, clauses: Clauses) -> Index:
        """The index over the clauses."""
        index: Index = attribute(f"triplewire.select.papers.{self.place}")(clauses, self.mode)
        return index

    def open(self, clauses: Clauses, arrays: Mapping[str, NDArray[Any]]) -> Index:
        """The same: nothing is saved."""
        return self.build(clauses)


NAIVE = PaperMaker("naive", "edges:Naive")
OPS = PaperMaker("ops", "edges:Ops")
GTOPSS = PaperMaker("gtopss", "edges:StarEdges", 1)
GTOPSS_GREEDY = PaperMaker("gtopss-greedy", "edges:StarEdges", 2)
CONSTRAINT_TABLES = PaperMaker("constraint-tables", "constraint_tables:ConstraintIndex")
IBROKER = PaperMaker("ibroker", "chains:ChainIndex")
RTF_M = PaperMaker("rtf-m", "tries:ForestIndex", 0)
RTF_S = PaperMaker("rtf-s", "tries:ForestIndex", 1)
