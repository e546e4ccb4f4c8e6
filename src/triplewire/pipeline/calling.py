"""How operators are called in the workers of a job, and what the job learns of that, micro-batch after micro-batch.

What a worker counts comes back to the driver in the row of each task (`triplewire.pipeline.results.written.REPORTS`).
The driver merges it at the end of a micro-batch, and sends all that is known with the next one. Budgets hold for the
whole job: workers count what is spent in a folder, which those of a cluster have to share.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from triplewire.folders import replace_text
from triplewire.operators.calling.budget import share_budgets
from triplewire.operators.order import GREEDY
from triplewire.operators.order.statistics import LearnedCalls

if TYPE_CHECKING:
    from triplewire.engine import Engine

_applied: weakref.WeakKeyDictionary[LearnedCalls, str] = weakref.WeakKeyDictionary()


@dataclass(frozen=True)
class Calling:
    """What a worker is told. `order`: one of `operators.order.ORDERS`; `cache`: a folder of its machine for outcomes,
    or ""; `budgets`: the folder of budgets, or ""; `learned`: what `LearnedCalls.to_json` gave, as text."""

    order: str = GREEDY
    cache: str = ""
    budgets: str = field(default="", repr=False)
    learned: str = field(default="", repr=False)

    @property
    def kind(self) -> tuple[str, str]:
        """What an engine is made with; engines of another kind are other engines."""
        return self.order, self.cache

    def begin(self, *engines: Engine) -> None:
        """A task of a worker begins to use these engines."""
        if self.budgets:
            share_budgets(self.budgets)
        for engine in engines:
            if self.learned and _applied.get(engine.learned) != self.learned:
                engine.learned.restore(json.loads(self.learned))
                _applied[engine.learned] = self.learned


def newly_learned(engines: Iterable[Engine]) -> list[str]:
    """What was counted with each engine since this was asked last, as JSON texts."""
    counted = (engine.learned.take_new_counts() for engine in engines)
    return [json.dumps(told, sort_keys=True, separators=(",", ":")) for told in counted if told["operators"]]


class JobLearning:
    """What a job has learned of operators, on the driver. It is kept in a file from start to start."""

    def __init__(self, file: Path) -> None:
        self.calls = LearnedCalls()
        self._file = file
        with suppress(OSError, ValueError, RecursionError):  # a job that has learned nothing calls in another order
            self.calls.restore(json.loads(file.read_bytes()))

    def told(self, calling: Calling) -> Calling:
        """What the workers of a micro-batch are told."""
        known = self.calls.to_json()
        return replace(calling, learned=json.dumps(known, separators=(",", ":")) if known["operators"] else "")

    def merge(self, counted: Iterable[str]) -> None:
        """Count what came from tasks (`newly_learned`); the order in which they ended does not matter. Write it to the
        file."""
        if not (texts := sorted(counted)):
            return
        for text in texts:
            self.calls.merge(json.loads(text))
        with suppress(OSError):  # as above
            replace_text(self._file, json.dumps(self.calls.to_json(), separators=(",", ":")) + "\n")
