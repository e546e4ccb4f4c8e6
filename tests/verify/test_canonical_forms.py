"""Components have the same form in the join network exactly if they are isomorphic."""

from __future__ import annotations

import itertools
import random

import pytest
import rdflib
from rdflib.compare import to_isomorphic

from triplewire.verify.kernels.columns import ABSENT, NO_STEP, SEVERAL
from verify.columns import Columns
from verify.patterns import PREDICATES, connected, query_of, renamed, world_of


def _last_steps(columns: Columns) -> list[tuple[int, ...]]:
    """The last steps of the components of each clause, ascending."""
    steps, found = columns.columnar.network, []
    for _, root, second, _ in steps.clause.tolist():
        several = steps.roots[second + 1 : second + 1 + steps.roots[second]].tolist() if root == SEVERAL else []
        found.append(tuple(sorted(several or [last for last in (root, second) if last not in (SEVERAL, ABSENT)])))
    return found


def _graph(group: list[tuple[str, str, str]]) -> rdflib.Graph:
    """The patterns, with blank nodes for variables."""
    names: dict[str, rdflib.BNode] = {}
    graph = rdflib.Graph()
    for s, p, o in group:
        ends = [names.setdefault(x, rdflib.BNode()) if x[0] == "?" else rdflib.URIRef(x[1:-1]) for x in (s, o)]
        graph.add((ends[0], rdflib.URIRef(p[1:-1]), ends[1]))
    return graph


SHAPES = {
    "triangle": "ab bc ca",
    "triangle with a way out": "ab bc ca cd",
    "all to one end": "ab bc ac",
    "square": "ab bc cd da",
    "square with a diagonal": "ab bc cd da ac",
    "two triangles": "ab bc ca ad de ea",
    "hexagon": "ab bc cd de ef fa",
    "two ways": "ab bd ac cd",
    "there and back": "ab ba",
    "clique of four": "ab ac ad bc bd cd",
    "wheel": "ab bc cd da ea eb ec ed",
    "three by two": "ad ae bd be cd ce",
}
"""Edges of components with cycles, by the names of their ends."""


def _shaped(rng: random.Random, edges: str) -> list[tuple[str, str, str]]:
    """The edges with predicates of which few differ, and some turned around."""
    predicates = rng.choices(PREDICATES, (8, 1, 1), k=len(edges.split()))
    turned = (edge[::-1] if rng.random() < 0.2 else edge for edge in edges.split())
    return [(f"?{edge[0]}", p, f"?{edge[1]}") for edge, p in zip(turned, predicates, strict=True)]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("cyclic", [False, True])
def test_components_have_the_same_form_exactly_if_they_are_isomorphic(cyclic: bool, seed: int) -> None:
    """The node of a tree, or the last step of a path. RDFLib says which components are isomorphic."""
    rng = random.Random(seed)
    if cyclic:
        groups = [sorted(set(_shaped(rng, edges))) for _ in range(10) for edges in SHAPES.values()]
    else:
        groups = [sorted(set(connected(rng, rng.randint(1, 3)))) for _ in range(120)]
    groups += [renamed(rng, group) for group in groups]
    columns = Columns.of([], [query_of(group, number) for number, group in enumerate(groups)], world_of())
    last = _last_steps(columns)
    chosen = [n for n, group in enumerate(groups) if len(group) > 1 and len(last[n]) == 1]
    chosen = [n for n in chosen if (last[n][0] < NO_STEP if cyclic else last[n][0] >= 0)]
    digest = {number: to_isomorphic(_graph(groups[number])).graph_digest() for number in chosen}
    pairs = same = 0
    for a, b in itertools.combinations(chosen, 2):
        if len(groups[a]) == len(groups[b]):
            assert (last[a] == last[b]) == (digest[a] == digest[b]), (groups[a], groups[b])
            pairs += 1
            same += last[a] == last[b]
    assert pairs > 1000
    assert same > 50
