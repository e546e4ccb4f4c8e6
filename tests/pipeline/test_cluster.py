"""Executors in processes of their own, with an index in two stages.

What travels to them is enough, and they find Python, Java and the package.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from amounts import usually
from engine.segments.rows_in_parts import rows, written
from triplewire.operators.files import read_operator_files
from triplewire.pipeline.index.build import IndexOptions, Spread, build
from triplewire.pipeline.index.open_version import opened
from triplewire.pipeline.session import QUICK_START
from triplewire.read.taxonomy import load_taxonomy

pyspark = pytest.importorskip("pyspark")

pytestmark = pytest.mark.xdist_group("spark")

OPERATORS = """
from triplewire.extend import Parameter

class Odd:
    name, parameters = "odd", (Parameter("count"),)

    def check_constants(self, arguments):
        if arguments[0].lexical == "2":
            raise ValueError("not 2")
        return ["it is odd"]

    def evaluate(self, publication, arguments):
        return True

operators = (Odd(),)
"""
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


MASTER = "local-cluster[2,1,1024]"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """SPARK_HOME, below which executors write: not into the installed package."""
    home = tmp_path / "spark"
    home.mkdir()
    for name in ("bin", "jars", "python", "sbin"):
        (home / name).symlink_to(Path(pyspark.__file__).parent / name)
    return home


def run(home: Path, tier: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command of the pipeline."""
    command = [str(Path(sys.executable).parent / "triplewire"), "pipeline", *arguments]
    command += ["--conf", "spark.executor.memory=512m", "--conf", "spark.driver.memory=512m"]
    for process in ("driver", "executor"):
        command.append(f"--conf=spark.{process}.extraJavaOptions={QUICK_START['spark.driver.extraJavaOptions']}")
    environment = {**os.environ, "SPARK_HOME": str(home), "TRIPLEWIRE_TIER": tier}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=600)


def executors(home: Path) -> int:
    return len(list((home / "work").glob("app-*/*")))


def test_two_executors_with_a_process_each(home: Path, tmp_path: Path) -> None:
    index, options = tmp_path / "index", IndexOptions(load_taxonomy(EXAMPLES / "taxonomy.ttl"))
    build(index, [EXAMPLES / "subscriptions"], options, Spread("containment", 2))
    where = "--input", str(EXAMPLES / "publications"), "--output", str(tmp_path / "out"), "--index", str(index)
    done = run(home, "interpreted", "run", "--master", MASTER, *where)  # loads no kernels: sooner
    assert done.returncode == 1, done.stderr  # one input is refused
    assert "40 matches in 43 publications, 1 refused" in done.stderr
    files = sorted((tmp_path / "out" / "matches").glob("*.parquet"))
    assert sum(ds.dataset(file).count_rows() for file in files) == 40
    assert executors(home) == 2, "there were not two executors"


@pytest.mark.parametrize("form", ["parquet", "jsonl"][: usually(1, 2)])
def test_executors_load_the_subscriptions_of_an_index(form: str, home: Path, tmp_path: Path) -> None:
    """With what the driver tells and publishes where it loads them itself. Rules name rules of another part."""
    calls = [{"id": f"call{n}", "language": "predicates", "query": f"odd({n})"} for n in range(4)]
    file, log = written([*rows(), *calls], tmp_path / f"rows.{form}"), tmp_path / "log"
    log.mkdir()
    operators = tmp_path / "more.py"
    operators.write_text(OPERATORS)
    common = "index", "--subscriptions", str(file), "--operators", str(operators), "--output"
    logged = {"dir": log.as_uri(), "enabled": "true", "compress": "false"}
    events = [f"--conf=spark.eventLog.{name}={value}" for name, value in logged.items()]
    master = f"--conf=spark.master={MASTER}"
    on_spark = run(home, "compiled", *common, str(tmp_path / "a"), "--load-tasks", "3", master, *events)
    assert executors(home) == 2, on_spark.stderr
    here = run(home, "compiled", *common, str(tmp_path / "b"))
    told = [[line for line in done.stderr.splitlines() if line.startswith("refused")] for done in (on_spark, here)]
    assert told[0] == told[1]
    assert len(told[0]) == 10, on_spark.stderr
    warned = [sum(line.startswith("warning: c") for line in done.stderr.splitlines()) for done in (on_spark, here)]
    assert warned[0] == warned[1]
    assert on_spark.returncode == here.returncode == 1
    ended = [json.loads(line) for path in log.rglob("events_*") for line in path.open()]
    by = [event["Task Info"]["Executor ID"] for event in ended if event["Event"] == "SparkListenerTaskEnd"]
    assert len(by) == 3
    assert "driver" not in by
    indexes = (opened(tmp_path / name, "v1", read_operator_files([operators])) for name in ("a", "b"))
    first, second = (index.server() for index in indexes)
    assert first.subscriptions == second.subscriptions
    assert len(first) == 83
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "log", "more.py", file.name, "spark"]
