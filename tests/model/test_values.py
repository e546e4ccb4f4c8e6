"""`Literal.to_python`: Python's value where there is one, else the text; the same values that queries compare."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triplewire.ir.values.dates import read_moment
from triplewire.ir.values.numbers import NUMERIC, read_number
from triplewire.model.terms import LANG_STRING, XSD, Literal, made_literal

UTC = dt.UTC

VALUES: list[tuple[str, str, Any]] = [
    ("integer", "5", 5),
    ("integer", "-07", -7),
    ("integer", "5.0", "5.0"),
    ("integer", "five", "five"),
    ("integer", "٥", "٥"),
    ("integer", "9" * 5_000, "9" * 5_000),
    ("byte", "127", 127),
    ("byte", "128", "128"),
    ("nonNegativeInteger", "-1", "-1"),
    ("decimal", "1.50", Decimal("1.50")),
    ("decimal", "1e3", "1e3"),
    ("double", "1e3", 1000.0),
    ("double", "-INF", -math.inf),
    ("double", "inf", "inf"),
    ("float", "0.5", 0.5),
    ("boolean", "true", True),
    ("boolean", "0", False),
    ("boolean", "yes", "yes"),
    ("dateTime", "2024-05-17T06:30:00Z", dt.datetime(2024, 5, 17, 6, 30, tzinfo=UTC)),
    ("dateTime", "2024-05-17T06:30:00.25", dt.datetime(2024, 5, 17, 6, 30, 0, 250_000)),
    ("dateTime", "2024-02-29T24:00:00Z", dt.datetime(2024, 3, 1, tzinfo=UTC)),
    ("dateTime", "2024-02-29T24:00:00.5Z", "2024-02-29T24:00:00.5Z"),
    ("dateTime", "2023-02-29T00:00:00Z", "2023-02-29T00:00:00Z"),
    ("dateTime", "12024-05-17T06:30:00Z", "12024-05-17T06:30:00Z"),
    ("dateTime", "-0044-03-15T00:00:00Z", "-0044-03-15T00:00:00Z"),
    ("dateTime", "2024-05-17T06:30:00.1234567Z", "2024-05-17T06:30:00.1234567Z"),
    ("dateTime", "2024-05-17", "2024-05-17"),
    ("dateTime", "9999-12-31T24:00:00", "9999-12-31T24:00:00"),
    ("dateTimeStamp", "2024-05-17T06:30:00", "2024-05-17T06:30:00"),
    ("dateTimeStamp", "2024-05-17T06:30:00Z", dt.datetime(2024, 5, 17, 6, 30, tzinfo=UTC)),
    ("date", "2024-05-17", dt.date(2024, 5, 17)),
    ("date", "2024-05-17Z", "2024-05-17Z"),
    ("date", "20240517", "20240517"),
    ("time", "06:30:00", dt.time(6, 30)),
    ("time", "06:30:00+02:00", dt.time(6, 30, tzinfo=dt.timezone(dt.timedelta(hours=2)))),
    ("time", "25:00:00", "25:00:00"),
    ("gYear", "1868", "1868"),
    ("dayTimeDuration", "P1DT2H3M4.5S", dt.timedelta(days=1, hours=2, minutes=3, seconds=4.5)),
    ("duration", "-PT1H", dt.timedelta(hours=-1)),
    ("duration", "P1M", "P1M"),
    ("duration", "P", "P"),
    ("duration", "P999999999DT99999999H", "P999999999DT99999999H"),
    ("base64Binary", "aGk=", b"hi"),
    ("base64Binary", "aGk", "aGk"),
    ("hexBinary", "6869", b"hi"),
    ("hexBinary", "686", "686"),
    ("anyURI", "urn:a", "urn:a"),
    ("string", "5", "5"),
]


@pytest.mark.parametrize(("name", "lexical", "value"), VALUES)
def test_to_python(name: str, lexical: str, value: Any) -> None:
    found = Literal(lexical, XSD + name).to_python()
    assert (found, type(found)) == (value, type(value))


def test_other_literals_are_their_texts() -> None:
    assert Literal("5").to_python() == "5"
    assert Literal("chat", language="fr").to_python() == "chat"
    assert Literal("5", "http://e.example/metre").to_python() == "5"
    assert made_literal("5", LANG_STRING).to_python() == "5"


lexicals = st.text("0123456789+-.eEINFaN: T Z", max_size=12) | st.from_regex(
    r"[0-9]{4}-[01][0-9]-[0-3][0-9](T[0-2][0-9]:[0-6][0-9]:[0-6][0-9](\.[0-9]{1,8})?)?(Z|[+-][01][0-9]:[0-9]{2})?",
    fullmatch=True,
)


@given(lexicals, st.sampled_from(sorted(NUMERIC)))
def test_numbers_are_those_that_queries_compare(lexical: str, datatype: str) -> None:
    number, value = read_number(lexical, datatype), Literal(lexical, datatype).to_python()
    assert isinstance(value, str) == (number is None)
    if number is not None and datatype != XSD + "float":
        assert value == number.value or (value != value and number.value != number.value)


@given(lexicals, st.sampled_from([XSD + name for name in ("dateTime", "dateTimeStamp", "date", "time")]))
def test_what_is_no_date_for_queries_is_none_here(lexical: str, datatype: str) -> None:
    value = Literal(lexical, datatype).to_python()
    if read_moment(lexical, datatype) is None:
        assert value == lexical
    elif not isinstance(value, str):
        assert value.isoformat()[:10] in (lexical[:10], lexical[:8]) or "24:00:00" in lexical  # type: ignore[union-attr]
