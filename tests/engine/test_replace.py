"""A subscription that takes the place of another one of its id, in one step."""

from __future__ import annotations

import pytest

from amounts import MATCHERS
from engine.samples import item, read_while_writing
from triplewire import Engine, LanguageError
from triplewire.errors import SubscriptionError


def titles(word: str) -> str:
    return f"SELECT ?t {{ ?s rss:title ?t FILTER ftcontains(?t, '{word}') }}"


@pytest.mark.parametrize("tier", ["auto", "compiled"])
@pytest.mark.parametrize("matcher", MATCHERS)
def test_the_new_text_counts(matcher: str, tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIPLEWIRE_TIER", tier)
    engine = Engine(matcher=matcher)
    for id_ in ("a", "b", "c"):
        engine.subscribe(titles("one"), id=id_)
    engine.match(item("p", "one"))  # they are in a segment
    new = engine.subscribe(titles("two"), id="b", replace=True)
    engine.subscribe(titles("two"), id="d", replace=True)
    assert [match.subscription for match in engine.match(item("p", "one"))] == ["a", "c"]
    assert [match.subscription for match in engine.match(item("p", "two"))] == ["b", "d"]
    assert engine.get("b") == new
    assert len(engine) == 4
    assert engine.subscriptions.ids == [one.id for one in engine.subscriptions] == ["a", "c", "b", "d"]
    engine.settle()
    assert engine.subscriptions.ids == ["a", "c", "b", "d"]
    assert [match.subscription for match in engine.match(item("p", "two"))] == ["b", "d"]


@pytest.mark.parametrize("matcher", MATCHERS)
def test_where_the_new_text_is_wrong_the_old_one_stays(matcher: str) -> None:
    engine = Engine(matcher=matcher)
    first = engine.subscribe(titles("one"), id="a")
    with pytest.raises(LanguageError):
        engine.subscribe("SELECT ?t {", id="a", replace=True)
    with pytest.raises(SubscriptionError, match="replace=True"):
        engine.subscribe(titles("two"), id="a")
    assert list(engine.subscriptions) == [first]


def test_no_match_call_sees_neither() -> None:
    engine = Engine()
    engine.subscribe(titles("one"), id="a")
    publication = item("p", "one two")

    def write(number: int) -> None:
        for turn in range(60):
            engine.subscribe(titles("one" if turn % 2 else "two"), id="a", replace=True)

    def look() -> None:
        assert [match.subscription for match in engine.match(publication)] == ["a"]

    read_while_writing(write, look, 1)
