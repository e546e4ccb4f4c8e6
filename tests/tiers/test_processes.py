"""The first answer of a process that has just begun, with nothing compiled and with everything."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from triplewire import kernel_cache
from triplewire.engine.tiers.kernels import TIER
from triplewire.pipeline.session import settings_of_spark

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MATCH = (
    "match",
    "--subscriptions",
    str(EXAMPLES / "subscriptions/puffin-chicks.rq"),
    "--publications",
    str(EXAMPLES / "publications/feeds/bird-log.atom"),
)
COLD = """
import sys
from triplewire import Engine, read
from triplewire.engine.tiers.kernels import KERNELS
engine = Engine()
engine.subscribe("SELECT * { ?s ?p ?o }")
result = engine.match(read(b"<urn:a> <urn:b> 1 ."))
child = KERNELS._child
print(len(result), result.stats.tiers, "numba" in sys.modules, child is not None and child.poll() is None)
KERNELS.ask()
print(KERNELS._child is child)
child.kill()
"""


def run(*arguments: str, code: str = "", tier: str = "auto", **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code] if code else [sys.executable, "-m", "triplewire", *arguments]
    environment = {**os.environ, TIER: tier, **environment}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)


def test_with_nothing_compiled_the_answer_comes_first(tmp_path: Path) -> None:
    done = run(code=COLD, **{kernel_cache.FOLDER: str(tmp_path)})
    assert done.stdout.splitlines() == ["1 {'interpreted': 1, 'compiled': 0} False True", "True"], done.stderr
    assert (tmp_path / kernel_cache.OURS.folder_name).exists()


@pytest.mark.usefixtures("kernels_on_disk")
@pytest.mark.parametrize("tier", ["auto", "compiled", "interpreted"])
def test_the_command_says_which_tier_answered(tmp_path: Path, tier: str) -> None:
    stats = tmp_path / "stats.json"
    done = run(*MATCH, "--stats", str(stats), tier=tier)
    assert done.returncode == 0
    assert done.stderr == ""
    assert [json.loads(line)["subscription"] for line in done.stdout.splitlines()] == ["puffin-chicks"] * 2
    counts = json.loads(stats.read_text())
    answered = "compiled" if tier == "compiled" else "interpreted"
    assert counts["publications"] == counts["tiers"][answered] > 0
    assert sum(counts["tiers"].values()) == counts["publications"]


@pytest.mark.usefixtures("kernels_on_disk")
def test_warm_up_says_where_the_machine_code_lies() -> None:
    done = run("warm-up")
    assert done.returncode == 0
    assert done.stdout == ""
    assert done.stderr.startswith("all kernels were compiled")
    assert str(kernel_cache.folder()) in done.stderr


def test_warm_up_into_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    done = run("warm-up", "--cache", str(file / "below"))
    assert done.returncode == 73
    assert "cannot be written" in done.stderr


def test_a_module_is_a_command() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"triplewire {version('triplewire')}\n")


@pytest.mark.parametrize(("set_here", "told"), [({}, "-1"), ({"MIMALLOC_PURGE_DELAY": "5"}, "5")])
def test_executors_of_a_cluster_have_the_settings_of_the_driver(
    set_here: dict[str, str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MIMALLOC_PURGE_DELAY", raising=False)
    monkeypatch.delenv(TIER, raising=False)
    for name, value in ({kernel_cache.FOLDER: str(tmp_path / "cache")} | set_here).items():
        monkeypatch.setenv(name, value)
    begin = "spark.executorEnv."
    settings = settings_of_spark(tmp_path, "spark://one:7077").items()
    assert {name.removeprefix(begin): value for name, value in settings if name.startswith(begin)} == {
        kernel_cache.FOLDER: str(tmp_path / "cache"),
        "MIMALLOC_PURGE_DELAY": told,
        "PYTHONSAFEPATH": "1",
    }
