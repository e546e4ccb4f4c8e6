"""Sets as the bits of a number."""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.shared.compiled import helper

_int: Any = np.int64


@helper
def count_bits(bits: Any) -> Any:
    """How many bits are set? The compiler knows this loop."""
    count = _int(0)
    while bits != 0:
        bits &= bits - 1
        count += 1
    return count


@helper
def lowest_bit(bits: Any) -> Any:
    """The number of the lowest bit of a number that has one."""
    return count_bits((bits & -bits) - 1)
