"""How operators are called in the workers of a job, and what the job learns of that, micro-batch after micro-batch.

What a worker counts comes back to the driver with the end of each task, as an accumulator of Spark's. The driver merges
it at the end of a micro-batch, and sends all that is known with the next one. Budgets hold for the whole job: workers
count what is spent in a folder, which those of a cluster have to share.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from triplewire.folders import replace_text
from triplewire.operators.calling.budget import share_budgets
from triplewire.operators.order import GREEDY
from triplewire.operators.order.statistics import LearnedCalls

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from triplewire.engine import Engine

_applied: weakref.WeakKeyDictionary[LearnedCalls, str] = weakref.WeakKeyDictionary()


@dataclass(frozen=True)
class Calling:
    """What a worker is told. `order`: one of `operators.order.ORDERS`; `cache`: a folder of its machine for outcomes,
    or ""; `budgets`: the folder of budgets, or ""; `learned`: what `LearnedCalls.to_json` gave, as text; `tell` takes
    what was counted in a task."""

    order: str = GREEDY
    cache: str = ""
    budgets: str = field(default="", repr=False)
    learned: str = field(default="", repr=False)
    tell: Callable[[list[dict[str, Any]]], None] | None = field(default=None, repr=False, compare=False)

    @property
    def kind(self) -> tuple[str, str]:
        """What an engine is made with; engines of another kind are other engines."""
        return self.order, self.cache

    @contextmanager
    def task(self, *engines: Engine) -> Iterator[None]:
        """A task of a worker with these engines."""
        if self.budgets:
            share_budgets(self.budgets)
        for engine in engines:
            if self.learned and _applied.get(engine.learned) != self.learned:
                engine.learned.restore(json.loads(self.learned))
                _applied[engine.learned] = self.learned
        yield
        if self.tell is not None:
            counted = [told for engine in engines if (told := engine.learned.take_new_counts())["operators"]]
            if counted:
                self.tell(counted)


class JobLearning:
    """What a job has learned of operators, on the driver. It is kept in a file from start to start."""

    def __init__(self, file: Path) -> None:
        self.calls = LearnedCalls()
        self._file = file
        with suppress(OSError, ValueError, RecursionError):  # a job that has learned nothing calls in another order
            self.calls.restore(json.loads(file.read_bytes()))

    @contextmanager
    def batch(self, spark: SparkSession, calling: Calling) -> Iterator[Calling]:
        """What the workers of a micro-batch are told. At the end of the block, what they have counted is merged."""
        gathered = spark.sparkContext.accumulator([], _gathering())
        known = self.calls.to_json()
        learned = json.dumps(known, separators=(",", ":")) if known["operators"] else ""
        yield replace(calling, learned=learned, tell=gathered.add)
        if gathered.value:
            self.merge(gathered.value)

    def merge(self, counted: list[Mapping[str, Any]]) -> None:
        """Count what came from tasks; the order in which they ended does not matter. Write it to the file."""
        for told in sorted(counted, key=lambda told: json.dumps(told, sort_keys=True)):
            self.calls.merge(told)
        with suppress(OSError):  # as above
            replace_text(self._file, json.dumps(self.calls.to_json(), separators=(",", ":")) + "\n")


def _gathering() -> Any:
    """How Spark puts together what tasks tell: lists, one behind the other."""
    from pyspark.accumulators import AccumulatorParam  # Spark is an optional dependency

    class Gathering(AccumulatorParam[list[Any]]):
        def zero(self, value: list[Any]) -> list[Any]:
            return []

        def addInPlace(self, value1: list[Any], value2: list[Any]) -> list[Any]:
            value1.extend(value2)
            return value1

    return Gathering()
