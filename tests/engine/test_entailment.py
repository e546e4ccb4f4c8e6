"""Entailment on request: tests/cases/entailment/rdfs.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from triplewire import IRI, Engine, Literal, Publication, Triple, TriplewireError, load_taxonomy, read

FILE = Path(__file__).parent.parent / "cases" / "entailment" / "rdfs.toml"
TABLE = tomllib.loads(FILE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def taxonomy(tmp_path_factory):
    path = tmp_path_factory.mktemp("taxonomy") / "classes.ttl"
    path.write_text(TABLE["taxonomy"], encoding="utf-8")
    return load_taxonomy(path)


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("entailment", ["plain", "rdfs"])
@pytest.mark.parametrize("case", TABLE["case"], ids=lambda case: case["name"])
def test_case(case, entailment, times, taxonomy, tmp_path):
    """However often the publication states its triples."""
    engine = Engine(taxonomy=taxonomy, entailment="rdfs" if entailment == "rdfs" else "none")
    engine.subscribe(case["query"], case["language"], id="query", base=case.get("base", ""))
    (publication,) = read(TABLE["publication"].encode())
    publication = Publication(publication.id, publication.triples * times)
    assert bool(engine.match(publication)) == case[entailment]
    assert engine.explain("query", publication).matched == case[entailment]
    engine.save(tmp_path / "saved")
    assert bool(Engine.load(tmp_path / "saved").match(publication)) == case[entailment]


@pytest.mark.parametrize("triples", [1, 2, 3])
def test_as_many_repeats_as_are_entailed(triples, taxonomy):
    """A triple stated twice, from which as many follow as were repeated."""
    engine = Engine(taxonomy=taxonomy, entailment="rdfs")
    engine.subscribe("PREFIX : <http://example.org/> SELECT ?s ?o { ?s :madeBy ?o }", id="query")
    paints = Triple(IRI("urn:a"), IRI("http://example.org/paintedBy"), Literal("b"))
    (match,) = engine.match(Publication("p", (paints,) * (triples + 1)))
    assert match.bindings == ({"s": IRI("urn:a"), "o": Literal("b")},)


def test_unknown_entailment_is_refused():
    with pytest.raises(TriplewireError, match="known: none, rdfs"):
        Engine(entailment="owl")
