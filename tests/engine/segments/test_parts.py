"""Files that several processes load, each a part: everything is as in a load in one process."""

from __future__ import annotations

import ctypes
import gc
import json
import mmap
import os
import pickle
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from engine.samples import EX, item
from engine.segments.rows_in_parts import rows, written
from triplewire import Engine, Refusal, Taxonomy
from triplewire.config import Settings
from triplewire.engine import part_processes
from triplewire.engine.part_loading import LoadTask
from triplewire.errors import StoreError, SubscriptionError
from triplewire.languages.sources.file_parts import FilePiece, items_of, parts_of, pieces_of
from triplewire.operators import built_in_operators, function_operator

TAXONOMY = Taxonomy.build([(EX + "A", EX + "B")])
PROCESSES = 2


class Loaded:
    """An engine, and what was told while it loaded files."""

    def __init__(self, sources: Path | list[Path], workers: int, **about: Any) -> None:
        self.engine = Engine(taxonomy=TAXONOMY, **about)
        self.refusals, self.warnings, self.progress = list[Refusal](), list[tuple[str, str]](), list[int]()
        self.count = self.engine.load_subscriptions(
            sources,
            on_refusal=self.refusals.append,
            on_warning=lambda id, warning: self.warnings.append((id, warning)),
            progress=self.progress.append,
            workers=workers,
        )

    def told(self) -> tuple[object, ...]:
        """All that another load of the same files must tell as well."""
        stated = [(one, one.warnings, one.revision) for one in self.engine.subscriptions]
        matches = [[(m.subscription, m.bindings) for m in self.engine.match(item("p", f"w{n} w3"))] for n in range(9)]
        return int(self.count), self.progress[-1], self.refusals, self.warnings, stated, matches


Runs = list[list[tuple[bool, int]]]
"""Of each load that several processes were asked for, of each part of another process: could it be read to its end, and
how many segments has it?"""


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    ended, run = Runs(), part_processes.run

    @contextmanager
    def watched(tasks: Sequence[LoadTask]) -> Iterator[Callable[[], None]]:
        with run(tasks) as wait:

            def waited() -> None:
                wait()
                parts = [pickle.loads(task.path("loaded").read_bytes()) for task in tasks]
                segments = [len([*Path(task.folder).glob(f"segment-*-{task.number}")]) for task in tasks]
                ended.append([(part.is_whole, count) for part, count in zip(parts, segments, strict=True)])

            yield waited

    monkeypatch.setattr(part_processes, "run", watched)
    return ended


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """The processes that were started. They are stopped at once, so that they are at work for long."""
    begin, processes = part_processes.started, list[subprocess.Popen[bytes]]()

    def watched(*about: Any, **more: Any) -> subprocess.Popen[bytes]:
        processes.append(begin(*about, **more))
        processes[-1].send_signal(signal.SIGSTOP)
        return processes[-1]

    monkeypatch.setattr(part_processes, "started", watched)
    return processes


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
@pytest.mark.parametrize("matcher", ["trie", "everything"])
def test_as_in_one_process(runs: Runs, form: str, matcher: str, tmp_path: Path) -> None:
    file = written(rows(), tmp_path / f"rows.{form}")
    one, two = Loaded(file, 1, matcher=matcher), Loaded(file, PROCESSES, matcher=matcher)
    assert two.told() == one.told()
    assert runs == [[(True, 1)]]
    assert (len(one.refusals), len(one.engine)) == (9, 80)
    assert one.warnings
    assert two.engine.get("of T") == one.engine.get("of T") != None  # noqa: E711  # mypy
    for loaded, name in ((one, "one"), (two, "two")):
        loaded.engine.subscribe("ASK { ?s ?p ?o }", id="later")
        loaded.engine.unsubscribe("w7")
        loaded.engine.save(tmp_path / name)
    saved = [[file.name for file in (tmp_path / name).glob("subscriptions.*")] for name in ("one", "two")]
    assert saved[0] == saved[1], "other texts are saved"
    assert Engine.load(tmp_path / "two").subscriptions == one.engine.subscriptions


def test_a_folder_of_files(runs: Runs, tmp_path: Path) -> None:
    stated = rows()
    for number, begin in enumerate(range(0, len(stated), 30)):
        written(stated[begin : begin + 30], tmp_path / f"{number}.{'parquet' if number % 2 else 'jsonl'}")
    assert Loaded(tmp_path, 3).told() == Loaded(tmp_path, 1).told()
    assert runs == [[(True, 1), (True, 1)]]


def test_a_file_named_twice(runs: Runs, tmp_path: Path) -> None:
    file = written(rows(), tmp_path / "rows.jsonl")
    one, more = Loaded([file, file], 1), Loaded([file, file], 3)
    assert more.told() == one.told()
    assert sum("an earlier row" in refusal.reason for refusal in more.refusals) > 80
    assert len(runs) == 1


def test_an_id_in_two_parts(runs: Runs, tmp_path: Path) -> None:
    repeated = ["w3", "wrong0", "of T"]
    more = ({"id": id, "language": "sparql", "query": "ASK { ?s ?p ?o }"} for id in (*repeated, *"abcde"))
    file = written([*rows(), *more], tmp_path / "rows.jsonl")
    one, two = Loaded(file, 1), Loaded(file, PROCESSES)
    assert two.told() == one.told()
    assert [refusal.subject for refusal in two.refusals if "an earlier row" in refusal.reason] == repeated
    assert len(runs) == 1


@pytest.mark.parametrize(("group", "is_whole", "most"), [(1, True, 20), (6, False, 65)])
def test_a_row_group_that_cannot_be_read(runs: Runs, group: int, is_whole: bool, most: int, tmp_path: Path) -> None:
    """What stands behind it is not read either, by whichever process; the next file is."""
    file = written(rows(), tmp_path / "rows.parquet")
    following = written([{**row, "id": "next " + row["id"]} for row in rows()[1:4]], tmp_path / "next.jsonl")
    column = pq.read_metadata(file).row_group(group).column(2)
    data = bytearray(file.read_bytes())
    begin = column.dictionary_page_offset or column.data_page_offset
    data[begin : begin + column.total_compressed_size] = bytes(column.total_compressed_size)
    file.write_bytes(data)
    one, two = Loaded([file, following], 1), Loaded([file, following], PROCESSES)
    assert two.told() == one.told()
    assert sum("cannot be read as Parquet" in refusal.reason for refusal in two.refusals) == 1
    assert "next w0" in two.engine
    assert most - 20 <= len(one.engine) < most
    assert [[part[0] for part in parts] for parts in runs] == [[is_whole]]


def test_the_first_refusal_is_raised(runs: Runs, tmp_path: Path) -> None:
    """And what came before it stays."""
    stated = rows()
    wrong = next(number for number, row in enumerate(stated) if row["id"] == "wrong49")
    stated = [row for row in stated if not row["id"].startswith("wrong") or row["id"] in ("wrong49", "wrong56")]
    engine = Engine(taxonomy=TAXONOMY)
    with pytest.raises(SubscriptionError, match=r"record \d+"):
        engine.load_subscriptions(written(stated, tmp_path / "rows.jsonl"), workers=PROCESSES)
    before = [row["id"] for row in stated[:wrong] if row["language"] != "mdv" and row["id"] in engine]
    assert "w48" in engine
    assert {f"w{n}" for n in range(49)} <= {*before}
    assert runs == [[(True, 1)]]


def test_who_is_told_raises(tmp_path: Path) -> None:
    engine, told = Engine(taxonomy=TAXONOMY), list[Refusal]()

    def refuse(refusal: Refusal) -> None:
        told.append(refusal)
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        engine.load_subscriptions(written(rows(), tmp_path / "rows.jsonl"), on_refusal=refuse, workers=PROCESSES)
    assert [refusal.subject for refusal in told] == ["wrong0"]
    assert "w0" in engine


def test_the_caller_stops(started: list[subprocess.Popen[bytes]], tmp_path: Path) -> None:
    """While the processes are at work: they end, and what was read before stays."""
    engine, file = Engine(), written([row for row in rows() if row["id"] != "T"], tmp_path / "rows.jsonl")

    def stop(count: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engine.load_subscriptions(file, on_refusal=lambda _: None, progress=stop, workers=PROCESSES)
    assert "w0" in engine
    assert "w59" not in engine
    assert [process.poll() for process in started] == [-signal.SIGKILL]


def test_a_process_that_is_killed(
    started: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What this process has registered stays; the others end, and leave nothing."""
    wait = part_processes._wait_for

    def killing(processes: Sequence[subprocess.Popen[bytes]]) -> None:
        os.kill(processes[0].pid, signal.SIGKILL)
        wait(processes)

    monkeypatch.setattr(part_processes, "_wait_for", killing)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    engine = Engine()
    with pytest.raises(StoreError, match=r"has ended \(signal 9\); .*too much memory.* workers=1"):
        engine.load_subscriptions(written(rows(), tmp_path / "rows.jsonl"), on_refusal=lambda _: None, workers=3)
    assert "w0" in engine
    assert "w59" not in engine
    assert [process.poll() for process in started] == [-signal.SIGKILL] * 2
    assert [path.name for path in tmp_path.iterdir()] == ["rows.jsonl"]


def test_a_process_ends_with_the_one_that_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    begin = part_processes.started

    def closing(*about: Any, **more: Any) -> subprocess.Popen[bytes]:
        process = begin(*about, **more)
        process.stdin.close()  # type: ignore[union-attr]  # it is there
        return process

    monkeypatch.setattr(part_processes, "started", closing)
    with pytest.raises(StoreError, match=r"has ended \(exit 1\)"):
        Loaded(written(rows(), tmp_path / "rows.jsonl"), PROCESSES)


def test_a_process_that_has_no_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    started = part_processes.started

    def limited(*about: Any, **more: Any) -> subprocess.Popen[bytes]:
        process = started(*about, **more)
        resource.prlimit(process.pid, resource.RLIMIT_AS, (1 << 28, 1 << 28))
        return process

    monkeypatch.setattr(part_processes, "started", limited)
    with pytest.raises(StoreError, match=r"a process that loads subscriptions has .*workers=1"):
        Loaded(written(rows(), tmp_path / "rows.jsonl"), PROCESSES)


def in_one_process(tmp_path: Path) -> dict[str, tuple[Engine, list[Path]]]:
    file, packed = written(rows(), tmp_path / "rows.jsonl"), tmp_path / "packed.jsonl"
    query, folder = tmp_path / "query.rq", tmp_path / "folder"
    query.write_text("ASK { ?s ?p ?o }")
    packed.write_bytes(b"\x1f\x8b" + bytes(50))
    folder.mkdir()
    (folder / "rows.jsonl").symlink_to(tmp_path)
    full = Engine()
    full.subscribe("ASK { ?s ?p ?o }", id="there")
    more = {**built_in_operators(), "more": function_operator("more", (), lambda *_: True)}
    return {
        "subscriptions are there": (full, [file]),
        "operators of its own": (Engine(operators=more), [file]),
        "fewer operators": (Engine(operators={}), [file]),
        "no index": (Engine(matcher="reference"), [file]),
        "a query": (Engine(), [file, query]),
        "packed": (Engine(), [file, packed]),
        "left out": (Engine(), [file, folder]),
        "missing": (Engine(), [file, tmp_path / "missing.jsonl"]),
        "too large": (Engine(settings=Settings(max_input_bytes=file.stat().st_size - 1)), [file]),
        "nothing": (Engine(), []),
    }


def test_what_one_process_loads(runs: Runs, tmp_path: Path) -> None:
    for name, (engine, files) in in_one_process(tmp_path).items():
        engine.load_subscriptions(files, on_refusal=lambda _: None, workers=PROCESSES)
        assert not runs, name


@pytest.mark.parametrize("shares", [[1.0], [1.1, 1.0], [0.0, 1.0, 1.0], [1.0] * 7, [1.0] * 500], ids=len)
@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_parts_have_all_rows_in_order(form: str, shares: list[float], tmp_path: Path) -> None:
    stated = rows()
    files = [written(stated, tmp_path / f"a.{form}"), written(stated[:20], tmp_path / f"b.{form}")]
    pieces = pieces_of(files, Settings())
    parts = parts_of(pieces, shares)
    assert [piece for part in parts for piece in part] == pieces
    total, largest = sum(piece.rows for piece in pieces), max(piece.rows for piece in pieces)
    for share, part in zip(shares, parts, strict=True):
        assert abs(sum(piece.rows for piece in part) - total * share / sum(shares)) <= largest * bool(share)
    for file, count in zip(files, (len(stated), 20), strict=True):
        own = [piece for piece in pieces if piece.source == str(file)]
        for piece, following in pairwise(own):
            assert (following.begin, following.record) == (piece.end, piece.record + piece.rows)
        read = [row for piece in own for columns in piece.items(Settings()) for row in _each(columns)]
        assert [row.id for row in read] == [row["id"] for row in stated[:count]]


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="it reads its own memory as a file")
def test_lines_before_a_fault_of_the_disk(tmp_path: Path) -> None:
    """A page of memory that is there no more reads as a disk with a fault does."""
    file, page = tmp_path / "rows.jsonl", mmap.PAGESIZE
    lines = [json.dumps({"id": f"{n}", "language": "sparql", "query": "ASK { ?s ?p ?o }"}) for n in range(page // 20)]
    file.write_text("".join(line + "\n" for line in lines)[: 2 * page])
    with file.open("r+b") as stream, mmap.mmap(stream.fileno(), 2 * page) as memory:
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        whole = memory[:page].count(b"\n")
        os.truncate(file, page)
        pieces = [FilePiece(str(file), "/proc/self/mem", address, address + 2 * page, 1, len(lines))]
        pieces.append(replace(pieces[0], begin=address + page, record=whole + 1))
        refusals: list[Refusal] = []
        *items, refusal = items_of(pieces, Settings(), refusals)
        gc.collect()  # the address
    assert [row.id for columns in items for row in _each(columns)] == [f"{n}" for n in range(whole)]
    assert [refusal] == refusals
    assert "it cannot be read: Input/output error" in refusals[0].reason


def _each(columns: Any) -> list[Any]:
    return list(columns) if hasattr(columns, "ids") else [columns]
