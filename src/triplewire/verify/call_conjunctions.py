"""The operator stage for subscriptions that calls with constants decide alone, which are most: by kernels, in an order.

Each call is made once for all subscriptions of a publication that are open. Which comes next says an order
(`triplewire.operators.order`). All other pairs: `triplewire.verify.operators`.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from triplewire.errors import CallNotMade, OperatorError
from triplewire.ir.evaluation.evaluate import CallKey, CallResults, Result
from triplewire.kernels.calls import event as kernels
from triplewire.kernels.calls.event import FAILED, FALSE, TRUE, Event
from triplewire.operators.calling.caller import Portions, Wanted
from triplewire.operators.order.learned import Expected
from triplewire.operators.order.protocol import CallOrder, Conjunctions, Numbers, Outcomes, Plan
from triplewire.operators.order.statistics import LearnedCalls
from triplewire.verify.operators import CallCounts, is_true

Ask = Callable[[Sequence[CallKey]], list[Result]]
InTurn = Callable[[Portions], None]


@dataclass(frozen=True, slots=True)
class ConjunctionOutcome:
    """The outcome for the candidates. `held`: those without a false call; `failures`: number of one of them -> the
    errors of its failed calls, which leave it undecided."""

    held: Numbers
    failures: dict[int, list[OperatorError]]


@dataclass(frozen=True, eq=False)
class ConjunctionStage:
    """Decides conjunctions. Any thread may ask it.

    `cost`: what an operator states that a call costs. `at_once`: how many calls of it are worth asking for at once.
    `is_plain`: may it be called by `InTurn`?
    """

    order: CallOrder
    learned: LearnedCalls
    cost: Callable[[str], float | None]
    at_once: Callable[[str], int]
    is_plain: Callable[[str], bool]
    _traits: weakref.WeakKeyDictionary[Conjunctions, _Traits] = field(default_factory=weakref.WeakKeyDictionary)

    def decide(
        self,
        asked: Conjunctions,
        candidates: Numbers,
        ask: Ask,
        in_turn: InTurn,
        results: CallResults,
        counts: CallCounts,
        keep: bool,
    ) -> ConjunctionOutcome:
        """Make the calls: by `in_turn` where that may be, else by `ask`. `results` are those of the publication that
        have been made; to these are added those that are not false, and with `keep` all."""
        begun = time.perf_counter()
        keys, traits = self.learned.keys, self._traits_of(asked)
        is_known = np.isin(asked.row, self.learned.rows_if_known(results)) if results else np.zeros(0, np.bool_)
        known = np.flatnonzero(is_known).astype(np.int32)
        event = asked.begun(
            candidates, known, np.array([outcome_of(key := keys[asked.row[n]], results[key]) for n in known], np.int8)
        )
        needed, open_to = int(np.count_nonzero(event.count)), event.count.copy()
        expected = self.learned.expected(asked.row, traits.declared, traits.expected)
        traits.expected = traits.expected if expected.is_drawn else expected
        plan = self.order.plan(event, asked, expected, traits.together)
        spent = _CallLog(traits, results, keep)
        if traits.is_plain:
            in_turn(spent.portions(plan))
        else:
            for wanted in spent.portions(plan):
                wanted.done(*_timed(ask, wanted, traits.together))
        calls, outcomes, seconds = spent.columns()
        uses = int(open_to[calls].sum()) if not len(known) else int(kernels.uses(event))
        counts.reused += uses - len(calls)
        counts.skipped += max(0, needed - len(calls))
        out = np.empty(len(candidates), np.int32)
        held = out[: kernels.surviving(event, out)]
        if self.learned.independence.is_due():
            self.learned.look_at_independence(asked, candidates, 1 - expected.false, held)
        self._count(asked.row[calls], outcomes, seconds, counts, traits.declared, results)
        counts.planning_seconds += time.perf_counter() - begun - float(seconds.sum())
        return ConjunctionOutcome(held, self._failures(asked, event, held, results))

    def _traits_of(self, asked: Conjunctions) -> _Traits:
        """What is to be known of the operators of some conjunctions."""
        traits = self._traits.get(asked)
        if traits is None:
            all_names = self.learned.operators()
            names = [all_names[number] for number in np.unique(self.learned.operator_of(asked.row)).tolist()]
            keys = np.empty(len(asked.row), np.object_)
            keys[:] = [self.learned.keys[row] for row in asked.row.tolist()]
            declared = {name: cost for name in names if (cost := self.cost(name)) is not None}
            together, is_plain = any(self.at_once(name) > 1 for name in names), all(map(self.is_plain, names))
            traits = self._traits[asked] = _Traits(keys, declared, len(names) == 1, together, is_plain)
        return traits

    def _count(
        self,
        rows: NDArray[np.int64],
        outcomes: Outcomes,
        seconds: NDArray[np.float64],
        counts: CallCounts,
        declared: dict[str, float],
        results: CallResults,
    ) -> None:
        """Count and learn from the calls that were asked for."""
        failed, withheld = outcomes == FAILED, np.zeros(len(rows), np.bool_)
        operators, operator = self.learned.operators(), self.learned.operator_of(rows)
        for place in np.flatnonzero(failed).tolist():
            withheld[place] = isinstance(results[self.learned.keys[rows[place]]], CallNotMade)
        failed &= ~withheld
        weights = failed, outcomes == TRUE, withheld, seconds
        columns = [np.bincount(operator), *(np.bincount(operator, weight) for weight in weights)]
        for name, asked, *numbers in zip(operators, *(column.tolist() for column in columns), strict=False):
            broken, true, kept_back = map(int, numbers[:3])
            if asked:
                counts.made(name, asked - kept_back, broken, true, numbers[3], declared.get(name), kept_back)
        if failed.any() or withheld.any():
            self.learned.failed([operators[number] for number in operator[failed].tolist()])
            failed |= withheld
            rows, outcomes, seconds = rows[~failed], outcomes[~failed], seconds[~failed]
        self.learned.add(rows, outcomes == TRUE, seconds)

    def _failures(
        self, asked: Conjunctions, event: Event, held: Numbers, results: CallResults
    ) -> dict[int, list[OperatorError]]:
        """Of the subscriptions without a false call, the errors of those that failed."""
        if not (event.outcome == FAILED).any():
            return {}
        failures: dict[int, list[OperatorError]] = {}
        for number in held.tolist():
            for call in asked.call[asked.offset[number] : asked.offset[number + 1]].tolist():
                result = results.get(self.learned.keys[asked.row[call]])
                if event.outcome[call] == FAILED and isinstance(result, OperatorError):
                    failures.setdefault(number, []).append(result)
        return failures


@dataclass(slots=True)
class _Traits:
    """Facts about some conjunctions. `keys`: their calls by number; `declared`: operator -> the cost that it states;
    `of_one`: is there only one operator? `together`: is it worth while to make several calls at once? `is_plain`: may
    `InTurn` make the calls? `expected`: what was expected last and not drawn at random."""

    keys: NDArray[np.object_]
    declared: dict[str, float]
    of_one: bool
    together: bool
    is_plain: bool
    expected: Expected | None = None


class _CallLog:
    """Records the calls made about one publication: their numbers, outcomes and seconds."""

    def __init__(self, traits: _Traits, results: CallResults, keep: bool) -> None:
        self._calls: list[Numbers] = [np.zeros(0, np.int32)]
        self._outcomes: list[Outcomes] = [np.zeros(0, np.int8)]
        self._seconds: list[float] = []
        self._traits, self._results, self._keep = traits, results, keep

    def columns(self) -> tuple[Numbers, Outcomes, NDArray[np.float64]]:
        """All calls, in turn."""
        return np.concatenate(self._calls), np.concatenate(self._outcomes), np.array(self._seconds)

    def portions(self, plan: Plan) -> Portions:
        """The calls that the plan wants, and what takes their results."""
        portion = next(plan, None)
        while portion is not None:
            keys = self._traits.keys[portion.calls].tolist()
            yield Wanted(keys, portion.guesses, partial(self._made, portion.calls, keys), self._traits.of_one)
            try:
                portion = plan.send(self._outcomes[-1])
            except StopIteration:
                return

    def _made(self, calls: Numbers, keys: Sequence[CallKey], answers: list[Result], seconds: list[float]) -> None:
        try:
            outcomes = np.frombuffer(bytes(answers), np.int8) + np.int8(FALSE)  # type: ignore[arg-type]
            told = np.flatnonzero(outcomes != FALSE).tolist()
        except TypeError:  # an answer is more than a truth
            told = [place for place, result in enumerate(answers) if result is not False]
            outcomes = np.full(len(answers), FALSE, np.int8)
            for place in told:
                outcomes[place] = outcome_of(keys[place], answers[place])
        if self._keep:
            told = list(range(len(answers)))
        self._results.update([(keys[place], answers[place]) for place in told])
        self._calls.append(calls[: len(answers)])
        self._outcomes.append(outcomes)
        self._seconds += seconds


def _timed(ask: Ask, wanted: Wanted, together: bool) -> tuple[list[Result], list[float]]:
    """What came of calls, and the seconds of each: one after the other, or together where an operator takes several."""
    clock = time.perf_counter
    answers: list[Result] = []
    seconds: list[float] = []
    keys, guesses = wanted.keys, wanted.guesses
    for portion in [keys] if together and not guesses else [[key] for key in keys]:
        begun = clock()
        answers += ask(portion)
        seconds += [(clock() - begun) / len(portion)] * len(portion)
        if guesses and answers[-1] is not guesses[len(answers) - 1]:
            break
    return answers, seconds


def outcome_of(key: CallKey, result: Result) -> int:
    """FAILED, TRUE or FALSE: the outcome of a call with constants."""
    if isinstance(result, OperatorError):
        return FAILED
    return TRUE if is_true(key, result) else FALSE
