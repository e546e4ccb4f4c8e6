"""Quarantine: a subscription that costs or matches far beyond what was foreseen is suspended, and its owner is told.

It is judged after each `PUBLICATIONS` that were matched:

    matches     more than 20 % of them, or ten times the share of its price and more than 5 %; not of an owner who is
                trusted, as the owner of the service is
    steps       three publications in a row for which its evaluation passed a limit (`max_steps`): at once, for all
    time        ten times the microseconds of its price, and more than 20 ms a publication

Time is measured by evaluating a few subscriptions alone on publications that were just matched: those that match most,
and others in turn, the newest first. What calls operators is not measured: these have time limits of their own, and are
themselves suspended where they fail (`docs/operators.md`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from triplewire.broker.matching import Accepted, Batch
from triplewire.broker.subscriptions import ACTIVE, Followed
from triplewire.engine import Engine
from triplewire.ir.walk import calls_in
from triplewire.store.database import Database
from triplewire.store.tables import subscriptions

_MEASURED = 10  # subscriptions that match most, and as many others
_TRIED = 5  # publications on which each is measured
_MOST_STEPS = 200_000  # of one pair that is measured


@dataclass(frozen=True)
class Limits:
    """From when a subscription is suspended. `share`: of publications; `times`: its price, but not below `least_share`
    or `least_seconds` a publication; `strikes`: evaluations in a row that pass a limit."""

    publications: int = 500
    share: float = 0.2
    times: float = 10.0
    least_share: float = 0.05
    least_seconds: float = 0.02
    strikes: int = 3
    trusted: frozenset[str] = frozenset()  # owners whose subscriptions may match as much as they do


class Quarantine:
    """Counts what subscriptions match and cost. `suspend` is called with the numbers of those to suspend, and why."""

    def __init__(
        self, database: Database, followed: Followed, limits: Limits, suspend: Callable[[Mapping[int, str]], None]
    ) -> None:
        self._database = database
        self._followed = followed
        self._limits = limits
        self._suspend = suspend
        self._matches: NDArray[np.int64] = np.zeros(1_024, np.int64)
        self._publications = 0
        self._strikes: dict[int, int] = {}
        self._next = 2**62  # the numbers below are measured next

    def judge(self, accepted: Sequence[Accepted], batch: Batch) -> None:
        """Take a batch that was matched into account."""
        for numbers in batch.numbers.values():
            if len(numbers) and numbers.max() >= len(self._matches):
                more = np.zeros(2 * int(numbers.max()) - len(self._matches), np.int64)
                self._matches = np.concatenate([self._matches, more])
            self._matches[numbers] += 1
        self._publications += len(batch.matched)
        guilty = self._struck(batch)
        if self._publications >= self._limits.publications:
            guilty |= self._of_window([entry for entry in accepted if entry.number in batch.matched])
        if guilty:
            self._suspend(guilty)

    def _struck(self, batch: Batch) -> dict[int, str]:
        """Those whose evaluation has passed a limit again and again."""
        if self._strikes:
            for numbers in batch.numbers.values():
                for number in self._strikes.keys() & set(numbers.tolist()):
                    del self._strikes[number]
        guilty: dict[int, str] = {}
        for number, reason in batch.undecided:
            self._strikes[number] = self._strikes.get(number, 0) + 1
            if self._strikes[number] >= self._limits.strikes:
                guilty[number] = f"{self._limits.strikes} publications in a row could not be decided: {reason}"
                del self._strikes[number]
        return guilty

    def _of_window(self, last: Sequence[Accepted]) -> dict[int, str]:
        """Those that have matched or cost too much since the last time; begins anew."""
        limits, count = self._limits, self._publications
        least = min(limits.share, limits.least_share) * count
        many = np.flatnonzero(self._matches > least)
        most = np.argsort(-self._matches, kind="stable")[:_MEASURED]
        shares = dict(zip(many.tolist(), (self._matches[many] / count).tolist(), strict=True))
        self._matches[:] = 0
        self._publications = 0
        rows = self._rows([*shares, *most.tolist()]) | self._in_turn()
        guilty: dict[int, str] = {}
        for number, share in shares.items():
            row = rows.get(number)
            if row is None or row.owner in limits.trusted:
                continue
            foreseen = json.loads(row.price).get("share")
            if share > limits.share:
                guilty[number] = f"it matches {share:.0%} of all publications, and at most {limits.share:.0%} may be"
            elif foreseen is not None and share > limits.times * foreseen:
                guilty[number] = f"it matches {share:.1%} of all publications, where {foreseen:.1%} were foreseen"
        publications = [entry.publication for entry in last[-_TRIED:]]
        for number, row in rows.items():
            if number not in guilty and publications:
                seconds = self._seconds(row, publications)
                foreseen = json.loads(row.price).get("microseconds", 0.0) / 1e6
                if seconds > max(limits.least_seconds, limits.times * foreseen):
                    guilty[number] = f"it takes {seconds * 1e3:.0f} ms a publication, far beyond its price"
        return guilty

    def _rows(self, numbers: Sequence[int]) -> dict[int, Any]:
        with self._database.reading() as connection:
            here = sa.select(subscriptions).where(subscriptions.c.state == ACTIVE)
            parts = [numbers[begin : begin + 500] for begin in range(0, len(numbers), 500)]
            answers = [connection.execute(here.where(subscriptions.c.number.in_(part))).all() for part in parts]
        return {row.number: row for rows in answers for row in rows}

    def _in_turn(self) -> dict[int, Any]:
        """The next subscriptions to be measured, the newest first."""
        with self._database.reading() as connection:
            here = sa.select(subscriptions).where(subscriptions.c.state == ACTIVE, subscriptions.c.number < self._next)
            rows = connection.execute(here.order_by(subscriptions.c.number.desc()).limit(_MEASURED)).all()
        self._next = rows[-1].number if len(rows) == _MEASURED else 2**62
        return {row.number: row for row in rows}

    def _seconds(self, row: Any, publications: Sequence[Any]) -> float:
        """What it takes to evaluate a subscription alone, a publication; 0 for one that calls operators."""
        settings = replace(
            self._followed.engine.settings, max_steps=min(_MOST_STEPS, self._followed.engine.settings.max_steps)
        )
        engine = Engine(
            matcher="reference",
            taxonomy=self._followed.engine.taxonomy,
            operators=self._followed.engine.operators,
            settings=settings,
        )
        prefixes = json.loads(row.prefixes) if row.prefixes else None
        if any(calls_in(engine.subscribe(row.query, row.language, id="query", prefixes=prefixes).where)):
            return 0.0
        begun = time.perf_counter()
        engine.match(publications)
        return (time.perf_counter() - begun) / len(publications)
