"""The operator stage: pairs that expensive calls decide, after all that is cheap has been looked at.

One publication at a time, over all subscriptions that are left: each (operator, arguments) is asked once, and only if
the answer of some pair depends on it. What depends on what says `triplewire.ir.evaluation.evaluate.decide`
(`OperatorStage`). Those that calls with constants decide alone, which are most, have a faster stage
(`ConjunctionStage`). At the end: what is kept of a chunk's publications, and several publications at once.
"""

from __future__ import annotations

import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from triplewire.bounded_cache import BoundedCache
from triplewire.errors import OperatorError, TriplewireError
from triplewire.ir.evaluation.evaluate import Answer, CallKey, CallResults, Open, Result, World, decide
from triplewire.ir.evaluation.state import Row
from triplewire.ir.subscription import Subscription
from triplewire.kernels.calls import event as kernels
from triplewire.kernels.calls.event import FAILED, FALSE, TRUE, Event
from triplewire.model.publication import Publication
from triplewire.operators.calling.caller import Caller, Portions, Wanted
from triplewire.operators.order.protocol import CallOrder, Conjunctions, Expected, Numbers, Outcomes, Plan
from triplewire.operators.order.statistics import LearnedCalls


@dataclass(slots=True)
class CallCounts:
    """What operators were asked. `reused`: outcomes that a subscription used and another one had asked for; `skipped`:
    calls that open subscriptions have, and that decide nothing any more. `seconds` are the operators' own,
    `planning_seconds` those of choosing calls, `cost` is in declared units or seconds."""

    calls: int = 0
    reused: int = 0
    skipped: int = 0
    failed: int = 0
    seconds: float = 0.0
    planning_seconds: float = 0.0
    cost: float = 0.0
    by_name: dict[str, dict[str, float]] = field(default_factory=dict)

    def made(self, operator: str, calls: int, failed: int, seconds: float, cost: float) -> None:
        """Count calls of one operator."""
        of_operator = self.by_name.setdefault(operator, {"calls": 0, "failed": 0, "seconds": 0.0, "cost": 0.0})
        for name, amount in (("calls", calls), ("failed", failed), ("seconds", seconds), ("cost", cost)):
            of_operator[name] += amount
            setattr(self, name, getattr(self, name) + amount)

    def add(self, other: CallCounts) -> None:
        """Count others as well."""
        for name in ("reused", "skipped", "planning_seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for operator, counted in other.by_name.items():
            self.made(operator, int(counted["calls"]), int(counted["failed"]), counted["seconds"], counted["cost"])


class OperatorStage:
    """Decides pairs by making calls. Any thread may ask it. `learned` counts what comes of them."""

    def __init__(self, world: World, learned: LearnedCalls | None = None) -> None:
        self._world, self._learned = world, learned
        self.caller = Caller(world)

    def decide(
        self,
        publication: Publication,
        subscriptions: Sequence[Subscription],
        results: CallResults,
        counts: CallCounts | None = None,
        recalled: CallResults | None = None,
    ) -> list[Answer | TriplewireError]:
        """The answer of each subscription, or the error that kept it from one.

        `results` are the calls of this publication that have been made already. Those made now are added, and those of
        the `recalled` ones that are needed.
        """
        counts = counts or CallCounts()
        pairs = _Pairs(publication, subscriptions, self._world, results)
        made: list[tuple[CallKey, bool, float]] = []
        failed: list[str] = []
        while pairs.waiting:
            key = self.next_call(pairs.waiting)
            if recalled is not None and key in recalled:
                results[key] = recalled[key]
                counts.reused += pairs.known(key)
                continue
            begun = time.perf_counter()
            (result,) = self.made([key], publication)
            seconds = time.perf_counter() - begun
            is_failed, cost = isinstance(result, OperatorError), self.cost(key.operator) or seconds
            counts.made(key.operator, 1, is_failed, seconds, cost)
            if isinstance(result, OperatorError):
                failed.append(key.operator)
            else:
                made.append((key, is_true(key, result), seconds))
            results[key] = result
            pairs.known(key)
        if self._learned is not None:
            self._learned.made(made)
            self._learned.failed(failed)
        return pairs.outcomes

    def next_call(self, waiting: Mapping[int, Mapping[CallKey, None]]) -> CallKey:
        """The open call that is made next: which one changes the cost, never an answer. `waiting` has those of each
        undecided pair, by its place among the subscriptions; neither it nor any of its values is empty."""
        return next(iter(next(iter(waiting.values()))))

    def made(self, keys: Sequence[CallKey], publication: Publication) -> list[Result]:
        """Make calls, at once where the operators allow it: the only place where some are made for a match."""
        return self.caller.outcomes(publication, keys)

    def cost(self, operator: str) -> float | None:
        """The cost that an operator states for a call; None where it states none."""
        stated = getattr(self._world.operators.get(operator), "cost", None)
        return float(stated) if isinstance(stated, int | float) and stated > 0 else None


def is_true(key: CallKey, result: bool | tuple[Row, ...]) -> bool:
    """Does the result make the call true? Of a call with constants alone, one of its rows has to be what was asked."""
    if isinstance(result, bool):
        return result
    return key.arguments in result if None not in key.arguments else bool(result)


class _Pairs:
    """One publication and its undecided pairs. Pairs have the places of their subscriptions."""

    def __init__(
        self, publication: Publication, subscriptions: Sequence[Subscription], world: World, results: CallResults
    ) -> None:
        self._publication, self._subscriptions, self._world = publication, subscriptions, world
        self._results = results
        self.outcomes: list[Answer | TriplewireError] = [Answer(())] * len(subscriptions)
        self.waiting: dict[int, dict[CallKey, None]] = {}
        self._needing: dict[CallKey, list[int]] = {}  # call -> the pairs that wait for it, or have done
        self._made = [0] * len(subscriptions)  # calls that each pair has had
        self._look_at = [0] * len(subscriptions)  # at so many calls, the pair is looked at again
        for place in range(len(subscriptions)):
            self._look(place)

    def _look(self, place: int) -> None:
        """Is the pair decided by what is known? If not, note what it waits for."""
        try:
            outcome = decide(self._subscriptions[place], self._publication, self._world, self._results)
        except TriplewireError as error:
            self.outcomes[place] = error
        else:
            if isinstance(outcome, Open):
                self.waiting[place] = dict.fromkeys(outcome.calls)
                self._look_at[place] = self._made[place] + outcome.at_once(self._made[place])
                for key in outcome.calls:
                    self._needing.setdefault(key, []).append(place)
                return
            self.outcomes[place] = outcome
        self.waiting.pop(place, None)

    def known(self, key: CallKey) -> int:
        """A call has been made: look again at the pairs that waited for it. Returns how many they are."""
        waited = 0
        for place in dict.fromkeys(self._needing.pop(key, ())):
            calls = self.waiting.get(place)
            if calls is None or key not in calls:
                continue
            del calls[key]
            waited += 1
            self._made[place] += 1
            if not calls or self._made[place] >= self._look_at[place]:
                self._look(place)
        return waited


@dataclass(eq=False)
class CallTable:
    """The calls of one match call that have been made, by publication. Parts of a chunk share those of the whole."""

    _results: dict[int, CallResults] = field(default_factory=dict)
    _first: int = 0

    def of(self, publication: int) -> CallResults:
        """The calls of a publication, by its number; what is added there is kept."""
        return self._results.setdefault(self._first + publication, {})

    def part(self, first: int) -> CallTable:
        """The calls about the publications from `first` on, which are numbered from 0 there."""
        return CallTable(self._results, self._first + first)


# --- conjunctions of calls -------------------------------------------------------------------------------------------


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
        self._count(asked.row[calls], outcomes, seconds, counts, traits.declared)
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
    ) -> None:
        """Count and learn from the calls that were made."""
        failed = outcomes == FAILED
        operators, operator = self.learned.operators(), self.learned.operator_of(rows)
        columns = np.bincount(operator), np.bincount(operator, failed), np.bincount(operator, seconds)
        for name, made, broken, spent in zip(operators, *(column.tolist() for column in columns), strict=False):
            if made:
                counts.made(name, made, int(broken), spent, declared[name] * made if name in declared else spent)
        if failed.any():
            self.learned.failed([operators[number] for number in operator[failed].tolist()])
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


# --- what is kept of a chunk's publications ---------------------------------------------------------------------------


_MOST_ROWS = 1 << 16  # of bindings, together with one for each answer


@dataclass(eq=False)
class AnswerTable:
    """The answers of matches of one chunk, which needed an evaluation, by verifier, publication and subscription.

    Past `_MOST_ROWS`, random answers are dropped, and evaluated again when their bindings are asked for. Parts of a
    chunk share the answers of the whole. Any thread may use it.
    """

    _answers: BoundedCache[tuple[object, int, int], Answer] = field(default_factory=BoundedCache)
    _first: int = 0

    def get(self, verifier: object, publication: int, subscription: int) -> Answer | None:
        """The answer, if it is kept."""
        return self._answers.get((verifier, self._first + publication, subscription))

    def put(self, verifier: object, publication: int, subscription: int, answer: Answer) -> None:
        """Keep the answer of a match."""
        key = verifier, self._first + publication, subscription
        self._answers.put(key, answer, 1 + len(answer.bindings), _MOST_ROWS)

    def part(self, first: int) -> AnswerTable:
        """The answers of matches of the publications from `first` on, which are numbered from 0 there."""
        return AnswerTable(self._answers, self._first + first)


class Content(Protocol):
    """The publications of a batch, by their numbers there, with all that is known of them."""

    @property
    def calls(self) -> CallTable:
        """The calls of operators that have been made about them."""

    @property
    def answers(self) -> AnswerTable:
        """The answers of matches that had to be evaluated."""

    def publication(self, number: int) -> Publication:
        """One of the publications."""


# --- several publications at once ------------------------------------------------------------------------------------


Item = TypeVar("Item")
Outcome = TypeVar("Outcome")
AHEAD = 2  # as many wait as are being decided
MOST = 64  # threads


def threaded_map(function: Callable[[Item], Outcome], items: Iterable[Item], at_once: int) -> Iterator[Outcome]:
    """Apply the function to each item, in up to `at_once` threads (at most `MOST`), so that slow operators are asked
    about several publications at once; yields the results in order."""
    if at_once <= 1:
        yield from map(function, items)
        return
    workers = min(at_once, MOST)
    running: deque[Future[Outcome]] = deque()
    with ThreadPoolExecutor(workers, thread_name_prefix="triplewire-publications") as pool:
        try:
            for item in items:
                running.append(pool.submit(function, item))
                if len(running) >= AHEAD * workers:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            for future in running:
                future.cancel()
