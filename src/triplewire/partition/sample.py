"""How often publications match a merger in vain: though none of its members does. Estimated from a sample.

Where publications of the sample that match no member have all patterns of the merger, they are counted. Where none has,
its constants are taken for independent of each other: a merger around one rare node is met by chance now and then, one
around two hardly ever. With a thousand mergers that decides what a merging costs, and so does what is taken for chance
where the sample shows none: that depends on how much of the publications' vocabulary the sample has.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import NamedTuple

from triplewire.ir.nodes import Variable
from triplewire.ir.normal_form import Clause, Position
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Literal, Triple

Shape = tuple[IRI | Literal | None, IRI | Literal | None, IRI | Literal | None]
"""A pattern with None in the place of each variable."""


def shape_of(pattern: tuple[Position, Position, Position]) -> Shape:
    """The constants of a pattern."""
    s, p, o = (None if isinstance(term, Variable) else term for term in pattern)
    return s, p, o


def shapes_of(pattern: tuple[Position, Position, Position]) -> Iterator[Shape]:
    """What a pattern says, and less: all its constants, its predicate with one node, one node. Each has a node."""
    s, p, o = shape_of(pattern)
    for shape in dict.fromkeys(((s, p, o), (s, p, None), (None, p, o), (s, None, None), (None, None, o))):
        if shape[0] is not None or shape[2] is not None:
            yield shape


class Sample:
    """A sample of publications. Sets of them are bits of a number: bit i stands for the i-th."""

    def __init__(self, publications: Sequence[Publication]) -> None:
        self._size = len(publications)
        self._with: dict[Shape, int] = defaultdict(int)
        for number, publication in enumerate(publications):
            for triple in publication.triples:
                s, p, o = (term if isinstance(term, IRI | Literal) else None for term in triple)
                for shape in dict.fromkeys(product((s, None), (p, None), (o, None))):
                    self._with[shape] |= 1 << number
        self._unseen = self._expected_of_unseen()

    def _expected_of_unseen(self) -> float:
        """How often what the sample lacks is to be counted as seen: as Good and Turing estimate it (1953), if there are
        as many unseen nodes as seen ones. Where each was seen often, hardly any is missing."""
        seen = [
            publications.bit_count()
            for (s, p, o), publications in self._with.items()
            if p is None and (s is None) != (o is None)
        ]
        return seen.count(1) / len(seen) if seen else 0.5

    def in_vain(self, merger: Clause, matched: Iterable[int]) -> float:
        """The share of publications that match the merger and no member; `matched` are the sets of publications of the
        sample that each member matches. An upper bound, as joins are not looked at."""
        others = (1 << self._size) - 1
        for publications in matched:
            others &= ~publications
        seen = others
        for pattern in merger.patterns:
            seen &= self._with.get(shape_of(pattern), 0)
        return seen.bit_count() / self._size if seen else self._by_chance(merger, others)

    def _by_chance(self, merger: Clause, others: int) -> float:
        """The share of publications that are among these others, and have all constants of the merger by chance."""
        shares: dict[IRI | Literal, float] = {}
        share = (others.bit_count() + self._unseen) / (self._size + 1)
        for s, p, o in map(shape_of, merger.patterns):
            for node, shape in ((s, (s, None, None)), (o, (None, None, o))):
                if node is not None:  # its places are not independent
                    shares[node] = min(shares.get(node, 1.0), self._share(shape, others))
            share *= self._share((None, p, None), others)
        return share * prod(shares.values())

    def _share(self, shape: Shape, others: int) -> float:
        publications = (self._with.get(shape, 0) & others).bit_count()
        return (publications + self._unseen) / (others.bit_count() + 1)


THRESHOLD = 0.3
"""How alike two are, as the triples of both divided by those of either, before they become one."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What publications that are alike have in common, and how often they match (001, section 4.3): `triples` are in
    all publications that it stands for; `counter` is the sum of their matches."""

    triples: frozenset[Triple]
    counter: int

    @property
    def publication(self) -> Publication:
        """It as a publication, which can be matched."""
        return Publication("summary", triples=tuple(self.triples))


class Summaries:
    """The publication matrix E_M of 001 (section 4.3): summaries of publications, no two of which are alike."""

    def __init__(self, threshold: float = THRESHOLD) -> None:
        self._threshold = threshold
        self._summaries: dict[int, Summary] = {}
        self._holders: dict[Triple, set[int]] = defaultdict(set)  # a triple -> the summaries that have it
        self._next = 0

    def add(self, new: Summary) -> None:
        """Put in one more, with those it is alike (statCollection)."""
        while (alike := _most_alike(new.triples, self._summaries, self._holders, self._threshold)) is not None:
            other = self._summaries.pop(alike)
            for triple in other.triples:
                self._holders[triple].discard(alike)
            new = Summary(new.triples & other.triples, new.counter + other.counter)
        self._summaries[self._next] = new
        for triple in new.triples:
            self._holders[triple].add(self._next)
        self._next += 1

    def largest(self) -> list[Summary]:
        """All of them, the largest counter first."""
        return sorted(self._summaries.values(), key=lambda summary: -summary.counter)


def collect(counted: Iterable[tuple[Publication, int]]) -> list[Summary]:
    """The summaries of publications with the numbers of their matches, the largest counter first."""
    summaries = Summaries()
    for publication, matched in counted:
        summaries.add(Summary(frozenset(publication.triples), matched))
    return summaries.largest()


class Statistics(NamedTuple):
    """What is known of a stream of publications: some of them, drawn by lot, and summaries of all."""

    publications: Sequence[Publication]
    summaries: Sequence[Summary]


def _most_alike(
    triples: frozenset[Triple], summaries: Mapping[int, Summary], holders: Mapping[Triple, set[int]], threshold: float
) -> int | None:
    """The number of the summary that is most alike, above the threshold."""
    common = Counter(number for triple in triples for number in holders.get(triple, ()))
    likeness = {n: count / (len(triples) + len(summaries[n].triples) - count) for n, count in common.items()}
    best = max(likeness, key=likeness.__getitem__, default=None)
    return best if best is not None and likeness[best] > threshold else None
