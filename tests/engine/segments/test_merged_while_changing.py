"""When segments are merged, and what of changes that come meanwhile."""

from __future__ import annotations

import pytest

from engine.samples import item
from engine.segments.test_segments import engine_with, found, snapshot_of, titles
from triplewire import Settings
from triplewire.engine import current_snapshot
from triplewire.engine.segments import snapshot as snapshots
from triplewire.engine.segments.snapshot import DELTA, SegmentSnapshot


def test_a_merge_loses_nothing_that_comes_in_meanwhile() -> None:
    engine, gone = engine_with(DELTA + 10), DELTA // 3
    engine.settle()
    snapshot = snapshot_of(engine).changed((), [f"s{n:04}" for n in range(gone)])
    work = snapshot.background_work()
    assert work is not None, "more than a quarter is gone"
    install = work()
    later = snapshot.changed((), [f"s{gone + 10:04}", f"s{gone + 11:04}"])
    later = later.changed([engine.subscribe(titles("late"), id="late")], ())
    merged = install(later)
    assert isinstance(merged, SegmentSnapshot)
    left = [n for n in range(gone, DELTA + 10) if n not in (gone + 10, gone + 11)]
    assert [one.id for one in merged.all()] == [*(f"s{n:04}" for n in left), "late"]
    assert len(merged) == len(left) + 1
    assert f"s{gone + 10:04}" not in merged
    assert merged.get(f"s{gone + 12:04}") == engine.subscriptions[gone + 12]
    assert sum(len(layer.segment) for layer in merged.layers) <= DELTA - gone + 1


def test_publications_without_changes_pay_for_one_segment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call to a segment that is one too many counts, until they are as many as a quarter of the subscriptions."""
    monkeypatch.setattr(snapshots, "LEAST_CALLS", 8)
    monkeypatch.setattr(current_snapshot, "LOOK", 1)
    engine = engine_with(3 * DELTA + 10, Settings())
    engine.settle()
    engine.unsubscribe("s0007")
    ids = [subscription.id for subscription in engine.subscriptions]
    before, matches = snapshot_of(engine), found(engine, "new w7")
    assert (len(before.layers), len(before.delta), matches[0]) == (1, 10, "s0017")
    calls = 1
    while snapshot_of(engine).background_work() is None and snapshot_of(engine) is before:
        assert found(engine, "new w7") == matches
        calls += 1
    assert 2 * snapshots.MERGED_A_CALL * calls - len(ids) in range(2 * snapshots.MERGED_A_CALL)  # one of the two saved
    engine.settle()
    after = snapshot_of(engine)
    assert ([len(layer.segment) for layer in after.layers], len(after.delta)) == ([len(ids)], 0)
    assert [subscription.id for subscription in engine.subscriptions] == ids
    assert found(engine, "new w7") == matches


@pytest.mark.parametrize(
    ("added", "small", "layers"), [(1, 1_024, 1), (DELTA, 1_024, 1), (DELTA, 16, 2)], ids=["delta", "again", "behind"]
)
def test_the_delta_is_merged_while_it_changes(added: int, small: int, layers: int) -> None:
    """What is still in the delta goes to the merged segment; what has gone to a segment of changes stays there."""
    engine = engine_with(2 * DELTA + 10, Settings(merge_subscriptions=small))
    engine.settle()
    snapshot = snapshot_of(engine)
    assert snapshot.delta
    engine.match(item("p", "w7"))
    snapshot._extra_calls = snapshots.LEAST_CALLS
    work = snapshot.background_work()
    assert work is not None
    install = work()
    later = snapshot.changed((), ["s0001", f"s{2 * DELTA + 3:04}"])
    new = [engine.subscribe(titles("late"), id=f"late{number:03}") for number in range(added)]
    for subscription in new:
        later = later.changed([subscription], ())
    merged = install(later)
    assert isinstance(merged, SegmentSnapshot)
    assert [one.id for one in merged.all()] == [one.id for one in later.all()]
    assert len(merged) == 2 * DELTA + 8 + added
    assert len(merged.layers) == layers
    assert all(one.id.startswith("late") for one in [compiled.subscription for compiled in merged.delta])
