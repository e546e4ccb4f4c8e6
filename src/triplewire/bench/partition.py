"""Partitioning as in the cluster paper: sizes of the server's index, false positives, work of the slowest node.

Figures 9(c) to 9(i) and 10 of 001. Nodes are engines in this process, one after the other: a time is that of the
server and of the slowest node, as if each had a machine of its own; sending is not in it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from triplewire.bench.report import Figure
from triplewire.bench.workloads import graphs, overlap
from triplewire.bench.workloads.catalogue import SEED, Case, Place
from triplewire.bench.workloads.corpus import Document
from triplewire.config import Settings
from triplewire.errors import raise_refusal
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.subscription import Subscription
from triplewire.ir.taxonomy import EMPTY
from triplewire.languages.sources.files import read_subscriptions
from triplewire.model.publication import Publication
from triplewire.partition import cluster
from triplewire.partition.cluster import Cluster
from triplewire.partition.merging import Merging
from triplewire.partition.plan import partitioner
from triplewire.read import read

SUBSCRIPTIONS, FEW = 100_000, 10_000
OVERLAPS = (0, 25, 50, 75)
PERCENTS = (50, 70, 90, 99)
AIMED_OVERLAP, AIMED_PERCENT = 50, 90  # those with targets
NODES = (1, 2, 4, 6)
INDEX_SHARE, FALSE_PERCENT = 50, 0.13
MATCHED = (("9(i)", 0.5), ("10", 1.0))  # percent of the subscriptions that match a publication
_PUBLICATIONS = 20_000
_TIMED = 100
_SAMPLED = 10  # one in so many publications
_SHARED = 0.7  # of the triples of a publication, those that its next edition has as well


def cases(place: Place) -> list[Case]:
    """Subscriptions with overlap; the mergers' workload; those of the clusters."""
    size, few = place.sized(SUBSCRIPTIONS), min(FEW, place.sized(FEW))
    out = [_case(place, f"overlap {percent} %", size, percent, 100 * size // SUBSCRIPTIONS) for percent in OVERLAPS]
    out.append(_case(place, "merging", few, 50, 100))
    return out + [_case(place, f"figure {name}", size, 50, int(size * share / 100)) for name, share in MATCHED]


def aimed_cases(place: Place) -> list[Case]:
    """The cases with targets: containment, and merging."""
    size, few = place.sized(SUBSCRIPTIONS), min(FEW, place.sized(FEW))
    overlap_case = _case(place, f"overlap {AIMED_OVERLAP} %", size, AIMED_OVERLAP, 100 * size // SUBSCRIPTIONS)
    return [overlap_case, _case(place, "merging", few, 50, 100)]


def aimed(place: Place, given: list[Case], matcher: str) -> Iterator[Figure]:
    """The figures with targets, of `aimed_cases`."""
    full, world = place.size is None, World(EMPTY, {}, Settings())
    yield from _containment(given[0], world, INDEX_SHARE if full else None)
    yield from _merging(given[1], world, matcher, AIMED_PERCENT, FALSE_PERCENT if full else None)


def _case(place: Place, label: str, size: int, percent: int, matches: int) -> Case:
    workload = graphs.GraphWorkload(30, 90, size, max(1, matches))
    write = partial(_write, workload, size, percent)
    return place.case(label, f"partition-{label.replace(' ', '-').replace('%', '')}", write)


def _write(workload: graphs.GraphWorkload, size: int, percent: int, path: Path) -> Sequence[Document]:
    return overlap.write_overlap(workload, path, size, percent, SEED)


def measure(place: Place, given: list[Case], matcher: str) -> Iterator[Figure]:
    """All figures."""
    full, world = place.size is None, World(EMPTY, {}, Settings())
    for case, percent in zip(given, OVERLAPS, strict=False):
        yield from _containment(case, world, INDEX_SHARE if full and percent == AIMED_OVERLAP else None)
    case = given[len(OVERLAPS)]
    for percent in PERCENTS:
        yield from _merging(case, world, matcher, percent, FALSE_PERCENT if full and percent == AIMED_PERCENT else None)
    for case in given[len(OVERLAPS) + 1 :]:
        yield from _clusters(case, world, matcher)


def _subscriptions(case: Case, world: World) -> list[Subscription]:
    return list(read_subscriptions([case.subscriptions], settings=world.settings, on_refusal=raise_refusal))


def _publications(case: Case, count: int) -> list[Publication]:
    """Publications of a case, in as many editions as make up `count`: of each later one a part of the triples is
    those of another publication."""
    base, dice = list(read(case.publications)), random.Random(SEED)
    out = base[:count]
    while len(out) < count:
        first, other = base[len(out) % len(base)], dice.choice(base)
        mine = [triple for triple in first.triples if dice.random() < _SHARED]
        theirs = dice.sample(other.triples, max(0, min(len(other.triples), len(first.triples) - len(mine))))
        out.append(Publication(f"{first.id}/{len(out)}", triples=tuple(dict.fromkeys([*mine, *theirs]))))
    return out


def _containment(case: Case, world: World, target: float | None) -> Iterator[Figure]:
    """Figures 9(c), (d), (f)."""
    subscriptions = _subscriptions(case, world)
    made = partitioner("containment", max(NODES), world)
    begun = time.process_time()
    made.subscribe(subscriptions)
    seconds = time.process_time() - begun
    share = 100 * made.placement.server_size / len(subscriptions)
    yield Figure("cluster", f"{case.label}: server index after containment", share, "%", target)
    yield Figure("cluster", f"{case.label}: insertion", seconds / len(subscriptions) * 1e6, "us/subscription")


def _merging(case: Case, world: World, matcher: str, percent: int, target: float | None) -> Iterator[Figure]:
    """Figures 9(e), (g), (h)."""
    subscriptions, publications = _subscriptions(case, world), _publications(case, _PUBLICATIONS)
    # not every tenth: editions come in turns, and each tenth would be of the same few
    sample = random.Random(SEED).sample(publications, len(publications) // _SAMPLED)
    made = Merging(2, world, sample=sample, percent=percent)
    begun = time.process_time()
    there = Cluster(made, subscriptions, world, matcher=matcher)
    seconds = time.process_time() - begun
    label = f"merging at {percent} %"
    yield Figure("cluster", f"{label}: server index", there.placement.server_size, "entries")
    yield Figure("cluster", f"{label}: time", seconds, "s")
    false = 100 * len(false_positives(there, made, publications)) / len(publications)
    yield Figure("cluster", f"{label}: publications sent in vain", false, "%", target)


def false_positives(there: Cluster, made: Merging, publications: list[Publication]) -> set[str]:
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


def _clusters(case: Case, world: World, matcher: str) -> Iterator[Figure]:
    """Figures 9(i) and 10: publications a second, where each node has a machine."""
    subscriptions, publications = _subscriptions(case, world), _publications(case, _TIMED)
    single = Cluster(partitioner("replicated", 1, world), subscriptions, world, matcher=matcher)
    alone = _seconds(single, publications)
    for name, percent in (("containment", 70), ("merging", 70), ("merging", 90)):
        for nodes in NODES:
            made = partitioner(name, nodes, world, sample=publications, percent=percent)
            seconds = _seconds(Cluster(made, subscriptions, world, matcher=matcher), publications)
            label = f"{case.label}: {name} {percent} %" if name == "merging" else f"{case.label}: {name}"
            what = f"{label}, {nodes} nodes over one machine (slowest node's work)"
            yield Figure("cluster", what, alone / seconds, "x")


def _seconds(there: Cluster, publications: list[Publication]) -> float:
    """The time of the server or of the slowest node, whichever is longer: the stages run at once (001, section 3.2)."""
    there.match(publications)  # warm
    begun = time.process_time()
    result = there.server.match(publications)
    slowest = time.process_time() - begun
    for node, numbers in cluster.routes(result, publications, there.placement):
        given = [publications[number] for number in numbers]
        begun = time.process_time()
        there.nodes[node].match(given)
        slowest = max(slowest, time.process_time() - begun)
    return slowest
