"""A run of the pipeline: files in, matches and dead letters out as Parquet, as a batch or as a stream.

Its parts: `sources` (files to publications), `jobs` (publications to outcomes), `sinks` (the output folder); of a
stream also `arrivals` (which files are new) and `results.told` (which matches are).
"""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from triplewire.config import Settings
from triplewire.errors import ReadError, Refusal
from triplewire.pipeline.arrivals import SETTLE, Arrivals
from triplewire.pipeline.calling import Calling, JobLearning
from triplewire.pipeline.filter import PackedEngine
from triplewire.pipeline.index.filters import IndexFilter
from triplewire.pipeline.index.pins import IndexSource, Pins
from triplewire.pipeline.jobs import dead_letters, held_outcomes, matches
from triplewire.pipeline.results.counts import Counts, Totals, last_counts
from triplewire.pipeline.results.status import write_metrics
from triplewire.pipeline.results.told import HORIZON, Ledger
from triplewire.pipeline.sinks import DEAD_LETTER, MATCHES, Output
from triplewire.pipeline.sources import is_remote, listed_publications, publications

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TRIGGER = 1.0  # seconds between Spark's looks at the listings, at most
_PATIENCE = 3  # times as long as a file has to be unchanged, a run waits for those that change while it begins
_STILL_CHANGES = ReadError("it still changes: it was not read", remedy="start the stream again, and it is read")


@dataclass
class Summary:
    """The counts of a run: publications read, matches written, inputs refused, micro-batches (1 for a batch), and
    matches that were not written because they had been told before."""

    publications: int = 0
    matches: int = 0
    refused: int = 0
    batches: int = 0
    repeats: int = 0


@dataclass
class PipelineRun:
    """One run: a source of publications, packed subscriptions or an index, and an output folder that is prepared.

    `refused` are the subscriptions that `jobs.compile_filter` refused; they are written as dead letters too.
    `on_refusal` is called with each other refusal, `on_note` with what else a user should know, `on_batch` with the
    counts after each micro-batch, and `look` with the outcomes (`rows.OUTCOME_ROWS`) while they are in memory. Another
    thread may set `stop`, which ends the stream.
    The next run repeats a micro-batch that was not finished.
    """

    source: str
    subscriptions: PackedEngine | IndexSource
    output: Output
    refused: tuple[Refusal, ...] = ()
    split: str = "item"
    settings: Settings = field(default_factory=Settings)
    as_written: bool = False
    on_refusal: Callable[[Refusal], None] = lambda refusal: None
    on_note: Callable[[str], None] = lambda note: None
    on_batch: Callable[[Summary], None] = lambda summary: None
    look: Callable[[DataFrame], None] = lambda outcomes: None
    calling: Calling = field(default_factory=Calling)
    stop: threading.Event = field(default_factory=threading.Event)
    summary: Summary = field(default_factory=Summary)
    _start: str = field(default="", init=False)  # the folder for the refusals of this start
    _pending: list[str] = field(default_factory=list, init=False)  # files that still change
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _is_gone: bool = field(default=False, init=False)  # the source

    def batch(self, spark: SparkSession) -> Summary:
        """Match all files that exist now. The results replace those of an earlier run."""
        facts = {"streaming": False, "subscriptions": self._version}
        self.output.record(**facts)
        rows = self._publications(spark)
        self.summary.refused = len(self.refused)
        self._process(rows, "")
        ended = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        self.output.record(**facts, matches=self.summary.matches, ended=ended)
        return self.summary

    def stream(
        self,
        spark: SparkSession,
        watch: float = 0,
        *,
        settle: float = SETTLE,
        repeat: bool = False,
        horizon: dt.timedelta = HORIZON,
    ) -> Summary:
        """Match the files that no earlier run with this output has processed, each exactly once, in micro-batches.

        It ends when there are no more. With `watch`, it looks for new files every `watch` seconds until `stop` is set.
        A file counts when it has not changed for `settle` seconds; one that changes later is read again. A match that
        was told before is not told again within the `horizon`, but with `repeat`. `Ledger` and `Arrivals`
        say more. Of files elsewhere than on this machine, each is read once, as Spark first sees it.
        """
        self._compare_with_last_start()
        remote = is_remote(self.source)
        self.output.record(streaming=True, subscriptions=self._version, remote=remote)
        self._start = self.output.next_start()
        self.output.add_refusals(self.refused, self._start)
        self.summary.refused = len(self.refused)
        arrivals = None
        if remote:
            rows = self._publications(spark, streaming=True)
        else:
            tasks = spark.sparkContext.defaultParallelism
            arrivals = Arrivals(self.source, self.output.arrivals, settle, tasks)
            self._take_all(arrivals, settle)
            rows = listed_publications(
                spark, arrivals.listings, split=self.split, settings=self.settings, as_written=self.as_written
            )
        ledger = None if repeat else Ledger(self.output.told, horizon, self.output.at)
        if ledger is not None:
            ledger.forget()
        writer = rows.writeStream.option("checkpointLocation", f"file://{self.output.checkpoint}")
        if watch:
            writer = writer.trigger(processingTime=f"{min(watch, _TRIGGER)} seconds")
        else:
            writer = writer.trigger(availableNow=True)
        query = writer.foreachBatch(lambda rows, number: self._process(rows, f"batch={number}", ledger, number)).start()
        looked = time.monotonic()
        try:
            while query.isActive and not self.stop.wait(min(watch, 0.5) or 0.5):
                if watch and arrivals is not None and time.monotonic() >= looked + watch:
                    looked = time.monotonic()
                    self._take(arrivals)
        finally:
            query.stop()
        failed = query.exception()
        if failed is not None and not self.stop.is_set():
            raise failed
        self._refuse([Refusal.of("publication", path, _STILL_CHANGES) for path in self._pending])
        return self.summary

    def _publications(self, spark: SparkSession, *, streaming: bool = False) -> DataFrame:
        return publications(
            spark, self.source, streaming, split=self.split, settings=self.settings, as_written=self.as_written
        )

    def _filter(self, part: str, number: int) -> PackedEngine | IndexFilter:
        """What matches a batch, or the micro-batch of this number: when that is repeated, the same as before."""
        if isinstance(self.subscriptions, PackedEngine):
            return self.subscriptions
        pins = Pins(self.output.pins, self.output.at)
        return self.subscriptions.pinned(pins, number) if part else self.subscriptions.newest()

    @cached_property
    def _learning(self) -> JobLearning:
        """What the runs with this output have learned of operators."""
        return JobLearning(self.output.learned)

    @property
    def _version(self) -> str:
        """What the record of a run says of its subscriptions."""
        if isinstance(self.subscriptions, PackedEngine):
            return self.subscriptions.version
        return self.subscriptions.source or str(self.subscriptions.directory)

    def _compare_with_last_start(self) -> None:
        """Say where files that were read are not matched again, though the answers might be others now."""
        if isinstance(self.subscriptions, IndexSource) and not self.subscriptions.source:
            return  # an index is meant to change
        before = self.output.last_record() or {}
        if before.get("streaming") is True and before.get("subscriptions") != self._version:
            self.on_note(
                "the subscriptions, the taxonomy or the limits are not those of the start before: what was read then "
                "is not matched again; for that, choose another output folder"
            )

    def _take_all(self, arrivals: Arrivals, settle: float) -> None:
        """Take the files that are there; of those that still change, what is complete in a few seconds."""
        patience = time.monotonic() + _PATIENCE * settle
        self._take(arrivals)
        while self._pending and time.monotonic() < patience and not self.stop.wait(min(settle, 0.25)):
            self._take(arrivals)

    def _take(self, arrivals: Arrivals) -> None:
        """Hand over to Spark the files that have come, with a record of what is passed over or read again."""
        try:
            look = arrivals.look()
        except ReadError as error:  # the folder is gone, perhaps to come again
            if not self._is_gone:
                self.on_note(str(error))
            self._is_gone = True
            return
        self._is_gone = False
        self._pending = look.pending
        self._refuse(look.refusals)
        for path in look.changed:
            self.on_note(f"{path} has changed since it was read: it is read again")
        arrivals.take(look)

    def _refuse(self, refusals: list[Refusal]) -> None:
        """Record refusals beside those of the micro-batches."""
        self.output.add_refusals(refusals, self._start)
        self._tell(refusals)

    def _tell(self, refusals: Iterable[Refusal]) -> None:
        """Count and report refusals, of which micro-batches and looks at files may have some at once."""
        with self._lock:
            for refusal in refusals:
                self.summary.refused += not refusal.is_warning
                self.on_refusal(refusal)

    def _process(self, rows: DataFrame, part: str, ledger: Ledger | None = None, number: int = 0) -> None:
        """Match publications and write the outcomes of a batch, or of the micro-batch of this number: those that the
        ledger does not have."""
        begun = time.perf_counter()
        if part and self.output.is_committed(part):  # by a try that ended before Spark knew of it
            self._committed(part)
            return
        # imported here because Spark is an optional dependency
        from pyspark.sql import Observation
        from pyspark.sql.functions import count_if, expr

        seen, decided, repeats = Observation(), Observation(), 0
        rows = rows.observe(seen, count_if(expr("refusal IS NULL")).alias("publications"))
        refusals = count_if(expr("refusal.kind <> 'warning'")).alias("refused")
        letters = count_if(expr("refusal IS NOT NULL")).alias("letters")
        called = replace(self.calling, budgets=self.calling.budgets or str(self.output.budgets))
        chosen = self._filter(part, number)
        with (
            self._learning.batch(rows.sparkSession, called) as calling,
            held_outcomes(
                rows, replace(chosen, calling=calling), lambda both: both.observe(decided, refusals, letters)
            ) as held,
        ):
            told = matches(held)
            if ledger is not None:
                told, repeats = ledger.new(told, number)
            self.output.write(MATCHES, told)
            if decided.get["letters"]:  # a job of Spark's takes a part of the time of a micro-batch
                self.output.write(DEAD_LETTER, dead_letters(held))
            self.look(held)
        self.output.write_refusals(() if part else self.refused)
        own = Totals(1, seen.get["publications"] or 0, self.output.written(), decided.get["refused"] or 0, repeats)
        before = last_counts(self.output.folder / MATCHES) if part else None
        total = own + (before.total if before is not None else Totals())
        self.output.commit(
            part, Counts(own, total, round(time.perf_counter() - begun, 3), more={"index_version": chosen.version})
        )
        self._committed(part)

    def _committed(self, part: str) -> None:
        """Count and tell what was committed."""
        counts = self.output.counts(part)
        if counts is not None:
            self.summary.publications += counts.own.publications
            self.summary.repeats += counts.own.repeats
        self.summary.matches += self.output.count(part)
        self.summary.batches += 1
        self._tell(self.output.refusals(part))
        write_metrics(self.output)
        self.on_batch(self.summary)
