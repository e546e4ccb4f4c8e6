"""Figures 9(i) and 10 of the cluster paper (001, section 5.2): publications a second with so many back-end nodes.

Nodes are engines in this process, one after the other, as if each had a machine of its own; sending is not in it. Three
ways are timed: one server in front of the nodes (the paper's), the server's index on each node, which looks at its
share of the publications (footnote 9, and how `triplewire.pipeline` does it), and no partitioning: all subscriptions on
each node, which gets its share of the publications. Work is from Arrow columns to the rows of matches, and what the
server has encoded and hashed is handed on (as in `partition.cluster`). In figures of their own: where nodes encode and
hash again, as they do in the pipeline; and matching alone, without the rows of matches.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from triplewire.bench.cluster_paper import AGAIN, CONTAINMENT, MATCHING, MERGING, NONE, ON_EACH_NODE, Points
from triplewire.bench.report import Figure
from triplewire.encode.schema import to_batch
from triplewire.engine import Engine
from triplewire.engine.chunk import Chunk
from triplewire.engine.views.encoded_chunks import encoded, match_chunks
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.subscription import Subscription
from triplewire.model.publication import Publication
from triplewire.partition import cluster
from triplewire.partition.engines import engine_of
from triplewire.partition.placement import SERVER, Placement
from triplewire.partition.plan import partitioner

PERCENTS = (50, 70, 90, 99)
NODES: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
NODES_OF_10: tuple[int, ...] = (2, 4)
_PERCENT_OF_9I = 70
_RUNS = 3


def _spread_over(placement: Placement, nodes: int) -> Placement:
    """The same placement over so many nodes."""
    out = Placement(nodes, mergers=placement.mergers)
    for id in placement.place:
        out.put(id, SERVER)
    for id, above in placement.above.items():
        out.hang(id, above)
    return out


@dataclass(frozen=True, slots=True)
class _Cost:
    """Processor seconds of an engine for some publications: from Arrow columns to encoded ones, to pairs, to rows of
    matches. What is handed on encoded costs no encoding, and no hashing in its rows."""

    encoding: float = 0.0
    matching: float = 0.0
    rows: float = 0.0

    @property
    def whole(self) -> float:
        """What a task of the pipeline does."""
        return self.encoding + self.matching + self.rows

    @property
    def pairs(self) -> float:
        """What it takes to know what matches."""
        return self.encoding + self.matching


@dataclass(frozen=True, slots=True)
class _Node:
    """What a node costs that encodes its publications again, and one that has them handed on."""

    again: _Cost = _Cost()
    handed: _Cost = _Cost()


@dataclass(frozen=True, slots=True)
class _Work:
    """What some publications cost the server, and each node for what is routed to it."""

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


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of work: what it costs an engine, and a node that publications are routed to. `suffix` is in the names of
    its figures."""

    suffix: str
    of_engine: Callable[[_Cost], float]
    of_node: Callable[[_Node], float]


_KINDS = (
    _Kind("", lambda cost: cost.whole, lambda node: node.handed.whole),
    _Kind(AGAIN, lambda cost: cost.whole, lambda node: node.again.whole),
    _Kind(MATCHING, lambda cost: cost.pairs, lambda node: node.handed.pairs),
)


@dataclass(frozen=True)
class Measured:
    """What is measured: subscriptions, publications, and those that mergers are made by; `number` of the figure."""

    label: str
    number: str
    subscriptions: list[Subscription]
    publications: list[Publication]
    sample: list[Publication]
    world: World
    matcher: str

    def rate(self, seconds: float) -> float:
        """Publications a second."""
        return len(self.publications) / seconds

    def engine(self, subscriptions: Sequence[Subscription]) -> Engine:
        """An engine of some of the subscriptions, or of mergers."""
        return engine_of(subscriptions, self.world, "none", self.matcher)


def measure(given: Measured, points: Points) -> Iterator[Figure]:
    """The figure with this number (9i, 10)."""
    single = given.engine(given.subscriptions)
    alone = _cost(single, given.publications)
    for kind in _KINDS:
        yield Figure(
            "cluster", f"{given.label}{kind.suffix}: one engine", given.rate(kind.of_engine(alone)), "publications/s"
        )
    yield from _shares(f"{given.label}: one engine", alone)
    if given.number == "9i":
        yield from _not_partitioned(given, single, alone, points)
        tried, nodes_of = [(CONTAINMENT, _PERCENT_OF_9I), (MERGING, _PERCENT_OF_9I)], NODES
    else:
        tried, nodes_of = [(MERGING, percent) for percent in PERCENTS], NODES_OF_10
    del single
    for way, percent in tried:
        yield from _partitioned(given, way, percent, nodes_of, alone, points)


def _partitioned(
    given: Measured, way: str, percent: int, nodes_of: Sequence[int], alone: _Cost, points: Points
) -> Iterator[Figure]:
    """One way to partition, over several numbers of nodes."""
    name = f"{given.label}: {way} {percent} %" if way == MERGING else f"{given.label}: {way}"
    made = partitioner(way, 1, given.world, sample=given.sample, percent=percent)
    made.subscribe(given.subscriptions)
    placement = made.placement
    yield Figure("cluster", f"{name}: server's index", placement.server_size, "entries")
    server = given.engine([*placement.mergers.values(), *_placed(placement, given.subscriptions, SERVER)])
    cost = _cost(server, given.publications)
    yield from _shares(f"{name}: server", cost)
    for kind in _KINDS:
        share = kind.of_engine(cost) / kind.of_engine(alone)
        yield Figure("cluster", f"{name}{kind.suffix}: server's work over one engine's", share, "x")
        if given.number == "10":
            points.add(given.number + kind.suffix, "one engine", percent, given.rate(kind.of_engine(alone)))
    for nodes in nodes_of:
        each = _routed(server, _spread_over(placement, nodes), given)
        for kind in _KINDS:
            work = _Work(kind.of_engine(cost), tuple(map(kind.of_node, each)))
            for end, slowest in (("", work.one_server), (ON_EACH_NODE, work.on_each_node)):
                times = kind.of_engine(alone) / slowest
                yield Figure("cluster", f"{name}{kind.suffix}{end}, {_over(nodes)}", times, "x")
                line, place = (way + end, nodes) if given.number == "9i" else (f"{nodes} nodes{end}", percent)
                points.add(given.number + kind.suffix, line, place, given.rate(slowest))


def _not_partitioned(given: Measured, single: Engine, alone: _Cost, points: Points) -> Iterator[Figure]:
    """All subscriptions on each node, which gets its share of the publications; and one engine as the place 0."""
    for nodes in NODES:
        costs = [_cost(single, given.publications[first::nodes]) for first in range(nodes)]
        for kind in _KINDS:
            slowest = max(kind.of_engine(cost) for cost in costs)
            points.add(given.number + kind.suffix, NONE, nodes, given.rate(slowest))
            name = f"{given.label}: no partitioning{kind.suffix}, {_over(nodes)}"
            yield Figure("cluster", name, kind.of_engine(alone) / slowest, "x")
    for kind in _KINDS:
        for line in (NONE, *(way + end for way in (CONTAINMENT, MERGING) for end in ("", ON_EACH_NODE))):
            points.add(given.number + kind.suffix, line, 0, given.rate(kind.of_engine(alone)))


def _over(nodes: int) -> str:
    return f"{nodes} nodes over one machine (slowest node's work)"


def _shares(name: str, cost: _Cost) -> Iterator[Figure]:
    for part, seconds in (("encoding", cost.encoding), ("matching", cost.matching), ("rows of matches", cost.rows)):
        yield Figure("cluster", f"{name}: {part}", 100 * seconds / cost.whole, "%")


def _placed(placement: Placement, subscriptions: list[Subscription], where: int) -> list[Subscription]:
    return [subscription for subscription in subscriptions if placement.place[subscription.id] == where]


def _routed(server: Engine, placement: Placement, given: Measured) -> list[_Node]:
    """The work of each node."""
    nodes = [_Node()] * placement.nodes
    chunks = encoded(server, to_batch(given.publications))
    result = match_chunks(server, chunks)
    result.to_arrow()  # by which they are hashed
    for node, numbers in cluster.routes(result, given.publications, placement):
        shard = given.engine(_placed(placement, given.subscriptions, node))
        again = _cost(shard, [given.publications[number] for number in numbers])
        nodes[node] = _Node(again, _measured(shard, partial(cluster.take_publications, chunks, numbers), encodes=False))
    return nodes


def _cost(engine: Engine, publications: Sequence[Publication]) -> _Cost:
    return _measured(engine, partial(encoded, engine, to_batch(publications)))


def _measured(engine: Engine, chunks: Callable[[], list[Chunk]], *, encodes: bool = True) -> _Cost:
    """What publications cost a warm engine: the medians of a few runs. To take some of those that are handed on
    belongs to their matching."""
    runs = []
    for _ in range(1 + _RUNS):
        times = [time.process_time()]
        given = chunks()
        times.append(time.process_time())
        result = match_chunks(engine, given)
        times.append(time.process_time())
        result.to_arrow()
        times.append(time.process_time())
        runs.append([after - before for before, after in pairwise(times)])
    first, matching, rows = (statistics.median(seconds) for seconds in zip(*runs[1:], strict=True))
    return _Cost(first, matching, rows) if encodes else _Cost(0.0, first + matching, rows)
