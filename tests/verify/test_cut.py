"""A match that is cut keeps the bindings that the reference keeps, and a kernel finds them."""

from __future__ import annotations

import random

import pytest

from triplewire.config import Settings
from triplewire.ir.evaluation.evaluate import Answer, World, evaluate
from triplewire.languages import parse
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, RDF_TYPE, BlankNode, Literal, Node, Term, Triple
from triplewire.verify import batch_verifier
from verify.columns import Columns, Row

N = "http://e/"
STARS = [
    "SELECT * { ?x :p ?a . ?x :q ?b }",
    "SELECT * { ?x :q ?b . ?x :p ?a . ?x :r ?c }",
    "SELECT ?b ?a { ?x :p ?a . ?x :q ?b . ?x :r ?c }",
    "SELECT * { :s0 :p ?a . :s0 :p ?b . :s0 :q 'q1' }",
    "SELECT * { ?x :p ?a . ?x :p ?b FILTER ftcontains(?b, 'even') }",
    "SELECT * { ?x :p ?a . ?y :q ?b . ?z :r ?c }",
    "SELECT ?a ?b { ?x :p ?a . ?y :q ?b . ?z :r 'r1' }",
]
WILDCARDS = [
    "SELECT * { ?x * ?a . ?x :p ?b }",
    "SELECT * { ?x ?p ?a . ?x :q ?b }",
    "SELECT ?a ?b { ?x * ?a . * ?p ?b }",
    "SELECT * { ?x ?p ?a . ?x ?p ?b . FILTER(STRLEN(STR(?a)) > 1) }",
]
JOINS = [
    "SELECT * { ?x :next ?y . ?x :p ?a . ?y :q ?b }",
    "SELECT * { ?x :next ?y . ?y :next ?z . ?x :p ?a . ?z :p ?b }",
    "SELECT ?x ?b { ?x :p ?a . ?y :p ?a . ?y :q ?b . ?y :next ?z }",
    "SELECT * { ?x :next ?y . ?y :p ?a . ?z a :Cat . ?z :q ?b . ?z :q ?c }",
]
CHOICES = [
    "SELECT * { { ?x :p ?a } UNION { ?x :q ?b . ?x :q ?a } }",
    "SELECT * { { ?x :p ?a . ?x :q ?b } UNION { ?x :q ?b . ?x :p ?a . ?x :q 'q1' } }",
    "SELECT ?a { { ?x :none ?a } UNION { ?y :next ?z } UNION { ?x :p ?a . ?x :q ?b } }",
    "SELECT * { { ?x :p ?a } UNION { { ?x :q ?a } UNION { ?x :r ?a . ?x :next ?b } } }",
]
LEFT_TO_THE_EVALUATION = [
    "SELECT * { ?x :p ?a { ?x :q ?b } UNION { ?x :r ?b } }",
    "SELECT * { ?x :p ?a . ?x :q ?b FILTER(?a != ?b) }",
    "SELECT * { ?x :p ?a OPTIONAL { ?x :q ?b } }",
    "SELECT * { VALUES ?a { 'p0 even' 'p1' 'p2 even' } ?x :p ?a . ?x :q ?b }",
]


def _publication(rng: random.Random, number: int) -> Publication:
    """Some nodes, or one, with many values, in no order. That of several patterns none has fewer happens often."""
    nodes: list[Node] = [IRI(N + "s0"), IRI(N + "s1"), IRI(N + "s2"), BlankNode("b")]
    triples = {Triple(node, IRI(N + "next"), rng.choice(nodes)) for node in nodes for _ in range(2)}
    triples.add(Triple(rng.choice(nodes), RDF_TYPE, IRI(N + "Cat")))
    for letter in "pqr":
        for place in range(rng.choice((3, 9, 25))):
            value: Term = Literal(f"{letter}{place}" + " even" * (place % 2 == 0 and letter == "p"))
            alone = number % 3 == 0
            node = nodes[0] if alone else rng.choice(nodes)
            triples.add(Triple(node, IRI(N + letter), value if alone else rng.choice((value, *nodes))))
    return Publication(f"p{number}", tuple(rng.sample(sorted(triples, key=str), len(triples))))


def _rows(answer: Answer) -> set[Row]:
    return {frozenset(row.items()) for row in answer.bindings}


def _cut(texts: list[str], cap: int, seed: int) -> int:
    """Compare all matches with the reference; how many were cut."""
    rng = random.Random(seed)
    publications = [_publication(rng, number) for number in range(12)]
    subscriptions = [parse(f"PREFIX : <{N}> {text}", "sparql", id=str(at)) for at, text in enumerate(texts)]
    columns = Columns.of(publications, subscriptions, World(settings=Settings(max_bindings=cap)))
    verdict = columns.verdict()
    for p, s, rows in zip(verdict.publication, verdict.subscription, columns.bindings(verdict), strict=True):
        answer = evaluate(subscriptions[s], publications[p], columns.world)
        assert len(set(rows)) == len(rows)
        assert set(rows) == _rows(answer), subscriptions[s].text
    return int(verdict.truncated.sum())


@pytest.mark.parametrize("cap", [1, 2, 7, 30])
@pytest.mark.parametrize("texts", [STARS, WILDCARDS, JOINS, CHOICES], ids=["stars", "wildcards", "joins", "choices"])
def test_a_cut_match_has_the_bindings_of_the_reference(
    texts: list[str], cap: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("evaluated")

    monkeypatch.setattr(batch_verifier, "evaluate", refused)
    assert _cut(texts, cap, seed=cap) > 8


@pytest.mark.parametrize("cap", [1, 7, 30])
def test_others_are_evaluated(cap: int) -> None:
    assert _cut(LEFT_TO_THE_EVALUATION, cap, seed=cap) > 5


def test_the_order_of_the_triples_does_not_matter() -> None:
    rng = random.Random(3)
    world = World(settings=Settings(max_bindings=5))
    for number in range(10):
        one = _publication(rng, number)
        other = Publication(one.id, one.triples[::-1])
        for text in [*STARS, *JOINS, *CHOICES, *LEFT_TO_THE_EVALUATION]:
            subscription = parse(f"PREFIX : <{N}> {text}", "sparql", id="s")
            answer, again = (evaluate(subscription, some, world) for some in (one, other))
            assert answer.truncated == again.truncated
            assert _rows(answer) == _rows(again)


def test_past_the_budget_the_evaluation_decides() -> None:
    """It looks at parts that need only exist apart from each other; here that takes fewer steps."""
    text = "SELECT ?a { ?x :p ?a . ?a :q ?b . ?a :q ?c . ?a :q ?d . ?d :r ?e }"
    values = [Literal(f"{number:02}") for number in range(20)]
    nodes = [IRI(f"{N}n{number}") for number in range(8)]
    triples = [Triple(IRI(N + "s"), IRI(N + "p"), node) for node in nodes]
    triples += [Triple(node, IRI(N + "q"), other) for node in nodes for other in (*values, IRI(N + "z"))]
    triples.append(Triple(IRI(N + "z"), IRI(N + "r"), values[0]))
    world = World(settings=Settings(max_bindings=3, max_steps=3_000))
    columns = Columns.of([Publication("p", tuple(triples))], [parse(f"PREFIX : <{N}> {text}", "sparql", id="s")], world)
    verdict = columns.verdict()
    answer = evaluate(columns.subscriptions[0], columns.publications[0], world)
    assert list(map(set, columns.bindings(verdict))) == [_rows(answer)]


def test_past_the_budget_the_order_as_stated_decides() -> None:
    """What matches is stated first, and comes last in the order of the terms, behind more dead ends than there are
    steps: the bindings found as stated are kept then, also where only they are asked for."""
    triples = [Triple(IRI(N + "z"), IRI(N + "p"), IRI(N + "y"))]
    triples += [Triple(IRI(N + "y"), IRI(N + "q"), IRI(f"{N}v{number}")) for number in range(9)]
    triples += [Triple(IRI(f"{N}a{number}"), IRI(N + "p"), IRI(f"{N}b{number}")) for number in range(100)]
    triples += [Triple(IRI(f"{N}c{number}"), IRI(N + "q"), IRI(f"{N}d{number}")) for number in range(120)]
    subscription = parse(f"PREFIX : <{N}> SELECT * {{ ?x :p ?y . ?y :q ?v }}", "sparql", id="s")
    publication, world = Publication("p", tuple(triples)), World(settings=Settings(max_bindings=3, max_steps=60))
    answer = evaluate(subscription, publication, world)
    assert (len(answer.bindings), answer.truncated) == (3, True)
    assert evaluate(subscription, publication, world, listing=True) == answer
