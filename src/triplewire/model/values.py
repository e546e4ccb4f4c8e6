"""The values of literals as Python's own: `Literal.to_python`. How queries compare them: `triplewire.ir.values`."""

from __future__ import annotations

import base64
import datetime as dt
import re
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import TypeAlias

PythonValue: TypeAlias = str | int | float | bool | Decimal | dt.datetime | dt.date | dt.time | dt.timedelta | bytes

INTEGER_BOUNDS: dict[str, tuple[int | None, int | None]] = {
    "integer": (None, None),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
    "long": (-(2**63), 2**63 - 1),
    "int": (-(2**31), 2**31 - 1),
    "short": (-(2**15), 2**15 - 1),
    "byte": (-(2**7), 2**7 - 1),
    "unsignedLong": (0, 2**64 - 1),
    "unsignedInt": (0, 2**32 - 1),
    "unsignedShort": (0, 2**16 - 1),
    "unsignedByte": (0, 2**8 - 1),
}
"""The integer types of XML Schema 1.1, and their least and greatest values (None: there is none)."""

MAX_DIGITS = 4_000
"""Longer integers and decimals are not computed with (XSD asks for 18 digits)."""

INTEGER_FORM = re.compile(r"[+-]?[0-9]++")
DECIMAL_FORM = re.compile(r"[+-]?([0-9]++(\.[0-9]*+)?|\.[0-9]++)")
DOUBLE_FORM = re.compile(r"[+-]?([0-9]++(\.[0-9]*+)?|\.[0-9]++)([eE][+-]?[0-9]++)?|[+-]?INF|NaN")

_ZONE = r"(Z|[+-](0[0-9]|1[0-3]):[0-5][0-9]|[+-]14:00)?"
_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6}0*)?"  # Python holds six digits of a second
_DATE_TIME_FORM = re.compile(f"{_DATE}T{_TIME}{_ZONE}")
_DATE_FORM = re.compile(_DATE)
_TIME_FORM = re.compile(_TIME + _ZONE)
_DURATION_FORM = re.compile(
    r"(?P<sign>-?)P(?=[0-9T])((?P<days>[0-9]{1,9})D)?"
    r"(T(?=[0-9])((?P<hours>[0-9]{1,9})H)?((?P<minutes>[0-9]{1,9})M)?((?P<seconds>[0-9]{1,9}(\.[0-9]{1,6})?)S)?)?"
)
_TRUTH = {"true": True, "1": True, "false": False, "0": False}


def python_value(lexical: str, name: str) -> PythonValue:
    """The value of a literal of the XSD datatype of this name ("integer"), or its text.

    The text comes back where the datatype has no Python type, where the lexical form is not valid for it, and where
    Python's type cannot hold it: years below 1 and above 9999, dates with a zone, durations with months, more than six
    digits of a second.
    """
    read = _READERS.get(name)
    if read is None:
        return lexical
    try:
        value = read(lexical)
    except (ValueError, OverflowError):
        return lexical
    return lexical if value is None else value


def read_integer(lexical: str, name: str) -> int | None:
    """The value of a literal of the XSD integer type of this name; None where its lexical form is not valid for it."""
    if len(lexical) > MAX_DIGITS or not INTEGER_FORM.fullmatch(lexical):
        return None
    value = int(lexical)
    least, most = INTEGER_BOUNDS[name]
    return value if (least is None or least <= value) and (most is None or value <= most) else None


def read_decimal(lexical: str) -> Decimal | None:
    """The value of an xsd:decimal; None where its lexical form is not valid."""
    return Decimal(lexical) if len(lexical) <= MAX_DIGITS and DECIMAL_FORM.fullmatch(lexical) else None


def _double(lexical: str) -> float | None:
    return float(lexical) if DOUBLE_FORM.fullmatch(lexical) else None


def _date_time(lexical: str) -> dt.datetime | None:
    if not _DATE_TIME_FORM.fullmatch(lexical):
        return None
    if "T24:00:00" not in lexical:
        return dt.datetime.fromisoformat(lexical)
    start_of_day = dt.datetime.fromisoformat(lexical.replace("T24:", "T00:"))
    return None if start_of_day.microsecond else start_of_day + dt.timedelta(days=1)


def _stamp(lexical: str) -> dt.datetime | None:
    value = _date_time(lexical)
    return value if value is not None and value.tzinfo is not None else None


def _duration(lexical: str) -> dt.timedelta | None:
    form = _DURATION_FORM.fullmatch(lexical)
    if form is None:
        return None
    seconds = Decimal(form["seconds"] or 0)
    value = dt.timedelta(
        days=int(form["days"] or 0),
        hours=int(form["hours"] or 0),
        minutes=int(form["minutes"] or 0),
        seconds=int(seconds),
        microseconds=int(seconds % 1 * 1_000_000),
    )
    return -value if form["sign"] else value


_READERS: dict[str, Callable[[str], PythonValue | None]] = {
    **{name: partial(read_integer, name=name) for name in INTEGER_BOUNDS},
    "decimal": read_decimal,
    "double": _double,
    "float": _double,
    "boolean": _TRUTH.get,
    "dateTime": _date_time,
    "dateTimeStamp": _stamp,
    "date": lambda text: dt.date.fromisoformat(text) if _DATE_FORM.fullmatch(text) else None,
    "time": lambda text: dt.time.fromisoformat(text) if _TIME_FORM.fullmatch(text) else None,
    "duration": _duration,
    "dayTimeDuration": _duration,
    "base64Binary": lambda text: base64.b64decode(text.replace(" ", ""), validate=True),
    "hexBinary": lambda text: bytes.fromhex(text) if re.fullmatch("([0-9a-fA-F]{2})*", text) else None,
}
