"""Graph workloads: `gtopss`, `cluster` and "same structure, different constraints". Subscriptions are GQL.

Sources: the G-ToPSS paper, table 1; the cluster paper, section 5 and figure 9(b). A publication is a simple path over
all its nodes plus random edges. Half of the subscriptions (the overlap) are connected pieces of the publications, so
that each publication has its known number of matches; the others are pieces of graphs that are never published. Two
nodes of nine in ten subscriptions are variables. Table 1 gives subscriptions "5 nodes, 35 edges", which no piece of its
publications of 35 nodes and 90 edges can be; like the later paper we take 5 and 10 edges, half each.
"""

from __future__ import annotations

import random as plain_random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.workloads.corpus import (
    CHUNK,
    TYPE,
    Document,
    Pieces,
    Rows,
    SubscriptionRows,
    iri,
    name,
    write_rows,
)
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Triple

EDGES = (5, 10)
STARS, WITH_STARS, OVERLAP = 2, 0.9, 0.5
LABELS, NODES = 100, 10_000  # distinct edge and node labels of all graphs
UNPUBLISHED = 500  # graphs that the other subscriptions are cut from
_TRIES = 30
CUT_AT_A_TIME = 20_000  # subscriptions; some hundred bytes of memory for each edge of each


@dataclass(frozen=True, slots=True)
class GraphWorkload:
    """The parameters of a workload. `matches` is the number of matches of each publication."""

    nodes: int
    edges: int
    subscriptions: int
    matches: int

    def published(self, subscriptions: int) -> int:
        """The number of publications of which the overlapping half of the subscriptions are pieces."""
        return max(1, round(OVERLAP * subscriptions / self.matches_of(subscriptions)))

    def matches_of(self, subscriptions: int) -> int:
        """The matches of a publication, in proportion where fewer subscriptions are asked for."""
        return max(1, self.matches * min(subscriptions, self.subscriptions) // self.subscriptions)


GTOPSS = GraphWorkload(35, 90, 30_000, 30)
CLUSTER = GraphWorkload(30, 90, 100_000, 100)
CLUSTER_MANY = GraphWorkload(30, 90, 100_000, 1_000)


@dataclass(frozen=True, slots=True)
class Cuts:
    """Pieces of graphs. `chosen`: the edges of each; `starred`: the nodes that are variables; -1 for none."""

    graph: NDArray[np.int64]
    chosen: NDArray[np.int64]
    starred: NDArray[np.int64]

    def part(self, first: int, last: int) -> Cuts:
        """Some of the pieces."""
        return Cuts(self.graph[first:last], self.chosen[first:last], self.starred[first:last])


class Graphs:
    """Many random graphs of one size: `node[g, i]` is the label of a node, `edge[g, j]` (subject, label, object). With
    `alike`, two nodes of a graph may have the same label, which takes far less memory to draw."""

    def __init__(self, random: np.random.Generator, count: int, nodes: int, edges: int, *, alike: bool = False) -> None:
        if alike:
            self.node = random.integers(0, NODES, (count, nodes), dtype=np.int32)
        else:
            self.node = np.argsort(random.random((count, NODES)), axis=1)[:, :nodes].astype(np.int32)
        path = np.stack([np.arange(nodes - 1), np.arange(1, nodes)], axis=1)
        ends = random.integers(0, nodes, (count, edges - nodes + 1, 2))
        both = np.concatenate([np.broadcast_to(path, (count, *path.shape)), ends], axis=1)
        label = random.integers(0, LABELS, (count, edges, 1))
        self.edge = np.concatenate([both[:, :, :1], label, both[:, :, 1:]], axis=2).astype(np.int32)

    def cut(self, random: np.random.Generator, graph: NDArray[np.int64], size: int) -> NDArray[np.int64]:
        """For each row a connected piece of its graph: edge numbers, shape (rows, size); -1 where none was found."""
        chosen = np.full((len(graph), size), -1, np.int64)
        chosen[:, 0] = random.integers(0, self.edge.shape[1], len(graph))
        for step in range(1, size):
            chosen[:, step] = self.touching(random, graph, chosen[:, :step])
        return chosen

    def touching(
        self, random: np.random.Generator, graph: NDArray[np.int64], chosen: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """For each row an edge of its graph that touches those chosen, and is not one of them; -1 where none was
        found."""
        edges, step = self.edge[graph], chosen.shape[1]
        edge_of, open_ = np.full(len(graph), -1, np.int64), np.arange(len(graph))
        for _ in range(_TRIES):
            from_ = chosen[open_, random.integers(0, step, len(open_))]
            node = edges[open_, np.maximum(from_, 0), 2 * random.integers(0, 2, len(open_))]
            touches = (edges[open_, :, 0] == node[:, None]) | (edges[open_, :, 2] == node[:, None])
            edge = (touches * random.random(touches.shape)).argmax(axis=1)
            new = (from_ >= 0) & (chosen[open_] != edge[:, None]).all(axis=1)
            edge_of[open_[new]] = edge[new]
            open_ = open_[~new]
            if not len(open_):
                break
        return edge_of

    def pieces(self, random: np.random.Generator, graph: NDArray[np.int64]) -> Cuts:
        """A piece of each of these graphs: 5 edges in even rows of pairs, 10 in odd ones."""
        size, most = len(graph), max(EDGES)
        chosen = np.full((size, most), -1, np.int64)
        for at, edges in enumerate(EDGES):
            rows = np.flatnonzero(np.arange(size) // 2 % len(EDGES) == at)
            chosen[rows, :edges] = self.cut(random, graph[rows], edges)
        there = chosen >= 0
        ends = self.edge[graph[:, None], np.maximum(chosen, 0)][:, :, ::2]
        starred = np.empty((size, STARS), np.int64)
        for variable in range(STARS):
            at = (random.random((size, most)) * there).argmax(axis=1)  # one of the edges
            starred[:, variable] = ends[np.arange(size), at, random.integers(0, 2, size)]
            starred[random.random(size) >= WITH_STARS, variable] = -1
        return Cuts(graph, chosen, starred)

    def documents(self, count: int) -> list[Document]:
        """The first graphs as publications."""
        names, labels = node_names(), label_names()
        out: list[Document] = []
        for number in range(count):
            own = [names[n] for n in self.node[number]]
            statements = dict.fromkeys((own[s], labels[p], own[o]) for s, p, o in self.edge[number].tolist())
            out.append((iri("graph", str(number)), list(statements)))
        return out


def node_names() -> list[str]:
    """The node labels of all graphs."""
    return [iri("node", name(n)) for n in range(NODES)]


def label_names() -> list[str]:
    """The edge labels of all graphs."""
    return [iri("property", name(n)) for n in range(LABELS)]


def write_graphs(workload: GraphWorkload, path: Path, subscriptions: int, seed: int) -> list[Document]:
    """Write the subscriptions to `path`; returns the publications."""
    random = np.random.default_rng(seed)
    published = workload.published(subscriptions)
    graphs = Graphs(random, published + UNPUBLISHED, workload.nodes, workload.edges)
    pieces = Pieces()
    row = SubscriptionRows(pieces, "gql", "g", "SELECT * WHERE ")
    query = Gql(pieces)

    def chunks() -> Iterator[Rows]:
        for first in range(0, subscriptions, CUT_AT_A_TIME):
            number = np.arange(first, min(first + CUT_AT_A_TIME, subscriptions))
            own = number % 2 == 0  # every second one overlaps, and every publication has its turn
            graph = np.where(own, number // 2 % published, published + random.integers(0, UNPUBLISHED, len(number)))
            yield row.around(query.rows(graphs, graphs.pieces(random, graph)), first)

    write_rows(path, pieces, chunks())
    return graphs.documents(published)


class Gql:
    """Writes pieces of graphs as tuples of GQL, with so many variables."""

    def __init__(self, pieces: Pieces, stars: int = STARS) -> None:
        nodes = node_names()
        self._subject = pieces.add_all([f"({n}, " for n in nodes] + [f"(?x{v}, " for v in range(stars)])
        self._label = pieces.add_all(f"{label}, " for label in label_names())
        self._object = pieces.add_all([f"{n})" for n in nodes] + [f"?x{v})" for v in range(stars)])
        self._and = pieces.add(" AND ")

    def rows(self, graphs: Graphs, cuts: Cuts) -> Rows:
        """The tuples of these pieces."""
        there = cuts.chosen >= 0
        edge = graphs.edge[cuts.graph[:, None], np.maximum(cuts.chosen, 0)]
        ends = edge[:, :, ::2]
        node = graphs.node[cuts.graph[:, None, None], ends]
        for variable in range(cuts.starred.shape[1]):
            node[ends == cuts.starred[:, variable, None, None]] = NODES + variable
        out = np.zeros((*there.shape, 4), np.int32)
        out[:, 1:, 0] = self._and
        out[:, :, 1] = self._subject[node[:, :, 0]]
        out[:, :, 2] = self._label[edge[:, :, 1]]
        out[:, :, 3] = self._object[node[:, :, 1]]
        out[~there] = 0
        return out.reshape(len(there), -1)


# --- same structure, different constraints --------------------------------------------------------------------------

MINT, LOCATION, LATITUDE = iri("mint", "Mint"), iri("mint", "location"), iri("mint", "latitude")
GRID = 10  # latitudes of the publications: 0.0, 0.1, ... 0.9
SAME_MATCHES = 99


def mints(count: int, seed: int) -> list[Document]:
    """Publications of one structure: a mint, its location, the location's latitude."""
    dice = plain_random.Random(seed)
    out: list[Document] = []
    for number in range(count):
        mint, place = iri("mint", f"m{number}"), iri("mint", f"l{number}")
        latitude = f'"{number % GRID / GRID}"^^<http://www.w3.org/2001/XMLSchema#decimal>'
        label = f'"{name(dice.randrange(5_000))}"@en'
        facts = [(mint, TYPE, MINT), (mint, iri("mint", "label"), label), (mint, LOCATION, place)]
        out.append((mint, [*facts, (place, LATITUDE, latitude)]))
    return out


def write_same_structure(path: Path, subscriptions: int, seed: int, *, windows: bool = False) -> None:
    """Write subscriptions that differ in their constraint only, of which `SAME_MATCHES` match each publication.

    A third each have `=`, `>` and `<` with distinct constants. With `windows`, all have `>=` and `<`, with windows so
    wide that as many match.
    """
    random = np.random.default_rng(seed)
    pieces = Pieces()
    head = f"SELECT * WHERE (?m, {TYPE}, {MINT}) AND (?m, {LOCATION}, ?l) AND ((?l, {LATITUDE}, ?y) SUCHTHAT ("
    row = SubscriptionRows(pieces, "gql", "c", head, "))")
    digits = pieces.add_all(f"{number:03d}" for number in range(1_000))
    signs = pieces.add_all(("?y = ", "?y > ", "?y < ", "?y >= ", " AND ?y < "))

    def number(values: NDArray[np.float64]) -> Rows:
        """Pieces of numbers above -10: sign and whole part, nine digits."""
        billionths = np.round(values * 1e9).astype(np.int64)
        whole = pieces.add_all(f"{w}." if w >= 0 else f"-{-w - 1}." for w in range(-10, 10))
        size = np.abs(billionths)
        place = np.where(billionths < 0, 9 - size // 10**9, 10 + size // 10**9)
        return np.stack([whole[place], *(digits[size // 10**p % 1_000] for p in (6, 3, 0))], axis=1)

    def chunks() -> Iterator[Rows]:
        width = min(1.0, SAME_MATCHES / subscriptions)
        cells = max(1, round(subscriptions / SAME_MATCHES / GRID)) * GRID  # distinct constants of `=`
        for first in range(0, subscriptions, CHUNK):
            at = np.arange(first, min(first + CHUNK, subscriptions))
            if windows:
                low = random.random(len(at)) * (1 + width) - width
                parts = [
                    np.full((len(at), 1), signs[3]),
                    number(low),
                    np.full((len(at), 1), signs[4]),
                    number(low + width),
                ]
                yield row.around(np.hstack(parts), first)
                continue
            third, rank, holds = at % 3, at // 3, at // 3 < SAME_MATCHES // 3
            share = (rank + 1) / (subscriptions // 3 + 2)  # distinct, between 0 and 1
            below, above = -share, 1 + share  # all latitudes
            value = np.choose(
                third, [rank % cells / cells, np.where(holds, below, above), np.where(holds, above, below)]
            )
            yield row.around(np.hstack([signs[third][:, None], number(value)]), first)

    write_rows(path, pieces, chunks())


# --- overlap ---------------------------------------------------------------------------------------------------------
# The cluster paper's workload with a known share of contained subscriptions (001, section 5, figures 9(c) to 10).


SHARED = 0.7
"""Of the edges of a publication, those that all of its story have."""


def write_overlap(workload: GraphWorkload, path: Path, subscriptions: int, percent: int, seed: int) -> list[Document]:
    """Write subscriptions to `path`, of which `percent` are contained in others; returns the stories, of which
    `editions` makes publications. Each publication matches `workload.matches` of them."""
    random = np.random.default_rng(seed)
    whole = max(1, subscriptions * (100 - percent) // 100)
    stories = max(1, min(round(subscriptions / workload.matches), whole))
    graphs = Graphs(random, stories, workload.nodes, round(SHARED * workload.edges))
    pieces = Pieces()
    query = Gql(pieces)
    wide = graphs.pieces(random, np.arange(whole) % stories)
    turn = np.arange(whole, subscriptions) % stories  # the story of each contained one, and which of its pieces
    of_story = whole // stories + (turn < whole % stories)
    narrow = _narrower(random, graphs, wide, turn + stories * random.integers(0, of_story))

    def chunks() -> Iterator[Rows]:
        for letter, cuts in (("g", wide), ("c", narrow)):
            row = SubscriptionRows(pieces, "gql", letter, "SELECT * WHERE ")
            for first in range(0, len(cuts.graph), CUT_AT_A_TIME):
                yield row.around(query.rows(graphs, cuts.part(first, first + CUT_AT_A_TIME)), first)

    write_rows(path, pieces, chunks())
    return graphs.documents(stories)


def _narrower(random: np.random.Generator, graphs: Graphs, wide: Cuts, rows: np.ndarray) -> Cuts:
    """Pieces that are contained in those of these rows: every second one that has variables has one less, as its story
    has it; the others have one edge more."""
    graph, chosen, starred = wide.graph[rows], wide.chosen[rows], wide.starred[rows].copy()
    fewer = (np.arange(len(rows)) // len(graphs.node) % 2 == 0) & (starred >= 0).any(axis=1)
    which = ((starred >= 0) * random.random(starred.shape)).argmax(axis=1)
    node = starred[np.arange(len(rows)), which]
    starred[fewer[:, None] & (starred == node[:, None])] = -1
    more = np.where(fewer, -1, graphs.touching(random, graph, chosen))
    return Cuts(graph, np.hstack([chosen, more[:, None]]), starred)


def editions(stories: Iterable[Publication], count: int, edges: int, seed: int) -> list[Publication]:
    """So many publications, the stories in turn: each has all of its story, and up to `edges` edges by edges of its
    own, between nodes of the story."""
    base, dice = list(stories), plain_random.Random(seed)
    labels = [IRI(label.strip("<>")) for label in label_names()]
    nodes = [
        sorted({term for s, _, o in story.triples for term in (s, o) if isinstance(term, IRI)}, key=str)
        for story in base
    ]
    out: list[Publication] = []
    for number in range(count):
        story, names = base[number % len(base)], nodes[number % len(base)]
        more = range(edges - len(story.triples))
        own = [Triple(dice.choice(names), dice.choice(labels), dice.choice(names)) for _ in more]
        out.append(Publication(f"{story.id}/{number}", triples=tuple(dict.fromkeys([*story.triples, *own]))))
    return out
