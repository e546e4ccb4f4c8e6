"""The cluster paper's workload with a known share of contained subscriptions (001, section 5, figures 9(c) to 10).

Publications are alike in groups: those of one *story* have 63 edges in common, and 27 each of its own ("the
publications matching them are similar and contain a common part", section 4.3). Subscriptions are connected pieces of
stories, in turn, so that each publication matches as many as are asked for. The contained ones are others with a
constant for a variable, or with one edge more, as the same story has it: they match in proportion.
"""

from __future__ import annotations

import random as plain_random
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from triplewire.bench.workloads.corpus import Document
from triplewire.bench.workloads.graphs import CUT_AT_A_TIME, Cuts, Gql, Graphs, GraphWorkload, label_names
from triplewire.bench.workloads.pieces import Pieces, Rows, SubscriptionRows, write_rows
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Triple

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
