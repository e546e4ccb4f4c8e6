"""Conditions that no value satisfies: empty intervals, and comparisons of types that never compare.

What comparison means: `triplewire.ir.values.compare`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from triplewire.ir import nodes as ir
from triplewire.ir.show import show
from triplewire.ir.values.compare import Text, label_of, value_of
from triplewire.ir.values.dates import Duration, Moment, duration_ends, lenient_instant
from triplewire.ir.values.numbers import DECIMAL, Number, lenient_number, to_double, to_float32
from triplewire.model.terms import IRI, XSD, Literal

NUMBER, TEXT, BOOLEAN, IRI_KIND, DURATION = "a number", "a text", "a boolean", "an IRI", "a duration"
FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_ORDERS = frozenset(FLIPPED)
_OPPOSITES = {"=": "!=", "!=": "="}
_LOWER, _UPPER = frozenset((">", ">=", "=")), frozenset(("<", "<=", "="))
_ROUNDED = "rounded"  # the line of all numbers, as float
OF_TEXT = frozenset(("CONTAINS", "STRSTARTS", "STRENDS", "REGEX"))
"""Functions of a text that are true or false."""
_ARITHMETIC = frozenset(("+", "-", "*", "/", "NEGATE", "PLUS"))
_NUMBERS = ("STRLEN", "YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS", "ABS", "CEIL", "FLOOR", "ROUND")
_STRINGS = ("STR", "LANG", "UCASE", "LCASE", "ENCODE_FOR_URI", "TZ", "SUBSTR", "STRBEFORE", "STRAFTER", "REPLACE")
_RESULTS = {
    "NOW": "an xsd:dateTime",
    **dict.fromkeys((*_ARITHMETIC, *_NUMBERS), NUMBER),
    **dict.fromkeys((*_STRINGS, "CONCAT", "MD5", "SHA1", "SHA256", "SHA384", "SHA512"), TEXT),
    **dict.fromkeys(["BOUND", "ISIRI", "ISBLANK", "ISLITERAL", "ISNUMERIC", "LANGMATCHES", "SAMETERM"], BOOLEAN),
    **dict.fromkeys(OF_TEXT, BOOLEAN),
    **dict.fromkeys(("IRI", "DATATYPE"), IRI_KIND),
    **{XSD + name: NUMBER for name in ("integer", "decimal", "float", "double")},
    **{XSD + name: f"an xsd:{name}" for name in ("date", "dateTime")},
    XSD + "string": TEXT,
    XSD + "boolean": BOOLEAN,
}
"""What functions and casts give, where that does not depend on their arguments."""


_Place: TypeAlias = tuple[Hashable, Any]
"""A line, and a point of it: points of one line have an order."""


class _Bound(NamedTuple):
    """A comparison of one variable with a constant, the variable on the left."""

    op: str
    constant: ir.Constant
    coercion: ir.Coercion

    def __str__(self) -> str:
        return f"{self.op} {show(self.constant)}"


class _End(NamedTuple):
    """Where values end that satisfy a bound: `at` a point of a line, which is left out where the end is open."""

    line: Hashable
    at: Any
    is_open: bool
    bound: _Bound


def constrained(node: object) -> ir.Variable | None:
    """The variable of which a condition says something that is looked at here."""
    if isinstance(node, ir.Compare):
        sides = (node.left, node.right)
        variables = [side for side in sides if isinstance(side, ir.Variable)]
        constants = [side for side in sides if isinstance(side, ir.Constant)]
        return variables[0] if len(variables) == len(constants) == 1 else None
    if isinstance(node, ir.FullText):
        return node.variable
    if isinstance(node, ir.Function) and node.name in OF_TEXT and isinstance(node.arguments[0], ir.Variable):
        return node.arguments[0]
    return None


def contradictions(conditions: Iterable[ir.Expression]) -> Iterator[str]:
    """A warning for each variable that no value can have, as all these conditions must hold."""
    by_variable: dict[str, list[ir.Expression]] = {}
    for condition in conditions:
        variable = constrained(condition)
        if variable is not None:
            by_variable.setdefault(variable.name, []).append(condition)
    for name, together in by_variable.items():
        if len(together) > 1 and (warning := _contradiction(name, together)):
            yield warning


def _contradiction(name: str, conditions: Sequence[ir.Expression]) -> str:
    shown = "?" + name if not name.startswith(".") else "one value"
    bounds = [_bound(condition) for condition in conditions if isinstance(condition, ir.Compare)]
    if len(bounds) < len(conditions):
        for bound in bounds:
            kind = _kind(bound)
            if bound.coercion is ir.Coercion.STRICT and bound.op != "!=" and kind and not kind.startswith(TEXT):
                return f"{shown} cannot be a text, as full text and its like ask, and {bound}"
    held = _Held()
    for bound in bounds:
        if (other := held.excludes(bound)) is not None:
            return f"no value is both {other} and {bound}: the conditions on {shown} never hold together"
    return ""


def _bound(node: ir.Compare) -> _Bound:
    if isinstance(node.left, ir.Variable):
        assert isinstance(node.right, ir.Constant)
        return _Bound(node.op, node.right, node.coercion)
    assert isinstance(node.left, ir.Constant)
    return _Bound(FLIPPED.get(node.op, node.op), node.left, node.coercion)


class _Held:
    """The bounds of one variable that were looked at. Only the tightest of each line are kept, so that a bound is held
    against few others, however many there are."""

    def __init__(self) -> None:
        self._kinds: dict[ir.Coercion, tuple[str, _Bound]] = {}
        self._equal: dict[tuple[str, Hashable], _Bound] = {}
        self._lower: dict[Hashable, _End] = {}
        self._upper: dict[Hashable, _End] = {}

    def excludes(self, bound: _Bound) -> _Bound | None:
        """An earlier bound that no value satisfies together with this one, if one is found; this one is kept."""
        kind = _kind(bound)
        if kind and not (bound.coercion is ir.Coercion.STRICT and bound.op == "!="):
            known, other = self._kinds.setdefault(bound.coercion, (kind, bound))
            if known != kind:
                return other
        value, places = (_lenient_places if bound.coercion is ir.Coercion.LENIENT else _strict_places)(bound)
        if bound.op in _OPPOSITES:
            opposite = self._equal.get((_OPPOSITES[bound.op], value))
            if opposite is not None:
                return opposite
            self._equal.setdefault((bound.op, value), bound)
        for line, at in places:
            end = _End(line, at, bound.op in ("<", ">") and line != _ROUNDED, bound)
            lower, upper = self._lower.get(line), self._upper.get(line)
            if bound.op in _UPPER:
                if lower is not None and _leaves_nothing(lower, end):
                    return lower.bound
                if upper is None or (end.at, not end.is_open) < (upper.at, not upper.is_open):
                    self._upper[line] = end
            if bound.op in _LOWER:
                if upper is not None and _leaves_nothing(end, upper):
                    return upper.bound
                if lower is None or (end.at, end.is_open) > (lower.at, lower.is_open):
                    self._lower[line] = end
        return None


def _leaves_nothing(lower: _End, upper: _End) -> bool:
    if lower.is_open or upper.is_open:
        return bool(lower.at >= upper.at)
    return lower.line != DECIMAL and bool(lower.at > upper.at)  # a float may equal two decimals


def _lenient_places(bound: _Bound) -> tuple[Hashable, tuple[_Place, ...]]:
    """What constants share if whatever equals one of them equals all; and where the bound lies on lines on which the
    order of two constants decides. A value is read as the constant is, so numbers, instants and texts are lines of
    their own."""
    text = label_of(bound.constant)
    for kind in (lenient_number, lenient_instant):
        reading = kind(text.strip())
        if reading is not None:
            return (kind, reading), ((kind, reading),)
    if isinstance(bound.constant, ir.Label) and bound.constant.iri:
        return bound.constant, () if bound.op == "=" else ((ir.Label, text),)  # `=` may mean the IRI, too
    return (ir.Label, text), ((ir.Label, text),)


def _strict_places(bound: _Bound) -> tuple[Hashable, tuple[_Place, ...]]:
    """The same, whatever the type of the value. Two numbers are compared as the wider type of both. So the order of
    constants decides where it survives rounding to the narrowest type that rounds, or where both are exact, float, or
    double."""
    constant = bound.constant
    value = value_of(constant) if isinstance(constant, Literal) else None
    if isinstance(value, Number):
        if value.value != value.value:
            return constant, ()
        place = max(value.kind, DECIMAL), value.value
        return place, (place, (_ROUNDED, to_float32(to_double(value.value))))
    if isinstance(value, Duration):
        return value, ((DURATION, duration_ends(value)),)
    line: Hashable = kind_of(constant)
    if isinstance(value, Text):
        return (line, value.lexical), ((line, value.lexical),)
    if isinstance(value, Moment):
        line = line, value.zone is None
        return (line, value.instant), ((line, value.instant),)
    if isinstance(constant, IRI):
        return constant, ((IRI_KIND, constant.value),)
    return ((line, value), ((line, value),)) if isinstance(value, bool) else (constant, ())


def _kind(bound: _Bound) -> str:
    """What a value has to be to be compared with the constant; "" where that is not known, or anything will do."""
    if bound.coercion is ir.Coercion.STRICT:
        return kind_of(bound.constant)
    text = label_of(bound.constant).strip()
    if lenient_number(text) is not None:
        return NUMBER
    return "a date" if lenient_instant(text) is not None else ""


def incomparable(node: ir.Compare) -> str:
    """What to say of a strict comparison that never holds, as its sides are of types that never compare, or one has no
    value; "" of any other."""
    if node.coercion is not ir.Coercion.STRICT:
        return ""
    for side in (node.left, node.right):
        if isinstance(side, ir.Function) and side.name in _ARITHMETIC:
            for operand in side.arguments:
                if kind_of(operand) not in ("", NUMBER):
                    return f"{show(node)} never holds: there is arithmetic of numbers only, and {show(operand)} is none"
    if node.op in _ORDERS:
        for side in (node.left, node.right):
            if isinstance(side, IRI):
                return f"{show(node)} never holds: an IRI has no order"
            if isinstance(side, Literal) and value_of(side) is None:
                return f"{show(node)} never holds: {show(side)} has no value that could be compared"
    elif node.op == "=":
        for side, other in ((node.left, node.right), (node.right, node.left)):
            if isinstance(side, ir.Function) and side.name == "LANG" and isinstance(other, Literal):
                tag = other.lexical.lower()
                if tag != other.lexical:
                    return f"{show(node)} never holds: LANG gives tags in lower case; write {show(Literal(tag))}"
    left, right = kind_of(node.left), kind_of(node.right)
    if not left or not right or node.op == "!=" or left == right:
        return ""
    if TEXT in (left, right) and left.startswith(TEXT) and right.startswith(TEXT):
        return ""  # of the text that a function gives, the language is not known
    return f"{show(node)} never holds: {left} is never compared with {right}"


def kind_of(node: ir.Expression) -> str:
    """What an expression's value is, if it has one: "a number", "a text", ...; "" where that is not known."""
    if isinstance(node, IRI):
        return IRI_KIND
    if isinstance(node, ir.Function):
        return _RESULTS.get(node.name, "")
    if not isinstance(node, Literal):
        return BOOLEAN if isinstance(node, ir.Condition) else ""
    value = value_of(node)
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, Text):
        return f"{TEXT} in {value.language}" if value.language else TEXT
    if isinstance(value, Moment):
        return f"an xsd:{value.datatype.removeprefix(XSD)}"
    if isinstance(value, Number):
        return NUMBER
    return DURATION if isinstance(value, Duration) else ""
