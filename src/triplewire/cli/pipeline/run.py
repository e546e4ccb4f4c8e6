"""`triplewire pipeline run`: match publications against subscriptions on Spark. See `triplewire.pipeline.run`."""

from __future__ import annotations

import datetime as dt
import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from triplewire.cli.arguments import (
    Compiling,
    OperatorCalls,
    Reading,
    SameOption,
    SubscriptionFiles,
    check_files,
    checked_order,
    folder_option,
    grouped,
    operators_from,
    settings_from_environment,
    warn_of_no_subscription,
    wrong_usage,
)
from triplewire.cli.inputs import found_matcher
from triplewire.cli.pipeline.session import Connecting, interruptible, spark_for
from triplewire.cli.report import Report, counted, say
from triplewire.errors import Refusal
from triplewire.model.same import Same

if TYPE_CHECKING:
    from triplewire.config import Settings
    from triplewire.net.addresses import Connections
    from triplewire.operators.files import OperatorFile
    from triplewire.pipeline.index.build import IndexOptions
    from triplewire.pipeline.index.pins import IndexSource
    from triplewire.pipeline.output import Output, Totals
    from triplewire.pipeline.run import PipelineRun

_OWN = "triplewire."  # before the names of settings that are not Spark's
_SETTLE, _HORIZON = f"{_OWN}settle", f"{_OWN}horizon"
_MOST = 1_000_000  # seconds, or days, of an option or a setting of a stream
_MASTER = re.compile(r"local(-cluster)?(\[.*\])?|yarn|[a-z0-9]+://.+")


@dataclass(frozen=True)
class Streams:
    """How a run goes on; a group of options."""

    streaming: Annotated[
        bool, typer.Option("--streaming", help="Only what is new since the last run with this output, exactly once.")
    ] = False
    watch: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", min=0, max=_MOST, help="With --streaming: keep looking for new files, until Ctrl-C."
        ),
    ] = 0
    repeat: Annotated[
        bool, typer.Option("--repeat", help="With --streaming: tell also what was told before, of the same content.")
    ] = False
    same: SameOption = None

    def check(self, source: str) -> None:
        """Raises `BadParameter` for options, or a source, that are for streams only."""
        for_streams = {
            "--input": (source.lower().endswith((".opml", ".feeds")), "feeds are polled by a stream"),
            "--watch": (self.watch, "it keeps a stream running"),
            "--repeat": (self.repeat, "a batch run tells all matches"),
            "--same": (self.same, "a batch run tells all matches"),
        }
        for option, (is_given, what) in for_streams.items():
            if is_given and not self.streaming:
                raise typer.BadParameter(f"{what}; add --streaming", param_hint=option)
        if self.repeat and self.same is not None:
            raise typer.BadParameter("--repeat tells all matches, and --same tells each once", param_hint="--same")


Conf = Annotated[
    list[str] | None,
    typer.Option(
        "--conf",
        "--master",
        metavar="KEY=VALUE",
        help="A setting of Spark's; may be repeated. --master URL is the same as --conf spark.master=URL. "
        "Of a stream: triplewire.settle=SECONDS that a file has not changed for, until it counts (2); "
        "triplewire.horizon=DAYS after which a match is told again (30).",
    ),
]


Input = Annotated[
    str,
    typer.Option(
        "--input",
        metavar="DIR",
        help="RDF documents and feeds: a file, folder or glob, a URL, kafka://HOST:PORT/TOPIC, or a list of feeds "
        "that are polled (.opml, .feeds).",
    ),
]
IndexOption = Annotated[
    Path | None, folder_option("--index", help="An index of subscriptions instead: triplewire pipeline index.")
]


@grouped
def run_command(
    source: Input,
    output: Annotated[Path, folder_option(help="Where matches/ and dead-letter/ go.")],
    subscriptions: SubscriptionFiles = None,
    index: IndexOption = None,
    *,
    compiling: Compiling,
    calls: OperatorCalls,
    streams: Streams,
    connecting: Connecting,
    reading: Reading,
    conf: Conf = None,
    why: Annotated[bool, typer.Option("--why", help="Say of each match why it is one.")] = False,
) -> None:
    """
    \b
    triplewire pipeline run --input feeds/ --subscriptions queries/ --output found
    triplewire pipeline run --input feeds/ --subscriptions queries/ --output found-live --streaming --watch 10
    triplewire pipeline run --input feeds/ --index live --output found-live --streaming --watch 10
    triplewire pipeline run --input kafka://host:9092/topic --index live --output found-live --streaming --watch 1

    Match publications against subscriptions on Spark. DIR/matches has publication, subscription, bindings (JSON text),
    truncated, matched_at, construct (the graph of a CONSTRUCT query, as N-Quads), content (the content hash of the
    publication), revision (of the subscription), index_version and why (with --why: a JSON list of sentences);
    DIR/dead-letter what was refused, and why. A batch run takes the place of an earlier one in the same folder; a
    streaming run goes on where the last one stopped, and tells once what comes again. With --index, each micro-batch
    has the version that is the newest then.
    """
    streams.check(source)
    chosen = _subscriptions(subscriptions, index, compiling)
    config, master = settings_of_spark_from(conf)
    settings_of_stream = _settings_of_stream(config)
    report = Report()
    job = prepare(
        source,
        chosen,
        output,
        report,
        streaming=streams.streaming,
        reading=reading,
        compiling=compiling,
        calls=calls,
        connecting=connecting,
        why=why,
    )
    with spark_for(job, master, config) as spark:
        begun = time.perf_counter()
        work = partial(job.batch, spark)
        if streams.streaming:
            settings_of_stream |= {"repeat": streams.repeat, "same": streams.same or Same.ITEM}
            work = partial(job.stream, spark, streams.watch, **settings_of_stream)
        summary = interruptible(spark, work, job.stop, quietly=streams.watch > 0)
    job.output.release()
    say(f"{_told(summary)} ({time.perf_counter() - begun:.1f} s); written to {output}")
    raise typer.Exit(1 if summary.refused else 0)


def _subscriptions(files: list[Path] | None, index: Path | None, compiling: Compiling) -> list[Path] | Path:
    """The files, or the index: exactly one is given, and with an index none of what only files take."""
    if index is not None and files is None:
        if compiling != Compiling(operators=compiling.operators):
            what = "an index has its own; give them to triplewire pipeline index"
            raise typer.BadParameter(what, param_hint="--taxonomy, --entailment, --matcher")
        return index
    if files is None or index is not None:
        raise typer.BadParameter("give either, and not both", param_hint="--subscriptions, --index")
    return files


def settings_of_spark_from(conf: list[str] | None) -> tuple[dict[str, str], str]:
    """The settings that were given, and the master."""
    config: dict[str, str] = {}
    for text in conf or ():
        name, equals, value = text.partition("=")
        if not equals and _MASTER.fullmatch(text):  # what stands alone may be a master
            name, value = "spark.master", text
        elif not equals or not name:
            raise typer.BadParameter(f"{text!r} is not KEY=VALUE, and no master of Spark's", param_hint="--conf")
        config[name] = value
    return config, config.pop("spark.master", "")


def _settings_of_stream(config: dict[str, str]) -> dict[str, Any]:
    """The settings of `PipelineRun.stream`, taken out of those of Spark's."""
    settings: dict[str, Any] = {}
    for name in [name for name in config if name.startswith(_OWN)]:
        text = config.pop(name)
        if name not in (_SETTLE, _HORIZON):
            raise typer.BadParameter(f"there is no {name}; known: {_SETTLE}, {_HORIZON}", param_hint="--conf")
        value = -1.0
        with suppress(ValueError):
            value = float(text)
        if not 0 <= value <= _MOST:
            raise typer.BadParameter(f"{name}={text} is no number from 0 to {_MOST:,}", param_hint="--conf")
        settings |= {"settle": value} if name == _SETTLE else {"horizon": dt.timedelta(days=value)}
    return settings


def _told(summary: Totals) -> str:
    refused = f", {summary.refused:,} refused" if summary.refused else ""
    repeats = f", {summary.repeats:,} told before" if summary.repeats else ""
    matches = counted(summary.matches, "match", "matches")
    return f"{matches} in {counted(summary.publications, 'publication')}{repeats}{refused}"


def prepare(
    source: str,
    subscriptions: list[Path] | Path,
    folder: Path,
    report: Report,
    *,
    streaming: bool = False,
    reading: Reading,
    compiling: Compiling,
    calls: OperatorCalls,
    connecting: Connecting,
    why: bool = False,
) -> PipelineRun:
    """Everything that can go wrong before Spark is started, which takes seconds. `subscriptions`: files, or the
    directory of an index."""
    from triplewire.pipeline.filter import Calling
    from triplewire.pipeline.index.pins import IndexSource
    from triplewire.pipeline.run import PipelineRun

    check_files(subscriptions if isinstance(subscriptions, list) else (), compiling.taxonomy or ())
    order, cache = checked_order(calls.operator_order), calls.operator_cache
    connections, delivery = connecting.opened()
    settings = settings_from_environment()
    options, operators = index_options(compiling, settings)
    target = _output(folder, source, streaming, connections)
    refused: list[Refusal] = []

    def refuse(refusal: Refusal) -> None:
        refused.append(refusal)
        report.refuse(refusal)

    with wrong_usage():
        if isinstance(subscriptions, Path):
            versions = IndexSource(subscriptions, target.folder, operators, report.say)
        else:
            versions = _own_index(subscriptions, options, source, target, operators, report, refuse)
        versions.check()
    return PipelineRun(
        source,
        versions,
        target,
        tuple(refused),
        str(reading.split),
        settings,
        as_written=reading.as_written,
        on_refusal=report.refuse,
        on_note=report.say,
        calling=Calling(order, "" if cache is None else str(cache.absolute()), why=why),
        connections=connections,
        delivery=delivery,
    )


def _output(folder: Path, source: str, streaming: bool, connections: Connections) -> Output:
    """The output folder, once the arguments are checked that need no engine."""
    from triplewire.pipeline.output import Output
    from triplewire.pipeline.sources import check_source, local_path

    with wrong_usage():
        check_source(source, connections)
        target = Output(folder)
        before = target.prepare(Path(local_path(source)), streaming)
    if before:
        say(f"{folder}: this run {before}")
    return target


def index_options(compiling: Compiling, settings: Settings) -> tuple[IndexOptions, tuple[OperatorFile, ...]]:
    """How subscriptions are compiled and matched, and the files of operators. Raises `BadParameter` for a matcher or an
    operator that is not there."""
    from triplewire.ir.taxonomy import EMPTY
    from triplewire.operators.files import operators_of
    from triplewire.pipeline.index.build import IndexOptions
    from triplewire.read.taxonomy import load_taxonomy

    found_matcher(compiling.matcher)
    files = operators_from(compiling.operators, compiling.replace_operators)
    classes = load_taxonomy(compiling.taxonomy, settings) if compiling.taxonomy else EMPTY
    return IndexOptions(classes, str(compiling.entailment), operators_of(files), settings, compiling.matcher), files


def _own_index(
    files: Sequence[Path],
    options: IndexOptions,
    source: str,
    target: Output,
    operators: Sequence[OperatorFile],
    report: Report,
    refuse: Callable[[Refusal], None],
) -> IndexSource:
    """An index of these subscriptions, in the output folder, which workers open."""
    from triplewire.pipeline.index.build import saved_once
    from triplewire.pipeline.index.pins import IndexSource
    from triplewire.pipeline.sources import has_files, is_remote, local_roots

    engine = options.engine()
    engine.load_subscriptions(files, on_refusal=refuse, on_warning=report.warn)
    warn_of_no_subscription(files, len(engine), report)
    sources = local_roots(source) if has_files(source) and not is_remote(source) else ()
    version = saved_once(target.index, engine, operators, sources=sources)
    return IndexSource(target.index, target.folder, operators, report.say, source=version.content.source)
