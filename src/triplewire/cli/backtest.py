"""`triplewire backtest`: subscriptions over an archive, on Spark. See `triplewire.pipeline.backtest`."""

from __future__ import annotations

import datetime as dt
import shutil
import tempfile
import threading
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from triplewire.cli import output
from triplewire.cli.arguments import (
    QUERIES,
    Compiling,
    Reading,
    check_files,
    files_option,
    folder_option,
    grouped,
    settings_from_environment,
    warn_of_no_subscription,
    wrong_usage,
)
from triplewire.cli.inputs import load
from triplewire.cli.match import prepare_kernels
from triplewire.cli.pipeline.run import Conf, index_options, settings_of_spark_from
from triplewire.cli.pipeline.session import interruptible, spark_with_log
from triplewire.cli.report import Report, counted, one_line, say

if TYPE_CHECKING:
    from triplewire.pipeline.backtest import ArchiveFilter, Outcome

SAMPLES = 5  # hits that are explained
SHOWN_DAYS = 31


def _day(text: str) -> dt.date:
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no date such as 2026-05-17") from None


@dataclass(frozen=True)
class Range:
    """The days that count; a group of options."""

    since: Annotated[
        dt.date | None, typer.Option(metavar="DATE", parser=_day, help="The first day, as 2026-05-17.")
    ] = None
    until: Annotated[dt.date | None, typer.Option(metavar="DATE", parser=_day, help="The last day.")] = None

    def __post_init__(self) -> None:
        if self.since and self.until and self.until < self.since:
            raise typer.BadParameter("the last day comes before the first", param_hint="--until")


@grouped
def backtest_command(
    subscriptions: Annotated[list[Path], files_option("--subscriptions", "--subscription", help=QUERIES)],
    archive: Annotated[Path, folder_option(help="RDF documents and feeds that were published.")],
    file: Annotated[Path, typer.Option("--output", metavar="FILE", help="A .jsonl or .parquet file to write.")],
    days: Range,
    compiling: Compiling,
    reading: Reading,
    conf: Conf = None,
) -> None:
    """
    \b
    triplewire backtest --subscription new.rq --archive feeds/ --output hits.jsonl
    triplewire backtest --subscriptions queries/ --archive 2026/ --since 2026-05-01 --output may.parquet

    The matches that subscriptions would have had. FILE has the bytes that `triplewire match --output` gives for the
    same files, for any number of workers. On the terminal: hits a day, some hits with their reasons, and what the
    subscriptions would cost. The day is the date in the path of the file below DIR (2026/05/17/a.xml,
    log-2026-05-17.nq), else the one that the publication states.
    """
    from triplewire.cli.matches import rows_in_order, write_file
    from triplewire.pipeline.backtest import Archive, ArchiveFilter, Days
    from triplewire.pipeline.index.build import shipped

    output.check_writable(file, (".jsonl", ".parquet"))
    config, master = settings_of_spark_from(conf)
    check_files(subscriptions, compiling.taxonomy or ())
    output.check_apart({"--output": file}, subscriptions)
    report, wanted, settings = Report(), Days(days.since, days.until), settings_from_environment()
    with wrong_usage("--archive"):
        place = Archive(str(archive))
    prepare_kernels(compiling.matcher)
    options, operators = index_options(compiling, settings)
    engine = options.engine()
    warn_of_no_subscription(subscriptions, load(engine, subscriptions, report), report)
    work = ArchiveFilter(shipped(engine, operators), place, wanted, str(reading.split), reading.as_written, settings)
    begun = time.perf_counter()
    outcome = _run(work, file, master, config)
    report.refuse(*outcome.refusals)
    write_file(file, rows_in_order(outcome.matches))
    report.finish()
    _show(outcome, work, f"({time.perf_counter() - begun:.1f} s); written to {file}")
    raise typer.Exit(report.exit_code)


def _run(work: ArchiveFilter, file: Path, master: str, config: dict[str, str]) -> Outcome:
    """Match the archive on Spark. The rows lie beside the output meanwhile, where all workers see them; the log of
    Spark stays where it fails."""
    from triplewire.pipeline.backtest import backtest

    beside = Path(tempfile.mkdtemp(prefix=f".{file.name}.", dir=file.resolve().parent))
    logs = Path(tempfile.mkdtemp(prefix="triplewire-backtest-"))
    try:
        with spark_with_log(logs / "spark.log", master, config) as spark:
            outcome = interruptible(spark, partial(backtest, spark, work, beside), threading.Event())
    except KeyboardInterrupt:
        shutil.rmtree(logs, ignore_errors=True)
        raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    shutil.rmtree(logs, ignore_errors=True)
    return outcome


def _show(outcome: Outcome, work: ArchiveFilter, end: str) -> None:
    """What was found, hits a day, some hits with their reasons, of as many subscriptions as there are, and the cost, on
    standard error."""
    from triplewire.cli.pipeline.shown import explained
    from triplewire.pipeline.backtest import samples

    matches = counted(outcome.matches.num_rows, "match", "matches")
    say(f"{matches} in {counted(outcome.publications, 'publication')} {end}")
    by_day = outcome.by_day()
    undated = by_day.pop("", 0)
    if by_day:
        busiest = max(by_day.values())
        say("hits a day (by the date in the file's path, else the one that the publication states):")
        listed = list(by_day.items())
        for day, count in listed[:SHOWN_DAYS]:
            say(f"  {day} {count:>9,} {'#' * -(-40 * count // busiest)}")
        if len(listed) > SHOWN_DAYS:
            say(f"  ... {len(listed) - SHOWN_DAYS:,} more days, until {listed[-1][0]}")
    if undated:
        say(f"{counted(undated, 'hit')} without a day: neither the file's path nor the publication states one")
    if outcome.undated:
        say(f"{counted(outcome.undated, 'publication')} left out: they have no day, and a range of days was asked for")
    for line in explained(samples(outcome, SAMPLES), work.filter.opened().server(), work.split):
        why = f": {one_line(line.why)}" if line.why else ""
        title = f" ({one_line(line.title)})" if line.title else ""
        say(f"for example {line.subscription} matches {line.publication}{title}{why}")
    if outcome.publications:
        micro = 1e6 / outcome.publications
        matching, reading = (f"{s * micro:,.0f} us" for s in (outcome.match_seconds, outcome.read_seconds))
        cost = f"{matching} a publication to match, {reading} to read"
        if by_day:
            first, last = (dt.date.fromisoformat(day) for day in (min(by_day), max(by_day)))
            span = ((work.days.until or last) - (work.days.since or first)).days + 1
            cost = f"{sum(by_day.values()) / span:,.1f} matches a day, {cost}"
        say(f"predicted cost: {cost}")
