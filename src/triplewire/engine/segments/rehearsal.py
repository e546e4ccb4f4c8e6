"""A rehearsal: a new segment matches a few publications that are made of its own clauses, before the first real one.

Kernels come into memory when they are first called, and some tables of a segment are made when they are first needed.
Together that takes a third of a second, which the first publication would have to wait.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from triplewire.engine.chunk import Chunk
from triplewire.engine.segments.arena import Arena
from triplewire.engine.stats import Clock
from triplewire.ir.nodes import Variable
from triplewire.ir.normal_form.clauses import Clause, Position, normal_form
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Literal, Triple

if TYPE_CHECKING:
    from triplewire.engine.segments.segment import Segment

LEAST = 1_000  # subscriptions of a segment that is worth it
_SOME = 4  # of its subscriptions, of which publications are made
_NAMES = 1 << 15  # of the taxonomy, of which it is found out which class tests hold of them
_PREDICATES = 1_000  # residual ones, whose subscriptions are compiled
_NODE = "urn:triplewire:rehearsal:"
_MANY = (1 << 10) + 1  # publications, and distinct terms, of a batch that kernels for few do not take


def rehearse(segment: Segment) -> None:
    """Match publications that are instances of some clauses: alone, and in a large batch, as other kernels take that.
    No operator is called."""
    world = segment.context.compiler.world
    most = world.settings.max_branches
    numbers = range(0, len(segment), max(len(segment) // _SOME, 1))
    clauses = (clause for n in numbers for clause in normal_form(segment.meant(n), most=most).clauses[:1])
    publications = [publication for clause in clauses if (publication := instance_of(clause)).triples]
    segment.prepare(_NAMES, _PREDICATES)
    if publications:
        others = [Publication(_NODE, (_statement(number),)) for number in range(_MANY)]
        for chunk in (publications[:1], [*publications, *others]):
            segment.match(Chunk(chunk), None, Clock(), Arena())


def instance_of(clause: Clause) -> Publication:
    """A publication in which the patterns of a clause have a solution: each variable is a node of its own. The tests
    need not hold."""
    triples = (tuple(map(_node, pattern)) for pattern in clause.patterns)
    return Publication(_NODE, tuple(_valid(triples)))


def _statement(number: int) -> Triple:
    """A triple that no subscription asks for, with a node of its own."""
    return Triple(IRI(_NODE), IRI(_NODE), Literal(f"{_NODE}{number}"))


def _node(position: Position) -> IRI | Literal:
    return IRI(_NODE + str(position.name)) if isinstance(position, Variable) else position


def _valid(triples: Iterable[tuple[IRI | Literal, ...]]) -> Iterable[Triple]:
    for subject, predicate, object_ in triples:
        if isinstance(subject, IRI) and isinstance(predicate, IRI):
            yield Triple(subject, predicate, object_)
