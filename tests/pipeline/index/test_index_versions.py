"""The versions of an index: published in one step, pinned, checked before they are trusted, and removed when unused."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.index.stages import CASES, filter_of
from triplewire.cli import run as command
from triplewire.errors import Refusal, StoreError, TriplewireError
from triplewire.ir.taxonomy import Taxonomy
from triplewire.pipeline.index import build as full_versions
from triplewire.pipeline.index import changes, open_version, versions
from triplewire.pipeline.index import pins as using
from triplewire.pipeline.index.build import IndexOptions, Spread, build, saved_once
from triplewire.pipeline.index.pins import IndexSource, Pins

FILES = [CASES / "subscriptions.jsonl"]
DAMAGES = tomllib.loads((CASES / "damage.toml").read_text())["damage"]


def texts(folder: Path, **queries: str) -> list[Path]:
    out = []
    for name, query in queries.items():
        file = folder / f"{name}.rq"
        file.write_text(query)
        out.append(file)
    return out


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("index") / "index"
    build(folder, FILES, None, Spread("containment", 2))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage["name"])
def test_what_is_damaged_is_refused(damage: dict[str, object], intact: Path, tmp_path: Path) -> None:
    index = tmp_path / "index"
    shutil.copytree(intact, index)
    (path,) = index.glob(str(damage["file"]))
    if "remove" in damage:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    else:
        data = path.read_bytes()
        half = len(data) // 2
        this, that = damage.get("edit", ("", ""))  # type: ignore[misc]  # of the case file
        edited = data.decode("utf-8", "surrogateescape").replace(this, that) if this else ""
        assert not this or edited.encode("utf-8", "surrogateescape") != data
        swapped = data[:half] + bytes(255 - byte for byte in data[half : half + 8]) + data[half + 8 :]
        text = str(damage.get("text", edited)).encode("utf-8", "surrogateescape")
        path.write_bytes(data[:half] if "cut" in damage else swapped if "swap" in damage else text)
    with pytest.raises(StoreError, match=str(damage["says"]).replace(".", r"\.")) as caught:
        open_version.usable(index, versions.current(index))
    assert str(index) in caught.value.source, "where"
    assert caught.value.remedy, "what to do"


@pytest.mark.slow
def test_a_micro_batch_keeps_its_version(tmp_path: Path) -> None:
    index, output = tmp_path / "index", tmp_path / "out"
    output.mkdir()
    build(index, FILES)
    notes: list[str] = []
    source, pins = IndexSource(index, output, on_note=notes.append), Pins(output / "pins.sqlite")
    assert source.pinned(pins, 0).version == "v1"
    changes.unsubscribe(index, ["thing"], on_refusal=lambda refusal: None)
    assert source.pinned(pins, 1).version == "v2", "the newest, without a restart"
    assert source.pinned(pins, 0).version == "v1", "repeated: what it had"
    # a stream that was killed and is started again
    again = IndexSource(index, output, on_note=notes.append)
    again.check()
    assert versions.pinned(index) == {"v1"}, "what was repeated last may not be committed: it must stay"
    assert again.pinned(Pins(output / "pins.sqlite"), 1).version == "v2"
    assert again.pinned(pins, 2).version == "v2"
    # a new version that is damaged does not stop the stream, and is told of once
    damaged = build(index, FILES)
    shutil.rmtree(index / damaged.content.parts["server"])
    assert [again.pinned(pins, batch).version for batch in (3, 4)] == ["v2", "v2"]
    assert len(notes) == 1
    assert "v3/server is missing" in notes[0]
    assert "matching goes on with v2" in notes[0]
    shutil.copytree(index / "v1" / "server", index / damaged.content.parts["server"])  # restored, as the note says
    assert again.pinned(pins, 5).version == "v3"
    assert len(notes) == 1
    # another index under the same name is not what the micro-batch had
    shutil.rmtree(index)
    build(index, texts(tmp_path, other="ASK { ?s <urn:q> ?o }"))
    with pytest.raises(StoreError, match="is not the one that micro-batch 0 had"):
        IndexSource(index, output).pinned(pins, 0)
    with pytest.raises(StoreError, match="the version v2, which micro-batch 1 had before it was interrupted, is gone"):
        IndexSource(index, output).pinned(pins, 1)


@pytest.mark.slow
@pytest.mark.parametrize("step", ["current", "pin"])
def test_a_version_that_is_removed_before_it_is_pinned(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process may be suspended for as long as many versions take."""
    index, output = tmp_path / "index", tmp_path / "out"
    output.mkdir()
    build(index, FILES)
    changes.unsubscribe(index, ["thing"], on_refusal=lambda refusal: None)  # v2: the first version always stays
    source, pins, taken = IndexSource(index, output), Pins(output / "pins.sqlite"), getattr(using, step)

    def late(*given: object) -> object:
        monkeypatch.setattr(using, step, taken)
        before = taken(*given) if step == "current" else None
        for number in range(versions.RETAINED + 1):
            more = texts(tmp_path, **{f"more{number}": "ASK { ?s <urn:q> ?o }"})
            changes.subscribe(index, more, on_refusal=lambda refusal: None)
        return before or taken(*given)

    if step == "pin":
        source.check()
    monkeypatch.setattr(using, step, late)
    chosen = source.pinned(pins, 0).version
    assert not (index / "v2").exists()
    assert (chosen, versions.pinned(index)) == (versions.current(index), {chosen})
    assert source.pinned(pins, 0).version == chosen


@pytest.mark.slow
def test_an_index_that_is_away_pins_no_micro_batch(tmp_path: Path) -> None:
    """It is made anew when a file arrives: the run ends, and the next start has the new one."""
    index, output = tmp_path / "index", tmp_path / "out"
    output.mkdir()
    build(index, FILES)
    notes: list[str] = []
    source, pins = IndexSource(index, output, on_note=notes.append), Pins(output / "pins.sqlite")
    assert source.pinned(pins, 0).version == "v1"
    shutil.rmtree(index)
    with pytest.raises(StoreError, match="there is no such directory"):
        source.pinned(pins, 1)
    assert (pins.of(1), notes) == (None, [])
    build(index, texts(tmp_path, two="ASK { ?s <urn:q> ?o }"))
    assert [entry.id for entry in source.pinned(pins, 1).opened().server().subscriptions] == ["two"]


@pytest.mark.slow
def test_a_version_that_cannot_be_pinned_is_told_of_once(tmp_path: Path) -> None:
    index, output = tmp_path / "index", tmp_path / "out"
    output.mkdir()
    build(index, FILES)
    (index / "pins").write_text("where the folder should be")
    notes: list[str] = []
    source = IndexSource(index, output, on_note=notes.append)
    assert source.newest().version == "v1"
    build(index, FILES)
    assert source.newest().version == "v2"
    assert len(notes) == 1
    assert notes[0].startswith(f"{index} cannot be written (File exists): others may remove a version")


@pytest.mark.slow
@pytest.mark.parametrize("full", [(), (1,), (0, 1, 2, 3, 4)], ids=str)
@pytest.mark.parametrize("spread", [Spread(), Spread("containment", 2)], ids=lambda spread: spread.name)
def test_a_full_version_tells_what_it_undoes(
    spread: Spread, full: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was added, removed or given another text since, perhaps while it was compiled, where the files say
    otherwise; also where it was taken into the parts meanwhile, as many changes are (`full`: by which)."""
    index = tmp_path / "index"
    names = {name: f"ASK {{ ?s <urn:{name}> ?o }}" for name in ("one", "two", "text", "again", "same")}
    files = texts(tmp_path, **names)
    build(index, files, None, spread)
    more = texts(tmp_path, guest="ASK { ?s <urn:r> ?o }", three="ASK { ?s <urn:t> ?o }", gone="ASK { ?s <urn:g> ?o }")
    (tmp_path / "new").mkdir()
    other = texts(tmp_path / "new", text="ASK { ?s <urn:other> ?o }", same=names["same"])
    said: list[Refusal] = []
    steps: list[Callable[[], object]] = [
        lambda: changes.subscribe(index, more, on_refusal=said.append),
        lambda: changes.unsubscribe(index, ["two", "text", "same", "again"], on_refusal=said.append),
        lambda: changes.subscribe(index, other, on_refusal=said.append),
        lambda: changes.unsubscribe(index, ["gone"], on_refusal=said.append),
        lambda: changes.subscribe(index, files[3:4], on_refusal=said.append),
    ]
    for number, step in enumerate(steps):
        monkeypatch.setattr(changes, "CHANGES", 0 if number in full else 512)
        step()
    assert not said
    assert versions.load(index).content.subscriptions == 6
    warnings: list[tuple[str, str]] = []
    build(index, [*files, more[1]], on_warning=lambda *warning: warnings.append(warning))
    assert sorted(warnings) == [
        ("guest", "it was added to v6: it is not in v7, as in the files"),
        ("text", "it has another text in v6: in v7 it has that of the files"),
        ("two", "it was removed from v6: it is in v7, as in the files"),
    ]
    build(index, files, on_warning=lambda *warning: warnings.append(warning))
    assert len(warnings) == 3, "what the files have changed is as it should be"


@pytest.mark.slow
def test_two_full_versions_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The one that began first ends last: what it read may be older than what it takes the place of."""
    index, notes = tmp_path / "index", list[str]()
    older, newer = texts(tmp_path, one="ASK { ?s <urn:p> ?o }", two="ASK { ?s <urn:q> ?o }")
    wrong = texts(tmp_path, wrong="ASK {")

    def meanwhile(refusal: Refusal) -> None:
        build(index, [newer], on_note=notes.append)
        changes.unsubscribe(index, ["two"], on_refusal=notes.append)

    for made in ("v1", "v4"):  # where there is no index before, and where there is
        build(index, [older, *wrong], on_refusal=meanwhile, on_note=notes.append)
        after = f"v{int(made[1:]) + 2}"
        said = f"{made} was built while {after} was compiled, perhaps from newer files, and {after} takes its place"
        assert notes.pop() == said
    build(index, [older], on_note=notes.append)
    changes.unsubscribe(index, ["one"], on_refusal=notes.append)
    build(index, [older], on_note=notes.append)
    assert notes == [], "one after the other"
    names = iter(["v7", "v8"])
    monkeypatch.setattr(full_versions, "newest_built", lambda directory: next(names))
    assert command(["pipeline", "index", "--subscriptions", str(older), "--output", str(index)]) == 0
    assert f"warning {index}: v8 was built while v10 was compiled" in capsys.readouterr().err


@pytest.mark.slow
def test_an_index_that_is_made_anew_under_a_stream(tmp_path: Path) -> None:
    """Its versions have the names of those before, and its files theirs."""
    index, output = tmp_path / "index", tmp_path / "out"
    output.mkdir()
    build(index, texts(tmp_path, one="ASK { ?s <urn:p> ?o }"))
    source = IndexSource(index, output)
    before = source.newest()
    assert [entry.id for entry in before.opened().server().subscriptions] == ["one"]
    shutil.rmtree(index)
    build(index, texts(tmp_path, two="ASK { ?s <urn:q> ?o }"))
    with pytest.raises(StoreError, match="v1 is another one than when the micro-batch began"):
        before.opened()
    after = source.newest()
    assert after.version == before.version == "v1"
    assert [entry.id for entry in after.opened().server().subscriptions] == ["two"]
    assert versions.pinned(index) == {"v1"}


@pytest.mark.slow
def test_versions_that_nobody_needs_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that a run has pinned, and what newer ones are made of, stay."""
    monkeypatch.setattr(versions, "RETAINED", 2)
    monkeypatch.setattr(versions.sweep, "__defaults__", (2,))
    index, output = tmp_path / "index", tmp_path / "out"
    output.mkdir()
    build(index, FILES, IndexOptions(), Spread("containment", 2))
    pinned = IndexSource(index, output).newest()
    assert pinned.version == "v1"
    for number in range(4):
        changes.subscribe(index, texts(tmp_path, **{f"new{number}": "ASK { ?s <urn:q> ?o }"}), on_refusal=print)
    there = sorted(path.name for path in index.glob("v*"))
    assert there == ["v1", "v4", "v5"], "v1 is pinned, and v5 is made of it"
    build(index, FILES)
    build(index, FILES)
    assert sorted(path.name for path in index.glob("v*")) == ["v1", "v6", "v7"]
    output.rmdir()
    build(index, FILES)
    assert sorted(path.name for path in index.glob("v*")) == ["v7", "v8"], "the run is gone"


@pytest.mark.slow
def test_two_writers(tmp_path: Path) -> None:
    """Neither loses what the other wrote."""
    index = tmp_path / "index"
    build(index, FILES)
    said: list[object] = []

    def write(name: str) -> None:
        for number in range(4):
            files = texts(tmp_path, **{f"{name}{number}": "ASK { ?s <urn:q> ?o }"})
            changes.subscribe(index, files, on_refusal=said.append)

    writers = [threading.Thread(target=write, args=(name,)) for name in ("a", "b")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    version = versions.load(index)
    assert not said
    assert (version.name, version.content.subscriptions) == ("v9", 18)
    server = filter_of(version).opened().server()
    assert all(f"{name}{number}" in server for name in "ab" for number in range(4))


@pytest.mark.slow
def test_a_write_that_is_killed_changes_nothing(tmp_path: Path) -> None:
    """Killed when all is written and nothing published: the next one goes on as if it had not been."""
    index = tmp_path / "index"
    build(index, FILES)
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from triplewire.pipeline.index import changes\n"
        "rename = os.rename\n"
        "def end(old, new):\n"
        "    if Path(new).name == 'v2':\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    rename(old, new)\n"
        "os.rename = end\n"
        "changes.unsubscribe(Path(sys.argv[1]), ['thing'], on_refusal=print)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(index)], timeout=300, check=False)
    assert done.returncode == -9
    assert list(index.glob(".v2.*")), "what it left"
    assert versions.load(index).name == "v1"
    change = changes.unsubscribe(index, ["thing"], on_refusal=print)
    assert (change.version.name, change.changed) == ("v2", 1)
    assert not list(index.glob(".v2.*"))


@pytest.mark.slow
def test_an_index_of_one_s_own_is_made_once(tmp_path: Path) -> None:
    engine = IndexOptions().engine()
    engine.load_subscriptions(FILES)
    assert [saved_once(tmp_path / "index", engine).name for _ in range(2)] == ["v1", "v1"]
    engine.unsubscribe("thing")
    assert saved_once(tmp_path / "index", engine).name == "v2"
    for file in tmp_path.glob("index/v2/server/subscriptions.*"):
        file.write_bytes(b"damaged")
    assert saved_once(tmp_path / "index", engine).name == "v3"
    assert sorted(json.loads((tmp_path / "index/v2/manifest.json").read_text())["parts"]) == ["server"]


def test_how_much_is_merged_outlasts_another_taxonomy(tmp_path: Path) -> None:
    queries = {f"wide{n}": f"SELECT ?s {{ ?s <urn:p{n}> ?o }}" for n in range(4)}
    queries |= {f"narrow{n}": f"SELECT ?s {{ ?s <urn:p{n}> 1 }}" for n in range(4)}
    files, index = texts(tmp_path, **queries), tmp_path / "index"
    for percent, merged in ((0, 0), (25, 2), (50, 4)):
        made = build(index, files, None, Spread("merging", 2, percent=percent))
        changed = full_versions.change_taxonomy(index, Taxonomy.build([("urn:a", "urn:b")]))
        assert made.content.percent == changed.content.percent == percent
        assert len(made.plan.routes) == len(changed.plan.routes) == merged
    with pytest.raises(TriplewireError, match="cannot leave the server"):
        build(tmp_path / "none", files, None, Spread("merging", 2, percent=100))


def test_another_directory_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear ...")
    with pytest.raises(StoreError, match=r"it holds something else \(letter\.txt\)"):
        build(tmp_path, FILES)
    with pytest.raises(StoreError, match="there is no such directory"):
        changes.subscribe(tmp_path / "none", FILES, on_refusal=print)
    assert not (tmp_path / "none").exists()
