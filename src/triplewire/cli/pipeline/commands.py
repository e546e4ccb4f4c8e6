"""The commands of `triplewire pipeline`, as one Typer program."""

from __future__ import annotations

import typer

from triplewire.cli.pipeline.demo import demo_command
from triplewire.cli.pipeline.export import matches_command
from triplewire.cli.pipeline.index import index_command, subscribe_command, unsubscribe_command
from triplewire.cli.pipeline.run import run_command
from triplewire.cli.pipeline.status import status_command

app = typer.Typer(
    help="Publications against subscriptions on Spark, with Parquet as the result.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command("run")(run_command)
app.command("index")(index_command)
app.command("subscribe")(subscribe_command)
app.command("unsubscribe")(unsubscribe_command)
app.command("matches")(matches_command)
app.command("status")(status_command)
app.command("demo")(demo_command)
