"""Quantities such as `1000m` or `5 km`: units of measurement, and exact conversion between those of one dimension.

The factors are the definitions of the SI brochure, of the international yard and pound (1959) and of IEC 80000-13.
"""

from __future__ import annotations

from decimal import Context, Decimal, Inexact
from fractions import Fraction
from typing import NamedTuple

MAX_DIGITS = 60
MAX_EXPONENT = 60
_EXACT = Context(prec=1_000, traps=[Inexact])
_ROUNDING = Context(prec=34)  # where a result has no end, such as 1 km/h in m/s


class Unit(NamedTuple):
    """A unit: what it measures; a value v of it is (v + offset) * factor in the dimension's first unit."""

    dimension: str
    factor: Fraction
    offset: Fraction = Fraction(0)


def _table(dimension: str, units: str) -> dict[str, Unit]:
    pairs = (entry.split("=") for entry in units.split())
    return {name: Unit(dimension, Fraction(factor)) for names, factor in pairs for name in names.split("|")}


UNITS: dict[str, Unit] = {
    **_table("length", "m=1 km=1000 dm=0.1 cm=0.01 mm=0.001 µm|μm|um=0.000001 nm=0.000000001"),
    **_table("length", "in=0.0254 ft=0.3048 yd=0.9144 mi=1609.344 nmi=1852"),
    **_table("mass", "kg=1 g=0.001 mg=0.000001 µg|μg|ug=0.000000001 t=1000 lb=0.45359237 oz=0.028349523125"),
    **_table("time", "s=1 ms=0.001 µs|μs|us=0.000001 ns=0.000000001 min=60 h=3600 d=86400 wk=604800"),
    **_table("speed", "m/s=1 km/h|kmh=5/18 km/s=1000 mph|mi/h=0.44704 kn=463/900 ft/s=0.3048"),
    **_table("area", "m2|m²=1 km2|km²=1000000 cm2|cm²=0.0001 mm2|mm²=0.000001 ha=10000 a=100"),
    **_table("area", "ft2|ft²=0.09290304 mi2|mi²=2589988.110336 acre=4046.8564224"),
    **_table("data", "B=1 kB=1000 MB=1000000 GB=1000000000 TB=1000000000000 PB=1000000000000000"),
    **_table("data", "KiB=1024 MiB=1048576 GiB=1073741824 TiB=1099511627776 PiB=1125899906842624 bit=1/8"),
    "K": Unit("temperature", Fraction(1)),
    "°C": Unit("temperature", Fraction(1), Fraction("273.15")),
    "°F": Unit("temperature", Fraction(5, 9), Fraction("459.67")),
    "%": Unit("ratio", Fraction(1, 100)),
}
"""Units by their symbols, in which case counts (`mB` is none)."""


def units_like(symbol: str) -> str:
    """The symbols of what a unit measures, as one text; the unit alone where it is not in the table."""
    unit = UNITS.get(symbol)
    return ", ".join(name for name in UNITS if unit and UNITS[name].dimension == unit.dimension) or symbol


def convert(number: str, unit: str, wanted: str) -> str:
    """`number` of `unit` as a plain decimal number of the unit `wanted`, exact unless it has no end (34 digits then).
    A unit that is not in the table converts to itself.

    Raises `ValueError`, which says why: an unknown unit, one of another dimension, a number too long to convert.
    """
    if wanted not in UNITS:
        if unit == wanted:
            return number
        raise ValueError(f"the operator counts in {wanted!r}, found {unit!r}")
    source, target = _unit(unit), _unit(wanted)
    if source.dimension != target.dimension:
        raise ValueError(f"{unit!r} measures {source.dimension}, not {target.dimension} as {wanted!r} does")
    if len(number) > MAX_DIGITS:
        raise ValueError(f"a quantity has at most {MAX_DIGITS} digits")
    value = Decimal(number)
    if value and abs(value.adjusted()) > MAX_EXPONENT:
        raise ValueError(f"a quantity lies between 1e-{MAX_EXPONENT} and 1e{MAX_EXPONENT}")
    exact = (Fraction(value) + source.offset) * source.factor / target.factor - target.offset
    return _plain(exact)


def _unit(name: str) -> Unit:
    unit = UNITS.get(name)
    if unit is None:
        raise ValueError(f"there is no unit {name!r}")
    return unit


def _plain(value: Fraction) -> str:
    parts = Decimal(value.numerator), Decimal(value.denominator)
    try:
        text = f"{_EXACT.divide(*parts):f}"
    except Inexact:  # the decimal has no end
        text = f"{_ROUNDING.divide(*parts):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
