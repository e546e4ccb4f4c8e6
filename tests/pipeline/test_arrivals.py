"""Which files a stream reads, and when: without Spark."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from triplewire.errors import ReadError
from triplewire.pipeline.connect.arrivals import Arrivals

TURTLE = "<urn:s> <urn:p> 1 ."
LONG_AGO = 1_000_000_000


def write(folder: Path, name: str, text: str = TURTLE, changed: float = LONG_AGO) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    os.utime(file, (changed, changed))
    return file


def batches(state: Path) -> list[list[list[str]]]:
    """The names of the files of each task of each micro-batch."""
    taken = Arrivals(str(state), state).batches(-1)
    return [[[Path(path).name for path, _ in task] for task in tasks] for _, tasks in taken]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """The folder that is looked at."""
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Where what is known is kept."""
    return tmp_path / "state.sqlite"


def looked(arrivals: Arrivals, committed: int = 99) -> tuple[list[str], list[str], list[str], list[str]]:
    """The names of what is ready, has changed, is refused, is pending; what is ready is taken."""
    look = arrivals.scan(committed)
    arrivals.take(look)
    ready = [path for path, _ in look.ready]
    refused = [refusal.subject for refusal in look.refusals]
    ready, changed, refused, pending = (
        sorted(Path(path).name for path in paths) for paths in (ready, look.changed, refused, look.pending)
    )
    return ready, changed, refused, pending


def test_each_file_once(source: Path, state: Path) -> None:
    arrivals = Arrivals(str(source), state)
    write(source, "a.ttl")
    write(source, "deep/b.ttl")
    assert looked(arrivals) == (["a.ttl", "b.ttl"], [], [], [])
    write(source, "größe 100%20.ttl")
    assert looked(arrivals) == (["größe 100%20.ttl"], [], [], [])
    for again in (arrivals, Arrivals(str(source), state)):
        assert looked(again) == ([], [], [], [])
    assert batches(state) == [[["a.ttl"], ["b.ttl"]], [["größe 100%20.ttl"]]]
    assert [batch.number for batch in arrivals.batches(0)] == [1]
    assert arrivals.batches(-1)[1].tasks == [[(str(source / "größe 100%20.ttl"), len(TURTLE))]]


def test_a_file_that_changes_later(source: Path, state: Path) -> None:
    write(source, "a.ttl")
    assert looked(Arrivals(str(source), state))[0] == ["a.ttl"]
    write(source, "a.ttl", TURTLE + TURTLE)
    assert looked(Arrivals(str(source), state)) == (["a.ttl"], ["a.ttl"], [], [])
    write(source, "a.ttl", TURTLE + TURTLE, LONG_AGO + 1)
    assert looked(Arrivals(str(source), state)) == (["a.ttl"], ["a.ttl"], [], [])
    assert batches(state) == [[["a.ttl"]]]
    assert [batch.number for batch in Arrivals(str(source), state).batches(-1)] == [2]


@pytest.mark.parametrize("text", [TURTLE + TURTLE, ""], ids=["filled", "emptied"])
def test_a_file_that_changes_before_its_micro_batch_is_committed(source: Path, state: Path, text: str) -> None:
    """It stays in that micro-batch, which reads it as it is then: what it told before is known by its number. That
    it is empty is said once."""
    write(source, "a.ttl")
    write(source, "b.ttl")
    looked(Arrivals(str(source), state), -1)
    write(source, "a.ttl", text)
    write(source, "c.ttl")
    arrivals = Arrivals(str(source), state)
    assert looked(arrivals, -1) == (["c.ttl"], [], [] if text else ["a.ttl"], [])
    assert batches(state) == [[["a.ttl"], ["b.ttl"]], [["c.ttl"]]]
    assert dict(arrivals.batches(-1)[0].tasks[0])[str(source / "a.ttl")] == len(text)
    for again in (arrivals, Arrivals(str(source), state)):
        assert looked(again, 1) == ([], [], [], [])
    write(source, "a.ttl", TURTLE * 3)
    assert looked(arrivals, 1) == (["a.ttl"], ["a.ttl"], [], [])


def test_a_file_of_a_distant_time(source: Path, state: Path) -> None:
    try:
        os.utime(write(source, "a.ttl"), ns=(0, 13_600_000_000 * 10**9))
    except OverflowError:
        pytest.skip("this file system holds no such times")
    arrivals = Arrivals(str(source), state, settle=0)
    assert looked(arrivals) == (["a.ttl"], [], [], [])
    assert looked(Arrivals(str(source), state, settle=0)) == ([], [], [], [])


def test_what_is_passed_over_is_recorded_once(source: Path, state: Path) -> None:
    names = ["_aside.ttl", "copy.ttl._COPYING_", "_folder/inside.ttl", ".hidden.ttl", ".git/config", ".git/head"]
    for name in names:
        write(source, name)
    write(source, "empty.ttl", "")
    write(source, "key=_value.ttl")
    (source / "loop.ttl").symlink_to(source / "loop.ttl")
    (source / "all").symlink_to(source)
    arrivals = Arrivals(str(source), state)
    refused = sorted(
        [".git", ".hidden.ttl", "_aside.ttl", "all", "copy.ttl._COPYING_", "empty.ttl", "inside.ttl", "loop.ttl"]
    )
    time.sleep(0.02)  # the folder .git is new
    assert looked(Arrivals(str(source), state, settle=0)) == (["key=_value.ttl"], [], refused, [])
    arrivals = Arrivals(str(source), state, settle=0)
    write(source, ".git/more")
    write(source, "_aside.ttl", TURTLE + TURTLE)
    for name in (".lock", "_SUCCESS"):
        write(source, name, "")
    assert looked(arrivals) == ([], [], [".lock", "_SUCCESS"], [])
    for name in (".lock", "_SUCCESS", "empty.ttl"):
        os.utime(source / name)
    assert looked(arrivals) == ([], [], [], [])


@pytest.mark.parametrize("pattern", ["", "*.ttl", "a.ttl"])
def test_a_link_that_leads_nowhere_is_recorded_once_and_read_when_it_leads_to_a_file(
    source: Path, state: Path, pattern: str
) -> None:
    (source / "a.ttl").symlink_to(source.parent / "later.ttl")
    arrivals = Arrivals(str(source / pattern), state, settle=0)
    found = arrivals.scan(-1)
    assert [(refusal.subject, refusal.reason) for refusal in found.refusals] == [
        (str(source / "a.ttl"), "it is a link to what is not there, or may not be looked at")
    ]
    assert not found.ready
    arrivals.take(found)
    assert looked(Arrivals(str(source / pattern), state, settle=0)) == ([], [], [], [])
    write(source.parent, "later.ttl")
    assert looked(Arrivals(str(source / pattern), state, settle=0)) == (["a.ttl"], [], [], [])


def test_an_empty_file_that_is_filled_later(source: Path, state: Path) -> None:
    write(source, "a.ttl", "")
    assert looked(Arrivals(str(source), state)) == ([], [], ["a.ttl"], [])
    write(source, "a.ttl", changed=LONG_AGO + 5)
    assert looked(Arrivals(str(source), state)) == (["a.ttl"], [], [], [])


class Clock:
    """That of this machine, which stands still until it is set."""

    now = time.time()

    def time(self) -> float:
        return self.now

    monotonic = time


def test_a_file_counts_when_it_has_not_changed_for_a_while(
    source: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr("triplewire.pipeline.connect.arrivals.time", clock)
    arrivals = Arrivals(str(source), state, settle=30)
    write(source, "a.ttl", changed=clock.now)
    write(source, "empty.ttl", "", changed=clock.now)
    write(source, "ahead.ttl", changed=clock.now + 1_000)  # the clock of another machine
    assert looked(arrivals) == ([], [], [], ["a.ttl", "ahead.ttl", "empty.ttl"])
    clock.now += 15
    write(source, "ahead.ttl", TURTLE + TURTLE, changed=clock.now + 1_000)
    assert looked(arrivals)[3] == ["a.ttl", "ahead.ttl", "empty.ttl"]
    clock.now += 20
    assert looked(arrivals) == (["a.ttl"], [], ["empty.ttl"], ["ahead.ttl"])
    clock.now += 20
    assert looked(arrivals) == (["ahead.ttl"], [], [], [])


def test_a_name_that_is_not_utf8(source: Path, state: Path) -> None:
    try:
        write(source, "\udcff.ttl")
    except OSError:
        pytest.skip("this file system holds no such names")
    assert looked(Arrivals(str(source), state)) == (["\udcff.ttl"], [], [], [])
    assert looked(Arrivals(str(source), state)) == ([], [], [], [])


def test_no_number_is_given_twice(source: Path, state: Path) -> None:
    """Also where the files of the last micro-batch are not in it any more: that one may be committed."""
    write(source, "a.ttl")
    looked(Arrivals(str(source), state))
    write(source, "a.ttl", "", LONG_AGO + 1)
    assert looked(Arrivals(str(source), state)) == ([], [], ["a.ttl"], [])
    write(source, "b.ttl")
    arrivals = Arrivals(str(source), state)
    looked(arrivals)
    assert [batch.number for batch in arrivals.batches(-1)] == [1]


def test_many_files_go_to_tasks_that_get_smaller(source: Path, state: Path) -> None:
    for number in range(20):
        write(source, f"{number}.ttl")
    looked(Arrivals(str(source), state, tasks=3))
    (tasks,) = batches(state)
    assert [len(task) for task in tasks] == [4, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1]
    assert sorted(name for task in tasks for name in task) == sorted(f"{number}.ttl" for number in range(20))


@pytest.mark.parametrize(
    ("sizes", "loads"),
    [
        ([900, 10, 20, 500, 400, 30, 40, 700, 800, 50], [900, 800, 700, 500, 400, 150]),  # one has most of a task
        ([100, 90, 80, 70, 60, 50, 40, 30], [130, 130, 80, 70, 60, 50]),  # two files of eight for the first tasks
    ],
)
def test_tasks_have_bytes_by_their_shares_the_first_most(
    sizes: list[int], loads: list[int], source: Path, state: Path
) -> None:
    for number, size in enumerate(sizes):
        write(source, f"{number}.ttl", "#" * size)
    arrivals = Arrivals(str(source), state, tasks=2)
    looked(arrivals)
    (batch,) = arrivals.batches(-1)
    assert [sum(size for _, size in task) for task in batch.tasks] == loads


def test_no_task_has_too_many_files(source: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triplewire.pipeline.connect.documents._OF_A_TASK", 3)
    write(source, "large.ttl", "#" * 1_000)
    for number in range(11):
        write(source, f"{number}.ttl", "#" * 10)
    looked(Arrivals(str(source), state))
    (tasks,) = batches(state)
    assert [len(task) for task in tasks] == [1, 3, 3, 3, 2]


def test_very_many_files_go_to_several_micro_batches(
    source: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("triplewire.pipeline.connect.arrivals._OF_A_BATCH", 5)
    for number in range(12):
        write(source, f"{number:02}.ttl")
    looked(Arrivals(str(source), state))
    assert [sorted(name for task in tasks for name in task) for tasks in batches(state)] == [
        [f"{number:02}.ttl" for number in numbers] for numbers in (range(5), range(5, 10), range(10, 12))
    ]


def test_a_file_a_glob_and_nothing(source: Path, tmp_path: Path) -> None:
    file = write(source, "[a].ttl")
    write(source, "b.nq")
    assert looked(Arrivals(str(file), tmp_path / "one.sqlite"))[0] == ["[a].ttl"]
    assert looked(Arrivals(f"{source}/*.nq", tmp_path / "two.sqlite"))[0] == ["b.nq"]
    with pytest.raises(ReadError, match="no such file"):
        Arrivals(str(source / "absent"), tmp_path / "three.sqlite").scan(-1)
