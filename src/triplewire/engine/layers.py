"""A segment in a snapshot, with what of it is gone. Snapshots: `triplewire.engine.snapshot`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Ids
from triplewire.engine.segment import Found, Segment
from triplewire.matchers import Chunk, Stage
from triplewire.select.room import Columns, Room
from triplewire.select.walk import each

PAIRS = 1 << 21  # publications of a window times subscriptions of the segment
LEAST, MOST = 1 << 10, 1 << 13  # publications of a window; where it would have fewer, there is none

NONE: Ids = np.zeros(0, np.int32)


@dataclass(frozen=True)
class Layer:
    """A segment, and which of its subscriptions are gone (ascending)."""

    segment: Segment
    gone: Ids

    @property
    def alive(self) -> int:
        """How many are there."""
        return len(self.segment) - len(self.gone)

    @cached_property
    def mask(self) -> NDArray[np.bool_] | None:
        """Subscription -> is it gone? None where none is."""
        if not len(self.gone):
            return None
        mask = np.zeros(len(self.segment), np.bool_)
        mask[self.gone] = True
        return mask

    def match(self, chunk: Chunk, stage: Stage, room: Room) -> list[Found]:
        """The matches of a chunk.

        A call costs something even where a segment is so small that it hardly has a match. So where the chunk is a part
        of a larger one, such a segment looks at many publications at once, and the parts to come have their matches
        from there. What was counted then is counted with the part that was first.
        """
        size = min(PAIRS // len(self.segment), MOST)
        if chunk.whole is None or size < LEAST:
            return [self.segment.match(chunk, self.mask, stage, room)]
        whole, first, last = chunk.whole
        windows = range(first // size, (last - 1) // size + 1)
        return [self._window(whole, n, size, stage, room).taken(first - n * size, last - first) for n in windows]

    def _window(self, whole: Chunk, number: int, size: int, stage: Stage, room: Room) -> _Window:
        """The matches of so many publications. The last ones are kept with the chunk."""
        owner, found = whole.kept.get(id(self), (None, None))
        if owner is not self or found.number != number:
            part = whole.part(number * size, min((number + 1) * size, len(whole)))
            found = _Window(number, self.segment.match(part, self.mask, stage, room))
            whole.kept[id(self)] = self, found
        assert isinstance(found, _Window)
        return found

    def kept(self) -> NDArray[np.int64]:
        """The subscriptions that are there, ascending."""
        return np.arange(len(self.segment)) if self.mask is None else np.flatnonzero(~self.mask)

    def find(self, id: bytes) -> int:
        """The number of a subscription that is there, or -1."""
        number = self.segment.ids.find(id)
        if number < 0 or not len(self.gone):
            return number
        place = int(np.searchsorted(self.gone, number))
        return -1 if place < len(self.gone) and self.gone[place] == number else number

    def without(self, numbers: Collection[int]) -> Layer:
        """The same without some more."""
        return Layer(self.segment, np.union1d(self.gone, np.array(sorted(numbers), np.int32)).astype(np.int32))


class _Window:
    """The matches of some publications, for the parts that come one after the other."""

    def __init__(self, number: int, found: Found) -> None:
        accepted = each(found.offset), found.accepted, np.zeros(len(found.accepted), np.bool_)
        columns: Any = [np.concatenate(pair) for pair in zip(accepted, found.columns, strict=True)]
        order = np.argsort(columns[0], kind="stable")
        self.number = number
        self._columns: Columns = columns[0][order], columns[1][order], columns[2][order]
        self._failures = found.failures
        self._counts = found.atoms, found.candidates, found.verified

    def taken(self, first: int, count: int) -> Found:
        """The matches of so many publications from `first` on, which is below 0 where they begin before the window."""
        publication, subscription, truncated = self._columns
        ends = np.array((first, first + count), np.int32)  # of another type, the whole column would be converted
        begin, end = np.searchsorted(publication, ends).tolist()
        columns = publication[begin:end] - np.int32(first), subscription[begin:end], truncated[begin:end]
        failures = [(p - first, s, error) for p, s, error in self._failures if first <= p < first + count]
        counts, self._counts = self._counts, (0, 0, 0)
        return Found(np.zeros(count + 1, np.int64), NONE, columns, failures, *counts)
