"""Two-stage filtering in one process (001, sections 3.2 and 4.5). On storage and on Spark: `triplewire.pipeline`.

Stage 1 matches publications against the index of the server and says which go to which node; stage 2 matches what
comes to a node against its shard. Direct and routed matches are united: they are those of one engine with all
subscriptions. A pair that stage 1 could not decide (a limit was passed, an operator failed) is routed as if it had
matched. What the server has encoded of a publication its nodes need not encode again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from triplewire.engine.chunk import Chunk
from triplewire.engine.result import MatchResult
from triplewire.engine.views import chunks_for, match_chunks
from triplewire.errors import Refusal
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.subscription import Subscription
from triplewire.model.match import Match
from triplewire.model.publication import Publication
from triplewire.partition.placement import SERVER, Placement, add, engine_of
from triplewire.partition.plan import Partitioner
from triplewire.plugins import DEFAULT_MATCHER


@dataclass(frozen=True, slots=True)
class ClusterResult:
    """The matches of some publications, in the order of one engine, and the pairs that could not be decided."""

    matches: list[Match]
    refusals: list[Refusal]


def routes(
    result: MatchResult, publications: Sequence[Publication], placement: Placement
) -> list[tuple[int, list[int]]]:
    """Stage 1: for each node, the numbers of the publications that it has to look at."""
    if not (placement.routes or placement.everywhere):
        return []
    ids: list[set[str]] = [set() for _ in range(placement.nodes)]
    for match in routed(result, placement):
        for node in placement.nodes_of(match[1]):
            ids[node].add(match[0])
    for refusal in result.refusals:
        for above in placement.routes:
            if refusal.subject.endswith(" " + above):
                for node in placement.nodes_of(above):
                    ids[node].add(refusal.subject.removesuffix(" " + above))
    for node in placement.everywhere:
        ids[node].update(publication.id for publication in publications)
    numbers = ((node, [n for n, each in enumerate(publications) if each.id in ids[node]]) for node in range(len(ids)))
    return [(node, some) for node, some in numbers if some]


def routed(result: MatchResult, placement: Placement) -> Iterable[tuple[str, str]]:
    """The pairs (publication, id at the server) of a result that lead to a node."""
    for part in result.parts:
        numbers = part.subscription
        names = part.snapshot.ids(numbers)
        for publication, name in zip(part.publication.tolist(), names, strict=True):
            if name in placement.routes:
                yield part.publications[publication], name


def direct(result: MatchResult, placement: Placement) -> ClusterResult:
    """The matches of stage 1 that are those of subscriptions."""
    if not placement.mergers:
        return ClusterResult(list(result), list(result.refusals))
    mergers = placement.mergers
    refusals = [r for r in result.refusals if not any(r.subject.endswith(" " + merger) for merger in mergers)]
    return ClusterResult([match for match in result if match.subscription not in mergers], refusals)


def take_publications(chunks: Sequence[Chunk], numbers: Sequence[int]) -> list[Chunk]:
    """The publications of these numbers, counted over all chunks and in order, as they are encoded."""
    out, first, all_numbers = [], 0, np.array(numbers, np.int64)
    for chunk in chunks:
        begin, end = np.searchsorted(all_numbers, (first, first + len(chunk)))
        if begin < end:
            out.append(chunk.take(all_numbers[begin:end] - first))
        first += len(chunk)
    return out


class Cluster:
    """A server and its nodes, all in this process. `partitioner` decides where subscriptions are."""

    def __init__(
        self,
        partitioner: Partitioner,
        subscriptions: Iterable[Subscription],
        world: World,
        *,
        entailment: str = "none",
        matcher: str = DEFAULT_MATCHER,
    ) -> None:
        self._partitioner, self._world, self._entailment = partitioner, world, entailment
        self._all = {subscription.id: subscription for subscription in subscriptions}
        partitioner.subscribe(self._all.values())
        placement = partitioner.placement
        self._placed = _places(placement)
        shards: list[list[Subscription]] = [[] for _ in range(placement.nodes)]
        at_server = list(placement.mergers.values())
        for subscription in self._all.values():
            where = placement.place[subscription.id]
            (at_server if where == SERVER else shards[where]).append(subscription)
        self.server = engine_of(at_server, world, entailment, matcher)
        self.nodes = [engine_of(shard, world, entailment, matcher) for shard in shards]

    @property
    def placement(self) -> Placement:
        """Where everything is."""
        return self._partitioner.placement

    def subscribe(self, subscription: Subscription) -> None:
        """Register one more subscription."""
        self._all[subscription.id] = subscription
        self._partitioner.subscribe([subscription])
        self._move()

    def unsubscribe(self, id: str) -> None:
        """Remove a subscription by its id."""
        del self._all[id]
        self._partitioner.unsubscribe(id)
        self._move()

    def match(self, publications: Iterable[Publication]) -> ClusterResult:
        """Match publications in both stages; the matches are in the order of one engine."""
        given = list(publications)
        chunks = chunks_for(self.server, given)
        result = match_chunks(self.server, chunks)
        united = direct(result, self.placement)
        for node, numbers in routes(result, given, self.placement):
            more = match_chunks(self.nodes[node], take_publications(chunks, numbers))
            united.matches.extend(more)
            united.refusals.extend(more.refusals)
        place = {publication.id: number for number, publication in enumerate(given)}
        united.matches.sort(key=lambda match: (place[match.publication], match.subscription))
        return united

    def _move(self) -> None:
        """Have the engines hold what the placement says."""
        placement, before = self.placement, self._placed
        self._placed = _places(placement)
        new: dict[int, list[Subscription]] = {}
        for id in before.keys() | self._placed.keys():
            where = self._placed.get(id)
            if where == before.get(id):
                continue
            for engine in (self.server, *self.nodes):
                engine.unsubscribe(id)
            if where is not None:
                new.setdefault(where, []).append(placement.mergers[id] if id in placement.mergers else self._all[id])
        for where, subscriptions in new.items():
            add(self.server if where == SERVER else self.nodes[where], subscriptions)


def _places(placement: Placement) -> dict[str, int]:
    """Where each subscription and merger is."""
    return {**dict.fromkeys(placement.mergers, SERVER), **placement.place}
