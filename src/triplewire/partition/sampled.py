"""How often publications match a merger in vain: though none of its members does. Estimated from a sample.

Where publications of the sample have all patterns of the merger, those that match no member are counted. Where none
has, its constants are taken for independent of each other: a merger around one rare node is met by chance now and then,
one around two hardly ever. With a thousand mergers that decides what a merging costs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from triplewire.ir.nodes import Variable
from triplewire.ir.normal_form.clauses import Clause, Position
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Literal, Triple

Shape = tuple[IRI | Literal | None, IRI | Literal | None, IRI | Literal | None]
"""A pattern with None in the place of each variable."""

_UNSEEN = 0.5  # how often something counts as seen beyond what was seen


def shape_of(pattern: tuple[Position, Position, Position]) -> Shape:
    """The constants of a pattern."""
    s, p, o = (None if isinstance(term, Variable) else term for term in pattern)
    return s, p, o


class Sample:
    """A sample of publications. Sets of them are bits of a number: bit i stands for the i-th."""

    def __init__(self, publications: Sequence[Publication]) -> None:
        self._size = len(publications)
        self._with: dict[Shape, int] = defaultdict(int)
        self._named: dict[IRI | Literal, int] = defaultdict(int)
        for number, publication in enumerate(publications):
            for triple in publication.triples:
                self._record(triple, 1 << number)

    def _record(self, triple: Triple, bit: int) -> None:
        s, p, o = (term if isinstance(term, IRI | Literal) else None for term in triple)
        for shape in ((s, p, o), (s, p, None), (None, p, o), (None, p, None), (s, None, o)):
            self._with[shape] |= bit
        for term in (s, o):
            if term is not None:
                self._named[term] |= bit

    def in_vain(self, merger: Clause, matched: Iterable[int]) -> float:
        """The share of publications that match the merger and no member; `matched` are the sets of publications of the
        sample that each member matches. An upper bound, as joins are not looked at."""
        seen = (1 << self._size) - 1
        for pattern in merger.patterns:
            seen &= self._with.get(shape_of(pattern), 0)
        if not seen:
            return self._by_chance(merger)
        for publications in matched:
            seen &= ~publications
        return (seen.bit_count() + _UNSEEN) / (self._size + 1)

    def _by_chance(self, merger: Clause) -> float:
        shapes = [shape_of(pattern) for pattern in merger.patterns]
        share = 1.0
        for node in {term for s, _, o in shapes for term in (s, o) if term is not None}:
            share *= self._share(self._named.get(node, 0))
        for _, predicate, _ in shapes:
            share *= self._share(self._with.get((None, predicate, None), 0)) if predicate is not None else 1.0
        return share

    def _share(self, publications: int) -> float:
        return (publications.bit_count() + _UNSEEN) / (self._size + 1)
