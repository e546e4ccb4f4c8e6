"""Texts to numbers as lenient comparison reads them (semantics, section 2), where a double compares exactly.

With at most 15 significant digits and a power of ten of at most 22, the nearest double of the decimal is computed by
one rounded operation, and two such decimals compare as their doubles do. All others are left to
`triplewire.ir.numbers.lenient_number`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

NO, EXACT, LONG, UNSURE = 0, 1, 2, 3
_DIGITS, _POWER = 15, 22


@njit(cache=True, nogil=True)
def _is_space(c: int) -> bool:
    return c == 32 or 9 <= c <= 13 or 28 <= c <= 31


@njit(cache=True, nogil=True)
def _exponent(text: Any, at: int, end: int) -> tuple[int, bool]:
    """The number behind `e`, at most 10,000 either way, and whether it is one."""
    negative = at < end and text[at] == 45
    if at < end and (text[at] == 45 or text[at] == 43):
        at += 1
    if at == end:
        return 0, False
    value: Any = 0
    while at < end:
        if not 48 <= text[at] <= 57:
            return 0, False
        value = min(value * 10 + np.int64(text[at]) - 48, 10_000)
        at += 1
    return -value if negative else value, True


@njit(cache=True, nogil=True)
def _mantissa(text: Any, at: int, end: int) -> tuple[int, int, int, int, int]:
    """(digits as a number, their count without leading zeros, power of ten, digits seen, end)"""
    value: Any = 0
    significant, power, seen, point = 0, 0, 0, False
    while at < end:
        c = np.int64(text[at])
        if 48 <= c <= 57:
            seen += 1
            if significant > 0 or c != 48:
                significant += 1
            if significant <= _DIGITS:
                value = value * 10 + c - 48
                power -= point
            elif c != 48:
                return value, significant, power, -1, at  # more digits than count
            else:
                power += not point  # a trailing zero
        elif c == 46 and not point:
            point = True
        else:
            break
        at += 1
    return value, significant, power, seen, at


@njit(cache=True, nogil=True)
def _read(text: Any, start: int, end: int) -> tuple[float, int]:
    at = start
    negative = at < end and text[at] == 45
    if at < end and (text[at] == 45 or text[at] == 43):
        at += 1
    value, _, power, seen, at = _mantissa(text, at, end)
    if seen < 0:
        return 0.0, UNSURE
    if seen == 0:
        return 0.0, NO
    if at < end:
        if text[at] != 101 and text[at] != 69:
            return 0.0, NO
        more, good = _exponent(text, at + 1, end)
        if not good:
            return 0.0, NO
        power += more
    if value == 0:
        return 0.0, EXACT
    if power > _POWER or power < -_POWER:
        return 0.0, LONG
    scale = 1.0
    for _ in range(abs(power)):
        scale *= 10.0  # exact up to 10 ** 22
    number = value * scale if power > 0 else value / scale
    return -number if negative else number, EXACT


@njit(cache=True, nogil=True)
def numbers(text: Any, start: Any, end: Any, wanted: Any, out: Any, state: Any) -> None:
    """What the wanted terms' texts read as: EXACT with the number in `out`, LONG, NO, or UNSURE."""
    for term in range(start.size):
        state[term], out[term] = NO, 0.0
        if not wanted[term]:
            continue
        a, b = start[term], end[term]
        while a < b and _is_space(text[a]):
            a += 1
        while a < b and _is_space(text[b - 1]):
            b -= 1
        if a == b:
            continue
        if text[a] >= 0x80 or text[b - 1] >= 0x80:  # perhaps white space of another script
            digits, others = False, False
            for i in range(a, b):
                digits = digits or 48 <= text[i] <= 57
                others = others or (text[i] < 0x80 and not 43 <= text[i] <= 57 and text[i] not in (69, 101))
            state[term] = UNSURE if digits and not others else NO
        else:
            out[term], state[term] = _read(text, a, b)
