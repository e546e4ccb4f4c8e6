"""Entailment on request: tests/cases/entailment/rdfs.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from triplewire import Engine, TriplewireError, load_taxonomy, read

FILE = Path(__file__).parent.parent / "cases" / "entailment" / "rdfs.toml"
TABLE = tomllib.loads(FILE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def taxonomy(tmp_path_factory):
    path = tmp_path_factory.mktemp("taxonomy") / "classes.ttl"
    path.write_text(TABLE["taxonomy"], encoding="utf-8")
    return load_taxonomy(path)


@pytest.mark.parametrize("entailment", ["plain", "rdfs"])
@pytest.mark.parametrize("case", TABLE["case"], ids=lambda case: case["name"])
def test_case(case, entailment, taxonomy, tmp_path):
    engine = Engine(taxonomy=taxonomy, entailment="rdfs" if entailment == "rdfs" else "none")
    engine.subscribe(case["query"], case["language"], id="query", base=case.get("base", ""))
    (publication,) = read(TABLE["publication"].encode())
    assert bool(engine.match(publication)) == case[entailment]
    assert engine.explain("query", publication).matched == case[entailment]
    engine.save(tmp_path / "saved")
    assert bool(Engine.load(tmp_path / "saved").match(publication)) == case[entailment]


def test_unknown_entailment_is_refused():
    with pytest.raises(TriplewireError, match="known: none, rdfs"):
        Engine(entailment="owl")
