"""The ids of the subscriptions of many matches, some matches at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Ids
from triplewire.engine.chunk import Snapshot

_KEPT = 1 << 16  # ids that are kept for the next matches
_SPARSE = 16  # with more than so many subscriptions per match, the cache takes longer than making the ids


class SubscriptionIds:
    """The ids of subscriptions, made each time."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    @classmethod
    def of(cls, snapshot: Snapshot, numbers: Ids) -> SubscriptionIds:
        """A cache of ids, or none where that is faster, for matches of the subscriptions with these numbers."""
        size = int(numbers.max()) + 1
        return cls(snapshot) if size > _SPARSE * len(numbers) else _Kept(snapshot, size, min(len(numbers), _KEPT))

    def texts(self, numbers: Ids) -> NDArray[np.object_]:
        """The ids of these."""
        made = np.empty(len(numbers), object)
        made[:] = self._snapshot.ids(numbers)
        return made


class _Kept(SubscriptionIds):
    """The ids of subscriptions with numbers below `size`: made when they first occur. At most `most` are kept."""

    def __init__(self, snapshot: Snapshot, size: int, most: int) -> None:
        super().__init__(snapshot)
        self._place = np.full(size, -1, np.int32)  # in `_made`
        self._made = np.empty(most, object)
        self._count = 0

    def texts(self, numbers: Ids) -> NDArray[np.object_]:
        """The ids of these."""
        new = self._each_once(numbers[self._place[numbers] < 0])
        if self._count + len(new) > len(self._made):  # begin anew
            self._place[:], self._count = -1, 0
            new = self._each_once(numbers)
        if len(new) > len(self._made):
            self._place[:] = -1
            return super().texts(numbers)
        if len(new):
            end = self._count + len(new)
            self._made[self._count : end] = self._snapshot.ids(new)
            self._place[new] = np.arange(self._count, end)
            self._count = end
        return self._made[self._place[numbers]]

    def _each_once(self, numbers: Ids) -> Ids:
        """The distinct numbers. Overwrites their entries in `_place`."""
        every = np.arange(len(numbers))
        self._place[numbers] = every
        each: Ids = numbers[self._place[numbers] == every]
        return each
