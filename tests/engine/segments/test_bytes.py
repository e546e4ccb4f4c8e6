"""How many bytes of memory a subscription takes: counted, as arrays, so that it is the same on all machines."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.workloads.graphs import CLUSTER, write_graphs
from triplewire import Engine, Publication, Triple
from triplewire.config import Settings
from triplewire.engine.segments.segment import Segment
from triplewire.model.terms import IRI

COUNT = 2_000
MOST_BYTES = 1_150  # of a subscription; with fewer subscriptions, they share less


def _only_segment(engine: Engine) -> Segment:
    (layer,) = engine._current.snapshot._all_layers  # type: ignore[attr-defined]
    segment: Segment = layer.segment
    return segment


def _bytes(arrays: Iterable[Any]) -> int:
    """Bytes of arrays, each once; an array of zeros that has its own map takes none."""
    return sum({array.__array_interface__["data"][0]: array.nbytes for array in arrays}.values())


@pytest.mark.slow
def test_bytes_of_a_subscription(tmp_path: Path) -> None:
    """Of the index, the clauses, the ids, and the join network: 5 or 10 edges each."""
    path = tmp_path / "subscriptions.jsonl"
    write_graphs(CLUSTER, path, COUNT, 1)
    engine = Engine()
    engine.load_subscriptions(path)
    engine.settle()
    segment = _only_segment(engine)
    network = segment.network
    arrays = [*segment.clauses.arrays().values(), *segment.index.arrays().values(), *network]
    arrays += [*segment.ids.names.arrays().values(), segment.texts.start, segment.texts.length, segment.selection]
    assert len(engine.subscriptions) == COUNT
    assert _bytes(arrays) / COUNT <= MOST_BYTES


@pytest.mark.slow
def test_a_clause_with_more_patterns_than_a_byte_counts() -> None:
    """Its components have wider columns, and all else is as before."""
    triples = [Triple(IRI("urn:s"), IRI(f"urn:p{n}"), IRI(f"urn:o{n}")) for n in range(300)]
    engine = Engine(settings=Settings(max_patterns=300))
    body = " . ".join(f"?s <urn:p{n}> {f'?o{n}' if n % 2 else f'<urn:o{n}>'}" for n in range(300))
    engine.subscribe(f"SELECT * WHERE {{ {body} }}", "sparql", id="many")
    engine.subscribe("SELECT * WHERE { ?s <urn:p1> ?o }", "sparql", id="few")
    whole, part = Publication("urn:whole", tuple(triples)), Publication("urn:part", tuple(triples[:-1]))
    matches = {(match.publication, match.subscription): match.bindings for match in engine.match([whole, part])}
    assert sorted(matches) == [("urn:part", "few"), ("urn:whole", "few"), ("urn:whole", "many")]
    assert len(matches["urn:whole", "many"][0]) == 151
    facts = _only_segment(engine).clauses.facts
    assert (facts.component.dtype, facts.member.dtype) == (np.int32, np.int32)
