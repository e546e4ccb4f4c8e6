"""What *merging* goes by, of a large sample: statCollection (001, section 4.3) as a job on Spark.

    each task:   match its publications; put each, with the number of its matches, into the summaries of the task;
                 keep the `MOST_PUBLICATIONS` whose content hashes are the least
    the driver:  put all summaries together, those with the largest counters first, and keep as many publications again

So the publications that are kept are drawn by lot, whatever the tasks were, and the counters add up to all matches.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from triplewire.engine import Engine
from triplewire.engine.views import encoded, match_chunks
from triplewire.errors import Refusal
from triplewire.model.publication import Publication
from triplewire.partition.sample import Statistics, Summaries, Summary
from triplewire.pipeline.filter import IndexFilter, parted
from triplewire.pipeline.rows import PUBLICATION_ROWS, columns_of, publication_rows, widened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_PUBLICATIONS, MOST_SUMMARIES = 1_000, 10_000
"""Publications that are kept, and summaries of a task, those with the largest counters."""

ROWS = pa.schema([*PUBLICATION_ROWS, ("counter", pa.int64())])
"""What a task gives: summaries with their counters; publications that it keeps, without one; and refusals."""


@dataclass(frozen=True)
class StatCollection:
    """Counts in a worker what matches: `PUBLICATION_ROWS` in, `ROWS` out."""

    filter: IndexFilter

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What the publications of a task say."""
        engine, summaries, lots = self.filter.opened().server(), Summaries(), _Lots()
        for batch in batches:
            refusals, rows = parted(batch)
            if refusals.num_rows:
                yield widened(refusals, ROWS)
            for publication, counter in _counted(engine, rows):
                summaries.add(Summary(frozenset(publication.triples), counter))
                lots.add(publication)
        counted = summaries.largest()[:MOST_SUMMARIES]
        counters = pa.array([summary.counter for summary in counted], pa.int64())
        yield widened(publication_rows([summary.publication for summary in counted]), ROWS, counter=counters)
        yield widened(publication_rows(lots.drawn()), ROWS)


def _counted(engine: Engine, rows: pa.RecordBatch) -> Iterator[tuple[Publication, int]]:
    """The publications of a batch, each with the number of subscriptions that match it."""
    chunks = encoded(engine, rows)
    counts = {id(part.chunk): np.bincount(part.publication, minlength=len(part.chunk)) for part in
              match_chunks(engine, chunks).parts}  # fmt: skip
    for chunk in chunks:
        matched = counts.get(id(chunk), np.zeros(len(chunk), np.int64))
        yield from ((chunk.publication(number), int(matched[number])) for number in range(len(chunk)))


class _Lots:
    """The publications whose content hashes are the least."""

    def __init__(self) -> None:
        self._drawn: list[tuple[int, str, Publication]] = []  # a heap, the greatest hash first
        self._there: set[str] = set()

    def add(self, publication: Publication) -> None:
        content = publication.content_hash
        entry = -int(content, 16), content, publication
        if content in self._there or (len(self._drawn) == MOST_PUBLICATIONS and entry[0] < self._drawn[0][0]):
            return
        self._there.add(content)
        heapq.heappush(self._drawn, entry)
        if len(self._drawn) > MOST_PUBLICATIONS:
            self._there.discard(heapq.heappop(self._drawn)[1])

    def drawn(self) -> list[Publication]:
        """In the order of their hashes."""
        return [publication for _, _, publication in sorted(self._drawn, key=lambda entry: -entry[0])]


def collected(rows: DataFrame, index: IndexFilter, engine: Engine) -> tuple[Statistics, list[Refusal]]:
    """What the publications of a data frame (`sources.publications`) say of the subscriptions of an index, and what of
    them was refused. `engine`: any one, which decodes them."""
    told = rows.mapInArrow(StatCollection(index), columns_of(ROWS)).toArrow().combine_chunks()
    summaries, lots, refusals = list[Summary](), _Lots(), list[Refusal]()
    for batch in told.cast(ROWS).to_batches():
        letters, publications = parted(batch)
        refusals += [Refusal(**letter) for letter in letters.column("refusal").to_pylist()]
        counters = publications.column("counter").to_pylist()
        each = (chunk.publication(number) for chunk in encoded(engine, publications) for number in range(len(chunk)))
        for publication, counter in zip(each, counters, strict=True):
            if counter is None:
                lots.add(publication)
            else:
                summaries.append(Summary(frozenset(publication.triples), counter))
    together = Summaries()
    for summary in sorted(summaries, key=lambda summary: (-summary.counter, sorted(map(str, summary.triples)))):
        together.add(summary)
    return Statistics(lots.drawn(), together.largest()), sorted(refusals, key=str)
