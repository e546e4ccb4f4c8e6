"""What the join network decides of a star: the reference's answers, whatever is selected. The rest is left."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from triplewire import Publication, parse
from triplewire.config import Settings
from triplewire.ir.evaluation.evaluate import World, evaluate
from triplewire.model.terms import IRI, Literal, Triple
from triplewire.verify.network import JoinDecisions
from verify.columns import Columns

HEADS = ("SELECT *", "SELECT ?s", "SELECT ?a", "SELECT ?a ?b", "SELECT ?p", "SELECT ?s ?p ?a", "ASK")


def a_publication(random: Random, predicates: int) -> Publication:
    """Two subjects or three; each has some of the predicates, with few different objects."""
    triples = set()
    for subject in range(random.randrange(2, 4)):
        for _ in range(3 * predicates):
            value = Literal(str(random.randrange(5))) if random.random() < 0.7 else IRI(f"urn:o{random.randrange(3)}")
            triples.add(Triple(IRI(f"urn:s{subject}"), IRI(f"urn:p{random.randrange(predicates)}"), value))
    return Publication(f"urn:g{random.random()}", tuple(triples))


def a_query(random: Random, predicates: int) -> str:
    """A star of up to three patterns that joins nothing: constant and variable predicates and objects, and tests."""
    subject = random.choice(("?s", "?s", "<urn:s1>"))
    body, tested = "", ""
    for variable in random.sample(("?a", "?b", "?c"), random.randrange(1, 4)):
        predicate = f"<urn:p{random.randrange(predicates)}>" if random.random() < 0.7 else "?p"
        predicate = predicate if "?p" not in body else f"<urn:p{random.randrange(predicates)}>"
        if random.random() < 0.25:
            variable = random.choice(("'1'", "<urn:o1>"))
        elif random.random() < 0.5:
            tested += f"FILTER({variable} > {random.randrange(4)}) "
        elif random.random() < 0.3:
            tested += f"FILTER ftcontains({variable}, '2') "
        body += f"{subject} {predicate} {variable} . "
    head = random.choice(HEADS)
    needed = set(head.split()) & {"?s", "?a", "?b", "?p"}
    return f"{head} {{ {body}{tested}}}" if needed <= set(body.split()) else f"SELECT * {{ {body}{tested}}}"


def decided(columns: Columns, cap: int) -> JoinDecisions:
    """What the join network says of every clause and every publication."""
    clauses, publications = columns.clauses.count, len(columns.publications)
    publication = np.repeat(np.arange(publications, dtype=np.int32), clauses)
    clause = np.tile(np.arange(clauses, dtype=np.int32), publications)
    return columns.columnar._shared.decide(columns.view, publication, clause, cap)[0]


@pytest.mark.parametrize("predicates", [3, 8, 16], ids=["dense", "some", "more"])
@pytest.mark.parametrize("cap", [1, 4, 1_000])
def test_the_reference_agrees(predicates: int, cap: int) -> None:
    random = Random(predicates * 10_000 + cap)
    some = [a_publication(random, predicates) for _ in range(12)]
    subscriptions = [parse(a_query(random, predicates)) for _ in range(80)]
    world = World(settings=Settings(max_bindings=cap))
    told = decided(Columns.of(some, subscriptions, world), cap)
    pairs = zip(told.publication.tolist(), told.subscription.tolist(), strict=True)
    truncated = dict(zip(pairs, told.truncated.tolist(), strict=True))
    left = set(zip(told.left_publication.tolist(), told.left_clause.tolist(), strict=True))
    assert len(truncated) == len(told.publication)
    for p, publication in enumerate(some):
        for s, subscription in enumerate(subscriptions):
            answer = evaluate(subscription, publication, world)
            if (p, s) not in left:
                assert ((p, s) in truncated) == bool(answer.bindings), subscription.text
            if (p, s) in truncated:
                assert truncated[p, s] == answer.truncated, subscription.text
    assert len(truncated) > 130
    if cap == 1_000:  # else solutions may have to be listed to be counted
        assert len(left) < len(some) * len(subscriptions) / 50
    assert (sum(truncated.values()) > 20) == (cap < 1_000)


def test_large_publications_are_left_to_be_joined() -> None:
    random = Random(1)
    publications = [a_publication(random, 60), a_publication(random, 4)]
    subscriptions = [parse("SELECT * { ?s ?p ?a }"), parse("SELECT * { ?s <urn:p0> ?a }")]
    told = decided(Columns.of(publications, subscriptions, World()), 1_000)
    assert len(publications[0].triples) > 248 > len(publications[1].triples)
    assert told.left_publication.tolist() == [0, 0]
    assert told.publication.tolist() == [1, 1]
