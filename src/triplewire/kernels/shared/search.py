"""Search in arrays: where a number stands in an ascending slice, and whether slices are equal."""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.shared.compiled import helper

_wide: Any = np.uint64  # of an index: that it is not negative


@helper
def lower(values: Any, low: int, high: int, wanted: Any) -> Any:
    """The first place in low .. high whose value is not below `wanted`. The values are ascending there."""
    while low < high:
        middle = (low + high) >> 1
        if values[_wide(middle)] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@helper
def upper(values: Any, low: int, high: int, wanted: Any) -> Any:
    """The first place in low .. high whose value is above `wanted`. The values are ascending there."""
    while low < high:
        middle = (low + high) >> 1
        if values[_wide(middle)] <= wanted:
            low = middle + 1
        else:
            high = middle
    return low


@helper
def same_numbers(a: Any, first: int, b: Any, second: int, length: int) -> Any:
    """Are a[first : first + length] and b[second : second + length] equal?"""
    i = 0
    while i < length and a[first + i] == b[second + i]:
        i += 1
    return i == length
