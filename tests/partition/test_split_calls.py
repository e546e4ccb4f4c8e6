"""Subscriptions of operator calls alone are split over nodes: those that share calls together, within a bound."""

from __future__ import annotations

import random

import pytest

from bench.cluster import Cluster
from triplewire.config import Settings
from triplewire.engine import Engine
from triplewire.extend import Argument, Parameter, Verdict
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.subscription import Subscription
from triplewire.ir.taxonomy import EMPTY
from triplewire.languages import parse
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Literal
from triplewire.partition.placement import SERVER
from triplewire.partition.plan import partitioner
from triplewire.partition.split_calls import SLACK, calls_of

NODES, CALLS, SUBSCRIPTIONS = 4, 200, 1_000


class Divides:
    """Does a number divide the count of triples?"""

    name = "divides"
    parameters = (Parameter("number"),)

    def evaluate(self, publication: Publication, arguments: tuple[Argument, ...]) -> Verdict:
        (number,) = arguments
        return len(publication.triples) % int(number.lexical) == 0


WORLD = World(EMPTY, {"divides": Divides()}, Settings())


def drawn(count: int, seed: int = 1) -> list[Subscription]:
    """Subscriptions of one to five calls, some of which are popular, as 002 (section 5.1) draws them."""
    chance = random.Random(seed)
    weights = [1 / (rank + 1) for rank in range(CALLS)]
    out = []
    for number in range(count):
        named = sorted(set(chance.choices(range(1, CALLS + 1), weights, k=chance.randint(1, 5))))
        text = ", ".join(f"divides({each})" for each in named)
        out.append(parse(text, "predicates", id=str(number), operators=WORLD.operators))
    return out


def calls_at(subscriptions: list[Subscription], place: dict[str, int]) -> list[int]:
    """How many calls each node has to make for a publication."""
    made: list[set[str]] = [set() for _ in range(NODES)]
    for subscription in subscriptions:
        made[place[subscription.id]] |= calls_of(subscription)
    return list(map(len, made))


@pytest.mark.parametrize("name", ["containment", "merging"])
def test_those_that_share_calls_go_together_within_the_bound(name: str) -> None:
    subscriptions = drawn(SUBSCRIPTIONS)
    made = partitioner(name, NODES, WORLD)
    made.subscribe(subscriptions)
    place = made.placement.place
    assert SERVER not in place.values()
    assert made.placement.everywhere == frozenset(range(NODES))
    calls = calls_at(subscriptions, place)
    chance = random.Random(2)
    at_random = calls_at(subscriptions, {each.id: chance.randrange(NODES) for each in subscriptions})
    assert sum(calls) < 0.75 * sum(at_random)
    assert max(calls) <= SLACK * sum(calls) / NODES + 5
    for each in subscriptions:
        made.unsubscribe(each.id)
    assert not made.placement.place
    assert not made.placement.everywhere


@pytest.mark.parametrize("name", ["containment", "merging"])
def test_the_answers_are_those_of_one_engine(name: str) -> None:
    patterns = [
        "SELECT ?s { ?s <urn:p> ?o }",
        'SELECT ?s { ?s <urn:p> "1" }',
        'SELECT ?s { ?s <urn:p> "1" FILTER op:divides(2) }',
    ]
    others = [parse(text, "sparql", id=f"p{n}", operators=WORLD.operators) for n, text in enumerate(patterns)]
    subscriptions = [*drawn(40), *others]
    publications = [
        Publication(f"urn:{count}", [(IRI("urn:s"), IRI("urn:p"), Literal(str(n))) for n in range(count)])
        for count in range(13)  # one without triples, too
    ]
    whole = Engine(operators=WORLD.operators)
    for one in subscriptions:
        whole.subscribe(one)
    cluster = Cluster(partitioner(name, 3, WORLD), subscriptions, WORLD)
    for gone in ("3", "p0", "17"):
        whole.unsubscribe(gone)
        cluster.unsubscribe(gone)
    wanted = [(m.publication, m.subscription) for m in whole.match(publications)]
    assert [(m.publication, m.subscription) for m in cluster.match(publications).matches] == wanted
    assert ("urn:0", "5") in wanted
    assert cluster.placement.place["p1"] == SERVER
