"""Merges segments in the background, and puts the merged segment into the layers that are current afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from triplewire.engine.segments.context import SegmentContext
from triplewire.engine.segments.layers import NONE, Layer, merged
from triplewire.engine.segments.segment import CompiledSubscription, Segment
from triplewire.engine.segments.texts import TextWriter


@dataclass(frozen=True, eq=False)
class MergeJob:
    """Neighbouring layers that are to be merged, perhaps with the delta behind them."""

    context: SegmentContext
    layers: tuple[Layer, ...]
    delta: tuple[CompiledSubscription, ...] = ()

    def __call__(self) -> MergedSegment:
        """Do it."""
        layers = self.layers
        if self.delta:
            layers = *layers, Layer(Segment.of(self.context, self.delta, TextWriter()), NONE)
        segment, numbers = merged(layers)
        return MergedSegment(self, segment.tidied(), numbers)


@dataclass(frozen=True, eq=False)
class MergedSegment:
    """The segment that was made. `numbers`: of each layer, and of the delta, the subscriptions that are in it."""

    made_of: MergeJob
    segment: Segment
    numbers: Sequence[NDArray[np.int64]]

    def put_into(
        self, layers: Sequence[Layer], delta: Sequence[CompiledSubscription]
    ) -> tuple[tuple[Layer, ...], tuple[CompiledSubscription, ...]]:
        """The current layers and delta with the merged segment in place of its sources. A subscription that was removed
        since the merge began gets a tombstone, as does one that has moved from the delta to a layer of its own."""
        # by their clauses, as a segment may have got another context since
        number_of = {id(layer.segment.clauses): number for number, layer in enumerate(self.made_of.layers)}
        left = {number_of[key]: layer for layer in layers if (key := id(layer.segment.clauses)) in number_of}
        gone, start = [], 0
        for number, (before, own) in enumerate(zip(self.made_of.layers, self.numbers, strict=False)):  # then the delta
            if number in left:
                since = np.setdiff1d(left[number].tombstones, before.tombstones)
                gone.append(start + np.searchsorted(own, since))
            else:
                gone.append(np.arange(start, start + len(own)))  # all of it
            start += len(own)
        waiting, taken = set(map(id, delta)), set(map(id, self.made_of.delta))
        is_gone = np.array([id(compiled) not in waiting for compiled in self.made_of.delta], np.bool_)
        whole = Layer(self.segment, np.concatenate([*gone, start + np.flatnonzero(is_gone)]).astype(np.int32))
        others = [layer for layer in layers if id(layer.segment.clauses) not in number_of]
        # those merged were neighbours; what came before them still does
        place = next((n for n, layer in enumerate(layers) if id(layer.segment.clauses) in number_of), len(others))
        others.insert(place, whole)
        alive = tuple([layer for layer in others if layer.alive])
        return alive, tuple([compiled for compiled in delta if id(compiled) not in taken])
