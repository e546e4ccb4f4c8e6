"""Texts to numbers, as lenient comparison reads them (semantics, section 2), where a double compares exactly.

    read a sign, digits with at most one point, and an exponent: value * 10 ** power
    NO where something else stands there; LONG where value or power has too many digits; else EXACT: value * 10 ** power

A decimal of at most 15 digits and a power of ten of at most 22, both exact as doubles, becomes the nearest double by
one rounded operation (W. D. Clinger, "How to read floating point numbers accurately", PLDI 1990), and two of them
compare as their doubles do, since 15 digits survive in a double. The exact value of any other number, and the twin of
this module: `triplewire.ir.values.numbers.lenient_number`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.shared.compiled import called_helper, kernel

NO, EXACT, LONG = 0, 1, 2
_DIGITS, _POWER = 15, 22
_FAR = 1_000_000_000  # exponents are not counted beyond
_int: Any = np.int64


@called_helper
def _is_digit(byte: int) -> bool:
    return 48 <= byte <= 57


@called_helper
def _mantissa(text: Any, pos: int, end: int) -> tuple[int, int, int, int]:
    """Read digits with at most one point: where they end (-1: there are none), the number (-1: of more than 15 digits)
    without trailing zeros, its power of ten."""
    value, used, power, zeros, seen, point = 0, 0, 0, 0, False, False
    while pos < end:
        byte = _int(text[pos])
        if byte == 46 and not point:
            point = True
        elif _is_digit(byte):
            seen = True
            power -= point
            if byte == 48:
                zeros += used > 0  # written only when another digit follows
            else:
                used += zeros + 1
                if used <= _DIGITS:
                    for _ in range(zeros + 1):
                        value *= 10
                    value += byte - 48
                zeros = 0
        else:
            break
        pos += 1
    return (pos if seen else -1), (value if used <= _DIGITS else -1), power + zeros, used


@called_helper
def _exponent(text: Any, pos: int, end: int) -> tuple[int, int]:
    """Read the exponent behind `e`: where it ends (-1: there is none), and what it is."""
    negative = pos < end and text[pos] == 45
    if negative or (pos < end and text[pos] == 43):
        pos += 1
    start, value = pos, 0
    while pos < end and _is_digit(_int(text[pos])):
        value = min(value * 10 + _int(text[pos]) - 48, _FAR)
        pos += 1
    return (pos if pos > start else -1), (-value if negative else value)


@called_helper
def _read(text: Any, pos: int, end: int) -> tuple[int, float]:
    """What a text that is not empty reads as."""
    negative = text[pos] == 45
    if negative or text[pos] == 43:
        pos += 1
    pos, value, power, _ = _mantissa(text, pos, end)
    if pos < 0:
        return NO, np.nan
    if pos < end:
        if text[pos] != 101 and text[pos] != 69:
            return NO, np.nan
        pos, exponent = _exponent(text, pos + 1, end)
        if pos != end:
            return NO, np.nan
        power += exponent
    if value == 0:
        return EXACT, 0.0
    if value < 0 or power > _POWER or power < -_POWER:
        return LONG, np.nan
    scale = 1.0
    for _ in range(abs(power)):
        scale *= 10.0  # exact, up to 10 ** 22
    number = value * scale if power > 0 else value / scale
    return EXACT, (-number if negative else number)


@called_helper
def number_of(text: Any, first: int, last: int) -> tuple[int, float]:
    """What a text reads as: NO, EXACT or LONG, and the number where it is EXACT."""
    if first < last and text[first] <= 57:  # all others begin otherwise
        return _read(text, first, last)
    return NO, np.nan


@called_helper
def _may_be_date(text: Any, pos: int, end: int) -> bool:
    """Does it begin with a year of 4 to 9 digits and a hyphen?"""
    if pos < end and text[pos] == 0x2D:
        pos += 1
    first = pos
    while pos < end and 0x30 <= text[pos] <= 0x39:
        pos += 1
    return 4 <= pos - first <= 9 and pos < end and text[pos] == 0x2D


@kernel
def date_like(text: Any, start: Any, end: Any, out: Any) -> None:
    """Which of the texts may be dates, by how they begin: none that is one is left out. They are read in full by
    `triplewire.ir.values.dates`."""
    for row in range(start.size):
        out[row] = end[row] - start[row] >= 10 and _may_be_date(text, start[row], end[row])
