"""Loads the subscriptions of a point once, and measures each matcher with them.

Measured are the time of selection and of the whole, memory in use, and insertion. The look-up of constant tests (words,
classes, numbers) is the same for all matchers and comes before selection; it is timed apart. Publications are encoded
before, and matched in one batch. Times are those of the processor, the least of several runs by turns, so that other
programs on the machine count little.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench import measure
from triplewire.clauses.clauses import Clauses, merge
from triplewire.clauses.view import View
from triplewire.encode.schema import to_batch
from triplewire.engine.chunk import Chunk
from triplewire.engine.segments.arena import Arena
from triplewire.engine.segments.segment import Segment
from triplewire.engine.segments.snapshot import SegmentSnapshot
from triplewire.engine.stats import Clock
from triplewire.engine.views import encoded
from triplewire.model.publication import Publication
from triplewire.plugins import find
from triplewire.select.papers.chains import ChainIndex
from triplewire.select.papers.edges import StarEdges
from triplewire.select.papers.growing import PaperIndex
from triplewire.select.papers.kernels.lists import Lists, Table
from triplewire.select.papers.tries import ForestIndex

processor = time.process_time
TURNS = 5  # of a matcher at a point
LEAST_SECONDS = 1.0  # of the runs of a matcher at a point, all turns together: more runs where they are short
BUDGET_SECONDS = 20.0  # after which it has no further turn
_ROW, _ENTRY, _LIST = 24, 8, 8  # bytes: a key with its two slots; a value with its successor; both ends of a list


@dataclass(frozen=True, slots=True)
class Cost:
    """What a matcher takes for a publication, in microseconds, and in memory, in megabytes. `read`: the columns of the
    subscriptions that its selection reads, which the paper's structure holds itself. `size`: the edges of G_M, or the
    nodes of a forest; 0 for others. `patterns`: of all subscriptions. `tries`, `comparisons`, `list_steps`: what
    selection looked at for a publication (`triplewire.select.index.Selected`). `seconds`: how long it took to find this
    out."""

    selection: float
    look_up: float
    whole: float
    matches: float
    structure: float
    read: float
    subscriptions: float
    size: int
    patterns: int
    tries: float
    comparisons: float
    list_steps: float
    seconds: float


class Seen(NamedTuple):
    """What a matcher counted for some publications: matches, and what its selection looked at."""

    matches: int
    tries: int
    comparisons: int
    list_steps: int


class Loaded:
    """The subscriptions of a point as one segment, and its publications."""

    def __init__(self, subscriptions: Path, publications: Sequence[Publication], taxonomy: Path | None = None) -> None:
        self.engine = measure.load("trie", subscriptions, taxonomy)
        snapshot = self.engine._snapshot
        assert isinstance(snapshot, SegmentSnapshot)  # it is settled
        segment = snapshot.whole()
        assert segment is not None
        self.segment, self.publications = segment, publications
        self._columns = to_batch(publications)

    def costs(self, matchers: Sequence[str]) -> dict[str, Cost]:
        """What each matcher takes, measured by turns, so that what slows the machine for a while slows each of them
        once. The first run of each, which does not count, makes what is made once."""
        segments, seen, spent = {}, {}, {}
        times: dict[str, list[tuple[float, float, float]]] = {matcher: [] for matcher in matchers}
        for matcher in matchers:
            begun = time.perf_counter()
            segments[matcher] = replace(self.segment, index=find("matcher", matcher).build(self.segment.clauses))
            seen[matcher] = self._matched(segments[matcher])[1]
            spent[matcher] = time.perf_counter() - begun
        for turn in range(TURNS):
            for matcher, segment in segments.items():
                begun = time.perf_counter()
                taken = 0.0
                while len(times[matcher]) <= turn or taken < LEAST_SECONDS / TURNS:
                    if times[matcher] and spent[matcher] + taken > BUDGET_SECONDS:
                        break
                    times[matcher].append(self._matched(segment)[0])
                    taken = time.perf_counter() - begun
                spent[matcher] += taken
        return {
            matcher: self._cost(segment, times[matcher], seen[matcher], spent[matcher])
            for matcher, segment in segments.items()
        }

    def _cost(self, segment: Segment, times: Sequence[tuple[float, float, float]], seen: Seen, seconds: float) -> Cost:
        """The least of these times, what was counted, and what the index takes."""
        selection, look_up, whole = (min(column) for column in zip(*times, strict=True))
        if isinstance(segment.index, PaperIndex):  # ours looks up what it needs in its own way
            selection = max(0.0, selection - look_up)
        micros, each = 1e6 / len(self.publications), 1 / len(self.publications)
        return Cost(
            selection * micros, look_up * micros, whole * micros, seen.matches * each,
            used_megabytes(segment.index), read_megabytes(segment.index), segment.clauses.nbytes / 1e6,
            size_of(segment.index), len(segment.clauses.table.pattern),
            seen.tries * each, seen.comparisons * each, seen.list_steps * each, seconds,
        )  # fmt: skip

    def _matched(self, segment: Segment) -> tuple[tuple[float, float, float], Seen]:
        """Seconds of selection with look-ups, of look-ups alone, and of all; and what was counted."""
        chunks = encoded(self.engine, self._columns)
        begun = processor()
        for chunk in chunks:
            _ = View(chunk.batch, segment.clauses, self.engine._compiler.world).features
        look_up = processor() - begun
        clock, arena = Clock(processor), Arena()
        seen = Seen(*map(sum, zip(*(_seen(segment, chunk, clock, arena) for chunk in chunks), strict=True)))
        stages = clock.seconds()
        return (stages["select"], look_up, sum(stages.values())), seen

    def insertion(self, matcher: str, count: int) -> float:
        """Microseconds to insert one of the last `count` subscriptions, into an index of all the others."""
        clauses, whole = self.segment.clauses, len(self.segment)
        first = np.arange(whole - count, dtype=np.int64)
        before = merge([(clauses, first)])
        grown = merge([(clauses, first), (clauses, np.arange(whole - count, whole, dtype=np.int64))])
        return min(_inserted(matcher, before, grown, count) for _ in range(3)) * 1e6


def _seen(segment: Segment, chunk: Chunk, clock: Clock, arena: Arena) -> Seen:
    """Match a chunk."""
    arena.begin(len(chunk.batch))
    rows = segment.rows(chunk, None, clock, arena)
    arena.add(rows.offset, rows.accepted, rows.columns, 0)
    looked_at = rows.looked_at
    return Seen(len(arena.take_rows()[0]), looked_at.nodes, looked_at.comparisons, looked_at.list_steps)


def _inserted(matcher: str, before: Clauses, grown: Clauses, count: int) -> float:
    """Seconds to insert one."""
    index = find("matcher", matcher).build(before)
    begun = processor()
    index.inserted(grown, len(before))
    return (processor() - begun) / count


def size_of(index: object) -> int:
    """The edges of G_M, or the nodes of the forest."""
    return index.edges if isinstance(index, StarEdges) else index.nodes if isinstance(index, ForestIndex) else 0


def used_megabytes(index: Any) -> float:
    """The memory of an index in use: of tables their rows, of lists their entries and the lists that have any, of
    arrays what lies before their last number that is not 0. Room for more does not count."""
    if not isinstance(index, PaperIndex):
        return float(sum(array.nbytes for array in index.arrays().values())) / 1e6
    structure = index.store.structure
    return sum(map(_used, structure if isinstance(structure, tuple) else (structure,))) / 1e6


def read_megabytes(index: object) -> float:
    """The columns that selection reads beside the structure: iBroker compares the patterns and words of subscriptions,
    RTF knows words by numbers of its own, and of others it is not asked."""
    columns: tuple[Any, ...] = ()
    if isinstance(index, ChainIndex):
        columns = *index.clauses.table.columns, index.clauses.tests.columns.kind
    elif isinstance(index, ForestIndex):
        columns = (index.number,)
    return float(sum(column.nbytes for column in columns)) / 1e6


def _used(part: Any) -> int:
    if isinstance(part, Table):
        return int(part.used[0]) * _ROW
    if isinstance(part, Lists):
        return int(part.used[0]) * _ENTRY + int(np.count_nonzero(part.first >= 0)) * _LIST
    places = np.flatnonzero(part)
    return int(places[-1] + 1) * part.itemsize if len(places) else 0
