"""The commands of `triplewire pipeline`, as one Typer program."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from triplewire.cli.arguments import Compiling, OperatorCalls, Reading, folder_option
from triplewire.cli.pipeline.index import index_command, list_command, subscribe_command, unsubscribe_command
from triplewire.cli.pipeline.run import prepare, run_command
from triplewire.cli.pipeline.session import Connecting, interruptible, spark_for
from triplewire.cli.pipeline.status import matches_command, status_command
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
    output: Annotated[Path, folder_option(help="Where the Parquet goes.")] = Path("out/demo"),
) -> None:
    """
    \b
    triplewire pipeline demo
    triplewire pipeline demo --input feeds/

    Run the pipeline over the examples, or over a folder of yours, and show the matches and why each matched. What is
    refused is part of the show: the exit code is 0.
    """
    from triplewire.cli.pipeline import shown
    from triplewire.pipeline.session import QUICK_START

    report = Report()
    begun = time.perf_counter()
    job = prepare(
        source,
        [subscriptions],
        output,
        report,
        reading=Reading(),
        compiling=Compiling([taxonomy]),
        calls=OperatorCalls(),
        connecting=Connecting(),
    )
    with spark_for(job, "", dict(QUICK_START)) as spark:
        summary = interruptible(spark, partial(job.batch, spark), job.stop)
    engine = job.subscriptions.engine()
    shown.show(list(shown.explained(shown.picked(job), engine, job.split)), summary, engine, output)
    say(f"done in {time.perf_counter() - begun:.0f} s")


app = typer.Typer(
    help="Publications against subscriptions on Spark, with Parquet as the result.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command("run", short_help="Match publications against subscriptions, once or as a stream.")(run_command)
app.command("index", short_help="Compile subscriptions to an index that runs and streams open.")(index_command)
app.command("subscribe", short_help="Add subscriptions to an index.")(subscribe_command)
app.command("unsubscribe", short_help="Remove subscriptions from an index.")(unsubscribe_command)
app.command("list", short_help="List the subscriptions of an index.")(list_command)
app.command("matches", short_help="Write the committed matches of a run or a stream to one file.")(matches_command)
app.command("status", short_help="Say what a run or a stream has done, and what waits.")(status_command)
app.command("demo", short_help="Run the pipeline over the examples and explain the matches.")(demo_command)
