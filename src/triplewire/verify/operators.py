"""The operator stage: pairs that expensive calls decide, after all that is cheap has been looked at.

One publication at a time, over all subscriptions that are left: each (operator, arguments) is asked once, and only if
the answer of some pair depends on it. What depends on what says `triplewire.ir.evaluation.evaluate.decide`
(`OperatorStage`). Those that calls with constants decide alone, which are most, have a faster stage:
`triplewire.verify.call_conjunctions`. At the end: what is kept of a chunk's publications, and several publications at
once.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

from triplewire.bounded_cache import BoundedCache
from triplewire.errors import CallNotMade, OperatorError, TriplewireError
from triplewire.ir.evaluation.evaluate import Answer, CallKey, CallResults, Open, Result, World, decide, satisfies
from triplewire.ir.evaluation.state import Row
from triplewire.ir.subscription import Subscription
from triplewire.model.publication import Publication
from triplewire.operators.calling.caller import Caller
from triplewire.operators.order.call_trees import Connective, tree_of
from triplewire.operators.order.choice import CallChoice
from triplewire.operators.order.statistics import LearnedCalls


@dataclass(slots=True)
class CallCounts:
    """What operators were asked. `calls` reached them; `withheld` are those that a spent budget or a suspension kept
    back. `failed` gave no answer, `held` a true one. `reused`: outcomes that a subscription used and another one had
    asked for; `skipped`: calls that open subscriptions have, and that decide nothing any more. `seconds` are the
    operators' own, `planning_seconds` those of choosing calls, `cost` is that of operators that state one."""

    calls: int = 0
    withheld: int = 0
    reused: int = 0
    skipped: int = 0
    failed: int = 0
    held: int = 0
    seconds: float = 0.0
    planning_seconds: float = 0.0
    cost: float = 0.0
    by_name: dict[str, dict[str, float]] = field(default_factory=dict)

    def made(
        self, operator: str, calls: int, failed: int, held: int, seconds: float, cost: float | None, withheld: int = 0
    ) -> None:
        """Count calls of one operator. `cost`: what it states for a call."""
        of_operator = self.by_name.setdefault(operator, dict.fromkeys(_OF_OPERATOR, 0) | {"seconds": 0.0, "cost": 0.0})
        self._add(of_operator, (calls, failed, held, withheld, seconds, (cost or 0.0) * calls))

    def add(self, other: CallCounts) -> None:
        """Count others as well."""
        for name in ("reused", "skipped", "planning_seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for operator, counted in other.by_name.items():
            of_operator = self.by_name.setdefault(operator, dict.fromkeys(counted, 0))
            self._add(of_operator, [counted[name] for name in _OF_OPERATOR])

    def _add(self, of_operator: dict[str, float], amounts: Sequence[float]) -> None:
        for name, amount in zip(_OF_OPERATOR, amounts, strict=True):
            of_operator[name] += amount
            setattr(self, name, getattr(self, name) + amount)


_OF_OPERATOR = ("calls", "failed", "held", "withheld", "seconds", "cost")


class OperatorStage:
    """Decides pairs by making calls. Any thread may ask it. `learned` counts what comes of them."""

    def __init__(self, world: World, learned: LearnedCalls | None = None) -> None:
        self._world, self._learned = world, LearnedCalls() if learned is None else learned
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
        if not subscriptions:
            return []
        counts = counts or CallCounts()
        begun, asking = time.perf_counter(), 0.0
        choice = self.choice(subscriptions, recalled or {})
        pairs = _Pairs(publication, subscriptions, self._world, results, choice)
        made: list[tuple[CallKey, bool, float]] = []
        failed: list[str] = []
        while pairs.waiting:
            key = choice.next()
            if recalled is not None and key in recalled:
                results[key] = recalled[key]
                counts.reused += pairs.known(key)
                continue
            result, seconds = self._asked(key, publication, counts)
            asking += seconds
            if isinstance(result, OperatorError):
                failed += [] if isinstance(result, CallNotMade) else [key.operator]
            else:
                made.append((key, is_true(key, result), seconds))
                for predicate in choice.predicates(key):
                    asked = predicate.call, predicate.conditions
                    made.append((predicate.key(key), satisfies(key, result, *asked, publication, self._world), 0.0))
            results[key] = result
            pairs.known(key)
        self._learned.made(made)
        self._learned.failed(failed)
        if made or failed:
            counts.planning_seconds += time.perf_counter() - begun - asking
        return pairs.outcomes

    def choice(
        self, subscriptions: Sequence[Subscription], recalled: Container[CallKey] = (), is_drawn: bool = True
    ) -> CallChoice:
        """What says which call comes next where these are open: it changes the cost, never an answer. The outcomes of
        `recalled` calls are there already. `is_drawn`: may probabilities be drawn from what is known, now and then?"""
        trees, order = partial(_tree, subscriptions), self._world.operator_order
        return CallChoice(order, trees, self._learned, self.cost, recalled, is_drawn)

    def _asked(self, key: CallKey, publication: Publication, counts: CallCounts) -> tuple[Result, float]:
        """What came of a call, and the seconds that it took."""
        begun = time.perf_counter()
        (result,) = self.made([key], publication)
        seconds = time.perf_counter() - begun
        if isinstance(result, CallNotMade):
            counts.made(key.operator, 0, 0, 0, seconds, None, withheld=1)
        else:
            is_failed = isinstance(result, OperatorError)
            holds = not isinstance(result, OperatorError) and is_true(key, result)
            counts.made(key.operator, 1, is_failed, holds, seconds, self.cost(key.operator))
        return result, seconds

    def made(self, keys: Sequence[CallKey], publication: Publication) -> list[Result]:
        """Make calls, at once where the operators allow it: the only place where some are made for a match."""
        return self.caller.outcomes(publication, keys)

    def cost(self, operator: str) -> float | None:
        """The cost that an operator states for a call; None where it states none."""
        stated = getattr(self._world.operators.get(operator), "cost", None)
        return float(stated) if isinstance(stated, int | float) and stated > 0 else None


def _tree(subscriptions: Sequence[Subscription], place: int) -> Connective:
    return tree_of(subscriptions[place])


def is_true(key: CallKey, result: bool | tuple[Row, ...]) -> bool:
    """Does the result make the call true? Of a call with constants alone, one of its rows has to be what was asked."""
    if isinstance(result, bool):
        return result
    return key.arguments in result if None not in key.arguments else bool(result)


class _Pairs:
    """One publication and its undecided pairs. Pairs have the places of their subscriptions. `choice` is told what they
    wait for."""

    def __init__(
        self,
        publication: Publication,
        subscriptions: Sequence[Subscription],
        world: World,
        results: CallResults,
        choice: CallChoice,
    ) -> None:
        self._publication, self._subscriptions, self._world = publication, subscriptions, world
        self._results, self._choice = results, choice
        self.outcomes: list[Answer | TriplewireError] = [Answer(())] * len(subscriptions)
        self.waiting: dict[int, dict[CallKey, None]] = {}
        self._needing: dict[CallKey, list[int]] = {}  # call -> the pairs that wait for it, or have done
        self._made = [0] * len(subscriptions)  # calls that each pair has had
        self._look_at = [0] * len(subscriptions)  # at so many calls, the pair is looked at again
        for place in range(len(subscriptions)):
            self._look(place)
            if place in self.waiting:
                choice.waits(place, self.waiting[place])

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
            self._choice.waits(place, self.waiting.get(place, ()))
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
