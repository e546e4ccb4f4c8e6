"""Casts by datatype IRI: xsd:integer("5") and the like (SPARQL 1.1, 17.5; XPath functions 3.1, section 19)."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_DOWN, Decimal

from triplewire.ir.values import numbers
from triplewire.ir.values.compare import BOOLEAN, BOOLEANS, FALSE, TRUE, Text, Value, value_of
from triplewire.ir.values.dates import DATE, DATE_TIME, DURATIONS, MOMENTS, TIME, Moment, moment_literal, read_moment
from triplewire.ir.values.numbers import DATATYPES, DECIMAL, DOUBLE, FLOAT, INTEGER, ExpressionError, Number
from triplewire.model.terms import IRI, XSD_STRING, Literal, Term
from triplewire.model.values import MAX_DIGITS

_SPACE = " \t\n\r"  # dropped at both ends of a string that is cast


def _fail(term: Term, datatype: str) -> ExpressionError:
    return ExpressionError(f"{numbers.brief(term)} cannot be cast to <{datatype}>")


def _plain_text(value: Value) -> str | None:
    """What is to be read, of the value of a string without a language tag; None of other values."""
    return value.lexical.strip(_SPACE) if isinstance(value, Text) and not value.language else None


def _to_number(kind: int) -> Callable[[Term], Literal]:
    datatype = DATATYPES[kind]

    def cast(term: Term) -> Literal:
        value, number = value_of(term), None
        if (text := _plain_text(value)) is not None:
            number = numbers.read_number(text, datatype)
        elif isinstance(value, bool | Number):
            number = _converted(Number(INTEGER, int(value)) if isinstance(value, bool) else value, kind)
        if number is None:
            raise _fail(term, datatype)
        return numbers.number_literal(number)

    return cast


def _converted(number: Number, kind: int) -> Number | None:
    value = number.value
    if kind == DOUBLE:
        return Number(DOUBLE, numbers.to_double(value))
    if kind == FLOAT:
        return Number(FLOAT, numbers.to_float32(numbers.to_double(value)))
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if kind == INTEGER:
        if isinstance(value, Decimal) and value.adjusted() > MAX_DIGITS:
            return None
        return Number(INTEGER, int(value))
    exact = Decimal(value)
    if isinstance(value, float) and exact.as_tuple().exponent < -18:  # type: ignore[operator]  # finite: a number
        whole = int(value)
        exact = Decimal(whole) + (exact - whole).quantize(Decimal("1e-18"), rounding=ROUND_DOWN)
    return Number(DECIMAL, exact)


def _to_boolean(term: Term) -> Literal:
    value = value_of(term)
    if (text := _plain_text(value)) is not None:
        value = BOOLEANS.get(text)
    if isinstance(value, Number):
        value = value.value == value.value and value.value != 0  # NaN differs from itself
    if not isinstance(value, bool):
        raise _fail(term, BOOLEAN)
    return TRUE if value else FALSE


def _to_moment(datatype: str) -> Callable[[Term], Literal]:
    """A cast to xsd:dateTime or xsd:date, from each of them and from a string."""

    def cast(term: Term) -> Literal:
        value = value_of(term)
        if (text := _plain_text(value)) is not None:
            value = read_moment(text, datatype)
        if not isinstance(value, Moment) or value.datatype not in (DATE_TIME, DATE):
            raise _fail(term, datatype)
        return moment_literal(value, datatype)

    return cast


def _to_time(term: Term) -> Literal:
    value = value_of(term)
    if isinstance(value, Moment) and value.datatype == DATE_TIME:
        return Literal(_time_of(value), TIME)
    return _read_as(TIME)(term)


def _time_of(moment: Moment) -> str:
    """Its time of the day, and its zone, as an xsd:time is written."""
    return moment_literal(moment, DATE_TIME).lexical.partition("T")[2]


def _to_derived_integer(datatype: str) -> Callable[[Term], Literal]:
    def cast(term: Term) -> Literal:
        text = _to_number(INTEGER)(term).lexical
        if numbers.read_number(text, datatype) is None:
            raise _fail(term, datatype)
        return Literal(text, datatype)

    return cast


def _read_as(datatype: str) -> Callable[[Term], Literal]:
    """A cast from the same type, and from a string that is written as one."""

    def cast(term: Term) -> Literal:
        value = value_of(term)
        if isinstance(term, Literal) and value is not None:
            if term.datatype == datatype:
                return term
            literal = Literal(term.lexical.strip(_SPACE), datatype)
            if isinstance(value, Text) and not value.language and value_of(literal) is not None:
                return literal
        raise _fail(term, datatype)

    return cast


def _to_string(term: Term) -> Literal:
    if isinstance(term, IRI):
        return Literal(term.value)
    if not isinstance(term, Literal):
        raise _fail(term, XSD_STRING)
    value = value_of(term)
    if isinstance(value, Number):
        # XPath functions 3.1, 19.1.2.2: floating-point numbers below a millionth and from a million on have an exponent
        text, size = numbers.write_number(value), value.value
        if not isinstance(size, float) or not math.isfinite(size) or size == 0 or 1e-6 <= abs(size) < 1e6:
            return Literal(text)
        sign, digits, exponent = Decimal(text).normalize().as_tuple()
        rest = "".join(map(str, digits[1:])) or "0"
        return Literal(f"{'-' if sign else ''}{digits[0]}.{rest}E{int(exponent) + len(digits) - 1}")
    if isinstance(value, bool):
        return Literal("true" if value else "false")
    if isinstance(value, Moment) and value.datatype in (DATE_TIME, DATE):
        return Literal(moment_literal(value, value.datatype).lexical)
    return Literal(_time_of(value) if isinstance(value, Moment) and value.datatype == TIME else term.lexical)


CASTS: dict[str, Callable[[Term], Literal]] = {
    DATATYPES[INTEGER]: _to_number(INTEGER),
    DATATYPES[DECIMAL]: _to_number(DECIMAL),
    DATATYPES[FLOAT]: _to_number(FLOAT),
    DATATYPES[DOUBLE]: _to_number(DOUBLE),
    BOOLEAN: _to_boolean,
    DATE_TIME: _to_moment(DATE_TIME),
    DATE: _to_moment(DATE),
    TIME: _to_time,
    XSD_STRING: _to_string,
    **{datatype: _to_derived_integer(datatype) for datatype in numbers.NUMERIC.difference(DATATYPES)},
    **{datatype: _read_as(datatype) for datatype in (MOMENTS | DURATIONS) - {DATE_TIME, DATE, TIME}},
}
"""By datatype IRI: all datatypes that have values here.

A cast raises `ExpressionError` on a term without a value of that type."""
