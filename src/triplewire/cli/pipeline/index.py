"""`triplewire pipeline index`, `subscribe`, `unsubscribe` and `list`: see `triplewire.pipeline.index`."""

from __future__ import annotations

import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from triplewire.cli import output
from triplewire.cli.arguments import (
    QUERIES,
    Compiling,
    Format,
    FormatOption,
    OperatorFiles,
    Reading,
    ReplaceOperators,
    check_files,
    file_argument,
    folder_option,
    grouped,
    operators_from,
    settings_from_environment,
    warn_of_no_subscription,
    wrong_usage,
)
from triplewire.cli.pipeline.run import Conf, index_options, settings_of_spark_from
from triplewire.cli.pipeline.session import (
    ConnectFile,
    SubscribedOption,
    interruptible,
    spark_with_log,
    subscription_files,
)
from triplewire.cli.report import Report, counted, one_line, say
from triplewire.errors import Refusal

if TYPE_CHECKING:
    from triplewire.config import Settings
    from triplewire.engine import Engine
    from triplewire.engine.arguments import Workers
    from triplewire.model.publication import Publication
    from triplewire.operators.files import OperatorFile
    from triplewire.partition.sample import Statistics
    from triplewire.pipeline.index.versions import Version

Index = Annotated[Path, folder_option("--index", help="What `triplewire pipeline index` wrote.")]
Output = Annotated[Path, folder_option(help="The index; one that is there gets a new version.")]
PartitionerOption = Annotated[
    str, typer.Option(metavar="NAME", help="How subscriptions are spread: replicated, containment, merging, random.")
]
SampleFiles = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", parser=file_argument, help="Publications that tell what merging should merge."),
]
CollectFrom = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="The same of a large folder, which Spark's tasks match (statCollection)."),
]
LoadTasks = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        max=10_000,
        help="Spark loads .jsonl and .parquet files by N tasks, which see these files and the folder of the index.",
    ),
]
MergePercent = Annotated[
    float | None,
    typer.Option(metavar="N", min=0, max=99, help="Percent of the subscriptions that merging takes out of the server."),
]


@dataclass(frozen=True)
class Merging:
    """What *merging* goes by; a group of options."""

    sample: SampleFiles = None
    collect: CollectFrom = None
    merge_percent: MergePercent = None

    def check(self, partitioner: str) -> None:
        """Raises `BadParameter` where these options do not go together, or are for another partitioner."""
        if self.sample and self.collect:
            raise typer.BadParameter("give one of them", param_hint="--sample, --collect")
        if self != Merging() and partitioner != "merging":
            what = f"only merging looks at a sample and a percentage, not {partitioner}"
            raise typer.BadParameter(what, param_hint="--sample, --collect, --merge-percent")


@grouped
def index_command(
    output: Output,
    subscriptions: SubscribedOption = None,
    partitioner: PartitionerOption = "replicated",
    nodes: Annotated[int, typer.Option(metavar="N", min=1, max=1024, help="Over so many nodes.")] = 1,
    *,
    compiling: Compiling,
    merging: Merging,
    reading: Reading,
    load_tasks: LoadTasks = None,
    connect: ConnectFile = None,
    conf: Conf = None,
) -> None:
    """
    \b
    triplewire pipeline index --subscriptions queries/ --output live
    triplewire pipeline index --subscriptions sqlite:users.db#queries --output live
    triplewire pipeline index --subscriptions many.parquet --output live --partitioner containment --nodes 4
    triplewire pipeline index --taxonomy new-classes.ttl --output live

    Compile subscriptions to an index that `pipeline run --index DIR` opens by memory map. A new version is published
    in one step: streams that use the index have it at their next micro-batch. Without --subscriptions, those of the
    index stay, and the new version has another taxonomy. Exit code 1: some subscriptions were refused, and the others
    are there.
    """
    from triplewire.partition.plan import MERGE_PERCENT, NAMES
    from triplewire.pipeline.connect.databases import renamed
    from triplewire.pipeline.index.build import Spread, build, newest_built

    if subscriptions is None:
        usual = "replicated", 1, Compiling(compiling.taxonomy, compiling.operators), Merging(), None, None
        own = partitioner, nodes, compiling, replace(merging, sample=None), connect, load_tasks
        _change_taxonomy(output, compiling, merging.sample, reading, own != usual)
    if partitioner not in NAMES:
        raise typer.BadParameter(f"there is no {partitioner!r}; known: {', '.join(NAMES)}", param_hint="--partitioner")
    merging.check(partitioner)
    check_files(compiling.taxonomy or (), merging.sample or ())
    settings, report, begun, since = settings_from_environment(), Report(), time.perf_counter(), newest_built(output)
    options, operators = index_options(compiling, settings)
    collecting = partial(_collected, merging.collect, operators, reading, conf, report) if merging.collect else None
    merged = MERGE_PERCENT if merging.merge_percent is None else merging.merge_percent
    with (
        wrong_usage(),
        subscription_files(subscriptions, settings, connect, *settings_of_spark_from(conf)) as (files, names),
        _loading(load_tasks, output, operators, conf) as workers,
    ):
        version = build(
            output,
            files,
            options,
            Spread(partitioner, nodes, _sample(merging.sample, reading, settings, report), merged, collecting),
            on_refusal=renamed(report.refuse, names),
            on_warning=report.warn,
            on_note=lambda note: report.refuse(Refusal("warning", str(output), "", note, "run it again")),
            since=since,  # before tables are fetched
            workers=workers,
        )
        named = (names.get(str(file), str(file)) for file in files)
        warn_of_no_subscription(named, version.content.subscriptions, report)
    _end(version, "built", report, begun)


def _change_taxonomy(
    index: Path, compiling: Compiling, sample: list[Path] | None, reading: Reading, has_own: bool
) -> NoReturn:
    """A new version of an index that is there, with another taxonomy. `has_own`: options were given beside it that say
    how subscriptions are compiled."""
    from triplewire.pipeline.index.build import change_taxonomy
    from triplewire.pipeline.index.versions import load
    from triplewire.read.taxonomy import load_taxonomy

    if not compiling.taxonomy:
        what = "give subscriptions, or a taxonomy for those that the index has"
        raise typer.BadParameter(what, param_hint="--subscriptions, --taxonomy")
    if has_own:
        what = "the subscriptions of the index stay as they are compiled; add --subscriptions to compile others"
        options = "--partitioner, --nodes, --matcher, --entailment, --collect, --merge-percent, --load-tasks, --connect"
        raise typer.BadParameter(what, param_hint=options)
    check_files(compiling.taxonomy, sample or ())
    settings, report, begun = settings_from_environment(), Report(), time.perf_counter()
    operators = operators_from(compiling.operators, compiling.replace_operators)
    with wrong_usage():
        if sample and load(index).content.partitioner != "merging":
            raise typer.BadParameter("only merging looks at a sample", param_hint="--sample")
        classes = load_taxonomy(compiling.taxonomy, settings)
        version = change_taxonomy(index, classes, operators, _sample(sample, reading, settings, report))
    _end(version, "taxonomy changed", report, begun)


def _sample(files: list[Path] | None, reading: Reading, settings: Settings, report: Report) -> tuple[Publication, ...]:
    """The publications of files."""
    from triplewire.read import read  # as in `index_command`

    if not files:
        return ()
    split, refuse = str(reading.split), report.refuse
    return tuple(read(*files, split=split, settings=settings, on_refusal=refuse, as_written=reading.as_written))


@contextmanager
def _loading(
    tasks: int | None, index: Path, operators: tuple[OperatorFile, ...], conf: list[str] | None
) -> Iterator[Workers | None]:
    """How Spark loads the files by so many tasks; None where this process does. The log of Spark stays where it
    fails."""
    if tasks is None:
        yield None
        return
    from triplewire.pipeline.index.loading import executors

    (config, master), logs = settings_of_spark_from(conf), Path(tempfile.mkdtemp(prefix="triplewire-load-"))
    with spark_with_log(logs / "spark.log", master, config, work="loading subscriptions") as spark:
        yield executors(spark, tasks, index.absolute().parent, operators)
    shutil.rmtree(logs, ignore_errors=True)


def _collected(
    folder: str,
    operators: Sequence[OperatorFile],
    reading: Reading,
    conf: list[str] | None,
    report: Report,
    engine: Engine,
) -> Statistics:
    """What the publications of a folder say of the subscriptions of an engine, counted on Spark. The log of Spark stays
    where it fails."""
    from triplewire.pipeline.index.build import shipped
    from triplewire.pipeline.sources import publications
    from triplewire.pipeline.stat_collection import collected

    config, master = settings_of_spark_from(conf)
    index, logs = shipped(engine, operators), Path(tempfile.mkdtemp(prefix="triplewire-collect-"))
    split, as_written = str(reading.split), reading.as_written
    with spark_with_log(logs / "spark.log", master, config, folder, work="collecting statistics") as spark:
        rows = publications(spark, folder, split=split, settings=engine.settings, as_written=as_written)
        statistics, refusals = interruptible(spark, partial(collected, rows, index, engine), threading.Event())
    shutil.rmtree(logs, ignore_errors=True)
    report.refuse(*refusals)
    return statistics


def subscribe_command(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", parser=file_argument, help=QUERIES)],
    index: Index,
    operators: OperatorFiles = None,
    replace_operators: ReplaceOperators = False,
    replaces: Annotated[
        bool, typer.Option("--replace", help="A subscription takes the place of the one with its id.")
    ] = False,
) -> None:
    """
    \b
    triplewire pipeline subscribe --index live new.rq
    triplewire pipeline subscribe --index live more.jsonl queries/
    triplewire pipeline subscribe --index live queries/ --replace

    Add subscriptions to an index: streams that use it have them at their next micro-batch. Nothing else is compiled
    again. With --replace, one whose id is there takes the place of the other in one step; one that is as it was changes
    nothing, and where a text is wrong, the one before stays. Exit code 1: some were refused (a text that is wrong, an
    id that is taken), and the others were added.
    """
    from triplewire.pipeline.connect.databases import renamed
    from triplewire.pipeline.index.changes import subscribe

    check_files(files)
    called, report, begun = operators_from(operators, replace_operators), Report(), time.perf_counter()
    with wrong_usage(), tempfile.TemporaryDirectory(prefix="triplewire-subscriptions-") as folder:
        given, names = list(files), dict[str, str]()
        if replaces and Path("-") in files:  # they are read twice
            spooled = Path(folder, "stdin.jsonl")
            spooled.write_bytes(sys.stdin.buffer.read())
            given[files.index(Path("-"))], names[str(spooled)] = spooled, "-"
        refuse = renamed(report.refuse, names)
        change = subscribe(index, given, called, replaces=replaces, on_refusal=refuse, on_warning=report.warn)
    warn_of_no_subscription(files, change.changed + change.replaced, report)
    what = f"{counted(change.changed, 'subscription')} added"
    _end(change.version, f"{what}, {change.replaced:,} replaced" if replaces else what, report, begun)


def unsubscribe_command(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="The ids of subscriptions.")],
    index: Index,
    operators: OperatorFiles = None,
    replace_operators: ReplaceOperators = False,
) -> None:
    """
    \b
    triplewire pipeline unsubscribe --index live news-1
    triplewire pipeline unsubscribe --index live news-1 news-2

    Remove subscriptions from an index: streams that use it match without them from their next micro-batch on. Exit code
    1: some id was not there, and the others were removed.
    """
    from triplewire.pipeline.index.changes import unsubscribe

    called, report, begun = operators_from(operators, replace_operators), Report(), time.perf_counter()
    with wrong_usage():
        change = unsubscribe(index, ids, called, on_refusal=report.refuse)
    _end(change.version, f"{counted(change.changed, 'subscription')} removed", report, begun)


def list_command(
    index: Index,
    form: FormatOption = None,
    operators: OperatorFiles = None,
) -> None:
    """
    \b
    triplewire pipeline list --index live
    triplewire pipeline list --index live --format jsonl > queries.jsonl

    The subscriptions that an index holds now, by their ids. As JSON Lines each is a row that `--subscriptions` takes:
    id, language, query, prefixes and base.
    """
    from triplewire.engine.compiler import row_of
    from triplewire.languages.sources.tables import line_of
    from triplewire.pipeline.index.changes import held
    from triplewire.pipeline.index.open_version import opened
    from triplewire.pipeline.index.versions import load

    called = operators_from(operators)
    with wrong_usage():
        rows = sorted(map(row_of, held(opened(index, load(index).name, called))), key=itemgetter("id"))
    with output.text_output(None) as out:
        if output.chosen_form(form, None, Format.TABLE, Format.JSONL) is Format.TABLE:
            shown = [(row["id"], row["language"], one_line(row["query"])) for row in rows]
            output.print_table(out, ("id", "language", "query"), shown, "no subscriptions")
        else:
            out.writelines(line_of(row).decode("utf-8", "surrogatepass") for row in rows)


def _end(version: Version, what: str, report: Report, begun: float) -> NoReturn:
    """Say what was done, and end with the exit code."""
    report.finish()
    content = version.content
    refused = f", {report.refused:,} refused" if report.refused else ""
    spread = f" on {counted(content.nodes, 'node')} ({content.partitioner})" if version.is_staged else ""
    live = f"{version.directory} {version.name} has {counted(content.subscriptions, 'subscription')}{spread}"
    say(f"{what}{refused}; {live} ({time.perf_counter() - begun:.1f} s)")
    raise typer.Exit(report.exit_code)
