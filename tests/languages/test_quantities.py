"""Units and their conversion: exact, and only within one dimension."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triplewire.languages.grammar.bare import UNITS, convert, units_like

# a value, its unit, the wanted unit, the result; from the definitions of the units
KNOWN = [
    ("5", "km", "m", "5000"),
    ("1e3", "m", "km", "1"),
    ("-0.50", "km", "m", "-500"),
    ("1", "mi", "km", "1.609344"),
    ("1", "in", "mm", "25.4"),
    ("1", "nmi", "m", "1852"),
    ("1", "lb", "g", "453.59237"),
    ("16", "oz", "lb", "1"),
    ("1", "d", "h", "24"),
    ("90", "min", "h", "1.5"),
    ("36", "km/h", "m/s", "10"),
    ("1", "km/h", "m/s", "0.2777777777777777777777777777777778"),
    ("1", "kn", "km/h", "1.852"),
    ("60", "mph", "ft/s", "88"),
    ("1", "km2", "ha", "100"),
    ("1", "m²", "cm²", "10000"),
    ("1", "KiB", "bit", "8192"),
    ("1", "GB", "MB", "1000"),
    ("0", "°C", "K", "273.15"),
    ("-40", "°C", "°F", "-40"),
    ("212", "°F", "°C", "100"),
    ("5", "%", "%", "5"),
    ("7", "heads", "heads", "7"),
]


@pytest.mark.parametrize(("number", "unit", "wanted", "result"), KNOWN)
def test_known_conversions(number: str, unit: str, wanted: str, result: str) -> None:
    assert convert(number, unit, wanted) == result


@pytest.mark.parametrize(
    ("number", "unit", "wanted", "said"),
    [
        ("1", "furlong", "m", "there is no unit 'furlong'"),
        ("1", "KM", "m", "there is no unit 'KM'"),
        ("1", "kg", "m", "'kg' measures mass, not length as 'm' does"),
        ("1", "m", "heads", "the operator counts in 'heads', found 'm'"),
        ("1e61", "km", "m", "a quantity lies between"),
        ("1e-999999999", "km", "m", "a quantity lies between"),
        ("1" * 61, "km", "m", "a quantity has at most 60 digits"),
    ],
)
def test_what_does_not_convert(number: str, unit: str, wanted: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        convert(number, unit, wanted)


@given(
    st.sampled_from(
        [(one, other) for one, other in combinations(UNITS, 2) if UNITS[one].dimension == UNITS[other].dimension]
    ),
    st.decimals(min_value=-(10**9), max_value=10**9, places=3),
)
def test_there_and_back_is_the_same_number(units: tuple[str, str], value: object) -> None:
    """Up to the last of the 34 digits that a number without end is cut to."""
    back = Fraction(convert(convert(str(value), *units), *reversed(units)))
    wanted = Fraction(str(value))
    assert abs(back - wanted) <= abs(wanted) / 10**30 + Fraction(1, 10**28)


def test_the_units_of_a_dimension_are_told() -> None:
    assert units_like("K") == "K, °C, °F"
    assert units_like("heads") == "heads"
    assert {unit.dimension for unit in UNITS.values()} >= {
        "length",
        "mass",
        "time",
        "speed",
        "area",
        "temperature",
        "data",
    }
