"""Conditions and expressions over one solution: dispatch, three-valued logic (SPARQL 1.1, 17.2).

`truth` answers a condition, `value` computes a term; both raise `ExpressionError` where SPARQL has an error, and
`Undecided`, which is one of these, where the value depends on unknown operator calls. Plain functions are in
`triplewire.ir.values.functions`, comparisons in `triplewire.ir.values.compare`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from triplewire.ir import nodes as ir
from triplewire.ir.evaluation import calls
from triplewire.ir.evaluation.state import Evaluation, Solution
from triplewire.ir.evaluation.unknown import ERROR, Undecided, connected, union, unknown
from triplewire.ir.fulltext import satisfies
from triplewire.ir.values import compare, functions, regexes
from triplewire.ir.values.compare import FALSE, TRUE, effective_boolean_value
from triplewire.ir.values.numbers import ExpressionError
from triplewire.model.terms import IRI, Literal, Term

Result: TypeAlias = Term | bool


def holds(condition: ir.Expression, solution: Solution, state: Evaluation) -> bool:
    """Does a filter that asks no operator keep the solution? An error counts as false."""
    try:
        return truth(condition, solution, state)
    except ExpressionError:
        return False


def truth(node: ir.Expression, solution: Solution, state: Evaluation) -> bool:
    """The effective boolean value of an expression."""
    result = _EVALUATE[type(node)](node, solution, state)
    if isinstance(result, bool):
        return result
    state.step(regexes.of_reading(result, times=regexes.TYPED))
    return effective_boolean_value(result)


def value(node: ir.Expression, solution: Solution, state: Evaluation) -> Term:
    """The term that an expression gives."""
    result = _EVALUATE[type(node)](node, solution, state)
    if isinstance(result, bool):
        return TRUE if result else FALSE
    return result


def _variable(node: ir.Variable, solution: Solution, state: Evaluation) -> Term:
    try:
        term = solution[node.name]
    except KeyError:
        raise ExpressionError(f"?{node.name} is unbound") from None
    if state.doubtful and (doubt := unknown(term)) is not None:
        raise Undecided(doubt.calls)
    return term


def _values(nodes: Iterable[ir.Expression], solution: Solution, state: Evaluation) -> list[Term]:
    """The values of all: an error where one of them has one, else in doubt where one is, by the calls of all."""
    terms: list[Term] = []
    doubts: list[Undecided] = []
    for node in nodes:
        try:
            terms.append(value(node, solution, state))
        except Undecided as doubt:
            doubts.append(doubt)
    if doubts:
        raise Undecided(union(*(doubt.calls for doubt in doubts)))
    return terms


def _compare(node: ir.Compare, solution: Solution, state: Evaluation) -> bool:
    if node.coercion is ir.Coercion.LENIENT:
        return _lenient(node, solution, state)
    left, right = _values((node.left, node.right), solution, state)
    return _strict(node.op, left, right, state)


def _strict(op: str, left: Term, right: Term, state: Evaluation) -> bool:
    state.step(1 + regexes.of_reading(left, right, times=regexes.TYPED))
    return compare.strict(op, left, right)


def _lenient(node: ir.Compare, solution: Solution, state: Evaluation) -> bool:
    sides = (node.left, node.right)
    try:
        terms = _values([side for side in sides if not isinstance(side, ir.Label)], solution, state)
    except Undecided:
        raise
    except ExpressionError:
        return False
    state.step(1 + regexes.of_reading(*terms, times=regexes.TYPED))
    in_order = iter(terms)
    left, right = (side if isinstance(side, ir.Label) else next(in_order) for side in sides)
    constant = right if isinstance(node.right, ir.Constant) else left if isinstance(node.left, ir.Constant) else None
    return compare.lenient(node.op, left, right, constant=constant)


TEXT_TESTS: dict[ir.TextRelation, Callable[[str, str], bool]] = {
    ir.TextRelation.CONTAINS: str.__contains__,
    ir.TextRelation.STARTS: str.startswith,
    ir.TextRelation.ENDS: str.endswith,
}
"""What the relations say of a text and a part of it; a regular expression needs steps besides."""


def _text_test(node: ir.TextTest, solution: Solution, state: Evaluation) -> bool:
    term = solution.get(node.operand.name)
    if not isinstance(term, Literal):
        if (doubt := unknown(term)) is not None:
            raise Undecided(doubt.calls)
        return False
    try:
        if node.relation is ir.TextRelation.REGEX:
            pattern = regexes.compile_regex(node.text, "", state.world.settings.max_regex_bytes)
            is_match = regexes.matches(pattern, term.lexical, state.step)
        else:
            state.step(regexes.of_reading(term))
            is_match = TEXT_TESTS[node.relation](term.lexical, node.text)
    except ExpressionError:
        return False
    return is_match != node.negated


def _in(node: ir.In, solution: Solution, state: Evaluation) -> bool:
    term = value(node.operand, solution, state)
    try:
        is_in = _decided_by(
            True, node.choices, lambda choice: _strict("=", term, value(choice, solution, state), state)
        )
    except Undecided as doubt:
        raise doubt.negated() if node.negated else doubt from None
    return is_in != node.negated


def _full_text(node: ir.FullText, solution: Solution, state: Evaluation) -> bool:
    term = _variable(node.variable, solution, state)
    return isinstance(term, Literal) and term.has_text and satisfies(node.expression, term.lexical, state.reader)


def _decided_by(
    answer: bool, conditions: tuple[ir.Expression, ...], answer_of: Callable[[ir.Expression], bool]
) -> bool:
    """Has one of the conditions this answer? If none has, raises `Undecided` where conditions in doubt may still have
    it, else an error of one of them."""
    doubts: list[Undecided] = []
    error: ExpressionError | None = None
    for condition in conditions:
        try:
            if answer_of(condition) is answer:
                return True
        except Undecided as doubt:
            doubts.append(doubt)
        except ExpressionError as caught:
            error = caught
    if doubts:
        raise connected(answer, doubts, error)
    if error is not None:
        raise error
    return False


def _negate(node: ir.Negate, solution: Solution, state: Evaluation) -> bool:
    try:
        return not truth(node.condition, solution, state)
    except Undecided as doubt:
        raise doubt.negated() from None


def _function(node: ir.Function, solution: Solution, state: Evaluation) -> Result:
    special = _SPECIAL.get(node.name)
    if special is not None:
        return special(node, solution, state)
    arguments = _values(node.arguments, solution, state)
    state.step(len(arguments) // regexes.ARGUMENTS)
    return functions.apply(node.name, arguments, state.surroundings)


def _bound(node: ir.Function, solution: Solution, state: Evaluation) -> bool:
    variable = node.arguments[0]
    if not isinstance(variable, ir.Variable) or variable.name not in solution:
        return False
    doubt = unknown(solution[variable.name])
    if doubt is not None and not doubt.bound:
        raise Undecided(doubt.calls)
    return True


def _if(node: ir.Function, solution: Solution, state: Evaluation) -> Term:
    condition, then, otherwise = node.arguments
    try:
        chosen = then if truth(condition, solution, state) else otherwise
    except Undecided as doubt:
        raise Undecided(doubt.calls) from None  # whatever the two branches are
    return value(chosen, solution, state)


def _coalesce(node: ir.Function, solution: Solution, state: Evaluation) -> Term:
    for argument in node.arguments:
        try:
            return value(argument, solution, state)
        except Undecided as doubt:
            raise Undecided(doubt.calls) if doubt.possible & ERROR else doubt from None
        except ExpressionError:
            state.step(1)
    raise ExpressionError("COALESCE: every argument is an error")


_SPECIAL: dict[str, Callable[[ir.Function, Solution, Evaluation], Result]] = {
    "BOUND": _bound,
    "IF": _if,
    "COALESCE": _coalesce,
}
"""Functions that do not get their arguments' values."""

KNOWN_FUNCTIONS = frozenset(_SPECIAL) | frozenset(functions.FUNCTIONS)
"""Every name that a Function node may have."""

_EVALUATE: dict[type, Callable[[Any, Solution, Evaluation], Result]] = {
    ir.Variable: _variable,
    IRI: lambda node, solution, state: node,
    Literal: lambda node, solution, state: node,
    ir.Label: lambda node, solution, state: Literal(node.text),  # beside a lenient comparison it is more than that
    ir.Compare: _compare,
    ir.TextTest: _text_test,
    ir.InstanceOf: lambda node, solution, state: state.world.taxonomy.holds(
        _variable(node.variable, solution, state), node.relation, node.cls, state.graph
    ),
    ir.FullText: _full_text,
    ir.Function: _function,
    ir.AllOf: lambda node, solution, state: (
        not _decided_by(False, node.conditions, lambda part: truth(part, solution, state))
    ),
    ir.AnyOf: lambda node, solution, state: _decided_by(
        True, node.conditions, lambda part: truth(part, solution, state)
    ),
    ir.Negate: _negate,
    ir.In: _in,
    ir.Exists: lambda node, solution, state: state.exists(node.group, solution, state),
    ir.Holds: lambda node, solution, state: calls.is_true(node.call, solution, state),
}
