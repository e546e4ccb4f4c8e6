"""Publication summaries: what publications that are alike have in common, and how often they match (001, section 4.3).

`statCollection` with the paper's slips mended: a merged summary is compared again as it is then, and the one that it
took in is removed. It is work for the side: on a sample of the publications, not on the way of any.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
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


def collect(counted: Iterable[tuple[Publication, int]], threshold: float = THRESHOLD) -> list[Summary]:
    """The summaries of publications with the numbers of their matches, the largest counter first."""
    summaries: dict[int, Summary] = {}
    holders: dict[Triple, set[int]] = defaultdict(set)  # a triple -> the summaries that have it
    for number, (publication, matched) in enumerate(counted):
        new = Summary(frozenset(publication.triples), matched)
        while (alike := _most_alike(new.triples, summaries, holders, threshold)) is not None:
            other = summaries.pop(alike)
            for triple in other.triples:
                holders[triple].discard(alike)
            new = Summary(new.triples & other.triples, new.counter + other.counter)
        summaries[number] = new
        for triple in new.triples:
            holders[triple].add(number)
    return sorted(summaries.values(), key=lambda summary: -summary.counter)


def _most_alike(
    triples: frozenset[Triple], summaries: Mapping[int, Summary], holders: Mapping[Triple, set[int]], threshold: float
) -> int | None:
    """The number of the summary that is most alike, above the threshold."""
    common = Counter(number for triple in triples for number in holders.get(triple, ()))
    best, most = None, threshold
    for number, count in common.items():
        likeness = count / (len(triples) + len(summaries[number].triples) - count)
        if likeness > most:
            best, most = number, likeness
    return best
