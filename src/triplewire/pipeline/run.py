"""A run of the pipeline: files in, matches and dead letters out as Parquet, as a batch or as a stream.

Its parts: `sources` (files to publications), `jobs` (publications to outcomes), `sinks` (the output folder).
"""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from triplewire.config import Settings
from triplewire.errors import Refusal, TriplewireError
from triplewire.pipeline.filter import PackedEngine
from triplewire.pipeline.jobs import dead_letters, matches, outcomes
from triplewire.pipeline.sinks import DEAD_LETTER, MATCHES, Output
from triplewire.pipeline.sources import passed_over, publications

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BEFORE = "batch=-1"  # the folder of refusals before the first micro-batch of a stream


@dataclass
class Summary:
    """The counts of a run: publications read, matches written, inputs refused, micro-batches (1 for a batch)."""

    publications: int = 0
    matches: int = 0
    refused: int = 0
    batches: int = 0


@dataclass
class PipelineRun:
    """One run: a source of publications, packed subscriptions, and an output folder that is prepared.

    `refused` are the subscriptions that `jobs.compile_filter` refused; they are written as dead letters too.
    `on_refusal` is called with each other refusal, `on_batch` with the counts after each micro-batch, and `look` with
    the outcomes (`rows.OUTCOME_ROWS`) while they are in memory. Another thread may set `stop`, which ends the stream.
    The next run repeats a micro-batch that was not finished.
    """

    source: str
    subscriptions: PackedEngine
    output: Output
    refused: tuple[Refusal, ...] = ()
    split: str = "item"
    settings: Settings = field(default_factory=Settings)
    on_refusal: Callable[[Refusal], None] = lambda refusal: None
    on_batch: Callable[[Summary], None] = lambda summary: None
    look: Callable[[DataFrame], None] = lambda outcomes: None
    stop: threading.Event = field(default_factory=threading.Event)
    summary: Summary = field(default_factory=Summary)

    def batch(self, spark: SparkSession) -> Summary:
        """Match all files that exist now. The results replace those of an earlier run."""
        facts = {"streaming": False, "subscriptions": self.subscriptions.version}
        self.output.record(**facts)
        rows = publications(spark, self.source, split=self.split, settings=self.settings)
        self.summary.refused = len(self.refused)
        self._process(rows, "")
        ended = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        self.output.record(**facts, matches=self.summary.matches, ended=ended)
        return self.summary

    def stream(self, spark: SparkSession, watch: float = 0) -> Summary:
        """Match the files that no earlier run with this output has processed, each exactly once, in micro-batches.

        It ends when there are no more. With `watch`, it looks for new files every `watch` seconds until `stop` is set.
        """
        self.output.record(streaming=True, subscriptions=self.subscriptions.version)
        rows = publications(spark, self.source, streaming=True, split=self.split, settings=self.settings)
        self._before_stream()
        writer = rows.writeStream.option("checkpointLocation", f"file://{self.output.checkpoint}")
        writer = writer.trigger(processingTime=f"{watch} seconds") if watch else writer.trigger(availableNow=True)
        query = writer.foreachBatch(lambda rows, number: self._process(rows, f"batch={number}")).start()
        try:
            while query.isActive and not self.stop.wait(0.5):
                pass
        finally:
            query.stop()
        failed = query.exception()
        if failed is not None and not self.stop.is_set():
            raise failed
        return self.summary

    def _process(self, rows: DataFrame, part: str) -> None:
        """Match publications and write the outcomes of a batch or a micro-batch."""
        # imported here because Spark is an optional dependency
        from pyspark.sql import Observation
        from pyspark.sql.functions import count_if, expr

        seen = Observation()
        rows = rows.observe(seen, count_if(expr("refusal IS NULL")).alias("publications"))
        held = outcomes(rows, self.subscriptions).persist()  # else the two outputs match everything twice
        try:
            self.output.write(MATCHES, matches(held))
            self.output.write(DEAD_LETTER, dead_letters(held))
            self.look(held)
        finally:
            held.unpersist()
        if not part:
            self.output.write_refusals(self.refused)
        self.output.commit(part)
        self.summary.publications += seen.get["publications"] or 0
        self.summary.matches += self.output.count(part)
        self.summary.batches += 1
        for refusal in self.output.refusals(part):
            self.summary.refused += 1
            self.on_refusal(refusal)
        self.on_batch(self.summary)

    def _before_stream(self) -> None:
        """Write the dead letters of no micro-batch: refused subscriptions, and files that Spark's streams leave out."""
        remedy = "run without --streaming, or give it a name (and content) that Spark takes"
        left = [
            Refusal.of("publication", str(file), TriplewireError(f"a stream passes over {why}", remedy=remedy))
            for file, why in passed_over(self.source)
        ]
        self.output.write_refusals([*self.refused, *left])
        self.output.commit(BEFORE)
        self.summary.refused = len(self.refused) + len(left)
        for refusal in left:
            self.on_refusal(refusal)
