"""The pairs of a chunk that operators decide, as rows.

How: `triplewire.verify.operators` for those that only calls with constants decide, which are most, over all
subscriptions at once; `triplewire.verify.operators` for the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Ids
from triplewire.engine.chunk import Chunk
from triplewire.errors import TriplewireError
from triplewire.ir.evaluation.evaluate import CallResults, World
from triplewire.ir.subscription import Subscription
from triplewire.model.publication import Publication
from triplewire.operators.order.greedy import order_named
from triplewire.operators.order.protocol import Conjunctions
from triplewire.operators.order.statistics import LearnedCalls
from triplewire.verify.operators import CallCounts, ConjunctionStage, OperatorStage, threaded_map

Failure: TypeAlias = tuple[int, TriplewireError]
"""A subscription, by its number, and an error that keeps it undecided."""


class OperatorDecisions(NamedTuple):
    """The outcome for a chunk. `columns`: publication, subscription and truncated of the matches; `failures`:
    publication, subscription and error of undecided pairs; `counts`: the calls."""

    columns: tuple[Ids, Ids, NDArray[np.bool_]]
    failures: list[tuple[int, int, TriplewireError]]
    counts: CallCounts


@dataclass(frozen=True, slots=True)
class SnapshotCalls:
    """The operator calls that the subscriptions of a snapshot need. `has_calls`: subscription -> has it calls in
    `asked`? `alone`: the subscriptions that consist of calls only, which are candidates for every publication."""

    asked: Conjunctions
    has_calls: NDArray[np.bool_]
    alone: Ids


class _PublicationTask(NamedTuple):
    """A publication, the subscriptions whose other parts it satisfies, and the calls about it that have been made."""

    publication: int
    waiting: Sequence[int]
    content: Publication
    made: CallResults


class _Outcome(NamedTuple):
    """The outcome for one publication: its matches, which of them are truncated, errors of undecided ones, and the
    calls."""

    publication: int
    matches: Ids
    truncated: NDArray[np.bool_]
    failures: list[Failure]
    counts: CallCounts


class OperatorPairs:
    """Decides pairs for snapshots of columns. Any thread may ask it."""

    def __init__(self, world: World, learned: LearnedCalls) -> None:
        self._world = world
        self.stage = OperatorStage(world, learned=learned)
        self.learned = learned
        self._conjunctions = ConjunctionStage(
            order_named(world.operator_order),
            self.learned,
            self.stage.cost,
            self.stage.caller.concurrency,
            self.stage.caller.is_plain,
        )

    def decided(
        self,
        chunk: Chunk,
        calls: SnapshotCalls,
        pairs: Sequence[tuple[int, int]],
        subscription: Callable[[int], Subscription],
    ) -> OperatorDecisions:
        """Decide the pairs of a chunk that depend on operator calls.

        These are the subscriptions of `calls.alone` with every publication, and `pairs` (publication, subscription)
        whose other parts hold. `subscription` gives a subscription by its number. The results of calls stay in
        `chunk.calls`, for the bindings; false ones are dropped where no other pair needs them.
        """
        waiting: defaultdict[int, list[int]] = defaultdict(list)
        for publication, number in pairs:
            waiting[publication].append(number)
        counts = CallCounts()
        nothing = np.zeros(0, np.int32)
        columns: list[tuple[Ids, Ids, NDArray[np.bool_]]] = [(nothing, nothing, np.zeros(0, np.bool_))]
        failures: list[tuple[int, int, TriplewireError]] = []

        def tasks() -> Iterator[_PublicationTask]:  # in the thread of the caller, as it takes up the chunk
            for place in range(len(chunk)) if len(calls.alone) else sorted(waiting):
                yield _PublicationTask(place, waiting.get(place, []), chunk.publication(place), chunk.calls.of(place))

        decide = partial(self._of, calls, subscription)
        for place, matches, truncated, failed, own in threaded_map(decide, tasks(), self.stage.caller.at_once):
            columns.append((np.full(len(matches), place, np.int32), matches, truncated))
            failures += [(place, number, error) for number, error in failed]
            counts.add(own)
        if self._world.recall is not None:
            self._world.recall.flush()
        publications, numbers, cut = (np.concatenate(part) for part in zip(*columns, strict=True))
        return OperatorDecisions((publications, numbers, cut), failures, counts)

    def _of(
        self, calls: SnapshotCalls, subscription: Callable[[int], Subscription], task: _PublicationTask
    ) -> _Outcome:
        """Decide one publication: calls with constants for all subscriptions at once, other subscriptions one by
        one."""
        counts, results = CallCounts(), task.made
        waiting = np.array(sorted(task.waiting), np.int32)
        with_calls = calls.has_calls[waiting]
        joined, rest = waiting[with_calls], waiting[~with_calls].tolist()
        recalled = {key: result for key, result in self._world.known(task.content).items() if key not in results}
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
        answers = self.stage.decide(task.content, list(asking.values()), results, counts, recalled)
        if not rest:
            for key in [key for key, result in recalled.items() if result is False and key in results]:
                del results[key]  # nobody asks again
        more: list[tuple[int, bool]] = []
        for number, answer in zip(asking, answers, strict=True):
            if isinstance(answer, TriplewireError):
                failures.append((number, answer))
            elif answer.bindings:
                more.append((number, answer.truncated))
            else:
                failures += [(number, failure) for failure in answer.failures]
        numbers = np.append(matches, np.array([number for number, _ in more], np.int32))
        truncated = np.append(np.zeros(len(matches), np.bool_), np.array([cut for _, cut in more], np.bool_))
        return _Outcome(task.publication, numbers, truncated, failures, counts)

    def _decide_conjunctions(
        self, calls: SnapshotCalls, joined: Ids, task: _PublicationTask, counts: CallCounts, asks_more: bool
    ) -> tuple[Ids, list[int], list[Failure]]:
        """Decide conjunctions of calls with constants: of the subscriptions that are nothing else, those that match;
        those of `joined` whose calls do not fail them, which are left to be decided with their bindings; and what keeps
        others undecided. `asks_more`: do other subscriptions ask calls of this publication afterwards?"""
        candidates = np.union1d(calls.alone, joined).astype(np.int32) if len(joined) else calls.alone
        ask = partial(self.stage.made, publication=task.content)
        in_turn = partial(self.stage.caller.in_turn, task.content)
        outcome = self._conjunctions.decide(calls.asked, candidates, ask, in_turn, task.made, counts, asks_more)
        is_alone = np.isin(outcome.held, calls.alone) if len(joined) else np.ones(len(outcome.held), np.bool_)
        held, matches = outcome.held[~is_alone].tolist(), outcome.held[is_alone]
        undecided = [number for number in outcome.failures if number not in held]
        if undecided:
            matches = np.setdiff1d(matches, undecided).astype(np.int32)
        return matches, held, [(number, error) for number in undecided for error in outcome.failures[number]]
