"""Match rows as columns, from slices by publication: row i of publication p is (p, accepted[i] + start, False).

Used by `triplewire.engine.segments.arena`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.shared.compiled import kernel

_wide: Any = np.uint64  # of an index: that it is not negative


@kernel
def fill(offset: Any, accepted: Any, start: int, first: int, publication: Any, subscription: Any,
         truncated: Any) -> None:  # fmt: skip
    """Write the rows of what is accepted, from row `first` on: of publication p the slice offset[p] .. offset[p + 1],
    with numbers raised by `start`, none of them truncated. `accepted` may lie where `subscription` does."""
    publication, subscription, truncated = publication[first:], subscription[first:], truncated[first:]
    for p in range(offset.size - 1):
        begin = offset[p]
        if begin >= 0:  # it is; so the compiler knows that no index is negative, and writes vectors
            for i in range(offset[p + 1] - begin):
                publication[begin + i] = p
    count = offset[offset.size - 1]
    for i in range(count):
        truncated[_wide(i)] = False
    if start != 0 or accepted.ctypes.data != subscription.ctypes.data:
        for i in range(count):
            subscription[_wide(i)] = accepted[_wide(i)] + start
