"""Makes calls of operators, at once where an operator allows it: `Caller`. Guards expensive ones: `Guard`."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import attrgetter

from triplewire.errors import CallNotMade, OperatorError, OperatorFault
from triplewire.forks import new_lock
from triplewire.ir.evaluation.calls import Turn, attempt, attempt_untimed, failure_of, in_turn, limit_of
from triplewire.ir.evaluation.state import Result, Row, World
from triplewire.ir.evaluation.unknown import CallKey
from triplewire.model.operator import Traits, rows_of, traits_of
from triplewire.model.publication import Publication
from triplewire.operators.calling.budgets import Budget, budget_of
from triplewire.operators.calling.retries import with_retries

BREAKS = 3  # calls in a row that broke: a crash, no answer in time, a wrong one
FAILURES = 20  # calls in a row without an answer, those that the operator refused by itself included
PAUSE, LONGEST_PAUSE = 60.0, 3_600.0  # seconds until it is tried again


class Guard:
    """Lets calls of one operator through, or raises `CallNotMade`. Safe with threads.

    After `BREAKS` calls in a row that broke, or `FAILURES` that gave no answer, the operator is suspended. After a
    pause one call tries it; as long as that fails, the pauses double. Calls that were under way when it was suspended
    do not lengthen the pause.
    """

    def __init__(self, budget: Budget | None = None, cost: float = 1.0, clock: Callable[[], float] = time.monotonic):
        self._budget, self._cost, self._clock = budget, cost, clock
        self._lock = new_lock()
        self._broke = self._failed = 0  # in a row
        self._pause = self._until = 0.0
        self._is_tried = False  # is the call under way that tries it after a pause?
        self._why = ""

    def enter(self, calls: int = 1) -> None:
        """Before calls are made. Raises `CallNotMade` where it is suspended, or its budget is spent."""
        if self._pause:
            with self._lock:
                now = self._clock()
                if self._pause and now < self._until:
                    what = f"it is suspended, as it failed again and again; the last time: {self._why:.200}"
                    raise CallNotMade(what, remedy="mend it; it is tried again after a while")
                self._until = now + self._pause  # others wait for what comes of this call
                self._is_tried = True
        if self._budget is not None:
            self._budget.spend(self._cost * calls)

    def answered(self) -> None:
        """A call was answered."""
        if not self._failed and not self._pause:  # as nearly always, and calls may be many
            return
        with self._lock:
            self._broke = self._failed = 0
            self._pause, self._is_tried = 0.0, False

    def failed(self, error: Exception) -> None:
        """A call was not answered."""
        with self._lock:
            self._broke = self._broke + 1 if isinstance(error, OperatorFault) else 0
            self._failed += 1
            if self._is_tried or (not self._pause and (self._broke >= BREAKS or self._failed >= FAILURES)):
                self._pause, self._is_tried = min(2 * self._pause or PAUSE, LONGEST_PAUSE), False
                self._until = self._clock() + self._pause
                self._why = error.what if isinstance(error, OperatorError) else f"{type(error).__name__}: {error}"


CallRequest = tuple[Publication, CallKey]


@dataclass(slots=True)
class Wanted:
    """Calls to make. `done` takes the results and the seconds of each. With `guesses`, they are made up to the first
    whose result is not the guessed one. `of_one`: all of them are known to be of the same operator."""

    keys: Sequence[CallKey]
    guesses: Sequence[bool]
    done: Callable[[list[Result], list[float]], None]
    of_one: bool = False


Portions = Iterator[Wanted]
"""What is wanted next may depend on what came of it before."""

Attempt = Callable[[CallKey, Publication, World], "bool | tuple[Row, ...]"]


@dataclass(slots=True)
class _OperatorSlot:
    """What is needed to call one operator. `guard` is that of operators that have none of their own."""

    traits: Traits
    batch: int
    guard: Guard | None
    pool: ThreadPoolExecutor | None
    places: threading.BoundedSemaphore | None


class Caller:
    """Makes calls. Any number of threads may ask; `World.operators` has the operators."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._lock = new_lock()
        self._slots: dict[str, _OperatorSlot] = {}
        self._process = os.getpid()

    def outcomes(self, publication: Publication, keys: Sequence[CallKey]) -> list[Result]:
        """What came of calls about one publication, in the order of the keys."""
        return self.outcomes_of([(publication, key) for key in keys])

    def outcomes_of(self, requests: Sequence[CallRequest]) -> list[Result]:
        """What came of calls, in their order: at once where the operators allow it, those of one publication together
        where an operator takes several. A call that failed is an `OperatorError`."""
        results: list[Result] = [False] * len(requests)
        here: list[tuple[list[int], Callable[[], list[Result]]]] = []
        elsewhere = here[:]  # in other threads
        jobs = self._jobs(requests)
        for slot, places in jobs:
            work = partial(self._made, slot, [requests[place] for place in places])
            if slot.pool is not None and len(jobs) > 1:
                elsewhere.append((places, slot.pool.submit(work).result))
            else:
                here.append((places, work))
        for places, result_of in here + elsewhere:
            for place, result in zip(places, result_of(), strict=True):
                results[place] = result
        if (recall := self._world.recall) is not None:
            for (publication, key), result in zip(requests, results, strict=True):
                recall.keep(publication, key, result)
        return results

    def is_plain(self, operator: str) -> bool:
        """May `in_turn` call the operator: in this process, under our time limit, a call at a time?"""
        slot = self._slot(operator)
        keeps_time = getattr(self._world.operators.get(operator), "keeps_time", False)
        is_simple = slot.pool is None and slot.places is None and slot.batch == 1 and not slot.traits.retries
        return is_simple and not keeps_time

    def in_turn(self, publication: Publication, portions: Portions) -> None:
        """Make calls about one publication one after the other, all in one thread: where `is_plain` holds of their
        operators, which may be quicker than a change of threads."""
        in_turn(self._turns(publication, portions))

    def _turns(self, publication: Publication, portions: Portions) -> Iterator[Turn[CallKey, Result]]:
        for wanted in portions:
            results: list[Result] = []
            seconds: list[float] = []
            by_operator = groupby(wanted.keys, attrgetter("operator"))
            groups = [wanted.keys] if wanted.of_one else [list(group) for _, group in by_operator]
            for group in groups:
                name, before = group[0].operator, len(results)
                limit, setting = limit_of(self._world.operators.get(name), self._world)
                make = partial(self._one, self._slot(name), publication, attempt=attempt_untimed)
                told = partial(self._told, name, publication, results)
                guesses = wanted.guesses[before : before + len(group)]
                yield Turn(limit, make, group, told, guesses, setting, spent=seconds)
                if len(results) < before + len(group) or (guesses and results[-1] is not guesses[-1]):
                    break
            wanted.done(results, seconds)

    def _told(self, name: str, publication: Publication, results: list[Result], turn: Turn[CallKey, Result]) -> None:
        """Add what came of the calls of a turn to the results."""
        guard, recall = self._slot(name).guard, self._world.recall
        if recall is None and not turn.late:
            results += turn.values  # type: ignore[arg-type]  # as there is none
            return
        spent = turn.spent[len(turn.spent) - len(turn.values) :]
        for key, value, seconds in zip(turn.items, turn.values, spent, strict=False):
            if isinstance(value, TimeoutError):
                if guard is not None:
                    guard.failed(OperatorFault(f"no answer within {seconds:.0f} s"))
                results.append(failure_of(key, publication, value))
            else:
                results.append(value)
                if recall is not None:
                    recall.keep(publication, key, value)

    def concurrency(self, operator: str) -> int:
        """How many calls of an operator are worth asking for at once."""
        slot = self._slot(operator)
        return slot.traits.concurrency * slot.batch

    @property
    def at_once(self) -> int:
        """The largest number of calls at once that an operator allows."""
        return max((getattr(operator, "concurrency", 1) for operator in self._world.operators.values()), default=1)

    def _jobs(self, requests: Sequence[CallRequest]) -> list[tuple[_OperatorSlot, list[int]]]:
        """The places of requests that are made together."""
        jobs: list[tuple[_OperatorSlot, list[int]]] = []
        last: dict[tuple[str, int], list[int]] = {}  # operator, publication -> a job that may take more
        for place, (publication, key) in enumerate(requests):
            slot = self._slot(key.operator)
            together = last.get((key.operator, id(publication)))
            if together is not None and len(together) < slot.batch:
                together.append(place)
                continue
            last[key.operator, id(publication)] = places = [place]
            jobs.append((slot, places))
        return jobs

    def _slot(self, name: str) -> _OperatorSlot:
        with self._lock:
            if self._process != os.getpid():  # the threads of a parent are not those of a fork of it
                self._slots, self._process = {}, os.getpid()
            if name in self._slots:
                return self._slots[name]
            operator = self._world.operators.get(name)
            traits = traits_of(operator)
            at_once, has_no_guard = traits.concurrency, getattr(operator, "guard", None) is None
            slot = self._slots[name] = _OperatorSlot(
                traits,
                getattr(operator, "batch", 1) if hasattr(operator, "evaluate_together") else 1,
                Guard(budget_of(operator), traits.cost) if has_no_guard else None,
                ThreadPoolExecutor(at_once, thread_name_prefix=f"triplewire-{name}") if at_once > 1 else None,
                threading.BoundedSemaphore(at_once) if has_no_guard and hasattr(operator, "concurrency") else None,
            )
            return slot

    def _made(self, slot: _OperatorSlot, requests: Sequence[CallRequest]) -> list[Result]:
        """The calls of one job."""
        if len(requests) > 1:
            return self._together(requests)
        ((publication, key),) = requests
        with slot.places or contextlib.nullcontext():
            return [self._one(slot, publication, key)]

    def _one(self, slot: _OperatorSlot, publication: Publication, key: CallKey, attempt: Attempt = attempt) -> Result:
        guard = slot.guard
        try:
            if guard is not None:
                guard.enter()
        except OperatorError as error:
            return failure_of(key, publication, error)
        begun = time.monotonic()
        try:
            result: Result
            if guard is None or not slot.traits.retries:
                result = attempt(key, publication, self._world)
            else:
                longest, _ = limit_of(self._world.operators.get(key.operator), self._world)
                made = partial(attempt, key, publication, self._world)
                result = with_retries(made, guard.enter, slot.traits.retries, longest)
        except Exception as error:
            if guard is not None and isinstance(error, TimeoutError):
                guard.failed(OperatorFault(f"no answer within {time.monotonic() - begun:.0f} s"))
            elif guard is not None:
                guard.answered()  # an operator of this process that raises costs no more than one that answers
            return failure_of(key, publication, error)
        if guard is not None:
            guard.answered()
        return result

    def _together(self, requests: Sequence[CallRequest]) -> list[Result]:
        """Calls of one operator about one publication, in one exchange."""
        publication, first = requests[0]
        operator = self._world.operators[first.operator]
        limit = self._world.settings.max_steps
        parameters = len(operator.parameters)
        try:
            if any(len(key.arguments) != parameters for _, key in requests):
                raise TypeError(f"it takes {parameters} arguments")
            answers = operator.evaluate_together(publication, [key.arguments for _, key in requests])  # type: ignore[attr-defined]
            if len(answers) != len(requests):
                raise OperatorFault(f"it gives {len(answers)} answers to {len(requests)} calls")
        except Exception as error:
            return [failure_of(key, publication, error) for _, key in requests]
        results: list[Result] = []
        for (_, key), answer in zip(requests, answers, strict=True):
            try:
                if isinstance(answer, OperatorError):
                    raise answer
                results.append(rows_of(answer, key.arguments, limit))
            except Exception as error:
                results.append(failure_of(key, publication, error))
        return results
