"""Calls of expensive operators (semantics, section 3, "Operator predicates"): made once for equal arguments.

What an operator is: `triplewire.model.operator`. Where a call stands in a query: `triplewire.ir.nodes.Call`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from triplewire.errors import OperatorError
from triplewire.ir.deadline import within
from triplewire.ir.nodes import Call, Variable
from triplewire.ir.state import Evaluation, Row, Solution, UnknownCall
from triplewire.model.operator import Argument, Operator
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, BlankNode, Literal


def extensions(call: Call, solution: Solution, state: Evaluation) -> Iterator[Solution]:
    """The solution, extended by each row for which the operator holds. Raises `UnknownCall` where it failed."""
    inputs = tuple(_input(argument, solution, state) for argument in call.arguments)
    outcome = _outcome(call.operator, inputs, state)
    if isinstance(outcome, OperatorError):
        state.unknown_calls += 1
        raise UnknownCall(outcome.what)
    if outcome is True:
        yield solution
    elif outcome is not False:
        for row in outcome:
            state.step()
            extended = _unified(call, row, solution)
            if extended is not None:
                yield extended


def _input(argument: Variable | IRI | Literal, solution: Solution, state: Evaluation) -> Argument:
    """A constant, or the value of a variable that more than calls bind; None for an output. So what an operator is
    asked does not depend on which other call was made before it."""
    if not isinstance(argument, Variable):
        return argument
    return None if argument.name in state.outputs else solution.get(argument.name)


def _outcome(name: str, inputs: tuple[Argument, ...], state: Evaluation) -> bool | tuple[Row, ...] | OperatorError:
    key = (name, inputs)
    outcome = state.calls.get(key)
    if outcome is None:
        try:
            outcome = _ask(name, inputs, state)
        except Exception as error:  # an operator is foreign code: whatever it raises makes this call unknown
            reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            outcome = OperatorError(f"the operator {name} failed: {reason}", source=state.publication.id)
        state.calls[key] = outcome
    return outcome


def _ask(name: str, inputs: tuple[Argument, ...], state: Evaluation) -> bool | tuple[Row, ...]:
    operator = state.world.operators.get(name)
    if operator is None:
        raise LookupError("there is no operator of this name")
    if len(operator.parameters) != len(inputs):
        raise TypeError(f"it takes {len(operator.parameters)} arguments, not {len(inputs)}")
    settings = state.world.settings
    return within(settings.operator_seconds, partial(_rows, operator, state.publication, inputs, settings.max_steps))


def _rows(
    operator: Operator, publication: Publication, inputs: tuple[Argument, ...], limit: int
) -> bool | tuple[Row, ...]:
    verdict = operator.evaluate(publication, inputs)
    if isinstance(verdict, bool):
        return verdict
    rows: dict[Row, None] = {}  # each once, in the order given
    for row in verdict:
        if len(rows) >= limit:
            raise ValueError(f"more than {limit} rows (max_steps)")
        whole = tuple(row)
        if len(whole) != len(inputs) or not all(isinstance(term, IRI | Literal | BlankNode) for term in whole):
            raise TypeError(f"a row is no tuple of {len(inputs)} terms: {whole!r:.100}")
        rows[whole] = None
    return tuple(rows)


def _unified(call: Call, row: Row, solution: Solution) -> Solution | None:
    """The solution with the row's outputs; None where the row contradicts it, a constant, or itself."""
    extended = dict(solution)
    for argument, term in zip(call.arguments, row, strict=True):
        if isinstance(argument, Variable):
            if extended.setdefault(argument.name, term) != term:
                return None
        elif argument != term:
            return None
    return extended
