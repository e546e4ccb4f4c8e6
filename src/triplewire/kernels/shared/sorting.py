"""Sorting slices in place, without memory of its own: D. L. Shell, "A high-speed sorting procedure", CACM 2(7), 1959.

for gap in ..., 40, 13, 4, 1 (D. E. Knuth, "The Art of Computer Programming", section 5.2.1):
    sort the values that are `gap` places apart by insertion
"""

from __future__ import annotations

from typing import Any

from triplewire.kernels.shared.compiled import called_helper


@called_helper
def sort_numbers(values: Any, low: int, high: int) -> None:
    """Sort values[low:high] ascending."""
    gap = 1
    while 3 * gap + 1 < high - low:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(low + gap, high):
            value, place = values[i], i
            while place >= low + gap and values[place - gap] > value:
                values[place] = values[place - gap]
                place -= gap
            values[place] = value
        gap //= 3


@called_helper
def sort_by(values: Any, key: Any, low: int, high: int) -> None:
    """Sort values[low:high] by key[value]; values with equal keys are put in ascending order themselves."""
    gap = 1
    while 3 * gap + 1 < high - low:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(low + gap, high):
            value, place = values[i], i
            while place >= low + gap:
                other = values[place - gap]
                if key[other] < key[value] or (key[other] == key[value] and other <= value):
                    break
                values[place] = other
                place -= gap
            values[place] = value
        gap //= 3
