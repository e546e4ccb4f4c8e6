"""XSD numbers as SPARQL computes with them: reading, promotion, arithmetic, rounding, writing.

Standards: XML Schema 1.1 part 2 for the lexical forms, XPath functions 3.1 sections 4.2 to 4.4 for the operators,
SPARQL 1.1 section 17.1 for the promotion integer -> decimal -> float -> double. Which numbers compare:
`triplewire.ir.values.compare`.
"""

from __future__ import annotations

import decimal
import math
import operator
import re
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple, TypeAlias

from triplewire.model.terms import XSD, Literal, Term
from triplewire.model.values import DOUBLE_FORM, INTEGER_BOUNDS, MAX_DIGITS, read_decimal, read_integer

INTEGER, DECIMAL, FLOAT, DOUBLE = range(4)
"""The kinds of numbers, in the order of promotion."""

DATATYPES = (XSD + "integer", XSD + "decimal", XSD + "float", XSD + "double")

_SHOWN = 80  # characters of a literal in a message
_FRACTION_DIGITS = 18  # of a quotient of decimals
_TOO_LARGE = 10**MAX_DIGITS
_CONTEXT = decimal.Context(
    prec=3 * MAX_DIGITS, rounding=decimal.ROUND_DOWN, traps=[], Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN
)
_QUANTUM = Decimal(1).scaleb(-_FRACTION_DIGITS)

Value: TypeAlias = int | Decimal | float


class ExpressionError(Exception):
    """SPARQL's "error": the expression has no value for this solution (SPARQL 1.1, 17.2). Never leaves `ir`."""


def brief(term: Term) -> str:
    """The beginning of a term for a message: to write out a long one takes long, and hardly any is read."""
    if isinstance(term, Literal) and len(term.lexical) > _SHOWN:
        return f"{Literal(term.lexical[:_SHOWN])}..."
    return str(term)


class Number(NamedTuple):
    """A number of one of the four kinds: `int`, `Decimal`, and `float` (rounded to 32 bits where `kind` is FLOAT)."""

    kind: int
    value: Value


_KINDS = {XSD + name: INTEGER for name in INTEGER_BOUNDS} | {
    DATATYPES[DECIMAL]: DECIMAL,
    DATATYPES[FLOAT]: FLOAT,
    DATATYPES[DOUBLE]: DOUBLE,
}
NUMERIC = frozenset(_KINDS)
"""The datatypes whose values are numbers, the thirteen integer types among them."""


def read_number(lexical: str, datatype: str) -> Number | None:
    """The number that a literal stands for; None where the lexical form is not valid for the datatype."""
    kind = _KINDS.get(datatype)
    if kind is None:
        return None
    if kind == INTEGER:
        integer = read_integer(lexical, datatype.removeprefix(XSD))
        return None if integer is None else Number(INTEGER, integer)
    if kind == DECIMAL:
        exact = read_decimal(lexical)
        return None if exact is None else Number(DECIMAL, exact)
    if not DOUBLE_FORM.fullmatch(lexical):
        return None
    number = float(lexical)  # float() knows INF and NaN, too
    return Number(kind, to_float32(number) if kind == FLOAT else number)


def to_float32(value: float) -> float:
    """The nearest single-precision number; past the largest, infinity."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def to_double(value: Value) -> float:
    """The nearest double; past the largest, infinity. The zero of exact numbers has no sign (XSD 1.1, 3.3.3)."""
    if not value and isinstance(value, Decimal):
        return 0.0
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def promote(left: Number, right: Number) -> tuple[int, Value, Value]:
    """The kind that both are computed in, and the two values in it."""
    kind = max(left.kind, right.kind)
    return kind, convert(left, kind), convert(right, kind)


def convert(number: Number, kind: int) -> Value:
    """The value as a kind that stands higher in the order of promotion (or the same)."""
    if number.kind == kind:
        return number.value
    if kind == DECIMAL:
        return Decimal(number.value)
    double = to_double(number.value)
    return to_float32(double) if kind == FLOAT else double


_COMPUTE: dict[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}


def arithmetic(sign: str, left: Number, right: Number) -> Number:
    """`+ - * /` after promotion; the quotient of two integers is a decimal. Raises `ExpressionError` on division of
    exact numbers by zero and where an exact result is too long."""
    kind, a, b = promote(left, right)
    if isinstance(a, float) and isinstance(b, float):
        result = _quotient_of_floats(a, b) if sign == "/" else _COMPUTE[sign](a, b)
        return Number(kind, to_float32(result) if kind == FLOAT else result)
    if sign == "/":
        return _quotient(Decimal(a), Decimal(b))
    if isinstance(a, int) and isinstance(b, int):
        exact = _COMPUTE[sign](a, b)
        if abs(exact) >= _TOO_LARGE:
            raise ExpressionError("an integer of too many digits")
        return Number(INTEGER, exact)
    compute = {"+": _CONTEXT.add, "-": _CONTEXT.subtract, "*": _CONTEXT.multiply}[sign]
    return _decimal(compute(Decimal(a), Decimal(b)))


def _decimal(value: Decimal) -> Number:
    if not value.is_finite() or value.adjusted() >= MAX_DIGITS or len(value.as_tuple().digits) > 2 * MAX_DIGITS:
        raise ExpressionError("a decimal of too many digits")
    return Number(DECIMAL, value)


def _quotient(a: Decimal, b: Decimal) -> Number:
    if not b:
        raise ExpressionError("division by zero")
    whole_digits = max(a.adjusted() - b.adjusted() + 1, 0)
    context = _CONTEXT.copy()
    context.prec = whole_digits + _FRACTION_DIGITS + 1
    return _decimal(_CONTEXT.quantize(context.divide(a, b), _QUANTUM))


def _quotient_of_floats(a: float, b: float) -> float:
    if b:
        return a / b
    if not a or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def negative(number: Number) -> Number:
    """Minus the number."""
    value = number.value
    return Number(number.kind, value.copy_negate() if isinstance(value, Decimal) else -value)


def absolute(number: Number) -> Number:
    """fn:abs."""
    value = number.value
    return Number(number.kind, value.copy_abs() if isinstance(value, Decimal) else abs(value))


def round_half_up(number: Number) -> Number:
    """fn:round: halves go up, towards positive infinity."""
    value = number.value
    if isinstance(value, float):
        # 2**52 and more have no fraction; a negative number that rounds to zero keeps its sign
        whole = value if not abs(value) < 2**52 else math.floor(value) + (value - math.floor(value) >= 0.5)
        return Number(number.kind, math.copysign(whole, value))
    if isinstance(value, Decimal):
        down = value.to_integral_value(decimal.ROUND_FLOOR, _CONTEXT)
        half = _CONTEXT.compare(_CONTEXT.subtract(value, down), Decimal("0.5")) >= 0
        return Number(DECIMAL, _CONTEXT.add(down, Decimal(1)) if half else down)
    return number


def rounded(number: Number, *, up: bool) -> Number:
    """fn:ceiling, or fn:floor."""
    value = number.value
    if isinstance(value, float):
        if not abs(value) < 2**52:
            return number
        whole = math.ceil(value) if up else math.floor(value)
        return Number(number.kind, math.copysign(whole, value))
    if isinstance(value, Decimal):
        return Number(DECIMAL, value.to_integral_value(decimal.ROUND_CEILING if up else decimal.ROUND_FLOOR, _CONTEXT))
    return number


def number_literal(number: Number) -> Literal:
    """The number as a literal, in the shortest form without exponent (`0.5`, `2`, `-0`, `INF`)."""
    return Literal(write_number(number), DATATYPES[number.kind])


def write_number(number: Number) -> str:
    """The lexical form of a computed number."""
    value = number.value
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "INF" if value > 0 else "-INF"
        if number.kind == FLOAT:  # the fewest digits that single precision reads back as the value
            written = (f"{value:.{digits}g}" for digits in range(1, 18))
            return _plain(Decimal(next(text for text in written if to_float32(float(text)) == value)), signed=True)
        return _plain(Decimal(repr(value)), signed=True)
    return _plain(value, signed=False)


def _plain(value: Decimal, *, signed: bool) -> str:
    text = f"{value:f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" and not signed else text


_LENIENT = re.compile(r"([+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++))(?:[eE]([+-]?)([0-9]++))?")
_EXPONENT_DIGITS = 15  # Decimal holds these; beyond, the number is as good as infinite, or zero


def lenient_number(text: str) -> Decimal | None:
    """The exact value of a label that reads as a number (semantics, section 2); None for any other label. A constant
    is trimmed before; a value is not: " 7 " is no number, as no number of XSD begins or ends with a blank.

    An exponent of more than 15 digits counts as one of 15 nines.
    """
    match = _LENIENT.fullmatch(text)
    if match is None:
        return None
    mantissa, sign, exponent = match.groups()
    if exponent is None:
        return Decimal(mantissa)
    exponent = exponent.lstrip("0") or "0"
    return Decimal(f"{mantissa}e{sign}{exponent if len(exponent) <= _EXPONENT_DIGITS else '9' * _EXPONENT_DIGITS}")
