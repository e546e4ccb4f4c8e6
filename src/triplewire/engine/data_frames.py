"""Matches as a data frame of pandas or Polars: a row a binding, a column a variable. Neither is needed elsewhere."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from importlib import import_module
from typing import Any

from triplewire.errors import TriplewireError
from triplewire.model.match import Match
from triplewire.model.terms import Literal, Term, text_of

_FIXED = ("publication", "subscription", "truncated")
_TYPES = (int, float, bool, dt.date)  # of which a column has values, where all of its values are of one
_INTEGERS = range(-(1 << 63), 1 << 63)  # that fit in such a column


def frame_of(matches: Iterable[Match], library: str) -> Any:
    """The data frame of this library, "pandas" or "polars". Raises `TriplewireError` where that is not installed."""
    try:
        data_frame = import_module(library).DataFrame
    except ImportError:
        raise TriplewireError(f"{library} is not installed", remedy=f"pip install {library}") from None
    return data_frame(columns_of(matches))


def columns_of(matches: Iterable[Match]) -> dict[str, list[Any]]:
    """The columns by name: publication, subscription, truncated, and the variables in the order in which they occur, of
    which one with such a name is written `?publication`. A match without bindings has one row, as an empty one has.

    Unbound is None. Where all values of a variable are booleans, integers of 64 bits, floating-point numbers or dates
    (`Literal.to_python`), these are in its column, else texts: IRIs, labels of blank nodes, lexical forms."""
    fixed: tuple[list[Any], ...] = [], [], []
    variables: dict[str, list[Term | None]] = {}
    count = 0
    for match in matches:
        told = match.publication, match.subscription, match.truncated
        for binding in match.bindings or ({},):
            for column, value in zip(fixed, told, strict=True):
                column.append(value)
            for name, term in binding.items():
                terms = variables.setdefault(name, [])
                terms.extend([None] * (count - len(terms)))
                terms.append(term)
            count += 1
    columns = dict(zip(_FIXED, fixed, strict=True))
    for name, terms in variables.items():
        terms.extend([None] * (count - len(terms)))
        columns[f"?{name}" if name in _FIXED else name] = _values(terms)
    return columns


def _values(terms: list[Term | None]) -> list[Any]:
    """The values of a column: all of one type, or texts."""
    values = [term.to_python() if isinstance(term, Literal) else None for term in terms]
    kinds = {type(value) for value, term in zip(values, terms, strict=True) if term is not None}
    is_typed = len(kinds) == 1 and kinds.issubset(_TYPES)
    if is_typed and (int not in kinds or all(value is None or value in _INTEGERS for value in values)):
        return values
    return [None if term is None else text_of(term) for term in terms]
