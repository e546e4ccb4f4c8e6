"""Matches with more bindings than a number of 64 bits counts say that they are cut, whatever the matcher."""

from __future__ import annotations

import pytest

from engine.samples import iri
from triplewire import Engine, Literal, Publication, Settings, Triple, config


def products(predicates: int, objects: int) -> tuple[str, Publication]:
    """A query with as many bindings as the product has that many factors, and the publication."""
    patterns = " ".join(f"?s <{iri(f'p{number}').value}> ?v{number} ." for number in range(predicates))
    triples = [
        Triple(iri("s"), iri(f"p{number}"), Literal(f"{value}"))
        for number in range(predicates)
        for value in range(objects)
    ]
    return f"SELECT * {{ {patterns} }}", Publication("many", tuple(triples))


@pytest.mark.parametrize("most", [10**15, 2**62])
@pytest.mark.parametrize(("predicates", "objects"), [(4, 200), (16, 16), (8, 300), (21, 8), (13, 32)])
def test_products_saturate(
    matcher: str, predicates: int, objects: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """16 ** 16 is 2 ** 64, 8 ** 21 is 2 ** 63, 32 ** 13 is 2 ** 65: what wraps around would leave none, or few."""
    monkeypatch.setattr(config, "LISTED", 5_000)
    query, publication = products(predicates, objects)
    settings = Settings(max_bindings=most, max_steps=3_000)
    engine = Engine(matcher=matcher, settings=settings)
    engine.subscribe(query, id="q")
    engine.subscribe(f"ASK {{ ?s <{iri('p0').value}> ?o }}", id="other")
    result = engine.match(publication)
    matches = {match.subscription: match for match in result}
    assert "other" in matches
    if "q" in matches:
        assert matches["q"].truncated
        assert 0 < len(matches["q"].bindings) <= settings.most_bindings
    else:
        (refusal,) = result.refusals
        assert "max_steps" in f"{refusal}"


def test_a_product_that_is_not_too_large_is_whole(matcher: str) -> None:
    query, publication = products(3, 20)
    engine = Engine(matcher=matcher, settings=Settings(max_bindings=10**15))
    engine.subscribe(query, id="q")
    (match,) = engine.match(publication)
    assert not match.truncated
    assert len(match.bindings) == 8_000


def test_a_match_with_more_than_are_ever_kept_is_truncated(matcher: str) -> None:
    """Many steps, so that it is not these that cut. Nobody asks for the bindings."""
    if matcher == "reference":
        pytest.skip("it lists them")
    query, publication = products(11, 8)
    engine = Engine(matcher=matcher, settings=Settings(max_bindings=2**31, max_steps=2**40))
    engine.subscribe(query, id="q")
    result = engine.match(publication)
    assert (len(result), result.truncated) == (1, 1)
