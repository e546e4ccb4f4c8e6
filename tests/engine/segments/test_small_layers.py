"""A small segment looks at many publications at once: the parts of a chunk have the matches that it has as a whole."""

from __future__ import annotations

import pytest

from engine.samples import EX, Stub, item
from triplewire import Engine
from triplewire.engine.chunk import Chunk
from triplewire.engine.segments import layers
from triplewire.engine.segments.arena import Arena
from triplewire.engine.segments.layers import Layer
from triplewire.engine.segments.segment import SegmentRows
from triplewire.engine.segments.snapshot import SegmentSnapshot
from triplewire.engine.stats import Clock

PUBLICATIONS = 97
SIZES = (1, 5, 16, 3, 40, 2, 30)  # of the parts, 97 together


def layer() -> Layer:
    """Eleven subscriptions: accepted, verified, one that an operator decides, one that is removed."""
    answers = {f"p{n:02}": n % 2 == 0 for n in range(PUBLICATIONS)}
    engine = Engine(operators={"mob": Stub("mob", 0, dict(answers))})
    for number in range(8):
        engine.subscribe(f'SELECT ?t {{ ?s rss:title ?t FILTER ftcontains(?t, "w{number}") }}', id=f"s{number}")
    engine.subscribe(f"SELECT ?a {{ ?s <{EX}year> ?a ; rss:title ?b FILTER(?a != ?b) }}", id="joined")
    engine.subscribe("SELECT ?t { ?s rss:title ?t . FILTER(STRLEN(?t) > 3) }", id="gone")
    engine.subscribe("SELECT ?t { ?s rss:title ?t FILTER(op:mob()) }", id="mob")
    snapshot = engine._snapshot
    assert isinstance(snapshot, SegmentSnapshot)
    (found,) = snapshot._all_layers
    return found.without([9])


def whole() -> Chunk:
    return Chunk([item(f"p{n:02}", f"w{n % 10} w{n % 3} {n}") for n in range(PUBLICATIONS)])


def rows(found: list[SegmentRows], first: int = 0) -> list[tuple[int, int, bool]]:
    arena = Arena()
    for one in found:
        arena.add(one.offset, one.accepted, one.columns, 0)
    return sorted((p + first, s, t) for p, s, t in zip(*(c.tolist() for c in arena.take_rows()), strict=True))


def counted(rows: SegmentRows) -> tuple[int, ...]:
    """What was looked at."""
    return rows.counts


@pytest.mark.parametrize("most", [7, 16, 33, 1 << 13])
def test_parts_have_what_the_whole_has(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(layers, "MOST", most)
    monkeypatch.setattr(layers, "LEAST", 1)
    mine, chunk = layer(), whole()
    wanted = list(mine.match(chunk, Clock(), Arena()))
    chunk = whole()
    got, waiting, counts, first = [], [], tuple([0] * len(wanted[0].counts)), 0
    for size in SIZES:
        found = list(mine.match(chunk.part(first, first + size), Clock(), Arena()))
        assert all(0 <= p < size for p, _, _ in rows(found))
        got += rows(found, first)
        waiting += [(p + first, s) for one in found for p, s in one.waiting]
        for one in found:
            counts = tuple(a + b for a, b in zip(counts, counted(one), strict=True))
        first += size
    assert sorted(got) == rows(wanted)
    assert len(got) > PUBLICATIONS
    assert waiting == list(wanted[0].waiting) == [(p, 10) for p in range(PUBLICATIONS)]
    assert counts == counted(wanted[0])


@pytest.mark.parametrize("most", [16, 1 << 13])
def test_a_part_may_come_again(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(layers, "MOST", most)
    monkeypatch.setattr(layers, "LEAST", 1)
    mine, chunk = layer(), whole()
    wanted = rows(list(mine.match(chunk, Clock(), Arena())))
    for first in (0, 50, 20, 0, 50, 20):
        found = rows(list(mine.match(chunk.part(first, first + 10), Clock(), Arena())), first)
        assert found == [row for row in wanted if first <= row[0] < first + 10]
