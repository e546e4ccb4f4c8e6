"""A Spark session for a command: progress on standard error, failures as one sentence, and Ctrl-C."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeVar

import typer

from triplewire.cli.arguments import check_files, file_argument, wrong_usage
from triplewire.cli.report import say

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from triplewire.config import Settings
    from triplewire.net.addresses import Connections
    from triplewire.pipeline.connect.delivery import Delivery
    from triplewire.pipeline.run import PipelineRun


Result = TypeVar("Result")


@contextmanager
def spark_for(job: PipelineRun, master: str, config: dict[str, str]) -> Iterator[SparkSession]:
    """A session for the job, with progress on standard error; Spark's failures become one sentence. In the end, other
    runs may write to the output, also where this one failed and its process goes on."""
    from triplewire.net.addresses import KAFKA, kind_of

    try:
        topic = job.source if kind_of(job.source) == KAFKA else ""
        with spark_with_log(job.output.log, master, config, topic) as spark:
            yield spark
    finally:
        job.output.release()


@contextmanager
def spark_with_log(
    log: Path, master: str, config: dict[str, str], source: str = "", *, work: str = "reading and matching"
) -> Iterator[SparkSession]:
    """The same for work of any kind, whose name is shown; what Spark says goes to the log. `source`: see
    `pipeline.session.failures`."""
    # Spark takes a second to load, and is an extra
    from triplewire.pipeline.session import failures, session_for, unknown_settings

    say("starting Spark")
    logging.disable(logging.ERROR)  # an interrupted talk with the JVM is logged with its traceback
    try:
        with (
            session_for("triplewire pipeline", master=master, config=config, log=log) as spark,
            failures(log, source),
            _progress(spark, work),
        ):
            for unknown in unknown_settings(spark, config):
                say(f"warning: {unknown}")
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
def _progress(spark: SparkSession, work: str) -> Iterator[None]:
    """How many of Spark's tasks are done, on standard error where that is a terminal."""
    if not sys.stderr.isatty():
        say(work)
        yield
        return
    # the line is for people only, and costs a tenth of a second to load
    from rich.console import Console

    ended = threading.Event()
    tracker = spark.sparkContext.statusTracker()
    with Console(stderr=True).status(work) as status:

        def follow() -> None:
            while not ended.wait(0.5):
                stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
                done = sum(stage.numCompletedTasks for stage in stages if stage)
                total = sum(stage.numTasks for stage in stages if stage)
                if total:
                    status.update(f"{work}: {done:,} of {total:,} tasks")

        follower = threading.Thread(target=follow, daemon=True)
        follower.start()
        try:
            yield
        finally:
            ended.set()
            follower.join(2)


# --- Kafka, databases and webhooks (`triplewire.net.addresses`) ------------------------------------------------------

ConnectFile = Annotated[
    Path | None,
    typer.Option(
        "--connect",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="TOML: users, secrets and settings, in tables named after the beginning of an address.",
    ),
]


@dataclass(frozen=True)
class Connecting:
    """Where a run writes beside its output folder, and what it needs to reach other systems; a group of options."""

    to: Annotated[
        list[str] | None,
        typer.Option(
            "--to",
            metavar="URL",
            help="Matches also to kafka://HOST:PORT/TOPIC, jdbc:postgresql://HOST/DATABASE#TABLE, sqlite:FILE#TABLE or "
            "a webhook (https://...); may be repeated.",
        ),
    ] = None
    dead_letters_to: Annotated[
        list[str] | None, typer.Option("--dead-letters-to", metavar="URL", help="The same for dead letters.")
    ] = None
    connect: ConnectFile = None

    def opened(self) -> tuple[Connections, Delivery]:
        """What the file of connections says, and the sinks. Raises `BadParameter` where an address is wrong."""
        from triplewire.net.addresses import address
        from triplewire.notify.rows import LETTER, MATCH
        from triplewire.pipeline.connect.delivery import Delivery, sink

        connections = connections_from(self.connect)
        with wrong_usage("--to"):
            matches = [sink(address(text, connections), MATCH) for text in self.to or ()]
        with wrong_usage("--dead-letters-to"):
            letters = [sink(address(text, connections), LETTER) for text in self.dead_letters_to or ()]
        return connections, Delivery(matches, letters)


def connections_from(file: Path | None) -> Connections:
    """What a file of connections says; nothing without one. Raises `BadParameter`."""
    from triplewire.net.addresses import Connections

    with wrong_usage("--connect"):
        return Connections.read(file) if file is not None else Connections()


# --- subscriptions ---------------------------------------------------------------------------------------------------


class Subscribed(NamedTuple):
    """A file or a folder of subscriptions, or the address of a table of them."""

    file: Path
    address: str = ""


def subscribed_argument(text: str) -> Subscribed:
    """What an argument names. Raises `BadParameter` for an address of anything but a database."""
    if text.startswith(("jdbc:", "sqlite:")):
        return Subscribed(Path(), text)
    return Subscribed(file_argument(text))


SubscribedOption = Annotated[
    list[Subscribed] | None,
    typer.Option(
        "--subscriptions",
        metavar="FILE...",
        parser=subscribed_argument,
        help="Queries: .gql .rq .rdql .mdv .pred .kw (one each), .jsonl .parquet (many), or folders; tables: "
        "jdbc:postgresql://HOST/DATABASE#TABLE, sqlite:FILE#TABLE.",
    ),
]


@contextmanager
def subscription_files(
    given: Iterable[Subscribed], settings: Settings, connect: Path | None, config: dict[str, str], master: str
) -> Iterator[tuple[list[Path], dict[str, str]]]:
    """The subscriptions as files, and the addresses that some of these stand for; those of tables are fetched, and
    removed in the end. Raises `BadParameter`."""
    from triplewire.languages.sources.rows import row_bytes
    from triplewire.net.addresses import JDBC, SQLITE, address
    from triplewire.pipeline.connect.databases import DEFAULT_TABLE, fetched

    given, connections = list(given), connections_from(connect)
    check_files([entry.file for entry in given if not entry.address])
    files, names = list[Path](), dict[str, str]()
    with ExitStack() as opened:
        log = Path(tempfile.gettempdir()) / f"triplewire-spark-{os.getpid()}.log"

        @opened.push
        def forget(raised: type[BaseException] | None, *_: object) -> None:
            if raised is None or issubclass(raised, KeyboardInterrupt):  # other failures name the log
                log.unlink(missing_ok=True)

        @cache
        def spark() -> SparkSession:  # one for all tables, which is told of once
            return opened.enter_context(spark_with_log(log, master, config, work="reading tables of subscriptions"))

        for entry in given:
            if not entry.address:
                files.append(entry.file)
                continue
            folder = Path(tempfile.mkdtemp(prefix="triplewire-subscriptions-"))
            opened.callback(shutil.rmtree, folder, ignore_errors=True)
            with wrong_usage("--subscriptions"):
                table = address(entry.address, connections, (JDBC, SQLITE)).named(DEFAULT_TABLE)
                of_table = fetched(table, folder / "rows", spark, row_bytes(settings))
            files += of_table
            names.update((str(file), str(table)) for file in of_table)
        yield files, names
