"""Figures 9(i) and 10 of the cluster paper (001, section 5.2): publications a second with so many back-end nodes.

Nodes are engines in this process, one after the other, as if each had a machine of its own; sending is not in it. Three
ways are timed: one server in front of the nodes (the paper's), the server's index on each node, which looks at its
share of the publications (footnote 9, and how `triplewire.pipeline` does it), and no partitioning: all subscriptions on
each node, which gets its share of the publications.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from triplewire.bench.cluster_paper import CONTAINMENT, MERGING, NONE, ON_EACH_NODE, Points
from triplewire.bench.report import Figure
from triplewire.engine import Engine
from triplewire.engine.result import MatchResult
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.subscription import Subscription
from triplewire.model.publication import Publication
from triplewire.partition import cluster
from triplewire.partition.engines import engine_of
from triplewire.partition.placement import SERVER, Placement
from triplewire.partition.plan import Partitioner, partitioner

PERCENTS = (50, 70, 90, 99)
NODES: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
NODES_OF_10: tuple[int, ...] = (2, 4)
_PERCENT_OF_9I = 70
_RUNS = 5


@dataclass
class _Recorded(Placement):
    """A placement that knows what hangs below what, so that it can be spread over another number of nodes."""

    hung: dict[tuple[str, str], None] = field(default_factory=dict)

    def hang(self, id: str, above: str) -> None:
        """As the placement does."""
        super().hang(id, above)
        self.hung[id, above] = None

    def unhang(self, id: str, above: str) -> None:
        """As the placement does."""
        super().unhang(id, above)
        del self.hung[id, above]

    def over(self, nodes: int) -> Placement:
        """The same over so many nodes."""
        out = Placement(nodes, mergers=self.mergers)
        for id in self.place:
            out.put(id, SERVER)
        for id, above in self.hung:
            out.hang(id, above)
        return out


@dataclass(frozen=True, slots=True)
class _Work:
    """Processor seconds for some publications: of the server, and of each node for what is routed to it."""

    server: float
    nodes: tuple[float, ...]

    @property
    def one_server(self) -> float:
        """Both stages run at once: the server or the slowest node decides (001, section 3.2)."""
        return max(self.server, *self.nodes)

    @property
    def on_each_node(self) -> float:
        """Each node does its share of the server's work, and its own."""
        return self.server / len(self.nodes) + max(self.nodes)


def measure(
    label: str,
    subscriptions: list[Subscription],
    publications: list[Publication],
    world: World,
    matcher: str,
    number: str,
    points: Points,
) -> Iterator[Figure]:
    """The figure with this number (9i, 10)."""
    single = engine_of(subscriptions, world, "none", matcher)
    alone, result = _seconds(single, publications)
    rate = len(publications) / alone
    yield Figure("cluster", f"{label}: one engine", rate, "publications/s")
    yield _stages(f"{label}: one engine", result)
    if number == "9i":
        tried, nodes_of = [(CONTAINMENT, _PERCENT_OF_9I), (MERGING, _PERCENT_OF_9I)], NODES
        for nodes in nodes_of:
            share = max(_seconds(single, publications[first::nodes])[0] for first in range(nodes))
            points.add(number, NONE, nodes, len(publications) / share)
            yield Figure("cluster", f"{label}: no partitioning, {_over(nodes)}", alone / share, "x")
        for line in (NONE, *(way + end for way, _ in tried for end in ("", ON_EACH_NODE))):
            points.add(number, line, 0, rate)
    else:
        tried, nodes_of = [(MERGING, percent) for percent in PERCENTS], NODES_OF_10
    del single
    for way, percent in tried:
        name = f"{label}: {way} {percent} %" if way == MERGING else f"{label}: {way}"
        made = partitioner(way, 1, world, sample=publications, percent=percent)
        recorded = made.placement = _Recorded(1)
        made.subscribe(subscriptions)
        server = _server(made, subscriptions, world, matcher)
        seconds, result = _seconds(server, publications)
        yield Figure("cluster", f"{name}: server's work over one engine's", seconds / alone, "x")
        yield _stages(f"{name}: server", result)
        for nodes in nodes_of:
            placement = recorded.over(nodes)
            shards = _shards(placement, subscriptions, world, matcher)
            work = _Work(seconds, _routed(server, shards, publications, placement))
            ways = (("", work.one_server), (ON_EACH_NODE, work.on_each_node))
            for end, slowest in ways:
                yield Figure("cluster", f"{name}{end}, {_over(nodes)}", alone / slowest, "x")
                if number == "9i":
                    points.add(number, way + end, nodes, len(publications) / slowest)
                else:
                    points.add(number, "one engine", percent, rate)
                    points.add(number, f"{nodes} nodes{end}", percent, len(publications) / slowest)


def _over(nodes: int) -> str:
    return f"{nodes} nodes over one machine (slowest node's work)"


def _stages(name: str, result: MatchResult) -> Figure:
    """How much of the work is to encode publications, which no partitioning takes away."""
    seconds = result.stats.seconds
    encoding = seconds.get("encode", 0.0)  # the interpreted tier does not encode
    return Figure("cluster", f"{name}: encoding publications", 100 * encoding / sum(seconds.values()), "%")


def _server(made: Partitioner, subscriptions: list[Subscription], world: World, matcher: str) -> Engine:
    at_server = [s for s in subscriptions if made.placement.place[s.id] == SERVER]
    return engine_of([*made.placement.mergers.values(), *at_server], world, "none", matcher)


def _shards(placement: Placement, subscriptions: list[Subscription], world: World, matcher: str) -> list[Engine]:
    shards: list[list[Subscription]] = [[] for _ in range(placement.nodes)]
    for subscription in subscriptions:
        if (node := placement.place[subscription.id]) != SERVER:
            shards[node].append(subscription)
    return [engine_of(shard, world, "none", matcher) for shard in shards]


def _routed(
    server: Engine, nodes: list[Engine], publications: list[Publication], placement: Placement
) -> tuple[float, ...]:
    """The work of each node."""
    seconds = [0.0] * len(nodes)
    for node, numbers in cluster.routes(server.match(publications), publications, placement):
        seconds[node] = _seconds(nodes[node], [publications[number] for number in numbers])[0]
    return tuple(seconds)


def _seconds(engine: Engine, publications: Sequence[Publication]) -> tuple[float, MatchResult]:
    """The processor time of a warm engine: the median of a few runs."""
    result, seconds = engine.match(publications), []
    for _ in range(_RUNS):
        begun = time.process_time()
        result = engine.match(publications)
        seconds.append(time.process_time() - begun)
    return statistics.median(seconds), result
