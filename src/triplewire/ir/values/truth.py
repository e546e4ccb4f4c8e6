"""Booleans as terms, and the effective boolean value of a term (SPARQL 1.1, 17.2.2).

The connectives of three-valued logic are in `triplewire.ir.evaluation.expressions`.
"""

from __future__ import annotations

from triplewire.ir.values.compare import BOOLEAN, Text, value_of
from triplewire.ir.values.numbers import NUMERIC, ExpressionError, Number, brief
from triplewire.model.terms import Literal, Term

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
