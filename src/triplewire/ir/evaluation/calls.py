"""Calls of expensive operators (semantics, section 3, "Operator predicates"): what a known result means, and asking.

Evaluation never asks an operator by itself. It looks results up; a call that failed or has not been made is unknown
(`triplewire.ir.evaluation.unknown`). What an operator is: `triplewire.model.operator`. Where a call stands in a query:
`triplewire.ir.nodes.Call`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeAlias, TypeVar

from triplewire.errors import CallNotMade, OperatorError, TriplewireError, text_of_raised
from triplewire.ir.evaluation.state import Evaluation, Result, Row, Solution, World
from triplewire.ir.evaluation.unknown import (
    DOUBT,
    FALSE,
    TRUE,
    CallKey,
    Calls,
    Doubts,
    Undecided,
    Unknown,
    assumed,
    doubted,
    merged_solution,
    union,
    unknown,
)
from triplewire.ir.nodes import Call, Variable
from triplewire.model.operator import Argument, Operator, parameters_of, rows_of, takes
from triplewire.model.publication import Publication

# --- foreign code with a time limit: an operator that hangs must not hang the engine ----------------------------------

S = TypeVar("S")
T = TypeVar("T")
_Answer: TypeAlias = "SimpleQueue[tuple[Any, BaseException | None]]"
_Jobs: TypeAlias = "SimpleQueue[tuple[Callable[[], Any], _Answer] | None]"
_LOOK_SECONDS = 0.05  # between two checks whether a function of `in_turn` has run out of time


class _Helper:
    """A thread that does one job after the other until this handle is dropped."""

    def __init__(self) -> None:
        self.jobs: _Jobs = SimpleQueue()
        self.thread = threading.Thread(target=_work, args=(self.jobs,), name="triplewire-operator", daemon=True)
        self.thread.start()

    def __del__(self) -> None:
        self.jobs.put(None)


_LOCAL = threading.local()  # each thread of the engine has a helper of its own


def _handed(function: Callable[[], Any]) -> _Answer:
    """The answer of the helper, which will be there when it has run the function."""
    helper: _Helper | None = getattr(_LOCAL, "helper", None)
    if helper is None or not helper.thread.is_alive():  # none yet, or lost in a fork
        helper = _LOCAL.helper = _Helper()
    answer: _Answer = SimpleQueue()
    helper.jobs.put((function, answer))
    return answer


def _late(seconds: float, setting: str) -> TimeoutError:
    return TimeoutError(f"no answer within {seconds:g} s ({setting})")


def within(seconds: float, function: Callable[[], T], setting: str = "operator_seconds") -> T:
    """What the function returns or raises. Raises `TimeoutError`, which names the setting, when that takes longer than
    `seconds`."""
    try:
        value, error = _handed(function).get(timeout=seconds)
    except Empty:
        _LOCAL.helper = None
        raise _late(seconds, setting) from None
    if error is not None:
        raise error
    returned: T = value
    return returned


@dataclass(slots=True)
class Turn(Generic[S, T]):
    """A function to run for one item after the other, with so many seconds for each. `done` takes what it returned, or
    the `TimeoutError` of an item that ran out of time, and the seconds that each took. With `guesses`, what comes
    behind the first item that returned another object than guessed is left out. `setting`: what sets the seconds, for
    messages. `late`: items that ran out of time."""

    seconds: float
    function: Callable[[S], T]
    items: Sequence[S]
    done: Callable[[Turn[S, T]], None]
    guesses: Sequence[object] = ()
    setting: str = "operator_seconds"
    values: list[T | TimeoutError] = field(default_factory=list)
    spent: list[float] = field(default_factory=list)
    late: int = 0

    def left(self) -> Sequence[S]:
        """The items that are still to be run."""
        if self.guesses and self.values and self.values[-1] is not self.guesses[len(self.values) - 1]:
            return ()
        return self.items[len(self.values) :]


def in_turn(turns: Iterator[Turn[S, T]]) -> None:
    """Run all turns. What gives the turns, and `done`, run in the helper as well, one at a time: a
    turn may depend on what came of the one before it. Raises what any of them raises."""
    row = _TurnQueue(turns)
    while True:
        answer = _handed(row.run)
        while True:
            try:
                _, error = answer.get(timeout=_LOOK_SECONDS)
            except Empty:
                if row.given_up():
                    _LOCAL.helper = None
                    break
                continue
            if error is not None:
                raise error
            return


class _TurnQueue(Generic[S, T]):
    """The state of `in_turn`. Where a helper is left behind after a time-out, the next helper goes on with it."""

    def __init__(self, turns: Iterator[Turn[S, T]]) -> None:
        self._turns = turns
        self._lock = threading.Lock()
        self._helpers = 0
        self._turn: Turn[S, T] | None = None
        self._begun = 0.0  # when the function began that runs now; 0: none does

    def run(self) -> None:
        """Run what is left, in the present helper."""
        self._helpers += 1
        mine = self._helpers
        while True:
            if self._turn is None:
                self._turn = next(self._turns, None)
            turn = self._turn
            if turn is None:
                return
            if not self._is_run(turn, mine):
                return
            turn.done(turn)
            self._turn = None

    def _is_run(self, turn: Turn[S, T], mine: int) -> bool:
        """Run the items of a turn that are left. False: one was given up, and so is this helper."""
        clock, lock, values, spent = time.perf_counter, self._lock, turn.values, turn.spent
        function, left = turn.function, turn.left()
        guesses = turn.guesses[len(values) :] or repeat(None)
        begun = self._begun = clock()
        for item, guess in zip(left, guesses, strict=False):
            value = function(item)
            now = clock()
            with lock:
                if self._helpers != mine:
                    return False
                values.append(value)
                spent.append(now - begun)
                begun = self._begun = now
            if guess is not None and value is not guess:
                break
        with lock:
            self._begun = 0.0
        return True

    def given_up(self) -> bool:
        """Has the running function run out of time? Then its outcome is a `TimeoutError`, and its helper is retired."""
        with self._lock:
            turn = self._turn
            late = time.perf_counter() - self._begun if self._begun else 0.0
            if turn is None or late <= turn.seconds or len(turn.values) == len(turn.items):
                return False
            turn.values.append(_late(turn.seconds, turn.setting))
            turn.spent.append(late)
            turn.late += 1
            self._begun = 0.0
            self._helpers += 1
            return True


def _work(jobs: _Jobs) -> None:
    while (job := jobs.get()) is not None:
        function, answer = job
        try:
            answer.put((function(), None))
        except BaseException as error:
            answer.put((None, error))
        del job, function, answer  # nothing of a call outlives it


# --- what is known of a call, and asking ------------------------------------------------------------------------------

LOOKED_AT = 1_000  # solutions that depend on calls not made yet; then these are made, before there are more


def extensions(call: Call, solution: Solution, state: Evaluation) -> Iterator[Solution]:
    """The solution, extended by each row for which the operator holds.

    Where the call is unknown, it is the solution in doubt, with unknown values for the variables that it may bind.
    """
    result = _result(call, solution, state)
    if type(result) is Unknown:
        state.doubtful = True
        names = [a.name for a in call.arguments if isinstance(a, Variable) and a.name not in solution]
        yield doubted(solution | dict.fromkeys(names, Unknown(result.calls, bound=False).as_term()), result.calls)
    elif result is True:
        yield solution
    elif isinstance(result, tuple):
        for row in result:
            state.step()
            extended = _unified(call, row, solution)
            if extended is not None:
                yield extended


def is_true(call: Call, solution: Solution, state: Evaluation) -> bool:
    """Does the call hold, whatever it binds? Raises `Undecided`."""
    return any_certain(extensions(call, assumed(solution), state), state)


def any_certain(solutions: Iterator[Solution], state: Evaluation) -> bool:
    """Does one of the solutions exist for certain? Raises `Undecided` where there are only such in doubt."""
    doubts: Doubts | None = None
    for count, extended in enumerate(solutions, 1):
        if DOUBT not in extended:
            return True
        doubts = doubts or Doubts()
        doubts.add(extended)
        if count % LOOKED_AT == 0 and any(call not in state.results for call in doubts.calls()):
            break
    if doubts is None:
        return False
    if doubts.covered():
        return True
    raise Undecided(doubts.calls(), TRUE | FALSE)


def _result(call: Call, solution: Solution, state: Evaluation) -> Result | Unknown:
    """What is known of the call under the solution. The arguments are constants, and the values of variables that more
    than calls bind: what an operator is asked does not depend on which other call was made before it."""
    inputs: list[Argument] = []
    vague: list[Calls] = []
    for argument in call.arguments:
        if not isinstance(argument, Variable):
            inputs.append(argument)
            continue
        value = None if argument.name in state.outputs else solution.get(argument.name)
        doubt = unknown(value)
        if doubt is not None:  # as long as nobody knows what to ask, nobody asks
            vague.append(doubt.calls)
        inputs.append(value)
    if vague:
        return Unknown(union(*vague))
    key = CallKey(call.operator, tuple(inputs))
    result = state.results.get(key)
    if result is None:
        state.open[key] = None
        return Unknown((key,))
    return Unknown((key,)) if isinstance(result, OperatorError) else result


def _unified(call: Call, row: Row, solution: Solution) -> Solution | None:
    """The solution with the row's outputs; None where the row contradicts it, a constant, or itself."""
    outputs: Solution = {}
    for argument, term in zip(call.arguments, row, strict=True):
        if isinstance(argument, Variable):
            if outputs.setdefault(argument.name, term) != term or solution.get(argument.name, term) != term:
                return None
        elif argument != term:
            return None
    return merged_solution(solution, outputs)


def ask(key: CallKey, publication: Publication, world: World) -> Result:
    """Make the call. An operator is foreign code: whatever it raises, or too long a time, is a failure."""
    try:
        return attempt(key, publication, world)
    except Exception as error:
        return failure_of(key, publication, error)


def failure_of(key: CallKey, publication: Publication, error: Exception) -> OperatorError:
    """The failure of a call for what was raised."""
    what, remedy = (error.what, error.remedy) if isinstance(error, TriplewireError) else (text_of_raised(error), "")
    kind = CallNotMade if isinstance(error, CallNotMade) else OperatorError
    return kind(f"the operator {key.operator} failed: {what}", source=publication.id, remedy=remedy)


def attempt(key: CallKey, publication: Publication, world: World) -> bool | tuple[Row, ...]:
    """Make the call, in the time that the operator or else `operator_seconds` allows. Raises whatever goes wrong."""
    operator = _operator_of(key, world)
    settings = world.settings
    if getattr(operator, "keeps_time", False):  # it ends its calls by itself, and can stop what it started
        return rows_of(operator.evaluate(publication, key.arguments), key.arguments, settings.max_steps)
    seconds, setting = limit_of(operator, world)
    return within(seconds, partial(_rows, operator, publication, key.arguments, settings.max_steps), setting)


def attempt_untimed(key: CallKey, publication: Publication, world: World) -> bool | tuple[Row, ...]:
    """The same where somebody else looks after the time (`triplewire.ir.evaluation.calls.in_turn`)."""
    return _rows(_operator_of(key, world), publication, key.arguments, world.settings.max_steps)


def limit_of(operator: object, world: World) -> tuple[float, str]:
    """The seconds that a call of an operator has, and what sets them."""
    own = getattr(operator, "timeout", None)
    return (own, "its timeout") if own else (world.settings.operator_seconds, "operator_seconds")


def _operator_of(key: CallKey, world: World) -> Operator:
    operator = world.operators.get(key.operator)
    if operator is None:
        raise LookupError("there is no operator of this name")
    if parameters_of(operator, len(key.arguments)) is None:
        raise TypeError(f"it takes {takes(operator)}, not {len(key.arguments)}")
    return operator


def _rows(
    operator: Operator, publication: Publication, inputs: tuple[Argument, ...], limit: int
) -> bool | tuple[Row, ...]:
    """The answer of the operator, in a helper thread. No signal is handled there, so that what would end the process
    (`sys.exit`, `KeyboardInterrupt`) was raised by the operator, and is a failure like any other."""
    try:
        return rows_of(operator.evaluate(publication, inputs), inputs, limit)
    except Exception:
        raise
    except BaseException as error:
        raise OperatorError(text_of_raised(error)) from None
