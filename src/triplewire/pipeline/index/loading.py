"""Subscription files that Spark's executors load for an index, each task a part of them: `engine.part_loading`."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from triplewire.engine import Engine
from triplewire.engine.views import PlaceOfTasks, load_by_tasks
from triplewire.errors import Refusal
from triplewire.operators.files import OperatorFile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from triplewire.engine.part_loading import LoadedPart, LoadTask


@dataclass(frozen=True)
class LoadOnSpark:
    """Loads files by so many tasks. The executors see the files, and `folder`, to which they write what they loaded.
    `operators`: the files that give the engine its own."""

    spark: SparkSession
    tasks: int
    folder: Path
    operators: tuple[OperatorFile, ...] = ()

    def __call__(
        self,
        engine: Engine,
        files: Sequence[str | os.PathLike[str]],
        on_refusal: Callable[[Refusal], None],
        on_warning: Callable[[str, str], None] | None,
    ) -> None:
        """Load them into an engine without subscriptions. Raises what Spark raises where a task fails."""
        self.folder.mkdir(parents=True, exist_ok=True)
        place = PlaceOfTasks(self._run, str(self.folder.absolute()), self.operators)
        load_by_tasks(engine, files, self.tasks, place, on_refusal, on_warning)

    def _run(self, tasks: Sequence[LoadTask]) -> Generator[int, None, list[LoadedPart]]:
        loaded = self.spark.sparkContext.parallelize(list(tasks), len(tasks)).map(_loaded).collect()
        yield sum(part.subscriptions for part in loaded)
        return loaded


def _loaded(task: LoadTask) -> LoadedPart:
    """A task, in an executor."""
    from triplewire.engine.part_loading import load_part  # compiled kernels

    return load_part(task, lambda count: None)
