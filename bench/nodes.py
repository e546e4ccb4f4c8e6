"""Figures 9(i) and 10 of the cluster paper (001, section 5.2): publications a second with so many back-end nodes.

Nodes are engines in this process, one after the other, as if each had a machine of its own; sending is not in it. Three
ways are timed: one server in front of the nodes (the paper's), the server's index on each node, which looks at its
share of the publications (footnote 9, and how `triplewire.pipeline` does it), and no partitioning: all subscriptions on
each node, which gets its share of the publications. Work is from Arrow columns to the rows of matches, and what the
server has encoded and hashed is handed on (as in `bench.cluster`). In figures of their own: where nodes encode and
hash again, as they do in the pipeline; and matching alone, without the rows of matches.
"""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

from bench import cluster
from bench.drawing import Line, Lines
from bench.report import Figure
from triplewire.encode.schema import to_batch
from triplewire.engine import Engine
from triplewire.engine.chunk import Chunk
from triplewire.engine.views import encoded, match_chunks
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.subscription import Subscription
from triplewire.model.publication import Publication
from triplewire.partition.placement import SERVER, Placement, engine_of
from triplewire.partition.plan import partitioner

# --- cluster paper ---------------------------------------------------------------------------------------------------
# Figures 9(c) to 9(i) and 10 of the cluster paper (001, section 5): their points, and of each claim whether it holds.


NONE, CONTAINMENT, MERGING = "no indexing", "containment", "merging"
ON_EACH_NODE = ", server's index on each node"
AGAIN, MATCHING = ", encoded again by nodes", ", matching alone"
SLOWEST = "publications a second (slowest node's work, each node a machine)"

NOISE = 0.15  # a fall of a time by this share is that of a shared machine

Said = Iterator[tuple[str, str, bool, str]]
"""What the paper says, what was measured, whether it holds, and why where it does not."""

_PLACED = "containment that is not proved by 2,000 patterns of a pair, or is beyond 128 candidates, is not seen"
_IN_VAIN = (
    "a merger is made only where its members have patterns in common and the publications that it sends in vain stay"
    " within 0.1 %, as a sample says; the paper merges down to the target"
)
_NOT_AGAIN = (
    "738 mergers are left, which are not merged again, and 114 subscriptions; without any limit to what is sent in vain"
    " 811 entries would be"
)
_IN_FRONT = (
    "from some number of nodes on the one server decides, whose work no node does: it names the matches of its own"
    " subscriptions, 248 of 500 a publication after containment and 150 after merging, in 417 and 287 of one engine's"
    " 571 us, of which rows of matches are 330 and 223"
)
_SAMPLED = "what is sent in vain is estimated by a sample of one publication in ten"
_TWICE = (
    "every publication goes to every node, so each does what takes time whatever matches: of six nodes, one with 59 of"
    " 500 matches takes 32 us to match (one engine 82), and 174 to encode, hash and make rows (489)"
)
_ONE_NODE = "with one node the node decides: it has 350 of 500 matches after merging, and 252 after containment"
_AS_MANY = (
    "a node's matches and its share of the server's are as many at any percentage: 1,000 a publication, over the number"
    " of nodes"
)
_NODES_DECIDE = (
    "the server's matches fall (500, 300, 100 and 17 of 1,000 a publication), but those of the nodes rise (to 495 of"
    " two, 247 of four), each of which gets every publication: past some percentage the slowest node decides"
)
_HALF = (
    "containment takes out what others contain, half of the subscriptions at the paper's overlap of 50 % (85 % would"
    " leave 150,000); the paper derives its number from merging, which was not tried with a million here"
)
_CANDIDATES = "its candidates are looked up by their patterns, however many subscriptions there are"


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure: what is along its axes, and what the paper says of it."""

    name: str
    across: str
    up: str
    claims: Callable[[Lines], Said]


@dataclass
class Points:
    """The points of all figures, as they are measured."""

    lines: dict[str, Lines] = field(default_factory=lambda: defaultdict(lambda: defaultdict(dict)))

    def add(self, figure: str, line: str, place: float, value: float) -> None:
        """Note a point."""
        self.lines[figure][line][place] = value


def _sizes(lines: Lines) -> Said:
    """9(c)."""
    last = max(lines[CONTAINMENT])
    share = lines[CONTAINMENT][last] / last
    name = "indexing reduces the server's index to 50 %"
    yield name, f"{share:.1%} of {last:,} (containment)", share <= 0.505, _PLACED
    if MERGING in lines:
        share = lines[MERGING][last] / last
        yield "merging reduces it to 50 % or less", f"{share:.1%} of {last:,}", share <= 0.505, _IN_VAIN


def _overlaps(lines: Lines) -> Said:
    """9(d)."""
    line = lines[CONTAINMENT]
    whole = line[min(line)] / (1 - min(line) / 100)
    off = {percent: size / (whole * (1 - percent / 100)) - 1 for percent, size in line.items()}
    worst = max(off.values(), key=abs)
    name = "the index has about subscriptions * (1 - overlap) entries"
    yield name, f"{worst:+.1%} at most", abs(worst) <= 0.1, _PLACED
    yield "the larger the overlap, the smaller the index", _told(line), _falls(line), _PLACED


def _false(lines: Lines) -> Said:
    """9(e)."""
    line = lines[MERGING]
    if 90 in line:
        yield "0.13 % false positives at 90 %", f"{line[90]:.2f} %", line[90] <= 0.13, _SAMPLED
    name = "false positives do not fall as more is merged"
    yield name, _told(line, ".2f"), _rises(line, strictly=False), _SAMPLED


def _insertion(lines: Lines) -> Said:
    """9(f)."""
    line, plain = lines[CONTAINMENT], lines[NONE]
    ratio = min(line[size] / plain[size] for size in line)
    name = "insertion takes longer with containment than without indexing"
    yield name, f"{ratio:.1f} times at least", ratio > 1, _CANDIDATES
    yield "it takes longer the more subscriptions there are", _told(line, ".1f"), _rises(line, NOISE), _CANDIDATES


def _merged(lines: Lines) -> Said:
    """9(g)."""
    line, whole = lines[MERGING], next(iter(lines[NONE].values()))
    yield "the index shrinks as more is to be merged", _told(line), _falls(line), _IN_VAIN
    least = min(100 * size / (whole * (100 - percent)) for percent, size in line.items())
    name = "the index stays larger than subscriptions * (1 - percentage), or as large"
    yield name, f"{least:.2f} times at least", least >= 1, _IN_VAIN
    if 99 in line and whole == 10_000:
        yield "629 entries at 99 %", f"{line[99]:,.0f}", line[99] <= 1.1 * 629, _NOT_AGAIN


def _merging_time(lines: Lines) -> Said:
    """9(h)."""
    line = lines[MERGING]
    yield "merging takes longer as more is to be merged", _told(line, ".1f"), _rises(line, NOISE), _IN_VAIN


def _nodes(lines: Lines) -> Said:
    """9(i)."""
    last = max(lines[CONTAINMENT])
    asked_of = {CONTAINMENT: 2.0, MERGING: 4.0}
    for name, asked in ((way + end, asked) for way, asked in asked_of.items() for end in ("", ON_EACH_NODE)):
        if name not in lines:
            continue
        line = lines[name]
        if name.endswith(ON_EACH_NODE):  # one such node is one machine, as one engine is
            more = {nodes: rate for nodes, rate in line.items() if nodes}
            yield f"{name}: the throughput grows with the nodes, from one on", _told(line), _rises(more, NOISE), _TWICE
        else:
            yield f"{name}: the throughput grows with the nodes", _told(line), _rises(line), _IN_FRONT
        if last == 6:
            times = line[last] / line[0]
            why = _TWICE if name.endswith(ON_EACH_NODE) else _IN_FRONT
            yield f"{name}: {asked * 100:.0f} % with 6 nodes", f"{times:.0%}", times >= asked, why
    least = min(lines[MERGING][nodes] / lines[CONTAINMENT][nodes] for nodes in lines[MERGING] if nodes)
    yield "merging is faster than containment", f"{least:.2f} times at least", least > 1, _ONE_NODE


def _percentages(lines: Lines) -> Said:
    """10."""
    single = next(iter(lines["one engine"].values()))
    for name, line in lines.items():
        if name != "one engine":
            why = _AS_MANY if name.endswith(ON_EACH_NODE) else _NODES_DECIDE
            yield f"{name}: the throughput grows as more is merged", _told(line), _rises(line, NOISE), why
    best = max(line[90] / single for line in lines.values() if 90 in line)
    yield "4 times one engine's throughput at 90 %", f"{best:.1f} times at most", best >= 4, _TWICE


def _millions(lines: Lines) -> Said:
    """Section 7."""
    ((size, entries),) = lines[CONTAINMENT].items()
    claim = "150,000 entries of 1,000,000 subscriptions (derived)"
    yield claim, f"{entries:,.0f} of {size:,.0f} (containment)", entries <= 0.15 * size, _HALF


DRAWINGS = (
    Drawing("9c", "subscriptions", "entries of the server's index", _sizes),
    Drawing("9d", "percent of overlap", "entries of the server's index", _overlaps),
    Drawing("9e", "percent to be merged", "percent of publications sent in vain", _false),
    Drawing("9f", "subscriptions", "microseconds a subscription", _insertion),
    Drawing("9g", "percent to be merged", "entries of the server's index", _merged),
    Drawing("9h", "percent to be merged", "seconds", _merging_time),
    Drawing("7", "subscriptions", "entries of the server's index", _millions),
    Drawing("9i", "back-end nodes", SLOWEST, _nodes),
    Drawing("10", "percent to be merged", SLOWEST, _percentages),
    *(Drawing("9i" + kind, "back-end nodes", SLOWEST, _nodes) for kind in (AGAIN, MATCHING)),
    *(Drawing("10" + kind, "percent to be merged", SLOWEST, _percentages) for kind in (AGAIN, MATCHING)),
)


def figures(points: Points) -> Iterator[Figure]:
    """The claims as rows."""
    for drawing in DRAWINGS:
        lines = points.lines.get(drawing.name)
        for claim, measured, held, _ in drawing.claims(lines) if lines else ():
            told = f"{'held' if held else 'NOT HELD'}: {measured}"
            yield Figure("cluster", f"figure {drawing.name}: {claim}", float(held), "held", note=told)


def _told(line: Line, form: str = ",.0f") -> str:
    return ", ".join(f"{value:{form}}" for _, value in sorted(line.items()))


def _rises(line: Line, noise: float = 0.0, *, strictly: bool = True) -> bool:
    """From place to place, where a fall by the share `noise` is none; and then from the first to the last."""
    values = [value for _, value in sorted(line.items())]
    steps = [(a * (1 - noise), b) for a, b in pairwise(values)] + ([(values[0], values[-1])] if noise else [])
    return all(a < b if strictly else a <= b for a, b in steps)


def _falls(line: Line) -> bool:
    return _rises({place: -value for place, value in line.items()})


# --- nodes ------------------------------------------------------------


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
    yield _matches(f"{given.label}: one engine", single, given.publications)
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
    begun = time.process_time()
    made.subscribe(given.subscriptions)
    yield Figure("cluster", f"{name}: partitioning", time.process_time() - begun, "s")
    placement = made.placement
    yield Figure("cluster", f"{name}: server's index", placement.server_size, "entries")
    server = given.engine([*placement.mergers.values(), *_placed(placement, given.subscriptions, SERVER)])
    cost = _cost(server, given.publications)
    yield _matches(f"{name}: server", server, given.publications)
    yield from _shares(f"{name}: server", cost)
    for kind in _KINDS:
        share = kind.of_engine(cost) / kind.of_engine(alone)
        yield Figure("cluster", f"{name}{kind.suffix}: server's work over one engine's", share, "x")
        if given.number == "10":
            points.add(given.number + kind.suffix, "one engine", percent, given.rate(kind.of_engine(alone)))
    for nodes in nodes_of:
        each, sent = _routed(server, _spread_over(placement, nodes), given)
        yield Figure("cluster", f"{name}, {nodes} nodes: publications sent to each", 100 * sent, "%")
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


def _matches(name: str, engine: Engine, publications: Sequence[Publication]) -> Figure:
    return Figure("cluster", f"{name}: matches", len(engine.match(publications)) / len(publications), "a publication")


def _shares(name: str, cost: _Cost) -> Iterator[Figure]:
    for part, seconds in (("encoding", cost.encoding), ("matching", cost.matching), ("rows of matches", cost.rows)):
        yield Figure("cluster", f"{name}: {part}", 100 * seconds / cost.whole, "%")


def _placed(placement: Placement, subscriptions: list[Subscription], where: int) -> list[Subscription]:
    return [subscription for subscription in subscriptions if placement.place[subscription.id] == where]


def _routed(server: Engine, placement: Placement, given: Measured) -> tuple[list[_Node], float]:
    """The work of each node; and the mean share of the publications that are sent to one."""
    nodes, sent = [_Node()] * placement.nodes, 0
    chunks = encoded(server, to_batch(given.publications))
    result = match_chunks(server, chunks)
    result.to_arrow()  # by which they are hashed
    for node, numbers in cluster.routes(result, given.publications, placement):
        shard = given.engine(_placed(placement, given.subscriptions, node))
        again = _cost(shard, [given.publications[number] for number in numbers])
        nodes[node] = _Node(again, _measured(shard, partial(cluster.take_publications, chunks, numbers), encodes=False))
        sent += len(numbers)
    return nodes, sent / len(nodes) / len(given.publications)


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
