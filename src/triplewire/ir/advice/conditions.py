"""Conditions that no value satisfies: empty intervals, and comparisons of types that never compare.

What comparison means: `triplewire.ir.values.compare`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple, TypeAlias

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
    TextTest,
    Variable,
)
from triplewire.ir.show import show
from triplewire.ir.values.compare import Text, label_of, lenient, strict, value_of
from triplewire.ir.values.dates import Duration, Moment, lenient_instant
from triplewire.ir.values.numbers import ExpressionError, Number, lenient_number
from triplewire.model.terms import IRI, XSD, Literal

Constant: TypeAlias = IRI | Literal | Label

NUMBER, TEXT, BOOLEAN, IRI_KIND, DURATION = "a number", "a text", "a boolean", "an IRI", "a duration"
FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_ORDERS = frozenset(FLIPPED)
_LOWER, _UPPER = frozenset((">", ">=", "=")), frozenset(("<", "<=", "="))
_OF_TEXT = frozenset(("CONTAINS", "STRSTARTS", "STRENDS", "REGEX"))
_TRUTHS = (Compare, TextTest, InstanceOf, FullText, AllOf, AnyOf, Negate, In, Exists, Holds)
_RESULTS = {
    **dict.fromkeys(
        ["STRLEN", "YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS", "ABS", "CEIL", "FLOOR", "ROUND"], NUMBER
    ),
    **dict.fromkeys(
        [
            "STR",
            "LANG",
            "UCASE",
            "LCASE",
            "ENCODE_FOR_URI",
            "TZ",
            "SUBSTR",
            "STRBEFORE",
            "STRAFTER",
            "REPLACE",
            "CONCAT",
        ],
        TEXT,
    ),
    **dict.fromkeys(["MD5", "SHA1", "SHA256", "SHA384", "SHA512"], TEXT),
    **dict.fromkeys(["BOUND", "ISIRI", "ISBLANK", "ISLITERAL", "ISNUMERIC", "LANGMATCHES", "SAMETERM"], BOOLEAN),
    **dict.fromkeys(_OF_TEXT, BOOLEAN),
    **dict.fromkeys(("IRI", "DATATYPE"), IRI_KIND),
    **{XSD + name: NUMBER for name in ("integer", "decimal", "float", "double")},
    XSD + "string": TEXT,
    XSD + "boolean": BOOLEAN,
}
"""What functions and casts give, where that does not depend on their arguments."""


class _Bound(NamedTuple):
    """A comparison of one variable with a constant, the variable on the left."""

    op: str
    constant: Constant
    coercion: Coercion

    def __str__(self) -> str:
        return f"{self.op} {show(self.constant)}"


def constrained(node: object) -> Variable | None:
    """The variable of which a condition says something that is looked at here."""
    if isinstance(node, Compare):
        sides = (node.left, node.right)
        variables = [side for side in sides if isinstance(side, Variable)]
        constants = [side for side in sides if isinstance(side, IRI | Literal | Label)]
        return variables[0] if len(variables) == len(constants) == 1 else None
    if isinstance(node, FullText):
        return node.variable
    if isinstance(node, Function) and node.name in _OF_TEXT and isinstance(node.arguments[0], Variable):
        return node.arguments[0]
    return None


# --- conditions that must hold together ------------------------------------------------------------------------------


def contradictions(conditions: Iterable[Expression]) -> Iterator[str]:
    """A warning for each variable that no value can have, as all these conditions must hold."""
    by_variable: dict[str, list[Expression]] = {}
    for condition in conditions:
        variable = constrained(condition)
        if variable is not None:
            by_variable.setdefault(variable.name, []).append(condition)
    for name, together in by_variable.items():
        if len(together) > 1 and (warning := _contradiction(name, together)):
            yield warning


def _contradiction(name: str, conditions: Sequence[Expression]) -> str:
    shown = "?" + name if not name.startswith(".") else "one value"
    bounds = [_bound(condition) for condition in conditions if isinstance(condition, Compare)]
    texts = [condition for condition in conditions if not isinstance(condition, Compare)]
    for bound in bounds:
        kind = _kind(bound)
        if texts and bound.coercion is Coercion.STRICT and bound.op != "!=" and kind and not kind.startswith(TEXT):
            return f"{shown} cannot be a text, as full text and its like ask, and {bound}"
    for first, second in combinations(bounds, 2):
        if first.coercion is second.coercion and (
            _differ(first, second) or _is_empty(first, second) or _is_empty(second, first)
        ):
            return f"no value is both {first} and {second}: the conditions on {shown} never hold together"
    return ""


def _bound(node: Compare) -> _Bound:
    if isinstance(node.left, Variable):
        assert isinstance(node.right, IRI | Literal | Label)
        return _Bound(node.op, node.right, node.coercion)
    assert isinstance(node.left, IRI | Literal | Label)
    return _Bound(FLIPPED.get(node.op, node.op), node.left, node.coercion)


def _kind(bound: _Bound) -> str:
    """What a value has to be to be compared with the constant; "" where that is not known, or anything will do."""
    if bound.coercion is Coercion.STRICT:
        return kind_of(bound.constant)
    text = label_of(bound.constant)
    if lenient_number(text) is not None:
        return NUMBER
    return "a date" if lenient_instant(text) is not None else ""


def _differ(first: _Bound, second: _Bound) -> bool:
    """Do the two ask for values of different kinds? Anything may be unequal to a constant, in strict comparison."""
    if first.coercion is Coercion.STRICT and "!=" in (first.op, second.op):
        return False
    kinds = _kind(first), _kind(second)
    return bool(kinds[0] and kinds[1]) and kinds[0] != kinds[1]


def _is_empty(lower: _Bound, upper: _Bound) -> bool:
    """Is there nothing between the two, or at the value that both name?"""
    if {lower.op, upper.op} == {"=", "!="}:
        return _compares("=", lower, upper)
    if lower.op not in _LOWER or upper.op not in _UPPER:
        return False
    if lower.op == upper.op == "=":
        return _are_unequal(lower, upper)
    if _compares("<", upper, lower):
        return True
    return _compares("=", upper, lower) and bool({lower.op, upper.op} & {"<", ">"})


def _are_unequal(first: _Bound, second: _Bound) -> bool:
    """Are they certainly different values? A label that is also an IRI equals two terms."""
    if any(isinstance(bound.constant, Label) and bound.constant.iri for bound in (first, second)):
        return False
    return _compares("!=", first, second)


def _compares(op: str, left: _Bound, right: _Bound) -> bool:
    """Does the comparison of the two constants hold for certain?"""
    a, b = left.constant, right.constant
    if left.coercion is Coercion.LENIENT:
        return lenient(op, a, b, constant=a)
    if isinstance(a, Label) or isinstance(b, Label):
        return False
    try:
        return strict(op, a, b)
    except ExpressionError:
        return False


# --- one comparison --------------------------------------------------------------------------------------------------


def incomparable(node: Compare) -> str:
    """What to say of a strict comparison that never holds, as its sides are of types that never compare, or one has no
    value; "" of any other."""
    if node.coercion is not Coercion.STRICT:
        return ""
    if node.op in _ORDERS:
        for side in (node.left, node.right):
            if isinstance(side, IRI):
                return f"{show(node)} never holds: an IRI has no order"
            if isinstance(side, Literal) and value_of(side) is None:
                return f"{show(node)} never holds: {show(side)} has no value that could be compared"
    left, right = kind_of(node.left), kind_of(node.right)
    if not left or not right or node.op == "!=" or left == right or _may_both_be_texts(left, right):
        return ""
    return f"{show(node)} never holds: {left} is never compared with {right}"


def _may_both_be_texts(left: str, right: str) -> bool:
    """Of the text that a function gives, the language is not known."""
    return left.startswith(TEXT) and right.startswith(TEXT) and TEXT in (left, right)


def kind_of(node: Expression) -> str:
    """What an expression's value is, if it has one: "a number", "a text", ...; "" where that is not known."""
    if isinstance(node, IRI):
        return IRI_KIND
    if isinstance(node, Literal):
        return _kind_of_literal(node)
    if isinstance(node, Function):
        return _RESULTS.get(node.name, "")
    return BOOLEAN if isinstance(node, _TRUTHS) else ""


def _kind_of_literal(literal: Literal) -> str:
    value = value_of(literal)
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, Text):
        return f"{TEXT} in {value.language}" if value.language else TEXT
    if isinstance(value, Moment):
        return f"an xsd:{literal.datatype.removeprefix(XSD)}"
    if isinstance(value, Number):
        return NUMBER
    return DURATION if isinstance(value, Duration) else ""
