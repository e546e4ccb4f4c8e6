"""`triplewire pipeline status` and `matches`: what a run or a stream has done. See `triplewire.pipeline.committed`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from triplewire.cli.arguments import folder_option, wrong_usage
from triplewire.cli.output import check_writable, feed_lines, whole_file
from triplewire.cli.report import counted, say

if TYPE_CHECKING:
    from triplewire.pipeline.committed import Status

OutputFolder = Annotated[Path, folder_option(help="The output folder of a run or a stream.")]


def status_command(
    output: OutputFolder,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """
    \b
    triplewire pipeline status --output found-live
    triplewire pipeline status --output found-live --json

    What a run or a stream has done, what waits, and whether it runs; of each polled feed, when it was asked and is
    asked next, and why it waits. The same figures stand in DIR/_metrics.prom, for Prometheus, after each micro-batch.
    """
    from triplewire.pipeline.committed import Status
    from triplewire.pipeline.output import Output

    with wrong_usage("--output"):
        status = Status.of(Output(output))
    print(json.dumps(asdict(status)) if as_json else _shown(status))


def _shown(status: Status) -> str:
    """The status as lines for people."""
    state = "runs" if status.running else "does not run"
    batches = counted(status.batches, "micro-batch", "micro-batches")
    lines = [f"a stream, which {state}: {batches}" if status.streaming else f"a batch run, which {state}"]
    repeats = f" ({status.repeats:,} more were told before)" if status.repeats else ""
    lines += [f"publications  {status.publications:,}", f"candidates    {status.candidates:,}"]
    lines += [f"matches       {status.matches:,}{repeats}", f"refused       {status.refused:,}"]
    if status.waiting is not None:
        age = f", the first for {status.oldest_seconds:,.0f} s" if status.oldest_seconds is not None else ""
        lines.append(f"waiting       {counted(status.waiting, 'file')}{age}")
    if status.last_committed:
        took = f"{status.last_publications:,} publications, {status.last_matches:,} matches"
        lines.append(f"last commit   {status.last_committed} ({took}, {status.last_seconds:.2f} s)")
    if status.index_version is not None:
        lines.append(f"index         version {status.index_version}")
    if status.version:
        lines.append(f"subscriptions {status.version}")
    return "\n".join([*lines, *feed_lines(status.feeds)])


def matches_command(
    output: OutputFolder,
    file: Annotated[Path, typer.Option("--export", metavar="FILE", help="A .parquet, .jsonl or .csv file to write.")],
) -> None:
    """
    \b
    triplewire pipeline matches --output found-live --export matches.parquet

    Write the committed matches of a run or a stream to one file: each exactly once, however the run ended, and also
    while it runs. Rows are ordered by micro-batch. A folder in which nothing was committed yet gives a file without
    rows.
    """
    from triplewire.encode.matches import SUFFIXES
    from triplewire.pipeline.committed import export
    from triplewire.pipeline.output import Output

    check_writable(file, SUFFIXES, "--export")
    with wrong_usage("--output"), whole_file(file) as aside:
        rows = export(Output(output), aside, file.suffix)
    say(f"{counted(rows, 'match', 'matches')} written to {file}")
