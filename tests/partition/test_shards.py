"""A partitioned index in a directory gives the answers of one engine, and a new version takes the place of the old."""

from __future__ import annotations

from pathlib import Path

import pytest

from triplewire.config import Settings
from triplewire.engine import Engine
from triplewire.errors import StoreError
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.taxonomy import EMPTY
from triplewire.languages import parse
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Literal
from triplewire.partition import shards
from triplewire.partition.plan import partitioner

WORLD = World(EMPTY, {}, Settings())
TEXTS = ("?s <urn:p> ?o", '?s <urn:p> "a"', '?s <urn:p> "b"', '?s <urn:p> "a" . ?s <urn:q> ?r')


@pytest.mark.slow
def test_a_saved_partition(tmp_path: Path) -> None:
    some = [parse(f"SELECT * WHERE {{ {text} }}", "sparql", id=str(number)) for number, text in enumerate(TEXTS)]
    made = partitioner("containment", 2, WORLD)
    made.subscribe(some)
    first = shards.save(tmp_path, "containment", made.placement, some, WORLD)
    assert first.sizes[0] == 1
    assert sum(first.sizes) == len(some)
    publication = Publication("urn:d", triples=[(IRI("urn:s"), IRI("urn:p"), Literal("a"))])
    matched = {match.subscription for match in first.server().match(publication)}
    assert matched == {"0"}
    for node in first.routes["0"]:
        matched |= {match.subscription for match in first.node(node).match(publication)}
    whole = Engine()
    for subscription in some:
        whole.subscribe(subscription)
    assert matched == {match.subscription for match in whole.match(publication)} == {"0", "1"}
    second = shards.save(tmp_path, "containment", made.placement, some, WORLD)
    assert (first.version, second.version) == (1, 2)
    assert shards.load(tmp_path).version == 2
    assert shards.load(tmp_path, 1).folder == first.folder
    with pytest.raises(StoreError):
        shards.load(tmp_path / "none")
