"""A saved engine whose files are not what was saved is refused, and the refusal names the file.

Else all answers are right.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from amounts import usually
from engine.samples import EX, Stub, item
from engine.store.all_sorts import answers, build, data_files
from triplewire import Engine, Taxonomy
from triplewire.engine.store.directory import load_learned
from triplewire.errors import StoreError

pytestmark = pytest.mark.xdist_group("damage")  # one worker makes what all share
OPERATORS = {"holds": Stub("holds", 1, {"p": True})}
PARTS = ["index", "learned", "manifest", "subscriptions", "taxonomy"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two saved engines that have all parts, and none alike."""
    folder = tmp_path_factory.mktemp("saved")
    for name, count in (("one", 3), ("other", 4)):
        engine = Engine(operators=OPERATORS, taxonomy=Taxonomy.build([(EX + name, EX + "A")]))
        for number in range(count):
            engine.subscribe(f"holds({number})", "predicates", id=f"{name} {number}")
        engine.settle()
        assert list(engine.match(item("p", "x")))
        engine.save(folder / name)
        assert [file.name.split(".")[0] for file in data_files(folder / name)] == PARTS
    return folder / "one", folder / "other"


def flipped(at: float) -> Callable[[bytes, bytes], bytes]:
    """One bit changed, so far along the file."""

    def change(content: bytes, other: bytes) -> bytes:
        place = min(int(at * len(content)), len(content) - 1)
        return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]

    return change


CHANGES: dict[str, Callable[[bytes, bytes], bytes]] = {
    "the first byte": flipped(0),
    "a byte amid": flipped(0.5),
    "the last byte but one": lambda content, other: flipped(1)(content[:-1], other) + content[-1:],
    "cut": lambda content, other: content[:-3],
    "longer": lambda content, other: content + b" {}",
    "empty": lambda content, other: b"",
    "that of another save": lambda content, other: other,
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_is_not_what_was_saved(folders: tuple[Path, Path], part: str, change: str, tmp_path: Path) -> None:
    one, other = (next(folder.glob(f"{part}.*")) for folder in folders)
    shutil.copytree(folders[0], tmp_path, dirs_exist_ok=True)
    (tmp_path / one.name).write_bytes(CHANGES[change](one.read_bytes(), other.read_bytes()))
    with pytest.raises(StoreError) as caught:
        Engine.load(tmp_path, operators=OPERATORS)
    named = str(tmp_path / one.name) if (part, change) != ("manifest", "that of another save") else "is missing"
    assert named in str(caught.value)
    assert caught.value.remedy
    if part == "learned":
        with pytest.raises(StoreError, match="its content is not what was saved"):
            load_learned(tmp_path)


@pytest.mark.parametrize("part", PARTS)
def test_a_file_that_is_missing(folders: tuple[Path, Path], part: str, tmp_path: Path) -> None:
    """Also where there is another one of its part, which another save has written."""
    one, other = (next(folder.glob(f"{part}.*")) for folder in folders)
    shutil.copytree(folders[0], tmp_path, dirs_exist_ok=True)
    (tmp_path / one.name).unlink()
    if part != "manifest":
        shutil.copy(other, tmp_path)
    with pytest.raises(StoreError, match=one.name):
        Engine.load(tmp_path, operators=OPERATORS)


def test_random_bits(folders: tuple[Path, Path], tmp_path: Path) -> None:
    """In each file as many as it has its share of. White space of the manifest may change."""
    folder, chance = tmp_path / "copy", random.Random(1)
    shutil.copytree(folders[0], folder)
    files = data_files(folder)
    for file in chance.choices(files, [file.stat().st_size for file in files], k=usually(100, 5_000)):
        content = bytearray(file.read_bytes())
        bit = chance.randrange(8 * len(content))
        content[bit >> 3] ^= 1 << (bit & 7)
        file.write_bytes(content)
        with pytest.raises(StoreError):
            Engine.load(folder, operators=OPERATORS)
        content[bit >> 3] ^= 1 << (bit & 7)
        file.write_bytes(content)


def test_an_engine_of_all_sorts_answers_as_before(tmp_path: Path) -> None:
    engine = build(15)
    engine.save(tmp_path)
    found = answers(Engine.load(tmp_path))
    assert len(found) > 100
    assert found == answers(engine)
