"""A Spark session for a command: progress on standard error, failures as one sentence, and Ctrl-C."""

from __future__ import annotations

import logging
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from triplewire.cli.report import say

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from triplewire.pipeline.run import PipelineRun

Result = TypeVar("Result")


@contextmanager
def spark_for(job: PipelineRun, master: str, config: dict[str, str]) -> Iterator[SparkSession]:
    """A session for the job, with progress on standard error; Spark's failures become one sentence. In the end, other
    runs may write to the output, also where this one failed and its process goes on."""
    # --help does without the engine
    from triplewire.net.addresses import KAFKA, kind_of

    try:
        topic = job.source if kind_of(job.source) == KAFKA else ""
        with spark_with_log(job.output.log, master, config, topic) as spark:
            yield spark
    finally:
        job.output.release()


@contextmanager
def spark_with_log(log: Path, master: str, config: dict[str, str], source: str = "") -> Iterator[SparkSession]:
    """The same for work of any kind; what Spark says goes to the log. `source`: see `pipeline.session.failures`."""
    # Spark takes a second to load, and is an extra
    from triplewire.pipeline.session import failures, session_for

    say("starting Spark")
    logging.disable(logging.ERROR)  # an interrupted talk with the JVM is logged with its traceback
    try:
        with (
            session_for("triplewire pipeline", master=master, config=config, log=log) as spark,
            failures(log, source),
            _progress(spark),
        ):
            _log_errors_of_accumulators(spark, log)
            yield spark
    finally:
        logging.disable(logging.NOTSET)


def _log_errors_of_accumulators(spark: SparkSession, log: Path) -> None:
    """Have PySpark's server of accumulators write its tracebacks to the log: it raises when Java has ended."""
    server = getattr(spark.sparkContext, "_accumulatorServer", None)

    def handle_error(*_: object) -> None:
        with suppress(OSError), log.open("a", encoding="utf-8") as stream:
            traceback.print_exc(file=stream)

    if server is not None:
        server.handle_error = handle_error


def interruptible(
    spark: SparkSession, work: Callable[[], Result], stop: threading.Event, *, quietly: bool = False
) -> Result:
    """Do the work in a thread of its own, so that Ctrl-C never falls into a talk with the JVM; `quietly`: it is how
    the work is meant to end. SIGTERM, with which systems end their services, does the same."""
    from triplewire.pipeline.session import unless_java_is_gone  # it imports much

    # PySpark puts a handler of its own in place, which talks to the JVM
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            stop.set()
            if quietly:
                return future.result()
            with unless_java_is_gone():  # it may have got the same signal
                spark.stop()  # what runs fails at once, and nothing new begins
            raise


@contextmanager
def _progress(spark: SparkSession) -> Iterator[None]:
    """How many of Spark's tasks are done, on standard error where that is a terminal."""
    if not sys.stderr.isatty():
        say("reading and matching")
        yield
        return
    # the line is for people only, and costs a tenth of a second to load
    from rich.console import Console

    ended = threading.Event()
    tracker = spark.sparkContext.statusTracker()
    with Console(stderr=True).status("reading and matching") as status:

        def follow() -> None:
            while not ended.wait(0.5):
                stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
                done = sum(stage.numCompletedTasks for stage in stages if stage)
                total = sum(stage.numTasks for stage in stages if stage)
                if total:
                    status.update(f"reading and matching: {done:,} of {total:,} tasks")

        follower = threading.Thread(target=follow, daemon=True)
        follower.start()
        try:
            yield
        finally:
            ended.set()
            follower.join(2)
