"""A segment in a snapshot, with tombstones for its removed subscriptions: `triplewire.engine.segments.snapshot`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.clauses import mapped_zeros
from triplewire.encode.batch import Ids
from triplewire.engine.segments.operator_pairs import SnapshotCalls
from triplewire.engine.segments.segment import Segment, SegmentContext
from triplewire.engine.segments.texts import IdTable
from triplewire.operators.order.protocol import Conjunctions

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

    def find_all(self, ids: IdTable) -> Ids:
        """The numbers of the subscriptions with these ids, -1 for each that is not there."""
        number = self.segment.ids.find_all(ids)
        if self.is_removed is not None:
            number[(number >= 0) & self.is_removed[number]] = -1
        return number

    def within(self, context: SegmentContext) -> Layer:
        """The same in a context that has another taxonomy."""
        return replace(self, segment=self.segment.within(context))

    def without(self, numbers: Collection[int]) -> Layer:
        """The same with more tombstones, of subscriptions that are there."""
        new = np.array(sorted(numbers), np.int32)
        return Layer(self.segment, np.insert(self.tombstones, np.searchsorted(self.tombstones, new), new))


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
        there |= layer.find_all(ids) >= 0
    return np.flatnonzero(there).astype(np.int32)


def merged(layers: Sequence[Layer]) -> tuple[Segment, list[NDArray[np.int64]]]:
    """One segment of the live subscriptions of several layers, and their numbers in each layer."""
    numbers = [layer.numbers() for layer in layers]
    return Segment.merged([layer.segment for layer in layers], numbers), numbers
