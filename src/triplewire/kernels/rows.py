"""Match rows as columns: the publication of each, from slices. Used by `triplewire.select.room`."""

from __future__ import annotations

from typing import Any

from numba import njit


@njit(cache=True, nogil=True)
def fill(offset: Any, publication: Any) -> None:
    """Write p into the slice offset[p] .. offset[p + 1], for each publication p."""
    for p in range(offset.size - 1):
        begin = offset[p]
        if begin >= 0:  # it is; so the compiler knows that no index is negative, and writes vectors
            for i in range(offset[p + 1] - begin):
                publication[begin + i] = p
