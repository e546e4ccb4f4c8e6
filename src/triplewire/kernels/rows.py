"""Match rows as columns, from what the walk accepted: one pass over what may be millions of rows.

Used by `triplewire.engine.snapshot`; the walk is `triplewire.kernels.set_trie`.
"""

from __future__ import annotations

from typing import Any

from numba import njit


@njit(cache=True, nogil=True)
def fill(offset: Any, accepted: Any, start: int, at: int, publication: Any, subscription: Any,
         truncated: Any) -> int:  # fmt: skip
    """Write the rows of accepted subscriptions from row `at` on, none of them truncated; returns the end. Those of
    publication p are accepted[offset[p] : offset[p + 1]]; their numbers are raised by `start`."""
    for p in range(offset.size - 1):
        for i in range(offset[p], offset[p + 1]):
            publication[at + i] = p
            subscription[at + i] = accepted[i] + start
            truncated[at + i] = False
    return at + int(offset[offset.size - 1])
