"""Runs a query of Spark's Structured Streaming, which makes the micro-batches of topics, of files that are not on this
machine, and of feeds that were polled."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from triplewire.errors import TriplewireError
from triplewire.pipeline.connect.topic import StreamedTopic
from triplewire.pipeline.session import unless_java_is_gone

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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
    topic: StreamedTopic,
    at_end: Callable[[], None],
) -> None:
    """Have Structured Streaming make micro-batches of rows, and keep in its checkpoint what it has read, until there
    are no more; with `watch`, until `stop` is set. `process` gets each, with its number; `at_end` is called when there
    will be no more of them. Raises what `process` or Spark has raised, or says what became of the topic."""
    own: list[Exception] = []  # Spark has the text alone of what it is told
    is_idle = threading.Event()
    is_idle.set()

    def process_batch(batch: DataFrame, number: int) -> None:
        is_idle.clear()
        try:
            process(batch, number)
        except Exception as error:
            own.append(error)
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
    failed = own[-1] if own else failed
    if not (stop.is_set() or isinstance(failed, TriplewireError)):
        with unless_java_is_gone():
            topic.check()
    raise failed
