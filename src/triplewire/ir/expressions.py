"""Conditions and expressions over one solution: dispatch, three-valued logic (SPARQL 1.1, 17.2).

`truth` answers a condition, `value` computes a term; both raise `ExpressionError` where SPARQL has an error. Plain
functions are in `triplewire.ir.functions`, comparisons in `triplewire.ir.compare`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from triplewire.ir import calls, compare, functions
from triplewire.ir.nodes import (
    AllOf,
    AnyOf,
    Coercion,
    Compare,
    Exists,
    Expression,
    FullText,
    Function,
    Holds,
    In,
    InstanceOf,
    Label,
    Negate,
    TextRelation,
    TextTest,
    Variable,
)
from triplewire.ir.numbers import ExpressionError
from triplewire.ir.regexes import compile_regex, matches
from triplewire.ir.search import satisfies
from triplewire.ir.state import Evaluation, Solution
from triplewire.ir.truth import FALSE, TRUE, effective_boolean_value
from triplewire.model.terms import IRI, Literal, Term

Result: TypeAlias = Term | bool


def holds(condition: Expression, solution: Solution, state: Evaluation) -> bool:
    """Does a filter keep the solution? An error counts as false."""
    try:
        return truth(condition, solution, state)
    except ExpressionError:
        return False


def truth(node: Expression, solution: Solution, state: Evaluation) -> bool:
    """The effective boolean value of an expression."""
    result = _EVALUATE[type(node)](node, solution, state)
    return result if isinstance(result, bool) else effective_boolean_value(result)


def value(node: Expression, solution: Solution, state: Evaluation) -> Term:
    """The term that an expression gives."""
    result = _EVALUATE[type(node)](node, solution, state)
    if isinstance(result, bool):
        return TRUE if result else FALSE
    return result


def _variable(node: Variable, solution: Solution, state: Evaluation) -> Term:
    try:
        return solution[node.name]
    except KeyError:
        raise ExpressionError(f"?{node.name} is unbound") from None


def _constant(node: IRI | Literal, solution: Solution, state: Evaluation) -> Term:
    return node


def _label(node: Label, solution: Solution, state: Evaluation) -> Term:
    return Literal(node.text)  # by itself; beside a lenient comparison it is more than that


# --- comparisons -------------------------------------------------------------------------------------------------


def _compare(node: Compare, solution: Solution, state: Evaluation) -> bool:
    if node.coercion is Coercion.LENIENT:
        return _lenient(node, solution, state)
    return compare.strict(node.op, value(node.left, solution, state), value(node.right, solution, state))


def _lenient(node: Compare, solution: Solution, state: Evaluation) -> bool:
    try:
        left, right = (
            side if isinstance(side, Label) else value(side, solution, state) for side in (node.left, node.right)
        )
    except ExpressionError:
        return False
    if isinstance(node.right, IRI | Literal | Label):
        return compare.lenient(node.op, left, right, constant=right)
    return compare.lenient(
        node.op, left, right, constant=left if isinstance(node.left, IRI | Literal | Label) else None
    )


_TEXT_TESTS: dict[TextRelation, Callable[[str, str], bool]] = {
    TextRelation.CONTAINS: str.__contains__,
    TextRelation.STARTS: str.startswith,
    TextRelation.ENDS: str.endswith,
}


def _text_test(node: TextTest, solution: Solution, state: Evaluation) -> bool:
    term = solution.get(node.operand.name)
    if not isinstance(term, Literal):
        return False
    try:
        if node.relation is TextRelation.REGEX:
            found = matches(compile_regex(node.text, "", state.world.settings.max_regex_bytes), term.lexical)
        else:
            found = _TEXT_TESTS[node.relation](term.lexical, node.text)
    except ExpressionError:
        return False
    return found != node.negated


def _in(node: In, solution: Solution, state: Evaluation) -> bool:
    term = value(node.operand, solution, state)
    error: ExpressionError | None = None
    for choice in node.choices:
        try:
            if compare.strict("=", term, value(choice, solution, state)):
                return not node.negated
        except ExpressionError as caught:
            error = caught
    if error is not None:
        raise error
    return node.negated


def _instance_of(node: InstanceOf, solution: Solution, state: Evaluation) -> bool:
    term = _variable(node.variable, solution, state)
    return state.world.taxonomy.holds(term, node.relation, node.cls, state.graph)


def _full_text(node: FullText, solution: Solution, state: Evaluation) -> bool:
    term = _variable(node.variable, solution, state)
    return isinstance(term, Literal) and term.has_text and satisfies(node.expression, term.lexical, state.step)


# --- logic -------------------------------------------------------------------------------------------------------


def _all_of(node: AllOf, solution: Solution, state: Evaluation) -> bool:
    return not _decided_by(False, node.conditions, solution, state)


def _any_of(node: AnyOf, solution: Solution, state: Evaluation) -> bool:
    return _decided_by(True, node.conditions, solution, state)


def _decided_by(answer: bool, conditions: tuple[Expression, ...], solution: Solution, state: Evaluation) -> bool:
    """Has one of the conditions this answer? If none has, an error among them is the error of the whole."""
    error: ExpressionError | None = None
    for condition in conditions:
        try:
            if truth(condition, solution, state) is answer:
                return True
        except ExpressionError as caught:
            error = caught
    if error is not None:
        raise error
    return False


def _negate(node: Negate, solution: Solution, state: Evaluation) -> bool:
    return not truth(node.condition, solution, state)


def _exists(node: Exists, solution: Solution, state: Evaluation) -> bool:
    return state.exists(node.group, solution, state)


def _holds(node: Holds, solution: Solution, state: Evaluation) -> bool:
    return next(calls.extensions(node.call, solution, state), None) is not None


# --- functions ---------------------------------------------------------------------------------------------------


def _function(node: Function, solution: Solution, state: Evaluation) -> Result:
    special = _SPECIAL.get(node.name)
    if special is not None:
        return special(node, solution, state)
    arguments = [value(argument, solution, state) for argument in node.arguments]
    return functions.apply(node.name, arguments, state.surroundings)


def _bound(node: Function, solution: Solution, state: Evaluation) -> bool:
    variable = node.arguments[0]
    return isinstance(variable, Variable) and variable.name in solution


def _if(node: Function, solution: Solution, state: Evaluation) -> Term:
    condition, then, otherwise = node.arguments
    return value(then if truth(condition, solution, state) else otherwise, solution, state)


def _coalesce(node: Function, solution: Solution, state: Evaluation) -> Term:
    for argument in node.arguments:
        try:
            return value(argument, solution, state)
        except ExpressionError:
            continue
    raise ExpressionError("COALESCE: every argument is an error")


_SPECIAL: dict[str, Callable[[Function, Solution, Evaluation], Result]] = {
    "BOUND": _bound,
    "IF": _if,
    "COALESCE": _coalesce,
}
"""Functions that do not get their arguments' values."""

KNOWN_FUNCTIONS = frozenset(_SPECIAL) | frozenset(functions.FUNCTIONS)
"""Every name that a Function node may have."""

_EVALUATE: dict[type, Callable[[Any, Solution, Evaluation], Result]] = {
    Variable: _variable,
    IRI: _constant,
    Literal: _constant,
    Label: _label,
    Compare: _compare,
    TextTest: _text_test,
    InstanceOf: _instance_of,
    FullText: _full_text,
    Function: _function,
    AllOf: _all_of,
    AnyOf: _any_of,
    Negate: _negate,
    In: _in,
    Exists: _exists,
    Holds: _holds,
}
