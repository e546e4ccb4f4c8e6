"""`triplewire pipeline status`: what a run or a stream has done. See `triplewire.pipeline.results.status`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from triplewire.cli.arguments import wrong_usage
from triplewire.cli.inputs.files import folder_argument
from triplewire.cli.report import counted

if TYPE_CHECKING:
    from triplewire.pipeline.results.status import Status


def status_command(
    output: Annotated[
        Path, typer.Option(parser=folder_argument, metavar="DIR", help="The output folder of a run or a stream.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """
    \b
    triplewire pipeline status --output found-live
    triplewire pipeline status --output found-live --json

    What a run or a stream has done, what waits, and whether it runs. The same figures stand in DIR/_metrics.prom, for
    Prometheus, after each micro-batch.
    """
    # --help does without Arrow
    from triplewire.pipeline.output import Output
    from triplewire.pipeline.results.status import Status

    with wrong_usage("--output"):
        status = Status.of(Output(output))
    print(json.dumps(asdict(status)) if as_json else _shown(status))


def _shown(status: Status) -> str:
    """The status as lines for people."""
    state = "runs" if status.running else "does not run"
    batches = counted(status.batches, "micro-batch", "micro-batches")
    lines = [f"a stream, which {state}: {batches}" if status.streaming else f"a batch run, which {state}"]
    lines.append(f"publications  {status.publications:,}")
    lines.append(f"candidates    {status.candidates:,}")
    repeats = f" ({status.repeats:,} more were told before)" if status.repeats else ""
    lines.append(f"matches       {status.matches:,}{repeats}")
    lines.append(f"refused       {status.refused:,}")
    if status.waiting is not None:
        age = f", the first for {status.oldest_seconds:,.0f} s" if status.oldest_seconds is not None else ""
        lines.append(f"waiting       {counted(status.waiting, 'file')}{age}")
    if status.last_committed:
        took = (
            f"{status.last_publications:,} publications, {status.last_matches:,} matches, {status.last_seconds:.2f} s"
        )
        lines.append(f"last commit   {status.last_committed} ({took})")
    if status.index_version is not None:
        lines.append(f"index         version {status.index_version}")
    if status.version:
        lines.append(f"subscriptions {status.version[:16]}")
    return "\n".join(lines)
