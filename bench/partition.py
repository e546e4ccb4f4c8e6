"""Partitioning as in the cluster paper: sizes of the server's index, false positives, times of insertion and merging.

Figures 9(c) to 9(h) of 001. 9(i) and 10, and what the paper says of all: `bench.nodes`.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from bench import cluster, nodes
from bench.cluster import Cluster
from bench.nodes import CONTAINMENT, MERGING, NODES, NONE, PERCENTS, Points, figures
from bench.report import Figure
from bench.workloads import graphs
from bench.workloads import graphs as overlap
from bench.workloads.catalogue import SEED, Case, Place
from bench.workloads.corpus import Document
from triplewire.config import Settings
from triplewire.errors import raise_refusal
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.subscription import Subscription
from triplewire.ir.taxonomy import EMPTY
from triplewire.languages.sources.files import read_rows
from triplewire.model.publication import Publication
from triplewire.partition.merging import MergingPartitioner
from triplewire.partition.plan import partitioner
from triplewire.read import read

SUBSCRIPTIONS, FEW, MANY = 100_000, 10_000, 1_000_000
OVERLAPS = (0, 25, 50, 75)
AIMED_OVERLAP, AIMED_PERCENT = 50, 90  # those with targets
SHARES = (20, 40, 60, 80, 100)  # percent of the subscriptions, in 9(c) and 9(f)
INDEX_SHARE, FALSE_PERCENT = 50, 0.13
MATCHED = (("9i", 0.5), ("10", 1.0))  # percent of the subscriptions that match a publication
GROUPS = (("9d",), ("9c", "9f"), ("9e", "9g", "9h"), ("9i",), ("10",))  # figures that are measured together
_PUBLICATIONS = 20_000
_TIMED = 400
_SEEN = 1_000  # publications that mergers are made by, where nodes are timed
_SAMPLED = 10  # one in so many publications
_INSERTED = 1_000  # subscriptions whose insertion is timed, as in the paper
_NODES_OF_ONE, _EDGES = 30, 90  # nodes and edges of a publication, as in the paper


def cases(place: Place, groups: Sequence[Sequence[str]] = GROUPS) -> list[Case]:
    """What the figures of these groups take: subscriptions with overlap; the mergers' workload; those of the
    clusters."""
    size, few = place.sized(SUBSCRIPTIONS), min(FEW, place.sized(FEW))
    wanted, matches = {number for group in groups for number in group}, 100 * size // SUBSCRIPTIONS
    out: list[Case] = []
    if "9d" in wanted:
        out += [overlapping(place, f"overlap {percent} %", size, percent, matches) for percent in OVERLAPS]
    if "9c" in wanted:
        sizes = {share: max(2, size * share // 100) for share in SHARES}
        out += [overlapping(place, f"{share} %", sizes[share], AIMED_OVERLAP, matches) for share in SHARES]
    if "9g" in wanted:
        out.append(overlapping(place, "merging", few, 50, 100))
    matched = [(number, int(size * percent / 100)) for number, percent in MATCHED if number in wanted]
    return out + [overlapping(place, f"figure {number}", size, 50, count) for number, count in matched]


def aimed_cases(place: Place) -> list[Case]:
    """The cases with targets: containment, and merging."""
    size, few = place.sized(SUBSCRIPTIONS), min(FEW, place.sized(FEW))
    overlap_case = overlapping(place, f"overlap {AIMED_OVERLAP} %", size, AIMED_OVERLAP, 100 * size // SUBSCRIPTIONS)
    return [overlap_case, overlapping(place, "merging", few, 50, 100)]


def aimed(place: Place, given: list[Case], matcher: str) -> Iterator[Figure]:
    """The figures with targets, of `aimed_cases`."""
    full, world = place.size is None, World(EMPTY, {}, Settings())
    yield from _containment(given[0], world, INDEX_SHARE if full else None)
    yield from _merging(given[1], world, matcher, AIMED_PERCENT, FALSE_PERCENT if full else None)


def overlapping(place: Place, label: str, size: int, percent: int, matches: int) -> Case:
    workload = graphs.GraphWorkload(_NODES_OF_ONE, _EDGES, size, max(1, matches))
    write = partial(_write, workload, size, percent)
    return place.case(label, f"partition-{label.replace(' ', '-').replace('%', '')}", write)


def _write(workload: graphs.GraphWorkload, size: int, percent: int, path: Path) -> Sequence[Document]:
    return overlap.write_overlap(workload, path, size, percent, SEED)


def measure(
    place: Place,
    given: list[Case],
    matcher: str,
    points: Points | None = None,
    groups: Sequence[Sequence[str]] = GROUPS,
) -> Iterator[Figure]:
    """The figures of these groups, of their `cases`. `points` gets their points."""
    full, world, points = place.size is None, World(EMPTY, {}, Settings()), points or Points()
    case_of = {case.label: case for case in given}
    if GROUPS[0] in groups:
        for percent in OVERLAPS:
            most = INDEX_SHARE if full and percent == AIMED_OVERLAP else None
            yield from _containment(case_of[f"overlap {percent} %"], world, most, points, "9d", percent)
    if GROUPS[1] in groups:
        for share in SHARES:
            yield from _sizes(case_of[f"{share} %"], world, points)
    if GROUPS[2] in groups:
        for percent in PERCENTS:
            target = FALSE_PERCENT if full and percent == AIMED_PERCENT else None
            yield from _merging(case_of["merging"], world, matcher, percent, target, points)
    for number, _ in MATCHED:
        if (number,) in groups:
            yield from nodes.measure(_for_nodes(case_of[f"figure {number}"], number, world, matcher), points)
    yield from figures(points)


def section_7(place: Place, points: Points) -> Iterator[Figure]:
    """The server's index where subscriptions are numbered in millions, which the paper derives in its section 7."""
    size = place.sized(MANY)
    case = overlapping(place, "section 7", size, AIMED_OVERLAP, 100 * size // SUBSCRIPTIONS)
    settings = Settings(max_input_bytes=case.subscriptions.stat().st_size)
    yield from _containment(case, World(EMPTY, {}, settings), None, points, "7", size)


def _subscriptions(case: Case, world: World) -> list[Subscription]:
    parsed = read_rows([case.subscriptions], settings=world.settings, on_refusal=raise_refusal)
    return [its.subscription for its in parsed]


def editions_of(case: Case, count: int) -> list[Publication]:
    """So many publications of a case."""
    return overlap.editions(read(case.publications), count, _EDGES, SEED)


def _for_nodes(case: Case, number: str, world: World, matcher: str) -> nodes.Measured:
    """Mergers are made by other publications than those that are timed."""
    publications = editions_of(case, _SEEN + _TIMED)
    subscriptions, timed, seen = _subscriptions(case, world), publications[_SEEN:], publications[:_SEEN]
    return nodes.Measured(case.label, number, subscriptions, timed, seen, world, matcher)


def _containment(
    case: Case, world: World, target: float | None, points: Points | None = None, figure: str = "9d", place: int = 0
) -> Iterator[Figure]:
    """Figure 9(d), and section 7: a point of theirs."""
    subscriptions = _subscriptions(case, world)
    made = partitioner("containment", max(NODES), world)
    begun = time.process_time()
    made.subscribe(subscriptions)
    seconds = time.process_time() - begun
    share = 100 * made.placement.server_size / len(subscriptions)
    yield Figure("cluster", f"{case.label}: server index after containment", share, "%", target)
    yield Figure("cluster", f"{case.label}: insertion", seconds / len(subscriptions) * 1e6, "us/subscription")
    if points is not None:
        points.add(figure, CONTAINMENT, place, made.placement.server_size)


def _sizes(case: Case, world: World, points: Points) -> Iterator[Figure]:
    """Figures 9(c) and (f): the index, and what one more subscription takes with so many."""
    subscriptions = _subscriptions(case, world)
    random.Random(SEED).shuffle(subscriptions)  # those that are contained come last in the file
    size = len(subscriptions)
    last = min(_INSERTED, size // 2)
    points.add("9c", NONE, size, size)
    merged = partitioner(MERGING, 1, world, sample=editions_of(case, _SEEN), percent=AIMED_OVERLAP)
    merged.subscribe(subscriptions)
    points.add("9c", MERGING, size, merged.placement.server_size)
    for name, line in (("replicated", NONE), ("containment", CONTAINMENT)):
        made = partitioner(name, 1, world)
        made.subscribe(subscriptions[:-last])
        begun = time.process_time()
        made.subscribe(subscriptions[-last:])
        micros = (time.process_time() - begun) / last * 1e6
        points.add("9f", line, size, micros)
        yield Figure("cluster", f"{size:,} subscriptions, {line}: one more", micros, "us/subscription")
    points.add("9c", CONTAINMENT, size, made.placement.server_size)
    yield Figure("cluster", f"{size:,} subscriptions: server index", made.placement.server_size, "entries")


def _merging(
    case: Case, world: World, matcher: str, percent: int, target: float | None, points: Points | None = None
) -> Iterator[Figure]:
    """Figures 9(e), (g), (h)."""
    subscriptions, publications = _subscriptions(case, world), editions_of(case, _PUBLICATIONS)
    # not every tenth: editions come in turns, and each tenth would be of the same few
    sample = random.Random(SEED).sample(publications, len(publications) // _SAMPLED)
    made = MergingPartitioner(2, world, sample=sample, percent=percent)
    begun = time.process_time()
    there = Cluster(made, subscriptions, world, matcher=matcher)
    seconds = time.process_time() - begun
    label = f"merging at {percent} %"
    yield Figure("cluster", f"{label}: server index", there.placement.server_size, "entries")
    yield Figure("cluster", f"{label}: time", seconds, "s")
    false = 100 * len(false_positives(there, made, publications)) / len(publications)
    yield Figure("cluster", f"{label}: publications sent in vain", false, "%", target)
    if points is not None:
        points.add("9e", MERGING, percent, false)
        points.add("9g", MERGING, percent, there.placement.server_size)
        points.add("9g", NONE, percent, len(subscriptions))
        points.add("9h", MERGING, percent, seconds)


def false_positives(there: Cluster, made: MergingPartitioner, publications: list[Publication]) -> set[str]:
    """The ids of publications that a merger matched though none of its members did."""
    placement = made.placement
    result = there.server.match(publications)
    merger_of = {member: merger for merger in placement.mergers for member in made.members(merger)}
    sent = {pair for pair in cluster.routed(result, placement) if pair[1] in placement.mergers}
    for node, numbers in cluster.routes(result, publications, placement):
        for part in there.nodes[node].match([publications[number] for number in numbers]).parts:
            names = part.snapshot.ids(part.subscription)
            for publication, name in zip(part.publication.tolist(), names, strict=True):
                sent.discard((part.publications[publication], merger_of.get(name, "")))
    return {publication for publication, _ in sent}
