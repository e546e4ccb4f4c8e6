"""`explain` of a match: it finds the subscription and the publication, or says what is missing."""

from __future__ import annotations

import gc
import pickle
import weakref
from pathlib import Path

import pytest

from triplewire import Engine, Match
from triplewire.errors import ArgumentError, SubscriptionError
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Literal, Triple

QUERY = "SELECT ?o { ?s <urn:p> ?o }"


def item(id_: str, text: str = "o") -> Publication:
    return Publication(id_, (Triple(IRI("urn:s"), IRI("urn:p"), Literal(text)),))


@pytest.fixture
def engine(matcher: str) -> Engine:
    made = Engine(matcher=matcher)
    made.subscribe(QUERY, id="a")
    made.subscribe('SELECT ?o { ?s <urn:p> ?o FILTER ftcontains(?o, "gull") }', id="gulls")
    return made


def test_a_match_stands_for_its_pair(engine: Engine) -> None:
    result = engine.match(item(f"urn:{number}", "gull" if number % 2 else "tern") for number in range(300))
    assert len(result) == 450
    for match in result[::7]:
        explanation = engine.explain(match)
        assert explanation.matched
        assert (explanation.subscription, explanation.publication) == (match.subscription, match.publication)
        assert explanation.solution["o"] == match.bindings[0]["o"]


def test_matches_of_files(engine: Engine, tmp_path: Path) -> None:
    """Also where the publications were never objects."""
    file = tmp_path / "a.nq"
    file.write_text('<urn:s> <urn:p> "gull" <urn:g1> .\n<urn:s> <urn:p> "tern" <urn:g2> .\n')
    results = list(engine.match_files(file))
    explanations = [engine.explain(match) for result in results for match in result]
    assert [(one.subscription, one.publication) for one in explanations] == [
        ("a", "urn:g1"),
        ("gulls", "urn:g1"),
        ("a", "urn:g2"),
    ]


def test_a_match_whose_result_is_gone_says_so(engine: Engine) -> None:
    (match, _) = engine.match(item("urn:x", "gull"))
    gc.collect()
    with pytest.raises(ArgumentError, match=r"'urn:x' is missing.*explain\(match, publication\)"):
        engine.explain(match)
    assert engine.explain(match, item("urn:x")).matched
    with pytest.raises(ArgumentError, match="the publication given is 'urn:y'"):
        engine.explain(match, item("urn:y"))


def test_a_copy_finds_it_too(engine: Engine) -> None:
    result = engine.match(item("urn:x"))
    assert engine.explain(pickle.loads(pickle.dumps(result[0]))).matched
    with pytest.raises(ArgumentError, match="is missing"):
        Engine.explain(_other_with_a(), result[0])


def _other_with_a() -> Engine:
    other = Engine(matcher="reference")
    other.subscribe(QUERY, id="a")
    return other


def test_the_subscription_is_the_one_that_matched(engine: Engine) -> None:
    """Also when its id was taken by another one since, or by none."""
    result = engine.match(item("urn:x"))
    engine.unsubscribe("a")
    assert "<urn:p>" in engine.explain(result[0]).findings[0].part
    engine.subscribe("ASK { ?s <urn:other> ?o }", id="a")
    assert "<urn:p>" in engine.explain(result[0]).findings[0].part
    engine.unsubscribe("a")
    with pytest.raises(SubscriptionError, match="not registered"):
        engine.explain(Match("urn:x", "a", ({},)), item("urn:x"))


def test_the_subscription_is_the_one_that_matched_without_the_result(engine: Engine) -> None:
    (match, _) = engine.match(item("urn:x", "gull"))
    copy = pickle.loads(pickle.dumps(match))
    gc.collect()
    assert engine.explain(copy, item("urn:x")).matched
    engine.unsubscribe("a")
    assert engine.explain(match, item("urn:x")).matched
    engine.subscribe("ASK { ?s <urn:other> ?o }", id="a")
    assert "<urn:p>" in engine.explain(match, item("urn:x")).findings[0].part
    with pytest.raises(SubscriptionError, match="not registered, but another of its id"):
        engine.explain(copy, item("urn:x"))
    assert engine.explain(Match("urn:x", "a", ({},)), item("urn:x")).subscription == "a"


def test_two_publications_of_one_id(engine: Engine) -> None:
    """They can be told apart by what matched them, or the caller says which one it is."""
    result = engine.match([item("urn:x", "gull"), item("urn:x", "tern")])
    by_subscription = {match.subscription: match for match in result}
    assert engine.explain(by_subscription["gulls"]).solution["o"] == Literal("gull")
    with pytest.raises(ArgumentError, match="2 publications of the id"):
        engine.explain(by_subscription["a"])
    same = engine.match([item("urn:y"), item("urn:y")])
    assert engine.explain(same[0]).matched


def test_nothing_is_kept_alive(engine: Engine) -> None:
    """Publications and results of earlier calls are gone once the caller has let go of them."""
    held, seen = engine.match(item("urn:held", "gull")), []
    for number in range(1_000):
        publication = item(f"urn:{number}", "gull")
        seen += [weakref.ref(publication), weakref.ref(engine.match(publication))]
        del publication
    gc.collect()
    assert not any(reference() for reference in seen)
    assert engine.explain(held[0]).matched
