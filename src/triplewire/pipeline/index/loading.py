"""Subscription files that Spark's executors load for an index, each task a part of them: `engine.part_loading`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from triplewire.engine.arguments import Workers
from triplewire.operators.files import OperatorFile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from triplewire.engine.part_loading import LoadTask


def executors(spark: SparkSession, tasks: int, folder: Path, operators: tuple[OperatorFile, ...]) -> Workers:
    """So many tasks. The executors see the files, and `folder`, to which they write what they loaded. `operators`: the
    files that give the engine its own."""

    @contextmanager
    def run_tasks(parts: Sequence[LoadTask]) -> Iterator[Callable[[], None]]:
        from triplewire.engine.part_loading import load_part  # compiled kernels

        yield lambda: spark.sparkContext.parallelize(list(parts), len(parts)).foreach(load_part)

    folder.mkdir(parents=True, exist_ok=True)
    return Workers([0.0] + [1.0] * tasks, run_tasks, str(folder.absolute()), operators)
