"""No damage reaches a kernel: opening is refused, or all answers are right. What tries it: `damage`.

By default a part of the cases is tried. `TRIPLEWIRE_DAMAGE=all` in the environment tries all of them, and an engine of
more than 8 MiB as well, which takes some minutes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from engine.store import damage
from triplewire.engine.store.directory import SMALL

ALL = os.environ.get("TRIPLEWIRE_DAMAGE") == "all"
OF_TEXT = ("text", "specs", "lexical", "datatype", "meta")  # arrays of bytes, in which any byte is allowed
OFFSETS = (".offset", ".spec_offset", ".lexical_offset", ".datatype_offset")  # of these, which may begin in a character


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved engine, of which each test tries a copy."""
    folder = tmp_path_factory.mktemp("saved")
    damage.build(40 if ALL else 15).save(folder)  # either has all arrays; with fewer subscriptions, a case is cheaper
    return folder


def outcomes(kind: str, saved: Path, folder: Path, count: int) -> dict[str, list[object]]:
    """How the cases of a kind end, with a copy in a new folder."""
    shutil.copytree(saved, folder)
    command = [sys.executable, damage.__file__, kind, str(folder), str(count), "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, list[object]] = json.loads(done.stdout)
    return found


def test_each_digit_of_the_manifest(saved: Path, tmp_path: Path) -> None:
    """0 stands for all cases: a digit in another's place."""
    found = outcomes("digits", saved, tmp_path / "copy", 0 if ALL else 400)
    assert found.keys() == {"refused"}


def test_random_bits_of_all_files(saved: Path, tmp_path: Path) -> None:
    found = outcomes("flips", saved, tmp_path / "copy", 10_000 if ALL else 100)
    assert found.keys() == {"refused"}


def test_numbers_of_arrays_that_no_hash_tells(saved: Path, tmp_path: Path) -> None:
    """Whatever the arrays say, no kernel leaves them, and no look-up is endless."""
    found = outcomes("arrays", saved, tmp_path / "copy", 60 if ALL else 1)
    raw = {outcome: cases for outcome, cases in found.items() if outcome.startswith("raw")}
    assert all(case[0].endswith(OF_TEXT + OFFSETS) for _, *cases in raw.values() for case in cases), raw
    assert found.keys() - raw.keys() <= {"refused", "right", "ended"}
    assert found["refused"][0] > 50


def test_bits_of_an_index_whose_crc_is_asked_for(saved: Path, tmp_path: Path) -> None:
    """The check of large files, which the program asks for here whatever their size."""
    large = tmp_path / "large"
    if ALL:
        damage.build(3_000).save(large)
        (index,) = large.glob("index.*")
        assert index.stat().st_size > SMALL
    assert outcomes("spread", large if ALL else saved, tmp_path / "copy", 1_416 if ALL else 120).keys() == {"refused"}
