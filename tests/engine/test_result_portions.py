"""Matches are the same however many of them are made together, and in however many segments their subscriptions are."""

from __future__ import annotations

from functools import cache

import pytest

from amounts import usually
from engine.samples import EX, item
from triplewire import Engine
from triplewire.config import Settings
from triplewire.engine import match_block, result
from triplewire.engine.segments import snapshot, texts
from triplewire.engine.segments.snapshot import SegmentSnapshot
from triplewire.model.match import Match
from triplewire.verify import bindings as objects

PUBLICATIONS, COPIES = usually(13, 23), usually(2, 4)  # and of each query
QUERIES = [
    "SELECT ?t { ?s rss:title ?t }",
    "SELECT ?t ?s { ?s rss:title ?t }",
    f"SELECT ?s ?y {{ ?s rss:title ?t . OPTIONAL {{ ?s <{EX}year> ?y }} }}",
    f"CONSTRUCT {{ ?s <{EX}called> ?t }} {{ ?s rss:title ?t }}",
    "SELECT ?p ?o { ?s ?p ?o ; rss:title ?t }",
    "SELECT ?p ?o ?q { ?s ?p ?o . ?u ?q ?v }",
    "ASK { ?s rss:title ?t }",
]


def matches(engine: Engine) -> list[tuple[Match, list[list[str]]]]:
    """Each match of some publications, and the order of what its bindings hold."""
    found = engine.match([item(f"p{n:02}", f"w{n % 10} {n}") for n in range(PUBLICATIONS)])
    listed = list(found)
    assert listed == found.matches == [found[number] for number in range(len(found))] == found[:]
    return [(match, [list(row) for row in match.bindings]) for match in listed]


def subscribed(settings: Settings) -> Engine:
    engine = Engine(settings=settings)
    for number in range(COPIES * len(QUERIES)):
        engine.subscribe(QUERIES[number % len(QUERIES)], id=f"s{number * 7 % 100:03}")
    return engine


@cache
def in_usual_portions(most: int) -> list[tuple[Match, list[list[str]]]]:
    return matches(subscribed(Settings(max_bindings=most)))


@pytest.mark.parametrize("most", [1000, 3])
@pytest.mark.parametrize("sizes", [(1, 1, 1), (5, 3, 2), (7, 100, 1), (64, 9, 40)])
def test_matches_are_the_same_in_other_portions(
    monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, int, int], most: int
) -> None:
    settings, wanted = Settings(max_bindings=most), in_usual_portions(most)
    assert len(wanted) == PUBLICATIONS * COPIES * len(QUERIES)
    assert any(match.truncated for match, _ in wanted) is (most == 3)
    for module, name, size in zip((result, match_block, objects), ("_AT_ONCE", "_LISTED", "_ROWS"), sizes, strict=True):
        monkeypatch.setattr(module, name, size)
    assert matches(subscribed(settings)) == wanted
    if sizes[0] == 5:  # the ids: fewer are kept than there are; or none is
        monkeypatch.setattr(texts, "_KEPT", 12)
        assert matches(subscribed(settings)) == wanted
        monkeypatch.setattr(texts, "_KEPT", 3)
        assert matches(subscribed(settings)) == wanted
    monkeypatch.setattr(snapshot, "DELTA", 3)  # and the subscriptions in several segments
    engine = subscribed(Settings(max_bindings=most, merge_subscriptions=1))
    assert isinstance(engine._snapshot, SegmentSnapshot)
    assert len(engine._snapshot._all_layers) > 1
    assert matches(engine) == wanted
