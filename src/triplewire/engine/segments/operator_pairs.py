"""The pairs of a chunk that operators decide, as rows.

Those that only calls with constants decide are decided over all subscriptions at once, and the others one by one. How:
`triplewire.verify.operators`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Ids
from triplewire.engine.chunk import Chunk
from triplewire.engine.segments.arena import Columns
from triplewire.errors import TriplewireError
from triplewire.ir.evaluation.evaluate import CallResults, World
from triplewire.ir.subscription import Subscription
from triplewire.model.publication import Publication
from triplewire.operators.order.greedy import order_named
from triplewire.operators.order.protocol import Conjunctions
from triplewire.operators.order.statistics import LearnedCalls
from triplewire.verify.call_conjunctions import ConjunctionStage
from triplewire.verify.operators import CallCounts, OperatorStage, threaded_map

Failure: TypeAlias = tuple[int, TriplewireError]
"""A subscription, by its number, and an error that keeps it undecided."""


@dataclass(frozen=True, slots=True)
class SnapshotCalls:
    """The operator calls that the subscriptions of a snapshot need. `has_calls`: subscription -> has it calls in
    `asked`? `alone`: the subscriptions that consist of calls only, which are candidates for every publication."""

    asked: Conjunctions
    has_calls: NDArray[np.bool_]
    alone: Ids


_Task: TypeAlias = tuple[int, Sequence[int], Publication, CallResults]
"""A publication's number, the subscriptions whose other parts it satisfies, itself, and the calls about it so far."""

_Outcome: TypeAlias = tuple[int, Ids, NDArray[np.bool_], list[Failure], CallCounts]
"""A publication's number, its matches, which of them are truncated, errors of undecided ones, and the calls."""


class OperatorPairs:
    """Decides pairs for snapshots of columns. Any thread may ask it."""

    def __init__(self, world: World, learned: LearnedCalls) -> None:
        self._world = world
        self.stage = OperatorStage(world, learned=learned)
        self.learned = learned
        order, caller = order_named(world.operator_order), self.stage.caller
        self._conjunctions = ConjunctionStage(order, learned, self.stage.cost, caller.concurrency, caller.is_plain)

    def decided(
        self,
        chunk: Chunk,
        calls: SnapshotCalls,
        pairs: Sequence[tuple[int, int]],
        subscription: Callable[[int], Subscription],
    ) -> tuple[Columns, list[tuple[int, int, TriplewireError]], CallCounts]:
        """Decide the pairs of a chunk that depend on operator calls: the matches; publication, subscription and error
        of undecided pairs; and the calls.

        The pairs are the subscriptions of `calls.alone` with every publication, and `pairs` (publication, subscription)
        whose other parts hold. `subscription` gives a subscription by its number. The results of calls stay in
        `chunk.calls`, for the bindings; false ones are dropped where no other pair needs them.
        """
        waiting: defaultdict[int, list[int]] = defaultdict(list)
        for publication, number in pairs:
            waiting[publication].append(number)
        counts = CallCounts()
        nothing = np.zeros(0, np.int32)
        columns: list[Columns] = [(nothing, nothing, np.zeros(0, np.bool_))]
        failures: list[tuple[int, int, TriplewireError]] = []

        # made in the thread of the caller, as that takes up the chunk
        tasks: Iterator[_Task] = (
            (place, waiting.get(place, ()), chunk.publication(place), chunk.calls.of(place))
            for place in (range(len(chunk)) if len(calls.alone) else sorted(waiting))
        )
        decide = partial(self._outcome, calls, subscription)
        for place, matches, truncated, failed, calls_made in threaded_map(decide, tasks, self.stage.caller.at_once):
            columns.append((np.full(len(matches), place, np.int32), matches, truncated))
            failures += [(place, number, error) for number, error in failed]
            counts.add(calls_made)
        if self._world.recall is not None:
            self._world.recall.flush()
        publications, numbers, cut = (np.concatenate(part) for part in zip(*columns, strict=True))
        return (publications, numbers, cut), failures, counts

    def _outcome(self, calls: SnapshotCalls, subscription: Callable[[int], Subscription], task: _Task) -> _Outcome:
        """Decide one publication: calls with constants for all subscriptions at once, other subscriptions one by
        one."""
        place, numbers, publication, results = task
        counts, waiting = CallCounts(), np.array(sorted(numbers), np.int32)
        with_calls = calls.has_calls[waiting]
        joined, rest = waiting[with_calls], waiting[~with_calls].tolist()
        recalled = {key: result for key, result in self._world.known(publication).items() if key not in results}
        matches, failures = np.zeros(0, np.int32), list[Failure]()
        if len(calls.alone) or len(joined):
            results.update(recalled)
            matches, held, failures = self._decide_conjunctions(calls, joined, task, counts, bool(rest))
            rest += held
        asking: dict[int, Subscription] = {}
        for number in rest:
            try:
                asking[number] = subscription(number)
            except TriplewireError as error:  # its text is not taken any more
                failures.append((number, error))
        answers = self.stage.decide(publication, list(asking.values()), results, counts, recalled)
        if not rest:
            for key in [key for key, result in recalled.items() if result is False and key in results]:
                del results[key]  # nobody asks again
        evaluated: dict[int, bool] = {}  # match -> is it truncated?
        for number, answer in zip(asking, answers, strict=True):
            if isinstance(answer, TriplewireError):
                failures.append((number, answer))
            elif answer.bindings:
                evaluated[number] = answer.truncated
            else:
                failures += [(number, failure) for failure in answer.failures]
        truncated = np.append(np.zeros(len(matches), np.bool_), np.array(list(evaluated.values()), np.bool_))
        return place, np.append(matches, np.array(list(evaluated), np.int32)), truncated, failures, counts

    def _decide_conjunctions(
        self, calls: SnapshotCalls, joined: Ids, task: _Task, counts: CallCounts, asks_more: bool
    ) -> tuple[Ids, list[int], list[Failure]]:
        """Decide conjunctions of calls with constants: of the subscriptions that are nothing else, those that match;
        those of `joined` whose calls do not fail them, which are left to be decided with their bindings; and what keeps
        others undecided. `asks_more`: do other subscriptions ask calls of this publication afterwards?"""
        _, _, publication, results = task
        candidates = np.union1d(calls.alone, joined).astype(np.int32) if len(joined) else calls.alone
        ask = partial(self.stage.made, publication=publication)
        in_turn = partial(self.stage.caller.in_turn, publication)
        outcome = self._conjunctions.decide(calls.asked, candidates, ask, in_turn, results, counts, asks_more)
        is_alone = np.isin(outcome.held, calls.alone) if len(joined) else np.ones(len(outcome.held), np.bool_)
        held, matches = outcome.held[~is_alone].tolist(), outcome.held[is_alone]
        undecided = [number for number in outcome.failures if number not in held]
        if undecided:
            matches = np.setdiff1d(matches, undecided).astype(np.int32)
        return matches, held, [(number, error) for number in undecided for error in outcome.failures[number]]
