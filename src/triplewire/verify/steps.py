"""From each row of some pairs to the next: which columns change, and to which term.

`triplewire.verify.objects` and `triplewire.verify.json_texts` put rows in order in this way: a row has most in common
with the row before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Ids, Offsets
from triplewire.kernels.joins import steps as kernels
from triplewire.verify.rows import Bindings


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps through the rows of each pair, in the order of their terms."""

    offset: Offsets  # pair -> where its steps begin; one longer than there are pairs
    column: Ids  # that changes
    place: Ids  # what it changes to, as a place in the order of the terms
    completes: NDArray[np.bool_]  # is the row complete behind this step?


class UsedTerms:
    """The rows of some pairs, and `ids`: the terms that occur in them, ascending, first -1 where one is unbound."""

    def __init__(self, bindings: Bindings, pairs: NDArray[np.integer[Any]]) -> None:
        self._rows = bindings.rows
        self._lists = bindings.start[pairs], bindings.count[pairs], bindings.width[pairs]
        self._seen = np.zeros(bindings.rows.max(initial=-1) + 2, np.bool_)
        self._size = kernels.mark(*self._lists, self._rows, self._seen)
        self.ids: NDArray[np.int64] = np.flatnonzero(self._seen) - 1

    def steps(self, order: NDArray[np.integer[Any]]) -> Steps:
        """The steps, where `order` says which of `ids` comes first, second ..."""
        rank = np.zeros(len(self._seen), np.int32)
        rank[self.ids[order] + 1] = np.arange(len(order))
        offset, steps = np.empty(len(self._lists[0]) + 1, np.int64), np.empty((2, self._size), np.int32)
        completes = np.zeros(self._size, np.bool_)
        kernels.steps(*self._lists, self._rows, rank, len(order), offset, steps, completes)
        return Steps(offset, steps[0], steps[1], completes)
