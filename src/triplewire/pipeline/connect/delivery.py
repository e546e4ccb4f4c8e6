"""Hands the rows of each micro-batch to sinks: before its commit, so that none is committed that was not delivered.

A micro-batch that is repeated is delivered again, under the same name: stream, number, and the identity of each row.
Databases then have its rows in place of those of the try before; Kafka and webhooks get the rows again, as what they
got before (docs/streams.md).
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from triplewire.errors import Refusal
from triplewire.folders import replace_text
from triplewire.net.addresses import JDBC, KAFKA, WEBHOOK, Address
from triplewire.notify.rows import AT_ONCE, LETTER, MATCH, RECORDS, Part, Sink
from triplewire.notify.sqlite import SqliteSink
from triplewire.notify.webhook import WebhookSink
from triplewire.pipeline.connect.databases import JdbcSink
from triplewire.pipeline.connect.documents import escape
from triplewire.pipeline.connect.kafka import KafkaSink
from triplewire.pipeline.connect.sink_rows import SCHEMAS, SparkSink, rows_of
from triplewire.pipeline.rows import columns_of, storable
from triplewire.pipeline.written import text_bytes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "_stream"
"""The file in the output folder that holds the name of the stream: 32 hexadecimal digits, made by chance."""

DELIVERING = "_delivering"
"""The file in the output folder that holds the number of the last micro-batch that was handed to sinks."""

_TABLES = {MATCH: "matches", LETTER: "dead_letters"}


def sink(target: Address, kind: str) -> SparkSink:
    """The sink of an address, for rows of this kind (`MATCH`, `LETTER`)."""
    target = target.named(_TABLES[kind])
    if target.kind == KAFKA:
        return KafkaSink(target)
    if target.kind == JDBC:
        return JdbcSink(target, kind)
    return PlainRows(WebhookSink(target) if target.kind == WEBHOOK else SqliteSink(target, kind))


@dataclass(frozen=True)
class PlainRows:
    """Gives a sink of plain rows those of data frames, in the driver."""

    inner: Sink

    def __str__(self) -> str:
        return str(self.inner)

    def check(self, spark: SparkSession, stream: str, stop: threading.Event | None = None) -> None:
        """See `Sink`."""
        self.inner.check(stream, stop)

    def deliver(self, rows: DataFrame, part: Part) -> list[Refusal]:
        """See `Sink`."""
        return self.inner.deliver(map(RECORDS[part.kind]._make, rows.toLocalIterator()), part)


@dataclass
class Delivery:
    """The sinks of a run: for matches, and for dead letters. `stream` names the run in them; `at` is
    `output.Output.at`, and `stop` ends the waiting of a sink."""

    matches: Sequence[SparkSink] = ()
    letters: Sequence[SparkSink] = ()
    stream: str = ""
    at: Callable[[str], None] = lambda point: None
    stop: threading.Event = field(default_factory=threading.Event)
    _spark: SparkSession | None = field(default=None, init=False)
    _folder: Path = field(default=Path(), init=False)
    # a stream refuses files while a micro-batch is delivered, and a table has one staging table
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def open(self, spark: SparkSession, folder: Path) -> None:
        """Get the name of the stream, and find out what is missing. Raises `TriplewireError`."""
        if not (self.matches or self.letters):
            return
        self._spark, self._folder = spark, folder
        self.stream = self.stream or stream_of(folder)
        for target in (*self.matches, *self.letters):
            target.check(spark, self.stream, self.stop)

    def committing(self, folders: tuple[Path, Path], batch: int, *, replaces: bool) -> list[Refusal]:
        """Deliver the files of a micro-batch, of matches and of dead letters. Returns what no receiver will take; what
        no receiver of matches will take goes to those of dead letters, too. The rows of a batch run, and those of a
        micro-batch that is repeated, replace what was delivered before, as far as a sink can."""
        if not (self.matches or self.letters):
            return []
        file, before = self._folder / DELIVERING, ""
        with suppress(FileNotFoundError):
            before = file.read_text(encoding="ascii").strip()
        replace_text(file, f"{batch}\n")
        replaces = replaces or before == str(batch)  # it was handed to sinks before
        matches = self._from_files(self.matches, folders[0], Part(self.stream, batch, MATCH, replaces, self.stop))
        letters = self._from_files(self.letters, folders[1], Part(self.stream, batch, LETTER, replaces, self.stop))
        letters += self.refused(matches, batch)
        self.at("delivered")
        return matches + letters

    def refused(self, refusals: Iterable[Refusal], batch: int) -> list[Refusal]:
        """Deliver dead letters of the driver, with those of a micro-batch or under a number that none has. Returns what
        no receiver will take."""
        letters = [storable(refusal) for refusal in refusals]
        if not (letters and self.letters):
            return []
        assert self._spark is not None
        rows = self._spark.createDataFrame(letters, columns_of(SCHEMAS[LETTER]))
        return self._deliver(self.letters, rows, Part(self.stream, batch, LETTER, stop=self.stop))

    def _from_files(self, targets: Sequence[SparkSink], folder: Path, part: Part) -> list[Refusal]:
        if not targets or not (part.replaces or any(map(_rows_in, folder.glob("*.parquet")))):
            return []
        assert self._spark is not None
        files = sorted(folder.glob("*.parquet"))
        size, count = sum(map(text_bytes, files)), sum(map(_rows_in, files))
        parts, spark = size // AT_ONCE + 1, self._spark
        if parts > 1:
            spark = spark.newSession()
            spark.conf.set("spark.sql.parquet.enableVectorizedReader", "false")  # it has thousands of rows in memory
        rows = spark.read.schema(columns_of(SCHEMAS[part.kind])).parquet(*[escape(f"file://{file}") for file in files])
        return self._deliver(targets, rows, replace(part, row_bytes=size // max(count, 1)), parts)

    def _deliver(self, targets: Sequence[SparkSink], rows: DataFrame, part: Part, parts: int = 1) -> list[Refusal]:
        with self._lock:
            rows = rows_of(rows, part.kind, parts)
            if len(targets) > 1 and parts == 1:  # long rows are read again: Spark would not keep them in bounds
                rows.persist()
            try:
                return [
                    replace(refusal, where=str(target)) for target in targets for refusal in target.deliver(rows, part)
                ]
            finally:
                rows.unpersist()


def stream_of(folder: Path) -> str:
    """The name of the stream that writes to an output folder; a new one where it has none."""
    file = folder / NAME
    if not file.exists():
        replace_text(file, f"{secrets.token_hex(16)}\n")
    return file.read_text(encoding="ascii").strip()


def _rows_in(file: Path) -> int:
    return int(pq.read_metadata(file).num_rows)
