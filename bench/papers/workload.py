"""The workload of the experiments of G-ToPSS (000, section 5), whose parameters the cluster paper (001) takes over.

Of the subscriptions, a share overlaps: those that match are pieces of the publications, the others are pieces of one
big graph. Each of the rest is a graph of its own. What the text leaves open: the big graph has 400 nodes and 1,000
edges, there are ten publications, and a class has ten subclasses or a hundred nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np

from bench.workloads.corpus import TYPE, Document, Pieces, Rows, SubscriptionRows, iri, write_rows
from bench.workloads.graphs import CUT_AT_A_TIME, WITH_STARS, Cuts, Gql, Graphs, node_names

PUBLICATIONS = 10
BIG_NODES, BIG_EDGES = 400, 1_000
CLASSES = 100
_SUBCLASS = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"


@dataclass(frozen=True, slots=True)
class GraphSetting:
    """The parameters of table 1. `edges` and `stars` of a subscription; `ratio` and `overlap`, in percent: of all
    subscriptions, those that match each publication, and those that overlap. With `constraints`, the first star of each
    is limited to a class."""

    subscriptions: int = 30_000
    edges: int = 5
    stars: int = 2
    overlap: int = 50
    ratio: float = 0.1
    constraints: bool = False
    nodes: int = 35
    published_edges: int = 90
    own_nodes: int = 0

    @property
    def matches(self) -> int:
        """How many subscriptions match each publication: at least one."""
        return max(1, round(self.subscriptions * self.ratio / 100))

    @property
    def name(self) -> str:
        """A file name of its own."""
        return "-".join(["papers", *map(str, astuple(self))])


def write_taxonomy(path: Path) -> None:
    """Classes in a tree in which each has ten subclasses, and the class of each node, which its number says."""
    lines = [f"{_class(number)} {_SUBCLASS} {_class(number // 10)} .\n" for number in range(1, CLASSES)]
    lines += [f"{node} {TYPE} {_class(number % CLASSES)} .\n" for number, node in enumerate(node_names())]
    path.write_text("".join(lines), encoding="utf-8")


def write_subscriptions(setting: GraphSetting, path: Path, seed: int) -> list[Document]:
    """Write the subscriptions; returns the publications."""
    random = np.random.default_rng(seed)
    published = Graphs(random, PUBLICATIONS, setting.nodes, setting.published_edges)
    big = Graphs(random, 1, BIG_NODES, BIG_EDGES)
    matching = PUBLICATIONS * setting.matches
    overlapping = max(0, setting.subscriptions * setting.overlap // 100 - matching)
    apart = max(0, setting.subscriptions - matching - overlapping)
    pieces = Pieces()
    query, row = Gql(pieces, setting.stars), SubscriptionRows(pieces, "gql", "g", "SELECT * WHERE (", "")

    def chunks() -> Iterator[Rows]:
        done = 0
        for graphs, count in ((published, matching), (big, overlapping), (None, apart)):
            for first in range(0, count, CUT_AT_A_TIME):
                size = min(CUT_AT_A_TIME, count - first)
                # a subscription of its own graph has all of its edges
                nodes = setting.own_nodes or setting.edges
                graphs_here = graphs or Graphs(random, size, nodes, setting.edges, alike=True)
                graph = np.arange(first, first + size) % len(graphs_here.node)
                cuts = pieces_of(random, graphs_here, graph, setting)
                ends = _ends(random, graphs_here, cuts, pieces, setting.constraints)
                yield row.around(np.hstack([query.rows(graphs_here, cuts), ends[:, None]]), done)
                done += size

    write_rows(path, pieces, chunks())
    return published.documents(PUBLICATIONS)


def pieces_of(random: np.random.Generator, graphs: Graphs, graph: np.ndarray, setting: GraphSetting) -> Cuts:
    """A connected piece of each of these graphs; nine in ten have stars, which are different nodes where there are so
    many."""
    chosen = graphs.cut(random, graph, setting.edges)
    there = chosen >= 0
    ends = graphs.edge[graph[:, None], np.maximum(chosen, 0)][:, :, ::2]
    ends = np.where(there[:, :, None], ends, -1).reshape(len(graph), -1)
    starred = np.full((len(graph), max(1, setting.stars)), -1, np.int64)
    for star in range(setting.stars):
        is_free = (ends >= 0) & (ends[:, :, None] != starred[:, None, :]).all(axis=2)
        at = (random.random(ends.shape) * is_free).argmax(axis=1)
        rows = np.arange(len(graph))
        starred[:, star] = np.where(is_free[rows, at], ends[rows, at], -1)
    starred[random.random(len(graph)) >= WITH_STARS] = -1
    return Cuts(graph, chosen, starred)


def _ends(random: np.random.Generator, graphs: Graphs, cuts: Cuts, pieces: Pieces, constraints: bool) -> Rows:
    """The piece that ends each subscription: the class of its first star's node, or that one's superclass."""
    plain = np.full(len(cuts.graph), pieces.add(")"), np.int32)
    if not constraints:
        return plain
    star = cuts.starred[:, 0]
    number = graphs.node[cuts.graph, np.maximum(star, 0)] % CLASSES
    apart = random.spawn(1)[0]  # what is drawn after this is the same with constraints as without
    number = np.where(apart.random(len(number)) < 0.5, number, number // 10)
    ends = pieces.add_all(f") SUCHTHAT (?x0 ISA <= {_class(n)})" for n in range(CLASSES))
    return np.asarray(np.where(star >= 0, ends[number], plain))


def _class(number: int) -> str:
    return iri("class", f"c{number}")
