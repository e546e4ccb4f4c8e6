"""`triplewire pipeline demo`: the pipeline over the examples. What it shows: `triplewire.cli.pipeline.shown`."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from triplewire.cli.arguments import Reading
from triplewire.cli.inputs.files import folder_argument
from triplewire.cli.pipeline.run import prepare
from triplewire.cli.pipeline.session import interruptible, spark_for
from triplewire.cli.report import Report, say

EXAMPLES = Path("examples")


def demo_command(
    source: Annotated[str, typer.Option("--input", metavar="DIR", help="RDF documents and feeds of yours.")] = str(
        EXAMPLES / "publications"
    ),
    subscriptions: Annotated[Path, typer.Option(metavar="DIR", exists=True, help="Queries.")] = EXAMPLES
    / "subscriptions",
    taxonomy: Annotated[
        Path, typer.Option(metavar="FILE", exists=True, dir_okay=False, help="The class hierarchy.")
    ] = EXAMPLES / "taxonomy.ttl",
    output: Annotated[Path, typer.Option(parser=folder_argument, metavar="DIR", help="Where the Parquet goes.")] = Path(
        "out/demo"
    ),
) -> None:
    """
    \b
    triplewire pipeline demo
    triplewire pipeline demo --input feeds/

    Run the pipeline over the examples, or over a folder of yours, and show the matches and why each matched. What is
    refused is part of the show: the exit code is 0.
    """
    # --help does without Arrow, the engine and the table behind this
    from triplewire.cli.pipeline import shown
    from triplewire.pipeline.session import QUICK_START

    report = Report()
    begun = time.perf_counter()
    job = prepare(source, [subscriptions], output, report, reading=Reading(), taxonomy=[taxonomy])
    with spark_for(job, "", dict(QUICK_START)) as spark:
        summary = interruptible(spark, partial(job.batch, spark), job.stop)
    engine = job.subscriptions.engine()
    shown.show(list(shown.explained(shown.picked(job), engine, job.split)), summary, engine, output)
    say(f"done in {time.perf_counter() - begun:.0f} s")
