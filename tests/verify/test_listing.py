"""Bindings that the join network lists: those of the reference whatever is selected, and equal components once."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from solutions import wrong_rows
from triplewire.clauses.view import View
from triplewire.config import Settings
from triplewire.engine.chunk import Chunk
from triplewire.ir.evaluation.evaluate import World, evaluate
from triplewire.kernels.shared.columns import LEFT
from triplewire.languages import parse
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Triple
from triplewire.verify.network import SharedJoins
from triplewire.verify.solve import Pairs, Solved
from verify.columns import Columns

NODES = [IRI(f"urn:n{number}") for number in range(6)]
PREDICATES = [IRI(f"urn:{name}") for name in "pqr"]
BODIES = {
    "path": "?a <urn:p> ?b . ?b <urn:q> ?c . ?c <urn:r> ?d",
    "fork": "?a <urn:p> ?b . ?a <urn:p> ?c . ?a <urn:q> ?d . ?d <urn:r> ?e",
    "leaves": "?a ?b ?c . ?c <urn:q> <urn:n1>",
    "direct": "?a <urn:p> ?b . ?a <urn:q> <urn:n1>",
    "backwards": "?b <urn:p> ?a . ?a <urn:q> <urn:n1> . ?c <urn:r> ?b",
    "loop": "?a <urn:p> ?a . ?a ?b <urn:n2> . ?a <urn:q> ?c",
    "triangle": "?a <urn:p> ?b . ?b <urn:q> ?c . ?c <urn:r> ?a . ?a ?d ?e",
    "predicates": "?a ?p ?b . ?b ?p ?c",
    "two": "?a <urn:p> ?b . ?c <urn:q> ?d . ?d <urn:p> ?e",
    "star": "?a <urn:p> ?b . ?a <urn:p> ?c . ?a ?d ?e",
    "either": "{ ?a <urn:p> ?b . ?b <urn:q> <urn:n1> } UNION { ?a <urn:q> ?c . <urn:n1> <urn:p> <urn:n2> }",
}


def _publication(rng: random.Random, number: int, triples: int) -> Publication:
    """With predicates that are nodes as well."""
    nodes = NODES + PREDICATES[:1]
    drawn = {Triple(rng.choice(nodes), rng.choice(PREDICATES), rng.choice(nodes)) for _ in range(triples)}
    return Publication(f"urn:publication:{number}", tuple(drawn))


def _spied(columns: Columns, monkeypatch: pytest.MonkeyPatch) -> list[Solved]:
    """What is listed from now on."""
    told: list[Solved] = []
    listed = SharedJoins.listed

    def spy(self: SharedJoins, view: View, pairs: Pairs, most: int, most_steps: int) -> Solved:
        told.append(listed(self, view, pairs, most, most_steps))
        return told[-1]

    monkeypatch.setattr(SharedJoins, "listed", spy)
    return told


@pytest.mark.parametrize("cap", [1, 5, 1_000])
@pytest.mark.parametrize("spare", [0, 40])
@pytest.mark.parametrize("proven", [False, True])
def test_all_that_may_be_selected(cap: int, spare: int, proven: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a publication has too many terms for direct nodes. All but selected predicates is listed here."""
    rng, texts = random.Random(cap), []
    for body in BODIES.values():
        names = sorted({body[at + 1] for at in range(len(body)) if body[at] == "?"})
        for size in (1, 2, len(names)):
            chosen = list(itertools.combinations(names, size))
            texts += [f"SELECT {' '.join(f'?{name}' for name in names)} {{ {body} }}" for names in chosen[:6]]
    queries = [parse(text, "sparql", id=text) for text in texts]
    more = tuple(Triple(IRI(f"urn:x{n}"), IRI("urn:s"), IRI(f"urn:y{n}")) for n in range(spare))
    constants = (Triple(NODES[1], PREDICATES[0], NODES[2]),) if proven else ()  # the index would have found them
    graphs = [_publication(rng, number, 6 + 5 * number) for number in range(6)]
    publications = [Publication(graph.id, (*{*graph.triples, *constants}, *more)) for graph in graphs]
    columns = Columns.of(publications, queries, World(settings=Settings(max_bindings=cap)), proven, proven)
    verdict = columns.verdict()
    told = _spied(columns, monkeypatch)
    rows = columns.bindings(verdict)
    for p, s, truncated, own in zip(
        verdict.publication.tolist(), verdict.subscription.tolist(), verdict.truncated.tolist(), rows, strict=True
    ):
        answer = evaluate(queries[s], publications[p], columns.world)
        assert truncated == answer.truncated, queries[s].text
        assert wrong_rows(own, answer, queries[s], publications[p], columns.world) == "", queries[s].text
        if not truncated:
            assert own == [frozenset(binding.items()) for binding in answer.bindings], queries[s].text
    assert len(rows) > 200
    assert np.count_nonzero(told[0].outcome == LEFT) < len(told[0].outcome) / 10


@pytest.mark.parametrize("body", [BODIES["path"], BODIES["backwards"], BODIES["triangle"]])
def test_equal_components_are_listed_once(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred names and orders of one component take as many lists as one: one for each publication."""
    rng, lists = random.Random(3), []
    names = sorted({body[at + 1] for at in range(len(body)) if body[at] == "?"})
    publications = [_publication(rng, number, 30) for number in range(8)]
    for count in (1, 100):
        queries = []
        for number in range(count):
            patterns, other = body.split(" . "), dict(zip(names, rng.sample("ghijklmno", len(names)), strict=True))
            rng.shuffle(patterns)
            text = " . ".join(patterns)
            for name in names:
                text = text.replace(f"?{name}", f"?_{other[name]}")
            queries.append(parse(f"SELECT * {{ {text} }}", "sparql", id=str(number)))
        with monkeypatch.context() as patch:
            columns = Columns.of(publications, queries, World())
            verdict = columns.verdict()
            told = _spied(columns, patch)
            columns.bindings(verdict)
        matching = len(set(verdict.publication.tolist()))
        lists.append((matching, sum(solved.lists for solved in told)))
    assert lists[0] == lists[1]
    assert lists[0][0] == lists[0][1] > 3


@pytest.mark.parametrize("seed", range(4))
def test_a_list_that_is_given_up_leaves_nothing_to_the_next(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one has some rows when it has taken too many steps. The second one has the same rows."""
    body, more = "?a <urn:p> ?b . ?b <urn:q> ?c", " . ?b <urn:r> ?d . ?d <urn:p> ?e . ?e <urn:q> ?f"
    queries = [parse(f"SELECT ?a ?c {{ {body}{patterns} }}", "sparql", id=patterns) for patterns in (more, "")]
    graph = _publication(random.Random(seed), 0, 60)
    columns = Columns.of([graph], queries, World(settings=Settings(max_steps=100)))
    told = _spied(columns, monkeypatch)
    pair = np.zeros(2, np.int32), np.arange(2, dtype=np.int32)
    own = columns.columnar.bindings(columns.view, *pair, Chunk([graph]))
    assert told[0].lists == 1
    assert own.count[1] == len(evaluate(queries[1], graph, World()).bindings) > 10


@pytest.mark.parametrize("edge", [-1, 0, 1])
def test_truncation_is_exact(edge: int) -> None:
    """Products of components, and rows of one."""
    for body in (BODIES["path"], BODIES["two"], BODIES["triangle"]):
        graph, query = _publication(random.Random(11), 0, 40), parse(f"SELECT * {{ {body} }}", "sparql", id="x")
        size = len(evaluate(query, graph, World(settings=Settings(max_bindings=100_000))).bindings)
        world = World(settings=Settings(max_bindings=size + edge))
        columns = Columns.of([graph], [query], world)
        verdict = columns.verdict()
        assert verdict.truncated.tolist() == [edge < 0]
        assert len(columns.bindings(verdict)[0]) == min(size, size + edge)
