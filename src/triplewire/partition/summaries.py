"""Publication summaries: what publications that are alike have in common, and how often they match (001, section 4.3).

`statCollection` with the paper's slips mended: a merged summary is compared again as it is then, and the one that it
took in is removed. It is work for the side: on a sample of the publications, not on the way of any.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from triplewire.model.publication import Publication
from triplewire.model.terms import Triple

THRESHOLD = 0.3
"""How alike two are, as the triples of both divided by those of either, before they become one."""


@dataclass(frozen=True, slots=True)
class Summary:
    """`triples` are in all publications that it stands for; `counter` is the sum of their matches."""

    triples: frozenset[Triple]
    counter: int

    @property
    def publication(self) -> Publication:
        """It as a publication, which can be matched."""
        return Publication("summary", triples=tuple(self.triples))


class Summaries:
    """The summaries of the publications so far."""

    def __init__(self, threshold: float = THRESHOLD) -> None:
        self._threshold = threshold
        self._summaries: dict[int, Summary] = {}
        self._with: dict[Triple, set[int]] = {}
        self._next = 0

    def add(self, publication: Publication, matched: int) -> None:
        """Take a publication that so many subscriptions matched."""
        new = Summary(frozenset(publication.triples), matched)
        while (like := self._most_alike(new.triples)) is not None:
            other = self._remove(like)
            new = Summary(new.triples & other.triples, new.counter + other.counter)
        number, self._next = self._next, self._next + 1
        self._summaries[number] = new
        for triple in new.triples:
            self._with.setdefault(triple, set()).add(number)

    def by_counter(self) -> list[Summary]:
        """All, the most frequently matched one first."""
        return sorted(self._summaries.values(), key=lambda summary: -summary.counter)

    def _most_alike(self, triples: frozenset[Triple]) -> int | None:
        common: dict[int, int] = {}
        for triple in triples:
            for number in self._with.get(triple, ()):
                common[number] = common.get(number, 0) + 1
        best, most = None, self._threshold
        for number, count in common.items():
            alike = count / (len(triples) + len(self._summaries[number].triples) - count)
            if alike > most:
                best, most = number, alike
        return best

    def _remove(self, number: int) -> Summary:
        summary = self._summaries.pop(number)
        for triple in summary.triples:
            self._with[triple].discard(number)
        return summary


def collect(counted: Iterable[tuple[Publication, int]], threshold: float = THRESHOLD) -> list[Summary]:
    """The summaries of publications with the numbers of their matches, the largest counter first."""
    summaries = Summaries(threshold)
    for publication, matched in counted:
        summaries.add(publication, matched)
    return summaries.by_counter()
