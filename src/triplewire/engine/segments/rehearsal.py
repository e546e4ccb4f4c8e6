"""A rehearsal: a new segment matches a few publications that are made of its own clauses, before the first real one.

Kernels come into memory when they are first called, and some tables of a segment are made when they are first needed.
Together that takes a third of a second, which the first publication would have to wait.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from triplewire.engine.segments.arena import Arena
from triplewire.engine.stats import Clock
from triplewire.ir.nodes import Variable
from triplewire.ir.normal_form.clauses import Clause, Position, normal_form
from triplewire.matchers import Chunk
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Literal, Triple

if TYPE_CHECKING:
    from triplewire.engine.segments.segment import Segment

LEAST = 1_000  # subscriptions of a segment that is worth it
_SOME = 4  # of its subscriptions, of which publications are made
_NAMES = 1 << 15  # of the taxonomy, of which it is found out which class tests hold of them
_PREDICATES = 1_000  # residual ones, whose subscriptions are compiled
_NODE = "urn:triplewire:rehearsal:"


def rehearse(segment: Segment) -> None:
    """Match publications that are instances of some clauses. No operator is called."""
    world = segment.home.meaning.world
    most = world.settings.max_branches
    numbers = range(0, len(segment), max(len(segment) // _SOME, 1))
    clauses = (clause for n in numbers for clause in normal_form(segment.meant(n), most=most).clauses[:1])
    publications = [publication for clause in clauses if (publication := instance_of(clause)).triples]
    segment.prepare(_NAMES, _PREDICATES)
    if publications:
        segment.match(Chunk(publications), None, Clock(), Arena())


def instance_of(clause: Clause) -> Publication:
    """A publication in which the patterns of a clause have a solution: each variable is a node of its own. The tests
    need not hold."""
    triples = (tuple(map(_node, pattern)) for pattern in clause.patterns)
    return Publication(_NODE, tuple(_valid(triples)))


def _node(position: Position) -> IRI | Literal:
    return IRI(_NODE + str(position.name)) if isinstance(position, Variable) else position


def _valid(triples: Iterable[tuple[IRI | Literal, ...]]) -> Iterable[Triple]:
    for subject, predicate, object_ in triples:
        if isinstance(subject, IRI) and isinstance(predicate, IRI):
            yield Triple(subject, predicate, object_)
