"""Calls of expensive operators (semantics, section 3, "Operator predicates"): what a known result means, and asking.

Evaluation never asks an operator by itself. It looks results up; a call that failed or has not been made is unknown
(`triplewire.ir.evaluation.unknown`). What an operator is: `triplewire.model.operator`. Where a call stands in a query:
`triplewire.ir.nodes.Call`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from triplewire.errors import OperatorError, TriplewireError, text_of_raised
from triplewire.ir.evaluation.deadline import within
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
from triplewire.model.operator import Argument, Operator, rows_of
from triplewire.model.publication import Publication

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
    if isinstance(error, TriplewireError):
        return OperatorError(
            f"the operator {key.operator} failed: {error.what}", source=publication.id, remedy=error.remedy
        )
    return OperatorError(f"the operator {key.operator} failed: {text_of_raised(error)}", source=publication.id)


def attempt(key: CallKey, publication: Publication, world: World) -> bool | tuple[Row, ...]:
    """Make the call, in the time that the operator or else `operator_seconds` allows. Raises whatever goes wrong."""
    operator = _operator_of(key, world)
    settings = world.settings
    if getattr(operator, "keeps_time", False):  # it ends its calls by itself, and can stop what it started
        return rows_of(operator.evaluate(publication, key.arguments), len(key.arguments), settings.max_steps)
    seconds, setting = limit_of(operator, world)
    return within(seconds, partial(_rows, operator, publication, key.arguments, settings.max_steps), setting)


def attempt_untimed(key: CallKey, publication: Publication, world: World) -> bool | tuple[Row, ...]:
    """The same where somebody else looks after the time (`triplewire.ir.evaluation.deadline.in_turn`)."""
    return _rows(_operator_of(key, world), publication, key.arguments, world.settings.max_steps)


def limit_of(operator: object, world: World) -> tuple[float, str]:
    """The seconds that a call of an operator has, and what sets them."""
    own = getattr(operator, "timeout", None)
    return (own, "its timeout") if own else (world.settings.operator_seconds, "operator_seconds")


def _operator_of(key: CallKey, world: World) -> Operator:
    operator = world.operators.get(key.operator)
    if operator is None:
        raise LookupError("there is no operator of this name")
    if len(operator.parameters) != len(key.arguments):
        raise TypeError(f"it takes {len(operator.parameters)} arguments, not {len(key.arguments)}")
    return operator


def _rows(
    operator: Operator, publication: Publication, inputs: tuple[Argument, ...], limit: int
) -> bool | tuple[Row, ...]:
    """The answer of the operator, in a helper thread. No signal is handled there, so that what would end the process
    (`sys.exit`, `KeyboardInterrupt`) was raised by the operator, and is a failure like any other."""
    try:
        return rows_of(operator.evaluate(publication, inputs), len(inputs), limit)
    except Exception:
        raise
    except BaseException as error:
        raise OperatorError(text_of_raised(error)) from None
