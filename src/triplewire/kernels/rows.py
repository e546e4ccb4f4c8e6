"""Match rows as columns: the publication of each, from slices. Used by `triplewire.engine.segments.arena`."""

from __future__ import annotations

from typing import Any

from triplewire.kernels.shared.compiled import kernel


@kernel
def fill(offset: Any, publication: Any) -> None:
    """Write p into the slice offset[p] .. offset[p + 1], for each publication p."""
    for p in range(offset.size - 1):
        begin = offset[p]
        if begin >= 0:  # it is; so the compiler knows that no index is negative, and writes vectors
            for i in range(offset[p + 1] - begin):
                publication[begin + i] = p
