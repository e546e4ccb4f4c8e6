"""The interpreted tier: a snapshot that is matched pair by pair, until a compiled one takes its place."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Self

import numpy as np

from triplewire.engine.chunk import Chunk, Install, Rows, Snapshot
from triplewire.engine.compiler import Compiler
from triplewire.engine.reference import Reference, ReferenceSnapshot
from triplewire.engine.stats import Clock
from triplewire.engine.tiers.kernels import KERNELS
from triplewire.errors import LimitError, TriplewireError
from triplewire.forks import new_lock
from triplewire.ir.subscription import Subscription
from triplewire.select.index import IndexMaker

_NONE = np.zeros(0, np.int32)
_FORMER = 1_000  # ids that were removed, and are kept among the others


def empty_snapshot(matcher: IndexMaker | Reference, compiler: Compiler) -> Snapshot:
    """The first snapshot of an engine: of no subscriptions. Raises `TriplewireError` for a plug-in that is no
    matcher."""
    if isinstance(matcher, Reference):
        return ReferenceSnapshot(compiler)
    if not isinstance(matcher, IndexMaker):
        remedy = "give it what triplewire.extend.IndexMaker asks for"
        raise TriplewireError(f"the plug-in {matcher!r:.80} is no matcher", remedy=remedy)
    if KERNELS.are_loaded():
        return _compiled(matcher, compiler)
    return InterpretedSnapshot(compiler, partial(_compiled, matcher))


def _compiled(maker: IndexMaker, compiler: Compiler) -> Snapshot:
    # compiled kernels, which the interpreted tier does without
    from triplewire.engine.segments.segment import SegmentContext
    from triplewire.engine.segments.snapshot import SegmentSnapshot

    return SegmentSnapshot(SegmentContext(compiler, maker))


class InterpretedSnapshot(ReferenceSnapshot):
    """Subscriptions that are matched interpreted, and the compiled snapshot that follows: made on first use, by adding
    them to the empty one that `make` gives for a compiler."""

    def __init__(self, compiler: Compiler, make: Callable[[Compiler], Snapshot]) -> None:
        super().__init__(compiler)
        self._make = make
        self._unproven: set[str] = set()  # ids, also former ones, of subscriptions that their texts may not give
        self._lock = new_lock()
        self._follower: Snapshot | None = None

    def changed(self, added: Sequence[Subscription], removed: Collection[str], *, plain: bool = False) -> Self:
        """See `triplewire.engine.chunk.Snapshot`."""
        other = super().changed(added, removed, plain=plain)
        other._lock, other._follower = new_lock(), None
        if not plain:
            self._unproven.update(subscription.id for subscription in added)
        if len(self._unproven) > 2 * len(other) + _FORMER:
            other._unproven = {id_ for id_ in self._unproven if id_ in other}
        return other

    def with_compiler(self, compiler: Compiler) -> Self:
        """See `triplewire.engine.chunk.Snapshot`."""
        other = super().with_compiler(compiler)
        other._lock, other._follower = new_lock(), None
        return other

    def match(self, chunk: Chunk, stage: Clock) -> Rows:
        """See `triplewire.engine.chunk.Snapshot`."""
        begun = time.perf_counter()
        rows = super().match(chunk, stage)
        KERNELS.spent += time.perf_counter() - begun
        is_past = any(isinstance(error, LimitError) for _, _, error in rows.failures)
        if is_past and (follower := self.compiled()) is not None:
            return self._asked_again(rows, follower, chunk, stage)
        return rows

    def _asked_again(self, rows: Rows, follower: Snapshot, chunk: Chunk, stage: Clock) -> Rows:
        """The same, where pairs that passed a limit have the compiled tier's answer: it looks at less for a pair, so
        that the answer does not depend on whether the kernels were loaded."""
        past = {(publication, number) for publication, number, error in rows.failures if isinstance(error, LimitError)}
        again = follower.match(chunk, stage)
        number_of = {id_: number for number, id_ in enumerate(self.ids(np.arange(len(self), dtype=np.int32)))}

        def numbers(theirs: Iterable[int]) -> list[int]:
            return [number_of[id_] for id_ in follower.ids(np.fromiter(theirs, np.int32))]

        matches = list(zip(again.publication.tolist(), numbers(again.subscription), strict=True))
        places = np.array([place for place, pair in enumerate(matches) if pair in past], np.int64)
        listed, subscriptions = follower.details(chunk, again, places), self._meant()
        pairs = [matches[place] for place in places.tolist()]
        details = [
            (tuple(bindings), subscriptions[number].construct)
            for (_, number), bindings in zip(pairs, listed.bindings, strict=True)
        ]
        if again.operators is not None and rows.operators is not None:
            rows.operators.add(again.operators)
        is_cut = again.truncated[places]
        is_cut[listed.cut] = True
        failed = [(publication, error) for publication, _, error in again.failures]
        of_failures = numbers(number for _, number, _ in again.failures)
        still = [(p, number, error) for (p, error), number in zip(failed, of_failures, strict=True)]
        publications, own = (
            (np.array(column, np.int32) for column in zip(*pairs, strict=True)) if pairs else (_NONE, _NONE)
        )
        return replace(
            rows,
            publication=np.append(rows.publication, publications),
            subscription=np.append(rows.subscription, own),
            truncated=np.append(rows.truncated, is_cut),
            failures=tuple(failure for failure in rows.failures if failure[:2] not in past)
            + tuple(failure for failure in still if failure[:2] in past),
            details=[*(rows.details or ()), *details],
        )

    # --- the compiled tier

    def compiled(self) -> Snapshot | None:
        """The compiled snapshot of the same subscriptions; None where kernels are not to be used. Waits until they are
        loaded."""
        if self._follower is None and KERNELS.wait():
            with self._lock:
                if self._follower is None:
                    self._follower = self._added(self._make(self.compiler), self.all(), ())
        return self._follower

    def _added(self, snapshot: Snapshot, subscriptions: Iterable[Subscription], removed: Collection[str]) -> Snapshot:
        """A compiled snapshot without those removed and with more subscriptions, in this order."""
        snapshot = snapshot.changed((), removed)
        for is_unproven, group in groupby(subscriptions, lambda subscription: subscription.id in self._unproven):
            snapshot = snapshot.changed(list(group), (), plain=not is_unproven)
        return snapshot

    def background_work(self) -> Callable[[], Install] | None:
        """The take-over, when the kernels are loaded, or compiled and worth loading."""
        return self.take_over if KERNELS.are_loaded() or KERNELS.are_worth_loading(len(self)) else None

    def take_over(self) -> Install:
        """Make the compiled snapshot, and wait for the kernels where they are not loaded. What is installed has the
        changes since."""
        follower = self.compiled()

        def install(latest: Snapshot) -> Snapshot:
            if follower is None or not isinstance(latest, InterpretedSnapshot) or latest.compiler is not self.compiler:
                return latest  # with another taxonomy, it has a take-over of its own
            before = {subscription.id: subscription for subscription in self.all()}
            now = {subscription.id: subscription for subscription in latest.all()}
            added = [subscription for id_, subscription in now.items() if before.get(id_) is not subscription]
            gone = [id_ for id_ in before if now.get(id_) is not before[id_]]
            return latest._added(follower, added, gone)

        return install
