"""Comparison of RDF terms, in the two coercions of semantics section 2.

`strict` is SPARQL's operator mapping (SPARQL 1.1, 17.3 and 17.3.1), extended, as 17.3.1 allows, to the other XSD
dates, to durations, and to strings of one language. `lenient` takes terms for plain labels. Neither changes a term:
two terms may be equal here and still be different terms of a graph. Numbers and dates themselves:
`triplewire.ir.values.numbers`, `triplewire.ir.values.dates`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from triplewire.bounded_cache import cached_if_short
from triplewire.ir.nodes import Label
from triplewire.ir.values import dates
from triplewire.ir.values.dates import Duration, Instant, Moment, lenient_instant
from triplewire.ir.values.numbers import NUMERIC, ExpressionError, Number, brief, lenient_number, promote, read_number
from triplewire.model.terms import IRI, XSD, XSD_STRING, BlankNode, Literal, Term

BOOLEAN = XSD + "boolean"
BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
"""The lexical forms of xsd:boolean."""

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Text(NamedTuple):
    """The value of a string; `language` is "" without a tag."""

    lexical: str
    language: str


Value: TypeAlias = Text | Number | bool | Moment | Duration | None
"""What a literal stands for; None where the datatype is unknown or the lexical form is not valid for it."""


def value_of(term: Term) -> Value:
    """The value of a literal; None for another term."""
    if not isinstance(term, Literal):
        return None
    if term.datatype == XSD_STRING or term.language:
        return Text(term.lexical, term.language)
    return _typed(term) if len(term.lexical) < 64 else _read(term)


def _read(literal: Literal) -> Value:
    datatype, lexical = literal.datatype, literal.lexical
    if datatype in NUMERIC:
        return read_number(lexical, datatype)
    if datatype == BOOLEAN:
        return BOOLEANS.get(lexical)
    if datatype in dates.MOMENTS:
        return dates.read_moment(lexical, datatype)
    if datatype in dates.DURATIONS:
        return dates.read_duration(lexical, datatype)
    return None


_typed = lru_cache(maxsize=16_384)(_read)


# --- strict ------------------------------------------------------------------------------------------------------


def strict(op: str, left: Term, right: Term) -> bool:
    """`left op right` by SPARQL's operator mapping. Raises `ExpressionError` where SPARQL has a type error."""
    if op == "=":
        return _equal(left, right)
    if op == "!=":
        return not _equal(left, right)
    if isinstance(left, Literal) and isinstance(right, Literal):
        a, b = value_of(left), value_of(right)
        if isinstance(a, Number) and isinstance(b, Number):
            _, x, y = promote(a, b)
            return OPERATORS[op](x, y)
        if isinstance(a, Text) and isinstance(b, Text) and a.language == b.language:
            return OPERATORS[op](a.lexical, b.lexical)
        if isinstance(a, bool) and isinstance(b, bool):
            return OPERATORS[op](a, b)
        if isinstance(a, Moment) and isinstance(b, Moment) and a.datatype == b.datatype:
            return OPERATORS[op](moment_order(a, b), 0)
        if isinstance(a, Duration) and isinstance(b, Duration):
            ends = zip(dates.duration_ends(a), dates.duration_ends(b), strict=True)
            orders = {(x > y) - (x < y) for x, y in ends}
            if len(orders) > 1:
                raise ExpressionError("the order of the durations depends on where they begin")
            return OPERATORS[op](orders.pop(), 0)
    raise ExpressionError("these two have no order")


def _equal(left: Term, right: Term) -> bool:
    if not isinstance(left, Literal) or not isinstance(right, Literal):
        return left == right  # RDFterm-equal
    a, b = value_of(left), value_of(right)
    if a is None or b is None:
        if left == right:
            return True
        if left.language or right.language:
            return False  # no datatype has language-tagged strings among its values
        raise ExpressionError("a literal of unknown value may or may not equal another")
    if isinstance(a, Number) and isinstance(b, Number):
        _, x, y = promote(a, b)
        return x == y
    if isinstance(a, Moment) and isinstance(b, Moment):
        return a.datatype == b.datatype and moment_order(a, b) == 0
    if isinstance(a, Duration) and isinstance(b, Duration):
        return a == b
    return type(a) is type(b) and a == b  # values of two kinds are different values


_ZONES = 14 * 3_600  # how far a zone may lie from UTC, in seconds


def moment_order(a: Moment, b: Moment) -> int:
    """-1, 0 or 1 for two moments of one datatype. Raises `ExpressionError` where it is indeterminate: one has a zone,
    the other none, and they lie within 14 hours (XSD 1.1, D.2.1)."""
    x, y = a.instant, b.instant
    if (a.zone is None) != (b.zone is None):
        if x < (y[0] - _ZONES, y[1]):
            return -1
        if x > (y[0] + _ZONES, y[1]):
            return 1
        raise ExpressionError("a time without a zone, within 14 hours of one with a zone")
    return (x > y) - (x < y)


# --- lenient -----------------------------------------------------------------------------------------------------

Reading: TypeAlias = str | Decimal | Instant
"""A label as it is compared: text, number, or instant."""


def lenient(op: str, left: Term | Label, right: Term | Label, *, constant: Term | Label | None) -> bool:
    """`left op right` on labels; never an error. `constant` is that side (the very object) that decides how both are
    read, or None between two variables: then both must read alike, else they compare as strings."""
    if isinstance(left, BlankNode) or isinstance(right, BlankNode):
        return False
    if "NaN" in (label_of(left).strip(), label_of(right).strip()):  # which is never compared, whatever the datatypes
        return False
    if op not in ("=", "!=") and (isinstance(left, IRI) or isinstance(right, IRI)):
        return False  # an IRI is read by its text to tell it from another, not to order it
    if constant is None:
        for read in (lenient_number, lenient_instant):
            x, y = read(label_of(left)), read(label_of(right))
            if x is not None and y is not None:
                return OPERATORS[op](x, y)
        return OPERATORS[op](label_of(left), label_of(right))
    kind, reading = _constant(label_of(constant))
    if kind is str and isinstance(constant, Label) and constant.iri and op in ("=", "!="):
        other = right if constant is left else left
        named = isinstance(other, IRI) and other.value == constant.iri
        return (named or label_of(other) == constant.text) == (op == "=")
    a, b = (reading if side is constant else kind(label_of(side)) for side in (left, right))
    return a is not None and b is not None and OPERATORS[op](a, b)


def label_of(term: Term | Label) -> str:
    """The text that a node is compared by."""
    if isinstance(term, Literal):
        return term.lexical
    if isinstance(term, IRI):
        return term.value
    return term.text if isinstance(term, Label) else ""


def reads_as_text(label: str) -> bool:
    """Is a label equal to a constant of this text only if it is the same text?"""
    return _constant(label)[0] is str and label.strip() != "NaN"


@cached_if_short(4_096, 256)
def _constant(label: str) -> tuple[Callable[[str], Reading | None], Reading]:
    """How labels are read that are compared with this constant, and what it reads as itself: trimmed, where that is a
    number or an instant."""
    for read in (lenient_number, lenient_instant):
        if (reading := read(label.strip())) is not None:
            return read, reading
    return str, label


# --- truth: booleans as terms, and the effective boolean value (SPARQL 1.1, 17.2.2) ----------------------------------


TRUE = Literal("true", BOOLEAN)
FALSE = Literal("false", BOOLEAN)


def effective_boolean_value(term: Term) -> bool:
    """Is the term true as a condition? Raises `ExpressionError` on a term that is neither true nor false."""
    if term is TRUE or term is FALSE:
        return term is TRUE
    if isinstance(term, Literal):
        value = value_of(term)
        if isinstance(value, bool):
            return value
        if isinstance(value, Text):
            return value.lexical != ""
        if isinstance(value, Number):
            return value.value == value.value and value.value != 0  # NaN differs from itself
        if term.datatype == BOOLEAN or term.datatype in NUMERIC:
            return False  # ill-typed
    raise ExpressionError(f"{brief(term)} is neither true nor false")
