"""Executors in processes of their own, with an index in two stages: what travels to them is enough, and they find
Python, Java and the package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from triplewire.pipeline.index.build import IndexOptions, Spread, build
from triplewire.pipeline.session import QUICK_START
from triplewire.read.taxonomy import load_taxonomy

pyspark = pytest.importorskip("pyspark")

pytestmark = pytest.mark.xdist_group("spark")

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_two_executors_with_a_process_each(tmp_path: Path) -> None:
    home = tmp_path / "spark"  # executors write below SPARK_HOME: not into the installed package
    home.mkdir()
    for name in ("bin", "jars", "python", "sbin"):
        (home / name).symlink_to(Path(pyspark.__file__).parent / name)
    command = [
        str(Path(sys.executable).parent / "triplewire"),
        "pipeline",
        "run",
        "--master",
        "local-cluster[2,1,1024]",
    ]
    command += ["--input", str(EXAMPLES / "publications"), "--output", str(tmp_path / "out")]
    index = tmp_path / "index"
    options = IndexOptions(load_taxonomy(EXAMPLES / "taxonomy.ttl"))
    build(index, [EXAMPLES / "subscriptions"], options, Spread("containment", 2))
    command += ["--index", str(index)]
    command += ["--conf", "spark.executor.memory=512m", "--conf", "spark.driver.memory=512m"]
    for process in ("driver", "executor"):
        command.append(f"--conf=spark.{process}.extraJavaOptions={QUICK_START['spark.driver.extraJavaOptions']}")
    done = subprocess.run(
        command,
        env={**os.environ, "SPARK_HOME": str(home), "TRIPLEWIRE_TIER": "interpreted"},  # loads no kernels: sooner
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 1, done.stderr  # one input is refused
    assert "40 matches in 43 publications, 1 refused" in done.stderr
    files = sorted((tmp_path / "out" / "matches").glob("*.parquet"))
    assert sum(ds.dataset(file).count_rows() for file in files) == 40
    assert len(list((home / "work").glob("app-*/*"))) == 2, "there were not two executors"
