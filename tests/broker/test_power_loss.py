"""What was accepted is there after a loss of power: what was synced of the files of SQLite, and any part of the rest.

A broker runs under strace, which records what it writes to each file and when it syncs. From that the files are made as
a disk may have them where the power was lost at a moment, and opened again.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from amounts import usually
from broker.items import opened
from triplewire.store.sqlite_library import sqlite3
from waiting import until

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")

TESTS = Path(__file__).parent.parent
PUBLISHER = """
import sys
from broker.items import item, opened
from triplewire.broker.broker import Wanted
folder = sys.argv[1]
with opened(f"sqlite:///{folder}/broker.db") as broker, open(f"{folder}/told", "ab", buffering=0) as told:
    broker.subscribe(Wanted("SELECT ?t { ?i rss:title ?t }"), "ann")
    for number in range(20):
        broker.publish([item(number, "red")])
        told.write(f"urn:item:{number}\\n".encode())
"""
CALL = re.compile(r'(\w+)\(\d+<([^>]*)>(?:, "([^"]*)")?(?:\.\.\.)?(?:, (\d+))?(?:, (\d+))?\) += (-?\d+)')
UNLINKED = re.compile(r'unlink\("([^"]*)"\) += 0')
STARTED, RESUMED = re.compile(r"(\d+) +(.*) <unfinished \.\.\.>"), re.compile(r"(\d+) +<\.\.\. \w+ resumed>(.*)")


class Step(NamedTuple):
    """A write of `data` at an offset (-1: at the end), a cut to a length (its offset), a sync, or the end of a file."""

    file: str
    kind: str
    offset: int = 0
    data: bytes = b""


def steps(log: Path, folder: Path) -> Iterator[Step]:
    """What a process did to the files of a folder."""
    begun: dict[str, str] = {}
    for line in log.read_text().splitlines():
        if started := STARTED.match(line):
            begun[started[1]] = started[2]
            continue
        if resumed := RESUMED.match(line):
            line = f"{resumed[1]} {begun.pop(resumed[1])}{resumed[2]}"
        if unlinked := UNLINKED.search(line):
            yield Step(Path(_bytes(unlinked[1]).decode()).name, "end")
        call = CALL.search(line)
        if call is None or int(call[6]) < 0:
            continue
        file = Path(_bytes(call[2]).decode())
        if file.parent != folder:
            continue
        if call[1] in ("fsync", "fdatasync"):
            yield Step(file.name, "sync")
        elif call[1] == "ftruncate":
            yield Step(file.name, "cut", int(re.findall(r", (\d+)\)", line)[0]))
        else:
            yield Step(file.name, "write", int(call[5]) if call[5] else -1, _bytes(call[3]))


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


def applied(before: bytes, done: Sequence[Step]) -> bytes:
    """A file after these steps."""
    content = bytearray(before)
    for step in done:
        if step.kind == "cut":
            content = content[: step.offset].ljust(step.offset, b"\0")
        else:
            begin = len(content) if step.offset < 0 else step.offset
            content = content.ljust(begin, b"\0")
            content[begin : begin + len(step.data)] = step.data
    return bytes(content)


def lost(done: Sequence[Step], chance: random.Random, share: float, lying: str = "") -> dict[str, bytes]:
    """The files where the power was lost after these steps: what was synced, and of the rest a share of the steps, some
    of them torn. `lying`: a file whose syncs do nothing."""
    synced, waiting = dict[str, bytes](), dict[str, list[Step]]()
    for step in done:
        if step.kind == "end":  # names are journaled by the file system, in their order
            synced.pop(step.file, None)
            waiting.pop(step.file, None)
        elif step.kind != "sync":
            waiting.setdefault(step.file, []).append(step)
        elif step.file != lying:
            synced[step.file] = applied(synced.get(step.file, b""), waiting.pop(step.file, []))
    files = dict(synced)
    for name, rest in waiting.items():
        left = [_torn(step, chance) for step in rest if chance.random() < share]
        if left or name in files:
            files[name] = applied(files.get(name, b""), left)
    return files


def _torn(step: Step, chance: random.Random) -> Step:
    cut = chance.randrange(0, len(step.data) + 1, 512) if chance.random() < 0.2 else len(step.data)
    return step._replace(data=step.data[:cut])


def wrong(done: Sequence[Step], files: dict[str, bytes], folder: Path) -> str:
    """What is wrong with files after a loss of power: damage, what was told and is not there, a match without event."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    told = b"".join(step.data for step in done if step.file == "told").decode().split()
    try:
        connection = sqlite3.connect(folder / "broker.db")
        (state,) = connection.execute("PRAGMA integrity_check").fetchone()
        there = {id for (id,) in connection.execute("SELECT id FROM publications")}
        counts = connection.execute(
            "SELECT count(events.number) FROM publications LEFT JOIN events ON events.publication = publications.number"
            " WHERE state = 'matched' GROUP BY publications.number"
        ).fetchall()
        connection.close()
    except sqlite3.DatabaseError as error:
        return str(error)
    if state != "ok":
        return str(state)
    return f"lost: {sorted(set(told) - there)}" * (not there.issuperset(told)) + "untold" * (set(counts) > {(1,)})


@pytest.mark.slow
def test_power_is_lost_at_any_moment(tmp_path: Path) -> None:
    folder, log, after = tmp_path / "data", tmp_path / "log", tmp_path / "after"
    folder.mkdir()
    trace = ["strace", "-f", "-qq", "-y", "-xx", "-s", "1000000", "--seccomp-bpf", "-o", str(log)]
    trace += ["-e", "trace=write,pwrite64,ftruncate,fsync,fdatasync,unlink"]
    environment = {**os.environ, "PYTHONPATH": str(TESTS), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [*trace, sys.executable, "-c", PUBLISHER, str(folder)]
    environment["TRIPLEWIRE_TIER"] = "interpreted"
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    if "ptrace" in ended.stderr:
        pytest.skip("no process may be traced here")
    assert ended.returncode == 0, ended.stderr
    done = list(steps(log, folder))
    whole = {name: applied(b"", [step for step in done if step.file == name and step.kind != "sync"])
             for name in ("broker.db", "told")}  # fmt: skip
    assert whole == {name: (folder / name).read_bytes() for name in whole}, "the record is whole"
    first = next(place for place, step in enumerate(done) if step.file == "told")
    chance = random.Random(24)
    moments = [chance.randrange(first + 1, len(done)) for _ in range(usually(60, 1_000))]
    for moment in moments:
        share = chance.choice((0.0, 0.5, 1.0))
        assert not wrong(done[:moment], lost(done[:moment], chance, share), after), (moment, share)
    for lying in ("broker.db", "broker.db-journal", "broker.db-wal"):  # else the test would be blind
        if any((step.file, step.kind) == (lying, "write") for step in done[first:]):
            found = (wrong(done[:moment], lost(done[:moment], chance, 0.5, lying), after) for moment in moments)
            assert any(found), lying
    assert not wrong(done[: moments[0]], lost(done[: moments[0]], chance, 0.0), after)
    with opened(f"sqlite:///{after}/broker.db") as broker:  # and it goes on: what was accepted is told, once
        numbers = sqlite3.connect(after / "broker.db").execute("SELECT count(*) FROM publications").fetchone()
        until(lambda: len(broker.events("ann", 0)) == numbers[0])
        assert len({event.publication for event in broker.events("ann", 0)}) == numbers[0]
