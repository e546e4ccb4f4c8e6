"""A run of the pipeline: publications in, matches and dead letters out as Parquet, as a batch or as a stream.

Its parts: `sources` (publications), `jobs` (publications to outcomes), `output` (the output folder), `connect.delivery`
(sinks beside it); of a stream also `connect.arrivals` (which files are new) and `match_ledger` (which matches are).
"""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from triplewire.config import Settings
from triplewire.errors import ReadError, Refusal, TriplewireError
from triplewire.model.same import Same
from triplewire.net.addresses import Connections
from triplewire.pipeline.committed import write_metrics
from triplewire.pipeline.connect.arrivals import SETTLE, Arrivals
from triplewire.pipeline.connect.delivery import Delivery
from triplewire.pipeline.connect.documents import prune
from triplewire.pipeline.connect.kafka import Topic
from triplewire.pipeline.filter import Calling, IndexFilter, JobLearning
from triplewire.pipeline.index.pins import IndexSource, Pins
from triplewire.pipeline.jobs import write_outcomes, write_outcomes_of_files
from triplewire.pipeline.match_ledger import HORIZON, MatchLedger
from triplewire.pipeline.output import DEAD_LETTER, MATCHES, Counts, Output, Totals, last_batch, last_counts
from triplewire.pipeline.session import cancelled_at, unless_java_is_gone
from triplewire.pipeline.sources import FileReader, files, has_files, is_remote, publications, read_by_stream
from triplewire.pipeline.written import Target, Written
from triplewire.sources.inbox import FOLDER as DOCUMENTS
from triplewire.sources.inbox import PREFIX as INBOX
from triplewire.sources.lists import addresses, is_list
from triplewire.sources.poller import Poller

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_SIGNALS = 2.0  # seconds in which a signal to all processes reaches this one, when it has ended Java
_PATIENCE = 3  # times as long as a file has to be unchanged, a run waits for those that change while it begins
_STILL_CHANGES = ReadError("it still changes: it was not read", remedy="start the stream again, and it is read")
_TRIGGER = 1.0  # seconds between Spark's looks at what it streams itself, at most
_ENDING = 10.0  # seconds that a micro-batch may take to end after Spark, at most
_LOOK = 30.0  # seconds between looks whether the topic is still the same, while nothing is read


def run_query(
    rows: DataFrame,
    process: Callable[[DataFrame, int], None],
    *,
    checkpoint: Path,
    watch: float,
    stop: threading.Event,
    topic: Topic,
    at_end: Callable[[], None],
) -> None:
    """Have Structured Streaming make micro-batches of rows (of topics, of files that are not on this machine, and of
    feeds that were polled), and keep in its checkpoint what it has read, until there are no more; with `watch`, until
    `stop` is set. `process` gets each, with its number; `at_end` is called when there will be no more of them. Raises
    what `process` or Spark has raised, or says what became of the topic."""
    raised: list[Exception] = []  # Spark has the text alone of what it is told
    is_idle = threading.Event()
    is_idle.set()

    def process_batch(batch: DataFrame, number: int) -> None:
        is_idle.clear()
        try:
            process(batch, number)
        except Exception as error:
            raised.append(error)
            raise
        finally:
            is_idle.set()

    writer = rows.writeStream.option("checkpointLocation", f"file://{checkpoint}")
    if watch:
        writer = writer.trigger(processingTime=f"{min(watch, _TRIGGER)} seconds")
    else:
        writer = writer.trigger(availableNow=True)
    query = writer.foreachBatch(process_batch).start()
    failed: Exception | None = None
    try:
        try:
            looked = time.monotonic()
            while query.isActive and not stop.wait(0.5):
                if is_idle.is_set() and time.monotonic() > looked + _LOOK:
                    topic.check_idle()
                    looked = time.monotonic()
        finally:
            query.stop()
        failed = query.exception()
    except Exception as error:  # Java has ended, or the topic is another one
        failed = error
    finally:
        at_end()
        is_idle.wait(_ENDING)  # what has just been committed is counted
    if failed is None:
        return
    failed = raised[-1] if raised else failed
    if not (stop.is_set() or isinstance(failed, TriplewireError)):
        with unless_java_is_gone():
            topic.check()
    raise failed


@dataclass
class PipelineRun:
    """One run: a source of publications, an index of subscriptions, and an output folder that is prepared.

    `refused` are subscriptions that were refused before; they are written as dead letters too.
    `on_refusal` is called with each other refusal, `on_note` with what else a user should know, and `on_batch` with
    the counts after each micro-batch. `delivery` has the sinks beside the output folder. Another thread may set
    `stop`, which ends the stream.

    The next run repeats a micro-batch that was not finished.
    """

    source: str
    subscriptions: IndexSource
    output: Output
    refused: tuple[Refusal, ...] = ()
    split: str = "item"
    settings: Settings = field(default_factory=Settings)
    as_written: bool = False
    on_refusal: Callable[[Refusal], None] = lambda refusal: None
    on_note: Callable[[str], None] = lambda note: None
    on_batch: Callable[[Totals], None] = lambda summary: None
    calling: Calling = field(default_factory=Calling)
    connections: Connections | None = None  # what the source needs
    delivery: Delivery = field(default_factory=Delivery)
    stop: threading.Event = field(default_factory=threading.Event)
    summary: Totals = field(default_factory=Totals)
    _start: str = field(default="", init=False)  # the folder for the refusals of this start
    _pending: list[str] = field(default_factory=list, init=False)  # files that still change
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _is_gone: bool = field(default=False, init=False)  # the source

    def batch(self, spark: SparkSession) -> Totals:
        """Match all files that exist now. The results replace those of an earlier run."""
        self._connect(spark)
        Topic(spark, self.source, self.connections).id()  # can it be reached? Spark would try for minutes
        facts = {"streaming": False, "subscriptions": self.subscriptions.identity}
        self.output.record(**facts)
        rows = self._rows(spark, self.source, False)
        self.summary.refused = len(self.refused)
        self._process(partial(write_outcomes, rows, reader=self._reader), "", refused=self.refused)
        ended = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        self.output.record(**facts, matches=self.summary.matches, ended=ended)
        self.subscriptions.release()
        return self.summary

    def stream(
        self,
        spark: SparkSession,
        watch: float = 0,
        *,
        settle: float = SETTLE,
        repeat: bool = False,
        same: Same = Same.ITEM,
        horizon: dt.timedelta = HORIZON,
    ) -> Totals:
        """Match the files that no earlier run with this output has processed, each exactly once, in micro-batches.

        It ends when there are no more. With `watch`, it looks for new files every `watch` seconds until `stop` is set.
        A file counts when it has not changed for `settle` seconds; one that changes later is read again. A match that
        was told before is not told again within the `horizon`, but with `repeat`; `same` says which are the same.
        `MatchLedger` and `Arrivals` say more. Of files elsewhere than on this machine, each is read once, as Spark
        first sees it. Feeds of a list are polled: what is due, or, with `watch`, whatever becomes due.
        """
        try:
            self._stream(spark, watch, settle, None if repeat else same, horizon)
        except Exception as error:  # the signal that ends the stream may have ended Java before, or a job
            is_refused = isinstance(error, TriplewireError) and not self._start  # before it began
            if not self.stop.wait(0 if is_refused else _SIGNALS):
                raise
        if self._pending:
            self._refuse([Refusal.of("publication", path, _STILL_CHANGES) for path in self._pending])
        return self.summary

    def _stream(
        self, spark: SparkSession, watch: float, settle: float, same: Same | None, horizon: dt.timedelta
    ) -> None:
        """`stream`, as far as it comes. Raises what of Spark has failed, also where `stop` is set."""
        self._connect(spark)
        self._compare_with_last_start()
        source = self.source
        if is_list(source):
            inbox = self.output.inbox / DOCUMENTS
            inbox.mkdir(parents=True, exist_ok=True)  # Spark looks for it before the first poll
            source = f"{INBOX}{inbox}"
        remote, reads = is_remote(source), read_by_stream(source)
        check_id = partial(self.output.check_progress, reads)
        topic = Topic(spark, self.source, self.connections, check_id, self.output.checkpoint)
        check_id(topic_id := topic.id())
        self.output.record(
            streaming=True, subscriptions=self.subscriptions.identity, remote=remote, reads=reads, topic_id=topic_id
        )
        self._start = self.output.next_start()
        self._record(self.refused)
        self.summary.refused = len(self.refused)
        ledger = None if same is None else MatchLedger(self.output.told, horizon, self.output.at, same)
        if ledger is not None and (note := ledger.begin()):
            self.on_note(note)
        if remote:
            run_query(
                self._rows(spark, source, True),
                partial(self._process_read, topic, ledger),
                checkpoint=self.output.checkpoint,
                watch=watch,
                stop=self.stop,
                topic=topic,
                at_end=self._poll(watch, horizon),
            )
        else:
            self._stream_files(spark, watch, settle, ledger)

    def _process_read(self, topic: Topic, ledger: MatchLedger | None, batch: DataFrame, number: int) -> None:
        """Process a micro-batch that Structured Streaming has made, with what is gone of its topic."""
        gone: list[Refusal] = []

        def work(chosen: IndexFilter, target: Target) -> Written:
            with topic.around_job(number, gone):
                return write_outcomes(batch, chosen, target, reader=self._reader)

        self._process(work, f"batch={number}", ledger, number, gone)

    def _stream_files(self, spark: SparkSession, watch: float, settle: float, ledger: MatchLedger | None) -> None:
        """The micro-batches of files of this machine, one after the other. Each is a job of Spark's; which files it
        reads is written down before."""
        arrivals = Arrivals(self.source, self.output.arrivals, settle, spark.sparkContext.defaultParallelism)
        reader = self._reader
        assert reader is not None
        with cancelled_at(self.stop, spark):
            looked = time.monotonic()
            last = last_batch(self.output.folder / MATCHES)
            committed = -1 if last is None else last
            patience = looked + _PATIENCE * settle  # for those that still change
            self._take(arrivals, committed)
            while self._pending and time.monotonic() < patience and not self.stop.wait(min(settle, 0.25)):
                self._take(arrivals, committed)
            while True:
                for number, tasks in arrivals.batches(committed):
                    work = partial(write_outcomes_of_files, spark, tasks, reader=reader)
                    self._process(work, f"batch={number}", ledger, number)
                    if self.stop.is_set():
                        return
                    committed = number
                if not watch or self.stop.wait(max(looked + watch - time.monotonic(), 0)):
                    return
                looked = time.monotonic()
                self._take(arrivals, committed)

    def _poll(self, watch: float, horizon: dt.timedelta) -> Callable[[], None]:
        """Poll the feeds, where the source is a list of them: once, or while the stream runs. What was read and is past
        the horizon is removed. Returns what ends it."""
        if not is_list(self.source):
            return lambda: None
        feeds = addresses(Path(self.source), self.settings, lambda refusal: self._refuse([refusal]))
        connections = self.connections or Connections()
        # a poll of all that is due ends with the run; one that watches is ended, and must not end the run
        stop = threading.Event() if watch else self.stop
        documents, checkpoint = self.output.inbox / DOCUMENTS, self.output.checkpoint
        tidy = partial(prune, documents, checkpoint, horizon.total_seconds())
        poller = Poller(feeds, self.output.inbox, connections, stop=stop, on_note=self.on_note, tidy=tidy)
        return poller.begin(watch > 0)

    @cached_property
    def _reader(self) -> FileReader | None:
        """What reads the rows of the source in the workers: None where they are publications."""
        return FileReader(self.split, self.settings, self.as_written) if has_files(self.source) else None

    def _rows(self, spark: SparkSession, source: str, streaming: bool) -> DataFrame:
        """Files for `_reader`, or publications."""
        if self._reader is not None:
            return files(spark, source, streaming, self.settings)
        how: dict[str, Any] = {"split": self.split, "settings": self.settings, "as_written": self.as_written}
        return publications(spark, source, streaming, connections=self.connections, **how)

    @cached_property
    def _learning(self) -> JobLearning:
        """What the runs with this output have learned of operators."""
        return JobLearning(self.output.learned)

    def _compare_with_last_start(self) -> None:
        """Say where files that were read are not matched again, though the answers might be others now."""
        if not self.subscriptions.source:
            return  # an index is meant to change
        before = self.output.last_record() or {}
        if before.get("streaming") is True and before.get("subscriptions") != self.subscriptions.identity:
            self.on_note(
                "the subscriptions, the taxonomy or the limits are not those of the start before: what was read then "
                "is not matched again; for that, choose another output folder"
            )

    def _take(self, arrivals: Arrivals, committed: int) -> None:
        """Write down which files have come, with a record of what is passed over or read again. `committed` is the
        last micro-batch that was."""
        try:
            result = arrivals.scan(committed)
        except (ReadError, PermissionError) as error:  # the folder is gone or locked, perhaps to come again
            if not self._is_gone:
                self.on_note(str(error))
            self._is_gone = True
            return
        self._is_gone = False
        self._pending = result.pending
        self._refuse(result.refusals)
        for path in result.changed:
            self.on_note(f"{path} has changed since it was read: it is read again")
        arrivals.take(result)

    def _refuse(self, refusals: list[Refusal]) -> None:
        """Record refusals beside those of the micro-batches, and tell them."""
        self._record(refusals)
        self._tell(refusals)

    def _record(self, refusals: Sequence[Refusal]) -> None:
        self.output.add_refusals(refusals, self._start)
        unsent = self.delivery.refused(refusals, int(self._start.removeprefix("batch=")))
        self.output.add_refusals(unsent, self._start)
        self._tell(unsent)

    def _connect(self, spark: SparkSession) -> None:
        """Find out whether the sinks can be written to, before there is something to write."""
        self.delivery.at, self.delivery.stop = self.output.at, self.stop
        self.delivery.open(spark, self.output.folder)

    def _tell(self, refusals: Iterable[Refusal]) -> None:
        """Count and report refusals, of which micro-batches and looks at files may have some at once."""
        with self._lock:
            for refusal in refusals:
                self.summary.refused += not refusal.is_warning
                self.on_refusal(refusal)

    def _process(
        self,
        work: Callable[[IndexFilter, Target], Written],
        part: str,
        ledger: MatchLedger | None = None,
        number: int = 0,
        refused: Sequence[Refusal] = (),
    ) -> None:
        """Match publications and write the outcomes, as `work` does with these subscriptions, of a batch, or of the
        micro-batch of this number: those that the ledger does not have. `refused` are refusals of the driver, to which
        `work` may add."""
        begun = time.perf_counter()
        if part and self.output.is_committed(part):  # by a try that ended before Spark knew of it
            self._committed(part)
            return
        called = replace(self.calling, budgets=self.calling.budgets or str(self.output.budgets))
        # a micro-batch that is repeated is matched with what it was matched with before
        pins = Pins(self.output.pins, self.output.at)
        chosen = self.subscriptions.pinned(pins, number) if part else self.subscriptions.newest()
        target = Target(self.output.for_tasks(), chosen.version, None if ledger is None else ledger.same)
        written = work(replace(chosen, calling=self._learning.told(called)), target)
        self._learning.merge(written.learned)
        repeats = 0
        if ledger is not None:
            is_new, repeats = ledger.new(written.identities(), number)
            if repeats:
                written.retain(is_new)
        for kind in (MATCHES, DEAD_LETTER):
            self.output.take(kind, written.files(kind))
        self.output.write_refusals(refused)
        unsent = self.delivery.committing(self.output.uncommitted(), number, replaces=not part)
        if unsent:
            self.output.write_refusals((*refused, *unsent))
        refusals = written.total("refused") + len(unsent) + sum(not refusal.is_warning for refusal in refused)
        publications, candidates = written.total("publications"), written.total("candidates")
        own = Totals(1, publications, self.output.count(), refusals, repeats, candidates)
        before = last_counts(self.output.folder / MATCHES) if part else None
        total = own + (before.total if before is not None else Totals())
        self.output.commit(
            part, Counts(own, total, round(time.perf_counter() - begun, 3), more={"index_version": chosen.version})
        )
        self._tell(unsent)
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
