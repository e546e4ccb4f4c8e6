"""Subscriptions that are evaluated are compiled when they are first asked for, and kept within memory."""

from __future__ import annotations

from typing import Any

import pytest

from engine.samples import item
from triplewire import Engine
from triplewire.bounded_cache import BoundedCache
from triplewire.engine.compiler import Compiler, row_of
from triplewire.engine.segments import segment as context
from triplewire.engine.segments.snapshot import SegmentSnapshot
from triplewire.languages.sources.tables import line_of

pytestmark = pytest.mark.slow

COUNT = 1_500


def negations() -> Engine:
    """All match each item."""
    made = Engine(matcher="trie")
    for number in range(COUNT):
        without = f"FILTER NOT EXISTS {{ ?s <urn:q{number}> ?o }}"
        made.subscribe(f"ASK {{ ?s rss:title ?t {without} }}", id=str(number))
    made.settle()
    return made


def kept(engine: Engine) -> BoundedCache[Any, Any]:
    snapshot = engine._snapshot
    assert isinstance(snapshot, SegmentSnapshot)
    return snapshot.layers[0].segment.context._cache


def test_each_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = negations()
    assert len(engine.match(item("p", "word"))) == COUNT
    monkeypatch.setattr(Compiler, "compiled", None)
    assert len(engine.match(item("p", "word"))) == COUNT


def test_more_than_there_is_memory_for(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, compile_row = [0], Compiler.compiled

    def counted(self: Compiler, *given: object, **more: object) -> object:
        compiled[0] += 1
        return compile_row(self, *given, **more)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr(context, "KEPT_BYTES", 100_000)
    engine = negations()
    assert sum(len(line_of(row_of(subscription))) for subscription in engine.subscriptions) > 180_000
    monkeypatch.setattr(Compiler, "compiled", counted)
    for _ in range(4):
        compiled[0] = 0
        assert len(engine.match(item("p", "word"))) == COUNT
        assert kept(engine).weight <= context.KEPT_BYTES
    assert compiled[0] < 0.95 * COUNT, "some are there, though all come in turn"
