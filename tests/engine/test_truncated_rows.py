"""Which bindings a truncated match keeps depends on its publication and its subscription alone, whatever is around."""

from __future__ import annotations

import random
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeAlias

import pytest

from solutions import is_solution
from triplewire import Engine, Publication, Settings, parse
from triplewire.ir.evaluation.evaluate import World, evaluate
from triplewire.model.match import Match
from triplewire.model.terms import IRI, RDF_TYPE, Literal, Term, Triple

N = "http://e/"
CAP = 4
QUERIES = {
    "star": "SELECT * { ?x :p ?a . ?x :q ?b }",
    "part": "SELECT ?a { ?x :p ?a . ?x :q ?b . ?x :r ?c }",
    "apart": "SELECT ?a ?b { ?x :p ?a . ?y :q ?b }",
    "path": "SELECT * { ?x :next ?y . ?y :next ?z . ?z :p ?a }",
    "circle": "SELECT ?x ?b { ?x :next ?y . ?y :next ?z . ?z :next ?x . ?x :p ?b }",
    "choice": "SELECT * { { ?x :p ?a } UNION { ?x :q ?b . ?x :r ?a } }",
    "words": "SELECT * { ?x :p ?a . ?x :q ?b FILTER ftcontains(?a, 'even') }",
    "lazy": "SELECT * { ?x :p ?a . ?x :q ?b FILTER(STRLEN(STR(?b)) > 1) }",
    "class": "SELECT * { ?x ?k ?a . ?x a :Cat FILTER(?k != :q) }",
    "evaluated": "SELECT * { ?x :p ?a OPTIONAL { ?x :q ?b } }",
}
Kept: TypeAlias = dict[tuple[str, str], tuple[frozenset[tuple[str, Term]], ...]]


def _publication(chance: random.Random, number: int) -> Publication:
    """A few nodes with many values; every third one has more triples than the join network takes."""
    nodes = [IRI(f"{N}s{n}") for n in range(3)]
    triples = {Triple(node, IRI(N + "next"), other) for node in nodes for other in nodes}
    triples.add(Triple(chance.choice(nodes), RDF_TYPE, IRI(N + "Cat")))
    for letter in "pqr":
        for place in range(120 if number % 3 == 0 else chance.randrange(3, 12)):
            value = Literal(f"{letter}{chance.randrange(1000)}" + " even" * (place % 2))
            triples.add(Triple(chance.choice(nodes), IRI(N + letter), value))
    return Publication(f"{N}g{number}", tuple(sorted(triples, key=str)))


def _shuffled(chance: random.Random, one: Publication) -> Publication:
    return Publication(one.id, tuple(chance.sample(one.triples, len(one.triples))))


def _engine(others: int = 0) -> Engine:
    """With the queries, and other subscriptions before, between and behind them, which change what is rare."""
    engine = Engine(settings=Settings(max_bindings=CAP))
    for number, (name, query) in enumerate(QUERIES.items()):
        for other in range(others):
            letter = "pqr"[(number + other) % 3]
            text = f"SELECT ?s {{ ?s :{letter} 'p{other}' . ?s :next ?y . ?y :q '{number}' }}"
            engine.subscribe(f"PREFIX : <{N}> {text}", id=f"other {number} {other}")
        engine.subscribe(f"PREFIX : <{N}> {query}", id=name)
    engine.settle()
    return engine


def _kept(matches: Iterable[Match]) -> Kept:
    """The rows of truncated matches."""
    return {
        (match.publication, match.subscription): tuple(frozenset(row.items()) for row in match.bindings)
        for match in matches
        if match.truncated
    }


@pytest.mark.parametrize("seed", range(2))
def test_the_same_rows_are_kept_in_any_company(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    publications = [_publication(chance, number) for number in range(9)]
    engine = _engine()
    expected = _kept(engine.match(publications))
    assert {name for _, name in expected} == set(QUERIES)
    assert all(len(set(rows)) == CAP for rows in expected.values())

    alone = [match for one in publications for match in engine.match(_shuffled(chance, one))]
    assert _kept(alone) == expected
    reordered = [_shuffled(chance, one) for one in chance.sample(publications, len(publications))]
    assert _kept(engine.match(reordered)) == expected
    strangers = [_publication(chance, number) for number in range(50, 54)]
    mixed = _kept(engine.match([*strangers, *reordered]))
    assert {pair: rows for pair, rows in mixed.items() if pair in expected} == expected
    lines = [f"{t.subject} {t.predicate} {t.object} <{one.id}> .\n" for one in reordered for t in one.triples]
    assert _kept(m for result in engine.match_files("".join(lines).encode()) for m in result) == expected
    with ThreadPoolExecutor(3) as pool:
        assert all(kept == expected for kept in pool.map(lambda _: _kept(engine.match(publications)), range(3)))
    engine.save(tmp_path)
    assert _kept(Engine.load(tmp_path).match(reordered)) == expected
    larger = _kept(_engine(others=9).match(publications))
    assert {pair: rows for pair, rows in larger.items() if pair in expected} == expected


def test_they_are_solutions() -> None:
    chance = random.Random(7)
    publications = [_publication(chance, number) for number in range(3)]
    by_id, world = {one.id: one for one in publications}, World(settings=Settings(max_bindings=CAP))
    subscriptions = {name: parse(f"PREFIX : <{N}> {query}", id=name) for name, query in QUERIES.items()}
    matches = list(_engine().match(publications))
    for match in matches:
        subscription, publication = subscriptions[match.subscription], by_id[match.publication]
        assert match.truncated == evaluate(subscription, publication, world).truncated
        assert all(is_solution(row, subscription, publication, world) for row in match.bindings)
    assert len(matches) > 20
