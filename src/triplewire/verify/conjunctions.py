"""Conjunctions of operator calls, decided for one publication at a time: all subscriptions, each call at most once.

The order of the calls is a plug: `triplewire.operators.order`. Subscriptions that are more than such a conjunction are
decided by `triplewire.verify.operators`, pair by pair.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from triplewire.errors import OperatorError
from triplewire.ir.evaluation.evaluate import CallKey, CallResults, Result
from triplewire.kernels.calls import event as kernels
from triplewire.kernels.calls.event import FAILED, FALSE, TRUE, Event
from triplewire.operators.calling.caller import Portions
from triplewire.operators.order.protocol import CallOrder, Conjunctions, Numbers, Outcomes, Plan
from triplewire.operators.order.statistics import LearnedCalls
from triplewire.verify.operators import CallCounts

Ask = Callable[[Sequence[CallKey]], list[Result]]
InTurn = Callable[[Portions], None]


@dataclass(frozen=True, slots=True)
class Conjoined:
    """What came of candidates: `held` have no false call. `failures`: of those, the failed calls that keep one from an
    answer, by its number."""

    held: Numbers
    failures: dict[int, list[OperatorError]]


class ConjunctionStage:
    """Decides conjunctions. Any thread may ask it.

    `cost`: what an operator states that a call costs. `at_once`: how many calls of it are worth asking for at once.
    `is_plain`: may it be called by `InTurn`?
    """

    def __init__(
        self,
        order: CallOrder,
        learned: LearnedCalls,
        cost: Callable[[str], float | None],
        at_once: Callable[[str], int],
        is_plain: Callable[[str], bool],
    ) -> None:
        self._order = order
        self._learned = learned
        self._cost = cost
        self._at_once = at_once
        self._is_plain = is_plain
        self._traits: weakref.WeakKeyDictionary[Conjunctions, _Traits] = weakref.WeakKeyDictionary()

    def decide(
        self,
        asked: Conjunctions,
        candidates: Numbers,
        ask: Ask,
        in_turn: InTurn,
        results: CallResults,
        counts: CallCounts,
        keep: bool,
    ) -> Conjoined:
        """Make the calls: by `in_turn` where that may be, else by `ask`. `results` are those of the publication that
        have been made; to these are added those that are not false, and with `keep` all."""
        begun = time.perf_counter()
        keys, traits = self._learned.keys, self._traits_of(asked)
        known = self._known(asked, results)
        event = asked.begun(
            candidates, known, np.array([outcome_of(key := keys[asked.row[n]], results[key]) for n in known], np.int8)
        )
        needed, open_to = int(np.count_nonzero(event.count)), event.count.copy()
        expected = self._learned.expected(asked.row, traits.declared)
        plan = self._order.plan(event, asked, expected, traits.together)
        spent = _Spent(asked.row, keys, results, keep)
        if traits.is_plain:
            in_turn(spent.portions(plan))
        else:
            for portion, done in spent.portions(plan):
                done(*_timed(ask, portion, traits.together))
        calls = np.array(spent.calls, np.int32)
        uses = int(open_to[calls].sum()) if not len(known) else int(kernels.uses(event))
        counts.reused += uses - len(calls)
        counts.skipped += max(0, needed - len(calls))
        out = np.empty(len(candidates), np.int32)
        held = out[: kernels.surviving(event, out)]
        if self._learned.independence.is_due():
            self._learned.look_at_independence(asked, candidates, 1 - expected.false, held)
        self._count(asked, spent, counts, expected.cost, traits.declared)
        counts.planning_seconds += time.perf_counter() - begun - sum(spent.seconds)
        return Conjoined(held, self._failures(asked, event, held, results))

    def _traits_of(self, asked: Conjunctions) -> _Traits:
        """What is to be known of the operators of some conjunctions."""
        traits = self._traits.get(asked)
        if traits is None:
            all_names = self._learned.operators()
            names = [all_names[number] for number in np.unique(self._learned.operator_of(asked.row)).tolist()]
            traits = self._traits[asked] = _Traits(
                {name: cost for name in names if (cost := self._cost(name)) is not None},
                any(self._at_once(name) > 1 for name in names),
                all(map(self._is_plain, names)),
            )
        return traits

    def _known(self, asked: Conjunctions, results: CallResults) -> Numbers:
        """The calls that have been made before."""
        if not results:
            return np.zeros(0, np.int32)
        return np.flatnonzero(np.isin(asked.row, self._learned.rows_if_known(results))).astype(np.int32)

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


@dataclass(frozen=True, slots=True)
class _Traits:
    """Of the operators of conjunctions: the costs that they state, are calls worth asking for together, may they be
    made by `InTurn`?"""

    declared: dict[str, float]
    together: bool
    is_plain: bool


class _Spent:
    """The calls that are made of one publication, their outcomes, and the seconds of each."""

    def __init__(self, row: NDArray[np.int64], keys: Sequence[CallKey], results: CallResults, keep: bool) -> None:
        self.calls: list[int] = []
        self.outcomes: list[int] = []
        self.seconds: list[float] = []
        self._row = row
        self._keys = keys
        self._results = results
        self._keep = keep
        self._last: Outcomes = np.zeros(0, np.int8)

    def portions(self, plan: Plan) -> Portions:
        """The calls that the plan wants, and what takes their results."""
        calls = next(plan, None)
        while calls is not None:
            keys = [self._keys[row] for row in self._row[calls].tolist()]
            yield keys, partial(self._made, calls, keys)
            try:
                calls = plan.send(self._last)
            except StopIteration:
                return

    def _made(self, calls: Numbers, keys: Sequence[CallKey], answers: list[Result], seconds: list[float]) -> None:
        outcomes = np.full(len(keys), FALSE, np.int8)
        for place in [place for place, result in enumerate(answers) if result is not False]:
            outcomes[place] = outcome_of(keys[place], answers[place])
        if self._keep:
            self._results.update(zip(keys, answers, strict=True))
        else:
            self._results.update((keys[place], answers[place]) for place in np.flatnonzero(outcomes != FALSE).tolist())
        self.calls += calls.tolist()
        self.outcomes += outcomes.tolist()
        self.seconds += seconds
        self._last = outcomes


def _timed(ask: Ask, keys: Sequence[CallKey], together: bool) -> tuple[list[Result], list[float]]:
    """What came of calls, and the seconds of each: one after the other, or together where an operator takes several."""
    clock = time.perf_counter
    answers: list[Result] = []
    seconds: list[float] = []
    for portion in [keys] if together else [[key] for key in keys]:
        begun = clock()
        answers += ask(portion)
        seconds += [(clock() - begun) / len(portion)] * len(portion)
    return answers, seconds


def outcome_of(key: CallKey, result: Result) -> int:
    """What the result of a call with constants says: one of its rows has to be what was asked."""
    if isinstance(result, OperatorError):
        return FAILED
    if isinstance(result, bool):
        return TRUE if result else FALSE
    return TRUE if key.arguments in result else FALSE
