"""Quarantine: a subscription that costs or matches far beyond what was foreseen is suspended, and its owner is told.

It is judged after each `Limits.publications` that were matched:

    matches     more than 20 % of them, or ten times the share of its price and more than 5 %; not of an owner who is
                trusted, as the owner of the service is
    steps       three publications, since the last that it matched, for which its evaluation has passed a limit
                (`max_steps`): at once, for all owners
    time        ten times the microseconds of its price, and more than 20 ms of a processor a publication

Time is measured by evaluating a few subscriptions alone on publications that were just matched: those that match most,
and others in turn, the newest first. What calls operators is not measured: these have time limits of their own, and are
themselves suspended where they fail (`docs/operators.md`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from triplewire.broker.events.matching import Accepted, Batch
from triplewire.broker.subscriptions.followed import ACTIVE, Followed, parts, prefixes_of
from triplewire.broker.subscriptions.trial import engine_like
from triplewire.engine import Engine
from triplewire.errors import TriplewireError
from triplewire.ir.walk import calls_in
from triplewire.model.publication import Publication
from triplewire.store.database import Database
from triplewire.store.tables import subscriptions

_MEASURED = 10  # subscriptions that match most, and as many others
_TRIED = 5  # publications on which each is measured
_MOST_STEPS = 200_000  # of one pair that is measured


@dataclass(frozen=True)
class Limits:
    """From when a subscription is suspended. `share`: of publications; `times`: its price, but not below `least_share`
    or `least_seconds` a publication; `strikes`: evaluations that pass a limit."""

    publications: int = 500
    share: float = 0.2
    times: float = 10.0
    least_share: float = 0.05
    least_seconds: float = 0.02
    strikes: int = 3
    trusted: frozenset[str] = frozenset()  # owners whose subscriptions may match as much as they do


class Quarantine:
    """Counts what subscriptions match and cost."""

    def __init__(self, database: Database, followed: Followed, limits: Limits) -> None:
        self._database = database
        self._followed = followed
        self._limits = limits
        self._matches: NDArray[np.int64] = np.zeros(1_024, np.int64)
        self._publications = 0
        self._strikes: dict[int, int] = {}
        self._next = 2**62  # the numbers below are measured next

    def judge(self, accepted: Sequence[Accepted], batch: Batch) -> dict[int, str]:
        """Take a batch that was matched into account; returns the numbers of subscriptions to suspend, and why."""
        for numbers in batch.matched.values():
            if len(numbers) and numbers.max() >= len(self._matches):
                self._matches.resize(2 * int(numbers.max()), refcheck=False)
            self._matches[numbers] += 1
        self._publications += len(batch.matched)
        guilty = self._struck(batch)
        if self._publications >= self._limits.publications:
            last = [entry.publication for entry in accepted if entry.number in batch.matched]
            guilty |= self._of_window(last[-_TRIED:])
        return guilty

    def _struck(self, batch: Batch) -> dict[int, str]:
        """Those whose evaluation has passed a limit again and again."""
        guilty: dict[int, str] = {}
        for numbers in batch.matched.values() if self._strikes else ():
            for number in self._strikes.keys() & set(numbers.tolist()):
                del self._strikes[number]
        for number, reason in batch.undecided:
            self._strikes[number] = self._strikes.get(number, 0) + 1
            if self._strikes[number] >= self._limits.strikes:
                guilty[number] = f"{self._limits.strikes} publications could not be decided: {reason}"
                del self._strikes[number]
        return guilty

    def _of_window(self, last: Sequence[Publication]) -> dict[int, str]:
        """Those that have matched or cost too much since the last time; begins anew. `last`: to measure on."""
        limits, count = self._limits, self._publications
        many = np.flatnonzero(self._matches > min(limits.share, limits.least_share) * count)
        most = np.argsort(-self._matches, kind="stable")[:_MEASURED]
        shares = dict(zip(many.tolist(), (self._matches[many] / count).tolist(), strict=True))
        self._matches[:] = 0
        self._publications = 0
        guilty: dict[int, str] = {}
        in_turn, others = self._rows(shares, most.tolist())
        measured = {*most.tolist(), *(row.number for row in in_turn)} if last else set()
        alone = engine_like(self._followed.engine, _MOST_STEPS)
        for row in (*in_turn, *others):
            share, price = shares.get(row.number, 0.0), json.loads(row.price)
            if row.owner not in limits.trusted and share > limits.share:
                reason = f"it matches {share:.0%} of all publications, and at most {limits.share:.0%} may be"
            elif row.owner not in limits.trusted and share > limits.times * price.get("share", 1.0):
                reason = f"it matches {share:.1%} of all publications, where {price['share']:.1%} were foreseen"
            elif row.number in measured and self._is_slow(alone, row, price.get("microseconds", 0.0) / 1e6, last):
                reason = f"it takes more than {limits.least_seconds * 1e3:.0f} ms a publication, far beyond its price"
            else:
                continue
            guilty[row.number] = reason
        return guilty

    def _rows(self, shares: Mapping[int, float], most: Sequence[int]) -> tuple[Sequence[Any], Sequence[Any]]:
        """The next in turn, the newest first, and the other active ones among those that match much."""
        here = sa.select(subscriptions).where(subscriptions.c.state == ACTIVE)
        next_ones = here.where(subscriptions.c.number < self._next).order_by(subscriptions.c.number.desc())
        in_turn = self._database.rows(next_ones.limit(_MEASURED))
        self._next = in_turn[-1].number if len(in_turn) == _MEASURED else 2**62
        others: list[Any] = []
        for part in parts(sorted({*shares, *most} - {row.number for row in in_turn})):
            others += self._database.rows(here.where(subscriptions.c.number.in_(part)))
        return in_turn, others

    def _is_slow(self, engine: Engine, row: Any, foreseen: float, publications: Sequence[Publication]) -> bool:
        """Does it take too long to evaluate a subscription alone, in this engine? Not of one that calls operators."""
        try:
            subscription = engine.subscribe(
                row.query, row.language, id="query", prefixes=prefixes_of(row), replace=True
            )
        except TriplewireError:  # it was registered with other limits
            return False
        if any(calls_in(subscription.where)):
            return False
        most = max(self._limits.least_seconds, self._limits.times * foreseen) * len(publications)
        for _ in range(2):  # so that what else the process did at that moment counts for nothing
            begun = time.thread_time()
            engine.match(publications)
            if time.thread_time() - begun <= most:
                return False
        return True
