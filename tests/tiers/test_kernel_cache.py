"""Machine code belongs to one state of all kernel sources, and lies in the first folder that will do."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from triplewire import kernel_cache

HELPER = """from typing import Any
from triplewire.kernels.shared.compiled import helper

@helper
def add(value: Any) -> Any:
    return value + {more}
"""
CALLER = """from typing import Any
from triplewire.kernels.shared.compiled import kernel
from triplewire.select.trie.kernels.added import add

@kernel
def twice(value: Any) -> Any:
    return 2 * add(value)
"""
RUN = """import sys
from triplewire.kernels.twice import twice
print(twice(1), dict(twice.stats.cache_hits) != {}, "numba.np.polynomial" in sys.modules)
"""


def test_an_edit_of_a_shared_helper_compiles_its_callers_again(tmp_path: Path) -> None:
    package = tmp_path / "src" / "triplewire"
    shutil.copytree(kernel_cache.PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    helper, caller = package / "select/trie/kernels/added.py", package / "kernels/twice.py"
    caller.write_text(CALLER)
    cache = tmp_path / "cache"
    said = []
    for more in (1, 1, 20):  # the second run finds what the first compiled
        helper.write_text(HELPER.format(more=more))
        environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src"), kernel_cache.FOLDER: str(cache)}
        done = subprocess.run([sys.executable, "-c", RUN], env=environment, capture_output=True, text=True, check=True)
        said.append(done.stdout.split())
    # what was compiled before is loaded without the parts of Numba that only its compiler needs
    assert said == [["4", "False", "True"], ["4", "True", "False"], ["42", "False", "True"]]
    assert len(list(cache.iterdir())) == 2, "a folder for each state of the sources"
    assert not list(package.rglob("*.nbi")), "compiled code lies beside the sources, though a folder was named"


def test_the_key_changes_with_every_file_and_version(tmp_path: Path) -> None:
    """Of folders named `kernels` anywhere below the package, and of none else."""
    for folder in ("kernels/below", "deep/er/kernels", "beside"):
        (tmp_path / folder).mkdir(parents=True)
    first, second, third = (tmp_path / name for name in ("kernels/a.py", "kernels/below/b.py", "deep/er/kernels/a.py"))
    for file in (first, second, third, tmp_path / "kernels.py", tmp_path / "beside/c.py"):
        file.write_text("one")

    def key(numba: str = "1") -> str:
        return kernel_cache.Sources(tmp_path).key_with({"numba": numba})

    assert kernel_cache.Sources(tmp_path).files() == [third, first, second]
    keys = [key(), key("2")]
    for file in (second, third):
        file.write_text("other")
        keys.append(key())
    second.rename(tmp_path / "kernels/b.py")
    keys.append(key())
    (tmp_path / "beside/c.py").write_text("other")
    (tmp_path / "kernels.py").unlink()
    assert key() == keys[-1]
    assert len(set(keys)) == len(keys)


def test_kernels_use_nothing_of_ours_that_the_key_does_not_cover() -> None:
    """Else an edit there would run old machine code."""
    seen, outside = 0, []
    for path in filter(lambda file: "kernels" in file.parts, kernel_cache.OURS.files()):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "triplewire":
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                seen += len(names)
                place = kernel_cache.PACKAGE.joinpath(*(node.module or "").split(".")[1:]).with_suffix(".py")
                covered = kernel_cache.OURS.holds(place) or "kernel_cache" in f"{node.module} {names}"
                outside += [] if covered or place.stem == "kernels" else names
    assert seen > 100, "hardly any import was found: this test is blind"
    assert not outside


def test_the_key_in_a_zip_archive(tmp_path: Path) -> None:
    archive = tmp_path / "package.zip"
    sources = kernel_cache.Sources(archive / "triplewire")
    keys = []
    for content in (b"one", b"one", b"other"):
        archive.write_bytes(content)
        keys.append(sources.key_with({}))
    assert keys[0] == keys[1] != keys[2]


def test_the_first_folder_that_can_be_written_is_taken(tmp_path: Path) -> None:
    taken = tmp_path / "file"
    taken.write_text("no folder")
    places = [taken / "below", tmp_path / "second", tmp_path / "third"]
    folder = kernel_cache.choose(iter(places), "key")
    assert folder is not None
    assert folder.parent == tmp_path / "second"
    assert kernel_cache.choose(iter(places[:1]), "key") is None


def test_a_complete_folder_is_taken_though_it_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = kernel_cache.choose(iter([tmp_path / "shipped"]), "key")
    assert shipped is not None
    kernel_cache.mark_complete(shipped)
    monkeypatch.setattr(kernel_cache, "_is_writable", lambda folder: "shipped" not in folder.parts[-2])
    places = [tmp_path / "shipped", tmp_path / "own"]
    assert kernel_cache.choose(iter(places), "key") == shipped
    other = kernel_cache.choose(iter(places), "other-key")
    assert other is not None
    assert other.parent == tmp_path / "own"


def test_the_order_of_places() -> None:
    environment = {kernel_cache.FOLDER: "/a", "NUMBA_CACHE_DIR": "/b", "XDG_CACHE_HOME": "/c"}
    assert list(kernel_cache.named_places(environment)) == [Path("/a"), Path("/b")]
    assert list(kernel_cache.cache_folders(environment))[:2] == [Path("/c/triplewire"), kernel_cache.BESIDE]
    assert next(kernel_cache.cache_folders({})) == kernel_cache.BESIDE


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="users are told apart on Unix")
def test_a_temporary_folder_that_others_can_write_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    own = tmp_path / f"triplewire-{os.getuid()}"
    assert own in kernel_cache.cache_folders({})
    assert own.stat().st_mode & 0o777 == 0o700
    own.chmod(0o777)
    assert own not in kernel_cache.cache_folders({})


def test_folders_of_other_keys_are_swept_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("kernels-3-mine", "kernels-3-recent", "kernels-3-old", "other.kernels-3-foreign")
    mine, recent, old, foreign = (kernel_cache.choose(iter([tmp_path]), name) or tmp_path for name in names)
    (old / "kernel.nbc").write_text("machine code")
    long_ago = time.time() - (kernel_cache.STALE_DAYS + 1) * 86_400
    for folder in (mine, old, foreign):
        os.utime(folder, (long_ago, long_ago))
    kernel_cache.sweep(mine)
    assert sorted(tmp_path.iterdir()) == sorted((mine, recent, foreign))
    os.utime(recent, (long_ago, long_ago))
    monkeypatch.setattr(kernel_cache, "folder", lambda sources: recent)
    kernel_cache.note_use()
    kernel_cache.sweep(mine)
    assert recent.exists(), "it was used just now"
