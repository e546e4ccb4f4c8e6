"""An index has room for so many rows. What has no room there goes to another, or is refused: nothing wraps around."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.samples import EX, item
from triplewire import Engine, Refusal
from triplewire.clauses import clauses as table
from triplewire.clauses.builder import ClauseBuilder
from triplewire.engine.segments import snapshot as snapshots
from triplewire.engine.segments.snapshot import SegmentSnapshot
from triplewire.errors import LimitError
from triplewire.ir.normal_form import normal_form
from triplewire.languages import parse

INDEXES = ["everything", "trie"]
WITH_TESTS = 'SELECT ?t {{ ?s rss:title ?t FILTER ftcontains(?t, "w{n}") FILTER CONTAINS(?t, "{n}") }}'
OF_PATTERNS = f"SELECT ?s {{{{ ?s <{EX}year> ?y ; a ?c ; <{EX}x{{n}}> ?z }}}}"


@pytest.fixture(autouse=True)
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "MOST_ROWS", 100)


def written(folder: Path, query: str, count: int) -> Path:
    path = folder / "rows.jsonl"
    rows = ({"id": f"q{n}", "language": "sparql", "query": query.format(n=n)} for n in range(count))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def segments(engine: Engine) -> int:
    snapshot = engine._snapshot
    assert isinstance(snapshot, SegmentSnapshot)
    return len(snapshot.layers)


@pytest.mark.parametrize("matcher", INDEXES)
@pytest.mark.parametrize("query", [WITH_TESTS, OF_PATTERNS])
def test_files_go_on_in_the_next_index(matcher: str, query: str, tmp_path: Path) -> None:
    engine, refusals = Engine(matcher=matcher), list[Refusal]()
    assert engine.load_subscriptions(written(tmp_path, query, 160), on_refusal=refusals.append) == 160
    assert not refusals
    assert segments(engine) > 1
    assert [one.id for one in engine.subscriptions] == [f"q{n}" for n in range(160)]
    expected = Engine(matcher="reference")
    expected.load_subscriptions(tmp_path / "rows.jsonl")
    assert list(engine.match(item("p", "w3 w80 w159"))) == list(expected.match(item("p", "w3 w80 w159")))
    with pytest.raises(LimitError, match="more than 100 clauses, patterns or tests"):
        engine.save(tmp_path / "saved")
    assert not (tmp_path / "saved").exists()
    engine.save(tmp_path / "saved", index=False)
    assert len(Engine.load(tmp_path / "saved", matcher="reference").subscriptions) == 160


@pytest.mark.parametrize("matcher", INDEXES)
def test_live_changes_never_merge_too_much(matcher: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "DELTA", 10)
    engine = Engine(matcher=matcher)
    engine.settle()
    for number in range(120):
        engine.subscribe(WITH_TESTS.format(n=number), id=f"q{number}")
        if number % 3 == 2:
            engine.unsubscribe(f"q{number - 2}")
    engine.settle()
    assert segments(engine) > 1
    assert len(engine.subscriptions) == 80
    assert [match.subscription for match in engine.match(item("p", "w1 w119 w0"))] == ["q1", "q119"]


def test_a_builder_that_is_full_says_so() -> None:
    builder, form = ClauseBuilder(), normal_form(parse("ASK { ?s ?p ?o }"), most=64)
    for _ in range(100):
        builder.add(form, (), True)
    with pytest.raises(LimitError, match="more than 100 clauses"):
        builder.add(form, (), True)
    assert len(builder.build()) == 100
