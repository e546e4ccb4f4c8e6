"""`triplewire pipeline run` and `demo`: the pipeline on Spark, from the command line.

The pipeline itself: `triplewire.pipeline`. What the demo shows: `triplewire.cli.demo`.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from triplewire.cli.arguments import (
    Entailment,
    EntailmentOption,
    OperatorFiles,
    Split,
    SplitOption,
    SubscriptionFiles,
    TaxonomyFile,
    check_files,
    operators_from,
    settings_from_environment,
)
from triplewire.cli.report import Report, one_line, say
from triplewire.errors import Refusal, TriplewireError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from triplewire.pipeline.run import PipelineRun, Summary

app = typer.Typer(
    help="Publications against subscriptions on Spark, with Parquet as the result.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

EXAMPLES = Path("examples")


@app.command("run")
def run_command(
    source: Annotated[
        str, typer.Option("--input", metavar="DIR", help="RDF documents and feeds: a file, folder or glob, or a URL.")
    ],
    subscriptions: SubscriptionFiles,
    output: Annotated[Path, typer.Option(metavar="DIR", help="Where matches/ and dead-letter/ go.")],
    taxonomy: TaxonomyFile = None,
    operators: OperatorFiles = None,
    streaming: Annotated[
        bool, typer.Option("--streaming", help="Only what is new since the last run with this output, exactly once.")
    ] = False,
    watch: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0, help="With --streaming: keep looking for new files, until Ctrl-C."),
    ] = 0,
    split: SplitOption = Split.ITEM,
    matcher: Annotated[
        str, typer.Option(metavar="NAME", help="How pairs are found; the answers are the same.")
    ] = "trie",
    entailment: EntailmentOption = Entailment.NONE,
    master: Annotated[
        str, typer.Option(metavar="URL", help="Spark's master; default: all cores of this machine.")
    ] = "",
    conf: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="A setting of Spark's; may be repeated.")
    ] = None,
) -> None:
    """
    \b
    triplewire pipeline run --input feeds/ --subscriptions queries/ --output found
    triplewire pipeline run --input feeds/ --subscriptions queries/ --output found-live --streaming --watch 10

    Match files against subscriptions on Spark. DIR/matches holds publication, subscription, bindings (JSON text),
    truncated and matched_at; DIR/dead-letter what was refused, and why. A batch run takes the place of an earlier one
    in the same folder; a streaming run goes on where the last one stopped.
    """
    if watch and not streaming:
        raise typer.BadParameter("it keeps a stream running; add --streaming", param_hint="--watch")
    config = dict(_pair(text) for text in conf or [])
    report = Report()
    job = _prepare(
        source,
        subscriptions,
        output,
        report,
        streaming=streaming,
        split=split,
        taxonomy=taxonomy,
        matcher=matcher,
        entailment=entailment,
        operators=operators or (),
    )
    with _spark(job, master, config) as spark:
        begun = time.perf_counter()
        work = partial(job.stream, spark, watch) if streaming else partial(job.batch, spark)
        summary = _interruptible(spark, work, job.stop, quietly=watch > 0)
    say(f"{_told(summary)} ({time.perf_counter() - begun:.1f} s); written to {output}")
    raise typer.Exit(1 if summary.refused else 0)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"{text!r} is not KEY=VALUE", param_hint="--conf")
    return name, value


def _told(summary: Summary) -> str:
    refused = f", {summary.refused:,} refused" if summary.refused else ""
    return f"{summary.matches:,} matches in {summary.publications:,} publications{refused}"


def _prepare(
    source: str,
    subscriptions: list[Path],
    folder: Path,
    report: Report,
    *,
    streaming: bool = False,
    split: str = Split.ITEM,
    taxonomy: Path | None = None,
    matcher: str = "trie",
    entailment: str = Entailment.NONE,
    operators: Sequence[Path] = (),
) -> PipelineRun:
    """Everything that can go wrong before Spark is started, which takes seconds."""
    # --help does without the parsers, Arrow and the engine behind these
    from triplewire import plugins
    from triplewire.pipeline.jobs import compile_filter
    from triplewire.pipeline.run import PipelineRun
    from triplewire.pipeline.sinks import Output
    from triplewire.pipeline.sources import check_source, local_path

    check_files(subscriptions, [taxonomy] if taxonomy else [])
    settings = settings_from_environment()
    operator_files = operators_from(operators)
    try:
        check_source(source)
        plugins.find("matcher", matcher)
        target = Output(folder)
        before = target.prepare(Path(local_path(source)), streaming)
    except TriplewireError as error:
        raise typer.BadParameter(one_line(str(error))) from error
    if before:
        say(f"{folder}: this run {before}")
    refused: list[Refusal] = []

    def refuse(refusal: Refusal) -> None:
        refused.append(refusal)
        report.refuse(refusal)

    packed = compile_filter(
        subscriptions,
        taxonomy=taxonomy,
        matcher=matcher,
        entailment=str(entailment),
        operators=operator_files,
        settings=settings,
        on_refusal=refuse,
        on_warning=lambda name, warning: report.warn(name, [warning]),
    )
    return PipelineRun(source, packed, target, tuple(refused), str(split), settings, on_refusal=report.refuse)


@contextmanager
def _spark(job: PipelineRun, master: str, config: dict[str, str]) -> Iterator[SparkSession]:
    """A session for the job, with progress on standard error; Spark's failures become one sentence."""
    # Spark takes a second to load, and is an extra
    from triplewire.pipeline.session import failures, session_for

    say("starting Spark")
    logging.disable(logging.ERROR)  # an interrupted talk with the JVM is logged with its traceback
    try:
        with (
            session_for("triplewire pipeline", master=master, config=config, log=job.output.log) as spark,
            failures(job.output.log),
            _progress(spark),
        ):
            yield spark
    finally:
        logging.disable(logging.NOTSET)


def _interruptible(
    spark: SparkSession, work: Callable[[], Summary], stop: threading.Event, *, quietly: bool = False
) -> Summary:
    """Do the work in a thread of its own, so that Ctrl-C never falls into a talk with the JVM; `quietly`: it is how
    the work is meant to end."""
    # PySpark puts a handler of its own in place, which talks to the JVM
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            stop.set()
            if quietly:
                return future.result()
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


@app.command("demo")
def demo_command(
    source: Annotated[str, typer.Option("--input", metavar="DIR", help="RDF documents and feeds of yours.")] = str(
        EXAMPLES / "publications"
    ),
    subscriptions: Annotated[Path, typer.Option(metavar="DIR", exists=True, help="Queries.")] = EXAMPLES
    / "subscriptions",
    taxonomy: Annotated[
        Path, typer.Option(metavar="FILE", exists=True, dir_okay=False, help="The class hierarchy.")
    ] = EXAMPLES / "taxonomy.ttl",
    output: Annotated[Path, typer.Option(metavar="DIR", help="Where the Parquet goes.")] = Path("out/demo"),
) -> None:
    """
    \b
    triplewire pipeline demo
    triplewire pipeline demo --input feeds/

    Run the pipeline over the examples, or over a folder of yours, and show the matches and why each matched. What is
    refused is part of the show: the exit code is 0.
    """
    # --help does without Arrow, the engine and the table behind this
    from triplewire.cli import demo
    from triplewire.pipeline.session import QUICK_START

    report = Report()
    begun = time.perf_counter()
    job = _prepare(source, [subscriptions], output, report, taxonomy=taxonomy)
    picked: list[tuple[str, str, str]] = []
    job.look = lambda outcomes: picked.extend(demo.pick(outcomes))
    with _spark(job, "", dict(QUICK_START)) as spark:
        summary = _interruptible(spark, partial(job.batch, spark), job.stop)
    engine = job.subscriptions.engine()
    demo.show(list(demo.explained(picked, engine, job.split)), summary, engine, output)
    say(f"done in {time.perf_counter() - begun:.0f} s")
