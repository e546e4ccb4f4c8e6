"""Sorting slices in place, without memory of its own: D. L. Shell, "A high-speed sorting procedure", CACM 2(7), 1959.

The gaps are those of D. E. Knuth, "The Art of Computer Programming", section 5.2.1: 1, 4, 13, 40 ...
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
            value, at = values[i], i
            while at >= low + gap and values[at - gap] > value:
                values[at] = values[at - gap]
                at -= gap
            values[at] = value
        gap //= 3


@called_helper
def sort_by(values: Any, key: Any, low: int, high: int) -> None:
    """Sort values[low:high] by key[value]; values with equal keys are put in ascending order themselves."""
    gap = 1
    while 3 * gap + 1 < high - low:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(low + gap, high):
            value, at = values[i], i
            wanted = key[value]
            while at >= low + gap and (
                key[values[at - gap]] > wanted or (key[values[at - gap]] == wanted and values[at - gap] > value)
            ):
                values[at] = values[at - gap]
                at -= gap
            values[at] = value
        gap //= 3
