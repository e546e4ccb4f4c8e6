"""Conjunctions of operator calls, decided for one publication at a time: all subscriptions, each call at most once.

The order of the calls is a plug: `triplewire.operators.order`. Subscriptions that are more than such a conjunction are
decided by `triplewire.verify.operators`, pair by pair.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from triplewire.errors import OperatorError
from triplewire.ir.evaluation.evaluate import CallKey, CallResults, Result
from triplewire.kernels.calls import event as kernels
from triplewire.kernels.calls.event import FAILED, FALSE, TRUE, Event
from triplewire.operators.order.protocol import CallOrder, Conjunctions, Numbers, Outcomes
from triplewire.operators.order.statistics import LearnedCalls
from triplewire.verify.operators import CallCounts

Ask = Callable[[Sequence[CallKey]], list[Result]]


@dataclass(frozen=True, slots=True)
class Conjoined:
    """What came of candidates: `held` have no false call. `failures`: of those, the failed calls that keep one from an
    answer, by its number."""

    held: Numbers
    failures: dict[int, list[OperatorError]]


class ConjunctionStage:
    """Decides conjunctions. Any thread may ask it.

    `cost`: what an operator states that a call costs. `at_once`: how many calls of it are worth asking for at once.
    """

    def __init__(
        self,
        order: CallOrder,
        learned: LearnedCalls,
        cost: Callable[[str], float | None],
        at_once: Callable[[str], int],
    ) -> None:
        self._order = order
        self._learned = learned
        self._cost = cost
        self._at_once = at_once

    def decide(
        self,
        asked: Conjunctions,
        candidates: Numbers,
        ask: Ask,
        results: CallResults,
        counts: CallCounts,
        keep: bool,
    ) -> Conjoined:
        """Make the calls. `results` are those of the publication that have been made; to these are added those that
        are not false, and with `keep` all."""
        begun = time.perf_counter()
        event, keys = asked.event(candidates), self._learned.keys
        for number in self._known(asked, results):
            event.outcome[number] = outcome_of(keys[asked.row[number]], results[keys[asked.row[number]]])
        kernels.begin(event)
        names = {name: cost for name in self._learned.operators() if (cost := self._cost(name)) is not None}
        expected = self._learned.expected(asked.row, names)
        needed = int(np.count_nonzero(event.count))
        plan, spent = self._order.plan(event, asked, expected), _Spent([], [], [])
        calls = next(plan, None)
        while calls is not None:
            outcomes = self._made(asked, calls, ask, results, spent, keep)
            try:
                calls = plan.send(outcomes)
            except StopIteration:
                break
        out = np.empty(len(candidates), np.int32)
        counts.reused += int(kernels.uses(event)) - len(spent.calls)
        counts.skipped += max(0, needed - len(spent.calls))
        held = out[: kernels.surviving(event, out)]
        if self._learned.independence.is_due():
            self._learned.look_at_independence(asked, candidates, 1 - expected.false, held)
        self._count(asked, spent, counts, expected.cost, names)
        counts.planning_seconds += time.perf_counter() - begun - sum(spent.seconds)
        return Conjoined(held, self._failures(asked, event, held, results))

    def _known(self, asked: Conjunctions, results: CallResults) -> Sequence[int]:
        """The calls that have been made before."""
        if not results:
            return ()
        there: list[int] = np.flatnonzero(np.isin(asked.row, self._learned.rows_if_known(results))).tolist()
        return there

    def _made(
        self, asked: Conjunctions, calls: Numbers, ask: Ask, results: CallResults, spent: _Spent, keep: bool
    ) -> Outcomes:
        """Make some calls: one after the other, each with its time, or together where an operator takes several."""
        keys, clock = [self._learned.keys[row] for row in asked.row[calls].tolist()], time.perf_counter
        together = any(self._at_once(name) > 1 for name in {key.operator for key in keys})
        answers: list[Result] = []
        for portion in [keys] if together else [[key] for key in keys]:
            begun = clock()
            answers += ask(portion)
            spent.seconds += [(clock() - begun) / len(portion)] * len(portion)
        outcomes = np.full(len(keys), FALSE, np.int8)
        for place in [place for place, result in enumerate(answers) if result is not False]:
            outcomes[place] = outcome_of(keys[place], answers[place])
        results.update(
            (key, result)
            for key, result, outcome in zip(keys, answers, outcomes.tolist(), strict=True)
            if keep or outcome != FALSE
        )
        spent.calls += calls.tolist()
        spent.outcomes += outcomes.tolist()
        return outcomes

    def _count(
        self, asked: Conjunctions, spent: _Spent, counts: CallCounts, cost: np.ndarray, declared: dict[str, float]
    ) -> None:
        """Count and learn from the calls that were made."""
        if not spent.calls:
            return
        calls, outcomes, seconds = np.array(spent.calls), np.array(spent.outcomes), np.array(spent.seconds)
        rows, failed = asked.row[calls], outcomes == FAILED
        operators, operator = self._learned.operators(), self._learned.operator_of(rows)
        for number in np.unique(operator).tolist():
            mine = operator == number
            name = operators[number]
            total = declared[name] * int(mine.sum()) if name in declared else float(seconds[mine].sum())
            counts.made(name, int(mine.sum()), int(failed[mine].sum()), float(seconds[mine].sum()), total)
        self._learned.add(rows[~failed], outcomes[~failed] == TRUE, seconds[~failed])
        self._learned.failed([operators[number] for number in operator[failed].tolist()])

    def _failures(
        self, asked: Conjunctions, event: Event, held: Numbers, results: CallResults
    ) -> dict[int, list[OperatorError]]:
        """Of the subscriptions without a false call, the errors of those that failed."""
        if not (event.outcome == FAILED).any():
            return {}
        failures: dict[int, list[OperatorError]] = {}
        for number in held.tolist():
            for call in asked.call[asked.offset[number] : asked.offset[number + 1]].tolist():
                result = results.get(self._learned.keys[asked.row[call]])
                if event.outcome[call] == FAILED and isinstance(result, OperatorError):
                    failures.setdefault(number, []).append(result)
        return failures


@dataclass(slots=True)
class _Spent:
    """The calls that were made of one publication, their outcomes, and the seconds of each."""

    calls: list[int]
    outcomes: list[int]
    seconds: list[float]


def outcome_of(key: CallKey, result: Result) -> int:
    """What the result of a call with constants says: one of its rows has to be what was asked."""
    if isinstance(result, OperatorError):
        return FAILED
    if isinstance(result, bool):
        return TRUE if result else FALSE
    return TRUE if key.arguments in result else FALSE
