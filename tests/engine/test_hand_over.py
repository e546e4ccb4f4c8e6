"""What a caller gets of a result: ids, plain columns, Arrow without bindings and data frames tell what matches tell."""

from __future__ import annotations

import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from engine.samples import EX, item
from engine.test_result_portions import QUERIES
from triplewire import IRI, Engine, Literal, Match, MatchResult, Publication, Settings, Triple
from triplewire.encode.schema import PAIRS
from triplewire.engine import match_block, result
from triplewire.engine.segments import snapshot, texts
from triplewire.errors import ArgumentError, TriplewireError

XSD = "http://www.w3.org/2001/XMLSchema#"


def subscribed(matcher: str, **settings: Any) -> Engine:
    engine = Engine(matcher=matcher, settings=Settings(**settings))
    for number in range(3 * len(QUERIES)):
        engine.subscribe(QUERIES[number % len(QUERIES)], id=f"s{number * 7 % 100:03}")
    return engine


def told(found: MatchResult) -> list[tuple[str, str, bool]]:
    return [(match.publication, match.subscription, match.truncated) for match in found]


def check(found: MatchResult) -> None:
    """All forms of a result agree, without bindings before and after these were listed."""
    pairs = [(match.publication, match.subscription) for match in found]
    assert found.subscription_ids == [subscription for _, subscription in pairs]
    rows = found.rows()
    assert list(zip(rows.publication, rows.subscription, strict=True)) == pairs
    for publication in {publication for publication, _ in pairs}:
        assert found.ids(publication) == [subscription for other, subscription in pairs if other == publication]
    wanted = told(found)
    assert list(zip(*found.rows(), strict=True)) == wanted
    table = found.to_arrow(bindings=False)
    table.validate(full=True)
    assert table.schema == PAIRS
    assert sorted(tuple(row.values()) for row in table.to_pylist()) == sorted(wanted)


@pytest.mark.parametrize("merged", [True, False])
@pytest.mark.parametrize("sparse", [0, 8])
def test_all_forms_agree(monkeypatch: pytest.MonkeyPatch, matcher: str, merged: bool, sparse: int) -> None:
    """With one segment and several, with removed subscriptions, and with ids that come twice."""
    monkeypatch.setattr(result, "_SPARSE", sparse)
    if not merged:
        monkeypatch.setattr(snapshot, "DELTA", 3)
    engine = subscribed(matcher, **({} if merged else {"merge_subscriptions": 1}), max_bindings=3)
    publications = [item(f"p{n % 9}", f"w{n} {n}") for n in range(12)]
    check(engine.match(publications))
    engine.unsubscribe("s007")
    engine.subscribe(QUERIES[0], id="s007")
    engine.unsubscribe("s014")
    found = engine.match(publications)
    assert "s007" in found.subscription_ids
    assert "s014" not in found.subscription_ids
    check(found)
    assert found.ids("p0") == found.ids(item("p0", "")) != []
    assert found.ids("unknown") == []
    with pytest.raises(ArgumentError):
        found.ids(7)  # type: ignore[arg-type]


def test_nothing_matches(matcher: str) -> None:
    found = subscribed(matcher).match(Publication("p", ()))
    assert len(found.to_arrow(bindings=False)) == len(found.subscription_ids) == 0
    assert found.rows() == ([], [], [])


@pytest.mark.parametrize("kept", [1 << 16, 40, 1])
def test_matches_may_be_asked_in_any_order(monkeypatch: pytest.MonkeyPatch, matcher: str, kept: int) -> None:
    """The bindings of a match are the same whoever asks first, however many are listed at once, with and without the
    result; a copy has them all."""
    monkeypatch.setattr(match_block, "_LISTED", kept)
    engine = subscribed(matcher, max_bindings=3)
    publications = [item(f"p{n}", f"w{n} {n}") for n in range(7)]
    wanted = [(m.publication, m.subscription, m.bindings, m.truncated, m.construct) for m in engine.match(publications)]
    assert any(truncated for *_, truncated, _ in wanted)
    found = engine.match(publications)
    matches = list(found)
    counted = found.truncated
    del found
    for match, row in reversed(list(zip(matches, wanted, strict=True))):
        if row[4] is not None:
            assert match.construct == row[4]
        assert (match.truncated, match.bindings, match.construct) == (row[3], row[2], row[4])
        assert match == Match(*row[:4], construct=row[4]) == pickle.loads(pickle.dumps(match))
    found = engine.match(publications)
    assert [match.bindings for match in found] == [row[2] for row in wanted]
    assert found.truncated == sum(truncated for *_, truncated, _ in wanted) >= counted


def test_threads_share_matches_and_ids(matcher: str) -> None:
    engine = subscribed(matcher)
    publications = [item(f"p{n}", f"w{n} {n}") for n in range(20)]
    wanted = [(match.subscription, match.bindings) for match in engine.match(publications)]
    matches = list(engine.match(publications))
    begin, interval = threading.Barrier(4), sys.getswitchinterval()

    def ask(order: int) -> list[tuple[str, Any]]:
        begin.wait()
        asked = matches[::order]
        told = [(match.subscription, match.bindings) for match in asked]
        assert engine.match(publications).subscription_ids == [subscription for subscription, _ in wanted]
        return told[::order]

    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            assert all(rows == wanted for rows in threads.map(ask, (1, -1, 1, -1)))
    finally:
        sys.setswitchinterval(interval)


def test_ids_are_decoded_once() -> None:
    """The ids of two results are the same objects; where many are kept, those asked for last."""
    engine = Engine()
    for number in range(70):
        engine.subscribe("ASK { ?s rss:title ?t }", id=f"urn:id:{number}")
    engine.settle()
    first, second = (engine.match(item("p", "one")).subscription_ids for _ in range(2))
    assert len(first) == 70
    assert all(one is other for one, other in zip(first, second, strict=True))
    match = next(iter(engine.match(item("p", "one"))))
    assert match.subscription is first[0]


def test_few_ids_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine()
    for number in range(70):
        engine.subscribe(f'ASK {{ ?s rss:title "{number % 10}" }}', id=f"urn:id:{number:02}")
    engine.settle()
    for most in (9, 4, 30):
        monkeypatch.setattr(texts, "_KEPT", most)
        for turn in range(25):
            found = engine.match(item("p", f"{turn % 10}"))
            assert found.subscription_ids == [f"urn:id:{n:02}" for n in range(turn % 10, 70, 10)]


def test_a_frame_has_a_column_a_variable() -> None:
    pandas = pytest.importorskip("pandas")
    engine = Engine()
    engine.subscribe(
        f"SELECT ?s ?count ?day ?mixed ?publication {{ ?s <{EX}count> ?count ; <{EX}day> ?day ; <{EX}mixed> ?mixed . "
        f"OPTIONAL {{ ?s <{EX}in> ?publication }} }}",
        id="all",
    )
    engine.subscribe(f"SELECT ?other {{ ?s <{EX}other> ?other }}", id="other")
    engine.subscribe(f"ASK {{ ?s <{EX}other> ?other }}", id="yes")
    subject = IRI("urn:s")
    values = {
        "count": [Literal("7", XSD + "integer")],
        "day": [Literal("2024-05-06", XSD + "date")],
        "mixed": [Literal("1", XSD + "integer"), Literal("one")],
        "in": [Literal("x", language="en")],
        "other": [Literal(str(1 << 70), XSD + "integer")],
    }
    triples = [Triple(subject, IRI(EX + name), term) for name, terms in values.items() for term in terms]
    found = engine.match(Publication("p", triples))
    frame = found.to_pandas()
    names = "publication subscription truncated s count day mixed ?publication other"
    assert list(frame) == names.split()
    assert frame["subscription"].tolist() == ["all", "all", "other", "yes"]
    assert frame["mixed"].tolist()[:2] == ["1", "one"]
    assert frame["count"].tolist()[:2] == [7, 7]
    assert f"{frame['day'][0]}" == "2024-05-06"
    assert frame["other"].tolist()[2] == str(1 << 70)  # larger than a column of integers takes
    assert frame["?publication"].tolist() == ["x", "x", None, None]
    assert frame["s"].isna().tolist() == [False, False, True, True]
    assert list(engine.match(Publication("none", ())).to_pandas()) == ["publication", "subscription", "truncated"]
    assert isinstance(frame, pandas.DataFrame)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_needs_its_library(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    found = Engine().match(item("p", "one"))
    with pytest.raises(TriplewireError, match=f"{library} is not installed.*pip install {library}"):
        getattr(found, f"to_{library}")()


def test_an_engine_has_no_other_attributes() -> None:
    engine = Engine()
    for name in ("taxonmy", "matcher", "operators"):
        with pytest.raises(AttributeError, match=name):
            setattr(engine, name, None)
    with pytest.raises(AttributeError):
        engine.settings = Settings()  # type: ignore[misc]
