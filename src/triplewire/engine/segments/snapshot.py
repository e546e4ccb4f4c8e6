"""Live subscriptions behind an index: a large segment, a few small ones, a delta, and tombstones.

A change makes a new snapshot. Added subscriptions go to the delta, a few of them that are indexed when the next
publications come. From there they go on to the last segment, while that is small: it is made anew each time. Once it
has grown it is left as it is, and the next one begins. A removed subscription leaves a tombstone. Background
work merges segments and drops what has tombstones. So there are never many segments: each is a multiple of those after
it, or very large. Where many publications come and no change, it makes one segment of all.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from triplewire.clauses import clauses as table
from triplewire.clauses.node_tests.columns import to_bytes
from triplewire.encode.batch import Ids
from triplewire.encode.matches import strings
from triplewire.encode.strings import TextColumn
from triplewire.engine.chunk import LARGE, Chunk, Details, Install, Rows, Snapshot, Template
from triplewire.engine.compiler import Compiler
from triplewire.engine.segments.arena import Arena
from triplewire.engine.segments.layers import NONE, Layer, calls_of, held, merged
from triplewire.engine.segments.operator_pairs import SnapshotCalls
from triplewire.engine.segments.segment import CompiledSubscription, Segment, SegmentContext, texts_of
from triplewire.engine.segments.texts import IdTable, TextWriter, ranks_together
from triplewire.engine.stats import Clock, LookedAt
from triplewire.engine.subscriptions import Rules
from triplewire.errors import TriplewireError
from triplewire.forks import new_lock
from triplewire.ir.subscription import REVISION_DIGITS, Subscription
from triplewire.languages.sources.row_columns import RowColumns
from triplewire.languages.sources.rows import Row
from triplewire.select.index import TellsLeft, can_grow

DELTA = 256  # subscriptions in the delta, at most
FACTOR = 32  # a segment has at least so many times the subscriptions of all after it, or is merged with them
_SHARE = 8  # up to so many times the subscriptions of the first segment, its rows tell how much room all will need
LEAST_CALLS = 1 << 10  # surplus calls to segments, before all segments are merged for the sake of later match calls
MERGED_A_CALL = 4  # subscriptions that are merged in the time of a surplus call: a low estimate
REMOVED = 4  # a segment is made anew when more than 1 / REMOVED of it has tombstones
WASTE = 1 << 18  # bytes of texts that no subscription has any more, in the last segment


class SegmentSnapshot:
    """Subscriptions in layers, the oldest first. Their numbers run through the segments."""

    columnar = True

    def __init__(
        self,
        context: SegmentContext,
        layers: Sequence[Layer] = (),
        delta: Sequence[CompiledSubscription] = (),
        before: Segment | None = None,
    ) -> None:
        """`before`: a segment of the first subscriptions of the delta, which can grow."""
        self.context = context
        self.compiler = context.compiler
        # a segment of so many subscriptions is left as it is, and the next one begun
        self._full = self.compiler.world.settings.merge_subscriptions
        self.layers = tuple(layers)
        self.delta = tuple(delta)
        self._extra_calls = 0  # calls to segments that one segment of all would have saved
        self._lock = new_lock()  # held by the reader that makes the segment of the delta
        self._indexed: tuple[Layer, ...] | None = None if self.delta else self.layers
        self._before = before

    # --- changes

    def by_template(self, row: Mapping[str, Any]) -> Subscription | None:
        """See `triplewire.engine.chunk.Snapshot`."""
        return self.context.single_texts.subscription(row, Rules.of(self))

    def with_compiler(self, compiler: Compiler) -> SegmentSnapshot:
        """See `triplewire.engine.chunk.Snapshot`."""
        context, indexed = self.context.with_compiler(compiler), self._indexed
        again = [compiler.checked_again(waiting.subscription, self.compiler) for waiting in self.delta]
        delta = [replace(waiting, subscription=new) for waiting, new in zip(self.delta, again, strict=True)]
        other = SegmentSnapshot(context, [layer.within(context) for layer in self.layers], delta)
        if indexed is not None:
            other._indexed = (*other.layers, *(layer.within(context) for layer in indexed[len(self.layers) :]))
        return other

    def changed(
        self, added: Sequence[Subscription], removed: Collection[str], *, plain: bool = False
    ) -> SegmentSnapshot:
        """See `triplewire.engine.chunk.Snapshot`."""
        layers, delta = self.layers, self.delta
        if removed:
            layers, delta = self._without(frozenset(removed))
        before = self._growing() if len(delta) == len(self.delta) else None
        compiled = [CompiledSubscription.of(subscription, self.compiler, plain) for subscription in added]
        if len(delta) + len(compiled) <= DELTA:
            return SegmentSnapshot(self.context, layers, (*delta, *compiled), before)
        if delta:
            layers = self._grown(layers, delta, before)
        if len(compiled) > DELTA:
            return SegmentSnapshot(self.context, self._grown(layers, compiled))
        return SegmentSnapshot(self.context, layers, compiled)

    def _without(self, ids: Collection[str]) -> tuple[tuple[Layer, ...], tuple[CompiledSubscription, ...]]:
        delta = tuple(compiled for compiled in self.delta if compiled.subscription.id not in ids)
        numbers = defaultdict(list)
        for key in map(to_bytes, ids):
            for place, layer in enumerate(self.layers):
                number = layer.find(key)
                if number >= 0:
                    numbers[place].append(number)
        layers = list(self.layers)
        for place, removed in numbers.items():
            layers[place] = layers[place].without(removed)
        return tuple(layer for layer in layers if layer.alive), delta

    def _growing(self) -> Segment | None:
        """A segment of subscriptions that the delta begins with, if there is one whose index can grow."""
        segment = self._before if self._indexed is None or not self.delta else self._indexed[-1].segment
        return segment if segment is not None and can_grow(segment.index) else None

    def _of_delta(
        self, delta: Sequence[CompiledSubscription], before: Segment | None, writer: TextWriter | None
    ) -> Segment:
        """The segment of a delta, which begins with the subscriptions of `before`."""
        if before is None:
            return Segment.of(self.context, delta, writer)
        if len(before) < len(delta):
            rest = Segment.of(self.context, delta[len(before) :], None, is_part=True)
            before = Segment.merged([before, rest], [np.arange(len(before)), np.arange(len(rest))])
        if writer is None:
            return before
        texts, pinned = texts_of(delta, writer)
        return replace(before, texts=texts, pinned=pinned)

    def _grown(
        self, layers: Sequence[Layer], added: Sequence[CompiledSubscription], before: Segment | None = None
    ) -> tuple[Layer, ...]:
        """The layers with some more subscriptions: in the last segment, or in one of their own. `before`: a segment of
        the first of them, which can grow."""
        if not layers or max(len(layers[-1].segment), len(added)) >= self._full:
            return (*layers, Layer(self._of_delta(added, before, TextWriter()), NONE))
        last, source = layers[-1], layers[-1].segment.texts.sources[-1]
        writer = source if isinstance(source, TextWriter) else TextWriter()
        part = Segment.of(self.context, added, writer, is_part=True)
        if last.rows + part.clauses.table.rows > table.MOST_ROWS:
            return (*layers, Layer(replace(part, index=self.context.maker.build(part.clauses)), NONE))
        new, _ = merged([last, Layer(part, NONE)])
        size = sum(source.size for source in new.texts.sources)
        if size > WASTE and int(new.texts.length.sum()) * REMOVED < size:  # most are of removed subscriptions
            new = replace(new, texts=new.texts.tidied(0))
        return (*layers[:-1], Layer(new, NONE))

    @property
    def _all_layers(self) -> tuple[Layer, ...]:
        """All subscriptions, those of the delta in a last segment. It is made when it is first asked for."""
        if self._indexed is None:
            with self._lock:
                if self._indexed is None:  # no other reader has made it meanwhile
                    self._indexed = *self.layers, Layer(self._of_delta(self.delta, self._before, None), NONE)
        return self._indexed

    @cached_property
    def _starts(self) -> tuple[int, ...]:
        """Of each layer, the number of its first subscription; and the end."""
        return (0, *accumulate(len(layer.segment) for layer in self._all_layers))

    @cached_property
    def _extra_segments(self) -> int:
        """How many calls to segments one segment of all would save; the look at tombstones counts as one."""
        return len(self._all_layers) - 1 + any(len(layer.tombstones) for layer in self.layers)

    def with_segment(self, segment: Segment) -> tuple[SegmentSnapshot, list[str]]:
        """The same with a segment of more subscriptions; those whose ids are taken are left out, and returned."""
        layers = self._grown(self.layers, self.delta, self._growing()) if self.delta else self.layers
        tombstones = held(layers, segment.ids)
        new = Layer(segment.within(self.context), tombstones)
        return SegmentSnapshot(self.context, (*layers, new) if new.alive else layers), segment.ids.texts(tombstones)

    def registered(self, ids: Collection[str]) -> set[str]:
        """See `triplewire.engine.chunk.Snapshot`."""
        table = IdTable.of(list(ids))
        waiting = {compiled.subscription.id for compiled in self.delta}
        return waiting.intersection(ids).union(table.texts(held(self.layers, table)))

    def unchanged(self, rows: Sequence[Row] | RowColumns) -> NDArray[np.bool_]:
        """See `triplewire.engine.chunk.Snapshot`."""
        columns = rows if isinstance(rows, RowColumns) else RowColumns.of(rows)
        table = IdTable.of_spans(columns.ids)
        is_same = np.zeros(len(columns), np.bool_)
        for layer in self.layers:
            number = layer.find_all(table)
            here = np.flatnonzero(number >= 0)
            here = here[layer.segment.texts.length[number[here]] == columns.lines.lengths[here]]
            is_same[here] = layer.segment.texts.take(number[here]).are_equal(columns.lines.take(here))
        return is_same

    def background_work(self) -> Callable[[], Install] | None:
        """See `triplewire.engine.chunk.Snapshot`."""
        layers = self.layers
        if layers and len(layers[-1].segment) < self._full:
            layers = layers[:-1]  # changes still make it anew
        first = len(layers) - 1
        total, rows = (layers[first].alive, layers[first].rows) if layers else (0, 0)
        while first > 0 and layers[first - 1].alive < min(FACTOR * total, LARGE - total + 1):
            if layers[first - 1].rows + rows > table.MOST_ROWS:
                break
            first -= 1
            total, rows = total + layers[first].alive, rows + layers[first].rows
        if first < len(layers) - 1:
            return MergeJob(self.context, layers[first:])
        for layer in layers:
            if REMOVED * len(layer.tombstones) > len(layer.segment):
                return MergeJob(self.context, (layer,))
        return self._amortised_merge() if self._extra_calls >= LEAST_CALLS else None

    def _amortised_merge(self) -> MergeJob | None:
        """A merge of as many of the last segments as `LARGE` allows and as the surplus calls so far have paid for."""
        layers = self._all_layers
        first, total, rows = len(layers), 0, 0
        while first > 0:
            total, rows = total + layers[first - 1].alive, rows + layers[first - 1].rows
            if total > LARGE or rows > table.MOST_ROWS or total > MERGED_A_CALL * self._extra_calls:
                break
            first -= 1
        is_one = first == len(layers) or (first == len(layers) - 1 and not len(layers[first].tombstones))
        return None if is_one else MergeJob(self.context, self.layers[first:], self.delta)

    def whole(self) -> Segment | None:
        """All subscriptions as one segment; None where there are none. Raises `LimitError` where they are too many."""
        layers = _with_delta(self.context, self.layers, self.delta)
        if not layers:
            return None
        return layers[0].segment if len(layers) == 1 and not len(layers[0].tombstones) else merged(layers)[0]

    # --- matching

    def match(self, chunk: Chunk, stage: Clock) -> Rows:
        """See `triplewire.engine.chunk.Snapshot`."""
        outer, arena = stage.switch("encode"), self.context.arenas.take(Arena)
        rows = self._matched(chunk, stage, arena)
        self.context.arenas.give(arena)
        stage.switch(outer)
        return rows

    def _matched(self, chunk: Chunk, stage: Clock, arena: Arena) -> Rows:
        batch = chunk.batch
        arena.begin(len(batch))
        layers = self._indexed
        if layers is None:
            stage.switch("load")
            layers = self._all_layers
        self._extra_calls += self._extra_segments
        looked_at, counts = LookedAt(len(batch.subject)), None
        failures: list[tuple[int, int, TriplewireError]] = []
        waiting: list[tuple[int, int]] = []
        for layer, start in zip(layers, self._starts, strict=False):  # the last start is the end
            size = len(layer.segment)
            rows = layer.segment.rows(chunk, layer.is_removed, stage, arena)
            if not start and size < self._starts[-1] < _SHARE * size:  # what the first has tells what all will
                arena.more(self._starts[-1] * len(rows.accepted) // size, len(rows.accepted))
            arena.add(rows.offset, rows.accepted, rows.columns, start)
            if rows.failures or rows.waiting:
                failures += [(p, s + start, error) for p, s, error in rows.failures]
                waiting += [(p, s + start) for p, s in rows.waiting]
            looked_at.include(rows.looked_at)
        if waiting or len(self._calls.alone):
            stage.switch("operators")
            columns, undecided, counts = self.context.operators.decided(chunk, self._calls, waiting, self._meant)
            arena.add(np.zeros(len(chunk) + 1, np.int64), NONE, columns, 0)
            failures += undecided
        network_rows = sum(layer.segment.network_rows for layer in layers)
        return Rows(*arena.take_rows(), tuple(failures), looked_at, None, True, counts, network_rows)

    @cached_property
    def _calls(self) -> SnapshotCalls:
        return calls_of(self._all_layers)

    def _meant(self, number: int) -> Subscription:
        place = bisect_right(self._starts, number) - 1
        return self._all_layers[place].segment.meant(number - self._starts[place])

    def details(self, chunk: Chunk, rows: Rows, places: NDArray[np.int64]) -> Details:
        """See `triplewire.engine.chunk.Snapshot`."""
        publication, numbers = rows.publication[places], rows.subscription[places]
        if len(self._all_layers) == 1:
            return self._all_layers[0].segment.details(chunk, publication, numbers)
        owner = np.empty(len(places), np.int64)  # which of `parts` each is in
        parts: list[Details] = []
        rows_of: list[NDArray[np.int64]] = []
        cut = [np.zeros(0, np.int64)]
        templates: dict[int, Template] = {}
        for layer, mine, local in self._by_layer(numbers):
            part = layer.segment.details(chunk, publication[mine], local)
            if len(mine) == len(places):
                return part
            owner[mine] = len(parts)
            parts.append(part)
            rows_of.append(mine)
            cut.append(mine[part.cut])
            templates.update({int(mine[place]): template for place, template in part.templates.items()})
        bindings = [iter(part.bindings) for part in parts]
        taken = map(next, map(bindings.__getitem__, owner.tolist()))
        return Details(
            taken,
            sum(part.count for part in parts),
            templates,
            lambda: TextColumn.scattered(zip(rows_of, (part.as_text() for part in parts), strict=True), len(places)),
            np.concatenate(cut),
            lambda: sum(part.bytes_of_terms() for part in parts),
        )

    # --- look-ups

    def _by_layer(self, numbers: Ids) -> Iterator[tuple[Layer, NDArray[np.int64], Ids]]:
        """The layers that the numbers belong to: which of the numbers, and what they are in its segment."""
        for layer, start, end in zip(self._all_layers, self._starts, self._starts[1:], strict=False):
            mine = np.flatnonzero((numbers >= start) & (numbers < end))
            if len(mine):
                yield layer, mine, numbers[mine] - np.int32(start)

    def ids(self, numbers: Ids) -> list[str]:
        """See `triplewire.engine.chunk.Snapshot`."""
        if len(self._all_layers) == 1:
            return self._all_layers[0].segment.ids.texts(numbers)
        out = [""] * len(numbers)
        for layer, mine, local in self._by_layer(numbers):
            for place, id_ in zip(mine.tolist(), layer.segment.ids.texts(local), strict=True):
                out[place] = id_
        return out

    def id_column(self, numbers: Ids) -> TextColumn:
        """See `triplewire.engine.chunk.Snapshot`."""
        if len(self._all_layers) == 1:
            return self._all_layers[0].segment.ids.column(numbers)
        parts = ((mine, layer.segment.ids.column(local)) for layer, mine, local in self._by_layer(numbers))
        return TextColumn.scattered(parts, len(numbers))

    @cached_property
    def id_array(self) -> pa.LargeStringArray | None:
        """See `triplewire.engine.chunk.Snapshot`."""
        if any(len(layer.tombstones) for layer in self.layers):  # their ids may be there again
            return None
        tables = [layer.segment.ids.names for layer in self._all_layers]
        arrays = [strings(TextColumn(names.text, names.offset, NONE)) for names in tables]
        return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays) if arrays else None

    def revisions(self, numbers: Ids) -> NDArray[np.uint64]:
        """See `triplewire.engine.chunk.Snapshot`."""
        if len(self._all_layers) == 1:
            return self._all_layers[0].segment.revisions(numbers)
        out = np.zeros(len(numbers), np.uint64)
        for layer, mine, local in self._by_layer(numbers):
            out[mine] = layer.segment.revisions(local)
        return out

    def revision(self, id: str) -> str:
        """See `triplewire.engine.chunk.Snapshot`."""
        if (waiting := self._waiting(id)) is not None:
            return waiting.revision
        if (place := self._find(id)) is None:
            return ""
        layer, number = place
        return f"{int(layer.segment.revisions(np.array([number], np.int32))[0]):0{REVISION_DIGITS}x}"

    def ranks(self, numbers: Ids) -> NDArray[np.int64]:
        """See `triplewire.engine.chunk.Snapshot`."""
        if len(self._all_layers) == 1:
            return self._all_layers[0].segment.ids.rank[numbers].astype(np.int64)
        used, inverse = np.unique(numbers, return_inverse=True)
        parts = [(layer.segment.ids, mine, local) for layer, mine, local in self._by_layer(used)]
        return ranks_together(parts, len(used))[inverse]

    def _waiting(self, id: str) -> Subscription | None:
        return next((compiled.subscription for compiled in self.delta if compiled.subscription.id == id), None)

    def _find(self, id: str) -> tuple[Layer, int] | None:
        """The layer and the number in its segment; those of the delta are not looked at."""
        key = to_bytes(id)
        for layer in reversed(self.layers):
            number = layer.find(key)
            if number >= 0:
                return layer, number
        return None

    def __len__(self) -> int:
        return sum(layer.alive for layer in self.layers) + len(self.delta)

    def __contains__(self, id: object) -> bool:
        if not isinstance(id, str):
            return False
        return self._waiting(id) is not None or self._find(id) is not None

    def get(self, id: str) -> Subscription | None:
        """See `triplewire.engine.chunk.Snapshot`."""
        if (waiting := self._waiting(id)) is not None:
            return waiting
        place = self._find(id)
        return place[0].segment.stated(place[1]) if place is not None else None

    def all_ids(self) -> list[str]:
        """See `triplewire.engine.chunk.Snapshot`."""
        indexed = [id_ for layer in self.layers for id_ in layer.segment.ids.texts(layer.numbers().astype(np.int32))]
        return [*indexed, *(compiled.subscription.id for compiled in self.delta)]

    def left_to_verification(self) -> list[str]:
        """See `triplewire.engine.chunk.Snapshot`."""
        left: list[str] = []
        for layer in self._all_layers:
            if isinstance(layer.segment.index, TellsLeft):
                left += layer.segment.ids.texts(np.setdiff1d(layer.segment.index.left, layer.tombstones))
        return left

    def all(self, start: int = 0) -> Iterator[Subscription]:
        """See `triplewire.engine.chunk.Snapshot`."""
        for layer in self.layers:
            if start < layer.alive:
                for number in layer.numbers()[start:].tolist():
                    yield layer.segment.stated(number)
            start = max(start - layer.alive, 0)
        for compiled in self.delta[start:]:
            yield compiled.subscription


@dataclass(frozen=True, eq=False)
class MergeJob:
    """Work in the background: neighbouring layers are merged, perhaps with the delta behind them."""

    context: SegmentContext
    layers: tuple[Layer, ...]
    delta: tuple[CompiledSubscription, ...] = ()

    def __call__(self) -> Install:
        """Merge them. The segment takes the place of its sources in whatever snapshot there is then."""
        segment, numbers = merged(_with_delta(self.context, self.layers, self.delta))
        segment = segment.tidied()

        def install(latest: Snapshot) -> Snapshot:
            assert isinstance(latest, SegmentSnapshot)
            layers = [layer.within(latest.context) for layer in self._put_into(latest, segment, numbers)]
            taken = set(map(id, self.delta))
            return SegmentSnapshot(latest.context, layers, [each for each in latest.delta if id(each) not in taken])

        return install

    def _put_into(
        self, latest: SegmentSnapshot, segment: Segment, numbers: Sequence[NDArray[np.int64]]
    ) -> Iterator[Layer]:
        """The latest layers with the merged segment in place of its sources. A subscription that was removed since the
        merge began gets a tombstone, as does one that has moved from the delta to a layer of its own. `numbers`: of
        each layer, and of the delta, the subscriptions that are in the segment."""
        # by their clauses, as a segment may have got another context since
        sources = [id(layer.segment.clauses) for layer in self.layers]
        current = {id(layer.segment.clauses): layer for layer in latest.layers}
        gone, start = [], 0
        for key, before, merged_numbers in zip(sources, self.layers, numbers, strict=False):  # then the delta
            if key in current:
                since = np.setdiff1d(current[key].tombstones, before.tombstones)
                gone.append(start + np.searchsorted(merged_numbers, since))
            else:
                gone.append(np.arange(start, start + len(merged_numbers)))  # all of it
            start += len(merged_numbers)
        waiting = set(map(id, latest.delta))
        is_gone = np.array([id(compiled) not in waiting for compiled in self.delta], np.bool_)
        whole = Layer(segment, np.concatenate([*gone, start + np.flatnonzero(is_gone)]).astype(np.int32))
        others = [layer for key, layer in current.items() if key not in sources]
        # those merged were neighbours; what came before them still does
        others.insert(next((place for place, key in enumerate(current) if key in sources), len(others)), whole)
        return (layer for layer in others if layer.alive)


def _with_delta(
    context: SegmentContext, layers: tuple[Layer, ...], delta: Sequence[CompiledSubscription]
) -> tuple[Layer, ...]:
    """The layers, and those of the delta behind them, whose texts go elsewhere."""
    if not delta:
        return layers
    return *layers, Layer(Segment.of(context, delta, TextWriter(), is_part=bool(layers)), NONE)
