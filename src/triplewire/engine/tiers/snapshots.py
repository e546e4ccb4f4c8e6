"""Snapshots that are matched interpreted, and give way to compiled ones when the kernels are ready."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Ids
from triplewire.encode.strings import TextColumn
from triplewire.engine.reference import ReferenceSnapshot
from triplewire.engine.tiers.kernels import KERNELS, SMALL_PAIRS
from triplewire.forks import new_lock
from triplewire.ir.subscription import Subscription
from triplewire.matchers import Chunk, Details, Install, Rows, Snapshot, Stage, SubscriptionCompiler

_FORMER = 1_000  # ids that were removed, and are kept among the others


class Successor:
    """The compiled snapshot that follows an interpreted one, made on first use; translates its rows. `make` gives an
    empty compiled snapshot. `unproven`: ids, also former ones, of subscriptions that their texts alone may not give.
    """

    def __init__(
        self, make: Callable[[SubscriptionCompiler], Snapshot], pairs: ReferenceSnapshot, unproven: set[str]
    ) -> None:
        self._make = make
        self._pairs = pairs
        self._unproven = unproven
        self._lock = new_lock()
        self.snapshot: Snapshot | None = None
        self._number: Ids | None = None  # its numbers -> those of the interpreted snapshot

    def of(self, pairs: ReferenceSnapshot, unproven: Iterable[str]) -> Successor:
        """The one of other subscriptions, of which more are not proven."""
        self._unproven.update(unproven)
        if len(self._unproven) <= 2 * len(pairs) + _FORMER:
            return Successor(self._make, pairs, self._unproven)
        return Successor(self._make, pairs, {id_ for id_ in self._unproven if id_ in pairs})

    def added(self, snapshot: Snapshot, subscriptions: Iterable[Subscription], removed: Collection[str]) -> Snapshot:
        """The compiled snapshot without those removed and with more subscriptions, in this order."""
        snapshot = snapshot.changed((), removed)
        for is_unproven, group in groupby(subscriptions, lambda subscription: subscription.id in self._unproven):
            snapshot = snapshot.changed(list(group), (), plain=not is_unproven)
        return snapshot

    def made(self) -> Snapshot | None:
        """The snapshot; None where kernels are not to be used. Waits until they are loaded."""
        if self.snapshot is None and KERNELS.wait():
            with self._lock:
                if self.snapshot is None:
                    self.snapshot = self.added(self._make(self._pairs.compiler), self._pairs.all(), ())
        return self.snapshot

    def match(self, snapshot: Snapshot, chunk: Chunk, stage: Stage) -> Rows:
        """The rows of the compiled snapshot, with the numbers of the interpreted one."""
        rows, number = snapshot.match(chunk, stage), self._numbers(snapshot)
        failures = tuple((publication, int(number[asked]), error) for publication, asked, error in rows.failures)
        return replace(rows, subscription=number[rows.subscription], failures=failures)

    def details(self, snapshot: Snapshot, chunk: Chunk, rows: Rows, places: NDArray[np.int64]) -> Details:
        """The details of rows that `match` gave."""
        own = np.argsort(self._numbers(snapshot)).astype(np.int32)
        return snapshot.details(chunk, replace(rows, subscription=own[rows.subscription]), places)

    def _numbers(self, snapshot: Snapshot) -> Ids:
        if self._number is None:
            own_ids = sorted(subscription.id for subscription in self._pairs.all())
            place = {id_: number for number, id_ in enumerate(own_ids)}
            ids = snapshot.ids(np.arange(len(snapshot), dtype=np.int32))
            self._number = np.array([place[id_] for id_ in ids], np.int32)
        return self._number


class InterpretedSnapshot:
    """Subscriptions that are matched pair by pair, in plain Python. `left`: how many pairs this match call may still
    interpret; past that it waits for the kernels and goes on compiled."""

    columnar = False

    def __init__(self, pairs: ReferenceSnapshot, successor: Successor, left: float = float("inf")) -> None:
        self.compiler = pairs.compiler
        self._pairs = pairs
        self._successor = successor
        self._left = left

    def for_call(self) -> InterpretedSnapshot:
        """The same for one match call of unknown size."""
        return InterpretedSnapshot(self._pairs, self._successor, SMALL_PAIRS)

    def changed(
        self, added: Sequence[Subscription], removed: Collection[str], *, plain: bool = False
    ) -> InterpretedSnapshot:
        """See `triplewire.matchers.Snapshot`."""
        pairs = self._pairs.changed(added, removed, plain=plain)
        unproven = () if plain else [subscription.id for subscription in added]
        return InterpretedSnapshot(pairs, self._successor.of(pairs, unproven))

    def with_compiler(self, compiler: SubscriptionCompiler) -> InterpretedSnapshot:
        """See `triplewire.matchers.Snapshot`."""
        pairs = self._pairs.with_compiler(compiler)
        return InterpretedSnapshot(pairs, self._successor.of(pairs, ()))

    def background_work(self) -> Callable[[], Install] | None:
        """The take-over, when the kernels are loaded, or compiled and worth loading."""
        if self._successor.snapshot is None and not KERNELS.are_loaded() and not KERNELS.are_worth_loading(len(self)):
            return None
        return self.take_over

    def take_over(self) -> Install:
        """Make the compiled snapshot, and wait for the kernels where they are not loaded."""
        made = self._successor.made()

        def install(latest: Snapshot) -> Snapshot:
            if made is None or not isinstance(latest, InterpretedSnapshot) or latest.compiler is not self.compiler:
                return latest  # with another taxonomy, it has a take-over of its own
            before = {subscription.id: subscription for subscription in self.all()}
            now = {subscription.id: subscription for subscription in latest.all()}
            added = [subscription for id_, subscription in now.items() if before.get(id_) is not subscription]
            return self._successor.added(made, added, [id_ for id_ in before if now.get(id_) is not before[id_]])

        return install

    # --- matching

    def match(self, chunk: Chunk, stage: Stage) -> Rows:
        """See `triplewire.matchers.Snapshot`."""
        self._left -= len(chunk) * len(self)
        compiled = self._successor.snapshot
        if compiled is None and self._left < 0:
            with stage("load"):
                compiled = self._successor.made()
        if compiled is not None:
            return self._successor.match(compiled, chunk, stage)
        begun = time.perf_counter()
        rows = self._pairs.match(chunk, stage)
        KERNELS.spent += time.perf_counter() - begun
        return rows

    def details(self, chunk: Chunk, rows: Rows, places: NDArray[np.int64]) -> Details:
        """See `triplewire.matchers.Snapshot`."""
        compiled = self._successor.snapshot
        if rows.details is not None or compiled is None:
            return self._pairs.details(chunk, rows, places)
        return self._successor.details(compiled, chunk, rows, places)

    # --- look-ups

    def ranks(self, numbers: Ids) -> NDArray[np.int64]:
        """See `triplewire.matchers.Snapshot`."""
        return self._pairs.ranks(numbers)

    def ids(self, numbers: Ids) -> list[str]:
        """See `triplewire.matchers.Snapshot`."""
        return self._pairs.ids(numbers)

    def id_column(self, numbers: Ids) -> TextColumn:
        """See `triplewire.matchers.Snapshot`."""
        return self._pairs.id_column(numbers)

    def revisions(self, numbers: Ids) -> NDArray[np.uint64]:
        """See `triplewire.matchers.Snapshot`."""
        return self._pairs.revisions(numbers)

    def revision(self, id: str) -> str:
        """See `triplewire.matchers.Snapshot`."""
        return self._pairs.revision(id)

    def __len__(self) -> int:
        return len(self._pairs)

    def __contains__(self, id: object) -> bool:
        return id in self._pairs

    def get(self, id: str) -> Subscription | None:
        """See `triplewire.matchers.Snapshot`."""
        return self._pairs.get(id)

    def all_ids(self) -> list[str]:
        """See `triplewire.matchers.Snapshot`."""
        return self._pairs.all_ids()

    def all(self, start: int = 0) -> Iterator[Subscription]:
        """See `triplewire.matchers.Snapshot`."""
        return self._pairs.all(start)
