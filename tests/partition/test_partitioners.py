"""Every partitioner gives the answers of one engine, as subscriptions come and go."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from agreement.publications import TAXONOMY, Scene, operators
from amounts import usually
from bench.cluster import Cluster
from partition.test_containment_sound import SEED, generated
from triplewire.config import Settings
from triplewire.engine import Engine
from triplewire.ir.evaluation.evaluate import World
from triplewire.languages import parse
from triplewire.model.publication import Publication
from triplewire.partition.merging import MergingPartitioner
from triplewire.partition.placement import SERVER
from triplewire.partition.plan import NAMES, partitioner

WORLD = World(TAXONOMY, operators(), Settings(max_steps=2_000))


def answers(found: object) -> tuple[Counter[tuple[str, str, str]], Counter[str]]:
    """Matches with their bindings, and undecided pairs."""
    rows = Counter((m.publication, m.subscription, str(m.bindings)) for m in found.matches)  # type: ignore[attr-defined]
    return rows, Counter(refusal.subject for refusal in found.refusals)  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_answers_of_one_engine(name: str) -> None:
    chance = random.Random(f"{SEED} {name}")
    for _ in range(usually(1, 2)):
        scene = Scene(chance)
        subscriptions = generated(chance, scene, 120)
        publications: list[Publication] = [scene.publication(place) for place in range(60)]
        whole = Engine(taxonomy=TAXONOMY, operators=WORLD.operators, settings=WORLD.settings)
        first, later = subscriptions[:90], subscriptions[90:]
        for one in first:
            whole.subscribe(one)
        made = partitioner(name, 3, WORLD, sample=publications[:30], percent=60)
        cluster = Cluster(made, first, WORLD)
        wanted = answers(whole.match(publications))
        assert wanted[0]
        assert answers(cluster.match(publications)) == wanted
        gone = chance.sample(first, 30)
        for one in later:
            whole.subscribe(one)
            cluster.subscribe(one)
        for one in gone:
            whole.unsubscribe(one.id)
            cluster.unsubscribe(one.id)
        assert answers(cluster.match(publications)) == answers(whole.match(publications))
        held = sum(len(engine) for engine in (cluster.server, *cluster.nodes))
        assert held == len(whole) + len(made.placement.mergers)


def test_the_order_in_which_subscriptions_are_given_does_not_matter() -> None:
    """Half of them are another one with a constant for a variable."""
    texts = {f"{n}": f"(?x, <urn:p{n}>, ?y) AND (?y, <urn:q{n}>, ?z)" for n in range(8)}
    texts |= {f"{n} narrower": text.replace("?z", "<urn:c>") for n, text in texts.items()}
    given = [parse(f"SELECT * WHERE {text}", "gql", id=id) for id, text in texts.items()]
    for seed in range(5):
        random.Random(seed).shuffle(given)
        made = partitioner("containment", 2, WORLD)
        made.subscribe(given)
        assert {id for id, where in made.placement.place.items() if where == SERVER} == set(map(str, range(8)))


class Counted(MergingPartitioner):
    """Counts how often it merges."""

    merged = 0

    def merge(self) -> None:
        self.merged += 1
        super().merge()


def test_a_target_out_of_reach_is_not_tried_for_each_subscription() -> None:
    """The subscriptions share nothing, so that no merging makes the index smaller. Only where it grew by more than
    5 % is it tried again."""
    made = Counted(2, WORLD, percent=90)
    texts = [f"SELECT * WHERE {{ ?s <urn:p{number}> ?o }}" for number in range(150)]
    some = [parse(text, "sparql", id=str(number)) for number, text in enumerate(texts)]
    made.subscribe(some[:100])
    assert made.merged == 1
    for one in some[100:]:
        made.subscribe([one])
    assert 2 <= made.merged <= 10
    assert made.placement.server_size == 150
