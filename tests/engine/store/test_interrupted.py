"""A save that is killed leaves the engine before or the engine after; two that come together leave one, whole."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from amounts import usually
from engine.store import interrupted
from engine.store.all_sorts import data_files
from triplewire import Engine, folders
from triplewire.errors import StoreError

TESTS = str(Path(__file__).parents[2])
KILLS, STEP = usually(8, 200), usually(3, 1)  # at random moments; of the calls that change the disk

SAVES = """
import sys
from triplewire import Engine
engine = Engine(matcher="everything")
for number in range(int(sys.argv[2])):
    engine.subscribe(f"ASK {{ ?s ?p {number} }}")
print("ready", flush=True)
sys.stdin.readline()
for _ in range(15):
    engine.save(sys.argv[1])
"""


def started(*arguments: str) -> subprocess.Popen[str]:
    """A process of Python that finds the tests."""
    paths = os.pathsep.join([TESTS, *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.Popen(
        [sys.executable, *arguments],
        env=os.environ | {"PYTHONPATH": paths},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("kind", ["first", "again"])
def test_killed_at_any_moment(tmp_path: Path, kind: str) -> None:
    process = started(interrupted.__file__, str(tmp_path / "saved"), kind, str(KILLS), "1", str(STEP))
    out, err = process.communicate()
    assert process.returncode == 0, err
    seen = json.loads(out)
    assert seen["before"] > 5
    assert seen["after"] > 1


def test_processes_save_to_one_directory(tmp_path: Path) -> None:
    """What is read meanwhile is one state or another; what is left in the end is one of them, and nothing else."""
    folder, counts = tmp_path / "saved", (20, 21, 22)
    processes = [started("-c", SAVES, str(folder), str(count)) for count in counts]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    seen = set()
    while any(process.poll() is None for process in processes):
        if (folder / "manifest.json").exists():
            seen.add(len(Engine.load(folder, matcher="reference").subscriptions))
    for process in processes:
        _, err = process.communicate()
        assert process.returncode == 0, err
    assert seen <= set(counts)
    assert len(Engine.load(folder, matcher="reference").subscriptions) in counts
    names = sorted(file.name.split(".")[0] for file in folder.iterdir() if file.name != ".lock")
    assert names == ["index", "manifest", "subscriptions", "taxonomy"]


def test_a_save_waits_and_is_refused_in_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(matcher="reference")
    engine.save(tmp_path)
    monkeypatch.setattr(folders, "WAIT_SECONDS", 0.1)
    refused = pytest.raises(StoreError, match="another process has been writing to it")
    with folders.locked(tmp_path / folders.LOCK), refused:
        engine.save(tmp_path)
    engine.save(tmp_path)


def test_what_an_interrupted_save_left_is_replaced(tmp_path: Path) -> None:
    left = [".lock", ".index.12.part", "subscriptions.0123456789abcdef.jsonl", ".manifest.json.12.part"]
    for name in left:
        (tmp_path / name).write_text("1\n")
    with pytest.raises(StoreError, match="no saved engine"):
        Engine.load(tmp_path)
    Engine(matcher="reference").save(tmp_path)
    assert not any((tmp_path / name).exists() for name in left[1:])
    assert Engine.load(tmp_path).subscriptions == ()


@pytest.mark.parametrize("before", ["nothing", "an engine", "a damaged engine"])
@pytest.mark.parametrize("step", ["subscriptions", "taxonomy", "manifest.json"])
def test_a_save_that_fails_leaves_the_data_files_that_were_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, step: str
) -> None:
    """And of what an interrupted one has left, it removes first what the manifest does not name. The class hierarchy is
    the same before and after."""
    engine = Engine(matcher="reference")
    if before != "nothing":
        engine.save(tmp_path)
    there = {file.name for file in tmp_path.iterdir()}
    left = {"index.0123456789abcdef.bin", "subscriptions.0123456789abcdef.jsonl"}
    for name in left:
        (tmp_path / name).write_text("left\n")
    if before == "a damaged engine":
        (tmp_path / "manifest.json").write_text("{")
        there |= left  # as a restored manifest may name them
    fail_at(step, monkeypatch, OSError(errno.ENOSPC, "No space left on device"))
    engine.subscribe("ASK { ?s ?p ?o }", id="new")
    for _ in range(2):
        with pytest.raises(StoreError, match="No space left"):
            engine.save(tmp_path)
        assert {file.name for file in tmp_path.iterdir()} == there | {".lock"}
    if before == "an engine":
        assert Engine.load(tmp_path).subscriptions == ()
    monkeypatch.undo()
    engine.save(tmp_path)
    assert len(Engine.load(tmp_path).subscriptions) == 1
    assert len(data_files(tmp_path)) == 3


def fail_at(step: str, monkeypatch: pytest.MonkeyPatch, error: BaseException, *, late: bool = False) -> None:
    """Have a save fail where a file of this name gets its place, or as soon as it has it."""
    replace = os.replace

    def failing(source: Path, target: Path) -> None:
        fails = target.name.startswith(step)
        if late or not fails:
            replace(source, target)
        if fails:
            raise error

    monkeypatch.setattr("os.replace", failing)


def test_an_interrupt_when_the_new_manifest_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(matcher="reference")
    engine.save(tmp_path)
    engine.subscribe("ASK { ?s ?p ?o }", id="new")
    fail_at("manifest.json", monkeypatch, KeyboardInterrupt(), late=True)
    with pytest.raises(KeyboardInterrupt):
        engine.save(tmp_path)
    assert len(Engine.load(tmp_path).subscriptions) == 1


OF_OTHERS = {
    "index.html": "dear",
    "subscriptions.txt": "dear",
    ".part": "dear",
    "taxonomy.0123456789abcdef.txt": "dear",
    "manifest.json": '{\n  // of an extension\n  "name": "dear"\n}\n',
    "manifest.json without a content": "",
    "manifest.json as it might be": '{"name": "dear"}',
}


@pytest.mark.parametrize(("other", "text"), OF_OTHERS.items(), ids=OF_OTHERS)
def test_a_file_of_somebody_else_is_not_touched(tmp_path: Path, other: str, text: str) -> None:
    (tmp_path / ".index.12.part").write_text("")
    other = other.split()[0]
    (tmp_path / other).write_text(text)
    with pytest.raises(StoreError, match=r"no saved engine|no save has written|not the manifest"):
        Engine(matcher="reference").save(tmp_path)
    assert (tmp_path / other).read_text() == text
    assert {file.name for file in tmp_path.iterdir()} == {".index.12.part", other}


@pytest.mark.parametrize("kind", ["folder", "pipe", "link"])
@pytest.mark.parametrize("part", [".lock", "subscriptions", "taxonomy"])
def test_what_is_no_file_is_named(tmp_path: Path, part: str, kind: str) -> None:
    """Where a save writes a file, beside a saved engine. A link is replaced, and not followed, but that of a lock."""
    folder, elsewhere = tmp_path / "saved", tmp_path / "elsewhere"
    engine = Engine(matcher="reference")
    engine.save(folder)
    elsewhere.write_text("dear")
    (place,) = (entry for entry in folder.iterdir() if entry.name.startswith(part))
    place.unlink()
    if kind == "folder":
        place.mkdir()
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to(elsewhere)
    if kind == "link" and part != ".lock":
        engine.save(folder)
        assert Engine.load(folder).subscriptions == ()
    else:
        with pytest.raises(StoreError, match=f"it holds {re.escape(place.name)}, which no save has written"):
            engine.save(folder)
    assert elsewhere.read_text() == "dear"


def test_a_name_that_no_folder_can_have(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no directory can have this name"):
        Engine(matcher="reference").save(f"{tmp_path}/\ud800")


def test_a_damaged_engine_can_be_saved_anew(tmp_path: Path) -> None:
    engine = Engine(matcher="reference")
    engine.save(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    engine.save(tmp_path)
    assert Engine.load(tmp_path).subscriptions == ()
