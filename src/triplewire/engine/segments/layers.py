"""A segment in a snapshot, with tombstones for its removed subscriptions: `triplewire.engine.segments.snapshot`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.clauses import mapped_zeros
from triplewire.encode.batch import Ids
from triplewire.engine.chunk import Chunk
from triplewire.engine.segments.arena import Arena
from triplewire.engine.segments.operator_pairs import SnapshotCalls
from triplewire.engine.segments.segment import Segment, SegmentContext, SegmentCounts, SegmentRows
from triplewire.engine.segments.texts import IdTable
from triplewire.engine.stats import Clock
from triplewire.operators.order.protocol import Conjunctions
from triplewire.select.index import owners

PAIRS = 1 << 21  # publications of a window times subscriptions of the segment
LEAST, MOST = 1 << 10, 1 << 13  # publications of a window; where it would have fewer, there is none

NONE: Ids = np.zeros(0, np.int32)


@dataclass(frozen=True, eq=False)
class Layer:
    """A segment, and which of its subscriptions are removed: their numbers, ascending."""

    segment: Segment
    tombstones: Ids

    @property
    def alive(self) -> int:
        """How many subscriptions are there."""
        return len(self.segment) - len(self.tombstones)

    @property
    def rows(self) -> int:
        """Rows of its clauses, those of removed subscriptions counted (`triplewire.clauses.clauses.MOST_ROWS`)."""
        return self.segment.clauses.table.rows

    @cached_property
    def is_removed(self) -> NDArray[np.bool_] | None:
        """Subscription -> is it removed? None where none is."""
        if not len(self.tombstones):
            return None
        removed = np.zeros(len(self.segment), np.bool_)
        removed[self.tombstones] = True
        return removed

    def match(self, chunk: Chunk, stage: Clock, arena: Arena) -> Iterable[SegmentRows]:
        """The matches of a chunk. Leaves the clock in the stage "verify".

        A call has a fixed cost, which is too high for a small segment that hardly has a match. So where the chunk is a
        part of a larger one, a small segment matches a window of many publications at once, and the parts that follow
        take their matches from the window. Its counts go to the first part that needs it.
        """
        if chunk.part_of is None or (size := min(PAIRS // len(self.segment), MOST)) < LEAST:
            return (self.segment.rows(chunk, self.is_removed, stage, arena),)
        whole, first, last = chunk.part_of
        numbers = range(first // size, (last - 1) // size + 1)
        return (self._from_window(whole, number, (first, last), size, stage, arena) for number in numbers)

    def _from_window(
        self, whole: Chunk, number: int, part: tuple[int, int], size: int, stage: Clock, arena: Arena
    ) -> SegmentRows:
        """Of the publications part[0] .. part[1] - 1, the matches that lie in the window with this number. The last
        window is kept with the chunk, as this layer's state."""
        state, start = whole.states[self], number * size
        if state.window is None or state.window[0] != number:
            chunk = whole.part(start, min(start + size, len(whole)))
            rows = _in_order(self.segment.rows(chunk, self.is_removed, stage, arena))
        else:
            rows = state.window[1]
            stage.switch("verify")
        state.window = number, replace(rows, counts=SegmentCounts())
        return _between(rows, part[0] - start, part[1] - start)

    def numbers(self) -> NDArray[np.int64]:
        """The subscriptions that are there, ascending."""
        return np.arange(len(self.segment)) if self.is_removed is None else np.flatnonzero(~self.is_removed)

    def find(self, key: bytes) -> int:
        """The number of a subscription that is there, by its id as it is looked up; else -1."""
        number = self.segment.ids.names.find(key)
        if number < 0 or not len(self.tombstones):
            return number
        place = int(np.searchsorted(self.tombstones, number))
        return -1 if place < len(self.tombstones) and self.tombstones[place] == number else number

    def within(self, context: SegmentContext) -> Layer:
        """The same in a context that has another taxonomy."""
        return replace(self, segment=self.segment.within(context))

    def without(self, numbers: Collection[int]) -> Layer:
        """The same with more tombstones, of subscriptions that are there."""
        new = np.array(sorted(numbers), np.int32)
        return Layer(self.segment, np.insert(self.tombstones, np.searchsorted(self.tombstones, new), new))


def _in_order(matched: SegmentRows) -> SegmentRows:
    """The matches of a window by publication, all as columns, in memory of their own."""
    accepted = owners(matched.offset), matched.accepted, np.zeros(len(matched.accepted), np.bool_)
    columns = [np.concatenate(pair) for pair in zip(accepted, matched.columns, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    publication, subscription, truncated = (column[order] for column in columns)
    return replace(matched, accepted=NONE, columns=(publication, subscription, truncated))


def _between(rows: SegmentRows, first: int, last: int) -> SegmentRows:
    """The matches of the publications first .. last - 1, numbered from 0; `first` may lie before the window."""
    ends = np.array((first, last), np.int32)  # of another type, the whole column would be converted
    begin, end = np.searchsorted(rows.columns[0], ends).tolist()
    publication, subscription, truncated = rows.columns
    columns = publication[begin:end] - np.int32(first), subscription[begin:end], truncated[begin:end]
    failures = [(p - first, s, error) for p, s, error in rows.failures if first <= p < last]
    waiting = [(p - first, s) for p, s in rows.waiting if first <= p < last]
    return SegmentRows(np.zeros(last - first + 1, np.int64), NONE, columns, failures, waiting, rows.counts)


def calls_of(layers: Sequence[Layer]) -> SnapshotCalls:
    """The calls of all subscriptions in layers, numbered on from layer to layer."""
    offsets, rows, alone, start = [np.zeros(1, np.int32)], [np.zeros(0, np.int64)], [NONE], 0
    for layer in layers:
        calls, table = layer.segment.clauses.asked, layer.segment.clauses.table
        is_alone = (np.diff(table.clause_offset) == 0) & (np.diff(calls.offset) > 0)
        if layer.is_removed is not None:
            is_alone &= ~layer.is_removed
        offsets.append(calls.offset[1:] + offsets[-1][-1])
        rows.append(layer.segment.call_rows[calls.call])
        alone.append((np.flatnonzero(is_alone) + start).astype(np.int32))
        start += len(layer.segment)
    if layers:
        layers[0].segment.context.operators.learned.tidy()  # only now, as each layer holds the calls that it needs
    size = sum(map(len, offsets))
    offset = np.concatenate(offsets).astype(np.int32) if offsets[-1][-1] else mapped_zeros(size, np.int32)
    return SnapshotCalls(Conjunctions.of(offset, np.concatenate(rows)), np.diff(offset) > 0, np.concatenate(alone))


def held(layers: Sequence[Layer], ids: IdTable) -> Ids:
    """The numbers of those ids that live subscriptions of the layers have."""
    there = np.zeros(len(ids), np.bool_)
    for layer in layers:
        number = layer.segment.ids.find_all(ids)
        is_here = number >= 0
        if layer.is_removed is not None:
            is_here[is_here] = ~layer.is_removed[number[is_here]]
        there |= is_here
    return np.flatnonzero(there).astype(np.int32)


def merged(layers: Sequence[Layer]) -> tuple[Segment, list[NDArray[np.int64]]]:
    """One segment of the live subscriptions of several layers, and their numbers in each layer."""
    numbers = [layer.numbers() for layer in layers]
    return Segment.merged([layer.segment for layer in layers], numbers), numbers
