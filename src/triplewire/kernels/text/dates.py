"""Which texts may be a date? A quick look at how they begin; they are read in full by `triplewire.ir.values.dates`."""

from __future__ import annotations

from typing import Any

from triplewire.kernels.shared.compiled import called_helper, kernel


@called_helper
def _may_be_date(text: Any, pos: int, end: int) -> bool:
    """Does it begin with a year of 4 to 9 digits and a hyphen, or with what may be white space?"""
    if pos < end and (text[pos] <= 0x20 or text[pos] == 0xC2 or 0xE1 <= text[pos] <= 0xE3):  # U+0085, U+A0, U+1680 ...
        return True
    if pos < end and text[pos] == 0x2D:
        pos += 1
    first = pos
    while pos < end and 0x30 <= text[pos] <= 0x39:
        pos += 1
    return 4 <= pos - first <= 9 and pos < end and text[pos] == 0x2D


@kernel
def date_like(text: Any, start: Any, end: Any, out: Any) -> None:
    """Which of the texts may be dates: none that is one is left out."""
    for row in range(start.size):
        out[row] = end[row] - start[row] >= 10 and _may_be_date(text, start[row], end[row])
