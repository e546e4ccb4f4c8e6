"""What goes on beside the calls: merges that fail or are at work in another process, and forks that share files."""

from __future__ import annotations

import gc
import math
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from engine.samples import Stub, full_disk, item
from triplewire import Engine, Settings
from triplewire.clauses.clauses import Clauses, ClauseTable
from triplewire.clauses.node_tests.table import Tests
from triplewire.encode.names import Names
from triplewire.engine.segments.layers import Layer
from triplewire.engine.segments.segment import Segment
from triplewire.engine.segments.snapshot import MergeJob, SegmentSnapshot
from triplewire.engine.segments.texts import IN_MEMORY, TextFile, TextWriter
from triplewire.errors import StoreError
from triplewire.forks import forget_in_children
from triplewire.verify.network import SharedJoins

ROWS = [b"%511d\n" % number for number in range(200)]
MOST_SECONDS = 300


class Fork:
    """A child that does some work when it is told to. `done` says whether it went as it should."""

    def __init__(self, work: Callable[[], bool]) -> None:
        told, self._tell = os.pipe()
        self._child = os.fork()
        if self._child == 0:
            status = 1
            try:
                signal.alarm(MOST_SECONDS)
                os.read(told, 1)
                status = 0 if work() else 2
            finally:
                os._exit(status)
        os.close(told)

    def done(self) -> bool:
        """Tell the child, and wait for it."""
        os.write(self._tell, b"!")
        os.close(self._tell)
        return os.waitpid(self._child, 0)[1] == 0


def titles(number: int) -> str:
    return f'SELECT ?t {{ ?s rss:title ?t FILTER ftcontains(?t, "w{number}") }} #{" " * 2_000}'


def with_merge_due(count: int = 1_200) -> Engine:
    """An engine from which one more subscription has to go, and more than a quarter is gone."""
    engine = Engine(matcher="trie", settings=Settings(merge_subscriptions=16))
    for number in range(count):
        engine.subscribe(titles(number), id=f"s{number:04}")
    engine.settle()
    for number in range(segment_of(engine) // 4):
        engine.unsubscribe(f"s{number:04}")
    return engine


def segment_of(engine: Engine) -> int:
    """The subscriptions of the first segment, those removed counted."""
    snapshot = engine._snapshot
    assert isinstance(snapshot, SegmentSnapshot)
    return len(snapshot.layers[0].segment)


# --- forks


@pytest.mark.parametrize("expected", [0, 2 * IN_MEMORY], ids=["in memory", "in a file"])
def test_a_fork_adds_texts_of_its_own(expected: int) -> None:
    writer = TextWriter(expected)
    starts, _ = writer.append(ROWS)

    def added(name: bytes) -> Callable[[], bool]:
        (start,), _ = writer.append([name])
        return lambda: (
            writer.read(int(start), len(name)) == name
            and all(writer.read(place, 512) == row for place, row in zip(starts.tolist(), ROWS, strict=True))
        )

    child = Fork(lambda: added(b"child")())
    of_parent = added(b"parent")
    assert child.done()
    assert of_parent()
    assert added(b"later")()
    assert of_parent()


def test_a_fork_reads_a_saved_engine_by_itself(tmp_path: Path) -> None:
    file = tmp_path / "rows"
    file.write_bytes(b"".join(ROWS))
    with file.open("rb") as stream:
        texts = TextFile(stream)
        assert texts.read(0, 512) == ROWS[0]
        child = Fork(lambda: texts.read(8 * 512, 512) == ROWS[8])
        assert texts.read(64 * 512, 512) == ROWS[64]
        assert child.done()


def test_a_fork_merges_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that was at it is one of the parent, and so is the lock that it holds."""
    engine, merge, end = with_merge_due(), MergeJob.__call__, threading.Event()
    parent, begun = os.getpid(), threading.Event()

    def slow(self: MergeJob) -> object:
        begun.set()
        if os.getpid() == parent:
            end.wait(MOST_SECONDS)
        return merge(self)

    def work() -> bool:
        engine.settle()
        engine.subscribe(titles(9_999), id="late")
        return segment_of(engine) < before and len(engine.match(item("p", "w9999 w1199"))) == 2

    monkeypatch.setattr(MergeJob, "__call__", slow)
    before = segment_of(engine)
    engine.unsubscribe(f"s{before // 4:04}")
    assert begun.wait(MOST_SECONDS)
    with engine._current.lock:
        child = Fork(work)
    try:
        assert child.done()
    finally:
        end.set()
    engine.settle()
    assert segment_of(engine) < before


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="no lock is held while a cached property is computed")
def test_a_fork_computes_what_a_thread_of_its_parent_was_at() -> None:
    engine, held, end = with_merge_due(), threading.Event(), threading.Event()

    def compute() -> None:
        with ExitStack() as locks:
            for cls in (Clauses, ClauseTable, Layer, Names, Segment, SharedJoins, Tests):  # what a merge computes
                for entry in vars(cls).values():
                    if isinstance(entry, cached_property):
                        locks.enter_context(entry.lock)  # type: ignore[attr-defined]  # its stub is that of 3.12
            held.set()
            end.wait(MOST_SECONDS)

    def work() -> bool:
        engine.settle()
        return segment_of(engine) < before

    before = segment_of(engine)
    # the child merges in its main thread: a new one may get the number of the thread that is gone, and its locks
    engine._current._paused = math.inf
    engine.unsubscribe(f"s{before // 4:04}")
    threading.Thread(target=compute, daemon=True).start()
    assert held.wait(MOST_SECONDS)
    child = Fork(work)
    try:
        assert child.done()
    finally:
        end.set()


def locks() -> list[Any]:
    """The locks that objects and modules of Triplewire have at the moment."""
    modules = [vars(module) for name, module in sys.modules.items() if name.startswith("triplewire")]
    objects = [thing for thing in gc.get_objects() if str(type(thing).__module__).startswith("triplewire")]
    fields = gc.get_referents(*objects)
    fields += [value for field in fields if type(field) is dict for value in field.values()]
    return [value for value in [*fields, *gc.get_referents(*modules)] if isinstance(value, type(threading.Lock()))]


@pytest.mark.parametrize("order", ["greedy", "sub-order"])
def test_a_fork_has_no_lock_that_a_thread_of_its_parent_holds(order: str) -> None:
    """Whatever a thread in the background is at: each lock that there is may be held."""
    engine = Engine(matcher="trie", operators={"always": Stub("always", 1, {"p": True})}, operator_order=order)
    engine.subscribe("always(1), always(2)", "predicates", id="calls")
    engine.subscribe('SELECT ?t { ?s rss:title ?t FILTER regex(?t, "^w") }', id="before")
    assert len(engine.match(item("p", "word"))) == 2

    def work() -> bool:
        engine.subscribe('ASK { ?s rss:title ?t FILTER ftcontains(?t, "word") }', id="after")
        why = engine.explain("calls", item("p", "word"))
        return len(engine.match(item("p", "word"))) == 3 and why.matched

    held = [lock for lock in locks() if lock.acquire(blocking=False)]
    assert len(held) > 10
    try:
        child = Fork(work)
    finally:
        for lock in held:
            lock.release()
    assert child.done()


def test_nothing_is_collected_in_a_fork_before_its_locks_are_free() -> None:
    """An object that is collected may ask for one."""

    class Owner:
        was_collecting: bool | None = None

        def forget(self) -> None:
            self.was_collecting = gc.isenabled()

    owner = Owner()
    forget_in_children(owner)
    assert Fork(lambda: owner.was_collecting is False and gc.isenabled()).done()


# --- merges that fail


def test_a_full_disk_puts_off_a_merge_and_no_call_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[MergeJob] = []
    merge = MergeJob.__call__
    monkeypatch.setattr(MergeJob, "__call__", lambda self: begun.append(self) or merge(self))
    monkeypatch.setattr("triplewire.engine.current_snapshot.PAUSE_SECONDS", 3_600.0)
    engine = with_merge_due()
    before = segment_of(engine)
    (tmp_path / "more.rq").write_text(titles(7_777))
    with full_disk(IN_MEMORY // 2), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        begun.clear()
        for number in range(before // 4, before // 4 + 40):
            engine.unsubscribe(f"s{number:04}")
            if working := engine._current._working:
                working.join()
        assert engine.load_subscriptions(tmp_path / "more.rq") == 1
        (told,) = [str(one.message) for one in warned if one.category is RuntimeWarning]
        assert "put off" in told
        assert "temporary file" in told
        assert len(begun) == 1
        assert len(engine.match(item("p", "w7777 w1199 w4"))) == 2
        with pytest.raises(StoreError, match="temporary file"):
            engine.settle()
    assert segment_of(engine) == before
    engine._current._paused = 0.0
    engine.unsubscribe("s1000")
    engine.settle()
    assert segment_of(engine) < before


def test_without_room_for_a_thread_changes_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, tried = with_merge_due(), list[object]()
    before = segment_of(engine)

    def refused(thread: threading.Thread) -> None:
        tried.append(thread)
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refused)
        for number in range(before // 4, before // 4 + 40):
            assert engine.unsubscribe(f"s{number:04}")
        assert len(tried) == 1
    engine.settle()
    assert segment_of(engine) < before
