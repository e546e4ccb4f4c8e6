"""CLIPS finds what the engine finds, pair by pair: only then does a comparison of their times say anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.joins import Rules, beside_clips, facts_of
from bench.workloads import corpus
from bench.workloads.catalogue import SEED, Case
from bench.workloads.mixed import write_documents
from triplewire import Engine, read
from triplewire.errors import TriplewireError

PUBLICATIONS, SUBSCRIPTIONS = 120, 300


@pytest.fixture
def case(tmp_path: Path) -> Case:
    """Graph subscriptions, and the publications that half of them are cut from with some others."""
    subscriptions, publications = tmp_path / "s.jsonl", tmp_path / "p.nq"
    documents = write_documents(subscriptions, SUBSCRIPTIONS, SEED)
    publications.write_bytes(corpus.to_nquads(documents[:PUBLICATIONS]))
    return Case("some", subscriptions, publications)


def engine_of(case: Case) -> Engine:
    engine = Engine()
    engine.load_subscriptions(case.subscriptions)
    return engine


def test_the_same_pairs(case: Case) -> None:
    engine = engine_of(case)
    subscriptions = list(engine.subscriptions)
    rules = Rules(subscriptions)
    expected = [{match.subscription for match in engine.match(one)} for one in read(case.publications)]
    found = [{subscriptions[rule].id for rule in rules.matching(one)} for one in facts_of(case.publications)]
    assert found == expected
    assert sum(map(len, found)) > SUBSCRIPTIONS


def test_the_ratio_is_told_with_its_target(case: Case, tmp_path: Path) -> None:
    clips, ratio = beside_clips(engine_of(case), case, tmp_path, 300.0)
    assert clips.value is not None
    assert ratio.value is not None
    assert (ratio.target, ratio.at_least) == (300.0, True)


def test_other_answers_are_no_ratio(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matching = Rules.matching
    monkeypatch.setattr(Rules, "matching", lambda rules, one: {*matching(rules, one), -1})
    (row,) = beside_clips(engine_of(case), case, tmp_path, 1.0)
    assert row.value is None
    assert not row.met
    assert "CLIPS finds" in row.note


def test_more_than_patterns_is_refused() -> None:
    engine = Engine()
    engine.subscribe("SELECT ?x { ?x <urn:p> ?y FILTER (?y > 3) }", id="a number")
    with pytest.raises(TriplewireError, match="a number"):
        Rules(engine.subscriptions)
