"""A process that can write nowhere, or only to temporary folders, still answers, and says so once.

Not even root writes past a file-size limit of zero, so these are real processes without mocks. The package is copied,
as its own folder may hold compiled kernels.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from amounts import IN_FULL
from triplewire import kernel_cache
from triplewire.engine.tiers.kernels import TIER

pytestmark = pytest.mark.skipif(os.name != "posix", reason="limits of processes are those of Unix")

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MATCH = (
    *("-m", "triplewire", "match", "--subscriptions", str(EXAMPLES / "subscriptions/puffin-chicks.rq")),
    *("--publications", str(EXAMPLES / "publications/feeds/bird-log.atom")),
)
OTHER_CODE = """
import numba
import triplewire.kernels.text.words
print(numba.njit(lambda number: number + 1)(1))
import triplewire.select.trie.kernels.atoms
"""
ASKED = "from triplewire.engine.tiers.kernels import KERNELS; print(KERNELS.are_usable(), KERNELS.are_usable())"


PAIRS = [
    (tier, matcher)
    for tier in ("auto", "compiled", "interpreted")
    for matcher in ("trie", "everything", "reference")
    if IN_FULL or "auto" in tier or "trie" in matcher
]


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """The environment of a process whose package holds no compiled kernels, and whose home cannot be made. What goes on
    in the background when a command has ended may make its folders again, so no other test has the same."""
    tmp_path = Path(tempfile.mkdtemp(dir=tmp_path))
    package = tmp_path / "src" / "triplewire"
    # with its bytecode, but for files that others write at the moment
    shutil.copytree(kernel_cache.PACKAGE, package, ignore=shutil.ignore_patterns("kernels-*", "*.pyc.*"))
    beside = package / "kernels" / "__pycache__"
    shutil.rmtree(beside, ignore_errors=True)
    beside.write_text("a file, where a folder would have to be")
    dropped = (kernel_cache.FOLDER, "NUMBA_CACHE_DIR", "XDG_CACHE_HOME", TIER)
    environment = {name: value for name, value in os.environ.items() if name not in dropped}
    (tmp_path / "temporary").mkdir()
    home = package / "__init__.py" / "home"  # below a file
    return environment | {"PYTHONPATH": str(tmp_path / "src"), "HOME": str(home), "TMPDIR": str(tmp_path / "temporary")}


def run(environment: dict[str, str], *arguments: str, blocks: int | None = 0) -> subprocess.CompletedProcess[str]:
    """Run Python; no file has more than so many blocks of 512 bytes."""
    command = [sys.executable, "-B", *arguments]
    if blocks is not None:
        command = ["sh", "-c", f'ulimit -f {blocks}; exec "$@"', "sh", *command]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.parametrize(("tier", "matcher"), PAIRS)
def test_matching_where_nothing_can_be_written(installed: dict[str, str], tier: str, matcher: str) -> None:
    done = run({**installed, TIER: tier}, *MATCH, "--matcher", matcher)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["subscription"] for line in done.stdout.splitlines()] == ["puffin-chicks"] * 2
    said = done.stderr.splitlines()
    if matcher == "reference" or tier == "interpreted":
        assert not said
    else:
        assert len(said) == 1
        assert "no folder for compiled code can be written: matching is interpreted" in said[0]


def test_a_program_hears_of_it_once(installed: dict[str, str]) -> None:
    done = run(installed, "-c", ASKED)
    assert done.stdout == "False False\n"
    assert done.stderr.count("no folder for compiled code can be written") == 1


def test_kernels_go_on_as_plain_python_when_other_code_is_compiled(installed: dict[str, str]) -> None:
    """Numba reads its settings anew with each compilation of other code."""
    done = run(installed, "-c", OTHER_CODE)
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr


def test_the_last_resort_is_a_temporary_folder(installed: dict[str, str]) -> None:
    done = run(installed, "-c", ASKED, blocks=None)
    assert done.stdout == "True True\n"
    assert done.stderr.count("compiled code is kept in") == 1
    assert str(Path(installed["TMPDIR"], f"triplewire-{os.getuid()}")) in done.stderr


def test_a_folder_that_is_full_before_all_is_compiled(installed: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    environment = {**installed, kernel_cache.FOLDER: str(tmp_path / "full"), TIER: "compiled"}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"  # in the background, too: Python does not see that it is cut
    done = run(environment, *MATCH, blocks=16)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["subscription"] for line in done.stdout.splitlines()] == ["puffin-chicks"] * 2
    (said,) = done.stderr.splitlines()
    assert said.startswith(f"compiled code cannot be put into {tmp_path}/full/kernels-")
    assert said.endswith("(File too large): matching is interpreted, which is slower")
    warm = run(environment, "-m", "triplewire", "warm-up", blocks=16)
    assert (warm.returncode, len(warm.stderr.splitlines())) == (73, 1)
    assert warm.stderr.startswith(f"triplewire: {tmp_path}/full/kernels-")
    assert warm.stderr.endswith(" cannot be written: File too large\n")


def test_a_named_folder_that_cannot_be_written_is_not_warm(installed: dict[str, str]) -> None:
    named = str(Path(installed["HOME"]) / "cache")
    done = run({**installed, kernel_cache.FOLDER: named}, "-m", "triplewire", "warm-up", blocks=None)
    assert done.returncode == 73
    assert f"{named} cannot be written" in done.stderr


@pytest.mark.parametrize("variable", ["HOME", "XDG_CACHE_HOME", kernel_cache.FOLDER])
@pytest.mark.parametrize("tier", ["auto", "interpreted"])
def test_a_folder_that_may_not_be_looked_into(
    installed: dict[str, str], tmp_path: Path, variable: str, tier: str
) -> None:
    locked = tmp_path / "locked"
    locked.mkdir()
    locked.chmod(0)
    command = [sys.executable, "-B", *MATCH]
    if not os.geteuid():  # for whom nothing is locked, unless that right is given up
        if shutil.which("setpriv") is None:
            pytest.skip("there is no setpriv here, and root may read everything")
        rights = "-dac_override,-dac_read_search"
        command = ["setpriv", "--bounding-set", rights, "--inh-caps", rights, *command]
    environment = {**installed, variable: str(locked / "below"), TIER: tier}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    locked.chmod(0o700)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 2
